/* The pace of data to each peer and its breaker: a slow or dead peer costs the
 * others nothing, gets little itself, and is back soon after it speaks. */
#include "helpers.h"

#define NODES 4
#define RATE 100000000u
#define SLOW 2u         /* the odd one */
#define CHECKED 0u      /* whose sending is looked at */
#define PATIENCE MS(20) /* least patience of lib/core/path, and the usual one on these links */

/* 2 MB, more than leaves within any deadline here. */
static const uint64_t counts[] = {500000};

struct load {
    cluster *cluster;
    sleet_duration deadline;
    bool overflows;
    uint32_t quiet; /* its trainer starts no more */
    uint64_t steps;
    struct load_node {
        struct load *load;
        uint32_t node;
    } nodes[NODES];
};

static void begin(sim *s, void *arg)
{
    struct load_node *n = arg;
    sleet_round_options options = {.deadline_ns = n->load->deadline};
    if (sim_engine(s, n->node) && n->node != n->load->quiet)
        CHECK_EQ(cluster_start(n->load->cluster, n->node, &options), SLEET_OK);
}

static void reported(cluster *c, uint32_t node, void *arg)
{
    struct load *l = arg;
    sim_at(cluster_sim(c), time_add(sim_now(cluster_sim(c)), MS(1)), begin, &l->nodes[node]);
}

/* The socket of the slow node drops something every few milliseconds. */
static void overflow(sim *s, void *arg)
{
    struct load *l = arg;
    if (!l->overflows)
        return;
    engine_overflow(sim_engine(s, SLOW), 1, sim_now(s));
    sim_kick(s, SLOW);
    sim_at(s, time_add(sim_now(s), MS(5)), overflow, l);
}

/* Trainers that compute for 1 ms on a set that is too large for the deadline. */
static bool start_load(struct load *l, uint32_t nodes, sleet_duration deadline)
{
    struct sim_config config = {
        .nodes = nodes, .seed = test_seed(), .link = CLEAN_LINK, .rate_bps = RATE};
    *l = (struct load){
        .cluster = ready_cluster(&config, counts, 1), .deadline = deadline, .quiet = SIM_ALL};
    if (!l->cluster)
        return false;
    cluster_on_report(l->cluster, reported, l);
    for (uint32_t i = 0; i < nodes; i++) {
        l->nodes[i] = (struct load_node){l, i};
        begin(cluster_sim(l->cluster), &l->nodes[i]);
    }
    return true;
}

static void pass(struct load *l, sleet_duration d)
{
    sim *s = cluster_sim(l->cluster);
    bool over = false;
    sleet_time end = time_add(sim_now(s), d);
    while (!over && sim_step(s)) {
        l->steps++;
        over = !time_before(sim_now(s), end);
    }
}

/* What node 0 knows of `node`, another one. */
static engine_peer peer(cluster *c, uint32_t node)
{
    engine_peer peers[NODES - 1];
    engine_get_peers(sim_engine(cluster_sim(c), CHECKED), peers, NODES - 1,
                     sim_now(cluster_sim(c)));
    return peers[node - 1];
}

/* Datagrams from node 0 to each of the others within a second under load. */
static void measure(bool overflows, uint64_t sent[NODES], uint64_t *steps)
{
    struct load l;
    REQUIRE(start_load(&l, NODES, MS(100)));
    l.overflows = overflows;
    overflow(cluster_sim(l.cluster), &l);
    pass(&l, SEC(1));
    for (uint32_t i = 1; i < NODES; i++)
        sent[i] = peer(l.cluster, i).sent;
    l.steps = 0;
    pass(&l, SEC(1));
    for (uint32_t i = 1; i < NODES; i++) {
        engine_peer p = peer(l.cluster, i);
        sent[i] = p.sent - sent[i];
        CHECK(!p.stopped);
        CHECK_EQ(p.rate_bps < RATE, overflows && i == SLOW);
    }
    *steps = l.steps;
    l.overflows = false;
    CHECK_EQ(cluster_overdue(l.cluster), 0);
    pass(&l, MS(200));
    CHECK_EQ(peer(l.cluster, SLOW).rate_bps, RATE);
    cluster_free(l.cluster);
}

static void a_slow_receiver_slows_only_its_own_flow(void)
{
    uint64_t usual[NODES] = {0}, now[NODES] = {0}, steps, steps_now;
    measure(false, usual, &steps);
    measure(true, now, &steps_now);
    for (uint32_t i = 1; i < NODES; i++)
        CHECK(usual[i] > 1000);
    CHECK(now[SLOW] < usual[SLOW] / 3);
    for (uint32_t i = 1; i < NODES; i++)
        CHECK(i == SLOW || now[i] > usual[i]); /* they share what the slow one leaves */
    CHECK(now[1] + now[2] + now[3] > (usual[1] + usual[2] + usual[3]) * 9 / 10);
    CHECK(steps_now < 2 * steps); /* nobody polls while it waits for its own pace */
}

