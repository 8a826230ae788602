/* Sets that are spread over rounds: a round averages one run in so many and leaves the rest alone. */
#include "helpers.h"

#define RUN (8 * 288) /* elements */
#define SPREAD 8
#define SMALL 3000 /* elements: too few for a turn in each round */

static const uint64_t counts[] = {SMALL, 20 * RUN + 100};
#define ALL (SMALL + 20 * RUN + 100)

static cluster *set_up(uint32_t nodes, double loss)
{
    struct sim_config config = {.nodes = nodes, .seed = test_seed(), .link = CLEAN_LINK,
                                .kind = {.spread = SPREAD}};
    config.link.loss = loss;
    cluster *c = ready_cluster(&config, counts, 2);
    for (uint32_t i = 0; c && i < nodes; i++)
        for (uint64_t k = 0; k < ALL; k++)
            cluster_values(c, i)[k] = (float)i;
    return c;
}

static uint64_t with(cluster *c, uint32_t node, float value)
{
    uint64_t n = 0;
    for (uint64_t k = 0; k < ALL; k++)
        n += cluster_values(c, node)[k] <= value && cluster_values(c, node)[k] >= value;
    return n;
}

static void each_round_averages_its_part(void)
{
    cluster *c = set_up(4, 0);
    struct sim_totals a, b;
    uint64_t before = 0;
    REQUIRE(c);
    sim_get_totals(cluster_sim(c), &a);
    for (uint32_t round = 0; round < SPREAD; round++) {
        CHECK(cluster_round(c, NULL));
        CHECK(all_complete(c)); /* what is left alone counts as covered */
        uint64_t now = with(c, 3, 1.5f);
        CHECK(now >= before + 2 * RUN && now <= before + 3 * RUN + 100 + (round ? 0 : SMALL));
        CHECK_EQ(now + with(c, 3, 3), ALL);
        CHECK_EQ(with(c, 0, 1.5f), now);
        CHECK(cluster_values(c, 2)[SMALL - 1] == 1.5f); /* few elements go with each */
        before = now;
    }
    CHECK_EQ(before, ALL);
    CHECK(identical(c));
    sim_get_totals(cluster_sim(c), &b);
    double once = 4 * 2 * 0.75 * 4 * ((double)ALL + (SPREAD - 1) * SMALL); /* all of it, scattered and gathered */
    CHECK((double)(b.bytes - a.bytes) < 1.5 * once);
    CHECK(ledger_balances(c));
    cluster_free(c);
}

static void nodes_come_together_under_loss(void)
{
    cluster *c = set_up(4, 0.1);
    REQUIRE(c);
    for (uint32_t round = 0; round < 6 * SPREAD; round++)
        CHECK(cluster_round(c, NULL));
    for (uint64_t k = 0; k < ALL; k++)
        if (fabsf(cluster_values(c, 3)[k] - cluster_values(c, 0)[k]) > 0.3f)
            CHECK_EQ(k, UINT64_MAX);
    CHECK_EQ(cluster_overdue(c), 0);
    CHECK(ledger_balances(c));
    cluster_free(c);
}

/* A joiner has a say once as many rounds have brought it the whole model, and not before. */
static void a_joiner_takes_the_whole_model_first(void)
{
    cluster *c = set_up(4, 0);
    uint32_t rounds = 0;
    REQUIRE(c);
    for (uint32_t round = 0; round < SPREAD; round++)
        CHECK(cluster_round(c, NULL));
    sim_kill(cluster_sim(c), 3);
    cluster_idle(c, SEC(1));
    REQUIRE(sim_restart(cluster_sim(c), 3));
    REQUIRE(cluster_register(c, 3) == SLEET_OK);
    for (uint64_t k = 0; k < ALL; k++)
        cluster_values(c, 3)[k] = 1000;
    cluster_idle(c, SEC(4));
    do {
        CHECK(cluster_round(c, NULL));
        CHECK(with(c, 0, 1.5f) == ALL); /* nobody takes anything from it */
    } while (cluster_report(c, 3)->report.flags & SLEET_JOINING && ++rounds < 3 * SPREAD);
    CHECK(rounds >= SPREAD && rounds <= SPREAD + 2);
    CHECK(identical(c));
    cluster_free(c);
}

static void what_cannot_be_spread_is_refused(void)
{
    static const uint64_t few[] = {(SPREAD - 1) * RUN};
    struct sim_config config = {.nodes = 2, .seed = test_seed(), .kind = {.spread = SPREAD}};
    CHECK(cluster_new(&config, few, 1) == NULL);
    config.kind.spread = SPREAD - 1;
    cluster *c = cluster_new(&config, few, 1);
    CHECK(c != NULL);
    cluster_free(c);
}

TEST_SUITE(spread) = {
    TEST(each_round_averages_its_part),
    TEST(nodes_come_together_under_loss),
    TEST(a_joiner_takes_the_whole_model_first),
    TEST(what_cannot_be_spread_is_refused),
    TEST_END,
};
