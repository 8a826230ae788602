/* Sealed sessions in the engine: whose datagram it is, handshakes, who is let in, and where a
 * member can be reached now. */
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

/* Whether this has not been said yet, of the last few things. */
static bool news(engine *e, uint64_t what)
{
    for (uint32_t i = 0; i < sizeof e->told / sizeof e->told[0]; i++)
        if (e->told[i] == what)
            return false;
    e->told[e->told_n++ % (sizeof e->told / sizeof e->told[0])] = what;
    return true;
}

/* ---- who ------------------------------------------------------------------------ */

static struct member *holder(engine *e, uint32_t index)
{
    uint32_t slot = gate_slot(e->gate, index);
    return slot && slot < e->view.n && e->members[slot].used ? &e->members[slot] : NULL;
}

/* A listed address of which nothing else is known is taken to be the node's. */
static struct member *member_for(engine *e, uint64_t id, const sleet_addr *from)
{
    struct member *m = view_by_id(&e->view, id);
    if (m)
        return m;
    m = view_at(&e->view, from);
    return m && !m->node_id ? m : engine_add_member(e, from);
}

/* A handshake has ended; the keys are in use. */
static void installed(engine *e, struct member *m, struct keypair *k, const uint8_t key[KEY_BYTES],
                      const struct wire_ident *theirs)
{
    uint64_t id = key_node_id(key);
    bool other = m->node_id != id || m->boot_id != theirs->boot_id;
    gate_assign(e->gate, k->my_index, view_slot(&e->view, m));
    peer_install(m->peer, e->gate, k, key, theirs, e->now);
    if (other || !m->session)
        session_open(e, m, id, theirs->boot_id, other);
    member_heard(e, m);
    m->hello_gap = 0;
    if (!m->peer->current.confirmed)
        m->hello_at = e->now; /* what shows that the keys have come goes out at once */
    m->ping_at = e->now;
    member_timer(e, m);
}

/* Whoever was answered has the keys; what shows that came from `from`.  Only where that is the
 * address that was answered is the node known to be there: who can read a HELLO can send it
 * on from an address of his own. */
static struct member *adopt(engine *e, struct pending *p, const sleet_addr *from)
{
    uint64_t id = key_node_id(p->key);
    bool there = addr_equal(from, &p->from);
    const struct member *known = view_by_id(&e->view, id);
    if (!there && (!known || !known->session))
        return NULL;
    struct member *m = engine_admits(e, id) ? member_for(e, id, &p->from) : NULL;
    struct wire_ident theirs = p->theirs;
    uint8_t key[KEY_BYTES];
    struct keypair k;
    if (!m) {
        if (news(e, id))
            LOG(&e->config.log, LOG_WARN, FAULT_NONE, "member-refused", F_X("node", id),
                F_S("reason", "no room for another member"));
        return NULL;
    }
    if (there && !addr_equal(&m->addr, from))
        view_move(&e->view, m, from);
    memcpy(key, p->key, KEY_BYTES);
    gate_take(p, &k);
    installed(e, m, &k, key, &theirs);
    return m;
}

/* ---- handshakes -------------------------------------------------------------------- */

static void refuse(engine *e, const sleet_addr *to, uint32_t index, uint8_t reason, const char *why,
                   uint8_t theirs)
{
    uint8_t body[8];
    struct wire_close c = {.reason = reason, .version = WIRE_VERSION, .elements = FRAGMENT_ELEMENTS};
    size_t len = wire_close_encode(body, sizeof body, &c);
    e->counters.foreign++;
    outbox_put(e, to, 0, index, WIRE_CLOSE, body, len);
    if (!news(e, addr_hash(to)))
        return;
    const struct member *m = view_at(&e->view, to);
    LOG(&e->config.log, LOG_WARN, FAULT_REMOTE, "hello-refused", F_S("reason", why),
        F_U("peer", m ? view_slot(&e->view, m) : 0), F_U("port", to->port), F_U("version", theirs));
}

