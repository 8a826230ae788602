/* What the operator orders: spreading the signed records to all members, again and again until
 * each has said that it has them, and doing what they say. */
#include "engine_internal.h"
#include "session/gate.h"
#include <assert.h>
#include <string.h>

#define TELL_FIRST MS(200) /* between the first two tries, then twice as long, */
#define TELL_MOST SEC(5)   /* up to this */
#define TELL_AT_ONCE 4     /* records to a member */
#define FORGED_MOST 8      /* records of one session that nobody signed: no more are looked at */
#define LAST_WORDS MS(200) /* for what an evicted member is told */

static_assert(ORDERS_MAX <= 64, "a bit each");

static uint64_t bit(uint32_t index) { return UINT64_C(1) << index; }

/* What the member is to be told.  A new key only once it has all evictions before: so whoever
 * has the key knows whom not to give it to. */
static uint64_t missing(const engine *e, const struct member *m)
{
    uint64_t all = e->orders.n == 64 ? UINT64_MAX : bit(e->orders.n) - 1, keys = 0;
    if (!m->used || !m->session || m->evicted)
        return 0;
    uint64_t what = all & ~(m->notice.told | m->notice.refused);
    const struct wire_record *rekey = orders_rekey(&e->orders);
    for (uint32_t i = 0; rekey && i < e->orders.n; i++)
        if (e->orders.list[i].kind == RECORD_EVICT && e->orders.list[i].serial < rekey->serial &&
            what & bit(i))
            keys = bit((uint32_t)(rekey - e->orders.list));
    return what & ~keys;
}

static void send_notice(engine *e, const struct member *m, uint8_t kind, const struct wire_record *r)
{
    uint8_t body[8 + WIRE_RECORD_BYTES];
    struct wire_notice n = {.kind = kind, .record = *r};
    size_t len = wire_notice_encode(body, sizeof body, &n);
    outbox_put(e, &m->addr, view_slot(&e->view, m), m->peer_index, WIRE_NOTICE, body, len);
}

/* ---- doing what is ordered ----------------------------------------------------------- */

static void close_evicted(engine *e, struct member *m)
{
    peer_drop(m->peer, e->gate);
    m->session = false;
    member_timer(e, m);
}

/* It is out of rounds at once; its keys stay for the moment in which it is told. */
static void evict_member(engine *e, struct member *m, const struct wire_record *r)
{
    uint8_t body[8];
    struct wire_close c = {.reason = CLOSE_DENIED, .version = 1, .elements = FRAGMENT_ELEMENTS};
    m->evicted = m->left = true;
    view_set_alive(&e->view, m, false);
    for (uint32_t i = 0; i < ENGINE_SETS_MAX; i++)
        if (e->sets[i].used)
            set_forget(&e->sets[i], m->node_id);
    if (m->session) {
        send_notice(e, m, NOTICE_RECORD, r);
        size_t len = wire_close_encode(body, sizeof body, &c);
        outbox_put(e, &m->addr, view_slot(&e->view, m), m->peer_index, WIRE_CLOSE, body, len);
    }
    m->notice.at = time_add(e->now, LAST_WORDS);
    member_timer(e, m);
}

static void evict(engine *e, const struct wire_record *r)
{
    struct member *m = view_by_id(&e->view, r->subject);
    bool self = r->subject == e->config.node_id;
    LOG(&e->config.log, self ? LOG_ERROR : LOG_WARN, FAULT_NONE, self ? "evicted" : "member-evicted",
        F_X("node", r->subject), F_U("serial", r->serial));
    e->evicted |= self;
    e->evicted_event |= self;
    if (m && !m->evicted)
        evict_member(e, m, r);
}

