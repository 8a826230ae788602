/* How much of the vector each member owns. */
#include "base/rng.h"
#include "sleet_test.h"
#include "strategy/share.h"
#include <math.h>

#define RUNS 20000
#define GRID 96

static uint8_t grade(uint32_t kbit)
{
    return uplink_of(&(struct declared){.kbit = kbit});
}

static double speed(uint8_t uplink)
{
    return exp2((uplink == UPLINK_UNSAID ? grade(UPLINK_USUAL_KBIT) - 1 : uplink - 1) / 6.0);
}

/* When the last node has sent all it has to, c of which contribute; clients set no pace. */
static double time_of(const uint8_t *uplink, uint32_t n, uint32_t c, const double *f)
{
    double last = 0;
    for (uint32_t i = 0; i < n; i++)
        if (uplink[i] != UPLINK_CLIENT)
            last = fmax(last, (i < c ? 1 + (c - 2.0) * f[i] : c * f[i]) / speed(uplink[i]));
    return last;
}

/* The best of all shares in steps of 1 / GRID, of which none is below an eighth of an equal one. */
static double best_time(const uint8_t *uplink, uint32_t n, uint32_t c, double *f, uint32_t i, uint32_t left)
{
    double best = INFINITY;
    for (uint32_t k = 0; k <= left; k++) {
        if ((i + 1 == n && k < left) || (k && (uplink[i] == UPLINK_CLIENT || (double)k / GRID < 0.125 / n)))
            continue;
        f[i] = (double)k / GRID;
        best = fmin(best, i + 1 == n ? time_of(uplink, n, c, f) : best_time(uplink, n, c, f, i + 1, left - k));
    }
    return best;
}

static void grades_are_near(void)
{
    CHECK_EQ(grade(0), UPLINK_UNSAID);
    CHECK_EQ(grade(1), 1);
    CHECK_EQ(grade(UINT32_MAX), UPLINK_MOST);
    CHECK_EQ(uplink_of(&(struct declared){.role = ROLE_CLIENT, .kbit = 5000}), UPLINK_CLIENT);
    for (double kbit = 64; kbit < 100e6; kbit *= 1.003)
        CHECK(fabs(log(64 * speed(grade((uint32_t)kbit)) / kbit)) < 0.07);
}

static void no_shares_are_faster(void)
{
    sleet_rng rng = {test_seed()};
    for (int t = 0; t < 200; t++) {
        uint32_t n = 3 + rng_below(&rng, 2), c = n - (n == 4 && rng_below(&rng, 2)), owners = 0, lowest = 1 + rng_below(&rng, 87);
        uint16_t share[4];
        uint8_t uplink[4];
        double f[4], room[4], all = 0;
        for (uint32_t i = 0; i < n; i++) {
            uplink[i] = (uint8_t)(lowest + rng_below(&rng, 40));
            uplink[i] = i >= c || rng_below(&rng, 6) ? uplink[i] : rng_below(&rng, 2) ? UPLINK_CLIENT : UPLINK_UNSAID;
            owners += uplink[i] != UPLINK_CLIENT;
        }
        if (!owners)
            continue;
        shares_of(uplink, n, c, share);
        for (uint32_t i = 0; i < n; i++) {
            f[i] = (double)share[i] / SHARE_WHOLE;
            all += f[i];
            CHECK(uplink[i] != UPLINK_CLIENT || share[i] == 0);
            CHECK(share[i] == 0 || share[i] >= SHARE_WHOLE / (8 * n) - 1);
        }
        CHECK(fabs(all - 1) < 1e-3);
        double best = best_time(uplink, n, c, room, 0, GRID);
        CHECK(time_of(uplink, n, c, f) <= best * 1.03); /* one just below what is worth an owner is none */
    }
}

static void a_tenth_owns_nothing_and_a_half_less(void)
{
    uint16_t share[4];
    shares_of((uint8_t[]){grade(10000), grade(100000), 0, grade(100000)}, 4, 4, share);
    CHECK(share[0] == 0 && share[1] == share[2] && share[2] == share[3] && share[3] > SHARE_WHOLE / 3 - 2);
    shares_of((uint8_t[]){1, UPLINK_MOST, UPLINK_MOST, 1}, 4, 4, share);
    CHECK(share[0] == 0 && share[1] == share[2] && share[1] == SHARE_WHOLE / 2);
    shares_of((uint8_t[]){grade(70000), grade(100000), 0, grade(100000)}, 4, 4, share);
    CHECK(share[0] > SHARE_WHOLE / 20 && share[0] < SHARE_WHOLE / 8 && share[1] == share[2]);
    shares_of((uint8_t[]){grade(10), grade(100000)}, 2, 2, share); /* each sends one vector anyway */
    CHECK(share[0] == share[1] && share[0] == SHARE_WHOLE / 2);
    shares_of((uint8_t[]){UPLINK_CLIENT, UPLINK_CLIENT, grade(10)}, 3, 2, share); /* an auxiliary */
    CHECK(share[0] == 0 && share[1] == 0 && share[2] == SHARE_WHOLE);
    CHECK_EQ(uplink_of(&(struct declared){.role = ROLE_AUXILIARY}), grade(UPLINK_USUAL_KBIT));
    shares_of((uint8_t[]){UPLINK_CLIENT, grade(10)}, 2, 2, share);
    CHECK(share[0] == 0 && share[1] == SHARE_WHOLE);
}

