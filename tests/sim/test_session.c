/* Sealed sessions between simulated nodes: they come up and last whatever the network does,
 * and nobody else gets anything out of a node. */
#include "helpers.h"
#include "wire/handshake.h"
#include <malloc.h>

#define PERIOD SEC(1) /* of pings */

static const uint64_t counts[] = {2000};

/* ---- what is seen from outside -------------------------------------------------- */

/* Logged events of all nodes, by name. */
static struct logged {
    unsigned joined, moved, expired, refused, session_refused, handshake_refused;
} logged;

static void count_event(void *arg, log_level level, log_fault fault, const char *event,
                        const log_field *fields, int n)
{
    (void)arg, (void)level, (void)fault, (void)fields, (void)n;
    logged.joined += strcmp(event, "member-joined") == 0;
    logged.moved += strcmp(event, "member-moved") == 0;
    logged.expired += strcmp(event, "session-expired") == 0;
    logged.refused += strcmp(event, "hello-refused") == 0;
    logged.session_refused += strcmp(event, "session-refused") == 0;
    logged.handshake_refused += strcmp(event, "handshake-refused") == 0;
}

/* The session indices in one direction since the last reset. */
struct watch {
    uint32_t index[8], n, hellos;
};
static struct watch watch[2][2];

static uint32_t index_of(const uint8_t *dgram)
{
    struct wire_header h = {0};
    datagram_peek(dgram, WIRE_HEADER_BYTES + WIRE_TAG_BYTES, &h);
    return h.index;
}

static void note(sim *s, const struct sim_datagram *d, void *arg)
{
    struct watch *w = &watch[d->from][d->to];
    uint32_t index = index_of(d->data), i = 0;
    uint8_t type = d->data[0] & 15;
    (void)arg;
    w->hellos += type == WIRE_HELLO;
    if (type == WIRE_PING || type == WIRE_DATA) {
        while (i < w->n && w->index[i] != index)
            i++;
        if (i == w->n && w->n < 8)
            w->index[w->n++] = index;
    }
    sim_relay(s, d, 0);
}

static struct sim_config config(uint32_t nodes, double loss)
{
    memset(&logged, 0, sizeof logged);
    memset(watch, 0, sizeof watch);
    return (struct sim_config){.nodes = nodes,
                               .seed = test_seed(),
                               .sealed = true,
                               .link = {.delay = MS(5), .loss = loss},
                               .log = {.emit = count_event}};
}

static uint32_t alive(cluster *c, uint32_t node)
{
    sim *s = cluster_sim(c);
    return engine_nodes_alive(sim_engine(s, node), sim_now(s));
}

static bool all_alive(cluster *c)
{
    for (uint32_t i = 0; i < nodes_of(c); i++)
        if (alive(c, i) != nodes_of(c))
            return false;
    return true;
}

static engine_counters counters(cluster *c, uint32_t node)
{
    engine_counters k;
    engine_get_counters(sim_engine(cluster_sim(c), node), &k);
    return k;
}

static engine_peer peer_of(cluster *c, uint32_t node)
{
    engine_peer p = {0};
    engine_get_peers(sim_engine(cluster_sim(c), node), &p, 1, sim_now(cluster_sim(c)));
    return p;
}

/* Datagrams that reached the node and were of no use to it. */
static uint64_t useless(cluster *c, uint32_t node)
{
    engine_counters k = counters(c, node);
    return k.corrupt + k.foreign + k.duplicate;
}

static uint64_t useless_all(cluster *c)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < nodes_of(c); i++)
        n += useless(c, i);
    return n;
}

/* ---- coming up ----------------------------------------------------------------------- */

