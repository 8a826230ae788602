/* Parity over a stream, and the rule that says where it is worth its bytes. */
#include "base/rng.h"
#include "protect/rule.h"
#include "protect/stream.h"
#include "sleet_test.h"
#include <stdlib.h>
#include <string.h>

#define STREAM_MAX 1300

/* Block i holds its number, its length, and bytes that follow from it. */
static size_t make(uint32_t i, uint8_t *out, bool same_length)
{
    sleet_rng rng = {i};
    size_t len = same_length ? 40 : 8 + rng_below(&rng, PARITY_BLOCK_MAX - 7);
    for (size_t b = 8; b < len; b++)
        out[b] = (uint8_t)rng_next(&rng);
    memcpy(out, &i, 4);
    memcpy(out + 4, &(uint32_t){(uint32_t)len}, 4);
    return len;
}

static uint8_t got[STREAM_MAX]; /* how often block i was rebuilt */

static void take(void *arg, const uint8_t *block, size_t len)
{
    uint32_t i, n;
    uint8_t expected[PARITY_BLOCK_MAX] = {0};
    memcpy(&i, block, 4);
    memcpy(&n, block + 4, 4);
    REQUIRE(i < STREAM_MAX && len <= PARITY_BLOCK_MAX && n <= len);
    CHECK_EQ(make(i, expected, *(const bool *)arg), n);
    CHECK_MEM(block, expected, len); /* zeros behind its end */
    got[i]++;
}

struct row_copy {
    struct parity_row row;
    uint8_t bytes[PARITY_BLOCK_MAX];
};

/* Everything that leaves, in order: numbers of data, then -1 - index of a row. */
static uint32_t send_all(struct parity_encoder *e, uint32_t n, bool same, int32_t *order,
                         struct row_copy *rows, uint32_t *rows_n)
{
    uint8_t block[PARITY_BLOCK_MAX];
    uint32_t sent = 0;
    *rows_n = 0;
    for (uint32_t i = 0; i <= n; i++) {
        while (parity_encoder_due(e, i == n)) {
            struct row_copy *r = &rows[*rows_n];
            r->row = parity_encoder_take(e);
            memcpy(r->bytes, r->row.bytes, r->row.len);
            r->row.bytes = r->bytes;
            order[sent++] = -1 - (int32_t)(*rows_n)++;
        }
        if (i == n)
            break;
        size_t len = make(i, block, same);
        CHECK_EQ(parity_encoder_add(e, block, len), i);
        order[sent++] = (int32_t)i;
    }
    CHECK(!parity_encoder_due(e, true));
    return sent;
}

static int32_t order[3 * STREAM_MAX];
static struct row_copy rows[2 * STREAM_MAX];

/* Losses of `p`, some disorder, some twice: a block is rebuilt where its group has rows enough,
 * once, and never one that came. */
static void one_stream(sleet_rng *rng, struct parity_code code, uint32_t n, double p)
{
    static bool came[STREAM_MAX];
    static uint32_t lost[STREAM_MAX], rows_in[STREAM_MAX];
    struct parity_encoder e;
    struct parity_decoder d;
    bool same = rng_below(rng, 2);
    uint32_t rows_n;
    uint32_t most = n + rng_below(rng, 200);
    uint64_t room = 100000000;
    REQUIRE(parity_encoder_init(&e, code, most));
    parity_decoder_init(&d, code, most, &room);
    uint32_t sent = send_all(&e, n, same, order, rows, &rows_n);
    CHECK(rows_n >= n * code.rows / 64 && rows_n <= n * code.rows / 64 + code.depth * (n / (64 * code.depth) + 1));
    for (uint32_t i = 0; i + 1 < sent; i++) { /* neighbours in time change places */
        if (rng_below(rng, 4))
            continue;
        int32_t t = order[i];
        order[i] = order[i + 1];
        order[i + 1] = t;
    }
    memset(got, 0, sizeof got);
    memset(came, 0, sizeof came);
    memset(lost, 0, sizeof lost);
    memset(rows_in, 0, sizeof rows_in);
    for (uint32_t i = 0; i < sent; i++) {
        if (rng_double(rng) < p)
            continue;
        for (uint32_t times = 1 + (rng_below(rng, 8) == 0); times; times--) {
            uint8_t block[PARITY_BLOCK_MAX];
            uint32_t number = (uint32_t)order[i], group;
            if (order[i] >= 0) {
                parity_decoder_add(&d, number, block, make(number, block, same));
                came[number] = true;
                group = parity_group_of(&d, number);
            } else {
                const struct parity_row *r = &rows[-1 - order[i]].row;
                CHECK(parity_decoder_row(&d, r));
                group = r->group;
                rows_in[group] += times == 1;
            }
            parity_decoder_rebuild(&d, group, take, &same);
        }
    }
    for (uint32_t i = 0; i < n; i++)
        lost[parity_place(i, code.depth).group] += !came[i];
    for (uint32_t i = 0; i < n; i++) {
        uint32_t g = parity_place(i, code.depth).group;
        CHECK(got[i] + came[i] >= (lost[g] <= rows_in[g]));
        CHECK(got[i] <= 1);
        if (lost[g] > rows_in[g])
            CHECK_EQ(got[i], 0);
    }
    parity_encoder_fini(&e);
    parity_decoder_fini(&d);
    CHECK_EQ(room, 100000000);
}

