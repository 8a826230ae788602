/* What leaves next.  Control frames first, then summaries, then data: the oldest
 * round first across all phases (gather, repair, scatter), destinations in turn.
 * Data keeps to two paces, the node's and the destination's: who waits for its
 * own pace holds up nobody else. */
#include "engine_internal.h"
#include "session/gate.h"
#include <string.h>

#define ANNOUNCE_MORE 6     /* over 1.3 s: a late session hears of it too */
#define ANNOUNCE_GAP MS(20) /* then twice as long each time */
#define BODY_AT 16
#define BODY_MAX (ENGINE_DATAGRAM_MAX - 32)

void outbox_put(engine *e, const sleet_addr *to, uint32_t slot, uint32_t index, uint8_t type,
                const uint8_t *body, size_t len)
{
    if (e->outbox_n == OUTBOX_MAX || len == 0 || len > sizeof e->outbox[0].body)
        return; /* all of them are repeated by their timers */
    struct outbox_frame *f = &e->outbox[(e->outbox_head + e->outbox_n++) % OUTBOX_MAX];
    f->to = *to;
    f->slot = (uint16_t)slot;
    f->index = index;
    f->type = type;
    f->with = e->gate ? e->gate->with : 0;
    f->len = (uint16_t)len;
    memcpy(f->body, body, len);
}

void outbox_drop(engine *e, uint32_t slot)
{
    for (uint32_t i = 0; i < e->outbox_n; i++) {
        struct outbox_frame *f = &e->outbox[(e->outbox_head + i) % OUTBOX_MAX];
        f->len = f->slot == slot ? 0 : f->len;
    }
}

static void seal_into(engine *e, engine_burst *b, struct member *m, uint32_t index, uint8_t type,
                      size_t body)
{
    struct wire_header h = {.version = 1, .type = type, .index = index};
    h.counter = m ? ++m->tx_counter : ++e->stray;
    size_t len = e->gate ? sealed_seal(e, m, b->data + b->len, body, &h)
                         : datagram_seal(b->data + b->len, body, &h);
    if (!len)
        return; /* its keys are gone */
    if (b->count++ == 0)
        b->segment = (uint32_t)len;
    b->len += (uint32_t)len;
    e->counters.out++;
    e->counters.out_bytes += len;
    if (m)
        m->tx_sent++;
}

static size_t fill_control(engine *e, engine_burst *b)
{
    while (e->outbox_n && !b->count) {
        struct outbox_frame *f = &e->outbox[e->outbox_head];
        e->outbox_head = (e->outbox_head + 1) % OUTBOX_MAX;
        e->outbox_n--;
        if (!f->len)
            continue; /* its member is gone */
        b->to = f->to;
        memcpy(b->data + BODY_AT, f->body, f->len);
        if (e->gate)
            e->gate->with = f->with;
        seal_into(e, b, f->slot ? &e->members[f->slot] : NULL, f->index, f->type, f->len);
    }
    return b->count;
}

static size_t fill_backup(engine *e, engine_burst *b, struct set *s, struct round *r, const struct env *env)
{
    uint32_t to;
    size_t n = backup_fill(s, r, env, &to, b->data + BODY_AT, BODY_MAX, e->now);
    if (!n)
        return 0;
    struct member *m = &e->members[r->group.members[to].slot];
    b->to = m->addr;
    seal_into(e, b, m, m->peer_index, WIRE_SUMMARY, n);
    return b->count;
}

static size_t fill_summary(engine *e, engine_burst *b, const struct env *env)
{
    for (uint32_t k = 0; k < ENGINE_SETS_MAX; k++) {
        struct set *s = &e->sets[k];
        for (uint32_t i = 0; s->used && i < ROUNDS_RING; i++) {
            struct round *r = s->ring[i];
            if (r && round_untouched(r, env) && time_before(e->now, r->quiet_until))
                continue;
            for (uint32_t rank = 0; r && rank < r->group.n; rank++) {
                struct member *m = &e->members[r->group.members[rank].slot];
                if ((int)rank == r->self || !m->session || !m->alive)
                    continue;
                size_t n = feedback_fill(s, r, env, rank, b->data + BODY_AT, BODY_MAX, e->now);
                if (!n)
                    continue;
                b->to = m->addr;
                seal_into(e, b, m, m->peer_index, WIRE_SUMMARY, n);
                if (b->count)
                    return 1;
            }
            if (r && fill_backup(e, b, s, r, env))
                return 1;
        }
    }
    return 0;
}

