/* Two sealed engines by hand and whoever else sends to them: nobody without the job's key gets
 * an answer or costs memory, and no address gets more than it gave before it is known. */
#include "helpers.h"
#include "session/gate.h"
#include "session/peer.h"
#include <malloc.h>
#include <stdio.h>

#define HEAP_SLACK 65536u /* bytes: rounds and schemas of the two; 1 byte a datagram is more */

struct duo {
    engine *e[2];
    sleet_addr addr[2];
    sleet_time now;
    bool cut[2];            /* what node i sends is lost */
    uint64_t bytes[2];      /* that node i has sent to the other */
    uint64_t strange[2];    /* that it has sent to any other address */
    uint32_t frames[16];    /* datagrams between the two, by type */
    uint8_t last[ENGINE_DATAGRAM_MAX]; /* of node 1's to node 0 */
    size_t last_len;
    uint8_t reply[ENGINE_DATAGRAM_MAX]; /* the last to any other address */
    size_t reply_len;
    unsigned said[2][3]; /* events: hello-refused, session-refused, handshake-refused */
    unsigned joined, moved;
    engine_burst burst;
};

static struct duo duo;

static void count_event(void *arg, log_level level, log_fault fault, const char *event,
                        const log_field *fields, int n)
{
    static const char *const names[] = {"hello-refused", "session-refused", "handshake-refused"};
    unsigned *said = arg;
    (void)level, (void)fault, (void)fields, (void)n;
    for (unsigned i = 0; i < 3; i++)
        said[i] += strcmp(event, names[i]) == 0;
    duo.joined += strcmp(event, "member-joined") == 0;
    duo.moved += strcmp(event, "member-moved") == 0;
}

static sleet_addr stranger(uint32_t number)
{
    sleet_addr a = {.ip = {0xfc}, .port = (uint16_t)(1000 + number % 50000)};
    memcpy(a.ip + 12, &number, sizeof number);
    return a;
}

/* With `allow` only that node is let in. */
static engine *make(uint32_t i, const char *job, uint8_t key, bool lists_other, const uint64_t *allow)
{
    engine_config config = {.boot_id = i + 100,
                            .seed = test_seed(),
                            .security = ENGINE_SEALED,
                            .job_key = {key},
                            .node_secret = {0, (uint8_t)(i + 1)},
                            .secret_seed = {(uint8_t)(i + 1), (uint8_t)test_seed()},
                            .peers = &duo.addr[1 - i],
                            .peer_count = lists_other,
                            .allow = allow,
                            .allow_count = allow != NULL,
                            .log = {count_event, duo.said[i]}};
    snprintf(config.job, sizeof config.job, "%s", job);
    return engine_new(&config, duo.now);
}

static bool open_duo(const char *job0, const char *job1, uint8_t key0, uint8_t key1)
{
    const char *jobs[2] = {job0, job1};
    const uint8_t keys[2] = {key0, key1};
    memset(&duo, 0, sizeof duo);
    duo.now.ns = SEC(1000);
    for (uint32_t i = 0; i < 2; i++) {
        duo.addr[i] = (sleet_addr){.ip = {0xfd}, .port = 7000};
        duo.addr[i].ip[15] = (uint8_t)(i + 1);
    }
    for (uint32_t i = 0; i < 2; i++)
        duo.e[i] = make(i, jobs[i], keys[i], true, NULL);
    return duo.e[0] && duo.e[1];
}

/* Another node 0, which lists nobody: node 1 begins whatever is begun. */
static bool replace_first(const uint64_t *allow)
{
    engine_free(duo.e[0]);
    duo.e[0] = make(0, "job", 1, false, allow);
    return duo.e[0] != NULL;
}

static void close_duo(void)
{
    engine_free(duo.e[0]);
    engine_free(duo.e[1]);
}

static void carry(uint32_t from)
{
    const engine_burst *b = &duo.burst;
    bool between = addr_equal(&b->to, &duo.addr[1 - from]);
    for (uint32_t off = 0; off < b->len; off += b->segment) {
        uint32_t len = b->len - off < b->segment ? b->len - off : b->segment;
        *(between ? &duo.bytes[from] : &duo.strange[from]) += len;
        duo.frames[between ? b->data[off] & 15 : 0]++;
        if (!between) {
            memcpy(duo.reply, b->data + off, len);
            duo.reply_len = len;
            continue;
        }
        if (from == 1) {
            memcpy(duo.last, b->data + off, len);
            duo.last_len = len;
        }
        if (!duo.cut[from])
            engine_recv(duo.e[1 - from], &duo.addr[from], b->data + off, len, duo.now);
    }
}

