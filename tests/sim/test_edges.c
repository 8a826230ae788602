/* Rounds among neighbours: no owners, each node makes its own result. */
#include "base/rng.h"
#include "helpers.h"
#include <math.h>
#include <stdlib.h>

static const uint64_t counts[] = {20 * 288 + 100};

static cluster *set_up_with(sleet_strategy strategy, uint32_t nodes, double loss, uint64_t seed)
{
    struct sim_config config = {.nodes = nodes, .seed = seed, .link = CLEAN_LINK,
                                .kind = {.payload = SLEET_MODEL, .strategy = strategy}};
    sleet_rng rng = {test_seed()};
    cluster *c = cluster_new(&config, counts, 1);
    bool all = false;
    for (int round = 0; c && round < 3 && !all; round++) { /* all come to have the founder's model */
        cluster_idle(c, SEC(4));
        all = cluster_round(c, NULL);
        for (uint32_t i = 0; i < nodes; i++)
            all &= !(cluster_report(c, i)->report.flags & SLEET_JOINING);
    }
    if (!all) {
        cluster_free(c);
        return NULL;
    }
    cluster_idle(c, MS(200));
    config.link.loss = loss;
    sim_set_link(cluster_sim(c), SIM_ALL, SIM_ALL, &config.link);
    fill_grid(c, &rng);
    return c;
}

static cluster *set_up(sleet_strategy strategy, uint32_t nodes, double loss)
{
    return set_up_with(strategy, nodes, loss, test_seed());
}

/* The largest change of an element's mean. */
static double moved(cluster *c, const double *mean)
{
    double most = 0;
    for (uint64_t k = 0; k < counts[0]; k++)
        most = fmax(most, fabs(mean_at(c, k) - mean[k]));
    return most;
}

static void note_means(cluster *c, double *mean)
{
    for (uint64_t k = 0; k < counts[0]; k++)
        mean[k] = mean_at(c, k);
}

static bool rounds(cluster *c, int n)
{
    bool all = true;
    for (int i = 0; i < n; i++)
        all &= cluster_round(c, NULL);
    return all;
}

static double coverage(cluster *c)
{
    double least = 1;
    for (uint32_t i = 0; i < nodes_of(c); i++)
        least = fmin(least, cluster_report(c, i)->report.coverage);
    return least;
}

static void one_peer_is_exact_after_log2_rounds(void)
{
    static double mean[20 * 288 + 100];
    cluster *c = set_up(SLEET_ONE_PEER, 8, 0);
    REQUIRE(c);
    double before = variance_between(c);
    note_means(c, mean);
    CHECK(rounds(c, 2));
    CHECK(variance_between(c) > 0.05 * before);
    CHECK(cluster_report(c, 3)->report.group_size <= 3); /* itself, one that sends to it, one that it sends to */
    CHECK(rounds(c, 1));
    CHECK(variance_between(c) < 1e-12 * before);
    CHECK(moved(c, mean) < 1e-6);
    CHECK_EQ(coverage(c), 1.0);
    CHECK_EQ(cluster_report(c, 3)->report.expected, 2);
    cluster_free(c);
}

/* Lost fragments are asked for again while the round is open. */
static void what_is_lost_comes_again(void)
{
    static double mean[20 * 288 + 100];
    cluster *c = set_up(SLEET_EXPONENTIAL, 6, 0.1);
    REQUIRE(c);
    double before = variance_between(c), least = 1;
    note_means(c, mean);
    for (int i = 0; i < 8; i++) {
        CHECK(rounds(c, 1));
        least = fmin(least, coverage(c));
    }
    CHECK(least > 0.9);
    CHECK(variance_between(c) < 1e-3 * before);
    CHECK(moved(c, mean) < 2e-3);
    cluster_free(c);
}