static struct group group_of(uint8_t n, const uint8_t *uplink)
{
    struct group g = {.n = n};
    sleet_rng rng = {test_seed()};
    for (uint8_t i = 0; i < n; i++)
        g.members[i] = (struct group_member){.node_id = rng_next(&rng) | 1, .boot_id = 1, .contributes = 1};
    group_seal(&g);
    for (uint8_t i = 0; i < n; i++)
        g.members[i].uplink = uplink ? uplink[i] : 0;
    group_seal(&g);
    return g;
}

static void equal_ones_own_as_ever(void)
{
    static uint8_t plain[RUNS], equal[RUNS];
    static const uint8_t all[4] = {50, 50, 50, 50}, clients[4] = {UPLINK_CLIENT, UPLINK_CLIENT, UPLINK_CLIENT, UPLINK_CLIENT};
    struct group g = group_of(4, NULL), said = group_of(4, all);
    CHECK(!g.uneven && !said.uneven && g.hash != said.hash);
    owners_assign(&g, 7, RUNS, plain);
    owners_assign(&said, 7, RUNS, equal);
    CHECK_MEM(plain, equal, RUNS);
    said = group_of(4, clients); /* somebody has to */
    owners_assign(&said, 7, RUNS, equal);
    CHECK_MEM(plain, equal, RUNS);
    for (int i = 0; i < 4; i++)
        said.members[i].share = 99;
    said.uneven = true; /* the weighted way comes to the same */
    owners_assign(&said, 7, RUNS, equal);
    CHECK_MEM(plain, equal, RUNS);
}

static void owners_win_by_their_shares(void)
{
    static uint8_t owner[RUNS];
    static const uint8_t uplink[5] = {UPLINK_CLIENT, 60, 62, 64, 0};
    struct group g = group_of(5, uplink);
    uint32_t won[5] = {0};
    CHECK(g.uneven);
    owners_assign(&g, 3, RUNS, owner);
    for (uint32_t r = 0; r < RUNS; r++) {
        won[owner[r]]++;
        CHECK(r % 100 || owner_of(&g, 3, r) == owner[r]);
    }
    CHECK_EQ(won[0], 0);
    for (int i = 1; i < 5; i++) {
        double due = (double)g.members[i].share / SHARE_WHOLE * RUNS;
        CHECK(due == 0 || fabs(won[i] - due) < 4 * sqrt(due));
    }
}

/* From members that own less, relative to another, to it: no run changes hands for nothing. */
static void few_runs_move(void)
{
    static uint8_t before[RUNS], after[RUNS];
    static const uint8_t was[5] = {60, 61, 62, 63, 64}, is[5] = {60, 61, 62, 63, 58};
    struct group g = group_of(5, was), less = group_of(5, is);
    uint32_t moved = 0;
    double least = 0;
    owners_assign(&g, 3, RUNS, before);
    owners_assign(&less, 3, RUNS, after);
    for (uint32_t r = 0; r < RUNS; r++)
        moved += before[r] != after[r];
    for (int i = 0; i < 5; i++)
        least += fabs((double)g.members[i].share - less.members[i].share) / SHARE_WHOLE / 2 * RUNS;
    CHECK(moved < least * 1.3);
    g.members[2].contributes = 0;
    g.members[2].uplink = 0;
    group_seal(&g);
    owners_assign(&g, 3, RUNS, after);
    for (uint32_t r = 0; r < RUNS; r++)
        CHECK(after[r] != 2);
}

/* ---- sites and clients in groups of groups ---------------------------------------------- */

#define NODES 11

/* Node i's group in a round by `hierarchical:M`, as bits. */
static uint32_t met(const struct group *view, uint16_t most, uint64_t round, int i)
{
    static struct plan plan;
    uint16_t numbers[2] = {most, 0};
    uint32_t bits = 0;
    CHECK(strategy_plan(&strategy_hierarchical, numbers, NULL, view->members, view->n, view->members[i].node_id, round, &plan));
    for (int k = 0; k < plan.group.n; k++)
        bits |= 1u << group_rank(view, plan.group.members[k].node_id);
    return bits;
}

