/* The owner's half: contributions in, commits out.  A commit waits for the
 * members whose trainer took part lately, at most for the scatter budget, and
 * less when the senders' counts say that nothing more can come. */
#include "base/rng.h"
#include "codec/codec.h"
#include "round/round.h"
#include "round/sums.h"
#include "tensor/reduce.h"
#include <stdlib.h>
#include <string.h>

#define BIT(rank) ((uint64_t)1 << (rank))

static bool is_committed(const struct round *r, uint32_t number)
{
    return r->own.wsum[number] < 0; /* the sign marks the commit; weights are positive */
}

static bool takes(const struct round *r)
{
    return r->joined && !r->closing && !r->closed;
}

/* Take over at most `limit` commits into the node's own result. */
static void take_own(struct set *s, struct round *r, const struct env *e, uint32_t limit)
{
    struct owner_side *o = &r->own;
    for (; takes(r) && o->taken < o->commits && limit; limit--)
        gather_own(s, r, e, o->order[o->taken++]);
}

const uint8_t *owner_coded(const struct set *s, const struct round *r, uint32_t number, uint32_t *bytes)
{
    *bytes = r->own.coded[number];
    return r->own.commit + (size_t)number * s->layout.coded;
}

/* Keep a mean as everybody will have it: encoded.  `x` becomes what that stands for. */
static void encode(const struct set *s, struct round *r, uint32_t number, float *x, uint32_t n)
{
    uint32_t tensor, elements, fragment = owner_fragment(r, number);
    uint64_t offset;
    layout_locate(&s->layout, fragment, &tensor, &offset, &elements);
    const struct codec *c = codec_by_id((uint8_t)s->layout.tensors[tensor].codec);
    uint32_t keep = links_kept(r->keep) * (uint32_t)__builtin_popcountll(r->own.mask[number]);
    const struct codec_args args = {
        .seed = mix64(r->number ^ mix64(fragment ^ r->group.members[r->self].node_id)),
        .keep = r->joined ? keep : 0}; /* the node's own values are not thinned out before they are added */
    uint8_t *bytes = r->own.commit + (size_t)number * s->layout.coded;
    r->own.coded[number] = (uint16_t)c->encode(bytes, x, n, &args);
    c->decode(x, bytes, r->own.coded[number], n);
}

static uint32_t elements_of(const struct set *s, const struct round *r, uint32_t number)
{
    uint32_t tensor, n;
    uint64_t offset;
    layout_locate(&s->layout, owner_fragment(r, number), &tensor, &offset, &n);
    return n;
}

static void commit(struct set *s, struct round *r, const struct env *e, uint32_t number)
{
    struct owner_side *o = &r->own;
    if (is_committed(r, number))
        return;
    uint32_t share = r->lane[r->self].share;
    if (number < share)
        sums_add_own(s, r, e, number);
    if (!o->commit) /* pages that are not written cost nothing */
        o->commit = malloc((size_t)owner_numbers(r) * s->layout.coded + 1);
    if (!o->coded)
        o->coded = calloc((size_t)owner_numbers(r) + 1, sizeof *o->coded);
    if (!o->mask[number] || !o->commit || !o->coded)
        return;
    float x[FRAGMENT_ELEMENTS], mean[FRAGMENT_ELEMENTS];
    uint32_t fragment = owner_fragment(r, number), n = elements_of(s, r, number);
    clip_settle(s, r, e, number);
    double by = sums_divisor(s, r, e, number);
    reduce_mean(x, o->acc[number], by, n);
    memcpy(mean, x, n * sizeof *x);
    encode(s, r, number, x, n);
    if (share > number)
        carry_coded(s, r, fragment, mean, x, n, by);
    free(o->acc[number]);
    o->acc[number] = NULL;
    o->wsum[number] = -by;
    o->order[o->commits++] = number;
    o->foreign_commits += number >= share;
    if (!r->joined)
        clip_committed(s, e, fragment, x, n);
    if (share > number)
        witness_note(r, e, (uint32_t)r->self, fragment, (float)-o->wsum[number], o->mask[number],
                     o->commit + (size_t)number * s->layout.coded, o->coded[number]);
    take_own(s, r, e, 1);
    if (r->closed)
        late_own(s, r);
}

