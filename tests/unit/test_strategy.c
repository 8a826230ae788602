#include "base/rng.h"
#include "sleet_test.h"
#include "strategy/strategy.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define RUNS 6400

static void fill(struct group *g, uint8_t n, uint64_t seed)
{
    sleet_rng rng = {seed};
    memset(g, 0, sizeof(*g));
    g->n = n;
    for (int i = 0; i < n; i++)
        g->members[i] = (struct group_member){rng_next(&rng) | 1, rng_next(&rng) | 1, 1, (int16_t)i};
}

static void seal_sorts_and_hashes(void)
{
    struct group a, b;
    fill(&a, 64, test_seed());
    b = a;
    for (int i = 0; i < 32; i++) {
        struct group_member t = b.members[i];
        b.members[i] = b.members[63 - i];
        b.members[63 - i] = t;
    }
    group_seal(&a);
    group_seal(&b);
    CHECK_EQ(a.hash, b.hash);
    bool ascending = true, ranked = true;
    for (int i = 0; i < 64; i++) {
        ascending = ascending && (i == 0 || a.members[i - 1].node_id < a.members[i].node_id);
        ranked = ranked && group_rank(&a, a.members[i].node_id) == i;
    }
    CHECK(ascending);
    CHECK(ranked);
    CHECK_EQ(group_rank(&a, 0), -1);
    CHECK_EQ(group_rank(&a, a.members[63].node_id + 1), -1);
    b.members[5].slot = 99;
    group_seal(&b);
    CHECK_EQ(a.hash, b.hash);
    b.members[5].contributes = 0;
    group_seal(&b);
    CHECK(a.hash != b.hash);
    b = a;
    b.members[5].boot_id++;
    group_seal(&b);
    CHECK(a.hash != b.hash);
}

static void rps_takes_the_view(void)
{
    const uint16_t numbers[2] = {0};
    struct group view;
    struct plan plan;
    fill(&view, 7, test_seed());
    group_seal(&view);
    CHECK(strategy_by_id(99) == NULL && strategy_by_id(0) == NULL);
    CHECK(strategy_plan(&strategy_rps, numbers, view.members, view.n, view.members[3].node_id, 3, &plan));
    CHECK_EQ(plan.group.hash, view.hash);
    CHECK_EQ(plan.group.n, 7);
    CHECK(!plan.edges && !plan.group.part);
}

#define NODES_MAX 16
/* The matrix of a round among n nodes of which the first so many contribute: w[i][j] is what i takes of j. */
static void weights(const struct strategy *s, uint32_t n, uint32_t contribute, uint64_t round,
                    double w[NODES_MAX][NODES_MAX])
{
    const uint16_t numbers[2] = {0};
    static struct plan plan[NODES_MAX];
    struct group view;
    bool agree = true;
    fill(&view, (uint8_t)n, 7);
    group_seal(&view);
    memset(w, 0, NODES_MAX * sizeof w[0]);
    for (uint32_t i = 0; i < n; i++)
        view.members[i].contributes = i < contribute;
    for (uint32_t i = 0; i < n; i++)
        CHECK(strategy_plan(s, numbers, view.members, n, view.members[i].node_id, round, &plan[i]));
    for (uint32_t i = 0; i < n; i++) {
        w[i][i] = 1;
        for (uint32_t k = 0; k < plan[i].group.n; k++) {
            uint32_t j = (uint32_t)group_rank(&view, plan[i].group.members[k].node_id);
            int back = group_rank(&plan[j].group, view.members[i].node_id);
            const struct edge *e = &plan[i].edge[k];
            w[i][j] += e->weight;
            w[i][i] -= e->weight;
            agree &= back >= 0 && plan[j].edge[back].in == e->out && plan[j].edge[back].out == e->in;
            agree &= !plan[i].atomic || !plan[i].edge[k].in || plan[j].edge[back].weight == e->weight;
        }
    }
    CHECK(agree);
}

static bool doubly_stochastic(double w[NODES_MAX][NODES_MAX], uint32_t n)
{
    bool ok = true;
    for (uint32_t i = 0; i < n; i++) {
        double row = 0, column = 0;
        for (uint32_t j = 0; j < n; j++) {
            ok &= w[i][j] >= 0;
            row += w[i][j];
            column += w[j][i];
        }
        ok &= fabs(row - 1) < 1e-12 && fabs(column - 1) < 1e-12;
    }
    return ok;
}

/* Of every strategy with edges, for each number of nodes: what one sends the other expects, and the mean
 * of all stays what it is. */
