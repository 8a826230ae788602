/* A relay on the way that damages, cuts, repeats, delays, withholds and makes up
 * datagrams.  What is damaged by chance is dropped and counted, and the results are the same
 * bits; what carries a right tag (`security = none`) may cost values and the job's coherence,
 * never a call past its deadline, nor memory. */
#include "forge.h"
#include <malloc.h>

#define HEAP_SLACK (1u << 20) /* bytes: the rounds of a window */
#define COUNTER_AT 8          /* byte of the outer header */

/* ---- damage: each datagram is preceded by damaged copies ------------------- */

struct damage {
    bool retag;
    uint32_t at; /* next place to damage, over all datagrams */
    uint64_t copies;
    uint32_t types; /* bit t: a type t was damaged */
    uint32_t longest;
};

static void flip_one(sim *s, const struct sim_datagram *d, void *arg)
{
    static struct sim_datagram bad;
    struct damage *w = arg;
    w->types |= 1u << (d->data[0] & 15);
    bad = *d;
    bad.data[w->at / 8 % d->len] ^= (uint8_t)(1u << w->at % 8);
    w->at += 9; /* another bit of the next byte */
    w->copies++;
    if (w->retag)
        forge_retag(&bad);
    sim_relay(s, &bad, 0);
    sim_relay(s, d, 0);
}

#define SESSION_TYPES (1u << WIRE_PING | 1u << WIRE_DATA | 1u << WIRE_SUMMARY)

/* Damaged on the way: the tag tells, or the session that is not there. */
static uint64_t dropped(cluster *c)
{
    engine_counters k = all_counters(c);
    return k.corrupt + k.foreign;
}

/* Exact rounds while each datagram goes as damaged and then as it was: all damage is dropped. */
static struct damage damaged(bool sealed, void (*relay)(sim *, const struct sim_datagram *, void *),
                             unsigned rounds)
{
    sleet_rng rng = {test_seed()};
    struct damage w = {0};
    cluster *c = forged_cluster(sealed);
    if (!CHECK(c != NULL))
        return w;
    uint64_t before = dropped(c);
    sim_on_datagram(cluster_sim(c), relay, &w);
    for (unsigned i = 0; i < rounds; i++)
        CHECK(exact_round(c, &rng));
    cluster_idle(c, SEC(3));
    CHECK_EQ(w.types & SESSION_TYPES, SESSION_TYPES);
    CHECK_EQ(dropped(c) - before, w.copies);
    finish(c);
    return w;
}

static void a_flipped_bit_is_never_added(void)
{
    for (int sealed = 0; sealed < 2; sealed++) /* each of 1224 bytes several times */
        CHECK(damaged(sealed, flip_one, test_repeats(300)).at / 8 >= test_repeats(12000));
}

/* Cut at every length, and longer than it was. */
static void cut_one(sim *s, const struct sim_datagram *d, void *arg)
{
    static struct sim_datagram bad;
    struct damage *w = arg;
    uint32_t most = w->retag ? WIRE_DATAGRAM_MAX + 100 : (uint32_t)sizeof bad.data;
    w->types |= 1u << (d->data[0] & 15);
    bad = *d;
    bad.len = 1 + w->at++ % (d->len + 40);
    if (bad.len == d->len)
        bad.len = most;
    if (w->retag)
        forge_retag(&bad);
    w->copies++;
    w->longest = d->len > w->longest ? d->len : w->longest;
    sim_relay(s, &bad, 0);
    sim_relay(s, d, 0);
}

static void a_cut_or_padded_one_is_dropped(void)
{
    for (int sealed = 0; sealed < 2; sealed++) {
        struct damage w = damaged(sealed, cut_one, test_repeats(100));
        CHECK_EQ(w.longest, WIRE_DATAGRAM_MAX);
        CHECK(w.at > test_repeats(3000));
    }
}

/* ---- the same with a right tag: bounds hold -------------------------------- */

static void bear(void (*relay)(sim *, const struct sim_datagram *, void *), void *arg)
{
    sleet_rng rng = {test_seed()};
    sleet_round_options options = {.deadline_ns = MS(200)};
    cluster *c = forged_cluster(false);
    REQUIRE(c);
    for (unsigned i = 0; i < 20; i++)
        CHECK(exact_round(c, &rng));
    size_t heap = mallinfo2().uordblks;
    sim_on_datagram(cluster_sim(c), relay, arg);
    for (unsigned i = 0; i < test_repeats(200); i++) {
        fill_grid(c, &rng);
        CHECK(cluster_round(c, &options));
        cluster_idle(c, MS(5));
    }
    CHECK(mallinfo2().uordblks <= heap + HEAP_SLACK);
    CHECK_EQ(cluster_overdue(c), 0);
    engine_counters k = all_counters(c);
    CHECK_EQ(k.in, k.accepted + k.duplicate + k.corrupt + k.foreign + k.stale + k.overflow);
    cluster_free(c);
}

static void flips_with_a_right_tag_are_borne(void)
{
    struct damage w = {.retag = true};
    bear(flip_one, &w);
}

static void cuts_with_a_right_tag_are_borne(void)
{
    struct damage w = {.retag = true};
    bear(cut_one, &w);
}

