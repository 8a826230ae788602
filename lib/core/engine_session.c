/* Who is there: greeting, liveness by any datagram and by pings.
 * `security = none`: the greeting carries the identity in the clear, and only
 * listed addresses are heard. */
#include "engine_internal.h"
#include <assert.h>
#include <string.h>

#define HELLO_GAP MS(100)
#define HELLO_GAP_MAX SEC(2)
#define CROWD SLEET_GROUP_MAX /* a job of more nodes takes its time to greet and to ping */
#define INDEX_SLOT_BITS 10
#define NO_SESSION 0u

static uint32_t micros(sleet_time t)
{
    uint32_t us = (uint32_t)(t.ns / 1000);
    return us ? us : 1; /* 0 means none on the wire */
}

static_assert(MEMBERS_MAX <= 1 << INDEX_SLOT_BITS, "session indices differ by the slot");

/* A node sends no more pings than one of CROWD nodes, whatever the size of the job. */
static sleet_duration ping_period(const engine *e)
{
    return e->n <= CROWD ? e->config.ping : e->config.ping * (e->n - 1) / (CROWD - 1);
}

static sleet_duration silence_limit(const engine *e)
{
    return ping_period(e) * 5 / 2;
}

/* Until a PING shows that the member has the session as well. */
static bool greets(const struct member *m)
{
    return !m->session || !m->told;
}

/* To be called when what it says has changed, but for `heard`, which only puts it off. */
void session_timer(engine *e, const struct member *m)
{
    sleet_time t = greets(m) ? m->hello_at : TIME_NEVER;
    if (m->session)
        t = time_min(t, m->pong_due ? (sleet_time){0}
                                    : time_min(m->ping_at, flow_deadline(&m->flow, &m->rtt)));
    if (m->session && m->alive)
        t = time_min(t, time_add(m->heard, silence_limit(e) + 1));
    heap_move(&e->view.due, view_slot(&e->view, m), t);
}

/* Where there are many, not all greet in one instant: of two that list each other,
 * the one to greet first saves the other the greeting. */
