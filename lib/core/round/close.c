/* The end of a round for the trainer: the result is made whole and reported. */
#include "base/bitmap.h"
#include "round/round.h"
#include <string.h>

void set_report(struct set *s, int error, const sleet_report *p)
{
    s->report = *p;
    s->event_error = error;
    s->event = true;
    if (error)
        return;
    s->low_in_a_row = p->flags & SLEET_LOW_COVERAGE ? s->low_in_a_row + 1 : 0;
    s->report.low_in_a_row = s->low_in_a_row;
    s->reports++;
    s->coverage_sum += p->coverage;
    if (p->elapsed_ns > s->longest)
        s->longest = p->elapsed_ns;
    engine_residual residual;
    carry_tell(s, &residual);
    s->history[s->history_n++ % SET_HISTORY] = (engine_round){.round = p->round,
                                                              .joined = p->round != 0,
                                                              .group_size = p->group_size,
                                                              .flags = p->flags,
                                                              .coverage = p->coverage,
                                                              .elapsed = p->elapsed_ns,
                                                              .residual = residual.norm};
}

void set_fill_fragment(const struct set *s, uint32_t fragment, bool alone, const void *const *send,
                       void *const *result)
{
    uint32_t tensor, n;
    uint64_t offset;
    layout_locate(&s->layout, fragment, &tensor, &offset, &n);
    float *out = (float *)result[tensor] + offset;
    if (layout_additive(&s->layout, tensor) && !alone)
        memset(out, 0, n * sizeof *out);
    else
        memcpy(out, (const float *)send[tensor] + offset, n * sizeof *out);
}

/* An update that is not linear needs all of a gradient at once.  Without all commits of everybody, those of
 * a mixed round included, the others may step where this node cannot. */
static bool misses_step(const struct set *s, const struct round *r)
{
    if (!kind_additive(&s->layout.kind) || s->layout.kind.update != SLEET_NONLINEAR ||
        !round_gathers(r))
        return false;
    bool misses = r->mixed || !r->own.final || r->own.taken < r->own.commits;
    for (uint32_t i = 0; i < r->group.n; i++) {
        const struct lane *l = &r->lane[i];
        uint32_t got = l->got_direct + l->got_repaired;
        bool all = got >= l->share || (l->commits_final && got >= l->commits_told);
        misses |= l->refused > 0 || ((int)i != r->self && !all);
    }
    return misses;
}

static bool is_result(const struct set *s, const struct round *r, uint32_t fragment)
{
    uint32_t tensor, n;
    uint64_t offset;
    if (r->held[fragment].weight <= 0 || !r->behind)
        return r->held[fragment].weight > 0;
    layout_locate(&s->layout, fragment, &tensor, &offset, &n);
    return !layout_additive(&s->layout, tensor);
}

/* Own values, or 0, for the commits that are missing, and own values into the sums of the node's share
 * while they may be read; a slice a call, true when all is done. */
static bool wind_up(struct set *s, struct round *r, const struct env *e)
{
    if (r->edges && !r->withheld && !edge_finish(s, r))
        return false;
    bool whole = r->got_n == r->wanted && r->filled == r->wanted;
    if (whole && r->wanted == s->layout.fragments && !r->withheld && !r->behind)
        return true;
    for (uint32_t i = 0; i < SLICE_FRAGMENTS && r->wound_up < s->layout.fragments; i++) {
        uint32_t f = r->wound_up++;
        if (!r->withheld && r->number_of[f] != NOT_DUE && !r->edges)
            owner_wind_up(s, r, e, f);
        if (is_result(s, r, f))
            continue;
        set_fill_fragment(s, f, false, r->send, r->result);
        late_note_hole(s, r, f);
    }
    return r->wound_up == s->layout.fragments;
}

/* The deadline, less what the filling of so much may take: half a byte a nanosecond. */
sleet_time set_fill_by(sleet_time started, sleet_time deadline, uint32_t fragments)
{
    sleet_duration whole = time_since(deadline, started);
    sleet_duration lead = (sleet_duration)fragments * FRAGMENT_ELEMENTS * 8;
    if (lead < MS(1))
        return deadline;
    return time_add(deadline, -(lead < whole / 4 ? lead : whole / 4));
}

sleet_time set_last_call(const struct set *s, const struct round *r)
{
    return set_fill_by(r->started, r->deadline, s->layout.fragments - r->got_n);
}

