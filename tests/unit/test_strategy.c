#include "base/rng.h"
#include "mixing.h"
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
        g->members[i] = (struct group_member){
            .node_id = rng_next(&rng) | 1, .boot_id = rng_next(&rng) | 1, .contributes = 1, .slot = (int16_t)i};
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

static void all_are_in_the_table(void)
{
#define SLEET_X(name, value, text, numbers) CHECK(strategy_by_id(name) && strategy_by_id(name)->id == (name));
    SLEET_STRATEGY_MAP(SLEET_X)
#undef SLEET_X
}

static void rps_takes_the_view(void)
{
    const uint16_t numbers[2] = {0};
    struct group view;
    struct plan plan;
    fill(&view, 7, test_seed());
    group_seal(&view);
    CHECK(strategy_by_id(99) == NULL && strategy_by_id(0) == NULL);
    CHECK(strategy_plan(&strategy_rps, numbers, NULL, view.members, view.n, view.members[3].node_id, 3, &plan));
    CHECK_EQ(plan.group.hash, view.hash);
    CHECK_EQ(plan.group.n, 7);
    CHECK(!plan.edges && !plan.group.part);
}

#define NODES_MAX 16
static const struct edge_list *given; /* of strategy graph */

/* Row i of a group whose members have one result. */
static bool owner_row(const struct plan *plan, const struct group *view, uint32_t i, double *w)
{
    const struct group *g = &plan[i].group;
    uint32_t givers = 0;
    bool agree = true;
    for (uint32_t k = 0; k < g->n; k++)
        givers += g->members[k].contributes;
    for (uint32_t k = 0; k < g->n; k++) {
        uint32_t j = (uint32_t)group_rank(view, g->members[k].node_id);
        w[j] = g->members[k].contributes ? 1.0 / givers : 0;
        agree &= plan[j].group.hash == g->hash;
    }
    return agree;
}

static bool edge_row(const struct plan *plan, const struct group *view, uint32_t i, double *w, uint64_t segment)
{
    bool agree = true;
    uint32_t in = 0;
    w[i] = 1;
    for (uint32_t k = 0; k < plan[i].group.n; k++) {
        uint32_t j = (uint32_t)group_rank(view, plan[i].group.members[k].node_id);
        int back = group_rank(&plan[j].group, view->members[i].node_id);
        const struct edge *e = &plan[i].edge[k];
        w[j] += e->in & segment ? e->weight : 0;
        w[i] -= e->in & segment ? e->weight : 0;
        in += e->in != 0;
        agree &= back >= 0 && plan[j].edge[back].in == e->out && plan[j].edge[back].out == e->in;
        agree &= !plan[i].atomic || !plan[i].edge[k].in || plan[j].edge[back].weight == e->weight;
    }
    return agree && in <= EDGES_IN_MAX;
}

/* The matrix of a round and a segment among n nodes of which the first so many contribute: w[i][j] is what i takes
 * of j.  How many segments there are. */
static uint32_t weights(const struct strategy *s, const uint16_t numbers[2], uint32_t n, uint32_t contribute, uint64_t round,
                        uint32_t segment, mixing_matrix w)
{
    static struct plan plan[NODES_MAX];
    struct group view;
    bool agree = true;
    fill(&view, (uint8_t)n, 7);
    group_seal(&view);
    memset(w, 0, sizeof(mixing_matrix));
    for (uint32_t i = 0; i < n; i++)
        view.members[i].contributes = i < contribute;
    for (uint32_t i = 0; i < n; i++)
        CHECK(strategy_plan(s, numbers, given, view.members, n, view.members[i].node_id, round, &plan[i]));
    for (uint32_t i = 0; i < n; i++)
        agree &= plan[i].segments == plan[0].segments &&
                 (plan[i].edges ? edge_row(plan, &view, i, w[i], UINT64_C(1) << segment) : owner_row(plan, &view, i, w[i]));
    CHECK(agree);
    return plan[0].segments;
}

static bool doubly_stochastic(mixing_matrix w, uint32_t n)
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

static const uint16_t usual[2] = {0};

/* Any edges among the nodes that weights() has, beside a ring. */
static bool any_edges(struct edge_list *l, uint64_t seed)
{
    static char text[NODES_MAX * NODES_MAX * 44];
    struct group view;
    struct edge_fault f;
    sleet_rng rng = {seed};
    char *p = text;
    fill(&view, NODES_MAX, 7);
    group_seal(&view);
    for (uint32_t i = 0; i < NODES_MAX; i++)
        for (uint32_t j = i + 1; j < NODES_MAX; j++)
            if (j == i + 1 || rng_below(&rng, 4) == 0)
                p += sprintf(p, "%" PRIu64 " %" PRIu64 "\n", view.members[j].node_id, view.members[i].node_id);
    return CHECK(edge_list_parse(l, text, (size_t)(p - text), &f));
}

