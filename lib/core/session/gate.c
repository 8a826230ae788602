#include "session/gate.h"
#include "base/bytes.h"
#include <sodium.h>
#include <stdlib.h>

#define UNDER_LOAD (GATE_PENDING_MAX * 3 / 4)

/* ---- life ----------------------------------------------------------------------- */

static void make_key(const struct gate *g, struct gate_key *k, const uint8_t psk[KEY_BYTES])
{
    uint8_t tag[MAC_BYTES], key[MAC_KEY_BYTES];
    memcpy(k->psk, psk, KEY_BYTES);
    mac_key(k->mac, psk, "sleet handshake");
    mac_key(key, psk, "sleet job name");
    mac_of(tag, key, sizeof key, (const uint8_t *)g->job, strlen(g->job));
    k->job_tag = le_load(tag, 8);
}

struct gate *gate_new(const struct gate_config *c, sleet_time now)
{
    struct gate *g = calloc(1, sizeof *g);
    if (!g)
        return NULL;
    memcpy(g->job, c->job, strnlen(c->job, sizeof g->job - 1));
    g->elements = c->elements;
    g->boot_id = c->boot_id;
    g->ciphers = aead_available();
    noise_pair(&g->self, c->node_secret);
    make_key(g, &g->keys[GATE_KEY], c->job_key);
    secret_init(&g->stream, c->seed);
    cookie_init(&g->jar, &g->stream, now);
    admission_init(&g->strangers, GATE_BURST, GATE_A_SECOND, now);
    admission_init(&g->shown, 4 * GATE_BURST, 4 * GATE_A_SECOND, now);
    return g;
}

static void forget(struct gate *g, struct pending *p)
{
    gate_release(g, p->index);
    keypair_fini(&p->pair);
    sodium_memzero(p, sizeof *p);
}

void gate_free(struct gate *g)
{
    for (unsigned i = 0; g && i < GATE_PENDING_MAX; i++)
        keypair_fini(&g->pending[i].pair);
    if (g)
        sodium_memzero(g, sizeof *g);
    free(g);
}

/* ---- the job's key ------------------------------------------------------------------ */

bool gate_rekey(struct gate *g, const uint8_t key[KEY_BYTES], sleet_time until)
{
    if (sodium_memcmp(g->keys[GATE_KEY].psk, key, KEY_BYTES) == 0)
        return false;
    g->keys[GATE_FORMER_KEY] = g->keys[GATE_KEY];
    make_key(g, &g->keys[GATE_KEY], key);
    g->former = true;
    g->former_until = until;
    g->with = GATE_KEY;
    return true;
}

bool gate_expire(struct gate *g, sleet_time now)
{
    if (!g->former || time_before(now, g->former_until))
        return false;
    sodium_memzero(&g->keys[GATE_FORMER_KEY], sizeof g->keys[GATE_FORMER_KEY]);
    g->former = false;
    g->with = GATE_KEY;
    return true;
}

/* ---- datagrams of handshakes ------------------------------------------------------ */

size_t gate_seal(const struct gate *g, uint8_t *dgram, size_t body_len)
{
    size_t n = WIRE_HEADER_BYTES + body_len;
    mac_of(dgram + n, g->keys[g->with].mac, MAC_KEY_BYTES, dgram, n);
    return n + MAC_BYTES;
}

bool gate_right(struct gate *g, const uint8_t *dgram, size_t n)
{
    if (n < WIRE_HEADER_BYTES + MAC_BYTES || n > WIRE_HEADER_BYTES + WIRE_OFFER_BYTES + MAC_BYTES)
        return false;
    for (uint8_t k = 0; k < (g->former ? GATE_KEYS : 1); k++) {
        g->with = k;
        if (mac_right(dgram + n - MAC_BYTES, g->keys[k].mac, MAC_KEY_BYTES, dgram, n - MAC_BYTES))
            return true;
    }
    g->with = GATE_KEY;
    return false;
}

void gate_begin(const struct gate *g, struct noise *n, bool initiator, const struct wire_offer *o,
                const uint8_t e_secret[NOISE_KEY_BYTES], const uint8_t *rs)
{
    uint8_t prologue[5 + 1 + WIRE_OFFER_HEAD + sizeof g->job] = "sleet";
    prologue[5] = WIRE_VERSION;
    wire_offer_head(prologue + 6, o);
    memcpy(prologue + 6 + WIRE_OFFER_HEAD, g->job, sizeof g->job);
    noise_begin(n, (enum noise_pattern)o->pattern, initiator, prologue, sizeof prologue, &g->self,
                e_secret, rs, g->keys[g->with].psk);
}

