/* Tensors of state: a round averages one run in SLEET_REFRESH_ROUNDS of them and leaves the rest
 * alone; in as many rounds all of it has been averaged once. */
#include "helpers.h"

#define RUN (8 * 288) /* elements */

static const uint64_t counts[] = {3000, 40 * RUN + 100};
#define OWN (40 * RUN + 100)

static float own_value(uint32_t node, uint64_t k) { return (float)(node + 1) + (float)(k % 7) * 0x1p-4f; }

/* Of the state: which elements still are the node's own, which the mean of all. */
static void count(cluster *c, uint32_t node, uint64_t *own, uint64_t *mean, uint64_t *other)
{
    *own = *mean = *other = 0;
    for (uint64_t k = 0; k < OWN; k++) {
        float x = cluster_values(c, node)[counts[0] + k];
        float all = (1 + 2 + 3 + 4) / 4.0f + (float)(k % 7) * 0x1p-4f;
        *own += x == own_value(node, k);
        *mean += x == all;
        *other += x != own_value(node, k) && x != all;
    }
}

static cluster *set_up(double loss)
{
    struct sim_config config = {.nodes = 4, .seed = test_seed(), .link = CLEAN_LINK, .state_tensors = 1};
    config.link.loss = loss;
    cluster *c = ready_cluster(&config, counts, 2);
    for (uint32_t i = 0; c && i < 4; i++)
        for (uint64_t k = 0; k < counts[0] + OWN; k++)
            cluster_values(c, i)[k] = k < counts[0] ? (float)i : own_value(i, k - counts[0]);
    return c;
}

static void a_round_averages_its_part(void)
{
    cluster *c = set_up(0);
    uint64_t own, mean, other, before;
    REQUIRE(c);
    CHECK(cluster_round(c, NULL));
    CHECK(all_complete(c));
    for (uint32_t i = 0; i < 4; i++) {
        count(c, i, &own, &mean, &other);
        CHECK_EQ(other, 0);
        CHECK(mean >= 2 * RUN && mean <= 4 * RUN); /* of 40 runs and a bit */
        CHECK_EQ(own, OWN - mean);
        for (uint64_t k = 0; k < counts[0]; k++)
            if (cluster_values(c, i)[k] != 1.5f)
                CHECK_EQ(k, UINT64_MAX);
    }
    for (uint32_t round = 1; round < SLEET_REFRESH_ROUNDS; round++) {
        before = mean;
        CHECK(cluster_round(c, NULL));
        CHECK(all_complete(c));
        count(c, 3, &own, &mean, &other);
        CHECK_EQ(other, 0);
        CHECK(mean > before);
    }
    CHECK_EQ(mean, OWN);
    CHECK(identical(c));
    CHECK(ledger_balances(c));
    cluster_free(c);
}

/* The bytes are those of the part. */
static void only_the_part_travels(void)
{
    struct sim_totals a, b;
    cluster *c = set_up(0);
    REQUIRE(c);
    CHECK(cluster_round(c, NULL));
    sim_get_totals(cluster_sim(c), &a);
    for (uint32_t i = 0; i < SLEET_REFRESH_ROUNDS; i++)
        CHECK(cluster_round(c, NULL));
    sim_get_totals(cluster_sim(c), &b);
    double whole = 4 * 2 * 0.75 * 4 * (double)OWN; /* scatter and gather of all of it, once */
    double rest = SLEET_REFRESH_ROUNDS * 4 * 2 * 0.75 * 4 * (double)counts[0];
    CHECK((double)(b.bytes - a.bytes) < 1.6 * (whole + rest));
    cluster_free(c);
}

/* Under loss parts are missed, and the nodes come together all the same. */
static void it_goes_on_under_loss(void)
{
    cluster *c = set_up(0.1);
    double spread[2] = {0, 0};
    REQUIRE(c);
    for (uint32_t round = 0; round < 5 * SLEET_REFRESH_ROUNDS; round++)
        CHECK(cluster_round(c, NULL));
    for (uint64_t k = 0; k < OWN; k++) {
        spread[0] += fabs((double)own_value(3, k) - (double)own_value(0, k));
        spread[1] += fabs((double)cluster_values(c, 3)[counts[0] + k] - (double)cluster_values(c, 0)[counts[0] + k]);
    }
    CHECK(spread[1] < 0.05 * spread[0]);
    CHECK_EQ(cluster_overdue(c), 0);
    CHECK(ledger_balances(c));
    cluster_free(c);
}

/* A parameter and its moment, in tensors of equal size, are refreshed in the same round. */
static void equal_tensors_are_refreshed_alike(void)
{
    const uint64_t alike[] = {3000, 40 * RUN + 100, 40 * RUN + 100};
    struct sim_config config = {.nodes = 3, .seed = test_seed(), .link = CLEAN_LINK, .state_tensors = 2};
    cluster *c = ready_cluster(&config, alike, 3);
    REQUIRE(c);
    for (uint32_t i = 0; i < 3; i++)
        for (uint64_t k = 0; k < 3000 + 2 * alike[1]; k++)
            cluster_values(c, i)[k] = (float)i;
    CHECK(cluster_round(c, NULL));
    for (uint64_t k = 0; k < alike[1]; k++) {
        const float *x = cluster_values(c, 2) + 3000;
        if (x[k] != x[alike[1] + k])
            CHECK_EQ(k, UINT64_MAX);
    }
    cluster_free(c);
}

/* Rounds of which nothing is due would keep nobody together. */
static void nothing_but_state_is_refused(void)
{
    static const uint64_t few[] = {300};
    struct sim_config config = {.nodes = 2, .seed = test_seed(), .state_tensors = 1};
    CHECK(cluster_new(&config, few, 1) == NULL);
}

TEST_SUITE(refresh) = {
    TEST(nothing_but_state_is_refused),
    TEST(a_round_averages_its_part),
    TEST(only_the_part_travels),
    TEST(it_goes_on_under_loss),
    TEST(equal_tensors_are_refreshed_alike),
    TEST_END,
};
