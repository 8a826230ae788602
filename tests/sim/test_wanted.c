/* Rounds that some nodes begin and the others learn of. */
#include "helpers.h"

static const uint64_t counts[] = {700};

static bool wanted(cluster *c, uint32_t node)
{
    return engine_wanted(sim_engine(cluster_sim(c), node), cluster_set(c, node));
}

static void a_round_is_wanted_until_it_is_joined(void)
{
    for (uint32_t nodes = 2; nodes <= 3; nodes++) { /* a single other is followed, of several the second-furthest */
        struct sim_config config = {.nodes = nodes, .seed = test_seed(), .link = CLEAN_LINK};
        cluster *c = ready_cluster(&config, counts, 1);
        REQUIRE(c);
        cluster_idle(c, SEC(2));
        for (uint32_t i = 0; i < nodes; i++)
            CHECK(!wanted(c, i));
        CHECK_EQ(cluster_start(c, 0, NULL), SLEET_OK);
        cluster_idle(c, MS(5));
        for (uint32_t i = 0; i < nodes; i++)
            CHECK(wanted(c, i) == (i != 0));
        for (uint32_t i = 1; i < nodes; i++)
            CHECK_EQ(cluster_start(c, i, NULL), SLEET_OK);
        CHECK(!wanted(c, 1));
        cluster_idle(c, SEC(1));
        CHECK(all_complete(c));
        for (uint32_t i = 0; i < nodes; i++)
            CHECK(!wanted(c, i));
        CHECK(!engine_wanted(sim_engine(cluster_sim(c), 0), 7)); /* no such set */
        cluster_free(c);
    }
}

/* Whoever begins, nobody is left out and nobody waits, with one datagram in five lost. */
static void all_learn_of_a_round_under_loss(void)
{
    struct sim_config config = {
        .nodes = 8, .seed = test_seed(), .link = {.delay = MS(1), .jitter = US(200), .loss = 0.2}};
    sleet_rng rng = {config.seed};
    cluster *c = ready_cluster(&config, counts, 1);
    REQUIRE(c);
    unsigned took_part = 0, rounds = test_repeats(1000);
    sleet_duration latest = 0;
    for (unsigned round = 0; round < rounds; round++) {
        bool begins[8] = {false};
        begins[rng_below(&rng, 8)] = true;
        for (uint32_t i = 0; i < 8; i++)
            begins[i] |= rng_below(&rng, 10) == 0;
        REQUIRE(cluster_round_from(c, begins, NULL));
        sleet_time first = TIME_NEVER;
        for (uint32_t i = 0; i < 8; i++)
            if (begins[i])
                first = cluster_report(c, i)->started_at;
        for (uint32_t i = 0; i < 8; i++) {
            const struct cluster_report *r = cluster_report(c, i);
            took_part += r->started;
            if (r->started && time_since(r->started_at, first) > latest)
                latest = time_since(r->started_at, first);
        }
        cluster_idle(c, MS(20));
    }
    CHECK_EQ(took_part, 8 * rounds);
    CHECK(latest < MS(50));
    CHECK_EQ(cluster_overdue(c), 0);
    cluster_free(c);
}

TEST_SUITE(wanted) = {TEST(a_round_is_wanted_until_it_is_joined), TEST(all_learn_of_a_round_under_loss), TEST_END};
