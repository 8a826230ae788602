/* Two sides of sealed sessions by hand: gates, peers and the datagrams between them. */
#include "base/bytes.h"
#include "session/peer.h"
#include "sleet_test.h"
#include <string.h>

struct side {
    struct gate *gate;
    struct peer peer; /* the other one */
    uint32_t slot;    /* of the other one, here */
    sleet_addr addr;
    uint64_t counter;
    bool refuses;
};

static sleet_time now;

static int judge(void *arg, const uint8_t key[KEY_BYTES], const struct wire_ident *ident, bool fresh)
{
    const struct side *s = arg;
    const struct peer *p = &s->peer;
    if (s->refuses)
        return GATE_BARRED;
    if (!p->key_known || memcmp(p->key, key, KEY_BYTES) != 0)
        return 0;
    bool old = !fresh && p->boot_id == ident->boot_id && ident->stamp <= p->stamp;
    return old ? GATE_OLD : (int)s->slot;
}

static void start(struct side *s, uint8_t who, uint64_t boot, const char *job, uint8_t job_byte)
{
    uint8_t job_key[32] = {job_byte, 77}, secret[32] = {0, who}, seed[32] = {who, 2, (uint8_t)boot};
    struct gate_config c = {job, 288, boot, job_key, secret, seed};
    memset(s, 0, sizeof *s);
    s->gate = gate_new(&c, now);
    s->gate->judge = judge;
    s->gate->judge_arg = s;
    s->slot = who;
    s->addr = (sleet_addr){.ip = {0xfd}, .port = who};
}

static void stop(struct side *s)
{
    peer_fini(&s->peer);
    gate_free(s->gate);
}

static void both(struct side s[2])
{
    now = (sleet_time){SEC(1000)};
    start(&s[0], 1, 10, "job", 1);
    start(&s[1], 2, 20, "job", 1);
}

static void know_each_other(struct side s[2])
{
    for (unsigned i = 0; i < 2; i++) {
        memcpy(s[i].peer.key, s[1 - i].gate->self.public_key, KEY_BYTES);
        s[i].peer.key_known = true;
    }
}

/* ---- steps ----------------------------------------------------------------------- */

/* A handshake's MAC, by which the receiver knows the key of the job. */
static bool carries(struct side *from, struct side *to)
{
    uint8_t dgram[WIRE_DATAGRAM_MAX] = {0};
    size_t n = gate_seal(from->gate, dgram, WIRE_OFFER_BYTES);
    return gate_right(to->gate, dgram, n);
}

static enum gate_verdict offer(struct side *from, struct side *to, struct gate_reply *r)
{
    uint8_t body[WIRE_OFFER_BYTES];
    CHECK_EQ(peer_offer(&from->peer, from->gate, from->slot, body, now), sizeof body);
    carries(from, to);
    return gate_recv_offer(to->gate, &from->addr, body, sizeof body, now, r);
}

/* The one who began gets the answer; with XX the other gets its HELLO_DONE. */
static bool take_answer(struct side *s, struct side *other, const struct gate_reply *r)
{
    struct keypair pair;
    struct wire_ident theirs;
    uint8_t key[KEY_BYTES], done[WIRE_DONE_BYTES];
    uint32_t index;
    if (!peer_recv_answer(&s->peer, s->gate, r->index, r->body, r->len, &pair, key, &theirs, now))
        return false;
    CHECK_MEM(key, other->gate->self.public_key, KEY_BYTES);
    peer_install(&s->peer, s->gate, &pair, key, &theirs, now);
    if (peer_done(&s->peer, done, &index)) {
        struct pending *p = gate_recv_done(other->gate, index, done, sizeof done, now);
        if (!CHECK(p != NULL))
            return false;
        theirs = p->theirs;
        memcpy(key, p->key, KEY_BYTES);
        gate_take(p, &pair);
        peer_install(&other->peer, other->gate, &pair, key, &theirs, now);
    }
    return true;
}

/* A sealed datagram from `s` as bytes. */
static size_t seal(struct side *s, uint8_t *dgram)
{
    struct keypair *k = peer_sending(&s->peer, now);
    struct wire_header h = {WIRE_VERSION, WIRE_PING, k ? k->peer_index : 0, ++s->counter};
    if (!k)
        return 0;
    datagram_header(dgram, &h);
    memcpy(dgram + WIRE_HEADER_BYTES, "text", 4);
    return keypair_seal(k, h.counter, dgram, 4);
}