void session_begin(engine *e)
{
    for (uint32_t i = 1; i < e->n; i++) {
        e->members[i].hello_at = e->now;
        if (e->n > CROWD)
            e->members[i].hello_at.ns += rng_below(&e->rng, e->n / CROWD * HELLO_GAP);
        session_timer(e, &e->members[i]);
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

/* Another life of the node, or the first one seen. */
static void begin_session(engine *e, struct member *m, const struct wire_hello *h)
{
    m->node_id = h->node_id;
    m->boot_id = h->boot_id;
    m->session = true;
    m->left = m->told = false;
    m->tx_counter = 0;
    view_renew(&e->view, m);
    m->rx_received = m->gaps = 0;
    m->rx_next = 1;
    m->overflow = 0;
    m->echo = 0;
    m->ping_at = e->now;
    m->hello_gap = 0;
    m->hello_at = time_add(e->now, HELLO_GAP);
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
    if (!m->my_index)
        new_index(e, m);
    if (!m->session || m->boot_id != h.boot_id || m->peer_index != h.index) {
        if (m->boot_id && m->boot_id != h.boot_id && !ack)
            new_index(e, m); /* datagrams to its former life stay foreign */
        begin_session(e, m, &h);
        m->peer_index = h.index;
    }
    session_heard(e, m);
    if (!ack)
        send_hello(e, m, WIRE_HELLO_ACK, h.index);
    m->ping_at = e->now;
    session_timer(e, m);
}

void session_heard(engine *e, struct member *m)
{
    if (!m->alive && m->session && !m->left) {
        view_set_alive(&e->view, m, true);
        LOG(&e->config.log, LOG_INFO, FAULT_NONE, "member-alive", F_X("node", m->node_id));
    }
    m->heard = e->now;
    flow_heard(&m->flow);
}

void session_echo(engine *e, struct member *m, uint32_t echo, uint32_t hold_us)
{
    if (!echo)
        return;
    int64_t us = (int32_t)(micros(e->now) - echo) - (int64_t)hold_us;
    if (us >= 0 && us < 60000000)
        rtt_sample(&m->rtt, US(us));
}

/* The first number of a session, by its first PING, is from before it. */
void session_overflow(engine *e, struct member *m, uint32_t total)
{
    if ((int32_t)(total - m->overflow) <= 0)
        return;
    if (m->told)
        flow_overflow(&m->flow, &m->rtt, e->now);
    m->overflow = total;
}

/* A set of ours that its PING does not name has no trainer there. */
static void forget_unnamed(engine *e, struct member *m, const struct wire_ping *p)
{
    for (uint32_t i = 0; i < ENGINE_SETS_MAX; i++) {
        struct member_set now = m->sets[i];
        bool named = false;
        for (uint32_t k = 0; k < p->n; k++)
            named |= e->sets[i].used && e->sets[i].layout.hash == p->sets[k].hash;
        if (named || (!now.attached && !now.established))
            continue;
        now.attached = now.established = false;
        view_learn(&e->view, m, i, &now);
    }
}

static void learn_set(engine *e, struct member *m, const struct wire_ping_set *p)
{
    struct set *s = engine_set_by_hash(e, p->hash);
    if (!s)
        return;
    struct member_set now = m->sets[s->handle];
    now.matches = true;
    now.attached = (p->flags & PING_ATTACHED) != 0;
    now.established = (p->flags & PING_ESTABLISHED) != 0;
    now.lineage = p->lineage;
    now.round_as_of = s->own_round;
    if (p->round >= now.round) {
        now.closed = (p->flags & PING_CLOSED) != 0;
        now.round = p->round;
    }
    view_learn(&e->view, m, (uint32_t)s->handle, &now);
    bool heavier = p->round > s->own_round || (p->round == s->own_round && p->lineage < s->lineage);
    if (s->established && now.established && p->lineage != s->lineage && heavier) {
        s->established = false;
        LOG(&e->config.log, LOG_WARN, FAULT_NONE, "lineage-yields", F_X("to", m->node_id),
            F_S("set", s->layout.name));
    }
}

void session_recv_ping(engine *e, struct member *m, const uint8_t *body, size_t len)
{
    struct wire_ping p;
    if (wire_ping_decode(&p, body, len) != SLEET_OK) {
        e->counters.corrupt++;
        return;
    }
    e->counters.accepted++;
    session_echo(e, m, p.echo, p.hold);
    session_overflow(e, m, p.overflow);
    m->told = true;
    m->echo = p.time;
    m->echo_at = e->now;
    if (p.request)
        view_answer(&e->view, m);
    forget_unnamed(e, m, &p);
    bool unknown = false;
    for (uint32_t i = 0; i < p.n; i++) {
        learn_set(e, m, &p.sets[i]);
        unknown |= !engine_set_by_hash(e, p.sets[i].hash);
    }
    for (uint32_t i = 0; unknown && i < ENGINE_SETS_MAX; i++)
        if (e->sets[i].used && e->sets[i].attached && !m->sets[i].matches)
            schema_offer(e, m, &e->sets[i], 0);
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
    view_set_alive(&e->view, m, false);
    m->hello_at = time_add(e->now, HELLO_GAP_MAX);
    session_timer(e, m);
    m->left = c.reason == CLOSE_LEAVE;
    LOG(&e->config.log, m->left ? LOG_INFO : LOG_WARN, FAULT_REMOTE, "member-closed",
        F_X("node", m->node_id), F_U("reason", c.reason), F_U("version", c.version),
        F_U("elements", c.elements));
}

static void send_ping(engine *e, struct member *m, bool request)
{
    uint8_t body[256];
    struct wire_ping p = {.time = micros(e->now),
                          .echo = m->echo,
                          .hold = m->echo ? (uint32_t)(time_since(e->now, m->echo_at) / 1000) : 0,
                          .overflow = (uint32_t)e->counters.overflow,
                          .request = request};
    for (uint32_t i = 0; i < ENGINE_SETS_MAX; i++) {
        const struct set *s = &e->sets[i];
        if (!s->used)
            continue;
        struct wire_ping_set *w = &p.sets[p.n++];
        w->hash = s->layout.hash;
        w->round = s->own_round;
        w->lineage = s->established ? s->lineage : 0;
        w->flags = (uint8_t)((s->attached ? PING_ATTACHED : 0) |
                             (s->established && s->attached ? PING_ESTABLISHED : 0) |
                             (s->open ? 0 : PING_CLOSED) | (m->sets[i].differs ? PING_DIFFERS : 0));
    }
    m->pong_due = false;
    size_t len = wire_ping_encode(body, sizeof body, &p);
    outbox_put(e, &m->addr, (uint32_t)(m - e->members), m->peer_index, WIRE_PING, body, len);
}

void session_announce(engine *e, const struct group *to)
{
    for (uint32_t i = 0; i < (to ? to->n : e->n); i++) {
        uint32_t slot = to ? (uint32_t)to->members[i].slot : i;
        if (slot && e->members[slot].session)
            view_answer(&e->view, &e->members[slot]);
    }
}

void session_ping_all(engine *e, sleet_time now)
{
    for (uint32_t i = 1; i < e->n; i++) {
        e->members[i].ping_at = now;
        session_timer(e, &e->members[i]);
    }
}

void session_farewell(engine *e)
{
    uint8_t body[8];
    struct wire_close c = {.reason = CLOSE_LEAVE, .version = 1, .elements = FRAGMENT_ELEMENTS};
    size_t len = wire_close_encode(body, sizeof body, &c);
    for (; e->farewells < e->n && e->outbox_n < OUTBOX_MAX; e->farewells++) {
        const struct member *m = &e->members[e->farewells];
        if (e->farewells && m->session)
            outbox_put(e, &m->addr, e->farewells, m->peer_index, WIRE_CLOSE, body, len);
    }
}

static void greet(engine *e, struct member *m)
{
    if (!m->my_index)
        new_index(e, m);
    send_hello(e, m, WIRE_HELLO, NO_SESSION);
    m->hello_gap += m->hello_gap == 0 ? HELLO_GAP : e->n > CROWD ? m->hello_gap : HELLO_GAP / 2;
    if (m->hello_gap > HELLO_GAP_MAX)
        m->hello_gap = HELLO_GAP_MAX;
    m->hello_at = time_add(e->now, m->hello_gap + (sleet_duration)rng_below(&e->rng, 20) * MS(1));
}

static void look_after(engine *e, struct member *m)
{
    if (greets(m) && !time_before(e->now, m->hello_at))
        greet(e, m);
    if (m->session && m->alive && time_since(e->now, m->heard) > silence_limit(e)) {
        view_set_alive(&e->view, m, false);
        LOG(&e->config.log, LOG_WARN, FAULT_REMOTE, "member-silent", F_X("node", m->node_id),
            F_F("silent_s", (double)time_since(e->now, m->heard) / 1e9));
    }
    if (flow_expire(&m->flow, &m->rtt, e->now))
        m->ping_at = e->now; /* it owes an answer: ask */
    bool request = !time_before(e->now, m->ping_at);
    if (m->session && (m->pong_due || request)) {
        send_ping(e, m, request);
        if (request)
            m->ping_at = time_add(e->now, ping_period(e));
    }
    session_timer(e, m);
}

/* As many as the outbox takes; the rest is still due then. */
void session_expire(engine *e)
{
    const struct heap *due = &e->view.due;
    for (uint32_t slot = heap_first(due); e->outbox_n < OUTBOX_MAX; slot = heap_first(due)) {
        if (time_before(e->now, due->at[slot]))
            return;
        look_after(e, &e->members[slot]);
    }
}

sleet_time session_deadline(const engine *e)
{
    return e->view.due.at[heap_first(&e->view.due)];
}
