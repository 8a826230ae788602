/* The owner's half: contributions in, commits out.  A commit waits for the
 * members whose trainer took part lately, at most for the scatter budget, and
 * less when the senders' counts say that nothing more can come. */
#include "round/round.h"
#include "codec/codec.h"
#include "tensor/reduce.h"
#include <stdlib.h>
#include <string.h>

#define BIT(rank) ((uint64_t)1 << (rank))

static bool owner_alloc(struct round *r)
{
    size_t n = (size_t)r->lane[r->self].share * FRAGMENT_ELEMENTS;
    if (!r->own.acc)
        r->own.acc = calloc(n + 1, sizeof(double));
    if (!r->own.commit)
        r->own.commit = malloc((n + 1) * sizeof(float));
    return r->own.acc && r->own.commit;
}

static uint32_t fragment_of(const struct round *r, uint32_t number)
{
    return r->frag[r->lane[r->self].start + number];
}

/* Add the node's own values to a fragment it owns. */
static void add_own(struct set *s, struct round *r, const struct env *e, uint32_t number)
{
    uint32_t tensor, n;
    uint64_t offset;
    if (!r->joined || r->closed || !r->contributes || (r->own.mask[number] & BIT(r->self)))
        return;
    layout_locate(&s->layout, fragment_of(r, number), &tensor, &offset, &n);
    const float *x = (const float *)r->send[tensor] + offset;
    if (!reduce_finite(x, n)) {
        e->counters->nonfinite++;
        return;
    }
    reduce_add(r->own.acc + (size_t)number * FRAGMENT_ELEMENTS, x, r->weight, n);
    r->own.wsum[number] += r->weight;
    r->own.mask[number] |= BIT(r->self);
}

static bool is_committed(const struct round *r, uint32_t number)
{
    return r->own.wsum[number] < 0; /* the sign marks the commit; weights are positive */
}

static void commit(struct set *s, struct round *r, const struct env *e, uint32_t number)
{
    if (is_committed(r, number))
        return;
    add_own(s, r, e, number);
    if (!r->own.mask[number])
        return;
    reduce_mean(r->own.commit + (size_t)number * FRAGMENT_ELEMENTS,
                r->own.acc + (size_t)number * FRAGMENT_ELEMENTS, r->own.wsum[number],
                FRAGMENT_ELEMENTS);
    r->own.wsum[number] = -r->own.wsum[number];
    r->own.order[r->own.commits++] = number;
    gather_own(s, r, number);
}

/* All commits went to the member and there is something to tell: it must not wait for more. */
bool gather_sent(const struct round *r, const struct env *e, uint32_t rank)
{
    return r->own.final && r->lane[rank].gather_pos >= r->own.commits &&
           (r->own.commits < r->lane[r->self].share || e->config->repair_off);
}

static void finish(struct set *s, struct round *r, const struct env *e)
{
    struct owner_side *o = &r->own;
    if (o->final)
        return;
    if (owner_alloc(r))
        for (uint32_t i = 0; i < r->lane[r->self].share; i++)
            commit(s, r, e, i);
    o->final = true;
    free(o->acc);
    o->acc = NULL;
    for (uint32_t i = 0; i < r->group.n; i++)
        r->lane[i].summary_due |= (int)i != r->self && gather_sent(r, e, i);
}

enum fate owner_recv(struct set *s, struct round *r, const struct env *e, uint32_t rank,
                     const struct wire_data *d, uint32_t fragment, sleet_time now)
{
    struct lane *lane = &r->lane[rank];
    struct owner_side *o = &r->own;
    if (r->owner_of_run[fragment / RUN_FRAGMENTS] != r->self || !r->group.members[rank].contributes)
        return FATE_FOREIGN;
    if (lane->sent_told + d->remaining < r->lane[r->self].share &&
        r->lane[r->self].share - d->remaining > lane->sent_told)
        lane->sent_told = r->lane[r->self].share - d->remaining;
    if (d->flags & DATA_LAST)
        o->over |= BIT(rank);
    if (d->flags & DATA_EXACT)
        r->exact = true;
    uint32_t number = r->number_of[fragment];
    if (o->mask[number] & BIT(rank))
        return FATE_ACCEPTED;
    if (o->final || is_committed(r, number)) {
        lane->in_late += lane->in_direct + lane->in_repaired + lane->in_late < r->lane[r->self].share;
        return FATE_STALE;
    }
    if (!owner_alloc(r))
        return FATE_STALE;
    float x[FRAGMENT_ELEMENTS];
    uint32_t n = d->payload_len / 4;
    const struct codec *c = codec_by_id(d->codec);
    if (!c || !c->decode(x, d->payload, n)) {
        e->counters->nonfinite++;
        return FATE_CORRUPT;
    }
    reduce_add(o->acc + (size_t)number * FRAGMENT_ELEMENTS, x, d->weight, n);
    o->wsum[number] += d->weight;
    o->mask[number] |= BIT(rank);
    if (d->phase == PHASE_SCATTER)
        lane->in_direct++;
    else
        lane->in_repaired++;
    if (time_is_never(o->first_seen))
        o->first_seen = now;
    bool own_in = !(o->need & BIT(r->self)) || r->joined;
    if (o->need && own_in && ((o->mask[number] | BIT(r->self)) & o->need) == o->need)
        commit(s, r, e, number);
    return FATE_ACCEPTED;
}