/* Numbers at the ends of their ranges, in otherwise right datagrams. */
static void put_extremes(sim *s, const struct sim_datagram *d, void *arg)
{
    static const uint64_t ends[] = {0,
                                    1,
                                    0x7fffffff,
                                    0x80000000,
                                    0xfffffffd,
                                    0xffffffff,
                                    UINT64_C(1) << 32,
                                    INT64_MAX,
                                    (uint64_t)INT64_MIN,
                                    UINT64_MAX};
    static struct sim_datagram bad;
    struct damage *w = arg;
    uint32_t body = d->len - WIRE_TAG_BYTES, words = body / 4 > 24 ? 24 : body / 4;
    uint64_t value = ends[w->at % (sizeof ends / sizeof ends[0])];
    uint32_t at = 4 * (1 + w->at / 10 % words), width = w->at / 240 % 2 ? 8 : 4;
    w->at++;
    bad = *d;
    memcpy(bad.data + at, &value, at + width <= body ? width : 4);
    forge_retag(&bad);
    sim_relay(s, &bad, 0);
    sim_relay(s, d, 0);
}

static void extreme_numbers_are_borne(void)
{
    struct damage w = {0};
    bear(put_extremes, &w);
}

/* Copies with counters near the top of their range move no window: the real ones go on. */
static void leap(sim *s, const struct sim_datagram *d, void *arg)
{
    static const uint64_t far[] = {UINT64_C(1) << 63, INT64_MAX, UINT64_MAX, UINT64_C(1) << 40};
    static struct sim_datagram bad;
    struct damage *w = arg;
    uint8_t type = d->data[0] & 15;
    bad = *d;
    memcpy(bad.data + COUNTER_AT, &far[w->at++ % 4], 8);
    forge_retag(&bad);
    w->copies += type != WIRE_HELLO && type != WIRE_HELLO_ACK;
    sim_relay(s, &bad, 0);
    sim_relay(s, d, 0);
}

static void a_leaping_counter_shuts_nobody_out(void)
{
    sleet_rng rng = {test_seed()};
    struct damage w = {0};
    cluster *c = forged_cluster(false);
    REQUIRE(c);
    engine_counters before = all_counters(c);
    sim_on_datagram(cluster_sim(c), leap, &w);
    for (unsigned i = 0; i < test_repeats(100); i++)
        CHECK(exact_round(c, &rng));
    cluster_idle(c, SEC(3));
    CHECK_EQ(all_counters(c).duplicate - before.duplicate, w.copies);
    finish(c);
}

/* ---- repeats and order ------------------------------------------------------ */

static void repeat(sim *s, const struct sim_datagram *d, void *arg)
{
    struct damage *w = arg;
    uint32_t times = w->at++ % 100;
    sim_relay(s, d, 0);
    for (uint32_t i = 0; i < times; i++)
        sim_relay(s, d, US(i * i));
    w->copies += times;
}

static void hundredfold(bool sealed)
{
    sleet_rng rng = {test_seed()};
    struct damage w = {0};
    cluster *c = forged_cluster(sealed);
    REQUIRE(c);
    engine_counters before = all_counters(c);
    sim_on_datagram(cluster_sim(c), repeat, &w);
    for (unsigned i = 0; i < test_repeats(30); i++)
        CHECK(exact_round(c, &rng));
    cluster_idle(c, SEC(1));
    CHECK_EQ(all_counters(c).duplicate - before.duplicate, w.copies);
    CHECK_EQ(all_counters(c).overlap, 0);
    finish(c);
}

static void a_hundredfold_counts_once(void)
{
    hundredfold(false);
    hundredfold(true);
}

/* What is sent within 2 ms, a share of a round and more, arrives in the opposite order. */
static void turn_round(sim *s, const struct sim_datagram *d, void *arg)
{
    struct damage *w = arg;
    sleet_duration into = sim_now(s).ns % MS(2), later = 2 * (MS(2) - into) - w->at++ % 1000 * 10;
    sim_relay(s, d, later > 0 ? later : 0);
}

static void reversed(bool sealed)
{
    sleet_rng rng = {test_seed()};
    cluster *c = forged_cluster(sealed);
    struct damage w = {0};
    engine_peer peers[FORGE_NODES];
    REQUIRE(c);
    sim_on_datagram(cluster_sim(c), turn_round, &w);
    for (int i = 0; i < 10; i++)
        exact_round(c, &rng); /* how late datagrams come has to be learned */
    for (unsigned i = 0; i < test_repeats(100); i++)
        CHECK(exact_round(c, &rng));
    CHECK_EQ(engine_get_peers(sim_engine(cluster_sim(c), 0), peers, FORGE_NODES,
                              sim_now(cluster_sim(c))),
             FORGE_NODES - 1);
    CHECK(peers[0].gaps > peers[0].received / 20);
    finish(c);
}

static void reversed_shares_give_the_same_bits(void)
{
    reversed(false);
    reversed(true);
}

/* ---- replays: kept and sent again later, in and out of the window ----------- */

