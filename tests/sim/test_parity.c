/* Parity of commits, and of contributions in exact rounds: fewer round trips where they are long, no
 * other result, nothing where nothing is lost, and no power for who forges it. */
#include "forge.h"
#include "protect/parity.h"
#include "wire/parity.h"
#include <stdlib.h>

#define NODES 4
#define ROUND_TRIP MS(80)

static const uint64_t counts[] = {400000, 17};

struct outcome {
    double trips;   /* mean time of a round, in round trips */
    double longest; /* likewise */
    uint64_t rebuilt, parity, repaired;
    uint64_t again; /* datagrams sent because they were asked for */
    uint64_t digest; /* of all results */
};

static struct sim_config far_nodes(double loss, bool parity)
{
    return (struct sim_config){.nodes = NODES,
                               .seed = test_seed(),
                               .rate_bps = 1000000000,
                               .parity_off = !parity,
                               .link = {.delay = ROUND_TRIP / 2, .loss = loss}};
}

static void count_repairs(sim *s, const struct sim_datagram *d, void *arg)
{
    uint8_t phase = d->data[WIRE_HEADER_BYTES + 16];
    struct outcome *o = arg;
    o->again += (d->data[0] & 15) == WIRE_DATA && (phase == PHASE_REPAIR || phase == PHASE_SCATTER_REPAIR);
    sim_relay(s, d, 0);
}

static void note(struct outcome *o, cluster *c)
{
    for (uint32_t i = 0; i < NODES; i++) {
        const struct cluster_report *r = cluster_report(c, i);
        double trips = (double)time_since(r->reported_at, r->started_at) / (double)ROUND_TRIP;
        o->trips += trips;
        o->longest = trips > o->longest ? trips : o->longest;
        o->repaired += r->report.fragments_repaired;
    }
    o->digest = XXH3_64bits_withSeed(cluster_values(c, 0), cluster_elements(c) * sizeof(float), o->digest);
}

static struct outcome rounds_of(const struct sim_config *config, uint32_t rounds, bool exact)
{
    struct outcome o = {0};
    sleet_rng rng = {config->seed};
    sleet_round_options options = {.deadline_ns = SEC(10), .exact = exact};
    engine_counters before = {0};
    cluster *c = ready_cluster(config, counts, 2);
    if (!CHECK(c != NULL))
        return o;
    for (uint32_t i = 0; i < rounds + 3; i++) { /* three to measure what is lost */
        if (i == 3) {
            before = all_counters(c);
            sim_on_datagram(cluster_sim(c), count_repairs, &o);
        }
        fill_grid(c, &rng);
        CHECK(cluster_round(c, &options));
        CHECK(identical(c));
        CHECK(!exact || all_complete(c));
        if (i >= 3)
            note(&o, c);
        cluster_idle(c, MS(200));
    }
    o.trips /= rounds * NODES;
    o.rebuilt = all_counters(c).rebuilt - before.rebuilt;
    o.parity = all_counters(c).parity_out - before.parity_out;
    finish(c);
    return o;
}

/* Of both kinds with the same seeds.  Exact rounds have the same bits, too. */
static void compare(double loss, bool exact)
{
    uint32_t rounds = test_repeats(8) + 2;
    for (uint32_t i = 0; i < test_repeats(11) / 5 + 1; i++) {
        struct sim_config without = far_nodes(loss, false), with = far_nodes(loss, true);
        without.seed = with.seed = test_seed() + i;
        struct outcome a = rounds_of(&without, rounds, exact), b = rounds_of(&with, rounds, exact);
        printf("  80 ms, %g %% lost%s: a round takes %.2f round trips with parity (at most %.2f; %" PRIu64
               " rebuilt, %" PRIu64 " sent again), by repair alone %.2f (at most %.2f; %" PRIu64 " sent again)\n",
               100 * loss, exact ? ", exact" : "", b.trips, b.longest, b.rebuilt, b.again, a.trips, a.longest, a.again);
        CHECK(a.parity == 0 && a.rebuilt == 0);
        CHECK(b.rebuilt > 0);
        CHECK(b.trips < a.trips - 1);
        CHECK(b.again < a.again / 4); /* what parity brings is not asked for */
        CHECK(!exact || a.digest == b.digest);
    }
}

static void results_take_fewer_round_trips(void)
{
    compare(0.05, false);
    compare(0.1, false);
}