/* Ranks worth waiting for: their trainer took part in the last K rounds. */
static uint64_t needed(const struct set *s, const struct round *r, const struct env *e)
{
    uint64_t need = 0;
    for (uint32_t i = 0; i < r->group.n; i++) {
        const struct group_member *g = &r->group.members[i];
        if (!g->contributes)
            continue;
        if ((int)i == r->self) {
            if (s->attached && s->own_round + e->config->absent_rounds >= r->number)
                need |= BIT(i);
            continue;
        }
        const struct member *m = &e->members[g->slot];
        if (m->alive && m->boot_id == g->boot_id && !r->lane[i].disagrees &&
            m->sets[s->handle].attached &&
            m->sets[s->handle].round + e->config->absent_rounds >= r->number)
            need |= BIT(i);
    }
    return need;
}

/* The member's part in the round is over there: nothing can be sent again. */
static bool spent(const struct set *s, const struct round *r, const struct env *e, uint32_t rank)
{
    const struct member_set *ms = &e->members[r->group.members[rank].slot].sets[s->handle];
    return (int)rank != r->self && member_open_round(ms) > r->number;
}

static uint32_t quorum_of(const struct round *r, uint64_t need)
{
    uint32_t n = (uint32_t)__builtin_popcountll(need);
    if (r->quorum == SLEET_QUORUM_MAJORITY)
        return r->group.n / 2 + 1;
    return r->quorum == SLEET_QUORUM_ALL || r->quorum > n ? n : r->quorum;
}

static sleet_duration grace(const struct round *r, const struct env *e)
{
    sleet_duration g = MS(1);
    for (uint32_t i = 0; i < r->group.n; i++) {
        const struct member *m = &e->members[r->group.members[i].slot];
        if ((int)i == r->self)
            continue;
        sleet_duration w = reorder_grace(&m->reorder, &m->rtt);
        if (w > g)
            g = w;
    }
    return g;
}

static sleet_duration budget_of(const struct set *s, const struct round *r)
{
    return r->exact ? s->budget.max : budget_now(&s->budget);
}

sleet_time owner_deadline(const struct set *s, const struct round *r)
{
    const struct owner_side *o = &r->own;
    if (o->final || time_is_never(o->first_seen))
        return TIME_NEVER;
    return time_min(o->grace_at, time_add(o->first_seen, budget_of(s, r)));
}

void owner_check(struct set *s, struct round *r, const struct env *e, sleet_time now)
{
    struct owner_side *o = &r->own;
    if (o->final)
        return;
    o->need = needed(s, r, e);
    uint64_t full = r->joined ? BIT(r->self) : 0, over = full;
    for (uint32_t i = 0; i < r->group.n; i++) {
        const struct lane *l = &r->lane[i];
        if (l->in_direct + l->in_repaired + l->in_late >= r->lane[r->self].share)
            full |= BIT(i);
        if (o->over & BIT(i))
            over |= BIT(i);
        if (r->group.members[i].contributes && spent(s, r, e, i))
            over |= BIT(i);
        else if (r->exact)
            over &= ~BIT(i); /* its holes can still be repaired */
    }
    over |= full;
    if (!r->joined && time_is_never(o->first_seen))
        return; /* nothing here yet */
    if (time_is_never(o->first_seen))
        o->first_seen = now;
    sleet_duration waited = time_since(now, o->first_seen);
    if ((full & o->need) == o->need) {
        budget_add(&s->budget, waited, false);
        finish(s, r, e);
        return;
    }
    bool enough = (uint32_t)__builtin_popcountll(over & o->need) >= quorum_of(r, o->need);
    if (enough && time_is_never(o->grace_at))
        o->grace_at = time_add(now, grace(r, e));
    if (!time_before(now, o->grace_at)) {
        budget_add(&s->budget, waited, false);
        finish(s, r, e);
        return;
    }
    sleet_duration budget = budget_of(s, r);
    if (waited < budget)
        return;
    budget_add(&s->budget, budget, true);
    if (waited > 2 * budget + MS(500)) { /* this process slept through it */
        o->final = o->discarded = true;
        for (uint32_t i = 0; i < r->group.n; i++)
            r->lane[i].summary_due = (int)i != r->self;
        return;
    }
    finish(s, r, e);
}

/* The trainer's deadline came first: take its values while they may be read. */
void owner_absorb(struct set *s, struct round *r, const struct env *e)
{
    if (r->own.final || !r->contributes || !owner_alloc(r))
        return;
    for (uint32_t i = 0; i < r->lane[r->self].share; i++)
        if (!is_committed(r, i))
            add_own(s, r, e, i);
}
