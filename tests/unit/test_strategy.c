#include "base/rng.h"
#include "sleet_test.h"
#include "strategy/strategy.h"
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
    const struct strategy *s = strategy_by_name("rps");
    struct group view, out;
    fill(&view, 7, test_seed());
    group_seal(&view);
    CHECK(strategy_by_name("none-such") == NULL && strategy_by_name(NULL) == NULL);
    CHECK(s != NULL);
    if (!s)
        return;
    s->plan(&view, 3, &out);
    CHECK_EQ(out.hash, view.hash);
    CHECK_EQ(out.n, 7);
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
    TEST(owners_follow_the_protocol),
    TEST(owners_are_balanced_and_move_with_the_round),
    TEST(a_lost_member_moves_only_its_runs),
    TEST(nobody_contributes),
    TEST_END,
};