static void what_is_lost_comes_back(void)
{
    static const uint8_t codes[] = {8, 16, 32};
    sleet_rng rng = {test_seed()};
    for (uint32_t i = 0; i < test_repeats(60); i++) {
        uint32_t n = 1 + rng_below(&rng, i % 2 ? STREAM_MAX - 1 : 100);
        struct parity_code code = {codes[i % 3], (uint8_t)parity_depth(n)};
        one_stream(&rng, code, n, 0.02 + 0.15 * rng_double(&rng));
    }
}

/* Whatever comes, nothing is written out of bounds, and nothing is kept beyond the bound. */
static void nonsense_is_borne(void)
{
    sleet_rng rng = {test_seed()};
    struct parity_code code = {16, 2};
    struct parity_decoder d;
    uint8_t block[PARITY_BLOCK_MAX];
    uint64_t most = 40 * PARITY_BLOCK_MAX, room = most;
    parity_decoder_init(&d, code, 300, &room);
    CHECK_EQ(d.max, 6);
    for (uint32_t i = 0; i < test_repeats(20000); i++) {
        struct parity_row r = {.group = rng_below(&rng, 9),
                               .row = (uint8_t)rng_below(&rng, 20),
                               .blocks = (uint8_t)rng_below(&rng, 70),
                               .bytes = block,
                               .len = rng_below(&rng, PARITY_BLOCK_MAX + 1)};
        for (uint32_t b = 0; b < 16; b++)
            block[rng_below(&rng, PARITY_BLOCK_MAX)] = (uint8_t)rng_next(&rng);
        if (rng_below(&rng, 2))
            parity_decoder_row(&d, &r);
        else
            parity_decoder_add(&d, rng_below(&rng, 900), block, r.len);
        CHECK(d.n <= d.max && room <= most);
    }
    parity_decoder_fini(&d);
    CHECK_EQ(room, most);
    struct parity_row r = {.group = 6, .row = 0, .blocks = 64, .bytes = block, .len = 8};
    parity_decoder_init(&d, code, 300, &room);
    CHECK(!parity_decoder_row(&d, &r)); /* there are six */
    r = (struct parity_row){.group = 0, .row = 3, .blocks = 9, .bytes = block, .len = 8};
    CHECK(!parity_decoder_row(&d, &r)); /* nine have but three rows */
    r.blocks = 0;
    CHECK(!parity_decoder_row(&d, &r));
    CHECK_EQ(d.n, 0);
    parity_decoder_add(&d, UINT32_MAX, block, 8);
    parity_decoder_add(&d, 384, block, 8);
    CHECK_EQ(d.n, 0);
    room = 15 * PARITY_BLOCK_MAX; /* less than one group needs */
    parity_decoder_add(&d, 0, block, 8);
    CHECK(room == 15 * PARITY_BLOCK_MAX && !parity_decoder_rebuild(&d, 0, take, NULL));
    parity_decoder_fini(&d);
}

/* ---- the rule ------------------------------------------------------------------------------- */

