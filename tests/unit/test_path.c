#include "base/rng.h"
#include "path/path.h"
#include "sleet_test.h"

static sleet_time at(sleet_duration d) { return (sleet_time){d}; }

static void rtt_follows_rfc_6298(void)
{
    struct rtt r;
    rtt_init(&r);
    CHECK(!r.valid);
    CHECK_EQ(rtt_timeout(&r), SEC(1));
    rtt_sample(&r, -5);
    CHECK(!r.valid);
    rtt_sample(&r, MS(80));
    CHECK(r.valid && r.srtt == MS(80) && r.var == MS(40) && r.min == MS(80));
    CHECK_EQ(rtt_timeout(&r), MS(240));
    rtt_sample(&r, MS(40));
    CHECK_EQ(r.var, MS(40));
    CHECK_EQ(r.srtt, MS(75));
    CHECK_EQ(r.min, MS(40));
    for (int i = 0; i < 200; i++)
        rtt_sample(&r, MS(20));
    CHECK(rtt_timeout(&r) >= MS(21) - 1000 && rtt_timeout(&r) < MS(22));
    for (int i = 0; i < 200; i++)
        rtt_sample(&r, SEC(1000));
    CHECK_EQ(rtt_timeout(&r), SEC(60));
}

#define SENDS 4000

/* In every interval between two sends no more than rate * t + burst bytes leave. */
static void pacer_never_exceeds_its_rate(void)
{
    static struct { double t, sum; } log[SENDS];
    const uint32_t burst = 20000;
    const double rate = 100e6 / 8e9; /* bytes a nanosecond */
    sleet_rng rng = {test_seed()};
    struct pacer p;
    int n = 0;
    double sum = 0, least = 0, excess = 0;
    sleet_time now = at(SEC(5));
    pacer_init(&p, 100000000, burst, now);
    while (n < SENDS) {
        while (n < SENDS && pacer_ready(&p, now)) {
            uint32_t room = pacer_room(&p), bytes = 1 + rng_below(&rng, room);
            CHECK(room >= burst / 2);
            pacer_spend(&p, bytes);
            log[n].t = (double)now.ns;
            log[n++].sum = sum += bytes;
        }
        now = pacer_next(&p);
        CHECK(pacer_ready(&p, now));
        if (rng_below(&rng, 10) == 0)
            now = time_add(now, rng_below(&rng, MS(5)));
    }
    for (int i = 0; i < n; i++) { /* largest of sum - rate t from any start on */
        double start = (i ? log[i - 1].sum : 0) - rate * log[i].t;
        double end = log[i].sum - rate * log[i].t;
        least = i == 0 || start < least ? start : least;
        excess = end - least > excess ? end - least : excess;
    }
    CHECK(excess <= burst + 1);
}

static void pacer_keeps_up(void)
{
    struct pacer p;
    double sum = 0;
    sleet_time now = at(0);
    pacer_init(&p, 80000000, 20000, now); /* 10 bytes a microsecond */
    while (now.ns < SEC(1)) {
        while (pacer_ready(&p, now)) {
            pacer_spend(&p, 1224);
            sum += 1224;
        }
        now = time_add(pacer_next(&p), US(300)); /* a late timer costs nothing */
    }
    CHECK(sum > 9.9e6 && sum < 10.1e6);
}

static void pacer_cuts_and_regains(void)
{
    struct pacer p;
    sleet_time now = at(SEC(1));
    const sleet_duration rtt = MS(10);
    pacer_init(&p, 64000000, 20000, now);
    pacer_cut(&p, rtt, now);
    CHECK_EQ(p.rate_bps, 32000000);
    pacer_cut(&p, rtt, time_add(now, rtt - 1));
    CHECK_EQ(p.rate_bps, 32000000);
    pacer_regain(&p, rtt, time_add(now, rtt - 1));
    CHECK_EQ(p.rate_bps, 32000000);
    for (int i = 0; i < 20; i++)
        pacer_cut(&p, rtt, now = time_add(now, rtt));
    CHECK_EQ(p.rate_bps, 1000000);
    pacer_regain(&p, rtt, now = time_add(now, rtt));
    pacer_regain(&p, rtt, now);
    CHECK_EQ(p.rate_bps, 5000000);
    for (int i = 0; i < 15; i++)
        pacer_regain(&p, rtt, now = time_add(now, rtt));
    CHECK_EQ(p.rate_bps, 64000000);
    pacer_regain(&p, rtt, time_add(now, rtt));
    CHECK_EQ(p.rate_bps, 64000000);
}

