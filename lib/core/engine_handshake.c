/* How sealed sessions come about: what handshakes say, whose they are, and who is refused. */
#include "engine_internal.h"
#include "session/gate.h"
#include <string.h>

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

struct member *session_holder(engine *e, uint32_t index)
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
    member_heard(e, m, false);
    m->hello_gap = 0;
    if (!m->peer->current.confirmed)
        m->hello_at = e->now; /* what shows that the keys have come goes out at once */
    m->ping_at = e->now;
    member_timer(e, m);
}

/* Whoever was answered has the keys; what shows that came from `from`.  Only where that is the
 * address that was answered is the node known to be there: who can read a HELLO can send it
 * on from an address of his own. */
struct member *handshake_adopt(engine *e, struct pending *p, const sleet_addr *from)
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
                F_S("reason", engine_admits(e, id) ? "no room for another member"
                                                   : "it is not let in"));
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

void handshake_refuse(engine *e, const sleet_addr *to, uint32_t index, uint8_t reason,
                      const char *why, uint8_t theirs)
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
        handshake_refuse(e, from, r.index, CLOSE_JOB, "job differs", WIRE_VERSION);
        return;
    case GATE_ELEMENTS:
        handshake_refuse(e, from, r.index, CLOSE_ELEMENTS, "elements a fragment differ", WIRE_VERSION);
        return;
    case GATE_DENIED:
        handshake_refuse(e, from, r.index, CLOSE_DENIED, "the node is not let in (job.allow)", WIRE_VERSION);
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
    struct member *m = session_holder(e, index);
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
        handshake_refuse(e, &p->from, p->peer_index, CLOSE_DENIED, "the node is not let in (job.allow)", WIRE_VERSION);
        return;
    }
    struct member *m = p ? NULL : session_holder(e, index);
    const struct keypair *k = m ? peer_pair(m->peer, index) : NULL;
    if (p && handshake_adopt(e, p, from)) {
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
    struct member *m = session_holder(e, index);
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
    struct member *m = index ? session_holder(e, index) : view_at(&e->view, from);
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

void handshake_recv(engine *e, const sleet_addr *from, const struct wire_header *h,
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