/* ---- indices ------------------------------------------------------------------------ */

static uint32_t row_of(uint32_t index)
{
    return index >> GATE_SLOT_BITS & (GATE_ROWS - 1);
}

uint32_t gate_index(struct gate *g, uint32_t slot)
{
    uint32_t random = secret_u32(&g->stream), index;
    if (slot)
        return random << GATE_SLOT_BITS | slot;
    for (uint32_t i = 0; i < GATE_ROWS; i++) {
        uint32_t row = (random + i) % GATE_ROWS;
        index = (random & ~(GATE_ROWS * GATE_ROWS - 1)) | row << GATE_SLOT_BITS;
        if (g->rows[row] || !index)
            continue;
        g->rows[row] = GATE_ROWS;
        return index;
    }
    return 0;
}

uint32_t gate_slot(const struct gate *g, uint32_t index)
{
    uint32_t slot = index & (GATE_ROWS - 1);
    if (!slot)
        slot = g->rows[row_of(index)] % GATE_ROWS;
    return slot;
}

void gate_assign(struct gate *g, uint32_t index, uint32_t slot)
{
    if (index && !(index & (GATE_ROWS - 1)))
        g->rows[row_of(index)] = (uint16_t)slot;
}

void gate_release(struct gate *g, uint32_t index)
{
    gate_assign(g, index, 0);
}

/* ---- pending handshakes ---------------------------------------------------------------- */

/* Those that have waited too long are forgotten on the way.  Their number. */
static unsigned tidy(struct gate *g, sleet_time now)
{
    unsigned n = 0;
    for (unsigned i = 0; i < GATE_PENDING_MAX; i++) {
        struct pending *p = &g->pending[i];
        if (p->index && time_since(now, p->born) >= GATE_PENDING_LIFE)
            forget(g, p);
        n += p->index != 0;
    }
    return n;
}

/* A free place, or that of the oldest, whose sender has had the longest time. */
static struct pending *place(struct gate *g)
{
    struct pending *oldest = &g->pending[0];
    for (unsigned i = 0; i < GATE_PENDING_MAX; i++) {
        struct pending *p = &g->pending[i];
        if (!p->index)
            return p;
        if (time_before(p->born, oldest->born))
            oldest = p;
    }
    forget(g, oldest);
    return oldest;
}

static struct pending *find(struct gate *g, uint32_t index, sleet_time now)
{
    for (unsigned i = 0; index && i < GATE_PENDING_MAX; i++)
        if (g->pending[i].index == index)
            return time_since(now, g->pending[i].born) < GATE_PENDING_LIFE ? &g->pending[i] : NULL;
    return NULL;
}

struct pending *gate_pending(struct gate *g, uint32_t index, sleet_time now)
{
    struct pending *p = find(g, index, now);
    return p && !p->waits ? p : NULL;
}

void gate_take(struct pending *p, struct keypair *pair)
{
    *pair = p->pair;
    sodium_memzero(p, sizeof *p); /* its index goes on with the pair */
}

/* ---- answering ----------------------------------------------------------------------------- */

static struct pending *same_offer(struct gate *g, const struct wire_offer *o)
{
    for (unsigned i = 0; i < GATE_PENDING_MAX; i++) {
        struct pending *p = &g->pending[i];
        if (p->index && p->peer_index == o->index && memcmp(p->e, o->noise, sizeof p->e) == 0)
            return p;
    }
    return NULL;
}

/* The Noise messages of a HELLO and its answer; 0, or GATE_OLD or GATE_BARRED. */
static int answer(struct gate *g, struct pending *p, const struct wire_offer *o, sleet_time now)
{
    uint8_t secret[NOISE_KEY_BYTES], ident[WIRE_IDENT_BYTES], message[WIRE_ANSWER_MAX];
    struct wire_answer a = {.pattern = o->pattern, .noise = message};
    struct wire_ident ours = {.ciphers = g->ciphers, .boot_id = g->boot_id, .stamp = (uint64_t)now.ns};
    size_t len;
    int slot = 0;
    secret_draw(&g->stream, secret, sizeof secret);
    gate_begin(g, &p->noise, false, o, secret, NULL);
    sodium_memzero(secret, sizeof secret);
    if (!noise_read(&p->noise, o->noise, wire_offer_noise(o->pattern), ident, sizeof ident, &len))
        return GATE_OLD;
    if (o->pattern == NOISE_IKPSK2) {
        if (wire_ident_decode(&p->theirs, ident, len) != SLEET_OK || p->theirs.index != o->index)
            return GATE_OLD;
        if ((slot = g->judge(g->judge_arg, p->noise.rs, &p->theirs, false)) < 0)
            return slot;
    } else if (len) {
        return GATE_OLD;
    }
    p->index = ours.index = gate_index(g, (uint32_t)slot);
    if (!p->index)
        return GATE_OLD;
    wire_ident_encode(ident, sizeof ident, &ours);
    noise_write(&p->noise, message, sizeof message, ident, sizeof ident);
    p->answer_len = wire_answer_encode(p->answer, sizeof p->answer, &a);
    return p->answer_len ? 0 : GATE_OLD;
}