#define FLOW_RATE 64000000u

/* Data at `now`, then every patience what is due; -> questions asked. */
static uint32_t keep_silent(struct flow *f, const struct rtt *r, sleet_time *now, int patiences)
{
    uint32_t asked = 0;
    flow_sent(f, r, 1, 1000, *now);
    for (int i = 0; i < patiences; i++) {
        *now = time_add(*now, MS(20) - 1);
        CHECK(!flow_expire(f, r, *now));
        *now = time_add(*now, 1);
        asked += flow_expire(f, r, *now);
    }
    return asked;
}

static void flow_slows_down_for_the_silent(void)
{
    struct flow f;
    struct rtt r = {.srtt = US(400), .var = US(100), .valid = true};
    sleet_time now = at(SEC(1));
    flow_init(&f, FLOW_RATE, 20000, now);
    CHECK(time_is_never(flow_deadline(&f, &r)));
    CHECK_EQ(keep_silent(&f, &r, &now, 1), 1);
    CHECK_EQ(f.pacer.rate_bps, FLOW_RATE); /* asked, not yet silent */
    flow_heard(&f);
    CHECK(time_is_never(flow_deadline(&f, &r)));
    CHECK_EQ(keep_silent(&f, &r, &now, 3), 3);
    CHECK_EQ(f.pacer.rate_bps, FLOW_RATE / 4);
    CHECK(!flow_expire(&f, &r, time_add(now, MS(15)))); /* the silent regain nothing */
    CHECK_EQ(f.pacer.rate_bps, FLOW_RATE / 4);
    CHECK_EQ(keep_silent(&f, &r, &now, 50), FLOW_QUESTIONS_MAX - 3);
    CHECK_EQ(f.pacer.rate_bps, FLOW_RATE / 64);
    CHECK(time_is_never(flow_deadline(&f, &r)));
    flow_heard(&f);
    for (int i = 0; i < 16; i++) {
        CHECK(f.pacer.rate_bps < FLOW_RATE);
        now = flow_deadline(&f, &r);
        CHECK(!flow_expire(&f, &r, now));
    }
    CHECK_EQ(f.pacer.rate_bps, FLOW_RATE);
    CHECK(time_is_never(flow_deadline(&f, &r)));
}

static void flow_stops_for_the_silent_only(void)
{
    struct flow f;
    struct rtt r = {.srtt = US(400), .var = US(100), .valid = true};
    sleet_time now = at(SEC(1));
    flow_init(&f, FLOW_RATE, 20000, now);
    flow_sent(&f, &r, 10 * FLOW_UNANSWERED_MAX, 1000, now);
    CHECK(!flow_stopped(&f)); /* it had no time to answer */
    keep_silent(&f, &r, &now, 2);
    flow_sent(&f, &r, FLOW_UNANSWERED_MAX - 1, 1000, now);
    CHECK(!flow_stopped(&f));
    flow_sent(&f, &r, 1, 1000, now);
    CHECK(flow_stopped(&f));
    flow_heard(&f);
    CHECK(!flow_stopped(&f));
}