static void rekey(engine *e, const struct wire_record *r)
{
    if (!gate_rekey(e->gate, r->value, time_add(e->now, NOTICE_GRACE)))
        return; /* it was in the file already */
    for (uint32_t i = 1; i < e->view.n; i++)
        if (e->members[i].used)
            peer_rekeyed(e->members[i].peer);
    e->key_event = true;
    LOG(&e->config.log, LOG_WARN, FAULT_NONE, "job-key-changed", F_U("serial", r->serial),
        F_F("former_taken_s", (double)NOTICE_GRACE / 1e9));
}

static void apply(engine *e, uint32_t index)
{
    const struct wire_record *r = &e->orders.list[index];
    for (uint32_t i = 1; i < e->view.n; i++) {
        struct member_notice *n = &e->members[i].notice;
        n->told &= ~bit(index);
        n->refused &= ~bit(index);
        if (!e->members[i].evicted)
            *n = (struct member_notice){n->told, n->refused, e->now, 0, n->forged};
    }
    e->notice_at = e->now;
    if (r->kind == RECORD_EVICT)
        evict(e, r);
    else
        rekey(e, r);
}

/* ---- hearing and spreading --------------------------------------------------------------- */

void notice_session(engine *e, struct member *m, bool other)
{
    uint32_t forged = other ? 0 : m->notice.forged;
    m->notice = (struct member_notice){other ? 0 : m->notice.told, other ? 0 : m->notice.refused, e->now, 0,
                                       forged};
    if (e->orders.n)
        e->notice_at = e->now;
}

static void recv_record(engine *e, struct member *m, const struct wire_record *r)
{
    uint32_t index;
    if (m->notice.forged >= FORGED_MOST) {
        e->counters.foreign++;
        return;
    }
    enum orders_verdict v = orders_take(&e->orders, r, &index);
    bool refused = v == ORDERS_FOREIGN || v == ORDERS_FULL;
    e->counters.accepted += !refused;
    e->counters.foreign += refused;
    send_notice(e, m, refused ? NOTICE_REFUSED : NOTICE_TAKEN, r);
    if (v == ORDERS_NEW)
        apply(e, index);
    if (v == ORDERS_NEW || v == ORDERS_KNOWN)
        m->notice.told |= bit(index);
    if (v == ORDERS_FOREIGN && m->notice.forged++ == 0)
        LOG(&e->config.log, LOG_WARN, FAULT_REMOTE, "notice-refused", F_X("node", m->node_id),
            F_S("reason", e->orders.has_operator ? "not signed by job.operator for this job"
                                                 : "this node has no job.operator"));
    if (v == ORDERS_FULL)
        LOG(&e->config.log, LOG_ERROR, FAULT_LOCAL, "notices-full", F_U("most", ORDERS_MAX),
            F_S("fix", "sleetctl rekey"));
}

void notice_recv(engine *e, struct member *m, const uint8_t *body, size_t len)
{
    struct wire_notice n;
    if (wire_notice_decode(&n, body, len) != SLEET_OK) {
        e->counters.corrupt++;
        return;
    }
    if (n.kind == NOTICE_RECORD) {
        recv_record(e, m, &n.record);
        return;
    }
    uint32_t index = orders_find(&e->orders, &n.record);
    if (index == ORDERS_MAX) {
        e->counters.stale++;
        return;
    }
    e->counters.accepted++;
    if (n.kind == NOTICE_TAKEN) {
        m->notice.told |= bit(index);
        if (missing(e, m)) { /* now the new key, perhaps */
            m->notice.at = e->now;
            e->notice_at = e->now;
        }
    }
    if (n.kind == NOTICE_REFUSED && !(m->notice.refused & bit(index)))
        LOG(&e->config.log, LOG_WARN, FAULT_REMOTE, "notice-not-taken", F_X("node", m->node_id),
            F_S("reason", "it has another job.operator, or none"));
    m->notice.refused |= n.kind == NOTICE_REFUSED ? bit(index) : 0;
}

