#include "session/peer.h"
#include "base/bytes.h"
#include <sodium.h>
#include <stdlib.h>

#define ANSWERER_LATER SEC(30) /* it asks for new keys only where the initiator has not */
#define IK_TRIES 3             /* unanswered, then every other offer goes without the known key */

static void pair_drop(struct keypair *k, struct gate *g)
{
    if (keypair_there(k))
        gate_release(g, k->my_index);
    keypair_fini(k);
}

void peer_fini(struct peer *p)
{
    peer_withdraw(p);
    keypair_fini(&p->current);
    keypair_fini(&p->previous);
    sodium_memzero(p, sizeof *p);
}

void peer_withdraw(struct peer *p)
{
    if (p->offer)
        sodium_memzero(p->offer, sizeof *p->offer);
    free(p->offer);
    p->offer = NULL;
}

void peer_drop(struct peer *p, struct gate *g)
{
    pair_drop(&p->current, g);
    pair_drop(&p->previous, g);
    peer_withdraw(p);
    p->renew = false;
    p->probe = (struct probe){0};
}

/* ---- beginning ------------------------------------------------------------------------ */

/* With the peer's key while that is answered: it may have been replaced by another node. */
static enum noise_pattern pattern_for(const struct peer *p, uint32_t tries)
{
    bool doubt = tries >= IK_TRIES && tries % 2 == 1;
    return p->key_known && !doubt ? NOISE_IKPSK2 : NOISE_XXPSK3;
}

static bool begin(struct peer *p, struct gate *g, uint32_t slot, sleet_time now)
{
    struct offer *f = p->offer ? p->offer : calloc(1, sizeof *f);
    /* While the former key is taken it is tried in turn: the peer may not have the new one. */
    uint32_t tries = g->former ? p->unanswered / 2 : p->unanswered;
    g->with = g->former && p->unanswered % 2 == 1 ? GATE_FORMER_KEY : GATE_KEY;
    struct wire_offer o = {.pattern = (uint8_t)pattern_for(p, tries), .elements = g->elements,
                           .job = g->keys[g->with].job_tag};
    struct wire_ident ident = {.ciphers = g->ciphers, .boot_id = g->boot_id, .stamp = (uint64_t)now.ns};
    uint8_t secret[NOISE_KEY_BYTES], bytes[WIRE_IDENT_BYTES], whole[WIRE_OFFER_BYTES], message[WIRE_OFFER_NOISE];
    if (!f)
        return false;
    if (!p->offer)
        f->cookie_at = TIME_NEVER;
    p->offer = f;
    p->unanswered++;
    f->answered = false;
    f->with = g->with;
    f->born = now;
    f->index = o.index = ident.index = gate_index(g, slot);
    secret_draw(&g->stream, secret, sizeof secret);
    gate_begin(g, &f->noise, true, &o, secret, p->key_known ? p->key : NULL);
    sodium_memzero(secret, sizeof secret);
    wire_ident_encode(bytes, sizeof bytes, &ident);
    o.noise = message;
    if (!noise_write(&f->noise, message, sizeof message, bytes,
                     o.pattern == NOISE_IKPSK2 ? sizeof bytes : 0) ||
        !wire_offer_encode(whole, sizeof whole, &o))
        return false;
    memcpy(f->maced, whole, sizeof f->maced);
    return true;
}

size_t peer_offer(struct peer *p, struct gate *g, uint32_t slot, uint8_t out[WIRE_OFFER_BYTES],
                  sleet_time now)
{
    struct offer *f = p->offer;
    if ((!f || f->answered || time_since(now, f->born) >= PEER_OFFER_LIFE) && !begin(p, g, slot, now)) {
        peer_withdraw(p);
        return 0;
    }
    f = p->offer;
    g->with = f->with;
    memcpy(out, f->maced, sizeof f->maced);
    memset(out + WIRE_OFFER_MACED, 0, MAC_BYTES);
    if (!time_is_never(f->cookie_at) && time_since(now, f->cookie_at) < COOKIE_LIFE)
        mac_of(out + WIRE_OFFER_MACED, f->cookie, COOKIE_BYTES, out, WIRE_OFFER_MACED);
    return WIRE_OFFER_BYTES;
}