/* The caller shall keep its own values, and add nothing to them. */
static void withhold(const struct set *s, struct round *r)
{
    r->withheld = true;
    r->wound_up = r->filled = 0;
    memset(r->held, 0, s->layout.fragments * sizeof *r->held);
}

/* Of those in the group; for those that are missing see apart.c.  Less of them than was asked for,
 * or nothing of the others where there are some. */
static bool covers_little(const struct set *s, const struct round *r)
{
    uint32_t n = r->edges ? r->expected : group_contributors(&r->group), own = r->lane[r->self].share;
    if (n > 1 && !r->edges && quorum_leaves_out(s)) /* few contributors are no sign: it is the owners that must be heard */
        return r->filled < own + (r->wanted - own + 1) / 2;
    double present = r->covered * r->expected;
    return n > 1 && (present < r->least_coverage * n || present < 1.01);
}

/* A joiner has the others' model now, of this round or with what earlier ones brought, and what they
 * have averaged. */
static void take_lineage(struct set *s, const struct round *r, const struct env *e)
{
    const struct member_set *ms = view_heaviest(e->view, (uint32_t)s->handle);
    if (!ms || (r->lineage && r->lineage != ms->lineage))
        return; /* a heavier one has come up */
    uint64_t since = r->number > ms->weight_as_of ? r->number - ms->weight_as_of : 0;
    set_take_lineage(s, ms, since * group_contributors(&r->group));
}

void set_take_lineage(struct set *s, const struct member_set *ms, uint64_t more)
{
    s->established = true;
    s->lineage = ms->lineage;
    s->parent = ms->parent;
    s->forked_at = ms->forked_at;
    s->weight = ms->weight + more;
    s->apart.merged = false;
}

/* Nodes whose values are in a fragment's result, of those expected; `hole`: where there is none. */
static double present(const struct round *r, uint32_t fragment, double hole)
{
    const struct held *h = &r->held[fragment];
    bool wanted = r->number_of[fragment] != NOT_DUE &&
                  (round_gathers(r) || r->owner_of_run[fragment / RUN_FRAGMENTS] == r->self);
    if (!wanted)
        return r->expected;
    if (!round_scatters(r)) /* there is one value, its owner's */
        return h->weight > 0 ? r->expected : 0;
    return h->weight > 0 ? (double)__builtin_popcountll(h->who) : hole;
}

/* Contributors over nodes expected, the mean over the elements; own values count one, 0 in their
 * place none, and what is not due, or others' to have, counts as covered. */
static double coverage(const struct set *s, const struct round *r)
{
    double sum = 0, all = (double)s->layout.elements * r->expected;
    for (uint32_t t = 0; t < s->layout.n; t++) {
        const struct tensor *ten = &s->layout.tensors[t];
        double hole = layout_additive(&s->layout, t) ? 0 : 1;
        for (uint32_t i = 0; i < ten->fragments; i++) {
            uint32_t last = (uint32_t)(ten->count % FRAGMENT_ELEMENTS);
            uint32_t n = i + 1 == ten->fragments && last ? last : FRAGMENT_ELEMENTS;
            sum += n * present(r, ten->first + i, hole);
        }
    }
    return all > 0 && sum < all ? sum / all : 1.0;
}

uint32_t set_tell_owned(const struct set *s, uint64_t *owned, const struct round *r)
{
    uint32_t moved = 0;
    for (uint32_t i = 0; owned && i < s->layout.runs; i++) {
        bool mine = !r || (r->owner_of_run[i] == r->self && !r->withheld);
        moved += mine && !bitmap_test(owned, i);
        if (mine)
            bitmap_set(owned, i);
        else
            bitmap_clear(owned, i);
    }
    return moved;
}

/* What the round has brought, once it is whole.  Where that is too little for a set that makes no
 * progress for such rounds the caller shall keep its own values. */
static void judge(struct set *s, struct round *r, const struct env *e, bool ok)
{
    bool joins = !s->established, whole = r->filled == r->wanted, news = whole;
    r->judged = true;
    if (ok && !r->behind)
        held_merge(s, r);
    r->covered = coverage(s, r);
    if (r->behind)
        collect_drop(&s->collect); /* it is a step behind now */
    r->collected = joins && ok && !r->behind ? collect_round(s, r, e, whole, &news) : whole && !joins;
    r->little = joins ? !news : covers_little(s, r);
    if (ok && s->apart.isolated && r->little)
        withhold(s, r);
}