/* When data for `rank` may leave; never when there is none, or nobody to take it. */
static sleet_time data_at(const engine *e, const struct round *r, uint32_t rank)
{
    const struct member *m = &e->members[r->group.members[rank].slot];
    if ((int)rank == r->self || !m->alive || flow_stopped(&m->flow) || !round_has_data(r, rank))
        return TIME_NEVER;
    sleet_time node = pacer_next(&e->pacer), peer = pacer_next(&m->flow.pacer);
    return time_before(node, peer) ? peer : node;
}

/* The oldest round with something that may leave now.  Where there is none,
 * *next is when there will be. */
static struct round *oldest(engine *e, const struct env *env, struct set **set, sleet_time *next)
{
    struct round *best = NULL;
    *next = TIME_NEVER;
    for (uint32_t k = 0; k < ENGINE_SETS_MAX; k++) {
        struct set *s = &e->sets[k];
        for (uint32_t i = 0; s->used && i < ROUNDS_RING; i++) {
            struct round *r = s->ring[i];
            sleet_time at = TIME_NEVER;
            if (r && round_untouched(r, env) && r->idle)
                continue;
            for (uint32_t rank = 0; r && rank < r->group.n && time_before(e->now, at); rank++)
                at = time_min(at, data_at(e, r, rank));
            *next = time_min(*next, at);
            if (!time_before(e->now, at) && (!best || r->number < best->number)) {
                best = r;
                *set = s;
            }
        }
    }
    return best;
}

/* The member has been sent what it is the backup of, and others have not: the rest waits for them. */
static bool others_first(struct round *r, uint32_t rank)
{
    for (uint32_t i = 0; !round_goes_ahead(r, rank) && i < r->group.n; i++)
        if (i != rank && round_goes_ahead(r, i))
            return true;
    return false;
}

static bool fill_burst(engine *e, engine_burst *b, struct set *s, struct round *r, uint32_t rank,
                       const struct env *env)
{
    struct member *m = &e->members[r->group.members[rank].slot];
    uint32_t room = pacer_ready(&m->flow.pacer, e->now) ? pacer_room(&m->flow.pacer) : 0;
    if (room > pacer_room(&e->pacer))
        room = pacer_room(&e->pacer);
    b->to = m->addr;
    r->quiet_until = (sleet_time){0};
    bool ahead = round_goes_ahead(r, rank);
    while (b->count < ENGINE_BURST_MAX && !(ahead && others_first(r, rank)) &&
           b->len + ENGINE_DATAGRAM_MAX <= room + ENGINE_DATAGRAM_MAX / 2) {
        size_t n =
            round_fill(s, r, env, rank, b->data + b->len + BODY_AT, m->tx_counter + 1, e->now);
        if (!n)
            break;
        seal_into(e, b, m, m->peer_index, WIRE_DATA, n);
        if (b->len < b->count * ENGINE_DATAGRAM_MAX)
            break; /* a short one ends the burst: all before it are of one size */
    }
    return b->count > 0;
}

/* The member, of those that data of the round may go to now, whose turn it is: commits go to their backups first. */
static uint32_t next_rank(engine *e, struct round *r)
{
    uint32_t first = r->group.n, n = r->group.n;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t rank = (e->turn + i + (uint32_t)r->self + 1) % n;
        if (time_before(e->now, data_at(e, r, rank)))
            continue;
        first = first < n ? first : i;
        if (!round_goes_ahead(r, rank))
            continue;
        first = i;
        break;
    }
    uint32_t rank = (e->turn + first + (uint32_t)r->self + 1) % n;
    e->turn += first + 1;
    return rank;
}

static size_t fill_data(engine *e, engine_burst *b, const struct env *env)
{
    struct set *s = NULL;
    struct round *r;
    sleet_time next;
    if (!pacer_ready(&e->pacer, e->now))
        return 0;
    while ((r = oldest(e, env, &s, &next))) {
        uint32_t rank = next_rank(e, r);
        if (!fill_burst(e, b, s, r, rank, env))
            continue; /* nothing to show for it (non-finite values); look again */
        struct member *m = &e->members[r->group.members[rank].slot];
        pacer_spend(&e->pacer, b->len);
        flow_sent(&m->flow, &m->rtt, b->count, b->len, e->now);
        member_timer(e, m); /* an answer is owed */
        return b->count;
    }
    return 0;
}