static void contributions_take_fewer_in_exact_rounds(void)
{
    compare(0.05, true);
}

/* Several fragments a datagram, of lengths that differ: all have the same bits as ever. */
static void codecs_are_no_affair_of_parity(void)
{
    static const struct { sleet_codec codec; sleet_payload payload; } cases[] = {
        {SLEET_CODEC_BF16, SLEET_MODEL}, {SLEET_CODEC_I8, SLEET_MODEL},
        {SLEET_CODEC_ROT2, SLEET_GRADIENT}, {SLEET_CODEC_TOPK, SLEET_GRADIENT}};
    for (uint32_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct sim_config config = far_nodes(0.05, true);
        config.codec = cases[i].codec;
        config.kind.payload = cases[i].payload;
        struct outcome o = rounds_of(&config, 5, true);
        printf("  codec %d: %" PRIu64 " rebuilt, %" PRIu64 " sent again\n", (int)cases[i].codec, o.rebuilt, o.again);
        CHECK(o.rebuilt > 0);
    }
}

static void nothing_is_sent_where_nothing_is_lost(void)
{
    struct sim_config config = far_nodes(0, true);
    engine_peer peers[NODES];
    sleet_rng rng = {test_seed()};
    cluster *c = ready_cluster(&config, counts, 2);
    REQUIRE(c);
    for (uint32_t i = 0; i < 6; i++) {
        fill_grid(c, &rng);
        CHECK(cluster_round(c, &(sleet_round_options){.exact = i % 2}));
        CHECK(all_complete(c) && identical(c));
        cluster_idle(c, MS(200));
    }
    CHECK_EQ(all_counters(c).parity_out, 0);
    CHECK_EQ(engine_get_peers(sim_engine(cluster_sim(c), 0), peers, NODES, sim_now(cluster_sim(c))), NODES - 1);
    for (uint32_t i = 0; i < NODES - 1; i++) {
        CHECK_EQ(peers[i].protection.reason, PROTECT_CLEAN);
        CHECK_EQ(peers[i].loss, 0);
    }
    finish(c);
}

/* What is told of the path is what the link does, and the decision follows. */
static void loss_is_told_and_decided_upon(void)
{
    struct sim_config config = far_nodes(0.1, true);
    engine_peer peers[NODES];
    sleet_rng rng = {test_seed()};
    cluster *c = ready_cluster(&config, counts, 2);
    REQUIRE(c);
    for (uint32_t i = 0; i < 6; i++) {
        fill_grid(c, &rng);
        CHECK(cluster_round(c, &(sleet_round_options){.deadline_ns = SEC(10)}));
        cluster_idle(c, MS(200));
    }
    engine_get_peers(sim_engine(cluster_sim(c), 0), peers, NODES, sim_now(cluster_sim(c)));
    for (uint32_t i = 0; i < NODES - 1; i++) {
        CHECK_NEAR(peers[i].loss, 0.1, 0.04);
        CHECK_NEAR(peers[i].loss_told, 0.1, 0.04);
        CHECK_EQ(peers[i].protection.reason, PROTECT_FAR);
        CHECK(peers[i].protection.rows >= 8);
        CHECK(peers[i].protection.repair > peers[i].protection.parity);
    }
    finish(c);
}

/* ---- forgery ---- */

/* What node 1's forged parity holds: its own result, as it is; node 0's or 2's with other values; noise. */
enum forgery { TRUE_RESULT, OTHERS_RESULT, NOISE, FORGERIES };

struct forger {
    enum forgery kind;
    uint32_t set; /* hash */
    uint64_t forged;
    struct sim_datagram last[FORGE_NODES]; /* of node 1 to each, whose next counter is free */
    bool free[FORGE_NODES];
    sleet_rng rng;
};