static enum keypair_verdict open_at(struct side *s, const uint8_t *dgram, size_t n)
{
    uint32_t index = (uint32_t)le_load(dgram + 4, 4);
    uint64_t counter = le_load(dgram + 8, 8);
    uint8_t room[WIRE_BODY_MAX], key[KEY_BYTES];
    enum keypair_verdict v = KEYPAIR_FORGED;
    struct keypair *k = peer_pair(&s->peer, index), pair;
    struct pending *p = k ? NULL : gate_pending(s->gate, index, now);
    if (!k && !p)
        return v;
    if (!keypair_open(p ? &p->pair : k, counter, dgram, n, room, now, &v))
        return v;
    if (p) {
        struct wire_ident theirs = p->theirs;
        memcpy(key, p->key, KEY_BYTES);
        gate_take(p, &pair);
        peer_install(&s->peer, s->gate, &pair, key, &theirs, now);
        k = peer_pair(&s->peer, index);
    }
    peer_heard(&s->peer, k, now);
    return v;
}

static bool passes(struct side *from, struct side *to)
{
    uint8_t dgram[WIRE_DATAGRAM_MAX];
    size_t n = seal(from, dgram);
    return n && open_at(to, dgram, n) == KEYPAIR_FINE;
}

static bool meet(struct side *from, struct side *to)
{
    struct gate_reply r;
    return offer(from, to, &r) == GATE_ANSWER && take_answer(from, to, &r) && passes(from, to) &&
           passes(to, from);
}

static void finish(struct side s[2])
{
    stop(&s[0]);
    stop(&s[1]);
}

/* ---- tests -------------------------------------------------------------------------- */

static void strangers_meet_by_address(void)
{
    struct side s[2];
    both(s);
    CHECK(meet(&s[0], &s[1]));
    CHECK_EQ(s[0].peer.boot_id, 20);
    CHECK_EQ(s[1].peer.boot_id, 10);
    CHECK(s[1].peer.key_known);
    CHECK_MEM(s[0].peer.current.hash, s[1].peer.current.hash, NOISE_HASH_BYTES);
    CHECK_EQ(s[0].peer.current.cipher, s[1].peer.current.cipher);
    CHECK(s[0].peer.offer == NULL);
    finish(s);
}

static void acquaintances_meet_by_key(void)
{
    struct side s[2];
    struct gate_reply r;
    both(s);
    know_each_other(s);
    CHECK_EQ(offer(&s[0], &s[1], &r), GATE_ANSWER);
    CHECK_EQ(r.body[0], NOISE_IKPSK2);
    CHECK(take_answer(&s[0], &s[1], &r));
    CHECK(!keypair_there(&s[1].peer.current)); /* it has shown nothing yet */
    CHECK(passes(&s[0], &s[1]));
    CHECK(passes(&s[1], &s[0]));
    finish(s);
}

static void an_answer_is_no_longer_than_its_question(void)
{
    struct side s[2];
    struct gate_reply r;
    for (int known = 0; known < 2; known++) {
        both(s);
        if (known)
            know_each_other(s);
        CHECK_EQ(offer(&s[0], &s[1], &r), GATE_ANSWER);
        CHECK(r.len <= WIRE_OFFER_BYTES);
        finish(s);
    }
}

static void the_same_hello_has_the_same_answer(void)
{
    struct side s[2];
    struct gate_reply first, again;
    both(s);
    know_each_other(s);
    CHECK_EQ(offer(&s[0], &s[1], &first), GATE_ANSWER);
    now = time_add(now, SEC(1));
    CHECK_EQ(offer(&s[0], &s[1], &again), GATE_ANSWER);
    CHECK_EQ(first.len, again.len);
    CHECK_MEM(first.body, again.body, first.len);
    CHECK(take_answer(&s[0], &s[1], &first));
    CHECK(!take_answer(&s[0], &s[1], &again));
    CHECK(passes(&s[0], &s[1]));
    finish(s);
}