/* Of every strategy, for each number of nodes: what one sends the other expects, all of a group know it alike, and
 * the mean of all stays what it is. */
static void all_keep_the_mean(void)
{
    static const uint16_t numbers[][2] = {{0}, {2, 1}, {3, 2}, {4, 3}, {16, 4}};
    static mixing_matrix w;
    struct edge_list edges;
    REQUIRE(any_edges(&edges, test_seed()));
    given = &edges;
    for (int id = 1; strategy_by_id(id); id++)
        for (uint32_t k = 0; k < sizeof numbers / sizeof numbers[0]; k++)
            for (uint32_t n = 1; n <= NODES_MAX; n++)
                for (uint64_t round = 1; round <= 8; round++) {
                    uint32_t segment = 0, segments;
                    do {
                        segments = weights(strategy_by_id(id), numbers[k], n, n, round, segment, w);
                        CHECK(doubly_stochastic(w, n));
                    } while (++segment < segments);
                }
    given = NULL;
    edge_list_free(&edges);
}

/* What is left of the variance after so many rounds from `round` on. */
static double left_after(const struct strategy *s, const uint16_t numbers[2], uint32_t n, uint64_t round, uint32_t rounds)
{
    static mixing_matrix w, product;
    mixing_begin(product, n);
    for (uint64_t r = round; r < round + rounds; r++) {
        weights(s, numbers, n, n, r, 0, w);
        mixing_round(product, w, n);
    }
    return mixing_left(product, n);
}

struct left {
    uint32_t n;
    uint16_t numbers[2];
    uint32_t rounds;
    double ratio, within; /* 0: exact */
};

static void check_left(const struct strategy *s, const struct left *t, size_t rows)
{
    for (size_t i = 0; i < rows; i++) {
        double left = left_after(s, t[i].numbers, t[i].n, 12, t[i].rounds);
        bool right = left <= t[i].ratio * t[i].within + 1e-12 && left * t[i].within >= t[i].ratio;
        if (!CHECK(right))
            printf("%u nodes, %u rounds: %.3g\n", t[i].n, t[i].rounds, left);
    }
}

/* The product of tau rounds is the mean, from any round on; and only of powers of two. */
static void one_peer_is_exact_of_powers_of_two(void)
{
    for (uint32_t n = 2; n <= NODES_MAX; n++) {
        uint32_t tau = 0;
        while ((1u << tau) < n)
            tau++;
        CHECK((left_after(&strategy_one_peer, usual, n, 11, tau) < 1e-12) == ((n & (n - 1)) == 0));
    }
}

/* Of the exponential graphs, and a ring for comparison. */
static void exponential_mixes(void)
{
    static const struct left one_peer[] = {
        {4, {0}, 1, 0.33, 1.05}, {8, {0}, 1, 0.43, 1.05}, {8, {0}, 2, 0.14, 1.05}, {16, {0}, 2, 0.2, 1.05},
        {16, {0}, 3, 6.6e-2, 1.05}, {6, {0}, 3, 2.5e-2, 1.2}, {6, {0}, 6, 9.6e-4, 1.2}, {12, {0}, 8, 3.8e-4, 1.2}};
    static const struct left all[] = {
        {8, {0}, 1, 0.14, 1.05}, {8, {0}, 4, 1.2e-3, 1.05}, {16, {0}, 4, 2.5e-3, 1.05}, {16, {0}, 8, 2.5e-5, 1.1}};
    static const struct left ring[] = {{16, {0}, 1, 0.29, 1.05}, {16, {0}, 12, 3.9e-2, 1.05}};
    check_left(&strategy_one_peer, one_peer, sizeof one_peer / sizeof one_peer[0]);
    check_left(&strategy_exponential, all, sizeof all / sizeof all[0]);
    check_left(&strategy_ring, ring, sizeof ring / sizeof ring[0]);
}

