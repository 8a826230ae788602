/* Strategies with packets: groups with owners that change by the round. */
#include "base/rng.h"
#include "helpers.h"
#include <math.h>

#define ELEMENTS (288 * 32)

static double mean_before[ELEMENTS];

static double moments(cluster *c, uint64_t k, double *mean)
{
    uint32_t n = nodes_of(c);
    double sum = 0, squares = 0;
    for (uint32_t i = 0; i < n; i++)
        sum += (double)cluster_values(c, i)[k];
    *mean = sum / n;
    for (uint32_t i = 0; i < n; i++)
        squares += pow((double)cluster_values(c, i)[k] - *mean, 2);
    return squares / n;
}

/* Variance among the nodes, mean over the elements. */
static double spread(cluster *c)
{
    double sum = 0, mean;
    for (uint64_t k = 0; k < ELEMENTS; k++)
        sum += moments(c, k, &mean);
    return sum / ELEMENTS;
}

/* n times the square of what the mean has moved, mean over the elements. */
static double drift(cluster *c)
{
    double sum = 0, mean;
    for (uint64_t k = 0; k < ELEMENTS; k++) {
        moments(c, k, &mean);
        sum += nodes_of(c) * pow(mean - mean_before[k], 2);
    }
    return sum / ELEMENTS;
}

static double draw(cluster *c, uint64_t seed)
{
    sleet_rng rng = {seed};
    for (uint32_t i = 0; i < nodes_of(c); i++)
        for (uint64_t k = 0; k < ELEMENTS; k++)
            cluster_values(c, i)[k] = (float)(rng_double(&rng) - 0.5);
    for (uint64_t k = 0; k < ELEMENTS; k++)
        moments(c, k, &mean_before[k]);
    return spread(c);
}

static bool joined(cluster *c)
{
    for (uint32_t i = 0; i < nodes_of(c); i++)
        if (!cluster_report(c, i)->reported || cluster_report(c, i)->report.flags & SLEET_JOINING)
            return false;
    return true;
}

static cluster *open_job(const struct sim_config *config)
{
    static const uint64_t count = ELEMENTS;
    struct sim_config clean = *config;
    clean.link = CLEAN_LINK;
    cluster *c = cluster_new(&clean, &count, 1);
    if (!c)
        return NULL;
    cluster_idle(c, SEC(4));
    for (int i = 0; i < 8 && (i == 0 || !joined(c)); i++) {
        cluster_round(c, NULL);
        cluster_idle(c, SEC(2));
    }
    if (!joined(c)) {
        cluster_free(c);
        return NULL;
    }
    sim_set_link(cluster_sim(c), SIM_ALL, SIM_ALL, &config->link);
    return c;
}

static bool whole(cluster *c)
{
    for (uint32_t i = 0; i < nodes_of(c); i++) {
        const struct cluster_report *r = cluster_report(c, i);
        if (r->error || r->report.coverage != 1.0 || r->report.flags & SLEET_ALONE)
            return false;
    }
    return true;
}

struct grid {
    uint32_t nodes;
    uint16_t numbers[2];
    uint32_t rounds; /* until all hold the mean */
    double before;   /* consensus a round earlier */
};

static void moshpit_is_exact_after_a_pass(void)
{
    static const struct grid grids[] = {
        {16, {4, 2}, 2, 0.2}, {8, {2, 3}, 3, 0.143}, {9, {3, 2}, 2, 0.25}, {12, {4, 2}, 2, 0.23}, {4, {0}, 1, 1}};
    for (size_t g = 0; g < sizeof grids / sizeof grids[0]; g++) {
        struct sim_config config = {.nodes = grids[g].nodes, .seed = test_seed(), .link = CLEAN_LINK,
                                    .kind = {.strategy = SLEET_MOSHPIT, .numbers = {grids[g].numbers[0], grids[g].numbers[1]}}};
        cluster *c = open_job(&config);
        REQUIRE(c);
        double before = draw(c, test_seed());
        for (uint32_t i = 1; i < grids[g].rounds; i++)
            CHECK(cluster_round(c, NULL) && whole(c));
        CHECK_NEAR(spread(c) / before, grids[g].before, 0.25 * grids[g].before);
        CHECK(cluster_round(c, NULL) && whole(c));
        CHECK(identical(c));
        CHECK(drift(c) < 1e-12 * before);
        CHECK(ledger_balances(c));
        cluster_free(c);
    }
}

/* Rounds that follow each other at once: a node is in a group with those that it last heard of many rounds ago. */
static void members_met_long_ago_are_waited_for(void)
{
    static const struct set_kind kinds[] = {{.strategy = SLEET_MOSHPIT, .numbers = {2}}, {.strategy = SLEET_ONE_PEER}};
    for (int k = 0; k < 2; k++) {
        struct sim_config config = {.nodes = 64, .seed = test_seed(), .link = CLEAN_LINK, .kind = kinds[k]};
        cluster *c = open_job(&config);
        REQUIRE(c);
        CHECK(cluster_round(c, NULL));
        double before = draw(c, test_seed());
        for (int i = 0; i < 6; i++)
            CHECK(cluster_round(c, NULL) && whole(c));
        CHECK(spread(c) < 1e-12 * before);
        CHECK(drift(c) < 1e-12 * before);
        cluster_free(c);
    }
}

TEST_SUITE(strategies) = {
    TEST(moshpit_is_exact_after_a_pass),
    TEST(members_met_long_ago_are_waited_for),
    TEST_END,
};