/* All commits went to the member and there is something to tell: it must not wait for more. */
bool gather_sent(const struct round *r, const struct env *e, uint32_t rank)
{
    return r->own.final && r->lane[rank].gather_pos >= r->own.commits &&
           !parity_due(r, rank, PARITY_GATHER) &&
           (r->own.commits < r->lane[r->self].share || r->mixed || e->config->repair_off || e->config->repair_late);
}

bool owner_busy(const struct round *r)
{
    const struct owner_side *o = &r->own;
    return (o->finishing && !o->final) || (takes(r) && o->taken < o->commits);
}

/* What is left is committed, and sent, from another place of the share in each round: where a round ends
 * before all of it has left, the next ones bring the rest (collect.c).  The steps are of the golden
 * section, so that few rounds cover all. */
static uint32_t swept(const struct round *r, uint32_t i)
{
    uint64_t share = r->lane[r->self].share;
    uint64_t turn = r->number * UINT64_C(0x9e3779b97f4a7c15) >> 32;
    return i < share ? (uint32_t)((i + (turn * share >> 32)) % share) : i;
}

/* Commit what is left of the share, a slice a call. */
static void finish(struct set *s, struct round *r, const struct env *e)
{
    struct owner_side *o = &r->own;
    uint32_t numbers = r->lane[r->self].share + o->foreign_n;
    if (o->final)
        return;
    o->finishing = true;
    for (uint32_t i = 0; i < SLICE_FRAGMENTS && o->sweep < numbers; i++)
        commit(s, r, e, swept(r, o->sweep++));
    if (o->sweep < numbers)
        return;
    o->final = true;
    for (uint32_t i = 0; i < numbers; i++) {
        free(o->acc[i]);
        o->acc[i] = NULL;
    }
    clip_drop_suspects(o, owner_numbers(r));
    parity_stop(r, PARITY_SCATTER);
    for (uint32_t i = 0; i < r->group.n; i++)
        r->lane[i].summary_due |= (int)i != r->self && (gather_sent(r, e, i) || !round_gathers(r)); /* they say their end until then */
}

/* By the pinned group, or by what is known by now: it is no joiner any more. */
static bool contributes(const struct set *s, const struct round *r, const struct env *e,
                        uint32_t rank)
{
    const struct group_member *g = &r->group.members[rank];
    const struct member_set *ms = &e->members[g->slot].sets[s->handle];
    return g->contributes || (s->established && ms->established && ms->lineage == s->lineage);
}

enum fate owner_recv(struct set *s, struct round *r, const struct env *e, uint32_t rank,
                     const struct wire_data *d, const struct part *part, sleet_time now)
{
    struct lane *lane = &r->lane[rank];
    struct owner_side *o = &r->own;
    uint32_t share = r->lane[r->self].share, fragment = part->fragment, n = part->n, number;
    const float *x = part->x;
    bool agrees = d->group == r->group.hash;
    bool mine = r->owner_of_run[fragment / RUN_FRAGMENTS] == r->self;
    if (!round_scatters(r) || (agrees && !mine) || !contributes(s, r, e, rank) || !sums_number(s, r, fragment, &number))
        return FATE_FOREIGN;
    if (agrees && d->remaining < share && share - d->remaining > lane->sent_told)
        lane->sent_told = share - d->remaining;
    if (d->flags & DATA_LAST)
        o->over |= BIT(rank);
    if (d->flags & DATA_EXACT)
        r->exact = true;
    if (o->mask[number] & BIT(rank))
        return FATE_ACCEPTED;
    if (o->final || is_committed(r, number)) {
        lane->in_late += mine && lane->in_direct + lane->in_repaired + lane->in_late < share;
        return FATE_STALE;
    }
    if (!sums_of(r, number))
        return FATE_STALE;
    if (late_tells_weight(s, fragment))
        e->members[r->group.members[rank].slot].sets[s->handle].gave = d->weight;
    if (!clip_suspects(s, r, e, number, rank, x, n, d->weight))
        owner_add(s, r, e, number, rank, x, d->weight, n);
    o->mask[number] |= BIT(rank);
    if (mine && d->phase == PHASE_SCATTER)
        lane->in_direct++;
    else if (mine)
        lane->in_repaired++;
    if (time_is_never(o->first_seen))
        o->first_seen = now;
    bool own_in = !(o->need & BIT(r->self)) || r->prepared;
    if (mine && o->need && own_in && ((o->mask[number] | BIT(r->self)) & o->need) == o->need)
        commit(s, r, e, number);
    return FATE_ACCEPTED;
}

