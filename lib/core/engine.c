/* Life, time and the receive dispatch of one node. */
#include "engine_internal.h"
#include "wire/parity.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define PAUSED_AFTER MS(300) /* late by this much: the process was not running */

static_assert(ENGINE_PEERS_MAX + 1 == MEMBERS_MAX, "a slot for each peer and one for this node");
static_assert(ENGINE_SETS_MAX == MEMBER_SETS_MAX, "what a member says of each set");

static void set_default(engine_config *c)
{
#define DEFAULT(field, value)                                                                \
    if (c->field == 0)                                                                       \
    c->field = (value)
    DEFAULT(window, 4);
    DEFAULT(absent_rounds, 3);
    DEFAULT(rate_bps, 100000000);
    DEFAULT(ping, SEC(1));
    DEFAULT(budget_min, MS(20));
    DEFAULT(budget_max, SEC(10));
    DEFAULT(budget_first, MS(500));
    DEFAULT(join_wait, SEC(3));
    DEFAULT(merge_rounds, 4);
#undef DEFAULT
}

struct member *engine_add_member(engine *e, const sleet_addr *addr)
{
    struct member *m = view_add(&e->view, addr);
    if (m && e->gate && !(m->peer = calloc(1, sizeof *m->peer))) {
        view_remove(&e->view, m);
        return NULL;
    }
    if (m)
        flow_init(&m->flow, e->config.rate_bps, PACE_BURST_BYTES, e->now);
    return m;
}

void engine_remove_member(engine *e, struct member *m)
{
    if (m->peer)
        peer_drop(m->peer, e->gate);
    outbox_drop(e, view_slot(&e->view, m));
    gossip_unlink(e, m);
    view_remove(&e->view, m);
    if (e->view.count == CROWD) { /* few enough again for all to ping all */
        e->mesh_since = e->now;
        member_ping_all(e, e->now);
    }
}

engine *engine_new(const engine_config *c, sleet_time now)
{
    if (!c || (!c->node_id && c->security == ENGINE_PLAIN) || !c->boot_id || c->peer_count > ENGINE_PEERS_MAX || !c->job[0] ||
        c->job[63] || c->window > ROUNDS_RING - 2 || c->members_max > MEMBERS_MAX ||
        !declared_fits(&c->declared))
        return NULL;
    uint32_t room = c->members_max ? c->members_max : MEMBERS_MAX;
    engine *e = calloc(1, sizeof *e);
    if (!e || !view_init(&e->view, room > c->peer_count ? room : c->peer_count + 1)) {
        free(e);
        return NULL;
    }
    e->config = *c;
    set_default(&e->config);
    e->config.peers = NULL;
    e->now = e->created = now;
    e->members = e->view.members;
    notice_init(e, c);
    if (c->security == ENGINE_SEALED && !sealed_init(e, c)) {
        engine_free(e);
        return NULL;
    }
    e->rng.state = c->seed ^ mix64(e->config.node_id) ^ mix64(c->boot_id);
    e->promised = TIME_NEVER;
    e->members[0].node_id = e->config.node_id;
    e->members[0].boot_id = c->boot_id;
    e->members[0].declared = c->declared;
    e->members[0].alive = e->members[0].session = true;
    for (uint32_t i = 0; i < c->peer_count; i++)
        engine_add_member(e, &c->peers[i])->listed = true;
    if (!gossip_begin(e)) {
        engine_free(e);
        return NULL;
    }
    pacer_init(&e->pacer, e->config.rate_bps, PACE_BURST_BYTES, now);
    state_init(e, now);
    session_begin(e);
    return e;
}

void engine_free(engine *e)
{
    if (!e)
        return;
    for (uint32_t i = 0; i < ENGINE_SETS_MAX; i++)
        set_fini(&e->sets[i]);
    serve_fini(e);
    sealed_fini(e);
    state_fini(e);
    view_fini(&e->view);
    swim_fini(&e->swim);
    free(e);
}

/* A process that slept must not blame the others for its own silence. */
static void advance(engine *e, sleet_time now)
{
    if (!time_is_never(e->promised) && time_since(now, e->promised) > PAUSED_AFTER) {
        sleet_duration gap = time_since(now, e->promised);
        for (uint32_t i = 1; i < e->view.n; i++) {
            flow_slept(&e->members[i].flow, gap);
            if (gap >= KEEP_DEAD / 2 && !e->gate) { /* the others may have forgotten this node */
                e->members[i].told = false;
                e->members[i].hello_at = now;
                member_timer(e, &e->members[i]);
            }
            if (!time_is_never(e->members[i].heard))
                e->members[i].heard = time_add(e->members[i].heard, gap);
        }
        swim_paused(&e->swim, gap);
        LOG(&e->config.log, LOG_WARN, FAULT_LOCAL, "paused", F_F("seconds", (double)gap / 1e9));
        e->promised = TIME_NEVER;
        e->now = now;
        engine_expire(e, now);
        return;
    }
    if (time_before(e->now, now))
        e->now = now;
}

void engine_settle(engine *e)
{
    struct env env = engine_env(e);
    for (uint32_t i = 0; i < ENGINE_SETS_MAX; i++) {
        struct set *s = &e->sets[i];
        if (s->used && s->open && gather_complete(s, s->open, &env, e->now))
            set_close(s, s->open, &env, SLEET_OK, e->now);
    }
}

