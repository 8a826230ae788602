/* What loss does to the average when nothing is repaired: consensus and drift
 * as in "Distributed Learning over Unreliable Networks" (arXiv 1810.07766). */
#include "helpers.h"

#define ELEMENTS (288 * 32)

struct cell {
    uint32_t nodes;
    double loss, consensus, drift;
};

struct sums {
    double before, after, moved;
};

static void moments(cluster *c, uint64_t k, double *mean, double *variance)
{
    uint32_t n = nodes_of(c);
    double sum = 0, squares = 0;
    for (uint32_t i = 0; i < n; i++)
        sum += (double)cluster_values(c, i)[k];
    *mean = sum / n;
    for (uint32_t i = 0; i < n; i++) {
        double d = (double)cluster_values(c, i)[k] - *mean;
        squares += d * d;
    }
    *variance = squares / n;
}

/* Only mean 0 and variance 1 matter here; the paper's table used N(0, 1). */
static double unit_noise(sleet_rng *rng)
{
    return (rng_double(rng) - 0.5) * 3.4641016151377544;
}

static void repeat_once(cluster *c, sleet_rng *rng, struct sums *sums)
{
    static double mean[ELEMENTS];
    for (uint32_t i = 0; i < nodes_of(c); i++)
        for (uint64_t k = 0; k < ELEMENTS; k++)
            cluster_values(c, i)[k] = (float)unit_noise(rng);
    for (uint64_t k = 0; k < ELEMENTS; k++) {
        double variance;
        moments(c, k, &mean[k], &variance);
        sums->before += variance;
    }
    CHECK(cluster_round(c, NULL));
    for (uint64_t k = 0; k < ELEMENTS; k++) {
        double after, variance;
        moments(c, k, &after, &variance);
        sums->after += variance;
        sums->moved += (after - mean[k]) * (after - mean[k]);
    }
}

static void check_cell(const struct cell *cell)
{
    struct sim_config config = {.nodes = cell->nodes,
                                .seed = test_seed(),
                                .repair_off = true,
                                .go_on_isolated = true,
                                .link = {.delay = US(200), .loss = cell->loss}};
    sleet_rng rng = {test_seed()};
    struct sums sums = {0};
    uint64_t count = ELEMENTS;
    cluster *c = ready_cluster(&config, &count, 1);
    REQUIRE(c);
    for (unsigned i = 0; i < test_repeats(200); i++)
        repeat_once(c, &rng, &sums);
    double consensus = sums.after / sums.before;
    double drift = cell->nodes * sums.moved / sums.before;
    CHECK_NEAR(consensus, cell->consensus, 0.2 * cell->consensus);
    CHECK_NEAR(drift, cell->drift, 0.2 * cell->drift);
    CHECK_EQ(cluster_overdue(c), 0);
    cluster_free(c);
}

static void consensus_and_drift_without_repair(void)
{
    static const struct cell cells[] = {
        {4, 0.05, 2.9e-2, 0.10},  {4, 0.10, 6.1e-2, 0.19},
        {8, 0.01, 7.7e-3, 0.020}, {8, 0.05, 4.0e-2, 0.097},
        {8, 0.10, 7.9e-2, 0.19},  {8, 0.20, 0.16, 0.33},
        {16, 0.10, 8.9e-2, 0.18}, {16, 0.40, 0.37, 0.50}};
    for (size_t i = 0; i < sizeof cells / sizeof cells[0]; i++)
        check_cell(&cells[i]);
}

TEST_SUITE(rps) = {
    TEST(consensus_and_drift_without_repair),
    TEST_END,
};
