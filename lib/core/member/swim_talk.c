/* What SWIM says and is told: news, probes for others, whole tables. */
#include "member/swim.h"

#define ROOM_BYTES (WIRE_BODY_MAX - WIRE_MEMBERS_HEAD)

/* ---- saying ------------------------------------------------------------------- */

static bool put(struct wire_members *f, const struct wire_update *u, size_t *bytes)
{
    size_t more = wire_update_bytes(u);
    if (f->n == WIRE_UPDATES_MAX || *bytes + more > ROOM_BYTES)
        return false;
    *bytes += more;
    f->updates[f->n++] = *u;
    return true;
}

/* News for a member, what it is accused of before all else. */
static void put_news(struct swim *s, uint32_t to, struct wire_members *f)
{
    uint32_t ids[WIRE_UPDATES_MAX], n = 0;
    const struct wire_update *its = &s->members[to].record;
    size_t bytes = 0;
    bool accused = its->status == STATUS_SUSPECT || its->status == STATUS_DEAD;
    if (accused && !(s->config.lifeguard_off && gossip_has(&s->news, to)))
        put(f, its, &bytes);
    for (uint32_t i = gossip_first(&s->news); i != GOSSIP_END; i = gossip_after(&s->news, i)) {
        if (i == to && (f->n || !accused))
            continue; /* it knows itself better */
        if (!put(f, &s->members[i].record, &bytes))
            break;
        ids[n++] = i;
    }
    for (uint32_t i = 0, limit = swim_sends(s); i < n; i++)
        gossip_sent(&s->news, ids[i], limit);
}

bool swim_piggyback(struct swim *s, uint32_t to, struct wire_members *f)
{
    f->kind = MEMBERS_UPDATES;
    f->flags = f->n = 0;
    f->sequence = f->digest = 0;
    f->subject = 0;
    put_news(s, to, f);
    return f->n > 0;
}

/* A part of the table: members after an id, ascending. */
static void put_table(struct swim *s, struct wire_members *f, uint64_t after)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        const struct wire_update *u = &s->members[s->by_id[i]].record;
        if (u->node_id <= after)
            continue;
        if (!put(f, u, &bytes)) {
            f->flags |= MEMBERS_MORE;
            return;
        }
    }
}

bool swim_send(struct swim *s, struct swim_out *out)
{
    struct wire_members *f = &out->frame;
    while (s->orders_n) {
        struct swim_order o = s->orders[s->orders_at];
        s->orders_at = (s->orders_at + 1) % SWIM_ORDERS;
        s->orders_n--;
        if (!s->members[o.to].record.node_id)
            continue;
        out->to = o.to;
        out->ping = o.kind == 0;
        if (out->ping)
            return true;
        f->kind = o.kind;
        f->flags = o.flags;
        f->n = 0;
        f->sequence = o.sequence;
        f->subject = o.kind == MEMBERS_TABLE ? 0 : o.subject;
        f->digest = o.kind == MEMBERS_TABLE_ASK ? s->digest : 0;
        if (o.kind == MEMBERS_TABLE && !(o.flags & MEMBERS_SAME))
            put_table(s, f, o.subject);
        else if (o.kind != MEMBERS_TABLE && o.kind != MEMBERS_TABLE_ASK)
            put_news(s, o.to, f);
        if (o.kind != MEMBERS_UPDATES || f->n)
            return true;
    }
    return false;
}

/* ---- being told ------------------------------------------------------------------ */