static void moshpit_mixes(void)
{
    static const struct left t[] = {
        {16, {4, 2}, 1, 0.2, 1.05}, {16, {4, 2}, 2, 0, 1}, {8, {2, 3}, 1, 0.43, 1.05}, {8, {2, 3}, 2, 0.14, 1.05},
        {8, {2, 3}, 3, 0, 1}, {9, {3, 2}, 2, 0, 1}, {12, {4, 2}, 1, 0.27, 1.05}, {12, {4, 2}, 2, 0, 1},
        {15, {4, 2}, 1, 0.22, 1.05}, {15, {4, 2}, 2, 4.5e-3, 1.1}, {15, {4, 2}, 3, 2.8e-4, 1.1}, {15, {4, 2}, 4, 1.8e-5, 1.1},
        {15, {4, 2}, 6, 7e-8, 1.1}, {16, {8, 2}, 1, 0.2, 1.05}, {4, {0}, 1, 0, 1}, {3, {0}, 1, 0, 1}, {2, {0}, 1, 0, 1}, {8, {0}, 2, 0, 1}, {12, {3}, 3, 0, 1}};
    check_left(&strategy_moshpit, t, sizeof t / sizeof t[0]);
}

/* Of strategies that draw: the mean of many rounds. */
static double left_of_random(const struct strategy *s, uint16_t number, uint32_t n, uint32_t rounds)
{
    const uint16_t numbers[2] = {number, 0};
    double sum = 0;
    for (uint32_t i = 0; i < 200; i++)
        sum += left_after(s, numbers, n, 1 + i * rounds, rounds);
    return sum / 200;
}

static void crossover_mixes(void)
{
    static const double left[] = {0.43, 0.18, 7.9e-2, 3.4e-2, 1.4e-2, 6.2e-3};
    for (uint32_t r = 0; r < 6; r++)
        CHECK_NEAR(left_of_random(&strategy_crossover, 16, 8, r + 1), left[r], 0.2 * left[r]);
}

/* ((r - 1) / n + r / n^2)^t of r groups. */
static void random_groups_mix(void)
{
    for (uint32_t t = 1; t <= 4; t++) {
        double formula = pow(3.0 / 16 + 4.0 / 256, t);
        CHECK_NEAR(left_of_random(&strategy_random, 4, 16, t), formula, 0.2 * formula);
    }
}

/* Two rounds leave the part of the difference between groups that one member of M does not bring home. */
static void hierarchies_mix(void)
{
    static const struct left t[] = {{8, {4}, 1, 1.0 / 7, 1.01}, {8, {4}, 3, 9.0 / 16 / 7, 1.01}, {8, {4}, 7, 0.0254, 1.01},
                                    {4, {0}, 1, 0, 1}, {6, {2}, 1, 2.0 / 5, 1.01}};
    check_left(&strategy_hierarchical, t, sizeof t / sizeof t[0]);
}

/* Of the list that it is given: who is not in the view has no edges, and of two that have more or fewer neighbours
 * both go by the more. */
static void graph_goes_by_its_list(void)
{
    static mixing_matrix w;
    struct edge_list edges;
    struct group view;
    uint32_t degree[2][NODES_MAX] = {{0}};
    bool linked[NODES_MAX][NODES_MAX] = {{false}};
    fill(&view, NODES_MAX, 7);
    group_seal(&view);
    REQUIRE(any_edges(&edges, 3));
    for (uint32_t i = 0; i < edges.n; i++) {
        int a = group_rank(&view, edges.arc[i].from), b = group_rank(&view, edges.arc[i].to);
        linked[a][b] = true;
        degree[0][a]++;
        degree[1][a] += b < 12;
    }
    given = &edges;
    for (int less = 0; less < 2; less++) { /* the last four do not contribute */
        weights(&strategy_graph, usual, NODES_MAX, less ? 12 : NODES_MAX, 5, 0, w);
        for (uint32_t i = 0; i < (less ? 12u : NODES_MAX); i++)
            for (uint32_t j = 0; j < (less ? 12u : NODES_MAX); j++) {
                uint32_t more = degree[less][i] > degree[less][j] ? degree[less][i] : degree[less][j];
                CHECK(i == j || fabs(w[i][j] - (linked[i][j] ? 1.0 / (1 + more) : 0)) < 1e-12);
            }
    }
    given = NULL;
    edge_list_free(&edges);
}

/* Each node sends and takes each segment once, and of no neighbour more than its share: with one of 8 nodes frozen the
 * others miss a seventh. */
