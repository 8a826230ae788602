/* Properties of whole rounds over many seeds. */
#include "helpers.h"
#include <float.h>

static const uint64_t counts[] = {1, 700, 0, 2881};
#define TENSORS 4

static bool near_mean(cluster *c, const double *mean)
{
    for (uint64_t k = 0; k < cluster_elements(c); k++) {
        float want = (float)mean[k], got = cluster_values(c, 0)[k];
        if (got != want && nextafterf(want, got) != got)
            return false;
    }
    return true;
}

static double mean_before[4096];

static void keep_mean(cluster *c)
{
    for (uint64_t k = 0; k < cluster_elements(c); k++) {
        double sum = 0;
        for (uint32_t i = 0; i < nodes_of(c); i++)
            sum += (double)cluster_values(c, i)[k];
        mean_before[k] = sum / nodes_of(c);
    }
}

static void fill_normal_like(cluster *c, sleet_rng *rng)
{
    for (uint32_t i = 0; i < nodes_of(c); i++)
        for (uint64_t k = 0; k < cluster_elements(c); k++)
            cluster_values(c, i)[k] = (float)(rng_double(rng) + rng_double(rng) - 1);
}

/* Nothing lost: full coverage, the f64 mean, the same bits everywhere. */
static void lossless(void)
{
    static const uint32_t sizes[] = {1, 2, 3, 4, 5, 8, 16};
    for (unsigned i = 0; i < test_repeats(28); i++) {
        struct sim_config config = {
            .nodes = sizes[i % 7], .seed = test_seed() + i, .link = CLEAN_LINK};
        sleet_rng rng = {config.seed};
        cluster *c = ready_cluster(&config, counts, TENSORS);
        REQUIRE(c);
        for (int round = 0; round < 5; round++) {
            fill_normal_like(c, &rng);
            keep_mean(c);
            CHECK(cluster_round(c, NULL));
            CHECK(all_complete(c));
            CHECK(identical(c));
            CHECK(near_mean(c, mean_before));
        }
        CHECK_EQ(cluster_overdue(c), 0);
        CHECK(ledger_balances(c));
        cluster_free(c);
    }
}

static void first_round_takes_the_founders_model(void)
{
    struct sim_config config = {.nodes = 4, .seed = test_seed(), .link = CLEAN_LINK};
    cluster *c = cluster_new(&config, counts, TENSORS);
    REQUIRE(c);
    for (uint32_t i = 0; i < 4; i++)
        for (uint64_t k = 0; k < cluster_elements(c); k++)
            cluster_values(c, i)[k] = (float)(i + 3);
    cluster_idle(c, SEC(4));
    CHECK(cluster_round(c, NULL));
    CHECK(identical(c));
    CHECK(cluster_values(c, 3)[0] == 3.0f);
    CHECK(cluster_report(c, 3)->report.flags & SLEET_JOINING);
    CHECK(!(cluster_report(c, 0)->report.flags & SLEET_JOINING));
    cluster_free(c);
}

static bool all_are(cluster *c, float value)
{
    for (uint32_t i = 0; i < nodes_of(c); i++)
        for (uint64_t k = 0; k < cluster_elements(c); k++)
            if (cluster_values(c, i)[k] != value)
                return false;
    return true;
}

static void constant_stays_at_any_loss(void)
{
    for (unsigned i = 0; i < test_repeats(20); i++) {
        struct sim_config config = {
            .nodes = 2 + i % 7,
            .seed = test_seed() + i,
            .link = {.delay = MS(1), .jitter = US(300), .loss = i % 2 ? 0.3 : 0.6}};
        cluster *c = cluster_new(&config, counts, TENSORS);
        REQUIRE(c);
        fill_constant(c, 1.0f);
        cluster_idle(c, SEC(5));
        for (int round = 0; round < 12; round++) {
            CHECK(cluster_round(c, NULL));
            CHECK(all_are(c, 1.0f));
        }
        CHECK_EQ(cluster_overdue(c), 0);
        CHECK(ledger_balances(c));
        cluster_free(c);
    }
}

