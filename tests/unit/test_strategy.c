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

TEST_SUITE(strategy) = {
    TEST(seal_sorts_and_hashes),
    TEST(rps_takes_the_view),
    TEST(owners_follow_the_protocol),
    TEST(owners_are_balanced_and_move_with_the_round),
    TEST(a_lost_member_moves_only_its_runs),
    TEST(nobody_contributes),
    TEST_END,
};