static void recv_in_session(engine *e, struct member *m, const struct wire_header *h,
                            const uint8_t *body, size_t len)
{
    switch (h->type) {
    case WIRE_PING:
        member_recv_ping(e, m, body, len);
        engine_settle(e);
        return;
    case WIRE_DATA:
        if (wire_is_parity(body, len))
            parity_recv(e, m, body, len);
        else
            data_recv(e, m, body, len);
        return;
    case WIRE_SUMMARY:
        data_recv_summary(e, m, body, len);
        return;
    case WIRE_SCHEMA:
        schema_recv(e, m, body, len);
        return;
    case WIRE_SCHEMA_ACK:
        schema_recv_ack(e, m, body, len);
        return;
    case WIRE_GROUP_REQ:
        group_recv_req(e, m, body, len);
        return;
    case WIRE_GROUP:
        group_recv(e, body, len);
        return;
    case WIRE_MEMBERS:
        gossip_recv(e, m, body, len);
        return;
    case WIRE_CLOSE:
        session_recv_close(e, m, body, len);
        return;
    case WIRE_STATE:
        state_recv(e, m, body, len);
        return;
    case WIRE_NOTICE:
        if (e->gate)
            notice_recv(e, m, body, len);
        else
            e->counters.foreign++; /* without security nobody's orders are taken */
        return;
    default:
        e->counters.foreign++;
    }
}

/* Both sides greet, so both see the other's version and say it once. */
static void refuse_version(engine *e, struct member *m, uint8_t version)
{
    if (!m->refused)
        LOG(&e->config.log, LOG_ERROR, FAULT_REMOTE, "wire-version-differs",
            F_U("peer", m - e->members), F_U("theirs", version), F_U("ours", 1));
    m->refused = true;
}

/* The receiver chose the index, so it names the member at once. */
static struct member *member_by_index(const engine *e, uint32_t index)
{
    struct member *m = &e->members[index & ((1u << INDEX_SLOT_BITS) - 1)];
    return (index & ((1u << INDEX_SLOT_BITS) - 1)) < e->view.n && m->my_index == index ? m : NULL;
}

void engine_take(engine *e, struct member *m, const struct wire_header *h, const uint8_t *body,
                 size_t len)
{
    if (m->evicted) {
        e->counters.foreign++;
        return;
    }
    m->gaps += h->counter > m->rx_next;
    if (h->counter >= m->rx_next)
        m->rx_next = h->counter + 1;
    reorder_note(&m->reorder, h->counter, e->now);
    m->rx_received++;
    loss_note(&m->loss, member_highest(m), m->rx_received);
    member_heard(e, m, h->type == WIRE_MEMBERS);
    recv_in_session(e, m, h, body, len);
}

/* Without security only who is listed is heard. */
static void plain_recv(engine *e, const sleet_addr *from, const uint8_t *data, size_t len)
{
    struct wire_header h;
    const uint8_t *body;
    size_t body_len;
    struct member *m = view_at(&e->view, from);
    if (!m)
        m = gossip_stranger(e, from, data, len);
    if (!m) {
        e->counters.foreign++;
        return;
    }
    int error = datagram_open(data, len, &h, &body, &body_len);
    if (error == SLEET_EPROTO) {
        e->counters.foreign++;
        refuse_version(e, m, h.version);
        return;
    }
    if (error != SLEET_OK) {
        e->counters.corrupt++;
        return;
    }
    if (h.type == WIRE_HELLO || h.type == WIRE_HELLO_ACK) {
        session_recv_hello(e, m, &h, body, body_len);
        return;
    }
    if (h.type == WIRE_CLOSE && !m->session && m->my_index && h.index == m->my_index) {
        session_recv_close(e, m, body, body_len); /* our HELLO was refused */
        return;
    }
    m = member_by_index(e, h.index);
    if (!m || !m->session || !addr_equal(&m->addr, from)) {
        e->counters.foreign++;
        return;
    }
    if (!replay_check_and_set(&m->replay, h.counter)) {
        e->counters.duplicate++;
        return;
    }
    engine_take(e, m, &h, body, body_len);
}

void engine_recv(engine *e, const sleet_addr *from, const uint8_t *data, size_t len, sleet_time now)
{
    advance(e, now);
    e->counters.in++;
    e->counters.in_bytes += len;
    if (e->leaving)
        e->counters.foreign++;
    else if (e->gate)
        sealed_recv(e, from, data, len);
    else
        plain_recv(e, from, data, len);
}

void engine_overflow(engine *e, uint32_t datagrams, sleet_time now)
{
    advance(e, now);
    e->counters.in += datagrams;
    e->counters.overflow += datagrams;
}

void engine_expire(engine *e, sleet_time now)
{
    struct env env = engine_env(e);
    advance(e, now);
    if (e->leaving)
        return;
    notice_expire(e);
    member_expire(e);
    for (uint32_t i = 0; i < ENGINE_SETS_MAX; i++)
        if (e->sets[i].used)
            set_expire(&e->sets[i], &env, now);
    state_expire(e);
}
