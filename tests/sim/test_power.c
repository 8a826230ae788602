/* PowerGossip: differences of low rank over the edges of a ring. */
#include "base/rng.h"
#include "helpers.h"
#include <math.h>
#include <stdlib.h>

#define ROWS 16
#define COLS 8
#define NODES 8
#define BIG (60 * 50 + 700)

static const uint64_t counts[] = {ROWS * COLS}, big_counts[] = {700, 60 * 50};
static const uint32_t rows[] = {ROWS}, big_rows[] = {0, 60};

static bool rounds(cluster *c, int n)
{
    bool all = true;
    for (int i = 0; i < n; i++)
        all &= cluster_round(c, NULL);
    return all;
}

/* All have the founder's model, then each its own. */
static cluster *set_up(struct sim_config config, const uint64_t *tensors, uint32_t n, uint16_t rank)
{
    struct sim_link link = config.link;
    config.link = CLEAN_LINK;
    config.nodes = NODES;
    config.seed = test_seed();
    config.kind = (struct set_kind){.payload = SLEET_MODEL, .strategy = SLEET_RING, .numbers = {rank}};
    cluster *c = cluster_new(&config, tensors, n);
    bool all = false;
    for (int round = 0; c && round < 3 && !all; round++) {
        cluster_idle(c, SEC(4));
        all = cluster_round(c, NULL);
        for (uint32_t i = 0; i < NODES; i++)
            all &= !(cluster_report(c, i)->report.flags & SLEET_JOINING);
    }
    if (!all) {
        cluster_free(c);
        return NULL;
    }
    cluster_idle(c, MS(200));
    sim_set_link(cluster_sim(c), SIM_ALL, SIM_ALL, &link);
    return c;
}

static void fill(cluster *c, bool low)
{
    sleet_rng rng = {test_seed()};
    double left[ROWS], right[COLS];
    for (int i = 0; i < ROWS; i++)
        left[i] = rng_below(&rng, 2) ? 1 : -1;
    for (int j = 0; j < COLS; j++)
        right[j] = rng_below(&rng, 2) ? 1 : -1;
    for (uint32_t n = 0; n < NODES; n++) {
        static const double parts[NODES] = {0.5, -0.2, 0.1, -0.5, 0.3, -0.4, 0.2, 0};
        double much = parts[n];
        for (uint64_t k = 0; k < cluster_elements(c); k++) {
            double noise = rng_double(&rng) - 0.5;
            cluster_values(c, n)[k] = (float)(low ? much * left[k / COLS % ROWS] * right[k % COLS] + 0.08 * noise : noise);
        }
    }
}

static double mean_of(cluster *c, uint64_t k)
{
    double sum = 0;
    for (uint32_t i = 0; i < NODES; i++)
        sum += (double)cluster_values(c, i)[k];
    return sum / NODES;
}

static double spread(cluster *c)
{
    double sum = 0;
    for (uint64_t k = 0; k < cluster_elements(c); k++)
        for (uint32_t i = 0; i < NODES; i++)
            sum += pow((double)cluster_values(c, i)[k] - mean_of(c, k), 2);
    return sum;
}

static void note_means(cluster *c, double *mean)
{
    for (uint64_t k = 0; k < cluster_elements(c); k++)
        mean[k] = mean_of(c, k);
}

static double moved(cluster *c, const double *mean)
{
    double most = 0;
    for (uint64_t k = 0; k < cluster_elements(c); k++)
        most = fmax(most, fabs(mean_of(c, k) - mean[k]));
    return most;
}

/* What was undecided goes into the results of rounds in which nothing is lost. */
static void settle(cluster *c)
{
    sim_set_link(cluster_sim(c), SIM_ALL, SIM_ALL, &CLEAN_LINK);
    CHECK(rounds(c, 8));
}

/* The worst consensus after 10, 30 and 100 rounds in proportion to its target; the drift then. */
static double table_row(struct sim_config config, bool low, const double target[3], double *drift)
{
    double mean[ROWS * COLS], worst = 0;
    config.rows = rows;
    cluster *c = set_up(config, counts, 1, 1);
    CHECK(c != NULL);
    if (!c)
        return INFINITY;
    fill(c, low);
    note_means(c, mean);
    double first = spread(c);
    for (int round = 1; round <= 100; round++) {
        CHECK(rounds(c, 1));
        if (round == 10 || round == 30 || round == 100)
            worst = fmax(worst, spread(c) / first / target[round == 10 ? 0 : round == 30 ? 1 : 2]);
    }
    settle(c);
    *drift = moved(c, mean);
    cluster_free(c);
    return worst;
}