/* Of pairs both take a fragment or neither: the mean stays, whatever is lost. */
static void pairs_keep_the_mean_under_loss(void)
{
    static const sleet_strategy all[] = {SLEET_PAIRS, SLEET_RING};
    static double mean[20 * 288 + 100];
    for (int k = 0; k < 2; k++) {
        cluster *c = set_up(all[k], 7, 0.2);
        REQUIRE(c);
        double before = variance_between(c);
        note_means(c, mean);
        CHECK(rounds(c, 30));
        sim_set_link(cluster_sim(c), SIM_ALL, SIM_ALL, &CLEAN_LINK);
        cluster_idle(c, MS(200)); /* what is in doubt is decided, and goes into the next result */
        CHECK(rounds(c, 2));
        CHECK(moved(c, mean) < 1e-6);
        CHECK(variance_between(c) < 0.5 * before);
        cluster_free(c);
    }
}

/* A neighbour that is frozen holds nobody up beyond a deadline, and what it took is taken back into account. */
static void a_frozen_neighbour_holds_nobody_up(void)
{
    cluster *c = set_up(SLEET_PAIRS, 6, 0.05);
    REQUIRE(c);
    double before = variance_between(c);
    CHECK(rounds(c, 2));
    sim_freeze(cluster_sim(c), 2, true);
    for (int i = 0; i < 12; i++)
        CHECK(cluster_round(c, NULL));
    CHECK_EQ(cluster_overdue(c), 0);
    sim_freeze(cluster_sim(c), 2, false);
    cluster_idle(c, SEC(2));
    CHECK(rounds(c, 25));
    CHECK(variance_between(c) < 0.01 * before);
    cluster_free(c);
}

/* A node that comes back has lost its model: it takes one neighbour's, and goes on with the others. */
static void a_joiner_takes_a_neighbours_model(void)
{
    cluster *c = set_up(SLEET_ONE_PEER, 5, 0.05);
    REQUIRE(c);
    CHECK(rounds(c, 12));
    double near = variance_between(c);
    CHECK(sim_restart(cluster_sim(c), 4));
    CHECK_EQ(cluster_register(c, 4), 0);
    for (uint64_t k = 0; k < counts[0]; k++)
        cluster_values(c, 4)[k] = 100;
    bool joined = false;
    for (int i = 0; i < 12 && !joined; i++) {
        CHECK(cluster_round(c, NULL));
        cluster_idle(c, SEC(1));
        joined = i > 0 && !(cluster_report(c, 4)->report.flags & (SLEET_JOINING | SLEET_ALONE));
    }
    CHECK(joined);
    CHECK(rounds(c, 10));
    CHECK(variance_between(c) < near + 1e-4);
    cluster_free(c);
}

/* Trainers that go on as soon as a round is over, one of them after some work. */
struct going {
    cluster *c;
    sleet_round_options options;
    uint64_t skipped, rounds[12];
    uint64_t lacking; /* rounds in which not all came that was to come */
    int64_t longest;  /* ns */
    bool uneven;      /* a step in ten takes as long as ten rounds */
    sleet_rng rng;
};

struct goer {
    struct going *all;
    uint32_t node;
};

static void go_on(sim *s, void *arg)
{
    struct goer *g = arg;
    CHECK_EQ(cluster_start(g->all->c, g->node, &g->all->options), 0);
    sim_kick(s, g->node);
}

static void reported(cluster *c, uint32_t node, void *arg)
{
    struct goer *g = arg;
    const struct cluster_report *r = cluster_report(c, node);
    g->all->skipped += r->report.skipped;
    g->all->longest = r->report.elapsed_ns > g->all->longest ? r->report.elapsed_ns : g->all->longest;
    g->all->rounds[node] += r->report.round != 0; /* else it is ahead of the others */
    g->all->lacking += r->report.round != 0 && r->report.coverage < 1;
    sleet_duration step = node == 3 ? MS(5) : MS(1);
    if (g->all->uneven)
        step = rng_below(&g->all->rng, 10) ? MS(1) : MS(40);
    sim_at(cluster_sim(c), time_add(sim_now(cluster_sim(c)), step), go_on, &g[node]);
}

