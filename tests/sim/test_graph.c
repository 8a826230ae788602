/* Gossip along given edges. */
#include "base/rng.h"
#include "helpers.h"
#include "strategy/edge_list.h"
#include <math.h>

#define ELEMENTS (288 * 20 + 100)

static const uint64_t counts[] = {ELEMENTS};
/* A cube: of its matrix I / 4 + A / 4 the second largest eigenvalue is 1 / 2, three times. */
static const char cube[] = "1 2\n2 3\n3 4\n4 1\n5 6\n6 7\n7 8\n8 5\n1 5\n2 6\n3 7\n4 8\n";
static double mean[ELEMENTS];

static uint64_t said_beyond; /* members that the last warning says no way leads to */
static unsigned warnings;

static void note(void *arg, log_level level, log_fault fault, const char *event, const log_field *fields, int n)
{
    (void)arg, (void)fault, (void)n;
    if (strcmp(event, "graph-apart") != 0 && strcmp(event, "graph-whole") != 0)
        return;
    warnings += level == LOG_WARN;
    said_beyond = fields[2].u;
}

static bool parsed(struct edge_list *l, const char *text)
{
    struct edge_fault f;
    return edge_list_parse(l, text, strlen(text), &f);
}

static double moved(cluster *c)
{
    double most = 0;
    for (uint64_t k = 0; k < ELEMENTS; k++)
        most = fmax(most, fabs(mean_at(c, k) - mean[k]));
    return most;
}

/* New values, and their variance. */
static double draw(cluster *c, uint64_t seed)
{
    sleet_rng rng = {seed};
    fill_grid(c, &rng);
    for (uint64_t k = 0; k < ELEMENTS; k++)
        mean[k] = mean_at(c, k);
    return variance_between(c);
}

static bool joined(cluster *c)
{
    bool all = true;
    for (uint32_t i = 0; i < nodes_of(c); i++)
        all &= cluster_report(c, i)->reported && !(cluster_report(c, i)->report.flags & SLEET_JOINING);
    return all;
}

static cluster *set_up(const struct edge_list *l, uint32_t nodes, sleet_strategy strategy)
{
    struct sim_config config = {.nodes = nodes, .seed = test_seed(), .link = CLEAN_LINK, .edges = l, .go_on_isolated = true, .log = {.emit = note},
                                .kind = {.payload = SLEET_MODEL, .strategy = strategy}};
    cluster *c = cluster_new(&config, counts, 1);
    for (int round = 0; c && round < 8 && (round == 0 || !joined(c)); round++) {
        cluster_idle(c, SEC(4));
        cluster_round(c, NULL);
    }
    cluster_idle(c, MS(200));
    return c;
}

static bool rounds(cluster *c, int n)
{
    bool all = true;
    for (int i = 0; i < n; i++)
        all &= cluster_round(c, NULL);
    return all;
}

/* What is left of the variance falls by the square of the second largest eigenvalue a round. */
static void consensus_decays_by_the_gap(void)
{
    struct edge_list l;
    REQUIRE(parsed(&l, cube));
    cluster *c = set_up(&l, 8, SLEET_GRAPH);
    REQUIRE(c);
    double before = draw(c, test_seed());
    CHECK(rounds(c, 1));
    CHECK_NEAR(variance_between(c) / before, 1.0 / 7, 0.02); /* 4 of 7 squares: (3 + 1) / 4 */
    for (int i = 0; i < 6; i++) {
        double last = variance_between(c);
        CHECK(rounds(c, 1));
        CHECK_NEAR(variance_between(c) / last, 0.25, 0.01);
    }
    CHECK(moved(c) < 1e-6);
    CHECK_EQ(cluster_report(c, 0)->report.group_size, 4);
    CHECK_EQ(cluster_report(c, 0)->report.expected, 4);
    CHECK(ledger_balances(c));
    cluster_free(c);
    edge_list_free(&l);
}

/* At a loss of a tenth it comes as far, and the mean of all stays what it was. */
static void loss_leaves_the_mean(void)
{
    struct edge_list l;
    REQUIRE(parsed(&l, cube));
    cluster *c = set_up(&l, 8, SLEET_GRAPH);
    REQUIRE(c);
    struct sim_link lossy = {.delay = US(200), .loss = 0.1};
    double before = draw(c, test_seed());
    sim_set_link(cluster_sim(c), SIM_ALL, SIM_ALL, &lossy);
    CHECK(rounds(c, 8));
    CHECK(variance_between(c) < 4.0 / 7 * pow(0.25, 8) * 30 * before); /* what one round lacks of a fragment in a hundred weighs */
    sim_set_link(cluster_sim(c), SIM_ALL, SIM_ALL, &CLEAN_LINK);
    cluster_idle(c, MS(200)); /* what is in doubt is decided, and goes into the next result */
    CHECK(rounds(c, 2));
    CHECK(moved(c) < 1e-6);
    cluster_free(c);
    edge_list_free(&l);
}