/* The patience is the peer's own, and does not run while this process sleeps. */
static void flow_is_patient(void)
{
    struct flow f;
    struct rtt r = {.srtt = MS(100), .var = MS(10), .valid = true};
    sleet_time now = at(SEC(1));
    flow_init(&f, FLOW_RATE, 20000, now);
    flow_slept(&f, SEC(1));
    CHECK(time_is_never(flow_deadline(&f, &r)));
    flow_sent(&f, &r, 1, 1000, now);
    CHECK_EQ(flow_deadline(&f, &r).ns, now.ns + rtt_timeout(&r));
    flow_slept(&f, SEC(1));
    CHECK_EQ(flow_deadline(&f, &r).ns, now.ns + SEC(1) + rtt_timeout(&r));
    flow_overflow(&f, &r, now);
    flow_overflow(&f, &r, time_add(now, MS(99)));
    CHECK_EQ(f.pacer.rate_bps, FLOW_RATE / 2);
    flow_overflow(&f, &r, time_add(now, MS(100)));
    CHECK_EQ(f.pacer.rate_bps, FLOW_RATE / 4);
    CHECK_EQ(flow_deadline(&f, &r).ns, now.ns + MS(200)); /* overflow is no silence */
}

static void reorder_measures_lateness(void)
{
    struct reorder r;
    struct rtt rtt;
    sleet_time now = at(SEC(1));
    reorder_init(&r);
    rtt_init(&rtt);
    CHECK_EQ(reorder_grace(&r, &rtt), MS(1));
    for (uint64_t c = 1; c <= 100; c++, now = time_add(now, US(100)))
        reorder_note(&r, c, now);
    CHECK_EQ(r.extent, 0);
    for (uint64_t c = 102; c <= 201; c++, now = time_add(now, US(100)))
        reorder_note(&r, c, now);
    reorder_note(&r, 101, now); /* 10 ms after it was overtaken; marks are coarser */
    CHECK(r.extent > MS(7) && r.extent <= MS(10));
    CHECK_EQ(r.highest, 201);
    CHECK_EQ(reorder_grace(&r, &rtt), r.extent + r.extent / 4);
    rtt_sample(&rtt, MS(200));
    CHECK_EQ(reorder_grace(&r, &rtt), MS(200));
    for (uint64_t c = 202; c < 60000; c++)
        reorder_note(&r, c, now = time_add(now, US(100)));
    CHECK(r.extent < US(100));
}

/* A share lost in bursts and disorder is found; a clean path has none; a new session begins anew. */
static void loss_is_what_does_not_arrive(void)
{
    sleet_rng rng = {test_seed()};
    struct loss l = {0};
    uint64_t counter = 0, received = 0;
    CHECK_EQ(loss_share(&l), 0);
    for (int i = 0; i < 255; i++)
        loss_note(&l, ++counter, ++received);
    CHECK(!l.valid);
    for (int i = 0; i < 20000; i++) {
        counter++;
        if (counter / 8 % 10 == 3) /* 10 % in bursts of 8 */
            continue;
        loss_note(&l, counter - (rng_below(&rng, 4) == 0), ++received);
    }
    CHECK(l.valid);
    CHECK_NEAR(loss_share(&l), 0.1, 0.02);
    for (int i = 0; i < 20000; i++)
        loss_note(&l, ++counter, ++received);
    CHECK(loss_share(&l) < 1e-6);
    loss_note(&l, counter + 100000, received + 1);
    CHECK(loss_share(&l) > 0.2 && loss_share(&l) < 0.3);
    loss_note(&l, 10, 10);
    CHECK(!l.valid && loss_share(&l) == 0);
}

/* A train of n datagrams that leave `left` apart over a link with that rate: each waits for the one before. */
static void train(struct capacity *c, uint32_t number, uint32_t n, sleet_duration left, uint64_t bps, bool last)
{
    static sleet_time now;
    now = time_add(now, SEC(1));
    sleet_time sent = now, free_at = now;
    for (uint32_t i = 0; i < n; i++) {
        sleet_time start = time_before(free_at, sent) ? sent : free_at;
        free_at = time_add(start, (sleet_duration)(1000 * 8e9 / (double)bps));
        capacity_note(c, number, (uint32_t)(sent.ns / 1000) - 500, 1000, last && i == n - 1, time_add(free_at, MS(40)));
        sent = time_add(sent, left);
    }
}