static struct going go_through(cluster *c, bool exact, bool uneven)
{
    struct going all = {.c = c, .options = {.exact = exact}, .uneven = uneven, .rng = {test_seed()}};
    struct goer g[12];
    cluster_on_report(c, reported, g);
    for (uint32_t i = 0; i < nodes_of(c); i++) {
        g[i] = (struct goer){&all, i};
        go_on(cluster_sim(c), &g[i]);
    }
    cluster_idle(c, SEC(4));
    cluster_on_report(c, NULL, NULL);
    for (uint32_t i = 0; i < nodes_of(c); i++)
        CHECK(all.rounds[i] > (uneven ? 20 : 40));
    return all;
}

/* Its neighbours wait for it; the others, who did not need it for a round or two, are no reason to leave them. */
static uint64_t skipped_by_all(cluster *c)
{
    return go_through(c, false, false).skipped;
}

/* While members join one after the other their lists differ: neighbours by one alone, or with other weights, are
 * no reason to wait for the deadline of an exact round, which is 30 s. */
static void lists_that_differ_hold_nobody_up(void)
{
    static const sleet_strategy all[] = {SLEET_ONE_PEER, SLEET_RING, SLEET_PAIRS};
    for (uint64_t seed = 0; seed < 6; seed++) {
        struct sim_config config = {.nodes = 5, .seed = test_seed() + seed, .link = {.delay = US(50), .jitter = US(50), .loss = 0.1},
                                    .kind = {.payload = SLEET_MODEL, .strategy = all[seed % 3]}};
        cluster *c = cluster_new(&config, counts, 1);
        REQUIRE(c);
        cluster_idle(c, SEC(1));
        CHECK(go_through(c, true, false).longest < SEC(5));
        cluster_free(c);
    }
}

static void a_slow_node_misses_no_round(void)
{
    const char *why;
    cluster *c = set_up(SLEET_ONE_PEER, 8, 0);
    REQUIRE(c);
    CHECK_EQ(skipped_by_all(c), 0);
    cluster_free(c);
    c = set_up(SLEET_RPS, 8, 0); /* nor where the job has gone over to the strategy */
    REQUIRE(c);
    CHECK_EQ(engine_set_strategy(sim_engine(cluster_sim(c), 0), cluster_set(c, 0), "one-peer", &why, sim_now(cluster_sim(c))), 0);
    sim_kick(cluster_sim(c), 0);
    CHECK(rounds(c, 12));
    CHECK(cluster_report(c, 0)->report.group_size <= 3);
    CHECK_EQ(skipped_by_all(c), 0);
    cluster_free(c);
}

/* Steps of uneven length: some are ahead of others by more rounds than the window has.  Whoever is behind comes to all
 * of its rounds, and whoever is ahead waits where the two are to meet: nothing is missing, but of one who is taken for dead for a
 * moment, in thousands of rounds. */
static void uneven_steps_cost_no_exchange(void)
{
    static const sleet_strategy all[] = {SLEET_PAIRS, SLEET_ONE_PEER, SLEET_RING, SLEET_MOSHPIT};
    uint64_t lacking = 0;
    for (int k = 0; k < 4; k++)
        for (uint64_t seed = 0; seed < (k ? 1 : test_repeats(10)); seed++) {
            struct going g;
            cluster *c = set_up_with(all[k], 12, 0.1, test_seed() + seed);
            REQUIRE(c);
            g = go_through(c, true, true);
            CHECK_EQ(g.skipped, 0);
            lacking += g.lacking;
            cluster_free(c);
        }
    if (!CHECK(lacking <= 2))
        printf("%" PRIu64 " of all rounds lack something\n", lacking);
}

TEST_SUITE(edges) = {
    TEST(one_peer_is_exact_after_log2_rounds),
    TEST(what_is_lost_comes_again),
    TEST(pairs_keep_the_mean_under_loss),
    TEST(a_frozen_neighbour_holds_nobody_up),
    TEST(a_joiner_takes_a_neighbours_model),
    TEST(a_slow_node_misses_no_round),
    TEST(uneven_steps_cost_no_exchange),
    TEST(lists_that_differ_hold_nobody_up),
    TEST_END,
};