/* The result in place, with what is late of older ones; a slice a call, true when all is done. */
static bool complete(struct set *s, struct round *r, const struct env *e)
{
    if (!rotated_forward(s, r) || !wind_up(s, r, e))
        return false;
    if (!carry_settle(s, r, false))
        return false;
    if (!r->judged)
        judge(s, r, e, true);
    return r->withheld ? wind_up(s, r, e) : late_fold(s, r->result, r, &r->corrected) && rotated_back(s, r);
}

void set_close(struct set *s, struct round *r, const struct env *e, int error, sleet_time now)
{
    r->behind |= !r->closing && misses_step(s, r);
    r->closing = true;
    if (error == SLEET_OK && !complete(s, r, e))
        return; /* set_expire() goes on */
    if (error != SLEET_OK) {
        carry_settle(s, r, true);
        edge_withdraw(s, r);
    }
    if (!r->judged)
        judge(s, r, e, false);
    bool joins = !s->established;
    sleet_report p = {.round = r->number,
                      .skipped = r->skipped,
                      .group_size = r->group.n,
                      .expected = r->expected,
                      .flags = r->flags,
                      .elapsed_ns = time_since(now, r->started)};
    p.coverage = r->covered;
    if (p.coverage < r->least_coverage)
        p.flags |= SLEET_LOW_COVERAGE;
    if (r->filled == r->wanted && p.coverage >= 1.0 && !r->behind)
        p.flags |= SLEET_COMPLETE;
    if (r->behind)
        p.flags |= SLEET_BEHIND;
    if (r->withheld)
        p.flags |= SLEET_PARKED | (kind_additive(&s->layout.kind) ? SLEET_BEHIND : 0);
    if (joins) {
        p.flags |= SLEET_JOINING;
        if (r->collected && error == SLEET_OK && !r->withheld)
            take_lineage(s, r, e);
        if (s->established)
            collect_drop(&s->collect);
    } else if (error == SLEET_OK) {
        s->weight += (1 + r->skipped) * group_contributors(&r->group);
    }
    ledger_side g = {0};
    ledger_gather(r, &g);
    p.fragments_expected = g.expected;
    p.fragments_direct = g.direct;
    p.fragments_repaired = g.repaired;
    p.fragments_late = g.late;
    p.fragments_lost = g.lost;
    p.fragments_unsent = g.unsent;
    p.runs_moved = set_tell_owned(s, r->owned, r);
    if (error == SLEET_OK && !round_scatters(r))
        budget_add(&s->budget, p.elapsed_ns, (p.flags & SLEET_DEADLINE) != 0);
    p.fragments_corrected = r->corrected;
    r->flags = p.flags;
    if (p.flags & (SLEET_DEADLINE | SLEET_JOINING))
        s->announced |= SET_UNTOLD; /* those behind must not join what has closed here */
    r->closed = true;
    r->withheld |= error != SLEET_OK;
    parity_stop(r, PARITY_GATHER);
    r->quiet_until = (sleet_time){0};
    s->open = NULL;
    if (!s->established && set_others(s, e).joined < r->number)
        s->own_round = r->number - 1; /* nobody came, nothing was sent: be here next time */
    for (uint32_t i = 0; i < r->group.n; i++) {
        bool unsent = r->contributes && r->lane[i].scatter_pos < r->lane[i].share;
        bool unserved = (p.flags & SLEET_DEADLINE) && r->lane[i].share;
        r->lane[i].summary_due |= (int)i != r->self && (unsent || unserved || r->lane[i].holes);
        r->lane[i].summary_due |= receipt_gives(s, r, i);
        r->lane[i].summary_gap = MS(1);
        if (receipt_wanted(r, e, i)) /* it may be on its way */
            r->lane[i].summary_at = time_add(now, feedback_settle(&e->members[r->group.members[i].slot]));
    }
    late_own(s, r);
    witness_choose(r, e);
    if (error == SLEET_OK && !joins && !r->withheld && !r->behind)
        drift_note(s, r);
    set_report(s, error, &p);
    if (error == SLEET_OK)
        set_note_coverage(s, e, r->little);
}