static void make_pair(struct gate *g, struct pending *p, sleet_time now)
{
    memcpy(p->key, p->noise.rs, KEY_BYTES);
    keypair_make(&p->pair, &p->noise, p->index, p->peer_index,
                 aead_choose(g->ciphers, p->theirs.ciphers), now);
    sodium_memzero(&p->noise, sizeof p->noise);
    p->waits = false;
}

static void reply_with(struct gate_reply *r, uint32_t index, const uint8_t *body, size_t len)
{
    r->index = index;
    r->len = len;
    memcpy(r->body, body, len);
}

/* Whether the offer may cost this node something; else what it is told instead. */
static bool lets_in(struct gate *g, const struct wire_offer *o, const uint8_t *body,
                    const sleet_addr *from, sleet_time now, struct gate_reply *r,
                    enum gate_verdict *v)
{
    unsigned waiting = tidy(g, now);
    uint8_t cookie[COOKIE_BYTES];
    if (waiting < UNDER_LOAD && admission_take(&g->strangers, now))
        return true;
    *v = GATE_DROP;
    if (cookie_right(&g->jar, o->mac, body, WIRE_OFFER_MACED, from, now))
        return admission_take(&g->shown, now);
    cookie_make(&g->jar, cookie, from, now);
    reply_with(r, o->index, cookie, sizeof cookie);
    *v = GATE_COOKIE;
    return false;
}

enum gate_verdict gate_recv_offer(struct gate *g, const sleet_addr *from, const uint8_t *body,
                                  size_t len, sleet_time now, struct gate_reply *r)
{
    struct wire_offer o;
    struct pending fresh = {0}, *p;
    enum gate_verdict v;
    *r = (struct gate_reply){0};
    if (wire_offer_decode(&o, body, len) != SLEET_OK)
        return GATE_CORRUPT;
    r->index = o.index;
    if (o.job != g->keys[g->with].job_tag)
        return GATE_JOB;
    if (o.elements != g->elements)
        return GATE_ELEMENTS;
    if ((p = same_offer(g, &o)) && time_since(now, p->born) < GATE_PENDING_LIFE) {
        reply_with(r, o.index, p->answer, p->answer_len);
        return GATE_ANSWER;
    }
    if (!lets_in(g, &o, body, from, now, r, &v))
        return v;
    fresh.from = *from;
    fresh.born = now;
    fresh.peer_index = o.index;
    fresh.waits = o.pattern == NOISE_XXPSK3;
    memcpy(fresh.e, o.noise, sizeof fresh.e);
    int refused = answer(g, &fresh, &o, now);
    if (refused) {
        gate_release(g, fresh.index);
        return refused == GATE_BARRED ? GATE_DENIED : GATE_DROP;
    }
    p = place(g);
    *p = fresh;
    if (!p->waits)
        make_pair(g, p, now);
    reply_with(r, o.index, p->answer, p->answer_len);
    sodium_memzero(&fresh, sizeof fresh);
    return GATE_ANSWER;
}

struct pending *gate_recv_done(struct gate *g, uint32_t index, const uint8_t *body, size_t len,
                               sleet_time now)
{
    struct pending *p = find(g, index, now);
    uint8_t ident[WIRE_IDENT_BYTES];
    struct wire_ident theirs;
    size_t n;
    if (!p || !p->waits || len != WIRE_DONE_BYTES)
        return NULL;
    struct noise copy = p->noise;
    if (!noise_read(&copy, body, len, ident, sizeof ident, &n) ||
        wire_ident_decode(&theirs, ident, n) != SLEET_OK || theirs.index != p->peer_index ||
        g->judge(g->judge_arg, copy.rs, &theirs, true) == GATE_OLD)
        return NULL; /* who is barred is told so by the caller */
    p->noise = copy;
    p->theirs = theirs;
    make_pair(g, p, now);
    p->pair.confirmed = true;
    return p;
}