static void a_sealed_cluster_averages(void)
{
    struct sim_config cfg = config(4, 0);
    cluster *c = ready_cluster(&cfg, counts, 1);
    REQUIRE(c);
    for (uint32_t i = 0; i < 4; i++)
        for (uint64_t k = 0; k < cluster_elements(c); k++)
            cluster_values(c, i)[k] = (float)i;
    CHECK(cluster_round(c, NULL));
    CHECK(all_complete(c));
    CHECK(cluster_values(c, 2)[7] == 1.5f);
    CHECK(identical(c));
    for (uint32_t i = 1; i < 4; i++)
        CHECK(sim_node_id(cluster_sim(c), i - 1) < sim_node_id(cluster_sim(c), i));
    CHECK(ledger_balances(c));
    cluster_free(c);
}

static void all_sessions_come_up_under_loss(void)
{
    for (uint32_t seed = 0; seed < test_repeats(20); seed++) {
        struct sim_config cfg = config(8, 0.3);
        cfg.seed += seed;
        if (seed % 2) { /* and in any order, some twice, some broken */
            cfg.link.jitter = MS(300);
            cfg.link.duplicate = cfg.link.corrupt = 0.1;
        }
        cluster *c = cluster_new(&cfg, counts, 1);
        REQUIRE(c);
        cluster_idle(c, seed % 2 ? SEC(8) : SEC(3));
        for (int i = 0; i < 10 && seed % 2 == 0 && !all_alive(c); i++) /* one may be silent for 2.5 s by chance */
            cluster_idle(c, MS(100));
        CHECK(seed % 2 || all_alive(c)); /* of so few pings none may have come just now */
        CHECK_EQ(logged.joined, 8 * 7); /* each once: both greet, one session comes of it */
        CHECK(ledger_balances(c));
        sim_set_link(cluster_sim(c), SIM_ALL, SIM_ALL, &CLEAN_LINK);
        cluster_idle(c, SEC(6));
        uint64_t before = useless_all(c);
        cluster_idle(c, SEC(5)); /* every node has the keys that the others seal with */
        CHECK_EQ(useless_all(c), before);
        CHECK(all_alive(c));
        cluster_free(c);
    }
}

/* Both greet in the same instant on equal links: of two handshakes one pair of keys remains. */
static void one_key_is_left_where_both_begin(void)
{
    for (uint32_t seed = 0; seed < test_repeats(20); seed++) {
        struct sim_config cfg = config(2, seed % 2 ? 0.3 : 0);
        cfg.seed += seed;
        cluster *c = cluster_new(&cfg, counts, 1);
        REQUIRE(c);
        sim_on_datagram(cluster_sim(c), note, NULL);
        cluster_idle(c, SEC(3));
        CHECK(watch[0][1].hellos && watch[1][0].hellos);
        sim_set_link(cluster_sim(c), SIM_ALL, SIM_ALL, &CLEAN_LINK);
        cluster_idle(c, SEC(40)); /* the other pair is received with so long */
        CHECK_EQ(alive(c, 0), 2);
        memset(watch, 0, sizeof watch);
        uint64_t before = useless(c, 0) + useless(c, 1);
        cluster_idle(c, SEC(10));
        CHECK_EQ(watch[0][1].n, 1);
        CHECK_EQ(watch[1][0].n, 1);
        CHECK_EQ(useless(c, 0) + useless(c, 1), before);
        cluster_free(c);
    }
}

/* A node that lists nobody comes back: who knows it finds that out by its silence. */
static void a_forgotten_session_is_found_out(void)
{
    struct sim_config cfg = config(2, 0);
    cfg.seeds = 1; /* node 1 lists node 0, which lists nobody */
    cluster *c = cluster_new(&cfg, counts, 1);
    REQUIRE(c);
    cluster_idle(c, SEC(5));
    CHECK(all_alive(c));
    sim_restart(cluster_sim(c), 0);
    CHECK_EQ(alive(c, 0), 1);
    cluster_idle(c, 2 * PERIOD + MS(100));
    CHECK(all_alive(c));
    CHECK_EQ(logged.joined, 4);
    cluster_free(c);
}

/* ---- new keys ---------------------------------------------------------------------------- */