/* Parity of a group of one from node 1 to where d goes: the block in it is rebuilt at once. */
static void forge_parity(sim *s, struct forger *f, const struct sim_datagram *d, const struct wire_data *frame)
{
    static uint8_t payload[WIRE_PAYLOAD_MAX], block[WIRE_BLOCK_MAX], row[WIRE_BLOCK_MAX];
    static struct sim_datagram made;
    struct opened o;
    struct wire_data told = *frame;
    struct wire_parity p = {.group = frame->group, .set = f->set, .round = frame->round,
                            .phase = PHASE_GATHER_PARITY, .rows = 8, .depth = 1, .blocks = 1, .bytes = row};
    made = f->last[d->to];
    if (!f->free[d->to] || !forge_open(&made, &o))
        return;
    memcpy(payload, frame->payload, frame->payload_len);
    for (uint32_t i = 0; f->kind == OTHERS_RESULT && i + 4 <= frame->payload_len; i += 4)
        memcpy(payload + i, &(float){0.2f}, 4);
    p.len = (uint32_t)wire_block_encode(block, frame->fragment, &told, payload, frame->payload_len);
    for (uint32_t i = rng_below(&f->rng, 20); f->kind == NOISE && i < p.len; i += 1 + rng_below(&f->rng, 30))
        block[i] ^= (uint8_t)rng_next(&f->rng);
    memset(row, 0, sizeof row);
    parity_add((uint8_t *[]){row}, 1, 0, block, p.len);
    if (f->kind == NOISE) {
        p.row = (uint8_t)rng_below(&f->rng, 9);
        p.blocks = (uint8_t)(1 + rng_below(&f->rng, 9));
        p.phase = rng_below(&f->rng, 2) ? PHASE_GATHER_PARITY : PHASE_SCATTER_PARITY;
    }
    o.head.type = WIRE_DATA;
    o.head.counter++;
    if (!(o.len = wire_parity_encode(o.body, sizeof o.body, &p)))
        return;
    forge_seal(&made, &o);
    sim_relay(s, &made, 0);
    f->free[d->to] = false;
    f->forged++;
}

/* Node 1's counters are doubled, so that there is one between two. */
static void with_forgery(sim *s, const struct sim_datagram *d, void *arg)
{
    static struct sim_datagram moved;
    struct forger *f = arg;
    struct opened o;
    struct wire_data frame;
    bool opened = forge_open(d, &o);
    bool result = opened && o.head.type == WIRE_DATA && wire_data_decode(&frame, o.body, o.len) == SLEET_OK &&
                  frame.phase == PHASE_GATHER && frame.tensor != 0 && frame.payload_len == WIRE_PAYLOAD_MAX;
    if (result && d->to != 1 && (d->from == 1) == (f->kind == TRUE_RESULT))
        forge_parity(s, f, d, &frame);
    if (d->from != 1 || !opened || !o.head.index || o.head.type == WIRE_HELLO_ACK) {
        sim_relay(s, d, result ? MS(2) : 0);
        return;
    }
    moved = *d;
    o.head.counter *= 2;
    forge_seal(&moved, &o);
    f->last[d->to] = moved;
    f->free[d->to] = true;
    sim_relay(s, &moved, result ? MS(2) : 0);
}

/* A member's parity is worth what its own datagrams are: nothing for the results of others. */
static void forged_parity_changes_no_result(void)
{
    for (uint32_t kind = 0; kind < FORGERIES; kind++) {
        struct forger *f = calloc(1, sizeof *f);
        sleet_rng rng = {test_seed() + kind};
        engine_set info;
        struct sim_config config = {
            .nodes = FORGE_NODES, .seed = test_seed(), .parity_off = true, .link = CLEAN_LINK};
        cluster *c = ready_cluster(&config, forge_counts, 2);
        REQUIRE(c && f);
        CHECK(engine_get_set(sim_engine(cluster_sim(c), 0), cluster_set(c, 0), &info, sim_now(cluster_sim(c))));
        *f = (struct forger){.kind = kind, .set = info.hash, .rng = {test_seed()}};
        sim_on_datagram(cluster_sim(c), with_forgery, f);
        for (uint32_t i = 0; i < test_repeats(60); i++)
            CHECK(exact_round(c, &rng));
        CHECK(f->forged >= test_repeats(60));
        CHECK_EQ(all_counters(c).rebuilt > 0, kind == TRUE_RESULT);
        CHECK_EQ(all_counters(c).usurped > 0, kind == OTHERS_RESULT);
        finish(c);
        free(f);
    }
}

TEST_SUITE(parity) = {
    TEST(results_take_fewer_round_trips),
    TEST(contributions_take_fewer_in_exact_rounds),
    TEST(codecs_are_no_affair_of_parity),
    TEST(nothing_is_sent_where_nothing_is_lost),
    TEST(loss_is_told_and_decided_upon),
    TEST(forged_parity_changes_no_result),
    TEST_END,
};
