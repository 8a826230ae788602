/* Two engines by hand, without a network: a peer of another job, and an
 * attacker who knows the wire format and the receiver's session index. */
#include "helpers.h"
#include "wire/wire.h"
#include <malloc.h>

#define FORGED 1000000u
#define SAMPLES 256u
#define ELEMENTS 700u
#define HEAP_SLACK 65536u /* bytes: the rounds of one window open or not; 1 byte a datagram is more */

struct pair {
    engine *e[2];
    sleet_addr addr[2];
    sleet_time now;
    uint32_t types; /* bit t: a datagram of type t was sent */
    uint32_t index; /* that node 0 gave to node 1 */
    uint32_t reports, samples;
    uint64_t forged; /* counter of the last forged datagram */
    size_t len[SAMPLES]; /* bytes of datagrams to node 0 */
    uint8_t sample[SAMPLES][ENGINE_DATAGRAM_MAX];
    engine_burst burst;
    int set[2];
    float values[2][ELEMENTS], result[2][ELEMENTS];
};

static bool open_pair(struct pair *p, const char *job0, const char *job1)
{
    const char *jobs[2] = {job0, job1};
    memset(p, 0, sizeof *p);
    for (uint32_t i = 0; i < 2; i++) {
        p->addr[i] = (sleet_addr){.ip = {0xfd}, .port = 7000};
        p->addr[i].ip[15] = (uint8_t)(i + 1);
    }
    for (uint32_t i = 0; i < 2; i++) {
        engine_config config = {.node_id = i + 1,
                                .boot_id = i + 100,
                                .seed = test_seed(),
                                .peers = &p->addr[1 - i],
                                .peer_count = 1};
        engine_tensor t = {"weights", SLEET_F32, 0, ELEMENTS, 0};
        snprintf(config.job, sizeof config.job, "%s", jobs[i]);
        p->e[i] = engine_new(&config, p->now);
        if (!p->e[i])
            return false;
        p->set[i] = engine_register(p->e[i], "model", (struct set_kind){.payload = SLEET_MODEL}, &t, 1, p->now);
        for (uint32_t k = 0; k < ELEMENTS; k++)
            p->values[i][k] = (float)(i + 1);
    }
    return p->set[0] >= 0 && p->set[1] >= 0;
}

static void close_pair(struct pair *p)
{
    engine_free(p->e[0]);
    engine_free(p->e[1]);
}

static void carry(struct pair *p, uint32_t from)
{
    const engine_burst *b = &p->burst;
    for (uint32_t off = 0; off < b->len; off += b->segment) {
        uint32_t len = b->len - off < b->segment ? b->len - off : b->segment;
        struct wire_header h;
        const uint8_t *body;
        size_t body_len;
        if (CHECK_EQ(datagram_open(b->data + off, len, &h, &body, &body_len), SLEET_OK))
            p->types |= 1u << h.type;
        if (from == 1) {
            uint32_t slot = p->samples++ % SAMPLES;
            p->index = h.index;
            p->len[slot] = len;
            memcpy(p->sample[slot], b->data + off, len);
        }
        engine_recv(p->e[1 - from], &p->addr[from], b->data + off, len, p->now);
    }
}

static void pump_pair(struct pair *p, sleet_duration d)
{
    sleet_time until = time_add(p->now, d);
    for (; time_before(p->now, until); p->now = time_add(p->now, MS(1)))
        for (uint32_t i = 0; i < 2; i++) {
            engine_event event;
            if (!time_before(p->now, engine_deadline(p->e[i])))
                engine_expire(p->e[i], p->now);
            while (engine_send(p->e[i], &p->burst, p->now) > 0)
                carry(p, i);
            while (engine_poll(p->e[i], &event))
                p->reports += event.type == EVENT_ROUND;
        }
}

static void round_of(struct pair *p, uint32_t node)
{
    const void *send = p->values[node];
    void *result = p->result[node];
    engine_start_args args = {.send = &send, .result = &result};
    args.options.size = sizeof args.options;
    CHECK_EQ(engine_start(p->e[node], p->set[node], &args, p->now), SLEET_OK);
}

static struct pair pair;

static void another_job_exchanges_nothing(void)
{
    REQUIRE(open_pair(&pair, "one", "two"));
    pump_pair(&pair, SEC(5));
    round_of(&pair, 0);
    round_of(&pair, 1);
    pump_pair(&pair, SEC(3));
    CHECK_EQ(pair.reports, 2);
    CHECK(pair.types & 1u << WIRE_HELLO);
    CHECK_EQ(pair.types & ~(1u << WIRE_HELLO | 1u << WIRE_CLOSE), 0);
    for (uint32_t i = 0; i < 2; i++) {
        engine_counters k;
        engine_get_counters(pair.e[i], &k);
        CHECK(k.foreign > 0);
        CHECK_EQ(engine_nodes_alive(pair.e[i], pair.now), 1);
        CHECK_MEM(pair.result[i], pair.values[i], sizeof pair.values[i]);
    }
    close_pair(&pair);
}