static void send_all(uint32_t i)
{
    if (!time_before(duo.now, engine_deadline(duo.e[i])))
        engine_expire(duo.e[i], duo.now);
    while (engine_send(duo.e[i], &duo.burst, duo.now) > 0)
        carry(i);
}

static void pump_duo(sleet_duration d)
{
    sleet_time until = time_add(duo.now, d);
    for (; time_before(duo.now, until); duo.now = time_add(duo.now, MS(1))) {
        send_all(0);
        send_all(1);
    }
}

static uint32_t alive(uint32_t i)
{
    return engine_nodes_alive(duo.e[i], duo.now);
}

static uint64_t heap_bytes(void)
{
    return mallinfo2().uordblks;
}

static void check_sum(const engine *e)
{
    engine_counters k;
    engine_get_counters(e, &k);
    CHECK_EQ(k.in, k.accepted + k.duplicate + k.corrupt + k.foreign + k.stale + k.overflow);
}

/* ---- without the job's key -------------------------------------------------------------- */

/* Noise, with the header of what could be meant for node 0 in most. */
static size_t noise(uint8_t *out, sleet_rng *rng)
{
    size_t len = rng_below(rng, ENGINE_DATAGRAM_MAX + 1);
    for (size_t i = 0; i < len; i += 8) {
        uint64_t word = rng_next(rng);
        memcpy(out + i, &word, 8);
    }
    if (rng_below(rng, 4) == 0 || len < 32)
        return len;
    struct wire_header h = {WIRE_VERSION, (uint8_t)(1 + rng_below(rng, 15)), 0, 1 + rng_below(rng, 99)};
    memcpy(&h.index, duo.last + 4, 4); /* that of the session */
    if (h.type == WIRE_HELLO)
        h.index = 0;
    datagram_header(out, &h);
    return rng_below(rng, 2) ? len : WIRE_HEADER_BYTES + WIRE_OFFER_BYTES + WIRE_TAG_BYTES;
}

static void noise_costs_nothing(void)
{
    static uint8_t out[ENGINE_DATAGRAM_MAX + 8];
    sleet_rng rng = {test_seed()};
    uint32_t n = test_repeats(1000000);
    REQUIRE(open_duo("job", "job", 1, 1));
    pump_duo(SEC(3));
    CHECK(alive(0) == 2 && alive(1) == 2);
    uint64_t before = heap_bytes(), sent = duo.bytes[0];
    for (uint32_t i = 0; i < n; i++) {
        sleet_addr from = rng_below(&rng, 2) ? stranger((uint32_t)rng_next(&rng)) : duo.addr[1];
        size_t len = noise(out, &rng);
        engine_recv(duo.e[0], &from, out, len, duo.now);
        send_all(0);
    }
    CHECK_EQ(heap_bytes(), before);
    CHECK_EQ(duo.strange[0], 0);
    CHECK_EQ(duo.bytes[0], sent);
    check_sum(duo.e[0]);
    pump_duo(SEC(3));
    CHECK(alive(0) == 2 && alive(1) == 2);
    CHECK_EQ(duo.joined, 2);
    close_duo();
}

static void another_key_is_not_answered(void)
{
    REQUIRE(open_duo("job", "job", 1, 2));
    pump_duo(SEC(20));
    CHECK_EQ(duo.joined, 0);
    for (uint32_t t = 0; t < 16; t++)
        CHECK(t == WIRE_HELLO || duo.frames[t] == 0);
    for (uint32_t i = 0; i < 2; i++) {
        CHECK_EQ(alive(i), 1);
        CHECK_EQ(duo.said[i][2], 1); /* the address is listed: said once */
        check_sum(duo.e[i]);
    }
    close_duo();
}

/* ---- with it ----------------------------------------------------------------------------- */

static void another_job_is_told_so(void)
{
    REQUIRE(open_duo("one", "two", 1, 1));
    pump_duo(SEC(20));
    CHECK_EQ(duo.joined, 0);
    CHECK(duo.frames[WIRE_CLOSE] > 0);
    CHECK_EQ(duo.frames[WIRE_HELLO_ACK], 0);
    for (uint32_t i = 0; i < 2; i++) {
        CHECK_EQ(alive(i), 1);
        CHECK_EQ(duo.said[i][0], 1);
        CHECK_EQ(duo.said[i][1], 1);
        check_sum(duo.e[i]);
    }
    close_duo();
}

/* A node of somebody else's making, with the job's key. */
struct other {
    struct gate *gate;
    struct peer peer;
    sleet_addr addr;
    uint64_t counter;
};