/* What was heard before is refused once the handshake has ended, and ends in nothing before. */
static void an_old_hello_is_worth_nothing(void)
{
    struct side s[2];
    uint8_t old[WIRE_OFFER_BYTES];
    struct gate_reply r;
    both(s);
    know_each_other(s);
    peer_offer(&s[0].peer, s[0].gate, s[0].slot, old, now);
    CHECK(meet(&s[0], &s[1]));
    CHECK_EQ(gate_recv_offer(s[1].gate, &s[0].addr, old, sizeof old, now, &r), GATE_DROP);
    struct keypair before = s[1].peer.current;
    peer_fini(&s[1].peer); /* it restarts and has forgotten everything */
    gate_free(s[1].gate);
    start(&s[1], 2, 21, "job", 1);
    CHECK_EQ(gate_recv_offer(s[1].gate, &s[0].addr, old, sizeof old, now, &r), GATE_ANSWER);
    CHECK(!take_answer(&s[0], &s[1], &r));
    CHECK(!keypair_there(&s[1].peer.current));
    CHECK(memcmp(before.send, s[1].gate->pending[0].pair.send, 32) != 0);
    CHECK(!passes(&s[0], &s[1]));
    CHECK(meet(&s[1], &s[0])); /* the new life is met as one */
    CHECK_EQ(s[0].peer.boot_id, 21);
    finish(s);
}

static void both_begin_at_once(void)
{
    for (unsigned order = 0; order < 4; order++) {
        struct side s[2];
        struct gate_reply r[2];
        both(s);
        know_each_other(s);
        CHECK_EQ(offer(&s[0], &s[1], &r[0]), GATE_ANSWER);
        CHECK_EQ(offer(&s[1], &s[0], &r[1]), GATE_ANSWER);
        unsigned first = order & 1, talks = order >> 1;
        CHECK(take_answer(&s[first], &s[1 - first], &r[first]));
        CHECK(take_answer(&s[1 - first], &s[first], &r[1 - first]));
        for (unsigned i = 0; i < 3; i++) {
            CHECK(passes(&s[talks], &s[1 - talks]));
            CHECK(passes(&s[1 - talks], &s[talks]));
        }
        CHECK_MEM(s[0].peer.current.hash, s[1].peer.current.hash, NOISE_HASH_BYTES);
        now = time_add(now, PEER_PREVIOUS_LIFE);
        for (unsigned i = 0; i < 2; i++) {
            CHECK(peer_expire(&s[i].peer, s[i].gate, now));
            CHECK(!keypair_there(&s[i].peer.previous));
            CHECK(!s[i].peer.renew);
        }
        CHECK(passes(&s[0], &s[1]) && passes(&s[1], &s[0]));
        finish(s);
    }
}

static void new_keys_leave_no_gap(void)
{
    struct side s[2];
    struct gate_reply r;
    uint8_t late[WIRE_DATAGRAM_MAX];
    both(s);
    CHECK(meet(&s[0], &s[1]));
    now = time_add(now, KEYPAIR_REKEY + PEER_SPREAD);
    CHECK(peer_expire(&s[0].peer, s[0].gate, now) && peer_expire(&s[1].peer, s[1].gate, now));
    CHECK(s[0].peer.renew && !s[1].peer.renew); /* the initiator asks first */
    size_t n = seal(&s[1], late);
    CHECK_EQ(offer(&s[0], &s[1], &r), GATE_ANSWER);
    CHECK(passes(&s[0], &s[1]) && passes(&s[1], &s[0])); /* with the old pair */
    CHECK(take_answer(&s[0], &s[1], &r));
    CHECK(passes(&s[1], &s[0])); /* old, the other way still */
    CHECK(passes(&s[0], &s[1])); /* new: which shows it */
    CHECK(passes(&s[1], &s[0]));
    CHECK_EQ(open_at(&s[0], late, n), KEYPAIR_FINE);
    CHECK_MEM(s[0].peer.current.hash, s[1].peer.current.hash, NOISE_HASH_BYTES);
    CHECK(s[1].peer.current.confirmed && s[0].peer.current.confirmed);
    CHECK(!s[0].peer.renew);
    finish(s);
}

/* Two handshakes end, and nothing that this side seals then arrives: what the other side
 * seals, with the keys that it is sure of, is still understood. */