void peer_rekeyed(struct peer *p)
{
    if (p->offer && p->offer->answered && p->offer->with == GATE_KEY)
        p->offer->with = GATE_FORMER_KEY;
    else
        peer_withdraw(p);
    p->unanswered = 0;
}

size_t peer_done(const struct peer *p, uint8_t out[WIRE_DONE_BYTES], uint32_t *index)
{
    const struct keypair *k = p->offer && p->offer->answered ? peer_pair((struct peer *)(uintptr_t)p, p->offer->index) : NULL;
    if (!k || k->confirmed)
        return 0;
    *index = k->peer_index;
    memcpy(out, p->offer->done, WIRE_DONE_BYTES);
    return WIRE_DONE_BYTES;
}

bool peer_recv_cookie(struct peer *p, uint32_t index, const uint8_t *body, size_t len, sleet_time now)
{
    struct offer *f = p->offer;
    if (!f || f->answered || f->index != index || len != WIRE_COOKIE_BYTES)
        return false;
    bool news = time_is_never(f->cookie_at) || memcmp(f->cookie, body, COOKIE_BYTES) != 0;
    memcpy(f->cookie, body, COOKIE_BYTES);
    f->cookie_at = news ? now : f->cookie_at;
    return news;
}

bool peer_recv_answer(struct peer *p, struct gate *g, uint32_t index, const uint8_t *body, size_t len,
                      struct keypair *pair, uint8_t key[KEY_BYTES], struct wire_ident *theirs,
                      sleet_time now)
{
    struct offer *f = p->offer;
    struct wire_answer a;
    uint8_t ident[WIRE_IDENT_BYTES];
    size_t n;
    if (!f || f->answered || f->index != index || wire_answer_decode(&a, body, len) != SLEET_OK ||
        a.pattern != f->noise.pattern)
        return false;
    struct noise copy = f->noise; /* a wrong answer must not spoil the handshake */
    if (!noise_read(&copy, a.noise, wire_answer_noise(a.pattern), ident, sizeof ident, &n) ||
        wire_ident_decode(theirs, ident, n) != SLEET_OK)
        return false;
    if (!noise_done(&copy)) {
        struct wire_ident ours = {.index = index, .ciphers = g->ciphers, .boot_id = g->boot_id, .stamp = (uint64_t)now.ns};
        wire_ident_encode(ident, sizeof ident, &ours);
        if (!noise_write(&copy, f->done, sizeof f->done, ident, sizeof ident))
            return false;
    }
    f->answered = true;
    memcpy(key, copy.rs, KEY_BYTES);
    keypair_make(pair, &copy, index, theirs->index, aead_choose(g->ciphers, theirs->ciphers), now);
    sodium_memzero(&copy, sizeof copy);
    return true;
}

/* ---- pairs -------------------------------------------------------------------------------- */

/* Both sides see the same two hashes, so both keep the same pair. */
static bool loses(const struct keypair *k, const struct keypair *current)
{
    sleet_duration apart = time_since(k->born, current->born);
    return k->initiator != current->initiator && apart < PEER_AT_ONCE && apart > -PEER_AT_ONCE &&
           memcmp(k->hash, current->hash, sizeof k->hash) < 0;
}

static void set_rekey(struct peer *p, struct gate *g)
{
    sleet_duration spread = (sleet_duration)(secret_u32(&g->stream) % 1024) * (PEER_SPREAD / 1024);
    sleet_duration after = KEYPAIR_REKEY + (p->current.initiator ? 0 : ANSWERER_LATER);
    p->rekey_at = time_add(p->current.born, after + spread);
}