static void edges_keep_the_mean(void)
{
    static double w[NODES_MAX][NODES_MAX];
    for (int id = 1; strategy_by_id(id); id++)
        for (uint32_t n = 1; strategy_by_id(id)->edges && n <= NODES_MAX; n++)
            for (uint64_t round = 1; round <= 8; round++) {
                weights(strategy_by_id(id), n, n, round, w);
                CHECK(doubly_stochastic(w, n));
            }
}

/* The product of tau rounds is the mean, from any round on; and only of powers of two. */
static void one_peer_is_exact_of_powers_of_two(void)
{
    static double w[NODES_MAX][NODES_MAX];
    for (uint32_t n = 2; n <= NODES_MAX; n++) {
        double x[NODES_MAX] = {1}, y[NODES_MAX], far = 0;
        uint32_t tau = 0;
        while ((1u << tau) < n)
            tau++;
        for (uint64_t round = 11; round < 11 + tau; round++) {
            weights(&strategy_one_peer, n, n, round, w);
            for (uint32_t i = 0; i < n; i++) {
                y[i] = 0;
                for (uint32_t j = 0; j < n; j++)
                    y[i] += w[i][j] * x[j];
            }
            memcpy(x, y, sizeof x);
        }
        for (uint32_t i = 0; i < n; i++)
            far = fmax(far, fabs(x[i] - 1.0 / n));
        CHECK((far < 1e-12) == ((n & (n - 1)) == 0));
    }
}

/* A joiner takes all of one contributor's values and gives none; the others do as if it were not there. */
static void joiners_take_from_one(void)
{
    static double w[NODES_MAX][NODES_MAX], without[NODES_MAX][NODES_MAX];
    for (int id = 2; strategy_by_id(id); id++) {
        if (!strategy_by_id(id)->edges)
            continue;
        weights(strategy_by_id(id), 9, 7, 5, w);
        weights(strategy_by_id(id), 7, 7, 5, without);
        for (uint32_t i = 0; i < 9; i++) {
            double most = 0;
            for (uint32_t j = 0; j < 9; j++)
                most = fmax(most, i == j ? 0 : w[i][j]);
            CHECK(i < 7 || (w[i][i] == 0 && most == 1));
            CHECK(i >= 7 || memcmp(w[i], without[i], sizeof w[i]) == 0);
        }
    }
}

static void owners_follow_the_protocol(void)
{
    static uint8_t owner[RUNS];
    const uint64_t phi = 0x9e3779b97f4a7c15u, round = 41;
    struct group g;
    bool highest = true;
    fill(&g, 9, test_seed());
    g.members[4].contributes = 0;
    group_seal(&g);
    owners_assign(&g, round, RUNS, owner);
    for (uint32_t r = 0; r < RUNS; r++) {
        uint64_t mine = mix64(mix64(round * phi + r) ^ mix64(g.members[owner[r]].node_id));
        highest = highest && g.members[owner[r]].contributes;
        for (int i = 0; i < g.n; i++)
            if (g.members[i].contributes)
                highest = highest &&
                          mix64(mix64(round * phi + r) ^ mix64(g.members[i].node_id)) <= mine;
    }
    CHECK(highest);
}

static void owners_are_balanced_and_move_with_the_round(void)
{
    static uint8_t now[RUNS], next[RUNS];
    uint32_t load[8] = {0}, same = 0;
    struct group g;
    fill(&g, 8, test_seed());
    group_seal(&g);
    owners_assign(&g, 10, RUNS, now);
    owners_assign(&g, 11, RUNS, next);
    for (uint32_t r = 0; r < RUNS; r++) {
        load[now[r]]++;
        same += now[r] == next[r];
    }
    for (int i = 0; i < 8; i++)
        CHECK(load[i] > 600 && load[i] < 1000);
    CHECK(same > 600 && same < 1000);
}

static void a_lost_member_moves_only_its_runs(void)
{
    static uint8_t before[RUNS], after[RUNS];
    struct group g, less;
    bool kept = true;
    fill(&g, 8, test_seed());
    group_seal(&g);
    less = g;
    memmove(&less.members[3], &less.members[4], 4 * sizeof(less.members[0]));
    less.n = 7;
    group_seal(&less);
    owners_assign(&g, 5, RUNS, before);
    owners_assign(&less, 5, RUNS, after);
    for (uint32_t r = 0; r < RUNS; r++)
        if (before[r] != 3)
            kept = kept &&
                   g.members[before[r]].node_id == less.members[after[r]].node_id;
    CHECK(kept);
}

static void nobody_contributes(void)
{
    uint8_t owner[2] = {0, 0};
    struct group g;
    fill(&g, 2, test_seed());
    g.members[0].contributes = g.members[1].contributes = 0;
    group_seal(&g);
    owners_assign(&g, 1, 2, owner);
    CHECK(owner[0] == OWNER_NONE && owner[1] == OWNER_NONE);
}