static void recv_hello(engine *e, const sleet_addr *from, const uint8_t *body, size_t len)
{
    struct gate_reply r;
    enum gate_verdict v = gate_recv_offer(e->gate, from, body, len, e->now, &r);
    switch (v) {
    case GATE_ANSWER:
    case GATE_COOKIE:
        e->counters.accepted++;
        outbox_put(e, from, 0, r.index, v == GATE_ANSWER ? WIRE_HELLO_ACK : WIRE_COOKIE, r.body, r.len);
        return;
    case GATE_JOB:
        refuse(e, from, r.index, CLOSE_JOB, "job differs", WIRE_VERSION);
        return;
    case GATE_ELEMENTS:
        refuse(e, from, r.index, CLOSE_ELEMENTS, "elements a fragment differ", WIRE_VERSION);
        return;
    case GATE_DENIED:
        refuse(e, from, r.index, CLOSE_DENIED, "the node is not let in (job.allow)", WIRE_VERSION);
        return;
    case GATE_DROP:
        e->counters.foreign++;
        return;
    case GATE_CORRUPT:
        e->counters.corrupt++;
    }
}

/* The one at `m`'s address is a member with another slot, or this node itself. */
static void known_already(engine *e, struct member *m, uint64_t id)
{
    struct member *other = view_by_id(&e->view, id);
    if (other)
        other->listed |= m->listed; /* the slot is kept as that one's would have been */
    if (other && !other->session) {
        view_move(&e->view, other, &m->addr);
        other->hello_at = e->now;
        other->hello_gap = 0;
        member_timer(e, other);
    }
    if (!m->boot_id) {
        engine_remove_member(e, m);
        return;
    }
    peer_withdraw(m->peer); /* rounds may refer to the slot */
    m->hello_gap = SEC(60);
    m->hello_at = time_add(e->now, m->hello_gap);
    member_timer(e, m);
}

static void recv_answer(engine *e, uint32_t index, const uint8_t *body, size_t len)
{
    struct member *m = holder(e, index);
    struct keypair k;
    struct wire_ident theirs;
    uint8_t key[KEY_BYTES];
    if (!m || !peer_recv_answer(m->peer, e->gate, index, body, len, &k, key, &theirs, e->now)) {
        e->counters.foreign++; /* most often the second answer to a HELLO that was repeated */
        return;
    }
    e->counters.accepted++;
    uint64_t id = key_node_id(key);
    const struct member *other = view_by_id(&e->view, id);
    if (id == e->config.node_id && theirs.boot_id != e->config.boot_id && news(e, id))
        LOG(&e->config.log, LOG_ERROR, FAULT_REMOTE, "node-key-twice", F_X("node", id),
            F_U("peer", view_slot(&e->view, m)),
            F_S("fix", "another node has a copy of this node's key: make a new one there"));
    if (id == e->config.node_id || (other && other != m)) {
        keypair_fini(&k);
        known_already(e, m, id);
        return;
    }
    bool late = e->gate->with == GATE_FORMER_KEY && m->node_id != id;
    if (late || !engine_admits(e, id)) {
        if (news(e, id))
            LOG(&e->config.log, LOG_WARN, FAULT_REMOTE, "member-refused", F_X("node", id),
                F_S("reason", orders_evicted(&e->orders, id) ? "evicted"
                              : late ? "it came with the former job key"
                                     : "not among the nodes that are let in (job.allow)"));
        keypair_fini(&k);
        peer_withdraw(m->peer);
        return;
    }
    installed(e, m, &k, key, &theirs);
}

static void recv_done(engine *e, const sleet_addr *from, uint32_t index, const uint8_t *body, size_t len)
{
    struct pending *p = gate_recv_done(e->gate, index, body, len, e->now);
    if (p && !engine_admits(e, key_node_id(p->key))) {
        refuse(e, &p->from, p->peer_index, CLOSE_DENIED, "the node is not let in (job.allow)", WIRE_VERSION);
        return;
    }
    struct member *m = p ? NULL : holder(e, index);
    const struct keypair *k = m ? peer_pair(m->peer, index) : NULL;
    if (p && adopt(e, p, from)) {
        e->counters.accepted++;
    } else if (k && time_since(e->now, k->born) < GATE_PENDING_LIFE) {
        e->counters.accepted++; /* repeated: our PING was lost */
        view_answer(&e->view, m);
    } else {
        e->counters.foreign++;
    }
}

static void recv_cookie(engine *e, uint32_t index, const uint8_t *body, size_t len)
{
    struct member *m = holder(e, index);
    if (!m || !peer_recv_cookie(m->peer, index, body, len, e->now)) {
        e->counters.foreign++;
        return;
    }
    e->counters.accepted++;
    m->hello_at = e->now;
    member_timer(e, m);
}