static void capacity_is_what_trains_tell(void)
{
    struct capacity c = {0};
    uint32_t number = 0;
    train(&c, ++number, 2, 0, 2000000, true); /* too short */
    CHECK_EQ(capacity_bps(&c), 0);
    train(&c, ++number, 10, MS(20), 2000000, true); /* the pace sets the rate */
    CHECK_NEAR((double)capacity_bps(&c), 4e5, 4e3);
    CHECK(capacity_at_least(&c));
    train(&c, ++number, 3, 0, 2000000, false);
    CHECK_NEAR((double)capacity_bps(&c), 4e5, 4e3); /* it may go on */
    train(&c, ++number, 10, 0, 2000000, true);
    CHECK_NEAR((double)capacity_bps(&c), 2e6, 2e4);
    CHECK(!capacity_at_least(&c));
    for (int i = 0; i < 20; i++) /* no news */
        train(&c, ++number, 10, MS(20), 2000000, true);
    CHECK_NEAR((double)capacity_bps(&c), 2e6, 2e4);
    for (int i = 0; i < 3; i++)
        train(&c, ++number, 10, 0, 20000000, true);
    CHECK_NEAR((double)capacity_bps(&c), 20e6, 2e5);
    for (int i = 0; i < 3; i++)
        train(&c, ++number, 30, 0, 2000000, true);
    CHECK_NEAR((double)capacity_bps(&c), 2e6, 2e4);
    for (int i = 0; i < 2; i++) /* read late, all at once */
        train(&c, ++number, 10, 0, UINT64_C(1) << 50, true);
    CHECK_NEAR((double)capacity_bps(&c), 2e6, 2e4);
}

/* What left over a second and is read at once came at no other rate than it left. */
static void capacity_is_no_matter_of_late_reading(void)
{
    struct capacity c = {0};
    for (uint32_t i = 0; i < 11; i++)
        capacity_note(&c, 1, 100000 * i, 1000, i == 10, (sleet_time){SEC(5)});
    CHECK_EQ(capacity_bps(&c), 80000);
    CHECK(capacity_at_least(&c));
}

static void capacity_counts_what_travels_along(void)
{
    struct capacity c = {0};
    sleet_time now = {SEC(1)};
    capacity_beside(&c, 5000); /* before the train: none of it */
    for (uint32_t i = 0; i < 11; i++) {
        capacity_note(&c, 1, 7, 1000, i == 10, now);
        if (i < 10)
            capacity_beside(&c, 1000);
        now = time_add(now, MS(8));
    }
    CHECK_EQ(capacity_bps(&c), 2000000);
}

static void capacity_travels_as_16_bits(void)
{
    struct capacity c = {0};
    bool at_least;
    CHECK_EQ(capacity_code(&c), 0);
    CHECK_EQ(capacity_of_code(0, &at_least), 0);
    CHECK(!at_least);
    c.trains = 1;
    for (uint64_t bps = 1; bps < UINT64_C(1) << 41; bps += bps / 7 + 1) {
        c.measured[0] = bps;
        c.held_up = (uint32_t)(bps % 5);
        uint64_t back = capacity_of_code(capacity_code(&c), &at_least);
        CHECK(back <= bps && bps - back <= bps / 512);
        CHECK_EQ(at_least, bps % 5 < 2);
    }
    c.measured[0] = UINT64_MAX;
    CHECK_EQ(capacity_code(&c), 0x7fff);
}

TEST_SUITE(path) = {
    TEST(capacity_is_what_trains_tell),
    TEST(capacity_is_no_matter_of_late_reading),
    TEST(capacity_counts_what_travels_along),
    TEST(capacity_travels_as_16_bits),
    TEST(loss_is_what_does_not_arrive),
    TEST(rtt_follows_rfc_6298),
    TEST(pacer_never_exceeds_its_rate),
    TEST(pacer_keeps_up),
    TEST(pacer_cuts_and_regains),
    TEST(flow_slows_down_for_the_silent),
    TEST(flow_stops_for_the_silent_only),
    TEST(flow_is_patient),
    TEST(reorder_measures_lateness),
    TEST_END,
};