static void take_probe(struct swim *s, uint32_t from, const struct wire_members *f)
{
    uint32_t target = swim_find(s, f->subject);
    uint32_t at = 0;
    for (uint32_t i = 0; i < SWIM_RELAYS && s->relays[at].target; i++)
        if (!s->relays[i].target || time_before(s->relays[i].until, s->relays[at].until))
            at = i;
    struct swim_relay *r = &s->relays[at];
    s->relays_n += !r->target; /* else the oldest gives way */
    *r = (struct swim_relay){.target = f->subject,
                             .asker = s->members[from].record.node_id,
                             .sequence = f->sequence,
                             .until = s->now};
    if (target == SWIM_NONE || target == SWIM_SELF)
        return; /* refused when the timers are looked at */
    const struct swim_member *m = &s->members[target];
    if (s->mesh && !time_is_never(m->heard) && time_since(s->now, m->heard) < s->config.period) {
        swim_heard_of(s, m->record.node_id);
        return;
    }
    sleet_duration wait = m->patience;
    r->until = time_add(s->now, wait > s->config.timeout ? wait : s->config.timeout);
    swim_order(s, target, 0, 0, 0);
}

static void take_answer(struct swim *s, const struct wire_members *f)
{
    struct swim_probe *p = &s->probe;
    if (p->target == SWIM_NONE || f->sequence != p->sequence ||
        f->subject != s->members[p->target].record.node_id)
        return;
    if (f->flags & MEMBERS_HEARD)
        p->answered = true;
    else if (p->refusals < p->helpers)
        p->refusals++;
}

void swim_recv(struct swim *s, uint32_t from, const struct wire_members *f, sleet_time now)
{
    s->now = time_before(s->now, now) ? now : s->now;
    bool spread = f->kind != MEMBERS_TABLE || !s->sync.first;
    bool news = false;
    for (uint32_t i = 0; i < f->n; i++)
        news |= swim_accept(s, &f->updates[i], spread);
    switch (f->kind) {
    case MEMBERS_PROBE:
        take_probe(s, from, f);
        return;
    case MEMBERS_PROBE_ANSWER:
        take_answer(s, f);
        return;
    case MEMBERS_TABLE_ASK:
        swim_answer_table(s, from, f);
        return;
    case MEMBERS_TABLE:
        swim_take_table(s, from, f, news);
        return;
    default:
        return;
    }
}

/* ---- tables: a newcomer asks for one, the others compare theirs now and then --------- */

void swim_answer_table(struct swim *s, uint32_t from, const struct wire_members *f)
{
    if (s->orders_n == SWIM_ORDERS)
        return;
    swim_order(s, from, MEMBERS_TABLE, f->sequence, f->subject);
    if (f->subject == 0 && f->digest == s->digest)
        s->orders[(s->orders_at + s->orders_n - 1) % SWIM_ORDERS].flags = MEMBERS_SAME;
}

void swim_take_table(struct swim *s, uint32_t from, const struct wire_members *f, bool news)
{
    struct swim_sync *y = &s->sync;
    if (!y->walking || f->sequence != y->sequence || from != y->peer)
        return;
    if (!(f->flags & MEMBERS_MORE) || !f->n) {
        y->walking = y->first = false;
        y->after = 0;
        y->gap = f->flags & MEMBERS_SAME ? 2 * y->gap : 1; /* then compare with another one's */
        y->gap = y->gap < SWIM_SYNC_PERIODS ? y->gap : SWIM_SYNC_PERIODS;
        s->sync_at = time_add(s->now, y->gap * s->config.period);
        return;
    }
    y->after = f->updates[f->n - 1].node_id;
    s->sync_at = time_add(s->now, s->config.period / SWIM_TICKS);
    if (!news)
        return; /* in no hurry for the next part */
    swim_order(s, from, MEMBERS_TABLE_ASK, ++y->sequence, y->after);
    s->sync_at = time_add(s->now, s->config.period);
}

/* Ask for the next part; whoever is asked, the order of ids is the same. */
void swim_sync(struct swim *s)
{
    struct swim_sync *y = &s->sync;
    y->peer = swim_random(s, SWIM_NONE);
    if (y->peer == SWIM_NONE) {
        s->sync_at = y->first ? TIME_NEVER : s->sync_at;
        return;
    }
    if (y->walking || y->first)
        s->sync_at = time_add(s->now, s->config.period);
    y->walking = true;
    swim_order(s, y->peer, MEMBERS_TABLE_ASK, ++y->sequence, y->after);
}