static void crossover_is_even(void)
{
    static const uint16_t numbers[2] = {64};
    static struct plan plan;
    struct group view;
    fill(&view, 8, test_seed());
    group_seal(&view);
    for (uint64_t round = 1; round <= 50; round++)
        for (uint32_t i = 0; i < 8; i++) {
            uint64_t in = 0, out = 0, twice = 0;
            bool share = strategy_plan(&strategy_crossover, numbers, NULL, view.members, 8, view.members[i].node_id, round, &plan);
            for (uint32_t k = 0; k < plan.group.n; k++) {
                const struct edge *e = &plan.edge[k];
                twice |= (in & e->in) | (out & e->out);
                in |= e->in;
                out |= e->out;
                share &= plan.group.members[k].node_id == view.members[i].node_id ||
                         (__builtin_popcountll(e->in) >= 9 && __builtin_popcountll(e->in) <= 10);
            }
            CHECK(in == ALL_SEGMENTS && out == ALL_SEGMENTS && !twice && share);
        }
}

/* A torus of n nodes, and what it is where they do not fill rows. */
static void torus_has_rows(void)
{
    static const struct left t[] = {
        {16, {0}, 1, 2.2 / 15, 1.01}, {16, {4}, 4, 5.6e-3, 1.01}, {9, {3}, 1, 0.1, 1.01}, {4, {2}, 1, 1.0 / 9, 1.01}, {2, {0}, 1, 0, 1}, {3, {0}, 1, 0, 1}};
    check_left(&strategy_torus, t, sizeof t / sizeof t[0]);
    CHECK_NEAR(left_after(&strategy_torus, (uint16_t[]){5, 0}, 7, 1, 3), left_after(&strategy_ring, usual, 7, 1, 3), 1e-12);
}

/* A joiner takes all of one contributor's values, or the result of its group, and gives none; the others do as
 * if it were not there. */
static void joiners_only_take(void)
{
    static mixing_matrix w, without;
    for (int id = 2; strategy_by_id(id); id++) {
        weights(strategy_by_id(id), usual, 9, 7, 5, 0, w);
        weights(strategy_by_id(id), usual, 7, 7, 5, 0, without);
        for (uint32_t i = 0; i < 9; i++) {
            double most = 0, sum = 0;
            for (uint32_t j = 0; j < 7; j++) {
                most = fmax(most, w[i][j]);
                sum += w[i][j];
            }
            CHECK(fabs(sum - 1) < 1e-12);
            CHECK(i < 7 || !strategy_by_id(id)->edges || most == 1);
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

static void a_backup_owns_what_its_owner_leaves(void)
{
    static uint8_t owner[RUNS], backup[RUNS], after[RUNS];
    struct group g;
    bool next = true;
    fill(&g, 8, test_seed());
    group_seal(&g);
    g.members[2].contributes = 0;
    owners_assign(&g, 5, RUNS, owner);
    backups_assign(&g, 5, RUNS, owner, backup);
    g.members[3].contributes = 0;
    owners_assign(&g, 5, RUNS, after);
    for (uint32_t r = 0; r < RUNS; r++)
        next = next && backup[r] != owner[r] && backup[r] != 2 && after[r] == (owner[r] == 3 ? backup[r] : owner[r]);
    CHECK(next);
}

static void nobody_contributes(void)
{
    uint8_t owner[2] = {0, 0}, backup[2] = {OWNER_NONE, OWNER_NONE};
    struct group g;
    fill(&g, 2, test_seed());
    g.members[0].contributes = g.members[1].contributes = 0;
    group_seal(&g);
    owners_assign(&g, 1, 2, owner);
    CHECK(owner[0] == OWNER_NONE && owner[1] == OWNER_NONE);
    g.members[0].contributes = 1; /* alone: there is nobody to stand in */
    owners_assign(&g, 1, 2, owner);
    backups_assign(&g, 1, 2, owner, backup);
    CHECK(owner[0] == 0 && backup[0] == OWNER_NONE && backup[1] == OWNER_NONE);
}

TEST_SUITE(strategy) = {
    TEST(seal_sorts_and_hashes),
    TEST(all_are_in_the_table),
    TEST(rps_takes_the_view),
    TEST(all_keep_the_mean),
    TEST(one_peer_is_exact_of_powers_of_two),
    TEST(exponential_mixes),
    TEST(moshpit_mixes),
    TEST(crossover_mixes),
    TEST(crossover_is_even),
    TEST(random_groups_mix),
    TEST(torus_has_rows),
    TEST(graph_goes_by_its_list),
    TEST(hierarchies_mix),
    TEST(joiners_only_take),
    TEST(owners_follow_the_protocol),
    TEST(owners_are_balanced_and_move_with_the_round),
    TEST(a_lost_member_moves_only_its_runs),
    TEST(a_backup_owns_what_its_owner_leaves),
    TEST(nobody_contributes),
    TEST_END,
};
