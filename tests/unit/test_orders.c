/* The operator's signed orders: bytes, signatures, the table. */
#include "member/orders.h"
#include "base/rng.h"
#include "sleet_test.h"
#include <sodium.h>
#include <string.h>

static const uint8_t seed[KEY_BYTES] = {1, 2, 3}, stranger[KEY_BYTES] = {4, 5, 6};

static struct orders table(const char *job)
{
    struct orders o;
    uint8_t public_key[KEY_BYTES], secret[crypto_sign_SECRETKEYBYTES];
    crypto_sign_seed_keypair(public_key, secret, seed);
    orders_init(&o, job, public_key);
    return o;
}

static struct wire_record evict(uint64_t node, uint64_t serial)
{
    struct wire_record r = {.kind = RECORD_EVICT, .serial = serial, .job = job_tag("a"), .subject = node};
    CHECK(record_sign(&r, seed));
    return r;
}

static struct wire_record rekey(uint8_t key, uint64_t serial)
{
    struct wire_record r = {.kind = RECORD_REKEY, .serial = serial, .job = job_tag("a"), .value = {key}};
    CHECK(record_sign(&r, seed));
    return r;
}

static int take(struct orders *o, struct wire_record r)
{
    uint32_t index;
    return (int)orders_take(o, &r, &index);
}

static void frames_round_trip_and_keep_their_bounds(void)
{
    for (uint8_t kind = 0; kind <= NOTICE_REFUSED + 1; kind++) {
        uint8_t bytes[200], again[200];
        struct wire_notice n = {.kind = kind, .record = evict(7, 9)}, out;
        size_t len = wire_notice_encode(bytes, sizeof bytes, &n);
        if (kind < NOTICE_RECORD || kind > NOTICE_REFUSED) {
            CHECK_EQ(len, 0);
            continue;
        }
        CHECK_EQ(len, kind == NOTICE_RECORD ? 8 + WIRE_RECORD_BYTES : 32);
        CHECK_EQ(wire_notice_decode(&out, bytes, len), SLEET_OK);
        CHECK_EQ(wire_notice_encode(again, sizeof again, &out), len);
        CHECK_MEM(bytes, again, len);
        for (size_t cut = 0; cut < len; cut++) {
            CHECK_EQ(wire_notice_decode(&out, bytes, cut), SLEET_EMALFORMED);
            CHECK_EQ(wire_notice_encode(again, cut, &n), 0);
        }
        CHECK_EQ(wire_notice_decode(&out, bytes, len + 1), SLEET_EMALFORMED);
        for (size_t at = 1; at < 8; at++) { /* reserved */
            bytes[at] = 1;
            CHECK_EQ(wire_notice_decode(&out, bytes, len), SLEET_EMALFORMED);
            bytes[at] = 0;
            bytes[8 + at] = 1;
            CHECK_EQ(wire_notice_decode(&out, bytes, len), SLEET_EMALFORMED);
            bytes[8 + at] = 0;
        }
    }
}

static void records_keep_their_bounds(void)
{
    const struct wire_record good_evict = evict(7, 9), good_rekey = rekey(1, 9);
    struct wire_record bad[] = {good_evict, good_evict, good_evict, good_evict, good_rekey, good_rekey};
    uint8_t bytes[WIRE_RECORD_BYTES];
    bad[0].kind = 3;
    bad[1].serial = 0;
    bad[2].subject = 0;
    bad[3].value[31] = 1;
    bad[4].subject = 7;
    memset(bad[5].value, 0, sizeof bad[5].value);
    for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++) {
        CHECK_EQ(wire_record_encode(bytes, sizeof bytes, &bad[i]), 0);
        CHECK(!record_sign(&bad[i], seed));
    }
}