static void the_same_job_does(void)
{
    REQUIRE(open_pair(&pair, "one", "one"));
    pump_pair(&pair, SEC(5));
    for (int round = 0; round < 3; round++) {
        round_of(&pair, 0);
        round_of(&pair, 1);
        pump_pair(&pair, MS(500));
    }
    CHECK(pair.types & 1u << WIRE_DATA);
    for (uint32_t i = 0; i < 2; i++)
        for (uint32_t k = 0; k < ELEMENTS; k++)
            CHECK(pair.result[i][k] == 1.5f);
    close_pair(&pair);
}

/* Bytes of a forged datagram: noise, or a real one with some bytes changed,
 * mostly with a valid tag, index and a fresh counter. */
static size_t forge(struct pair *p, uint8_t *out, sleet_rng *rng, uint64_t counter)
{
    uint32_t slot = rng_below(rng, p->samples < SAMPLES ? p->samples : SAMPLES);
    uint32_t kind = rng_below(rng, 4);
    size_t body = kind == 1 ? p->len[slot] - WIRE_HEADER_BYTES - WIRE_TAG_BYTES
                            : rng_below(rng, WIRE_BODY_MAX + 1);
    struct wire_header h = {.version = WIRE_VERSION,
                            .type = (uint8_t)(1 + rng_below(rng, 10)),
                            .index = rng_below(rng, 8) ? p->index : (uint32_t)rng_next(rng),
                            .counter = counter};
    if (kind == 1) {
        memcpy(out, p->sample[slot], p->len[slot]);
        h.type = out[0] & 15;
        for (uint32_t i = rng_below(rng, 4); i > 0; i--)
            out[WIRE_HEADER_BYTES + rng_below(rng, (uint32_t)body)] = (uint8_t)rng_next(rng);
    } else {
        for (size_t i = 0; i < WIRE_HEADER_BYTES + body; i++)
            out[i] = (uint8_t)rng_next(rng);
    }
    if (kind == 0)
        return rng_below(rng, ENGINE_DATAGRAM_MAX + 1);
    return datagram_seal(out, body, &h);
}

static void check_sum(const engine *e)
{
    engine_counters k;
    engine_get_counters(e, &k);
    CHECK_EQ(k.in, k.accepted + k.duplicate + k.corrupt + k.foreign + k.stale + k.overflow);
}

/* All that node 0 sends goes to the one listed address. */
static uint64_t answers(struct pair *p)
{
    uint64_t strangers = 0;
    if (!time_before(p->now, engine_deadline(p->e[0])))
        engine_expire(p->e[0], p->now);
    while (engine_send(p->e[0], &p->burst, p->now) > 0)
        strangers += !addr_equal(&p->burst.to, &p->addr[1]);
    return strangers;
}

static uint64_t attack(struct pair *p, sleet_rng *rng, uint32_t datagrams, bool listed)
{
    static uint8_t out[ENGINE_DATAGRAM_MAX];
    uint64_t strangers = 0;
    for (uint32_t i = 0; i < datagrams; i++) {
        sleet_addr from = p->addr[1];
        if (!listed || rng_below(rng, 4) == 0) {
            from.ip[15] = (uint8_t)(3 + rng_below(rng, 200));
            from.port = (uint16_t)(from.port + rng_below(rng, 2));
        }
        size_t len = forge(p, out, rng, 1000000 + ++p->forged);
        engine_recv(p->e[0], &from, out, len, p->now);
        strangers += answers(p);
        if (i % 100 == 0)
            p->now = time_add(p->now, MS(1));
    }
    return strangers;
}

static void forged_datagrams_are_borne(void)
{
    sleet_rng rng = {test_seed()};
    uint32_t many = test_repeats(FORGED);
    engine_counters before, after;
    REQUIRE(open_pair(&pair, "one", "one"));
    pump_pair(&pair, SEC(5));
    for (int round = 0; round < 6; round++) {
        round_of(&pair, 0);
        round_of(&pair, 1);
        pump_pair(&pair, MS(200));
    }
    /* From addresses that are not listed: nothing is read, nothing is said. */
    engine_get_counters(pair.e[0], &before);
    CHECK_EQ(attack(&pair, &rng, many / 10, false), 0);
    engine_get_counters(pair.e[0], &after);
    CHECK_EQ(after.in - before.in, many / 10);
    CHECK_EQ(after.foreign - before.foreign, many / 10);
    CHECK_EQ(attack(&pair, &rng, many / 10, true), 0);
    engine_get_counters(pair.e[0], &after);
    size_t heap = mallinfo2().uordblks;
    CHECK_EQ(attack(&pair, &rng, many, true), 0);
    CHECK(mallinfo2().uordblks <= heap + HEAP_SLACK);
    engine_get_counters(pair.e[0], &before);
    CHECK_EQ(before.in - after.in, many);
    CHECK(before.accepted > after.accepted); /* some got as far as the frames */
    CHECK(before.corrupt > after.corrupt);
    check_sum(pair.e[0]);
    close_pair(&pair);
}

TEST_SUITE(hostile) = {
    TEST(another_job_exchanges_nothing),
    TEST(the_same_job_does),
    TEST(forged_datagrams_are_borne),
    TEST_END,
};