static bool open_other(struct other *o, uint8_t who, uint16_t elements)
{
    uint8_t job_key[32] = {1}, secret[32] = {0, who, 9}, seed[32] = {who, 3};
    struct gate_config c = {"job", elements, who, job_key, secret, seed};
    *o = (struct other){.gate = gate_new(&c, duo.now), .addr = stranger(who)};
    return o->gate != NULL;
}

static void close_other(struct other *o)
{
    peer_fini(&o->peer);
    gate_free(o->gate);
}

static size_t hello_of(struct other *o, uint8_t version, uint8_t *dgram)
{
    struct wire_header h = {version, WIRE_HELLO, 0, ++o->counter};
    datagram_header(dgram, &h);
    return gate_seal(o->gate, dgram,
                     peer_offer(&o->peer, o->gate, 1, dgram + WIRE_HEADER_BYTES, duo.now));
}

static void hears(struct other *o, const uint8_t *dgram, size_t len)
{
    engine_recv(duo.e[0], &o->addr, dgram, len, duo.now);
    send_all(0);
}

static void another_make_is_told_so(void)
{
    static const struct {
        uint8_t version;
        uint16_t elements;
        uint8_t reason;
        bool indexed;
    } cases[] = {{2, 288, CLOSE_VERSION, false}, {1, 144, CLOSE_ELEMENTS, true}};
    for (unsigned i = 0; i < 2; i++) {
        struct other o;
        uint8_t dgram[ENGINE_DATAGRAM_MAX];
        struct wire_close c;
        REQUIRE(open_duo("job", "job", 1, 1) && open_other(&o, 50, cases[i].elements));
        for (int again = 0; again < 3; again++)
            hears(&o, dgram, hello_of(&o, cases[i].version, dgram));
        CHECK(gate_right(o.gate, duo.reply, duo.reply_len));
        CHECK_EQ(duo.reply[0], 1 << 4 | WIRE_CLOSE);
        CHECK_EQ(wire_close_decode(&c, duo.reply + WIRE_HEADER_BYTES, duo.reply_len - 32), SLEET_OK);
        CHECK_EQ(c.reason, cases[i].reason);
        uint32_t index;
        memcpy(&index, duo.reply + 4, 4);
        CHECK_EQ(index, cases[i].indexed ? o.peer.offer->index : 0);
        CHECK_EQ(duo.said[0][0], 1);
        close_other(&o);
        close_duo();
    }
}

/* Captured HELLOs of many nodes come again and again from all over the world. */
static void a_flood_gets_no_more_than_it_gives(void)
{
    enum { CAPTURED = 300 };
    static uint8_t hello[CAPTURED][ENGINE_DATAGRAM_MAX];
    sleet_rng rng = {test_seed()};
    size_t len = 0;
    uint64_t in = 0;
    REQUIRE(open_duo("job", "job", 1, 1));
    duo.cut[0] = duo.cut[1] = true;
    for (uint32_t i = 0; i < CAPTURED; i++) {
        struct other o;
        REQUIRE(open_other(&o, (uint8_t)i, 288));
        secret_draw(&o.gate->stream, o.gate->self.secret, 32);
        o.gate->stream.key[0] ^= (uint8_t)(i >> 8);
        len = hello_of(&o, 1, hello[i]);
        close_other(&o);
    }
    send_all(0);
    uint64_t before = heap_bytes();
    for (uint32_t i = 0; i < 20000; i++) {
        sleet_addr from = stranger((uint32_t)rng_next(&rng));
        uint64_t out = duo.strange[0];
        engine_recv(duo.e[0], &from, hello[rng_below(&rng, CAPTURED)], len, duo.now);
        send_all(0);
        in += len;
        CHECK(duo.strange[0] - out <= len);
        if (i % 100 == 0)
            duo.now = time_add(duo.now, MS(1));
    }
    CHECK(duo.strange[0] > 0 && duo.strange[0] <= in);
    CHECK(heap_bytes() <= before + HEAP_SLACK);
    CHECK_EQ(duo.joined, 0);
    check_sum(duo.e[0]);
    duo.cut[0] = duo.cut[1] = false;
    pump_duo(SEC(6)); /* in the middle of the flood's remains */
    CHECK(alive(0) == 2 && alive(1) == 2);
    close_duo();
}