static void sure_keys_outlast_unsure_ones(void)
{
    struct side s[2];
    struct gate_reply r;
    both(s);
    CHECK(meet(&s[0], &s[1]));
    for (unsigned i = 0; i < 2; i++) {
        now = time_add(now, PEER_OFFER_LIFE);
        CHECK_EQ(offer(&s[0], &s[1], &r), GATE_ANSWER);
        CHECK(take_answer(&s[0], &s[1], &r));
        CHECK(passes(&s[1], &s[0]));
    }
    CHECK(passes(&s[0], &s[1]));
    CHECK(passes(&s[1], &s[0]));
    finish(s);
}

static void old_keys_are_void(void)
{
    struct side s[2];
    uint8_t dgram[WIRE_DATAGRAM_MAX];
    both(s);
    CHECK(meet(&s[0], &s[1]));
    size_t n = seal(&s[0], dgram);
    now = time_add(now, KEYPAIR_REJECT);
    CHECK_EQ(open_at(&s[1], dgram, n), KEYPAIR_FORGED);
    CHECK(!peer_expire(&s[1].peer, s[1].gate, now));
    CHECK(!peer_sending(&s[1].peer, now));
    CHECK(meet(&s[0], &s[1]));
    finish(s);
}

static void counters_come_once_and_below_the_bound(void)
{
    struct side s[2];
    uint8_t dgram[WIRE_DATAGRAM_MAX], room[WIRE_BODY_MAX];
    enum keypair_verdict v;
    both(s);
    CHECK(meet(&s[0], &s[1]));
    size_t n = seal(&s[0], dgram);
    CHECK_EQ(open_at(&s[1], dgram, n), KEYPAIR_FINE);
    CHECK_EQ(open_at(&s[1], dgram, n), KEYPAIR_REPLAYED);
    struct keypair *k = &s[0].peer.current;
    CHECK_EQ(keypair_seal(k, k->last, dgram, 4), 0);
    CHECK_EQ(keypair_seal(k, KEYPAIR_COUNTER_MAX, dgram, 4), 0);
    CHECK_EQ(aead_seal((enum aead_cipher)k->cipher, k->send, KEYPAIR_COUNTER_MAX, dgram, 4), 36);
    CHECK(!keypair_open(&s[1].peer.current, KEYPAIR_COUNTER_MAX, dgram, 36, room, now, &v));
    CHECK_EQ(v, KEYPAIR_FORGED);
    CHECK(passes(&s[0], &s[1])); /* the window has not moved */
    finish(s);
}

static void forged_datagrams_move_nothing(void)
{
    struct side s[2];
    uint8_t dgram[WIRE_DATAGRAM_MAX];
    both(s);
    CHECK(meet(&s[0], &s[1]));
    uint64_t highest = s[1].peer.current.replay.highest;
    s[0].counter += 100000;
    size_t n = seal(&s[0], dgram);
    dgram[n - 1] ^= 1;
    CHECK_EQ(open_at(&s[1], dgram, n), KEYPAIR_FORGED);
    CHECK_EQ(s[1].peer.current.replay.highest, highest);
    finish(s);
}

static void another_job_is_refused(void)
{
    struct side s[2];
    struct gate_reply r;
    both(s);
    stop(&s[1]);
    start(&s[1], 2, 20, "another", 1);
    CHECK_EQ(offer(&s[0], &s[1], &r), GATE_JOB);
    s[1].gate->keys[0].job_tag = s[0].gate->keys[0].job_tag; /* a collision of the tags: the prologue differs */
    know_each_other(s);
    peer_withdraw(&s[0].peer);
    CHECK_EQ(offer(&s[0], &s[1], &r), GATE_DROP);
    stop(&s[1]);
    start(&s[1], 2, 20, "job", 1);
    s[1].gate->elements = 144;
    CHECK_EQ(offer(&s[0], &s[1], &r), GATE_ELEMENTS);
    CHECK_EQ(r.index, s[0].peer.offer->index);
    finish(s);
}

static void another_key_has_another_mac(void)
{
    struct side s[2];
    uint8_t dgram[WIRE_DATAGRAM_MAX];
    both(s);
    stop(&s[1]);
    start(&s[1], 2, 20, "job", 2);
    memset(dgram, 0, sizeof dgram);
    size_t n = gate_seal(s[0].gate, dgram, WIRE_OFFER_BYTES);
    CHECK(gate_right(s[0].gate, dgram, n));
    CHECK(!gate_right(s[1].gate, dgram, n));
    for (size_t i = 0; i < n; i++) {
        dgram[i] ^= 4;
        CHECK(!gate_right(s[0].gate, dgram, n));
        dgram[i] ^= 4;
    }
    finish(s);
}