static void takes_what_the_operator_signed(void)
{
    struct orders o = table("a");
    CHECK_EQ(take(&o, evict(7, 9)), ORDERS_NEW);
    CHECK(orders_evicted(&o, 7));
    CHECK(!orders_evicted(&o, 8));
    CHECK_EQ(take(&o, evict(7, 9)), ORDERS_KNOWN);
    CHECK_EQ(take(&o, evict(7, 8)), ORDERS_OLD);
    CHECK_EQ(take(&o, evict(7, 10)), ORDERS_NEW);
    CHECK_EQ(take(&o, rekey(1, 20)), ORDERS_NEW);
    CHECK_EQ(take(&o, rekey(2, 19)), ORDERS_OLD);
    CHECK_EQ(take(&o, rekey(3, 20)), ORDERS_OLD);
    CHECK_EQ(orders_rekey(&o)->value[0], 1);
    CHECK_EQ(take(&o, rekey(4, 21)), ORDERS_NEW);
    CHECK_EQ(orders_rekey(&o)->value[0], 4);
    CHECK_EQ(o.n, 2);
    CHECK_EQ(orders_serial(&o), 21);
}

static void refuses_what_nobody_signed(void)
{
    struct orders o = table("a"), other = table("b"), nobody;
    struct wire_record r = evict(7, 9), forged = r;
    orders_init(&nobody, "a", NULL);
    CHECK_EQ(take(&other, r), ORDERS_FOREIGN);
    CHECK_EQ(take(&nobody, r), ORDERS_FOREIGN);
    CHECK(record_sign(&forged, stranger));
    CHECK_EQ(take(&o, forged), ORDERS_FOREIGN);
    uint8_t bytes[WIRE_RECORD_BYTES];
    CHECK_EQ(wire_record_encode(bytes, sizeof bytes, &r), sizeof bytes);
    for (size_t bit = 0; bit < 8 * sizeof bytes; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        if (wire_record_decode(&forged, bytes, sizeof bytes) == SLEET_OK)
            CHECK_EQ(take(&o, forged), ORDERS_FOREIGN);
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    CHECK_EQ(o.n, 0);
    CHECK_EQ(take(&o, r), ORDERS_NEW);
}

static void order_of_arrival_does_not_matter(void)
{
    struct wire_record all[12];
    sleet_rng rng = {test_seed()};
    for (uint32_t i = 0; i < 12; i++)
        all[i] = i % 4 == 3 ? rekey((uint8_t)i, 100 + i) : evict(1 + i % 5, 100 + i);
    struct orders first = table("a");
    for (uint32_t i = 0; i < 12; i++)
        take(&first, all[i]);
    for (unsigned k = 0; k < test_repeats(20); k++) {
        struct orders o = table("a");
        for (uint32_t i = 0; i < 40; i++)
            take(&o, all[rng_below(&rng, 12)]);
        for (uint32_t i = 0; i < 12; i++)
            take(&o, all[i]);
        CHECK_EQ(o.n, first.n);
        for (uint32_t i = 0; i < first.n; i++)
            CHECK(orders_find(&o, &first.list[i]) < o.n);
    }
}

static void is_bounded(void)
{
    struct orders o = table("a");
    for (uint32_t i = 0; i < ORDERS_MAX; i++)
        CHECK_EQ(take(&o, evict(i + 1, i + 1)), ORDERS_NEW);
    CHECK_EQ(take(&o, evict(1000, 1000)), ORDERS_FULL);
    CHECK_EQ(o.n, ORDERS_MAX);
    CHECK_EQ(take(&o, evict(5, 1001)), ORDERS_NEW); /* in the place of its older one */
    CHECK(!orders_rekey(&o));
    o.n--; /* room for the change of the key, by which evictions before it are settled */
    CHECK_EQ(take(&o, rekey(1, 2000)), ORDERS_NEW);
    CHECK_EQ(take(&o, evict(1000, 2001)), ORDERS_NEW);
    CHECK_EQ(o.n, ORDERS_MAX);
    CHECK(!orders_evicted(&o, 1)); /* the oldest */
    CHECK(orders_evicted(&o, 1000));
}

TEST_SUITE(orders) = {
    TEST(frames_round_trip_and_keep_their_bounds),
    TEST(records_keep_their_bounds),
    TEST(takes_what_the_operator_signed),
    TEST(refuses_what_nobody_signed),
    TEST(order_of_arrival_does_not_matter),
    TEST(is_bounded),
    TEST_END,
};
