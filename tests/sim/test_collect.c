/* Models of which one deadline sees only a part: joiners collect them over several rounds. */
#include "helpers.h"

static const uint64_t counts[] = {300000, 70}; /* 1.2 MB */

static uint32_t joining(cluster *c)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < nodes_of(c); i++)
        n += (cluster_report(c, i)->report.flags & SLEET_JOINING) != 0;
    return n;
}

/* Rounds until nobody joins any more; 0: not within `most`. */
static uint32_t rounds_to_begin(cluster *c, const sleet_round_options *o, uint32_t most)
{
    for (uint32_t round = 1; round <= most; round++) {
        fill_constant(c, 1);
        if (!cluster_round(c, o))
            return 0;
        for (uint32_t i = 0; i < nodes_of(c); i++)
            if (cluster_report(c, i)->report.elapsed_ns > o->deadline_ns)
                return 0;
        if (round > 1 && joining(c) == 0)
            return round;
        cluster_idle(c, MS(50));
    }
    return 0;
}

static void a_job_begins_whatever_its_deadline(void)
{
    static const struct { uint32_t nodes; double loss; uint32_t most; } cases[] = {
        {2, 0, 8}, {2, 0.1, 16}, {5, 0, 14}, {5, 0.1, 80}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct sim_config config = {.nodes = cases[k].nodes,
                                    .seed = test_seed() + k,
                                    .go_on_isolated = true, /* five cover a third of it */
                                    .rate_bps = 6000000, /* the model takes 1.6 s to one node */
                                    .link = {.delay = MS(2), .loss = cases[k].loss}};
        sleet_round_options o = {.size = sizeof o, .deadline_ns = SEC(1)};
        cluster *c = cluster_new(&config, counts, 2);
        REQUIRE(c);
        cluster_idle(c, SEC(4));
        uint32_t rounds = rounds_to_begin(c, &o, cases[k].most);
        CHECK(rounds > 2); /* it was not taken in one */
        CHECK(ledger_balances(c));
        cluster_free(c);
    }
}

TEST_SUITE(collect) = {
    TEST(a_job_begins_whatever_its_deadline),
    TEST_END,
};