static void replays_change_nothing(void)
{
    sleet_rng rng = {test_seed()};
    struct tape t = {.kept = calloc(KEPT, sizeof *t.kept)};
    cluster *c = forged_cluster(false);
    REQUIRE(c && t.kept);
    sim_on_datagram(cluster_sim(c), record, &t);
    while (t.n < KEPT)
        CHECK(exact_round(c, &rng));
    sim_on_datagram(cluster_sim(c), NULL, NULL);
    for (int age = 0; age < 3; age++) { /* at once, and when the window has gone on */
        engine_counters before = all_counters(c), after;
        play(c, &t);
        for (int i = 0; i < 10; i++)
            CHECK(exact_round(c, &rng));
        after = all_counters(c);
        CHECK_EQ(after.duplicate - before.duplicate, KEPT);
        for (unsigned i = 0; i < 700; i++)
            CHECK(exact_round(c, &rng));
    }
    /* Across a restart: all that was said to or by the former life is foreign. */
    CHECK(sim_restart(cluster_sim(c), 1));
    CHECK_EQ(cluster_register(c, 1), SLEET_OK);
    bool together = false;
    for (int i = 0; i < 50 && !together; i++) {
        cluster_idle(c, MS(100));
        together = exact_round(c, &rng);
    }
    CHECK(together);
    engine_counters before, after;
    engine_get_counters(sim_engine(cluster_sim(c), 1), &before);
    play(c, &t);
    for (int i = 0; i < 10; i++)
        CHECK(exact_round(c, &rng));
    engine_get_counters(sim_engine(cluster_sim(c), 1), &after);
    CHECK(after.foreign - before.foreign + after.duplicate - before.duplicate > KEPT / 4);
    CHECK_EQ(after.corrupt, before.corrupt);
    finish(c);
    free(t.kept);
}

/* ---- a sealed node and those who have no key ---------------------------------- */

#define STRANGE 1000000u

/* Noise, or what was heard on the way, damaged, from here or there. */
static void make_strange(struct sim_datagram *d, const struct tape *t, sleet_rng *rng)
{
    *d = t->kept[rng_below(rng, t->n < KEPT ? t->n : KEPT)];
    uint32_t kind = rng_below(rng, 4);
    if (kind == 0)
        d->len = 1 + rng_below(rng, 1400);
    for (uint32_t i = 0; kind == 0 && i < d->len; i += 8) {
        uint64_t noise = rng_next(rng);
        memcpy(d->data + i, &noise, 8);
    }
    if (kind == 1)
        d->len = 1 + rng_below(rng, d->len);
    d->data[rng_below(rng, d->len)] ^= (uint8_t)(1 + rng_below(rng, 255));
    if (kind == 3)
        forge_retag(d);
    if (rng_below(rng, 2))
        d->seen.ip[15] = (uint8_t)(100 + rng_below(rng, 100));
}

/* A million of them: not a byte of memory, not one answer, and rounds as before. */
static void strangers_cost_a_sealed_node_nothing(void)
{
    static struct sim_datagram d;
    static engine_burst burst;
    sleet_rng rng = {test_seed()};
    struct tape t = {.kept = calloc(KEPT, sizeof *t.kept)};
    cluster *c = forged_cluster(true);
    REQUIRE(c && t.kept);
    sim_on_datagram(cluster_sim(c), record, &t);
    while (t.n < KEPT)
        CHECK(exact_round(c, &rng));
    sim_on_datagram(cluster_sim(c), NULL, NULL);
    cluster_idle(c, MS(10));
    engine *e = sim_engine(cluster_sim(c), 0);
    engine_counters before, after;
    uint32_t many = test_repeats(STRANGE);
    uint64_t answers = 0;
    engine_get_counters(e, &before);
    size_t heap = mallinfo2().uordblks;
    for (uint32_t i = 0; i < many; i++) {
        make_strange(&d, &t, &rng);
        engine_recv(e, &d.seen, d.data, d.len, sim_now(cluster_sim(c)));
        answers += i % 64 == 0 && engine_send(e, &burst, sim_now(cluster_sim(c))) > 0;
    }
    answers += engine_send(e, &burst, sim_now(cluster_sim(c))) > 0;
    CHECK_EQ(mallinfo2().uordblks, heap);
    CHECK_EQ(answers, 0);
    engine_get_counters(e, &after);
    CHECK_EQ(after.in - before.in, many);
    CHECK_EQ(after.corrupt + after.foreign - before.corrupt - before.foreign, many);
    CHECK(exact_round(c, &rng));
    finish(c);
    free(t.kept);
}

TEST_SUITE(forge) = {
    TEST(a_flipped_bit_is_never_added),
    TEST(a_cut_or_padded_one_is_dropped),
    TEST(flips_with_a_right_tag_are_borne),
    TEST(cuts_with_a_right_tag_are_borne),
    TEST(extreme_numbers_are_borne),
    TEST(a_leaping_counter_shuts_nobody_out),
    TEST(a_hundredfold_counts_once),
    TEST(reversed_shares_give_the_same_bits),
    TEST(replays_change_nothing),
    TEST(strangers_cost_a_sealed_node_nothing),
    TEST_END,
};
