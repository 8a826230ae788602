/* Losses that aim at one kind of datagram: rounds go on, and end by their deadline. */
#include "forge.h"

enum aim { SUMMARIES, HOLES, ENDS, PINGS, ONE_TENSOR };

static bool hit(const struct sim_datagram *d, enum aim aim)
{
    static struct opened o;
    struct wire_data w;
    struct wire_summary m;
    if (!forge_open(d, &o))
        return false;
    bool data = o.head.type == WIRE_DATA && wire_data_decode(&w, o.body, o.len) == SLEET_OK;
    bool summary =
        o.head.type == WIRE_SUMMARY && wire_summary_decode(&m, o.body, o.len) == SLEET_OK;
    switch (aim) {
    case SUMMARIES:
        return summary;
    case HOLES:
        return summary && m.bits > 0;
    case ENDS:
        return (data && w.flags & DATA_LAST) || (summary && m.flags & SUMMARY_SCATTER_OVER);
    case PINGS:
        return o.head.type == WIRE_PING;
    case ONE_TENSOR:
        return data && w.payload_len == 4 * forge_counts[1];
    }
    return false;
}

static void take_away(sim *s, const struct sim_datagram *d, void *arg)
{
    if (!hit(d, *(enum aim *)arg))
        sim_relay(s, d, 0);
}

/* The least coverage of a node over some rounds in which that is lost, with `loss` of all. */
static double without(enum aim aim, double loss, sleet_duration *longest)
{
    sleet_rng rng = {test_seed()};
    struct sim_link lossy = CLEAN_LINK, clean = CLEAN_LINK;
    sleet_round_options options = {.deadline_ns = MS(500)};
    cluster *c = forged_cluster(false);
    double least = 1;
    bool together = false;
    if (!CHECK(c != NULL))
        return 0;
    lossy.loss = loss;
    sim_set_link(cluster_sim(c), SIM_ALL, SIM_ALL, &lossy);
    sim_on_datagram(cluster_sim(c), take_away, &aim);
    *longest = 0;
    for (unsigned round = 0; round < 30; round++) {
        fill_grid(c, &rng);
        CHECK(cluster_round(c, &options));
        for (uint32_t i = 0; i < FORGE_NODES; i++) {
            const struct cluster_report *r = cluster_report(c, i);
            sleet_duration d = time_since(r->reported_at, r->started_at);
            least = fmin(least, r->report.coverage);
            *longest = d > *longest ? d : *longest;
        }
        cluster_idle(c, MS(50));
    }
    sim_on_datagram(cluster_sim(c), NULL, NULL);
    sim_set_link(cluster_sim(c), SIM_ALL, SIM_ALL, &clean);
    for (int i = 0; i < 20 && !together; i++) {
        cluster_idle(c, MS(300));
        together = exact_round(c, &rng);
    }
    CHECK(together);
    finish(c);
    return least;
}

static void lost_control_stops_nothing(void)
{
    sleet_duration longest;
    CHECK(without(SUMMARIES, 0, &longest) == 1.0);
    CHECK(longest < MS(100));
    CHECK(without(ENDS, 0, &longest) > 0.5); /* the last to each owner, and the word that it was */
    CHECK(without(HOLES, 0.1, &longest) > 0.4); /* nothing is repaired */
    CHECK(without(ENDS, 0.1, &longest) > 0.4);
    CHECK(without(PINGS, 0, &longest) > 0.3); /* rounds go on while data comes */
}

/* A tensor that never gets through costs its own coverage, the other is whole. */
static void one_lost_tensor_starves_no_other(void)
{
    sleet_duration longest;
    double least = without(ONE_TENSOR, 0, &longest);
    double rest = (double)(forge_counts[0] + forge_counts[1] / FORGE_NODES) /
                  (double)(forge_counts[0] + forge_counts[1]);
    CHECK(least < 1 && least > rest - 0.001);
}

/* A path that swallows long datagrams, and says nothing: no data, but the members stay, the
 * calls end, and all is well when the path is. */
static void a_path_of_short_datagrams_keeps_the_members(void)
{
    sleet_rng rng = {test_seed()};
    struct sim_link narrow = CLEAN_LINK, clean = CLEAN_LINK;
    sleet_round_options options = {.deadline_ns = MS(500)};
    cluster *c = forged_cluster(false);
    bool together = false;
    REQUIRE(c);
    narrow.mtu_bytes = 600;
    sim_set_link(cluster_sim(c), SIM_ALL, 2, &narrow);
    for (int round = 0; round < 20; round++) {
        fill_grid(c, &rng);
        CHECK(cluster_round(c, &options));
        cluster_idle(c, MS(300));
        CHECK_EQ(engine_nodes_alive(sim_engine(cluster_sim(c), 0), sim_now(cluster_sim(c))),
                 FORGE_NODES);
    }
    sim_set_link(cluster_sim(c), SIM_ALL, 2, &clean);
    for (int i = 0; i < 20 && !together; i++) {
        cluster_idle(c, MS(300));
        together = exact_round(c, &rng);
    }
    CHECK(together);
    finish(c);
}

TEST_SUITE(aimed) = {
    TEST(lost_control_stops_nothing),
    TEST(one_lost_tensor_starves_no_other),
    TEST(a_path_of_short_datagrams_keeps_the_members),
    TEST_END,
};