/* Sent at full rate in the time until it is silent, and until the breaker opens; some
 * summaries and pings on top. */
static uint64_t most_after_death(void)
{
    uint64_t a_patience = RATE / 8 * (uint64_t)PATIENCE / SEC(1) / ENGINE_DATAGRAM_MAX;
    return 2 * a_patience + 64 + ENGINE_BURST_MAX + 60;
}

static void a_dead_peer_gets_little(void)
{
    struct load l;
    REQUIRE(start_load(&l, 2, SEC(1)));
    pass(&l, MS(20));
    sim_kill(cluster_sim(l.cluster), 1);
    uint64_t before = peer(l.cluster, 1).sent;
    pass(&l, MS(300));
    engine_peer p = peer(l.cluster, 1);
    CHECK(p.alive); /* nobody has said otherwise yet */
    CHECK(p.stopped);
    CHECK(p.sent - before < most_after_death());
    before = p.sent;
    l.steps = 0;
    pass(&l, SEC(5));
    p = peer(l.cluster, 1);
    CHECK(!p.alive && !p.stopped);
    CHECK(p.sent - before < 100); /* pings, and what each round says of itself */
    CHECK(l.steps < 50000);
    cluster_free(l.cluster);
}

static void cut(cluster *c, uint32_t node, bool down)
{
    struct sim_link link = CLEAN_LINK;
    link.down = down;
    sim_set_link(cluster_sim(c), node, SIM_ALL, &link);
    sim_set_link(cluster_sim(c), SIM_ALL, node, &link);
}

static void a_peer_that_answers_is_back_at_full_pace(void)
{
    struct load l;
    REQUIRE(start_load(&l, NODES, SEC(2)));
    pass(&l, MS(100));
    CHECK_EQ(peer(l.cluster, SLOW).rate_bps, RATE);
    cut(l.cluster, SLOW, true);
    pass(&l, MS(400));
    CHECK_EQ(peer(l.cluster, SLOW).rate_bps, RATE / 64);
    CHECK(peer(l.cluster, SLOW).alive);
    CHECK_EQ(peer(l.cluster, 1).rate_bps, RATE);
    cut(l.cluster, SLOW, false);
    for (int i = 0; i < 60 && peer(l.cluster, SLOW).silent > MS(5); i++)
        pass(&l, MS(1));
    CHECK(!peer(l.cluster, SLOW).stopped);
    uint64_t before = peer(l.cluster, SLOW).sent;
    pass(&l, 16 * MS(10)); /* 16 round trips, each counted as 10 ms */
    CHECK_EQ(peer(l.cluster, SLOW).rate_bps, RATE);
    CHECK(peer(l.cluster, SLOW).sent > before + 100);
    cluster_free(l.cluster);
}

/* Only the way to node 0 is dead: it hears nothing and stops, though all it sends arrives. */
static void one_deaf_direction_stops_the_flow(void)
{
    struct load l;
    struct sim_link down = {.down = true};
    REQUIRE(start_load(&l, NODES, SEC(2)));
    pass(&l, MS(100));
    sim_set_link(cluster_sim(l.cluster), SLOW, CHECKED, &down);
    pass(&l, MS(400));
    CHECK(peer(l.cluster, SLOW).stopped);
    CHECK(!peer(l.cluster, 1).stopped && !peer(l.cluster, 3).stopped);
    cluster_free(l.cluster);
}

/* A trainer that computes for long has nothing to say; its daemon answers when asked. */
static void a_quiet_peer_is_not_a_silent_one(void)
{
    struct load l;
    REQUIRE(start_load(&l, 2, MS(300)));
    pass(&l, MS(100));
    l.quiet = 1;
    engine_cancel(sim_engine(cluster_sim(l.cluster), 1), cluster_set(l.cluster, 1),
                  sim_now(cluster_sim(l.cluster)));
    uint64_t before = peer(l.cluster, 1).sent;
    for (int i = 0; i < 100; i++) {
        pass(&l, MS(10));
        CHECK(!peer(l.cluster, 1).stopped);
        CHECK_EQ(peer(l.cluster, 1).rate_bps, RATE);
    }
    CHECK(peer(l.cluster, 1).sent > before + 1000);
    cluster_free(l.cluster);
}

TEST_SUITE(flow) = {
    TEST(a_slow_receiver_slows_only_its_own_flow),  TEST(a_dead_peer_gets_little),
    TEST(a_peer_that_answers_is_back_at_full_pace), TEST(one_deaf_direction_stops_the_flow),
    TEST(a_quiet_peer_is_not_a_silent_one),         TEST_END,
};