static void tell(engine *e, struct member *m, uint64_t what)
{
    unsigned sent = 0;
    for (uint32_t i = 0; i < e->orders.n && sent < TELL_AT_ONCE; i++)
        if (what & bit(i)) {
            send_notice(e, m, NOTICE_RECORD, &e->orders.list[i]);
            sent++;
        }
    m->notice.gap = m->notice.gap ? 2 * m->notice.gap : TELL_FIRST;
    if (m->notice.gap > TELL_MOST)
        m->notice.gap = TELL_MOST;
    m->notice.at = time_add(e->now, m->notice.gap + (sleet_duration)rng_below(&e->rng, 20) * MS(1));
}

/* Where the outbox is full the rest is still due. */
void notice_expire(engine *e)
{
    if (!e->gate)
        return;
    if (gate_expire(e->gate, e->now))
        LOG(&e->config.log, LOG_INFO, FAULT_NONE, "former-job-key-void", F_U("members", e->view.count));
    if (time_before(e->now, e->notice_at))
        return;
    sleet_time next = TIME_NEVER;
    for (uint32_t i = 1; i < e->view.n; i++) {
        struct member *m = &e->members[i];
        uint64_t what = missing(e, m);
        bool closing = m->evicted && m->session, due = !time_before(e->now, m->notice.at);
        if (closing && due)
            close_evicted(e, m);
        else if (what && due && e->outbox_n + TELL_AT_ONCE <= OUTBOX_MAX)
            tell(e, m, what);
        if (what || (closing && !due))
            next = time_min(next, m->notice.at);
    }
    e->notice_at = next;
}

sleet_time notice_deadline(const engine *e)
{
    sleet_time t = e->notice_at;
    return e->gate && e->gate->former ? time_min(t, e->gate->former_until) : t;
}

bool notice_poll(engine *e, engine_event *ev)
{
    const struct wire_record *r = orders_rekey(&e->orders);
    if (e->key_event && r) {
        e->key_event = false;
        ev->type = EVENT_JOB_KEY;
        memcpy(ev->job_key, r->value, sizeof ev->job_key);
        return true;
    }
    if (e->evicted_event) {
        e->evicted_event = false;
        ev->type = EVENT_EVICTED;
        return true;
    }
    return false;
}

/* ---- the operator's calls --------------------------------------------------------------- */

void notice_init(engine *e, const engine_config *c)
{
    e->notice_at = TIME_NEVER;
    orders_init(&e->orders, c->job, c->has_operator ? c->operator_key : NULL);
}

int engine_order(engine *e, const uint8_t *record, size_t len, sleet_time now)
{
    struct wire_record r;
    uint32_t index;
    if (!e || wire_record_decode(&r, record, len) != SLEET_OK)
        return SLEET_EINVAL;
    if (!e->gate || e->leaving)
        return SLEET_ESTATE;
    if (time_before(e->now, now))
        e->now = now;
    switch (orders_take(&e->orders, &r, &index)) {
    case ORDERS_NEW:
        apply(e, index);
        return SLEET_OK;
    case ORDERS_KNOWN:
        return SLEET_OK;
    case ORDERS_OLD:
        return SLEET_EEXIST;
    case ORDERS_FOREIGN:
        return SLEET_EPERM;
    case ORDERS_FULL:
        break;
    }
    return SLEET_ELIMIT;
}

uint32_t engine_get_orders(const engine *e, engine_order_info *out, uint32_t max)
{
    uint32_t n = e->orders.n < max ? e->orders.n : max;
    for (uint32_t i = 0; i < n; i++) {
        const struct wire_record *r = &e->orders.list[i];
        out[i] = (engine_order_info){.kind = r->kind, .serial = r->serial, .subject = r->subject};
        for (uint32_t k = 1; k < e->view.n; k++) {
            const struct member *m = &e->members[k];
            if (!m->used || !m->session || m->evicted)
                continue;
            out[i].members++;
            out[i].told += (m->notice.told & bit(i)) != 0;
            out[i].refused += (m->notice.refused & bit(i)) != 0;
        }
    }
    return n;
}
