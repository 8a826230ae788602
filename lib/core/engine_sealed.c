/* Sealed sessions in the engine: who is let in, whose datagram it is, where a member can be
 * reached now, and when it needs new keys.  engine_handshake.c has how sessions come about. */
#include "engine_internal.h"
#include "session/gate.h"
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#define CHALLENGE_GAP MS(200)
#define AMPLIFY 3 /* bytes to an address that is not known to be the member's, for each from it */

/* ---- life --------------------------------------------------------------------- */

static int judge(void *arg, const uint8_t key[KEY_BYTES], const struct wire_ident *ident, bool fresh)
{
    engine *e = arg;
    uint64_t id = key_node_id(key);
    const struct member *m = view_by_id(&e->view, id);
    if (id == e->config.node_id)
        return GATE_OLD;
    if (!engine_admits(e, id))
        return GATE_BARRED;
    if (e->gate->with == GATE_FORMER_KEY && !(m && m->peer->key_known))
        return GATE_OLD; /* the former key is for those who were here when it changed */
    if (!m)
        return 0;
    const struct peer *p = m->peer;
    bool old = !fresh && p->boot_id == ident->boot_id && ident->stamp <= p->stamp;
    bool other = p->key_known && memcmp(p->key, key, KEY_BYTES) != 0;
    return old || other ? GATE_OLD : (int)view_slot(&e->view, m);
}

bool sealed_init(engine *e, const engine_config *c)
{
    struct gate_config g = {.job = c->job,
                            .elements = FRAGMENT_ELEMENTS,
                            .boot_id = c->boot_id,
                            .job_key = c->job_key,
                            .node_secret = c->node_secret,
                            .seed = c->secret_seed};
    sodium_memzero(e->config.job_key, sizeof e->config.job_key);
    sodium_memzero(e->config.node_secret, sizeof e->config.node_secret);
    sodium_memzero(e->config.secret_seed, sizeof e->config.secret_seed);
    e->config.allow = NULL;
    e->gate = gate_new(&g, e->now);
    e->allow = calloc(c->allow_count + 1u, sizeof *e->allow);
    if (!e->gate || !e->allow)
        return false;
    if (c->allow_count)
        memcpy(e->allow, c->allow, c->allow_count * sizeof *e->allow);
    e->gate->judge = judge;
    e->gate->judge_arg = e;
    e->config.node_id = key_node_id(e->gate->self.public_key);
    return true;
}

void sealed_fini(engine *e)
{
    gate_free(e->gate);
    free(e->allow);
}

bool engine_admits(const engine *e, uint64_t node_id)
{
    if (orders_evicted(&e->orders, node_id))
        return false;
    for (uint32_t i = 0; i < e->config.allow_count; i++)
        if (e->allow[i] == node_id)
            return true;
    return e->config.allow_count == 0;
}

/* ---- addresses ----------------------------------------------------------------------- */

static void moved(engine *e, struct member *m, const sleet_addr *to)
{
    view_move(&e->view, m, to);
    m->peer->probe = (struct probe){0};
    gossip_moved(e, m);
    LOG(&e->config.log, LOG_INFO, FAULT_NONE, "member-moved", F_X("node", m->node_id),
        F_U("port", to->port));
}

/* The random time lies half its range ahead of the clock, so that its echo is no round trip. */
static uint32_t new_challenge(engine *e)
{
    uint32_t us = (uint32_t)(e->now.ns / 1000) + (UINT32_C(1) << 30) + secret_u32(&e->gate->stream) % (1u << 30);
    return us ? us : 1;
}

/* The datagram, intact and new, came from there. */
static void note_address(engine *e, struct member *m, const struct wire_header *h,
                         const sleet_addr *from, const uint8_t *body, size_t len)
{
    struct probe *b = &m->peer->probe;
    bool newest = h->counter >= m->rx_next;
    if (addr_equal(from, &m->addr)) {
        if (newest)
            b->challenge = 0;
        return;
    }
    if (b->challenge && addr_equal(from, &b->addr))
        b->in += len;
    else if (newest)
        *b = (struct probe){.addr = *from, .challenge = new_challenge(e), .in = len, .at = {INT64_MIN / 2}};
    else
        return;
    struct wire_ping ping;
    if (h->type == WIRE_PING && wire_ping_decode(&ping, body, len - WIRE_HEADER_BYTES - WIRE_TAG_BYTES) == SLEET_OK &&
        ping.echo == b->challenge) {
        moved(e, m, from);
        return;
    }
    if (time_since(e->now, b->at) < CHALLENGE_GAP)
        return;
    b->at = e->now;
    b->out += member_challenge(e, m, from, b->challenge, AMPLIFY * b->in - b->out);
}