/* ---- cells ------------------------------------------------------------------ */

#define CROWD 1000

static struct group_member crowd[CROWD];

static void fill_crowd(uint64_t seed)
{
    sleet_rng rng = {seed};
    for (int i = 0; i < CROWD; i++)
        crowd[i] = (struct group_member){rng_next(&rng) | 1, 1, 1, (int16_t)i};
}

/* The cell of member `i` among the first `n`, by slots. */
static uint32_t cell_of(uint32_t n, uint32_t i, uint64_t round, struct group_member *cell, uint8_t *bits)
{
    memcpy(cell, crowd, n * sizeof *cell);
    return cell_select(cell, n, crowd[i].node_id, round, bits);
}

static bool has(const struct group_member *cell, uint32_t n, int16_t slot)
{
    for (uint32_t i = 0; i < n; i++)
        if (cell[i].slot == slot)
            return true;
    return false;
}

/* Everybody is in one cell, its members agree on it, and none is too large or tiny. */
static void cells_part_the_view(void)
{
    static const uint32_t sizes[] = {1, 64, 65, 100, 200, CROWD};
    static struct group_member mine[CROWD], theirs[CROWD];
    fill_crowd(test_seed());
    for (uint32_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
        uint32_t n = sizes[k], least = GROUP_MEMBERS_MAX, most = 0, disagree = 0;
        for (uint32_t i = 0; i < n; i++) {
            uint8_t bits, bits_there;
            uint32_t m = cell_of(n, i, 7, mine, &bits);
            uint32_t other = (uint32_t)mine[(i * 31) % m].slot;
            uint32_t m_there = cell_of(n, other, 7, theirs, &bits_there);
            disagree += m != m_there || bits != bits_there || !has(mine, m, (int16_t)i) ||
                        memcmp(mine, theirs, m * sizeof mine[0]) != 0;
            for (uint32_t j = 0; j < n; j++)
                disagree += cell_same(crowd[i].node_id, crowd[j].node_id, 7, bits) !=
                            has(mine, m, (int16_t)j);
            least = m < least ? m : least;
            most = m > most ? m : most;
        }
        CHECK_EQ(disagree, 0);
        CHECK(most <= GROUP_MEMBERS_MAX);
        CHECK(n > GROUP_MEMBERS_MAX ? least >= 8 : least == n);
    }
}

static void cells_change_with_the_round(void)
{
    static struct group_member now[CROWD], next[CROWD];
    uint32_t again = 0, in_all = 0;
    fill_crowd(test_seed());
    for (uint64_t round = 1; round <= 100; round++) {
        uint8_t bits;
        uint32_t n = cell_of(CROWD, 5, round, now, &bits);
        uint32_t m = cell_of(CROWD, 5, round + 1, next, &bits);
        for (uint32_t i = 0; i < n; i++)
            again += now[i].slot != 5 && has(next, m, now[i].slot);
        in_all += n - 1;
    }
    CHECK(again * 10 < in_all); /* one in twenty would be chance */
    CHECK(in_all > 100 * 30);
}

/* Who does not know of one member differs from the others in that member's cell only. */
static void a_lost_member_changes_its_cell_only(void)
{
    static struct group_member with[CROWD], without[CROWD];
    for (uint64_t round = 1; round <= 5; round++) {
        uint32_t changed = 0;
        fill_crowd(test_seed() + round);
        for (uint32_t i = 0; i + 1 < CROWD; i++) { /* the last one is lost */
            uint8_t bits;
            uint32_t n = cell_of(CROWD, i, round, with, &bits);
            uint32_t m = cell_of(CROWD - 1, i, round, without, &bits);
            changed += n != m || memcmp(with, without, n * sizeof with[0]) != 0;
        }
        CHECK(changed > 0 && changed <= GROUP_MEMBERS_MAX);
    }
}

TEST_SUITE(strategy) = {
    TEST(cells_part_the_view),
    TEST(cells_change_with_the_round),
    TEST(a_lost_member_changes_its_cell_only),
    TEST(seal_sorts_and_hashes),
    TEST(rps_takes_the_view),
    TEST(edges_keep_the_mean),
    TEST(one_peer_is_exact_of_powers_of_two),
    TEST(joiners_take_from_one),
    TEST(owners_follow_the_protocol),
    TEST(owners_are_balanced_and_move_with_the_round),
    TEST(a_lost_member_moves_only_its_runs),
    TEST(nobody_contributes),
    TEST_END,
};