static void who_is_not_let_in_gets_no_keys(void)
{
    struct side s[2];
    struct gate_reply r;
    both(s);
    know_each_other(s);
    s[1].refuses = true;
    CHECK_EQ(offer(&s[0], &s[1], &r), GATE_DENIED);
    finish(s);
}

static unsigned waiting(const struct gate *g)
{
    unsigned n = 0;
    for (unsigned i = 0; i < GATE_PENDING_MAX; i++)
        n += g->pending[i].index != 0;
    return n;
}

static unsigned rows_taken(const struct gate *g)
{
    unsigned n = 0;
    for (unsigned i = 0; i < GATE_ROWS; i++)
        n += g->rows[i] != 0;
    return n;
}

/* A flood of HELLOs with the job's MAC, as of members that were captured. */
static void a_flood_gets_cookies(void)
{
    struct side s[2];
    struct gate_reply r;
    unsigned answers = 0, cookies = 0;
    both(s);
    for (unsigned i = 0; i < 2000; i++) {
        peer_withdraw(&s[0].peer);
        enum gate_verdict v = offer(&s[0], &s[1], &r);
        answers += v == GATE_ANSWER;
        cookies += v == GATE_COOKIE;
    }
    CHECK_EQ(answers + cookies, 2000);
    CHECK_EQ(answers, GATE_PENDING_MAX * 3 / 4);
    CHECK_EQ(waiting(s[1].gate), answers);
    CHECK_EQ(rows_taken(s[1].gate), answers);

    /* Who shows the cookie of its address is let in all the same. */
    CHECK(peer_recv_cookie(&s[0].peer, s[0].peer.offer->index, r.body, r.len, now));
    sleet_addr own = s[0].addr;
    s[0].addr.port++;
    CHECK_EQ(offer(&s[0], &s[1], &r), GATE_COOKIE);
    s[0].addr = own;
    CHECK(meet(&s[0], &s[1]));

    now = time_add(now, GATE_PENDING_LIFE);
    peer_withdraw(&s[0].peer);
    CHECK_EQ(offer(&s[0], &s[1], &r), GATE_ANSWER);
    CHECK_EQ(waiting(s[1].gate), 1);
    CHECK_EQ(rows_taken(s[1].gate), 1); /* the session's: the sender of the new one has a slot */
    finish(s);
}

static void a_lost_handshake_is_made_anew(void)
{
    struct side s[2];
    struct gate_reply r;
    uint32_t index;
    both(s);
    CHECK_EQ(offer(&s[0], &s[1], &r), GATE_ANSWER);
    index = s[0].peer.offer->index;
    now = time_add(now, PEER_OFFER_LIFE - 1);
    CHECK_EQ(offer(&s[0], &s[1], &r), GATE_ANSWER);
    CHECK_EQ(s[0].peer.offer->index, index);
    now = time_add(now, 1);
    CHECK_EQ(offer(&s[0], &s[1], &r), GATE_ANSWER);
    CHECK(s[0].peer.offer->index != index);
    CHECK(take_answer(&s[0], &s[1], &r) && passes(&s[0], &s[1]));
    finish(s);
}

/* Another node has taken over the address: its key is found out. */
static void doubts_a_key_that_is_not_answered(void)
{
    struct side s[2];
    struct gate_reply r;
    unsigned tries = 0;
    both(s);
    know_each_other(s);
    s[0].peer.key[3] ^= 1;
    while (offer(&s[0], &s[1], &r) != GATE_ANSWER && tries++ < 10)
        now = time_add(now, PEER_OFFER_LIFE);
    CHECK(tries >= 3 && tries < 10);
    CHECK(take_answer(&s[0], &s[1], &r) && passes(&s[0], &s[1]));
    finish(s);
}

/* The third message of XX comes late, repeated, when a handshake that the other side began has
 * ended since: it answers this node's ephemeral key, so it is no replay. */
