/* Estimator givers: what is 0 all over is not sent, and the mean is over those that have something there. */
#include "helpers.h"

#define RUN (8 * 288) /* elements */
#define RUNS 24
#define NODES 4

static const uint64_t counts[] = {RUNS * RUN};

/* Two of the nodes have something in a run, none in every sixth. */
static bool gives(uint32_t node, uint64_t run)
{
    return run % 6 != 5 && (node == run % NODES || node == (run + 1) % NODES);
}

static float mean(uint64_t run)
{
    float sum = 0;
    for (uint32_t i = 0; i < NODES; i++)
        sum += gives(i, run) ? (float)(i + 1) / 2 : 0;
    return sum;
}

static void play(sleet_exchange exchange, double loss, uint64_t *bytes)
{
    struct sim_config config = {.nodes = NODES, .seed = test_seed(), .link = CLEAN_LINK,
                                .kind = {.payload = SLEET_PSEUDO_GRADIENT, .estimator = SLEET_GIVERS,
                                         .exchange = exchange}};
    const sleet_round_options exact = {.size = sizeof exact, .exact = 1};
    struct sim_totals a, b;
    cluster *c = cluster_new(&config, counts, 1);
    *bytes = 0;
    REQUIRE(c);
    cluster_idle(c, SEC(4));
    for (uint32_t round = 0; round < 3; round++) { /* all are members then */
        fill_constant(c, 1);
        CHECK(cluster_round(c, NULL));
        cluster_idle(c, MS(200));
    }
    config.link.loss = loss;
    sim_set_link(cluster_sim(c), SIM_ALL, SIM_ALL, &config.link);
    sim_get_totals(cluster_sim(c), &a);
    for (uint32_t round = 0; round < 3; round++) {
        for (uint32_t i = 0; i < NODES; i++)
            for (uint64_t k = 0; k < counts[0]; k++)
                cluster_values(c, i)[k] = gives(i, k / RUN) ? (float)(i + 1) : 0;
        CHECK(cluster_round(c, NULL));
        for (uint32_t i = 0; i < NODES; i++)
            for (uint64_t k = 0; k < counts[0]; k++) {
                bool mine = loss <= 0 && (exchange == SLEET_ALL_REDUCE || cluster_owns(c, i, (uint32_t)(k / RUN)));
                if (mine && fabsf(cluster_values(c, i)[k] - mean(k / RUN)) > 1e-6f)
                    CHECK_EQ(k, UINT64_MAX);
            }
    }
    sim_get_totals(cluster_sim(c), &b);
    CHECK_EQ(cluster_start(c, 0, &exact), SLEET_EINVAL); /* it would ask for what nobody sends */
    *bytes = b.bytes - a.bytes;
    CHECK_EQ(cluster_overdue(c), 0);
    CHECK(ledger_balances(c));
    cluster_free(c);
}

static void the_mean_is_of_those_who_give(void)
{
    uint64_t bytes;
    play(SLEET_ALL_REDUCE, 0, &bytes);
    play(SLEET_REDUCE_SCATTER, 0, &bytes);
    double all = 3 * 4 * 3.0 * (double)counts[0]; /* each gives three quarters of everything, in three rounds */
    CHECK((double)bytes < 1.3 * all * 10 / 24);   /* two of four, but of one run in six */
    play(SLEET_REDUCE_SCATTER, 0.1, &bytes);
}

TEST_SUITE(givers) = {TEST(the_mean_is_of_those_who_give), TEST_END};