bool peer_install(struct peer *p, struct gate *g, struct keypair *k, const uint8_t key[KEY_BYTES],
                  const struct wire_ident *theirs, sleet_time now)
{
    bool other = !p->key_known || memcmp(p->key, key, KEY_BYTES) != 0 || p->boot_id != theirs->boot_id;
    if (other) { /* what another life had is of no use to anybody */
        pair_drop(&p->current, g);
        pair_drop(&p->previous, g);
    }
    memcpy(p->key, key, KEY_BYTES);
    p->key_known = true;
    p->boot_id = theirs->boot_id;
    if (other || theirs->stamp > p->stamp)
        p->stamp = theirs->stamp;
    p->unanswered = 0;
    bool keep = keypair_there(&p->current) && !keypair_stale(&p->current, now) && loses(k, &p->current);
    if (!keep && keypair_there(&p->current) && !p->current.confirmed && p->previous.confirmed) {
        pair_drop(&p->current, g); /* the peer may have none but the one before */
    } else {
        pair_drop(&p->previous, g);
        p->previous = keep ? *k : p->current;
    }
    if (!keep)
        p->current = *k;
    memset(k, 0, sizeof *k);
    set_rekey(p, g);
    p->renew = false;
    if (p->offer && (!p->offer->answered || p->offer->noise.pattern == NOISE_IKPSK2))
        peer_withdraw(p);
    return !keep;
}

struct keypair *peer_pair(struct peer *p, uint32_t index)
{
    if (!index)
        return NULL;
    return p->current.my_index == index ? &p->current : p->previous.my_index == index ? &p->previous : NULL;
}

/* A new pair that the peer does not answer with is not insisted on. */
struct keypair *peer_sending(struct peer *p, sleet_time now)
{
    bool doubt = !p->current.confirmed && time_since(now, p->current.born) >= PEER_OFFER_LIFE;
    if (doubt && keypair_there(&p->previous) && p->previous.confirmed && !keypair_stale(&p->previous, now))
        return &p->previous;
    return keypair_there(&p->current) ? &p->current : NULL;
}

/* Should a peer go on with a pair that is past here, new keys clear that up. */
void peer_heard(struct peer *p, const struct keypair *k, sleet_time now)
{
    if (p->offer && p->offer->answered && k->my_index == p->offer->index)
        peer_withdraw(p);
    if (k == &p->previous && p->current.confirmed && time_since(now, p->current.born) > PEER_AT_ONCE)
        p->renew = true;
    if (p->current.sent >= KEYPAIR_REKEY_DATAGRAMS)
        p->renew = true;
}

sleet_time peer_deadline(const struct peer *p)
{
    sleet_time t = TIME_NEVER;
    if (keypair_there(&p->previous))
        t = time_add(p->current.born, PEER_PREVIOUS_LIFE);
    if (keypair_there(&p->current)) {
        t = time_min(t, time_add(p->current.born, KEYPAIR_REJECT));
        if (!p->renew)
            t = time_min(t, p->current.confirmed ? p->rekey_at : time_add(p->current.born, PEER_OFFER_LIFE));
    }
    return t;
}

bool peer_expire(struct peer *p, struct gate *g, sleet_time now)
{
    if (!keypair_there(&p->current))
        return true;
    if (keypair_there(&p->previous) && (keypair_stale(&p->previous, now) ||
                                        time_since(now, p->current.born) >= PEER_PREVIOUS_LIFE))
        pair_drop(&p->previous, g);
    bool unheard = !p->current.confirmed && time_since(now, p->current.born) >= PEER_OFFER_LIFE;
    if (unheard || !time_before(now, p->rekey_at))
        p->renew = true;
    if (!keypair_stale(&p->current, now))
        return true;
    pair_drop(&p->current, g);
    pair_drop(&p->previous, g);
    p->renew = false;
    return false;
}
