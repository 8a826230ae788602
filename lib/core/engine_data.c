/* What comes of the rounds' traffic: fragments, and who has what. */
#include "engine_internal.h"

static void note_round(engine *e, struct set *s, struct member *m, uint32_t low, bool closed)
{
    struct member_set now = m->sets[s->handle];
    uint64_t round = round_expand(now.round > s->own_round ? now.round : s->own_round, low);
    m->sets[s->handle].round_as_of = now.round_as_of = s->own_round;
    if (round > now.round || (round == now.round && closed && !now.closed)) {
        now.round = round;
        now.closed = closed;
        view_learn(&e->view, m, (uint32_t)s->handle, &now);
    }
}

/* -1 when this life of the member is not in the round's group. */
int engine_rank_of(const struct round *r, const struct member *m)
{
    int rank = group_rank(&r->group, m->node_id);
    return rank >= 0 && r->group.members[rank].boot_id == m->boot_id ? rank : -1;
}

/* What the round makes of one fragment of a datagram. */
static enum fate recv_part(engine *e, struct member *m, struct set *s, struct round *r, int rank,
                           const struct wire_data *d, const struct part *part)
{
    struct env env = engine_env(e);
    bool scatter = d->phase == PHASE_SCATTER || d->phase == PHASE_SCATTER_REPAIR;
    bool edge = d->phase == PHASE_EDGE || d->phase == PHASE_EDGE_REPAIR, low = wire_is_low(d->phase);
    if (!low && r->number_of[part->fragment] == NOT_DUE)
        return FATE_CORRUPT;
    if (edge || low || r->edges) /* the other has another view, or does it otherwise */
        return (edge || low) && r->edges && rank >= 0 ? edge_recv(s, r, &env, (uint32_t)rank, d, part, e->now)
                                                      : FATE_FOREIGN;
    if (!scatter)
        return gather_recv(s, r, &env, m, rank, d, part);
    return rank >= 0 ? owner_recv(s, r, &env, (uint32_t)rank, d, part, e->now) : FATE_FOREIGN;
}

/* The parts of a datagram that has come, or was rebuilt. */
enum fate engine_take_data(engine *e, struct member *m, struct set *s, struct round *r, int rank,
                           const struct wire_data *d, const struct part *part)
{
    struct env env = engine_env(e);
    bool scatter = d->phase == PHASE_SCATTER || d->phase == PHASE_SCATTER_REPAIR;
    enum fate fate = FATE_FOREIGN, one;
    for (uint32_t i = 0; i < d->packed; i++) /* one that counts makes the datagram count */
        if ((one = recv_part(e, m, s, r, rank, d, &part[i])) == FATE_ACCEPTED || i == 0)
            fate = one;
    if (r->edges)
        owner_check(s, r, &env, e->now);
    if (scatter && rank >= 0 && !r->edges && (r->own.commits == 0 || (d->flags & DATA_LAST) || d->remaining == 0 ||
                    r->lane[rank].in_direct + r->lane[rank].in_repaired == r->lane[r->self].share))
        owner_check(s, r, &env, e->now);
    if (r == s->open && gather_complete(s, r, &env, e->now))
        set_close(s, r, &env, SLEET_OK, e->now);
    return fate;
}

/* What a member scatters, or has for a neighbour, is there all at once, so what comes of it is a train. */
static void note_capacity(struct member *m, const struct set *s, const struct wire_data *d, size_t len, sleet_time now)
{
    uint32_t bytes = (uint32_t)len + WIRE_HEADER_BYTES + WIRE_TAG_BYTES;
    if (d->phase == PHASE_SCATTER || d->phase == PHASE_EDGE)
        capacity_note(&m->capacity, d->round ^ s->layout.hash, d->time, bytes, d->flags & DATA_LAST, now);
    else
        capacity_beside(&m->capacity, bytes);
}