/* State to whoever waits for it, in the gaps that the rounds' data leave. */
static size_t fill_state(engine *e, engine_burst *b)
{
    sleet_time at;
    uint32_t slot;
    while ((slot = state_turn(e, &at)) && !time_before(e->now, at)) {
        struct member *m = &e->members[slot];
        b->to = m->addr;
        while (b->count < ENGINE_BURST_MAX) {
            size_t n = state_fill(e, slot, b->data + b->len + BODY_AT, BODY_MAX);
            if (!n)
                break;
            seal_into(e, b, m, m->peer_index, WIRE_STATE, n);
            if (n < WIRE_STATE_DATA_BYTES + WIRE_PAYLOAD_MAX)
                break; /* a short one ends the burst */
        }
        if (!b->count)
            continue;
        pacer_spend(&e->pacer, b->len);
        pacer_spend(&e->transfer.share, b->len);
        flow_sent(&m->flow, &m->rtt, b->count, b->len, e->now);
        member_timer(e, m);
        return b->count;
    }
    return 0;
}

static const struct group *newest_group(const struct set *s)
{
    const struct round *r = s->ring[s->own_round % ROUNDS_RING];
    return r && r->number == s->own_round ? &r->group : NULL;
}

/* A change of what others must know goes out at once, not with the next ping.  That a round
 * has closed matters to its group; a few others do not matter, so all are told where all
 * would fit into one. */
static void announce_changes(engine *e)
{
    const struct env env = engine_env(e);
    for (uint32_t i = 0; i < ENGINE_SETS_MAX; i++) {
        struct set *s = &e->sets[i];
        uint8_t state = (uint8_t)(s->attached | s->established << 1 | set_parked(s, &env) << 2);
        if (!s->used ||
            (s->announced == state && (!s->announce_more || time_before(e->now, s->announce_at))))
            continue;
        bool news = (s->announced & ~SET_UNTOLD) != state;
        s->announce_all = news || e->view.count <= SLEET_GROUP_MAX || (s->announce_all && s->announce_more);
        uint8_t more = e->view.count <= SLEET_GROUP_MAX ? ANNOUNCE_MORE : ANNOUNCE_MORE / 2;
        s->announce_more = s->announced == state ? s->announce_more - 1 : more;
        s->announce_at = time_add(e->now, ANNOUNCE_GAP << (more - s->announce_more));
        s->announced = state;
        member_announce(e, s->announce_all ? NULL : newest_group(s));
    }
}

size_t engine_send(engine *e, engine_burst *b, sleet_time now)
{
    struct env env = engine_env(e);
    b->count = b->len = b->segment = 0;
    if (!time_before(now, e->now))
        e->now = now;
    if (e->left && !e->outbox_n)
        return 0;
    if (e->leaving)
        session_farewell(e);
    announce_changes(e);
    state_queue(e);
    size_t n = fill_control(e, b);
    if (!n && !e->left)
        n = fill_summary(e, b, &env);
    if (!n && !e->left)
        n = fill_data(e, b, &env);
    if (!n && !e->left)
        n = fill_state(e, b);
    if (!n && !e->left)
        engine_settle(e); /* the last commit may have left */
    if (e->leaving && !e->outbox_n)
        e->left = true;
    return n;
}

sleet_time engine_deadline(const engine *e)
{
    struct env env = engine_env(e);
    struct set *s;
    sleet_time next, t = e->left ? TIME_NEVER : time_min(member_deadline(e), notice_deadline(e));
    if (e->outbox_n)
        t = e->now;
    for (uint32_t k = 0; !e->left && k < ENGINE_SETS_MAX; k++) {
        if (e->sets[k].used)
            t = time_min(t, set_deadline(&e->sets[k], &env, e->now));
        if (e->sets[k].used && e->sets[k].announce_more)
            t = time_min(t, e->sets[k].announce_at);
    }
    if (!e->left) {
        oldest((engine *)(uintptr_t)e, &env, &s, &next);
        t = time_min(t, next);
        t = time_min(t, state_deadline(e));
    }
    if (time_before(t, e->now))
        t = e->now;
    ((engine *)(uintptr_t)e)->promised = t;
    return t;
}