static struct trainer {
    cluster *cluster;
    uint32_t node;
} trainers[2];

static void start_round(sim *s, void *arg)
{
    struct trainer *t = arg;
    (void)s;
    CHECK_EQ(cluster_start(t->cluster, t->node, NULL), SLEET_OK);
}

/* It computes for 20 ms. */
static void start_again(cluster *c, uint32_t node, void *arg)
{
    (void)arg;
    sim_at(cluster_sim(c), time_add(sim_now(cluster_sim(c)), MS(20)), start_round, &trainers[node]);
}

/* Two trainers average without a pause while the keys change three times. */
static void new_keys_under_loss_cost_nothing(void)
{
    struct sim_config cfg = config(2, 0.3);
    cluster *c = cluster_new(&cfg, counts, 1);
    sleet_duration quiet = 0, longest = 0;
    uint64_t heard = 0;
    REQUIRE(c);
    cluster_idle(c, SEC(5));
    sim_on_datagram(cluster_sim(c), note, NULL);
    cluster_on_report(c, start_again, NULL);
    for (uint32_t i = 0; i < 2; i++) {
        trainers[i] = (struct trainer){c, i};
        start_round(cluster_sim(c), &trainers[i]);
    }
    cluster_idle(c, SEC(1)); /* at first their groups differ: foreign as well */
    uint64_t before = useless(c, 0) + useless(c, 1);
    while (sim_now(cluster_sim(c)).ns < SEC(400)) {
        cluster_idle(c, MS(5));
        uint64_t in = counters(c, 0).accepted + counters(c, 1).accepted;
        quiet = in == heard ? quiet + MS(5) : 0;
        longest = quiet > longest ? quiet : longest;
        heard = in;
        CHECK(alive(c, 0) == 2 && alive(c, 1) == 2);
    }
    CHECK(watch[0][1].n >= 4 && watch[1][0].n >= 4); /* keys */
    CHECK(longest <= MS(400)); /* a few datagrams in a row are lost now and then */
    CHECK_EQ(logged.joined, 2);
    CHECK_EQ(logged.expired, 0);
    /* HELLO_ACKs of repeated HELLOs are; nothing sealed was. */
    CHECK(useless(c, 0) + useless(c, 1) - before <= 2);
    CHECK_EQ(counters(c, 0).corrupt + counters(c, 1).corrupt, 0);
    cluster_free(c);
}

/* Longer than keys last: frozen, or cut off.  Then both meet again, in the same session. */
static void old_keys_are_replaced_after_a_long_silence(void)
{
    for (unsigned frozen = 0; frozen < 2; frozen++) {
        struct sim_config cfg = config(3, 0);
        struct sim_link down = {.down = true};
        cluster *c = cluster_new(&cfg, counts, 1);
        REQUIRE(c);
        sim *s = cluster_sim(c);
        cluster_idle(c, SEC(5));
        CHECK(all_alive(c));
        CHECK_EQ(logged.joined, 6);
        if (frozen)
            sim_freeze(s, 2, true);
        sim_set_link(s, 2, SIM_ALL, frozen ? &cfg.link : &down);
        sim_set_link(s, SIM_ALL, 2, frozen ? &cfg.link : &down);
        cluster_idle(c, SEC(400));
        CHECK_EQ(alive(c, 0), 2);
        if (frozen)
            sim_freeze(s, 2, false);
        sim_set_link(s, SIM_ALL, SIM_ALL, &cfg.link);
        cluster_idle(c, SEC(3));
        CHECK(all_alive(c));
        uint64_t before = useless_all(c);
        cluster_idle(c, SEC(5));
        CHECK_EQ(useless_all(c), before);
        CHECK_EQ(logged.expired, 4);
        cluster_free(c);
    }
}

/* ---- replay --------------------------------------------------------------------------------- */

#define KEPT_MAX 20000u

static struct sim_datagram *kept;
static uint32_t kept_n;
static bool keeping;

