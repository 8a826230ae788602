/* Who one talks to: greeting and good-bye.
 * The greetings here are those of `security = none`: the identity in the clear, and only
 * listed addresses are heard; engine_sealed.c has the others. */
#include "engine_internal.h"
#include <assert.h>
#include <string.h>

#define HELLO_GAP MS(100)
#define HELLO_GAP_SEALED SEC(5) /* where there is a session and new keys are wanted */
#define NO_SESSION 0u

static_assert(MEMBERS_MAX <= 1 << INDEX_SLOT_BITS, "session indices differ by the slot");

/* Where there are many, not all greet in one instant: of two that list each other,
 * the one to greet first saves the other the greeting. */
void session_begin(engine *e)
{
    for (uint32_t i = 1; i < e->view.n; i++) {
        e->members[i].hello_at = e->now;
        if (e->view.count > CROWD)
            e->members[i].hello_at.ns += rng_below(&e->rng, e->view.count / CROWD * HELLO_GAP);
        member_timer(e, &e->members[i]);
    }
}

static struct wire_hello own_hello(const engine *e, const struct member *m)
{
    struct wire_hello h = {.node_id = e->config.node_id,
                           .boot_id = e->config.boot_id,
                           .index = m->my_index,
                           .elements = FRAGMENT_ELEMENTS};
    memcpy(h.job, e->config.job, sizeof h.job);
    return h;
}

static void send_hello(engine *e, struct member *m, uint8_t type, uint32_t index)
{
    uint8_t body[128];
    struct wire_hello h = own_hello(e, m);
    size_t len = wire_hello_encode(body, sizeof body, &h);
    outbox_put(e, &m->addr, 0, index, type, body, len); /* no part of a session's counters */
}

static void refuse(engine *e, struct member *m, uint8_t reason, uint32_t index, const char *why)
{
    uint8_t body[8];
    struct wire_close c = {.reason = reason, .version = 1, .elements = FRAGMENT_ELEMENTS};
    size_t len = wire_close_encode(body, sizeof body, &c);
    outbox_put(e, &m->addr, 0, index, WIRE_CLOSE, body, len);
    LOG(&e->config.log, LOG_WARN, FAULT_REMOTE, "hello-refused", F_S("reason", why),
        F_U("peer", m - e->members));
}

static void new_index(engine *e, struct member *m)
{
    uint32_t slot = (uint32_t)(m - e->members);
    do
        m->my_index = ((uint32_t)rng_next(&e->rng) << INDEX_SLOT_BITS) | slot;
    while (m->my_index == NO_SESSION);
}

/* Packet counters go on where the life is the same: one may not come twice with a key. */
void session_open(engine *e, struct member *m, uint64_t node_id, uint64_t boot_id, bool other)
{
    m->node_id = node_id;
    m->boot_id = boot_id;
    m->session = true;
    m->left = m->told = m->refused = false;
    view_renew(&e->view, m);
    if (other) {
        m->tx_counter = 0;
        m->rx_received = m->gaps = 0;
        m->rx_next = 1;
        m->loss = (struct loss){0};
        m->loss_told = 0;
        m->capacity = (struct capacity){0};
        m->capacity_told = 0;
        m->link = (struct adatopk){0};
        m->keep = 0;
    }
    m->overflow = 0;
    m->echo = 0;
    m->ping_at = e->now;
    m->hello_gap = 0;
    m->hello_at = time_add(e->now, HELLO_GAP);
    notice_session(e, m, other);
    gossip_met(e, m);
    LOG(&e->config.log, LOG_INFO, FAULT_NONE, "member-joined", F_X("node", m->node_id),
        F_X("boot", m->boot_id));
}