static void a_late_third_message_is_taken(void)
{
    struct side s[2];
    struct gate_reply answer_0, answer_1;
    struct keypair pair;
    struct wire_ident theirs;
    uint8_t key[KEY_BYTES], done[WIRE_DONE_BYTES];
    uint32_t index;
    both(s);
    CHECK_EQ(offer(&s[0], &s[1], &answer_0), GATE_ANSWER);
    CHECK(peer_recv_answer(&s[0].peer, s[0].gate, answer_0.index, answer_0.body, answer_0.len, &pair, key,
                           &theirs, now));
    peer_install(&s[0].peer, s[0].gate, &pair, key, &theirs, now);
    CHECK_EQ(peer_done(&s[0].peer, done, &index), sizeof done); /* lost */
    now.ns += MS(5);
    CHECK_EQ(offer(&s[1], &s[0], &answer_1), GATE_ANSWER);
    CHECK(take_answer(&s[1], &s[0], &answer_1));
    now.ns += MS(100);
    CHECK_EQ(peer_done(&s[0].peer, done, &index), sizeof done);
    CHECK(gate_recv_done(s[1].gate, index, done, sizeof done, now) != NULL);
    stop(&s[0]);
    stop(&s[1]);
}

/* One side has the job's new key, the other not yet; then both; then the old one is void. */
static void the_jobs_key_changes(void)
{
    static const uint8_t other[KEY_BYTES] = {9, 9};
    struct side s[2];
    both(s);
    CHECK(gate_rekey(s[0].gate, other, time_add(now, SEC(600))));
    CHECK(!gate_rekey(s[0].gate, other, time_add(now, SEC(900)))); /* that is the key */
    CHECK(meet(&s[1], &s[0])); /* with the former one */
    CHECK_EQ(s[0].gate->with, GATE_FORMER_KEY);
    now.ns += SEC(20);
    peer_drop(&s[0].peer, s[0].gate);
    peer_drop(&s[1].peer, s[1].gate);
    struct gate_reply r;
    uint8_t body[WIRE_OFFER_BYTES];
    CHECK_EQ(peer_offer(&s[0].peer, s[0].gate, s[0].slot, body, now), sizeof body);
    CHECK(!carries(&s[0], &s[1])); /* the new one says nothing to the other */
    now.ns += PEER_OFFER_LIFE;
    CHECK_EQ(peer_offer(&s[0].peer, s[0].gate, s[0].slot, body, now), sizeof body);
    CHECK(carries(&s[0], &s[1])); /* so the former one is tried */
    CHECK_EQ(gate_recv_offer(s[1].gate, &s[0].addr, body, sizeof body, now, &r), GATE_ANSWER);
    CHECK(take_answer(&s[0], &s[1], &r));
    CHECK(gate_rekey(s[1].gate, other, time_add(now, SEC(600))));
    peer_rekeyed(&s[1].peer);
    CHECK(passes(&s[0], &s[1])); /* sessions go on */
    now.ns += SEC(20);
    peer_drop(&s[0].peer, s[0].gate);
    peer_drop(&s[1].peer, s[1].gate);
    CHECK(meet(&s[1], &s[0]));
    CHECK_EQ(s[0].gate->with, GATE_KEY);
    CHECK(!gate_expire(s[0].gate, now));
    now.ns += SEC(600);
    CHECK(gate_expire(s[0].gate, now));
    s[1].gate->with = GATE_FORMER_KEY;
    CHECK(!carries(&s[1], &s[0]));
    stop(&s[0]);
    stop(&s[1]);
}

TEST_SUITE(peer) = {
    TEST(strangers_meet_by_address),
    TEST(acquaintances_meet_by_key),
    TEST(an_answer_is_no_longer_than_its_question),
    TEST(the_same_hello_has_the_same_answer),
    TEST(an_old_hello_is_worth_nothing),
    TEST(both_begin_at_once),
    TEST(new_keys_leave_no_gap),
    TEST(sure_keys_outlast_unsure_ones),
    TEST(old_keys_are_void),
    TEST(counters_come_once_and_below_the_bound),
    TEST(forged_datagrams_move_nothing),
    TEST(another_job_is_refused),
    TEST(another_key_has_another_mac),
    TEST(who_is_not_let_in_gets_no_keys),
    TEST(a_flood_gets_cookies),
    TEST(a_lost_handshake_is_made_anew),
    TEST(doubts_a_key_that_is_not_answered),
    TEST(a_late_third_message_is_taken),
    TEST(the_jobs_key_changes),
    TEST_END,
};
