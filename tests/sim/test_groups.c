/* Members that pinned different groups: less coverage, never a wrong value. */
#include "helpers.h"
#include <math.h>

static const uint64_t counts[] = {20000, 300};
#define TENSORS 2
#define NODES_MAX 6
#define ROUNDS 20

static void cut_pair(sim *s, uint32_t a, uint32_t b, bool down)
{
    struct sim_link link = CLEAN_LINK;
    link.down = down;
    sim_set_link(s, a, b, &link);
    sim_set_link(s, b, a, &link);
}

/* Node i holds 2^i everywhere, so a mean names its contributors. */
static void fill_powers(cluster *c)
{
    for (uint32_t i = 0; i < nodes_of(c); i++)
        for (uint64_t k = 0; k < cluster_elements(c); k++)
            cluster_values(c, i)[k] = (float)(1u << i);
}

/* Contributors of a value: the set whose mean it is; 0 when it is no mean of any. */
static uint32_t contributors(float value, uint32_t nodes)
{
    for (uint32_t set = 1; set < 1u << nodes; set++) {
        double n = (double)__builtin_popcount(set);
        if (fabs((double)value * n - (double)set) < 1e-4 * (double)set)
            return set;
    }
    return 0;
}

/* Each value is the mean of a set of nodes, each once: that is all the coverage said. */
static void check_means(cluster *c)
{
    for (uint32_t i = 0; i < nodes_of(c); i++) {
        const struct cluster_report *r = cluster_report(c, i);
        double present = 0;
        float last = 0;
        uint32_t set = 0;
        uint64_t wrong = 0;
        if (!r->started || r->error != SLEET_OK)
            continue;
        for (uint64_t k = 0; k < cluster_elements(c); k++) {
            float value = cluster_values(c, i)[k];
            if (k == 0 || value != last) /* neighbours mostly share a fragment */
                set = contributors(value, nodes_of(c));
            last = value;
            wrong += set == 0;
            present += (double)__builtin_popcount(set);
        }
        CHECK_EQ(wrong, 0);
        if (!(r->report.flags & SLEET_JOINING)) {
            double coverage = present / (double)cluster_elements(c) / (double)r->report.expected;
            CHECK(fabs((coverage < 1 ? coverage : 1) - r->report.coverage) < 1e-6);
        }
    }
}

/* What is told of the last round: each element once, as the report said, and node 1's state. */
static void check_explanation(cluster *c, uint32_t node, enum engine_lane_state state)
{
    static engine_explanation x;
    const sleet_report *r = &cluster_report(c, node)->report;
    double present = 0;
    uint64_t elements = 0;
    int at = -1;
    REQUIRE(engine_explain(sim_engine(cluster_sim(c), node), cluster_set(c, node), r->round, &x));
    CHECK(x.joined && x.closed && x.other_elements == 0);
    for (uint32_t i = 0; i < x.classes; i++) {
        elements += x.class[i].elements;
        present += (double)x.class[i].elements * __builtin_popcountll(x.class[i].contributors);
    }
    CHECK_EQ(elements, cluster_elements(c));
    CHECK(fabs(present / (double)elements / x.expected - r->coverage) < 1e-6);
    for (uint32_t i = 0; i < x.lanes; i++)
        if (x.people[i] == 2)
            at = (int)i;
    CHECK(at < 0 ? state == LANE_SILENT : x.lane[at].state == state);
    CHECK(!engine_explain(sim_engine(cluster_sim(c), node), cluster_set(c, node), r->round + 9, &x));
}

/* Nodes 0 and 1 do not hear each other: four nodes use three groups.  The others still
 * get everything, those two all but what the other reduces alone. */
static void a_dead_link_costs_only_its_ends(void)
{
    struct sim_config config = {.nodes = 4, .seed = test_seed(), .link = CLEAN_LINK};
    cluster *c = ready_cluster(&config, counts, TENSORS);
    REQUIRE(c);
    cut_pair(cluster_sim(c), 0, 1, true);
    double mean[4] = {0};
    for (int round = 0; round < ROUNDS; round++) {
        fill_powers(c);
        CHECK(cluster_round(c, NULL));
        check_means(c);
        cluster_idle(c, MS(200));
        for (uint32_t i = 0; i < 4; i++) {
            CHECK_EQ(cluster_report(c, i)->report.expected, 4);
            CHECK(!(cluster_report(c, i)->report.flags & SLEET_DEADLINE));
            mean[i] += cluster_report(c, i)->report.coverage / ROUNDS;
        }
    }
    for (uint32_t i = 0; i < 4; i++)
        CHECK(mean[i] >= (i < 2 ? 0.7 : 0.96));
    check_explanation(c, 0, LANE_SILENT);
    check_explanation(c, 2, LANE_OTHER_GROUP);
    CHECK(ledger_balances(c)); /* no overlap among other things */
    cluster_free(c);
}

/* Links between pairs fail and heal, nodes die and return, and packets get lost. */
static void churn_never_counts_twice(void)
{
    for (unsigned run = 0; run < test_repeats(10); run++) {
        sleet_rng rng = {test_seed() * 1000 + run};
        struct sim_config config = {.nodes = 3 + rng_below(&rng, NODES_MAX - 2),
                                    .seed = test_seed() + run,
                                    .link = {.delay = US(300), .loss = 0.05, .reorder = 0.1,
                                             .reorder_delay = US(500)}};
        cluster *c = ready_cluster(&config, counts, TENSORS);
        REQUIRE(c);
        sim *s = cluster_sim(c);
        sleet_round_options options = {.deadline_ns = MS(400)};
        for (int round = 0; round < 25; round++) {
            uint32_t a = rng_below(&rng, config.nodes), b = rng_below(&rng, config.nodes);
            if (a != b && rng_below(&rng, 2))
                cut_pair(s, a, b, rng_below(&rng, 2) == 0);
            else if (rng_below(&rng, 8) == 0 && sim_restart(s, a))
                CHECK_EQ(cluster_register(c, a), SLEET_OK);
            fill_powers(c);
            CHECK(cluster_round(c, &options));
            check_means(c);
            cluster_idle(c, MS(rng_below(&rng, 400)));
        }
        CHECK(ledger_balances(c));
        CHECK_EQ(cluster_overdue(c), 0);
        cluster_free(c);
    }
}

/* A round of several groups that is over costs nothing more. */
static void nobody_talks_of_it_for_ever(void)
{
    struct sim_config config = {.nodes = 6, .seed = test_seed(), .link = CLEAN_LINK};
    sleet_round_options options = {.deadline_ns = MS(300)};
    struct sim_totals before, after;
    cluster *c = ready_cluster(&config, counts, TENSORS);
    REQUIRE(c);
    cut_pair(cluster_sim(c), 0, 1, true);
    for (int i = 0; i < 6; i++) {
        sim_get_totals(cluster_sim(c), &before);
        CHECK(cluster_round(c, &options));
        cluster_idle(c, SEC(1));
        sim_get_totals(cluster_sim(c), &after);
        CHECK(after.sent - before.sent < 5000);
    }
    cluster_free(c);
}

TEST_SUITE(groups) = {
    TEST(nobody_talks_of_it_for_ever),
    TEST(a_dead_link_costs_only_its_ends),
    TEST(churn_never_counts_twice),
    TEST_END,
};