/* ---- datagrams -------------------------------------------------------------------------- */

static bool of_handshake(uint8_t type)
{
    return type == WIRE_HELLO || type == WIRE_HELLO_ACK || type == WIRE_HELLO_DONE || type == WIRE_COOKIE;
}

/* By its index: with the keys of a member, or those that would make one. */
static void recv_sealed(engine *e, const sleet_addr *from, const struct wire_header *h,
                        const uint8_t *data, size_t len)
{
    uint8_t room[WIRE_BODY_MAX];
    enum keypair_verdict v;
    struct member *m = session_holder(e, h->index);
    struct keypair *k = m ? peer_pair(m->peer, h->index) : NULL;
    struct pending *p = k ? NULL : gate_pending(e->gate, h->index, e->now);
    if (!k && !p) {
        if (h->type == WIRE_CLOSE && gate_right(e->gate, data, len))
            handshake_recv(e, from, h, data, len);
        else
            e->counters.foreign++;
        return;
    }
    const uint8_t *body = keypair_open(k ? k : &p->pair, h->counter, data, len, room, e->now, &v);
    if (!body && h->type == WIRE_CLOSE && gate_right(e->gate, data, len)) {
        handshake_recv(e, from, h, data, len); /* our third message was refused */
        return;
    }
    if (!body) {
        e->counters.duplicate += v == KEYPAIR_REPLAYED;
        e->counters.corrupt += v == KEYPAIR_FORGED;
        return;
    }
    if (p) {
        m = handshake_adopt(e, p, from);
        k = m ? peer_pair(m->peer, h->index) : NULL;
    }
    if (!k) {
        e->counters.foreign++;
        return;
    }
    peer_heard(m->peer, k, e->now);
    note_address(e, m, h, from, body, len);
    engine_take(e, m, h, body, len - WIRE_HEADER_BYTES - WIRE_TAG_BYTES);
    member_timer(e, m);
}

void sealed_recv(engine *e, const sleet_addr *from, const uint8_t *data, size_t len)
{
    struct wire_header h;
    int error = datagram_peek(data, len, &h);
    if (error == SLEET_OK && of_handshake(h.type))
        handshake_recv(e, from, &h, data, len);
    else if (error == SLEET_OK)
        recv_sealed(e, from, &h, data, len);
    else if (error == SLEET_EPROTO && h.type == WIRE_HELLO && gate_right(e->gate, data, len))
        handshake_refuse(e, from, 0, CLOSE_VERSION, "wire version differs", h.version);
    else
        e->counters.corrupt++;
}

size_t sealed_seal(engine *e, struct member *m, uint8_t *dgram, size_t body_len, struct wire_header *h)
{
    struct keypair *k = m ? peer_sending(m->peer, e->now) : NULL;
    if (m && !k)
        return 0;
    if (k)
        h->index = k->peer_index;
    datagram_header(dgram, h);
    return k ? keypair_seal(k, h->counter, dgram, body_len) : gate_seal(e->gate, dgram, body_len);
}

/* ---- time --------------------------------------------------------------------------------- */

void sealed_greet(engine *e, struct member *m)
{
    uint8_t body[WIRE_OFFER_BYTES];
    uint32_t index = 0;
    if (!m->session || m->peer->renew) {
        size_t len = peer_offer(m->peer, e->gate, view_slot(&e->view, m), body, e->now);
        outbox_put(e, &m->addr, 0, 0, WIRE_HELLO, body, len);
        return;
    }
    size_t len = peer_done(m->peer, body, &index);
    if (len)
        e->gate->with = m->peer->offer->with;
    if (len)
        outbox_put(e, &m->addr, 0, index, WIRE_HELLO_DONE, body, len);
    m->ping_at = e->now;
}

/* A member that was silent for two periods may have forgotten the session. */
static sleet_time doubted_at(const engine *e, const struct member *m)
{
    return m->session && !m->peer->renew ? member_silent_at(e, m, 2) : TIME_NEVER;
}

sleet_time sealed_deadline(const engine *e, const struct member *m)
{
    return time_min(peer_deadline(m->peer), doubted_at(e, m));
}

void sealed_expire(engine *e, struct member *m)
{
    struct peer *p = m->peer;
    bool wanted = p->renew;
    if (!peer_expire(p, e->gate, e->now) && m->session) {
        m->session = false;
        view_set_alive(&e->view, m, false);
        LOG(&e->config.log, LOG_WARN, FAULT_REMOTE, "session-expired", F_X("node", m->node_id));
        m->hello_at = e->now;
    }
    if (!time_before(e->now, doubted_at(e, m)))
        p->renew = true;
    if (p->renew && !wanted) {
        m->hello_at = e->now;
        m->hello_gap = 0;
    }
}
