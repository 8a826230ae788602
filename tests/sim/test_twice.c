/* Fragments of most energy are sent twice: the error of the mean falls by far more than the bytes rise. */
#include "helpers.h"

#define NODES 4
#define FRAGMENTS 320
#define ELEMENTS 288
#define LOUD 10 /* one fragment in so many is */

static const uint64_t counts[] = {(uint64_t)FRAGMENTS * ELEMENTS};

static cluster *begin(sleet_payload payload, sleet_estimator estimator, double loss)
{
    struct sim_config config = {.nodes = NODES,
                                .seed = test_seed(),
                                .kind = {.payload = payload, .estimator = estimator},
                                .link = {.delay = US(200), .loss = loss}};
    return ready_cluster(&config, counts, 1);
}

/* A round of values of which every LOUD-th fragment is 16 times as large; the square of the error of node 0's mean over
 * that of the mean. */
static double error_of_round(cluster *c, sleet_rng *rng, const sleet_round_options *o)
{
    static double mean[FRAGMENTS * ELEMENTS];
    double error = 0, all = 0;
    fill_grid(c, rng);
    for (uint32_t k = 0; k < FRAGMENTS * ELEMENTS; k++) {
        mean[k] = 0;
        for (uint32_t i = 0; i < NODES; i++) {
            float *x = cluster_values(c, i) + k;
            *x *= k / ELEMENTS % LOUD == 3 ? 1 : 1.0f / 16;
            mean[k] += (double)*x / NODES;
        }
    }
    CHECK(cluster_round(c, o));
    for (uint32_t k = 0; k < FRAGMENTS * ELEMENTS; k++) {
        double d = (double)cluster_values(c, 0)[k] - mean[k];
        error += d * d;
        all += mean[k] * mean[k];
    }
    cluster_idle(c, MS(20));
    return error / all;
}

static uint64_t bytes_sent(cluster *c)
{
    struct sim_totals t;
    sim_get_totals(cluster_sim(c), &t);
    return t.bytes;
}

static void the_error_falls(void)
{
    double error[2] = {0};
    uint64_t bytes[2];
    for (int twice = 0; twice < 2; twice++) {
        cluster *c = begin(SLEET_GRADIENT, 0, 0.2);
        sleet_rng rng = {test_seed()};
        const sleet_round_options o = {.twice = twice ? 1.0 / LOUD : 0};
        REQUIRE(c);
        bytes[twice] = bytes_sent(c);
        for (unsigned i = 0; i < 40; i++)
            error[twice] += error_of_round(c, &rng, &o) / 40;
        bytes[twice] = bytes_sent(c) - bytes[twice];
        CHECK_EQ(cluster_overdue(c), 0);
        CHECK(ledger_balances(c));
        cluster_free(c);
    }
    CHECK(error[1] < 0.4 * error[0]);
    CHECK((double)bytes[1] < 1.08 * (double)bytes[0]);
    printf("a tenth twice: squared error of the mean %.3f instead of %.3f, for %.3f times the bytes\n", error[1], error[0],
           (double)bytes[1] / (double)bytes[0]);
}

/* What comes twice counts once, and nobody waits for more. */
static void without_loss_nothing_changes(void)
{
    cluster *c = begin(SLEET_GRADIENT, 0, 0);
    sleet_rng rng = {test_seed()};
    REQUIRE(c);
    for (int share = 0; share <= 4; share++) {
        const sleet_round_options o = {.twice = share / 4.0};
        CHECK(error_of_round(c, &rng, &o) < 1e-14);
        CHECK(all_complete(c) && identical(c));
        CHECK(cluster_report(c, 0)->report.elapsed_ns < MS(200));
    }
    CHECK(ledger_balances(c));
    cluster_free(c);
}

static void what_it_does_not_go_with_is_refused(void)
{
    const struct { sleet_payload payload; sleet_estimator estimator; sleet_round_options o; } cases[] = {
        {SLEET_MODEL, 0, {.twice = 0.1}},
        {SLEET_GRADIENT, SLEET_EXPECTED, {.twice = 0.1}},
        {SLEET_GRADIENT, 0, {.twice = 0.1, .exact = 1}},
        {SLEET_GRADIENT, 0, {.twice = 1.1}},
    };
    for (uint32_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cluster *c = begin(cases[i].payload, cases[i].estimator, 0);
        REQUIRE(c);
        CHECK_EQ(cluster_start(c, 0, &cases[i].o), SLEET_EINVAL);
        cluster_free(c);
    }
}

TEST_SUITE(twice) = {
    TEST(the_error_falls),
    TEST(without_loss_nothing_changes),
    TEST(what_it_does_not_go_with_is_refused),
    TEST_END,
};
