/* Who is there: liveness by any datagram and by pings, and what pings say. */
#include "engine_internal.h"
#include <assert.h>

#define PING_MAX (20 + WIRE_DECLARED_BYTES + (48 + WIRE_SKETCH_BYTES + WIRE_SWITCH_BYTES) * WIRE_PING_SETS_MAX)

static_assert(PING_MAX <= WIRE_BODY_MAX, "all that may be said of all sets fits one PING");

static uint32_t micros(sleet_time t)
{
    uint32_t us = (uint32_t)(t.ns / 1000);
    return us ? us : 1; /* 0 means none on the wire */
}

#define SILENT_PERIODS 2.5

/* So few that everybody pings everybody. */
static bool is_mesh(const engine *e)
{
    return e->view.count <= CROWD;
}

/* Each period each member of a mesh is pinged; beyond it only SWIM's probe tells. */
sleet_time member_silent_at(const engine *e, const struct member *m, double periods)
{
    sleet_time heard = time_before(m->heard, e->mesh_since) ? e->mesh_since : m->heard;
    return is_mesh(e) ? time_add(heard, (sleet_duration)(periods * (double)e->config.ping)) : TIME_NEVER;
}

static sleet_time silent_at(const engine *e, const struct member *m)
{
    return time_add(member_silent_at(e, m, SILENT_PERIODS), 1);
}

/* When an accused member is left out, if it is not heard: the accusation is of a period of silence,
 * so whoever has heard it lately knows better; 1.5 periods, since
 * pings come each. */
static sleet_time condemned_at(const engine *e, const struct member *m)
{
    return gossip_sound(e, m) ? TIME_NEVER : time_add(m->heard, e->config.ping * 3 / 2);
}

/* Until a PING shows that the member has the session as well, and these keys of it; and when it
 * is silent for long, since it may have forgotten this node.  Where there are many, the dead are not
 * greeted. */
static bool greets(const engine *e, const struct member *m)
{
    if (!is_mesh(e) && !m->listed && !m->alive && !gossip_live(e, m))
        return false;
    if (!m->session || !m->told)
        return true;
    if (m->peer)
        return peer_unsure(m->peer);
    return !m->alive && !m->left && (is_mesh(e) || gossip_unreachable(e, m));
}

/* To be called when what it says has changed, but for `heard`, which only puts it off. */
void member_timer(engine *e, const struct member *m)
{
    if (m->evicted) { /* engine_notice.c sees it off */
        heap_move(&e->view.due, view_slot(&e->view, m), TIME_NEVER);
        return;
    }
    sleet_time t = greets(e, m) ? m->hello_at : TIME_NEVER;
    if (m->session)
        t = time_min(t, m->pong_due || m->probe_due ? (sleet_time){0}
                                    : time_min(m->ping_at, flow_deadline(&m->flow, &m->rtt)));
    if (m->session && m->alive)
        t = time_min(t, time_min(silent_at(e, m), condemned_at(e, m)));
    if (m->peer)
        t = time_min(t, sealed_deadline(e, m));
    heap_move(&e->view.due, view_slot(&e->view, m), t);
}

void member_review(engine *e, struct member *m)
{
    bool silent = !time_before(e->now, silent_at(e, m)) || (!is_mesh(e) && gossip_unreachable(e, m));
    bool sound = time_before(e->now, condemned_at(e, m));
    bool alive = m->session && !m->left && sound && !silent;
    if (alive == m->alive)
        return;
    view_set_alive(&e->view, m, alive);
    if (!alive && !m->peer) {
        m->hello_gap = HELLO_GAP_MAX;
        m->hello_at = time_add(m->heard, KEEP_DEAD);
    }
    if (alive)
        LOG(&e->config.log, LOG_INFO, FAULT_NONE, "member-alive", F_X("node", m->node_id));
    else
        LOG(&e->config.log, LOG_WARN, FAULT_REMOTE, silent ? "member-silent" : "member-suspected",
            F_X("node", m->node_id), F_F("silent_s", (double)time_since(e->now, m->heard) / 1e9));
}