/* Node 1's datagrams are taken off the wire and sent on from elsewhere. */
static void a_forged_address_gets_three_times_what_it_gave(void)
{
    sleet_addr forged = stranger(7);
    uint64_t gave = 0;
    engine_tensor t = {"weights", SLEET_F32, 0, 100, 0};
    REQUIRE(open_duo("job", "job", 1, 1));
    for (unsigned i = 0; i < 3; i++) { /* its PINGs are three times as long as node 1's */
        char name[] = {"set0"};
        name[3] = (char)('0' + i);
        CHECK(engine_register(duo.e[0], name, (struct set_kind){.payload = SLEET_MODEL}, &t, 1, duo.now) >= 0);
    }
    pump_duo(SEC(3));
    CHECK(alive(0) == 2);
    duo.cut[1] = true;
    for (unsigned i = 0; i < 20; i++) {
        duo.last_len = 0;
        while (!duo.last_len)
            pump_duo(MS(1));
        engine_recv(duo.e[0], &forged, duo.last, duo.last_len, duo.now);
        gave += duo.last_len;
        uint64_t to_node = duo.bytes[0];
        for (int k = 0; k < 300; k++) {
            pump_duo(MS(1));
            CHECK(duo.strange[0] <= 3 * gave);
        }
        CHECK(duo.bytes[0] > to_node || i < 19); /* what is meant for node 1 goes to it */
    }
    CHECK(duo.strange[0] > 0);
    CHECK_EQ(duo.moved, 0);
    duo.cut[1] = false;
    pump_duo(SEC(2));
    CHECK(alive(0) == 2 && alive(1) == 2);
    close_duo();
}

/* A HELLO for new keys is taken off the wire and sent on from elsewhere, its answer handed back:
 * the session has new keys and its old address. */
static void a_forged_hello_moves_nobody(void)
{
    sleet_addr forged = stranger(7);
    REQUIRE(open_duo("job", "job", 1, 1) && replace_first(NULL));
    pump_duo(SEC(115));
    CHECK(alive(0) == 2);
    do {
        duo.cut[1] = false;
        pump_duo(MS(1));
        duo.last_len = 0;
        duo.cut[1] = true;
        send_all(1);
        if (duo.last_len && (duo.last[0] & 15) != WIRE_HELLO)
            engine_recv(duo.e[0], &duo.addr[1], duo.last, duo.last_len, duo.now);
    } while (duo.now.ns < SEC(1130) && (!duo.last_len || (duo.last[0] & 15) != WIRE_HELLO));
    REQUIRE((duo.last[0] & 15) == WIRE_HELLO);
    engine_recv(duo.e[0], &forged, duo.last, duo.last_len, duo.now);
    send_all(0);
    CHECK_EQ(duo.reply[0] & 15, WIRE_HELLO_ACK);
    engine_recv(duo.e[1], &duo.addr[0], duo.reply, duo.reply_len, duo.now);
    duo.cut[1] = false;
    uint64_t strange = duo.strange[0];
    pump_duo(SEC(5));
    CHECK_EQ(duo.strange[0], strange);
    CHECK_EQ(duo.moved, 0);
    CHECK(alive(0) == 2 && alive(1) == 2);
    close_duo();
}

/* With the job's key but not on the list of nodes: told so, once it has said who it is. */
static void who_is_not_allowed_gets_no_session(void)
{
    struct other o;
    uint8_t dgram[ENGINE_DATAGRAM_MAX];
    uint64_t allowed = 12345;
    REQUIRE(open_duo("job", "job", 1, 1) && replace_first(&allowed) && open_other(&o, 60, 288));
    key_public(o.peer.key, (uint8_t[32]){0, 1});
    o.peer.key_known = true; /* IK: it says who it is at once */
    hears(&o, dgram, hello_of(&o, 1, dgram));
    CHECK_EQ(duo.reply[0], 1 << 4 | WIRE_CLOSE);
    CHECK_EQ(duo.reply[WIRE_HEADER_BYTES], CLOSE_DENIED);
    pump_duo(SEC(20)); /* node 1, which knows an address only, says who it is at last */
    CHECK(alive(0) == 1 && alive(1) == 1);
    CHECK_EQ(duo.said[1][1], 1);
    close_other(&o);
    close_duo();
}

TEST_SUITE(strangers) = {
    TEST(noise_costs_nothing),
    TEST(another_key_is_not_answered),
    TEST(another_job_is_told_so),
    TEST(another_make_is_told_so),
    TEST(a_flood_gets_no_more_than_it_gives),
    TEST(a_forged_address_gets_three_times_what_it_gave),
    TEST(a_forged_hello_moves_nobody),
    TEST(who_is_not_allowed_gets_no_session),
    TEST_END,
};