static void keep(sim *s, const struct sim_datagram *d, void *arg)
{
    (void)arg;
    if (d->to == 1 && keeping && kept_n < KEPT_MAX)
        kept[kept_n++] = *d;
    sim_relay(s, d, 0);
}

static uint32_t kept_hellos(void)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < kept_n; i++)
        n += (kept[i].data[0] & 15) == WIRE_HELLO;
    return n;
}

/* All that node 1 was ever sent comes again, first to last.  A HELLO may be answered, which
 * comes to nothing; the rest is dropped. */
static void comes_again(cluster *c)
{
    keeping = false;
    cluster_idle(c, MS(20)); /* all have arrived */
    uint64_t before = counters(c, 1).accepted, received = peer_of(c, 1).received;
    unsigned joined = logged.joined;
    sim *s = cluster_sim(c);
    for (uint32_t i = 0; i < kept_n; i++)
        engine_recv(sim_engine(s, 1), &kept[i].seen, kept[i].data, kept[i].len, sim_now(s));
    sim_kick(s, 1);
    CHECK(counters(c, 1).accepted - before <= kept_hellos());
    CHECK_EQ(peer_of(c, 1).received, received);
    keeping = true;
    cluster_idle(c, MS(100));
    CHECK_EQ(logged.joined, joined);
    CHECK(all_alive(c));
}

static void captured_traffic_is_worth_nothing(void)
{
    struct sim_config cfg = config(2, 0);
    cluster *c = cluster_new(&cfg, counts, 1);
    kept = calloc(KEPT_MAX, sizeof *kept);
    kept_n = 0;
    keeping = true;
    REQUIRE(c && kept);
    sim_on_datagram(cluster_sim(c), keep, NULL);
    cluster_idle(c, SEC(5));
    for (int i = 0; i < 600; i++) /* more datagrams than the window is wide */
        CHECK(cluster_round(c, NULL));
    CHECK(kept_n > 8192 / 2);
    comes_again(c);
    cluster_idle(c, SEC(130)); /* other keys */
    comes_again(c);
    cluster_idle(c, SEC(60)); /* the first ones are void */
    comes_again(c);
    sim_restart(cluster_sim(c), 1);
    CHECK_EQ(cluster_register(c, 1), 0);
    cluster_idle(c, SEC(5));
    CHECK(all_alive(c));
    comes_again(c); /* also what its former life was sent */
    CHECK(cluster_round(c, NULL) && cluster_round(c, NULL));
    free(kept);
    cluster_free(c);
}

/* ---- addresses ---------------------------------------------------------------------------------- */

static void a_changed_address_keeps_the_session(void)
{
    struct sim_config cfg = config(2, 0);
    cfg.seeds = 1;
    cluster *c = cluster_new(&cfg, counts, 1);
    REQUIRE(c);
    sim_rebind(cluster_sim(c), 1);
    cluster_idle(c, SEC(5));
    CHECK(all_alive(c));
    for (unsigned i = 1; i <= 10; i++) {
        sim_rebind(cluster_sim(c), 1);
        for (unsigned k = 0; k < 300; k++) {
            cluster_idle(c, MS(100));
            CHECK(all_alive(c));
        }
        CHECK_EQ(logged.moved, i);
    }
    for (unsigned i = 0; i < 6; i++)
        CHECK(cluster_round(c, NULL));
    CHECK(all_complete(c));
    CHECK_EQ(logged.joined, 2);
    cluster_free(c);
}

TEST_SUITE(session) = {
    TEST(a_sealed_cluster_averages),
    TEST(all_sessions_come_up_under_loss),
    TEST(one_key_is_left_where_both_begin),
    TEST(a_forgotten_session_is_found_out),
    TEST(new_keys_under_loss_cost_nothing),
    TEST(old_keys_are_replaced_after_a_long_silence),
    TEST(captured_traffic_is_worth_nothing),
    TEST(a_changed_address_keeps_the_session),
    TEST_END,
};