static const double any[] = {0.34, 7.4e-2, 2.0e-3}, lossy[] = {0.42, 0.10, 3.8e-3};

/* Targets: a simulation of the paper's algorithm, the variance between the nodes of what it was. */
static void a_ring_of_rank_one_comes_together(void)
{
    static const double low[] = {3.5e-2, 4.8e-3, 7.8e-5};
    double drift;
    CHECK(table_row((struct sim_config){.link = CLEAN_LINK}, false, any, &drift) < 1.5);
    CHECK(drift < 1e-6);
    CHECK(table_row((struct sim_config){.link = CLEAN_LINK}, true, low, &drift) < 1.5);
    CHECK(drift < 1e-6);
}

/* What is lost comes again; where it does not, both ends of an edge leave the step out. */
static void loss_costs_steps_and_no_drift(void)
{
    struct sim_config config = {.link = CLEAN_LINK};
    double drift;
    config.link.loss = 0.05;
    CHECK(table_row(config, false, any, &drift) < 1.5);
    CHECK(drift < 1e-6);
    config.repair_off = true;
    CHECK(table_row(config, false, lossy, &drift) < 1.5);
    CHECK(drift < 1e-6);
}

/* The control. */
static void one_sided_steps_drift(void)
{
    struct sim_config config = {.link = CLEAN_LINK, .repair_off = true, .edges_one_sided = true};
    double drift;
    config.link.loss = 0.05;
    table_row(config, false, lossy, &drift);
    CHECK(drift > 1e-2);
}

/* So many rounds: each element's mean stays, and the nodes come together to less than that part of what they were. */
static void mean_stays(struct sim_config config, uint16_t rank, int n, double part)
{
    static double mean[BIG];
    config.rows = big_rows;
    cluster *c = set_up(config, big_counts, 2, rank);
    REQUIRE(c);
    fill(c, false);
    note_means(c, mean);
    double first = spread(c);
    CHECK(rounds(c, n));
    settle(c);
    CHECK(moved(c, mean) < 1e-6);
    CHECK(spread(c) < part * first);
    engine_set told;
    CHECK(engine_get_set(sim_engine(cluster_sim(c), 0), cluster_set(c, 0), &told, sim_now(cluster_sim(c))));
    CHECK(told.late_added > 0); /* else none of it was put to the test */
    CHECK_EQ(told.late_dropped, 0);
    cluster_free(c);
}

/* Vectors of several datagrams, lost, doubled and in any order; what is no matrix goes along. */
static void the_mean_stays_for_a_thousand_rounds(void)
{
    struct sim_config config = {.link = CLEAN_LINK};
    config.link.loss = config.link.duplicate = config.link.reorder = 0.05;
    config.link.jitter = MS(1);
    mean_stays(config, 2, 1000, 1e-3);
}

/* So much loss that rounds end before both ends know: what was undecided is decided later. */
static void heavy_loss_keeps_the_mean(void)
{
    struct sim_config config = {.link = CLEAN_LINK, .budget_max = MS(12), .budget_first = MS(12)};
    config.link.loss = 0.3;
    mean_stays(config, 1, 200, 0.5);
}

/* Its sides are gone with its model: in its first round its edges are left out, or they would not be
 * antisymmetric, and then all go on. */
static void a_node_that_comes_back_begins_anew(void)
{
    static double mean[BIG];
    struct sim_config config = {.link = CLEAN_LINK, .rows = big_rows};
    cluster *c = set_up(config, big_counts, 2, 1);
    REQUIRE(c);
    fill(c, false);
    CHECK(rounds(c, 20));
    CHECK(sim_restart(cluster_sim(c), 4));
    CHECK_EQ(cluster_register(c, 4), 0);
    bool joined = false;
    for (int i = 0; i < 12 && !joined; i++) {
        fill(c, false); /* no two are alike */
        note_means(c, mean);
        CHECK(cluster_round(c, NULL));
        joined = i > 0 && !(cluster_report(c, 4)->report.flags & (SLEET_JOINING | SLEET_ALONE));
        CHECK(!joined || moved(c, mean) < 1e-6);
        cluster_idle(c, SEC(1));
    }
    CHECK(joined);
    double first = spread(c);
    CHECK(rounds(c, 200));
    CHECK(spread(c) < 0.05 * first);
    cluster_free(c);
}

TEST_SUITE(power) = {
    TEST(a_ring_of_rank_one_comes_together),
    TEST(loss_costs_steps_and_no_drift),
    TEST(one_sided_steps_drift),
    TEST(the_mean_stays_for_a_thousand_rounds),
    TEST(heavy_loss_keeps_the_mean),
    TEST(a_node_that_comes_back_begins_anew),
    TEST_END,
};