/* A CLOSE with the MAC of handshakes: our HELLO was refused. */
static void recv_refusal(engine *e, const sleet_addr *from, uint32_t index, const uint8_t *body,
                         size_t len)
{
    struct member *m = index ? holder(e, index) : view_at(&e->view, from);
    struct wire_close c;
    bool ours = m && m->peer->offer && (!index || m->peer->offer->index == index);
    if (!ours || wire_close_decode(&c, body, len) != SLEET_OK) {
        e->counters.foreign++;
        return;
    }
    e->counters.accepted++;
    if (m->peer->offer->answered && m->session) { /* XX: it knows only now whom it answered */
        m->session = false;
        view_set_alive(&e->view, m, false);
        peer_drop(m->peer, e->gate);
    }
    m->hello_at = time_add(e->now, SEC(2));
    m->hello_gap = SEC(2);
    member_timer(e, m);
    if (!m->refused)
        LOG(&e->config.log, LOG_ERROR, FAULT_REMOTE, "session-refused", F_U("peer", view_slot(&e->view, m)),
            F_S("reason", c.reason == CLOSE_VERSION    ? "wire version differs"
                          : c.reason == CLOSE_JOB      ? "job differs"
                          : c.reason == CLOSE_ELEMENTS ? "elements a fragment differ"
                          : c.reason == CLOSE_DENIED   ? "this node is not let in there (job.allow)"
                                                       : "closed"),
            F_U("version", c.version), F_U("elements", c.elements));
    m->refused = true;
}

/* Who has not got the job's key gets no answer; where the address is listed, the log says so. */
static void wrong_mac(engine *e, const sleet_addr *from, const uint8_t *data, size_t len)
{
    struct wire_header h;
    const uint8_t *body;
    size_t body_len;
    struct member *m = view_at(&e->view, from);
    e->counters.corrupt++;
    if (!m || m->refused || m->session)
        return;
    m->refused = true;
    bool plain = datagram_open(data, len, &h, &body, &body_len) == SLEET_OK;
    LOG(&e->config.log, LOG_WARN, FAULT_REMOTE, "handshake-refused", F_U("peer", view_slot(&e->view, m)),
        F_S("reason", plain ? "it runs with job.security = none" : "it has another job key"));
}

static void recv_handshake(engine *e, const sleet_addr *from, const struct wire_header *h,
                           const uint8_t *data, size_t len)
{
    const uint8_t *body = data + WIRE_HEADER_BYTES;
    size_t body_len = len - WIRE_HEADER_BYTES - WIRE_TAG_BYTES;
    if (!gate_right(e->gate, data, len)) {
        wrong_mac(e, from, data, len);
        return;
    }
    switch (h->type) {
    case WIRE_HELLO:
        recv_hello(e, from, body, body_len);
        return;
    case WIRE_HELLO_ACK:
        recv_answer(e, h->index, body, body_len);
        return;
    case WIRE_HELLO_DONE:
        recv_done(e, from, h->index, body, body_len);
        return;
    case WIRE_COOKIE:
        recv_cookie(e, h->index, body, body_len);
        return;
    default:
        recv_refusal(e, from, h->index, body, body_len);
    }
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
    struct member *m = holder(e, h->index);
    struct keypair *k = m ? peer_pair(m->peer, h->index) : NULL;
    struct pending *p = k ? NULL : gate_pending(e->gate, h->index, e->now);
    if (!k && !p) {
        if (h->type == WIRE_CLOSE && gate_right(e->gate, data, len))
            recv_handshake(e, from, h, data, len);
        else
            e->counters.foreign++;
        return;
    }
    const uint8_t *body = keypair_open(k ? k : &p->pair, h->counter, data, len, room, e->now, &v);
    if (!body && h->type == WIRE_CLOSE && gate_right(e->gate, data, len)) {
        recv_handshake(e, from, h, data, len); /* our third message was refused */
        return;
    }
    if (!body) {
        e->counters.duplicate += v == KEYPAIR_REPLAYED;
        e->counters.corrupt += v == KEYPAIR_FORGED;
        return;
    }
    if (p) {
        m = adopt(e, p, from);
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
        recv_handshake(e, from, &h, data, len);
    else if (error == SLEET_OK)
        recv_sealed(e, from, &h, data, len);
    else if (error == SLEET_EPROTO && h.type == WIRE_HELLO && gate_right(e->gate, data, len))
        refuse(e, from, 0, CLOSE_VERSION, "wire version differs", h.version);
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