/* Loss neither shrinks nor swells a mean in the long run. */
static void constant_stays_for_a_thousand_rounds(void)
{
    static const double losses[] = {0.01, 0.05, 0.2};
    static const uint64_t few[] = {700};
    for (unsigned i = 0; i < 3; i++) {
        struct sim_config config = {
            .nodes = 4, .seed = test_seed() + i, .link = {.delay = US(500), .loss = losses[i]}};
        cluster *c = ready_cluster(&config, few, 1);
        REQUIRE(c);
        fill_constant(c, 1.0f);
        for (unsigned round = 0; round < test_repeats(1000); round++) {
            CHECK(cluster_round(c, NULL));
            CHECK(all_are(c, 1.0f));
        }
        CHECK_EQ(cluster_overdue(c), 0);
        cluster_free(c);
    }
}

/* Datagrams twice, late and out of order change nothing. */
static void duplicates_and_reordering_change_nothing(void)
{
    for (unsigned i = 0; i < test_repeats(20); i++) {
        struct sim_config config = {.nodes = 2 + i % 5,
                                    .seed = test_seed() + i,
                                    .link = {.delay = US(200),
                                             .jitter = MS(1),
                                             .reorder = 0.25,
                                             .reorder_delay = MS(1),
                                             .duplicate = 0.1}};
        sleet_rng rng = {config.seed};
        cluster *c = ready_cluster(&config, counts, TENSORS);
        REQUIRE(c);
        for (int round = 0; round < 20; round++) {
            fill_grid(c, &rng);
            keep_mean(c);
            CHECK(cluster_round(c, NULL));
            if (round < 8)
                continue;
            CHECK(all_complete(c));
            CHECK(identical(c));
            CHECK(near_mean(c, mean_before));
        }
        CHECK(ledger_balances(c));
        cluster_free(c);
    }
}

/* Node i holds 2^i everywhere: a mean of any set of contributors is recognised,
 * anything else is not. */
static bool is_mean_of_some(float value, uint32_t nodes)
{
    for (uint32_t mask = 1; mask < 1u << nodes; mask++)
        if (value == (float)((double)mask / __builtin_popcount(mask)))
            return true;
    return false;
}

static bool all_are_means(cluster *c)
{
    for (uint32_t i = 0; i < nodes_of(c); i++)
        for (uint64_t k = 0; k < cluster_elements(c); k++)
            if (!is_mean_of_some(cluster_values(c, i)[k], nodes_of(c)))
                return false;
    return true;
}

static void corrupt_datagrams_are_counted_not_used(void)
{
    for (unsigned i = 0; i < test_repeats(10); i++) {
        struct sim_config config = {.nodes = 4,
                                    .seed = test_seed() + i,
                                    .link = {.delay = US(200),
                                             .corrupt = 0.02,
                                             .duplicate = 0.05,
                                             .loss = 0.05}};
        cluster *c = ready_cluster(&config, counts, TENSORS);
        REQUIRE(c);
        for (int round = 0; round < 20; round++) {
            for (uint32_t n = 0; n < 4; n++)
                for (uint64_t k = 0; k < cluster_elements(c); k++)
                    cluster_values(c, n)[k] = (float)(1u << n);
            CHECK(cluster_round(c, NULL));
            CHECK(all_are_means(c));
        }
        uint64_t corrupt = 0;
        for (uint32_t n = 0; n < 4; n++) {
            engine_counters k;
            engine_get_counters(sim_engine(cluster_sim(c), n), &k);
            corrupt += k.corrupt;
        }
        CHECK(corrupt > 0);
        CHECK(ledger_balances(c));
        cluster_free(c);
    }
}