void member_heard(engine *e, struct member *m, bool news_only)
{
    m->heard = e->now;
    flow_heard(&m->flow);
    if (m->swim)
        swim_heard(&e->swim, m->swim, e->now);
    if (m->alive)
        return;
    if (!news_only) {
        member_review(e, m);
    } else { /* what it last said of its sets is from before it was silent: ask */
        m->probe_due = true;
        member_timer(e, m);
    }
}

void member_echo(engine *e, struct member *m, uint32_t echo, uint32_t hold_us)
{
    if (!echo)
        return;
    int64_t us = (int32_t)(micros(e->now) - echo) - (int64_t)hold_us;
    if (us >= 0 && us < 60000000)
        rtt_sample(&m->rtt, US(us));
}

/* The first number of a session, by its first PING, is from before it. */
void member_overflow(engine *e, struct member *m, uint32_t total)
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
    struct member_set now = m->sets[s->handle], before = now;
    struct env env = engine_env(e);
    if (p->change.version)
        set_hear_switch(s, &env, &p->change);
    now.matches = true;
    now.attached = (p->flags & PING_ATTACHED) != 0;
    now.established = (p->flags & PING_ESTABLISHED) != 0;
    now.parked = (p->flags & PING_PARKED) != 0;
    now.paused = (p->flags & PING_PAUSED) != 0;
    now.merged = (p->flags & PING_MERGED) != 0;
    now.lineage = p->lineage;
    now.parent = p->parent;
    now.forked_at = p->forked_at;
    now.weight = p->weight;
    now.weight_as_of = p->round;
    now.round_as_of = s->own_round;
    if (p->round >= now.round || p->lineage != before.lineage) { /* which has its own numbers */
        now.closed = (p->flags & PING_CLOSED) != 0;
        now.round = p->round;
    }
    view_learn(&e->view, m, (uint32_t)s->handle, &now);
    if ((p->flags & PING_SKETCH) && s->established && p->lineage == s->lineage)
        drift_recv(s, &env, m, &p->sketch);
    set_meet(s, &env, &before, &m->sets[s->handle], e->now);
}

static void learn_declared(engine *e, struct member *m, const struct declared *d)
{
    if (memcmp(&m->declared, d, sizeof *d) == 0)
        return;
    m->declared = *d;
    view_changed(&e->view);
}

void member_recv_ping(engine *e, struct member *m, const uint8_t *body, size_t len)
{
    struct wire_ping p;
    if (wire_ping_decode(&p, body, len) != SLEET_OK) {
        e->counters.corrupt++;
        return;
    }
    e->counters.accepted++;
    member_echo(e, m, p.echo, p.hold);
    member_overflow(e, m, p.overflow);
    bool deaf = is_mesh(e) && m->told && p.hold > SILENT_PERIODS * (double)e->config.ping / 1000;
    e->view.generation += m->deaf != deaf;
    if (deaf && !m->deaf)
        m->ping_at = e->now; /* or it hears us again: ask */
    m->deaf = deaf;
    if (!m->told)
        gossip_told(e, m);
    m->told = true;
    learn_declared(e, m, &p.declared);
    m->echo = p.time;
    m->echo_at = e->now;
    if (p.request)
        view_answer(&e->view, m);
    forget_unnamed(e, m, &p);
    bool unknown = p.declared.role == ROLE_AUXILIARY; /* which is told what there is to reduce */
    for (uint32_t i = 0; i < p.n; i++) {
        learn_set(e, m, &p.sets[i]);
        unknown |= !engine_set_by_hash(e, p.sets[i].hash);
    }
    for (uint32_t i = 0; unknown && i < ENGINE_SETS_MAX; i++)
        if (e->sets[i].used && e->sets[i].attached && !m->sets[i].matches)
            schema_offer(e, m, &e->sets[i], 0);
}