void data_recv(engine *e, struct member *m, const uint8_t *body, size_t len)
{
    struct wire_data d;
    struct part part[RUN_FRAGMENTS];
    struct env env = engine_env(e);
    int tensor;
    if (wire_data_decode(&d, body, len) != SLEET_OK) {
        e->counters.corrupt++;
        return;
    }
    bool low = wire_is_low(d.phase);
    struct set *s = low ? engine_set_by_hash(e, d.tensor) : engine_set_by_tensor(e, d.tensor, &tensor);
    if (!s) {
        e->counters.foreign++;
        return;
    }
    int error = low ? parts_decode_low(&d, part) : parts_decode(&s->layout, (uint32_t)tensor, &d, part);
    if (error) {
        e->counters.nonfinite += error == SLEET_ENONFINITE;
        e->counters.corrupt++;
        return;
    }
    note_round(e, s, m, d.sender_round, (d.flags & DATA_CLOSED) != 0);
    note_capacity(m, s, &d, len, e->now);
    bool scatter = d.phase == PHASE_SCATTER || d.phase == PHASE_SCATTER_REPAIR;
    struct round *r = set_round(s, &env, round_expand(set_job_round(s, &env), d.round), e->now);
    if (!r) {
        e->counters.stale++;
        return;
    }
    if ((d.phase == PHASE_GATHER || d.phase == PHASE_EDGE) && r->number_of[part[0].fragment] != NOT_DUE)
        set_join_served(s, r, &env, e->now);
    int rank = engine_rank_of(r, m);
    if (rank >= 0 && !r->edges)
        group_note(e, m, s, r, (uint32_t)rank, d.group);
    if (!scatter && rank >= 0)
        feedback_count(r, (uint32_t)rank);
    uint32_t group;
    bool rebuilds = d.rows && rank >= 0 && parity_note(r, (uint32_t)rank, &d, part[0].fragment, &group);
    enum fate fate = engine_take_data(e, m, s, r, rank, &d, part);
    if (rebuilds)
        parity_try(e, m, s, r, (uint32_t)rank, d.group, scatter ? PARITY_SCATTER : PARITY_GATHER, group);
    if (fate == FATE_UNKNOWN_GROUP) {
        group_ask(e, m, s, d.group);
        fate = FATE_FOREIGN;
    }
    e->counters.accepted += fate == FATE_ACCEPTED;
    e->counters.stale += fate == FATE_STALE;
    e->counters.foreign += fate == FATE_FOREIGN;
    e->counters.corrupt += fate == FATE_CORRUPT;
}

/* It would wait for this node's values, whose list is another one. */
static void tell_stranger(engine *e, struct member *m, const struct set *s, const struct round *r)
{
    struct env env = engine_env(e);
    uint8_t body[WIRE_SUMMARY_BYTES];
    size_t len = feedback_stranger(s, r, &env, m, body, sizeof body, e->now);
    outbox_put(e, &m->addr, (uint32_t)(m - e->members), m->peer_index, WIRE_SUMMARY, body, len);
}

void data_recv_summary(engine *e, struct member *m, const uint8_t *body, size_t len)
{
    struct wire_summary w;
    struct env env = engine_env(e);
    if (wire_summary_decode(&w, body, len) != SLEET_OK) {
        e->counters.corrupt++;
        return;
    }
    struct set *s = engine_set_by_hash(e, w.set);
    if (!s) {
        e->counters.foreign++;
        return;
    }
    member_echo(e, m, w.echo, w.hold);
    member_overflow(e, m, w.overflow);
    m->loss_told = (double)w.loss / UINT16_MAX;
    m->capacity_told = capacity_of_code(w.capacity, &m->capacity_least);
    note_round(e, s, m, w.sender_round, (w.flags & SUMMARY_CLOSED) != 0);
    struct round *r = set_round(s, &env, round_expand(set_job_round(s, &env), w.round), e->now);
    int rank = r ? engine_rank_of(r, m) : -1;
    if (rank < 0) {
        e->counters.stale++;
        if (r && r->edges && (r->joined || s->own_round >= r->number) && (w.flags & SUMMARY_ASKS))
            tell_stranger(e, m, s, r);
        view_answer(&e->view, m);
        return;
    }
    e->counters.accepted++;
    if (!r->edges)
        group_note(e, m, s, r, (uint32_t)rank, w.group);
    feedback_recv(s, r, &env, (uint32_t)rank, &w, e->now);
    if (r == s->open && gather_complete(s, r, &env, e->now))
        set_close(s, r, &env, SLEET_OK, e->now);
}
