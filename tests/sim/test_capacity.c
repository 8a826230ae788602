/* The capacity of a link, as the node at its other end measures it. */
#include "helpers.h"

#define ELEMENTS 50000

/* Two nodes: each has the link to itself. */
static void measure(sleet_strategy strategy)
{
    static const uint64_t counts[] = {ELEMENTS}, mbit[] = {2, 20, 5};
    const sleet_round_options o = {.size = sizeof o, .deadline_ns = SEC(20)};
    struct sim_config config = {.nodes = 2, .seed = test_seed(), .link = CLEAN_LINK,
                                .kind = {.payload = SLEET_MODEL, .strategy = strategy}};
    cluster *c = ready_cluster(&config, counts, 1);
    engine_peer peer;
    if (!CHECK(c != NULL))
        return;
    CHECK_EQ(engine_get_peers(sim_engine(cluster_sim(c), 0), &peer, 1, sim_now(cluster_sim(c))), 1);
    CHECK(peer.capacity_least && peer.capacity > 90000000);
    for (uint32_t k = 0; k < sizeof mbit / sizeof *mbit; k++) {
        const struct sim_link link = {.delay = MS(40), .rate_bps = mbit[k] * 1000000, .queue_bytes = 1 << 20};
        sim_set_link(cluster_sim(c), SIM_ALL, SIM_ALL, &link);
        for (int round = 0; round < 8; round++)
            CHECK(cluster_round(c, &o));
        engine_get_peers(sim_engine(cluster_sim(c), 0), &peer, 1, sim_now(cluster_sim(c)));
        CHECK(!peer.capacity_least);
        CHECK_NEAR((double)peer.capacity, (double)mbit[k] * 1e6, (double)mbit[k] * 5e4);
    }
    cluster_free(c);
}

static void capacity_is_measured(void) { measure(0); }

static void capacity_is_measured_among_neighbours(void) { measure(SLEET_PAIRS); }

TEST_SUITE(capacity) = {
    TEST(capacity_is_measured),
    TEST(capacity_is_measured_among_neighbours),
    TEST_END,
};
