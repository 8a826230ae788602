/* Faults that no other suite would notice; tests/mutants.sh plants them. */
#include "helpers.h"

#define ELEMENTS 60000
#define ROUNDS 20

static uint64_t bytes_out(cluster *c)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < nodes_of(c); i++) {
        engine_counters k;
        engine_get_counters(sim_engine(cluster_sim(c), i), &k);
        sum += k.out_bytes;
    }
    return sum;
}

/* Bytes that some rounds take over the link; 0 when they are not all complete. */
static uint64_t cost(const struct sim_link *link, uint64_t seed)
{
    const struct sim_config config = {.nodes = 3, .seed = seed, .link = *link};
    cluster *c = ready_cluster(&config, (const uint64_t[]){ELEMENTS}, 1);
    sleet_rng rng = {seed};
    bool ok = c != NULL;
    uint64_t before = ok ? bytes_out(c) : 0, after = before;
    for (int round = 0; ok && round < ROUNDS; round++) {
        fill_grid(c, &rng);
        ok = cluster_round(c, NULL) && (round < 8 || all_complete(c));
    }
    if (ok)
        after = bytes_out(c);
    if (c)
        cluster_free(c);
    return ok ? after - before : 0;
}

/* Datagrams that a few others overtake are on their way: nobody sends them again. */
static void overtaken_is_not_lost(void)
{
    struct sim_link link = {.delay = US(200), .rate_bps = 100000000};
    uint64_t ordered = cost(&link, test_seed());
    link.reorder = 0.25;
    link.reorder_delay = US(400);
    uint64_t mixed = cost(&link, test_seed());
    CHECK(ordered > 0 && mixed > 0);
    CHECK(mixed < ordered + ordered / 100);
}

TEST_SUITE(mutants) = {
    TEST(overtaken_is_not_lost),
    TEST_END,
};