/* The deadline holds to the nanosecond, whatever the links do. */
static void no_report_is_late(void)
{
    for (unsigned i = 0; i < test_repeats(40); i++) {
        sleet_rng rng = {test_seed() + i};
        struct sim_config config = {.nodes = 2 + rng_below(&rng, 7),
                                    .seed = test_seed() + i,
                                    .link = {.delay = US(100 + rng_below(&rng, 30000)),
                                             .jitter = US(rng_below(&rng, 5000)),
                                             .loss = rng_double(&rng) * 0.9,
                                             .ge_p = i % 3 ? 0 : 0.05,
                                             .ge_r = 0.2,
                                             .rate_bps = i % 2 ? 0 : 2000000,
                                             .queue_bytes = 20000,
                                             .duplicate = 0.1,
                                             .reorder = 0.1}};
        cluster *c = cluster_new(&config, counts, TENSORS);
        REQUIRE(c);
        for (int round = 0; round < 15; round++) {
            sleet_round_options options = {
                .deadline_ns = US(1 + rng_below(&rng, 100000)),
                .exact = rng_below(&rng, 4) == 0,
                .quorum = rng_below(&rng, 2) ? SLEET_QUORUM_MAJORITY : SLEET_QUORUM_ALL};
            fill_grid(c, &rng);
            CHECK(cluster_round(c, &options));
            if (rng_below(&rng, 3) == 0)
                cluster_idle(c, MS(rng_below(&rng, 2000)));
        }
        CHECK_EQ(cluster_overdue(c), 0);
        CHECK(ledger_balances(c));
        cluster_free(c);
    }
}

/* An exact round repairs both phases: nothing is missing at 20 % loss. */
static void exact_rounds_are_complete(void)
{
    for (unsigned i = 0; i < test_repeats(10); i++) {
        struct sim_config config = {.nodes = 2 + i % 4,
                                    .seed = test_seed() + i,
                                    .link = {.delay = MS(1), .loss = 0.2}};
        sleet_rng rng = {config.seed};
        sleet_round_options options = {.exact = 1};
        cluster *c = ready_cluster(&config, counts, TENSORS);
        REQUIRE(c);
        fill_grid(c, &rng);
        keep_mean(c);
        CHECK(cluster_round(c, &options));
        CHECK(all_complete(c));
        CHECK(identical(c));
        CHECK(near_mean(c, mean_before));
        cluster_free(c);
    }
}

struct trace {
    uint64_t hash;
};

static void add_to_trace(struct trace *t, cluster *c)
{
    for (uint32_t i = 0; i < nodes_of(c); i++) {
        const struct cluster_report *r = cluster_report(c, i);
        t->hash = mix64(t->hash ^ (uint64_t)r->reported_at.ns);
        for (uint64_t k = 0; k < cluster_elements(c); k++) {
            uint32_t bits;
            memcpy(&bits, &cluster_values(c, i)[k], sizeof bits);
            t->hash = mix64(t->hash ^ bits);
        }
    }
}

static uint64_t traced_run(uint64_t seed)
{
    struct sim_config config = {.nodes = 4,
                                .seed = seed,
                                .link = {.delay = MS(1), .jitter = MS(1), .loss = 0.1}};
    sleet_rng rng = {seed};
    struct trace t = {0};
    cluster *c = cluster_new(&config, counts, TENSORS);
    if (!c)
        return 0;
    for (int round = 0; round < 10; round++) {
        fill_grid(c, &rng);
        cluster_round(c, NULL);
        add_to_trace(&t, c);
    }
    cluster_free(c);
    return t.hash;
}

static void the_same_seed_gives_the_same_run(void)
{
    uint64_t a = traced_run(test_seed()), b = traced_run(test_seed());
    CHECK(a != 0);
    CHECK(a == b);
    CHECK(a != traced_run(test_seed() + 1));
}

TEST_SUITE(rounds) = {
    TEST(lossless),
    TEST(first_round_takes_the_founders_model),
    TEST(constant_stays_at_any_loss),
    TEST(constant_stays_for_a_thousand_rounds),
    TEST(duplicates_and_reordering_change_nothing),
    TEST(corrupt_datagrams_are_counted_not_used),
    TEST(no_report_is_late),
    TEST(exact_rounds_are_complete),
    TEST(the_same_seed_gives_the_same_run),
    TEST_END,
};