/* False when the member's own group leaves this node out: it sends nothing. */
static bool counts_on_us(const struct set *s, const struct round *r, uint32_t rank)
{
    const struct group *g =
        round_disagrees(r, rank) ? set_known_group(s, r, r->lane[rank].group) : NULL;
    return !g || group_rank(g, r->group.members[r->self].node_id) >= 0;
}

/* Ranks worth waiting for: their trainer took part in the last K rounds. */
static uint64_t needed(const struct set *s, const struct round *r, const struct env *e)
{
    uint64_t need = 0;
    if (!round_scatters(r))
        return BIT(r->self); /* it hands out its own values */
    for (uint32_t i = 0; i < r->group.n; i++) {
        const struct group_member *g = &r->group.members[i];
        if (!g->contributes)
            continue;
        if ((int)i == r->self) {
            if (s->attached && (s->own_round + e->config->absent_rounds >= r->number ||
                                quorum_calls(s, r, &e->members[g->slot].sets[s->handle], s->own_round)))
                need |= BIT(i);
            continue;
        }
        const struct member *m = &e->members[g->slot];
        if (m->alive && m->boot_id == g->boot_id && counts_on_us(s, r, i) &&
            m->sets[s->handle].attached && !m->sets[s->handle].parked &&
            (set_takes_part_lately(s, e, m, r->number) ||
             quorum_calls(s, r, &m->sets[s->handle], m->sets[s->handle].round)))
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

sleet_time owner_deadline(const struct set *s, const struct round *r)
{
    const struct owner_side *o = &r->own;
    if (r->edges)
        return edge_deadline(s, r);
    if (owner_busy(r))
        return (sleet_time){0};
    if (o->final || time_is_never(o->first_seen))
        return TIME_NEVER;
    return time_min(time_min(o->grace_at, o->turn_at), time_is_never(o->until)
                                                           ? time_add(o->first_seen, wait_budget(s, r))
                                                           : o->until);
}

void owner_check(struct set *s, struct round *r, const struct env *e, sleet_time now)
{
    struct owner_side *o = &r->own;
    if (r->edges) {
        wait_learn(s, r, e, now);
        edge_check(s, r, e, now);
        return;
    }
    take_own(s, r, e, SLICE_FRAGMENTS);
    wait_learn(s, r, e, now);
    if (o->finishing)
        finish(s, r, e);
    if (o->finishing || o->final || (r->joined && !r->prepared))
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
        if (round_scatters(r) && !quorum_is_synchronous(s, r))
            budget_add(&s->budget, waited, false);
        finish(s, r, e);
        return;
    }
    bool enough = quorum_is_in(s, r, over, now);
    if (enough && time_is_never(o->grace_at))
        o->grace_at = time_add(now, grace(r, e));
    if (!time_before(now, o->grace_at)) {
        if (!quorum_is_synchronous(s, r))
            budget_add(&s->budget, waited, false);
        finish(s, r, e);
        return;
    }
    if (!wait_is_over(s, r, e, o->need & ~over, now))
        return;
    bool slept = !time_is_never(o->until) && time_since(now, o->until) > wait_budget(s, r) + MS(500);
    wait_note_cut(s, r, e, o->need & ~over);
    quorum_give_up(s, r, e, o->need & ~over);
    budget_add(&s->budget, 0, true);
    if (slept) {
        o->final = o->discarded = true;
        for (uint32_t i = 0; i < r->group.n; i++)
            r->lane[i].summary_due = (int)i != r->self;
        return;
    }
    finish(s, r, e);
}

void owner_wind_up(struct set *s, struct round *r, const struct env *e, uint32_t fragment)
{
    uint32_t number = r->number_of[fragment];
    if (r->owner_of_run[fragment / RUN_FRAGMENTS] != r->self)
        return;
    if (!round_gathers(r)) /* nobody else will see it: what is there by the deadline counts */
        commit(s, r, e, number);
    if (is_committed(r, number))
        gather_own(s, r, e, number);
    else if (!r->own.final)
        sums_add_own(s, r, e, number);
}

void owner_drop_commits(struct round *r)
{
    free(r->own.commit);
    free(r->own.coded);
    r->own.commit = NULL;
    r->own.coded = NULL;
    for (uint32_t i = 0; i < r->group.n; i++) {
        r->lane[i].gather_pos = r->own.commits;
        r->lane[i].repairs = 0;
    }
}
