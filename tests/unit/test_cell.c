/* Large views: the cells and the groups of keys that they fall into. */
#include "base/rng.h"
#include "sleet_test.h"
#include "strategy/strategy.h"
#include <stdlib.h>
#include <string.h>

#define CROWD 1000

static struct group_member crowd[CROWD];

static void fill_crowd(uint64_t seed)
{
    sleet_rng rng = {seed};
    for (int i = 0; i < CROWD; i++)
        crowd[i] = (struct group_member){
            .node_id = rng_next(&rng) | 1, .boot_id = 1, .contributes = 1, .slot = (int16_t)i};
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

#define DIMENSIONS 5
/* As in the paper: a member's key is its last places in groups, a group is all of one key. */
struct keys {
    uint32_t n, dimensions, size[DIMENSIONS], place[CROWD][DIMENSIONS];
};

static bool one_key(const struct keys *k, uint32_t a, uint32_t b, uint32_t along)
{
    for (uint32_t d = 0; d < k->dimensions; d++)
        if (d != along && k->place[a][d] != k->place[b][d])
            return false;
    return true;
}

/* Spread evenly: all places but the first of the round to come. */
static void first_keys(struct keys *k)
{
    for (uint32_t i = 0; i < k->n; i++)
        for (uint32_t d = k->dimensions, rest = i; d-- > 0; rest /= k->size[d])
            k->place[i][d] = d ? rest % k->size[d] : 0;
}

static bool groups_are_keys(struct keys *k, const uint16_t numbers[2], uint64_t round)
{
    static struct plan plan;
    uint32_t along = (uint32_t)(round % k->dimensions), wrong = 0;
    for (uint32_t i = 0; i < k->n; i++) {
        wrong += !strategy_plan(&strategy_moshpit, numbers, NULL, crowd, k->n, crowd[i].node_id, round, &plan);
        wrong += plan.group.n > k->size[along];
        for (uint32_t j = 0; j < k->n; j++)
            wrong += one_key(k, i, j, along) != (group_rank(&plan.group, crowd[j].node_id) >= 0);
        for (uint32_t j = 0; i % 7 == 0 && j < plan.group.n; j++) /* all know it alike */
            wrong += !one_key(k, i, (uint32_t)plan.group.members[j].slot, along);
        k->place[i][along] = (uint32_t)group_rank(&plan.group, crowd[i].node_id);
    }
    return wrong == 0;
}

static int by_id(const void *a, const void *b)
{
    const struct group_member *x = a, *y = b;
    return (x->node_id > y->node_id) - (x->node_id < y->node_id);
}

static void moshpit_groups_are_the_keys_of_the_paper(void)
{
    static struct keys all[] = {{15, 2, {4, 4}, {{0}}}, {20, 3, {2, 3, 4}, {{0}}}, {100, 4, {3, 3, 3, 4}, {{0}}},
                                {CROWD, 5, {4, 4, 4, 4, 4}, {{0}}}};
    fill_crowd(test_seed());
    for (size_t c = 0; c < sizeof all / sizeof all[0]; c++) {
        qsort(crowd, all[c].n, sizeof crowd[0], by_id);
        for (uint32_t i = 0; i < all[c].n; i++)
            crowd[i].slot = (int16_t)i;
        first_keys(&all[c]);
        for (uint64_t round = 0; round < 2 * all[c].dimensions; round++)
            CHECK(groups_are_keys(&all[c], (uint16_t[2]){0}, 60 + round));
    }
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

TEST_SUITE(cell) = {
    TEST(cells_part_the_view),
    TEST(cells_change_with_the_round),
    TEST(a_lost_member_changes_its_cell_only),
    TEST(moshpit_groups_are_the_keys_of_the_paper),
    TEST_END,
};