/* 8 MiB at 1 Gbit/s, 1 % lost, 12.5 % of parity. */
static struct protect_case published(sleet_duration rtt)
{
    return (struct protect_case){.loss = 0.01,
                                 .rtt = rtt,
                                 .bytes = 8 << 20,
                                 .datagrams = 7282,
                                 .rate_bps = 1000000000,
                                 .deadline = SEC(2)};
}

static void breaks_even_at_three_milliseconds(void)
{
    sleet_duration low = 0, high = MS(100);
    while (high - low > US(1)) {
        sleet_duration mid = (low + high) / 2;
        struct protect_case c = published(mid);
        if (protect_decide(&c).rows)
            high = mid;
        else
            low = mid;
    }
    printf("  8 MiB at 1 Gbit/s, 1 %% lost: parity from a round trip of %.2f ms on\n", (double)high / 1e6);
    CHECK_NEAR(high, MS(3), US(200));
    struct protect_case c = published(MS(1));
    CHECK_EQ(protect_decide(&c).reason, PROTECT_NEAR);
    c = published(MS(30));
    struct protection d = protect_decide(&c);
    CHECK_EQ(d.reason, PROTECT_FAR);
    CHECK_EQ(d.rows, 8);
    CHECK_NEAR(d.parity, US(8389), US(10)); /* h S / B */
    CHECK_NEAR(d.repair, US(86900), US(100)); /* 1.5 x 30 ms x ln 7282 / ln 100 */
}

static enum protect_reason reason(struct protect_case c)
{
    struct protection d = protect_decide(&c);
    CHECK((d.reason == PROTECT_FAR) == (d.rows > 0));
    CHECK(protect_reason_text(d.reason)[0]);
    return d.reason;
}

static void each_reason_has_its_case(void)
{
    struct protect_case c = published(MS(30));
    c.off = true;
    CHECK_EQ(reason(c), PROTECT_OFF);
    c = published(MS(30));
    c.loss = 0;
    CHECK_EQ(reason(c), PROTECT_CLEAN);
    c.loss = 0.00001;
    CHECK_EQ(reason(c), PROTECT_CLEAN);
    c = published(-1);
    CHECK_EQ(reason(c), PROTECT_NO_RTT);
    c = published(MS(30));
    c.loss = 0.26;
    CHECK_EQ(reason(c), PROTECT_BEYOND);
    c.loss = 1;
    CHECK_EQ(reason(c), PROTECT_BEYOND);
    c = published(MS(30));
    c.congested = true;
    CHECK_EQ(reason(c), PROTECT_CONGESTED);
    c = published(MS(30));
    c.deadline = MS(90); /* 75.5 ms and half a round trip, without parity 82 ms */
    CHECK_EQ(reason(c), PROTECT_NO_TIME);
    c = published(MS(30));
    c.datagrams = 1;
    c.loss = 0.2;
    CHECK_EQ(reason(c), PROTECT_NEAR); /* of one datagram parity is another one */
    c = published(MS(30));
    c.bytes = 0;
    c.datagrams = 0;
    CHECK_EQ(reason(c), PROTECT_CLEAN);
    c = published(MS(30));
    c.rate_bps = 1;
    c.rtt = SEC(1000000);
    CHECK(reason(c) != PROTECT_FAR);
    CHECK_EQ(reason((struct protect_case){.loss = NAN, .rtt = MS(1), .rate_bps = 1}), PROTECT_CLEAN);
}

/* At least twice as much parity as is lost. */
static void more_loss_takes_more_rows(void)
{
    static const struct { double loss; uint8_t rows; } want[] = {
        {0.001, 8}, {0.0625, 8}, {0.063, 16}, {0.125, 16}, {0.126, 32}, {0.25, 32}};
    for (uint32_t i = 0; i < sizeof want / sizeof want[0]; i++) {
        struct protect_case c = published(MS(200));
        c.loss = want[i].loss;
        CHECK_EQ(protect_decide(&c).rows, want[i].rows);
    }
}

TEST_SUITE(protect) = {
    TEST(what_is_lost_comes_back),
    TEST(nonsense_is_borne),
    TEST(breaks_even_at_three_milliseconds),
    TEST(each_reason_has_its_case),
    TEST(more_loss_takes_more_rows),
    TEST_END,
};