void session_recv_hello(engine *e, struct member *m, const struct wire_header *head,
                        const uint8_t *body, size_t len)
{
    struct wire_hello h;
    if (wire_hello_decode(&h, body, len) != SLEET_OK) {
        e->counters.corrupt++;
        return;
    }
    bool ack = head->type == WIRE_HELLO_ACK;
    if (strcmp(h.job, e->config.job) != 0 || h.elements != FRAGMENT_ELEMENTS ||
        h.node_id == e->config.node_id) {
        e->counters.foreign++;
        if (!ack && h.node_id != e->config.node_id)
            refuse(e, m, h.elements != FRAGMENT_ELEMENTS ? CLOSE_ELEMENTS : CLOSE_JOB, h.index,
                   h.elements != FRAGMENT_ELEMENTS ? "elements a fragment differ" : "job differs");
        return;
    }
    if (ack && head->index != m->my_index) {
        e->counters.foreign++;
        return;
    }
    e->counters.accepted++;
    struct member *other = m->node_id == h.node_id ? m : view_by_id(&e->view, h.node_id);
    if (other && other != m && (other->boot_id == h.boot_id || e->config.open_join)) {
        gossip_merge(e, m, other); /* and the greeting begins again from there */
        return;
    }
    if (!m->my_index)
        new_index(e, m);
    if (!m->session || m->boot_id != h.boot_id || m->peer_index != h.index) {
        if (m->boot_id && m->boot_id != h.boot_id && !ack)
            new_index(e, m); /* datagrams to its former life stay foreign */
        session_open(e, m, h.node_id, h.boot_id, true);
        m->peer_index = h.index;
    }
    member_heard(e, m, false);
    if (!ack)
        send_hello(e, m, WIRE_HELLO_ACK, h.index);
    m->ping_at = e->now;
    member_timer(e, m);
}

void session_recv_close(engine *e, struct member *m, const uint8_t *body, size_t len)
{
    struct wire_close c;
    if (wire_close_decode(&c, body, len) != SLEET_OK) {
        e->counters.corrupt++;
        return;
    }
    e->counters.accepted++;
    m->session = false;
    if (m->peer)
        peer_drop(m->peer, e->gate);
    view_set_alive(&e->view, m, false);
    m->hello_at = time_add(e->now, HELLO_GAP_MAX);
    member_timer(e, m);
    m->left = c.reason == CLOSE_LEAVE;
    for (uint32_t i = 0; m->left && i < ENGINE_SETS_MAX; i++)
        set_forget(&e->sets[i], m->node_id);
    gossip_closed(e, m);
    LOG(&e->config.log, m->left ? LOG_INFO : LOG_WARN, FAULT_REMOTE, "member-closed",
        F_X("node", m->node_id), F_U("reason", c.reason), F_U("version", c.version),
        F_U("elements", c.elements));
}

void session_farewell(engine *e)
{
    uint8_t body[8];
    struct wire_close c = {.reason = CLOSE_LEAVE, .version = 1, .elements = FRAGMENT_ELEMENTS};
    size_t len = wire_close_encode(body, sizeof body, &c);
    for (; e->farewells < e->view.n && e->outbox_n < OUTBOX_MAX; e->farewells++) {
        const struct member *m = &e->members[e->farewells];
        if (e->farewells && m->session)
            outbox_put(e, &m->addr, e->farewells, m->peer_index, WIRE_CLOSE, body, len);
    }
}

void session_greet(engine *e, struct member *m)
{
    sleet_duration most = e->gate && m->session ? HELLO_GAP_SEALED : HELLO_GAP_MAX;
    gossip_try_address(e, m);
    if (e->gate) {
        sealed_greet(e, m);
    } else {
        if (!m->my_index)
            new_index(e, m);
        send_hello(e, m, WIRE_HELLO, NO_SESSION);
    }
    m->hello_gap += m->hello_gap == 0 ? HELLO_GAP : e->view.count > CROWD ? m->hello_gap : HELLO_GAP / 2;
    if (m->hello_gap > most)
        m->hello_gap = most;
    m->hello_at = time_add(e->now, m->hello_gap + (sleet_duration)rng_below(&e->rng, 20) * MS(1));
}