static size_t make_ping(engine *e, const struct member *m, uint32_t time, bool request,
                        uint8_t body[PING_MAX])
{
    const struct env env = engine_env(e);
    struct wire_ping p = {.time = time,
                          .echo = m->echo,
                          .hold = m->echo ? (uint32_t)(time_since(e->now, m->echo_at) / 1000) : 0,
                          .overflow = (uint32_t)e->counters.overflow,
                          .request = request,
                          .declared = e->config.declared};
    for (uint32_t i = 0; i < ENGINE_SETS_MAX; i++) {
        const struct set *s = &e->sets[i];
        if (!s->used)
            continue;
        struct wire_ping_set *w = &p.sets[p.n++];
        w->hash = s->layout.hash;
        w->round = s->own_round;
        w->change = s->switching.newest;
        if (s->established && s->attached) {
            w->lineage = s->lineage;
            w->parent = s->parent;
            w->forked_at = s->forked_at;
            w->weight = s->weight;
            w->flags = (uint8_t)((s->apart.isolated ? PING_PAUSED : 0) |
                                 (s->apart.merged ? PING_MERGED : 0));
        }
        w->flags |= (uint8_t)((s->attached ? PING_ATTACHED : 0) |
                             (set_parked(s, &env) ? PING_PARKED : 0) |
                             (s->established && s->attached ? PING_ESTABLISHED : 0) |
                             (s->open ? 0 : PING_CLOSED) | (m->sets[i].differs ? PING_DIFFERS : 0));
        const struct wire_sketch *k = drift_told(s);
        if (k && s->established && s->attached) {
            w->flags |= PING_SKETCH;
            w->sketch = *k;
        }
    }
    return wire_ping_encode(body, PING_MAX, &p);
}

static void send_ping(engine *e, struct member *m, bool request)
{
    uint8_t body[PING_MAX];
    size_t len = make_ping(e, m, micros(e->now), request, body);
    m->pong_due = false;
    outbox_put(e, &m->addr, view_slot(&e->view, m), m->peer_index, WIRE_PING, body, len);
}

size_t member_challenge(engine *e, struct member *m, const sleet_addr *to, uint32_t challenge, uint64_t room)
{
    uint8_t body[PING_MAX];
    size_t len = make_ping(e, m, challenge, true, body);
    size_t all = len + WIRE_HEADER_BYTES + WIRE_TAG_BYTES;
    if (!len || all > room)
        return 0;
    outbox_put(e, to, view_slot(&e->view, m), m->peer_index, WIRE_PING, body, len);
    return all;
}

void member_announce(engine *e, const struct group *to)
{
    for (uint32_t i = 0; i < (to ? to->n : e->view.n); i++) {
        uint32_t slot = to ? (uint32_t)to->members[i].slot : i;
        if (slot && e->members[slot].session)
            view_answer(&e->view, &e->members[slot]);
    }
}

void member_ping_all(engine *e, sleet_time now)
{
    for (uint32_t i = 1; i < e->view.n; i++) {
        e->members[i].ping_at = now;
        member_timer(e, &e->members[i]);
    }
}

static void look_after(engine *e, struct member *m)
{
    if (m->peer)
        sealed_expire(e, m);
    if (greets(e, m) && !time_before(e->now, m->hello_at))
        session_greet(e, m);
    if (m->alive)
        member_review(e, m);
    if (flow_expire(&m->flow, &m->rtt, e->now))
        m->ping_at = e->now; /* it owes an answer: ask */
    bool request = !time_before(e->now, m->ping_at);
    if (m->session && (m->pong_due || m->probe_due || request)) {
        send_ping(e, m, request || m->probe_due);
        m->probe_due = false;
        gossip_behind_ping(e, m);
        if (request)
            m->ping_at = is_mesh(e) ? time_add(e->now, e->config.ping) : TIME_NEVER;
    }
    member_timer(e, m);
}

/* As many as the outbox takes; the rest is still due then. */
void member_expire(engine *e)
{
    const struct heap *due = &e->view.due;
    gossip_expire(e);
    for (uint32_t slot = heap_first(due); e->outbox_n < OUTBOX_MAX; slot = heap_first(due)) {
        if (time_before(e->now, due->at[slot]))
            return;
        look_after(e, &e->members[slot]);
    }
}

sleet_time member_deadline(const engine *e)
{
    return time_min(gossip_deadline(e), e->view.due.at[heap_first(&e->view.due)]);
}
