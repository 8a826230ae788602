/* What an owner makes of contributions of which some do not come: unbiased where it is promised,
 * and with carry nothing is lost in silence. */
#include "helpers.h"
#include "member/arrival.h"
#include "round/estimate.h"

#define NODES 4
#define WARM 60 /* rounds until arrival rates are known */

static const uint64_t counts[] = {40 * 288};
static const double losses[] = {0.01, 0.05, 0.2};
#define LOSSES 3

struct mean {
    double sum, squares;
    uint64_t n;
};

static void add(struct mean *m, double x)
{
    m->sum += x;
    m->squares += x * x;
    m->n++;
}

static double mean_of(const struct mean *m)
{
    return m->sum / (double)m->n;
}

static double error_of(const struct mean *m)
{
    double mean = mean_of(m), variance = m->squares / (double)m->n - mean * mean;
    return sqrt(variance > 0 ? variance / (double)m->n : 0);
}

static cluster *lossy(sleet_estimator estimator, double loss)
{
    struct sim_config config = {.nodes = NODES,
                                .seed = test_seed(),
                                .kind = {.payload = SLEET_GRADIENT, .estimator = estimator},
                                .link = {.delay = US(200), .loss = loss}};
    cluster *c = cluster_new(&config, counts, 1);
    if (c)
        cluster_idle(c, SEC(5));
    return c;
}

/* Rounds in which node i gives `base` + i * `step`; what they bring, a sample a fragment. */
static bool measure(cluster *c, unsigned rounds, float base, float step, struct mean *m)
{
    for (unsigned round = 0; round < rounds + WARM; round++) {
        for (uint32_t i = 0; i < NODES; i++)
            for (uint64_t k = 0; k < counts[0]; k++)
                cluster_values(c, i)[k] = base + step * (float)i;
        if (!cluster_round(c, NULL))
            return false;
        for (uint64_t k = 0; k < counts[0] && round >= WARM; k += 288)
            add(m, (double)cluster_values(c, 0)[k]);
    }
    return true;
}

static void a_constant_stays(sleet_estimator estimator, unsigned rounds)
{
    for (uint32_t i = 0; i < LOSSES; i++) {
        struct mean m = {0};
        cluster *c = lossy(estimator, losses[i]);
        REQUIRE(c);
        CHECK(measure(c, rounds, 1, 0, &m));
        if (!CHECK_NEAR(mean_of(&m), 1, 3 * error_of(&m) + 1e-12))
            printf("loss %g: mean %.6f, standard error %.6f\n", losses[i], mean_of(&m), error_of(&m));
        if (estimator == SLEET_RATIO)
            CHECK(error_of(&m) == 0);
        else
            CHECK(error_of(&m) > 0 && error_of(&m) < 0.01);
        CHECK(ledger_balances(c));
        cluster_free(c);
    }
}

static void ratio_keeps_a_constant(void)
{
    a_constant_stays(SLEET_RATIO, test_repeats(200));
}

static void expected_keeps_a_constant(void)
{
    a_constant_stays(SLEET_EXPECTED, test_repeats(1000));
}

/* The owner's share is never lost; reckoned like the others it would weigh more than they. */
static void expected_favours_nobody(void)
{
    struct mean m = {0};
    cluster *c = lossy(SLEET_EXPECTED, 0.3);
    REQUIRE(c);
    CHECK(measure(c, test_repeats(400), 0, 1, &m));
    CHECK_NEAR(mean_of(&m), 1.5, 3 * error_of(&m));
    cluster_free(c);
}

/* A trainer that pauses for rounds is no loss: the others' mean is the whole. */
static void who_pauses_counts_in_neither(void)
{
    struct mean m = {0};
    struct sim_config config = {.nodes = NODES,
                                .seed = test_seed(),
                                .kind = {.payload = SLEET_GRADIENT, .estimator = SLEET_EXPECTED},
                                .link = CLEAN_LINK};
    cluster *c = ready_cluster(&config, counts, 1);
    REQUIRE(c);
    cluster_set_active(c, 3, false);
    CHECK(measure(c, 10, 1, 0, &m));
    CHECK_NEAR(mean_of(&m), 1, 1e-6);
    cluster_set_active(c, 3, true);
    m = (struct mean){0};
    cluster_idle(c, SEC(2)); /* in lock step it has to hear which round has closed */
    CHECK(measure(c, 10, 0, 1, &m));
    CHECK_NEAR(mean_of(&m), 1.5, 0.1); /* the rounds before it was missed count in its rate */
    CHECK(all_complete(c));
    cluster_free(c);
}

static void the_arithmetic(void)
{
    const struct estimator *ratio = estimator_by_id(SLEET_RATIO), *carry = estimator_by_id(SLEET_CARRY),
                           *expected = estimator_by_id(SLEET_EXPECTED);
    CHECK(estimator_by_id(0) == NULL);
    CHECK_NEAR(ratio->factor(0.5), 1, 0);
    CHECK_NEAR(ratio->divisor(3, 4, 5), 3, 0);
    CHECK_NEAR(expected->factor(0.5), 2, 0);
    CHECK_NEAR(expected->divisor(3, 4, 5), 4, 0);
    CHECK_NEAR(carry->factor(0.5), 1, 0);
    CHECK_NEAR(carry->divisor(3, 4, 5), 5, 0);
    struct arrival a = {0};
    CHECK_NEAR(arrival_rate(&a), 1, 0);
    for (int i = 0; i < 10; i++)
        arrival_add(&a, i % 2);
    CHECK_NEAR(arrival_rate(&a), 0.5, 1e-12);
    for (int i = 0; i < 1000; i++)
        arrival_add(&a, 0);
    CHECK_NEAR(arrival_rate(&a), ARRIVAL_LEAST, 0);
}

TEST_SUITE(estimators) = {
    TEST(the_arithmetic),
    TEST(ratio_keeps_a_constant),
    TEST(expected_keeps_a_constant),
    TEST(expected_favours_nobody),
    TEST(who_pauses_counts_in_neither),
    TEST_END,
};