/* Sites of 5, 1, 3 and 2 (nothing said) in no order: groups of 3 and 2, 1, 3, 2. */
static void groups_keep_to_sites(void)
{
    static const uint32_t at[NODES] = {7, 9, 7, 2, 0, 7, 2, 7, 0, 2, 7}, sizes[NODES] = {2, 1, 2, 3, 2, 3, 3, 3, 2, 3, 3};
    struct group view = group_of(NODES, NULL);
    uint32_t led = 0;
    for (int i = 0; i < NODES; i++)
        view.members[i].site = at[i];
    for (int i = 0; i < NODES; i++) {
        uint32_t group = met(&view, 4, 2, i), leaders = met(&view, 4, 3, i);
        CHECK_EQ(__builtin_popcount(group), sizes[i]);
        for (int k = 0; k < NODES; k++) {
            CHECK(!(group >> k & 1) || (at[k] == at[i] && met(&view, 4, 2, k) == group));
            CHECK(!(leaders >> k & 1) || met(&view, 4, 3, k) == leaders);
        }
        CHECK(leaders == 1u << i || (__builtin_popcount(leaders) == 5 && leaders >> i & 1));
        led += leaders != 1u << i;
    }
    CHECK_EQ(led, 5);
}

/* Too many sites for groups of their own: they are cut as they come. */
static void many_sites_are_cut_evenly(void)
{
    static struct plan plan;
    struct group view = group_of(64, NULL);
    for (int i = 0; i < 64; i++)
        view.members[i].site = 1 + (uint64_t)(i % 40);
    for (int i = 0; i < 64; i++) {
        CHECK(strategy_plan(&strategy_hierarchical, (uint16_t[]){1, 0}, NULL, view.members, 64, view.members[i].node_id, 2, &plan));
        CHECK_EQ(plan.group.n, 2);
    }
}

/* Nor does a joiner take its values from one. */
static void clients_lead_no_group(void)
{
    static struct plan plan;
    struct group view = group_of(9, NULL);
    for (int i = 0; i < 9; i += 2)
        view.members[i].uplink = UPLINK_CLIENT;
    for (uint64_t round = 1; round < 40; round += 2)
        CHECK_EQ(__builtin_popcount(met(&view, 3, round, 1) | met(&view, 3, round, 3) | met(&view, 3, round, 5) | met(&view, 3, round, 7)), 4);
    view.members[0].contributes = view.members[0].uplink = 0;
    for (uint64_t round = 1; round < 40; round++) {
        CHECK(strategy_plan(&strategy_ring, (uint16_t[]){0, 0}, NULL, view.members, 9, view.members[0].node_id, round, &plan));
        CHECK_EQ(plan.group.n, 2);
        CHECK(plan.group.members[1].uplink != UPLINK_CLIENT);
    }
    for (int i = 0; i < 9; i++) { /* somebody has to */
        view.members[i].contributes = 1;
        view.members[i].uplink = UPLINK_CLIENT;
    }
    uint32_t all = 0;
    for (int i = 0; i < 9; i++)
        all |= __builtin_popcount(met(&view, 3, 1, i)) == 3 ? 1u << i : 0;
    CHECK_EQ(__builtin_popcount(all), 3);
}

/* Each auxiliary is in one group, as long as that has somebody to reduce for. */
static void auxiliaries_go_with_groups(void)
{
    static struct plan plan;
    struct group view = group_of(10, NULL);
    view.members[3].contributes = view.members[7].contributes = 0;
    view.members[3].uplink = view.members[7].uplink = 60;
    for (uint64_t round = 2; round < 30; round++)
        for (int i = 0; i < 10; i++) {
            bool there = strategy_plan(&strategy_hierarchical, (uint16_t[]){2, 0}, NULL, view.members, 10, view.members[i].node_id, round, &plan);
            int givers = 0, helpers = 0;
            for (int k = 0; there && k < plan.group.n; k++) {
                givers += plan.group.members[k].contributes;
                helpers += group_auxiliary(&plan.group.members[k]);
            }
            CHECK(there ? givers >= (helpers ? 2 : 1) : !view.members[i].contributes);
            CHECK(!there || plan.group.uneven == (helpers > 0));
            for (int k = 0; there && k < plan.group.n && helpers; k++) { /* all of the group have one list */
                uint32_t hash = plan.group.hash;
                struct plan other;
                CHECK(strategy_plan(&strategy_hierarchical, (uint16_t[]){2, 0}, NULL, view.members, 10, plan.group.members[k].node_id, round, &other));
                CHECK_EQ(other.group.hash, hash);
            }
        }
}

TEST_SUITE(share) = {TEST(auxiliaries_go_with_groups), TEST(groups_keep_to_sites), TEST(many_sites_are_cut_evenly), TEST(clients_lead_no_group),
                     TEST(grades_are_near), TEST(no_shares_are_faster), TEST(a_tenth_owns_nothing_and_a_half_less),
                     TEST(equal_ones_own_as_ever), TEST(owners_win_by_their_shares), TEST(few_runs_move), TEST_END};