/* Who has died has no edges: the others go on with those that they have left, and no less each. */
static void who_has_died_is_left_out(void)
{
    struct edge_list l;
    REQUIRE(parsed(&l, cube));
    cluster *c = set_up(&l, 8, SLEET_GRAPH);
    REQUIRE(c);
    sim_kill(cluster_sim(c), 6);
    cluster_idle(c, SEC(15));
    CHECK(rounds(c, 3));
    sleet_rng rng = {test_seed()};
    fill_grid(c, &rng);
    double sum[2] = {0}, apart = 0;
    for (int k = 0; k < 2; k++) {
        CHECK(rounds(c, k ? 25 : 0));
        for (uint32_t i = 0; i < 8; i++)
            sum[k] += i == 6 ? 0 : (double)cluster_values(c, i)[17];
    }
    for (uint32_t i = 0; i < 8; i++)
        apart = fmax(apart, i == 6 ? 0 : fabs((double)cluster_values(c, i)[17] - sum[1] / 7));
    CHECK_NEAR(sum[0], sum[1], 1e-5);
    CHECK(apart < 1e-5);
    CHECK_EQ(cluster_report(c, 5)->report.group_size, 3); /* of node 6, next to node 7: itself, nodes 2 and 5 */
    CHECK_EQ(cluster_report(c, 0)->report.group_size, 4);
    CHECK_EQ(cluster_report(c, 0)->report.coverage, 1.0);
    cluster_free(c);
    edge_list_free(&l);
}

/* Of a path the second of five dies: the first has nobody left, the others go on, and each says once how many it does not
 * reach, until it is back. */
static void who_is_cut_off_is_told(void)
{
    struct edge_list l;
    REQUIRE(parsed(&l, "1 2\n2 3\n3 4\n4 5\n"));
    cluster *c = set_up(&l, 5, SLEET_GRAPH);
    REQUIRE(c);
    warnings = 0;
    sim_kill(cluster_sim(c), 1);
    cluster_idle(c, SEC(15));
    for (int i = 0; i < 4; i++) {
        cluster_round(c, NULL);
        cluster_idle(c, SEC(2));
    }
    CHECK_EQ(warnings, 4);
    CHECK(said_beyond == 1 || said_beyond == 3);
    CHECK(sim_restart(cluster_sim(c), 1));
    CHECK_EQ(cluster_register(c, 1), 0);
    for (int i = 0; i < 8; i++) {
        cluster_round(c, NULL);
        cluster_idle(c, SEC(2));
    }
    CHECK_EQ(said_beyond, 0);
    cluster_free(c);
    edge_list_free(&l);
}

/* A running job goes over to it; one without a list says so. */
static void a_job_goes_over_to_it(void)
{
    struct edge_list l;
    const char *why = NULL;
    REQUIRE(parsed(&l, "1 2\n2 3\n3 4\n"));
    cluster *c = set_up(&l, 4, SLEET_RPS);
    REQUIRE(c);
    CHECK_EQ(engine_set_strategy(sim_engine(cluster_sim(c), 1), cluster_set(c, 1), "graph:1,2", &why, sim_now(cluster_sim(c))), SLEET_EINVAL);
    CHECK(why && strstr(why, "another list"));
    CHECK_EQ(engine_set_strategy(sim_engine(cluster_sim(c), 1), cluster_set(c, 1), "graph", &why, sim_now(cluster_sim(c))), 0);
    sim_kick(cluster_sim(c), 1);
    CHECK(rounds(c, 14));
    for (uint32_t i = 0; i < 4; i++)
        CHECK_EQ(cluster_report(c, i)->report.group_size, i == 0 || i == 3 ? 2 : 3);
    cluster_free(c);
    c = set_up(NULL, 4, SLEET_RPS);
    REQUIRE(c);
    CHECK_EQ(engine_set_strategy(sim_engine(cluster_sim(c), 1), cluster_set(c, 1), "graph", &why, sim_now(cluster_sim(c))), SLEET_EINVAL);
    CHECK(why && strstr(why, "job.edges"));
    cluster_free(c);
    edge_list_free(&l);
}

TEST_SUITE(graph) = {
    TEST(consensus_decays_by_the_gap),
    TEST(loss_leaves_the_mean),
    TEST(who_has_died_is_left_out),
    TEST(who_is_cut_off_is_told),
    TEST(a_job_goes_over_to_it),
    TEST_END,
};
