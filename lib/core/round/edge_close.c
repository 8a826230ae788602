/* Rounds among neighbours: the end, and what is decided after it; see edge.h. */
#include "round/edge_parts.h"
#include <string.h>

/* Neighbours whose trainer may still come to this round. */
static bool takes_part(const struct set *s, const struct round *r, const struct env *e, uint32_t rank)
{
    const struct member *m = edge_member(r, e, rank);
    const struct member_set *ms = &m->sets[s->handle];
    return m->alive && m->boot_id == r->group.members[rank].boot_id && ms->attached && !ms->parked &&
           set_takes_part_lately(s, e, m, r->number);
}

/* Rounds by which the neighbour has passed this one. */
static uint64_t past(const struct set *s, const struct round *r, const struct env *e, uint32_t rank)
{
    uint64_t theirs = member_open_round(&edge_member(r, e, rank)->sets[s->handle]);
    return theirs > r->number ? theirs - r->number : 0;
}

/* Nothing more can come from the neighbour, and it needs nothing more. */
bool edge_done_with(const struct set *s, const struct round *r, const struct env *e, uint32_t rank)
{
    const struct edge_lane *l = &r->edges->lane[rank];
    bool all = l->got_n == l->in || (l->end && r->lane[rank].commits_told < l->in); /* by its list there are fewer */
    bool heard = l->told_n == l->out || l->final;
    if ((int)rank == r->self || edge_over(l) || !takes_part(s, r, e, rank))
        return true;
    if (past(s, r, e, rank)) /* it still says what it has, for as long as the round is in its window */
        return heard || !r->edges->atomic || past(s, r, e, rank) > e->config->window;
    if (e->config->repair_off)
        return (all || l->end) && l->sent == l->out && (!r->edges->atomic || heard);
    return all && heard;
}

static sleet_duration grace(const struct round *r, const struct env *e)
{
    sleet_duration g = MS(1);
    for (uint32_t i = 0; i < r->group.n; i++) {
        sleet_duration w = (int)i == r->self ? 0 : feedback_settle(edge_member(r, e, i));
        g = w > g ? w : g;
    }
    return g;
}

/* Is it time to go on without what is missing? */
void edge_check(struct set *s, struct round *r, const struct env *e, sleet_time now)
{
    struct edges *g = r->edges;
    uint64_t missing = 0;
    bool holes = false;
    if (!edge_open(r) || g->done)
        return;
    edge_open_low(s, r);
    r->own.need = BIT(r->self);
    for (uint32_t i = 0; i < r->group.n; i++) {
        const struct edge_lane *l = &g->lane[i];
        if ((int)i == r->self || !takes_part(s, r, e, i))
            continue;
        r->own.need |= BIT(i);
        missing |= edge_done_with(s, r, e, i) ? 0 : BIT(i);
        holes |= !edge_over(l) && l->got_n < l->in;
    }
    if (!missing && holes && time_is_never(r->own.grace_at))
        r->own.grace_at = time_add(now, grace(r, e)); /* some may be under way */
    if (!missing && (!holes || !time_before(now, r->own.grace_at))) {
        budget_add(&s->budget, time_since(now, r->own.first_seen), false);
        g->done = true;
        return;
    }
    if (!missing || !wait_is_over(s, r, e, missing, now))
        return;
    wait_note_cut(s, r, e, missing);
    budget_add(&s->budget, 0, true);
    g->done = true;
}

sleet_time edge_deadline(const struct set *s, const struct round *r)
{
    const struct edges *g = r->edges;
    if (!edge_open(r) || g->done)
        return TIME_NEVER;
    sleet_time until = time_is_never(r->own.until) ? time_add(r->own.first_seen, wait_budget(s, r)) : r->own.until;
    return time_min(r->own.grace_at, until);
}

bool edge_complete(const struct round *r)
{
    return r->edges->done;
}

/* The result of a fragment, from the node's own values and its neighbours'. */
static void make(struct set *s, struct round *r, uint32_t number)
{
    const struct edges *g = r->edges;
    uint32_t tensor, n, fragment = r->frag[number];
    uint64_t offset;
    layout_locate(&s->layout, fragment, &tensor, &offset, &n);
    const float *own = (const float *)r->send[tensor] + offset;
    float *out = (float *)r->result[tensor] + offset;
    const float *late = r->contributes && s->edge_late.sum ? s->edge_late.sum[fragment] : NULL;
    const double *change = g->change[number];
    double sum[FRAGMENT_ELEMENTS] = {0};
    for (uint32_t i = 0; change && i < n; i++)
        sum[i] = change[i];
    for (uint32_t i = 0; i < r->group.n; i++)
        if (g->lane[i].low && g->lane[i].low->counts) {
            low_apply(g->lane[i].low, tensor, offset, n, sum);
            g->who[number] |= BIT(i);
        }
    for (const struct low_lane *w = r->contributes ? g->late : NULL; w; w = w->next)
        low_apply(w, tensor, offset, n, sum);
    for (uint32_t i = 0; i < n; i++)
        out[i] = (float)((double)own[i] + sum[i] + (double)(late ? late[i] : 0));
    if (late) {
        free(s->edge_late.sum[fragment]);
        s->edge_late.sum[fragment] = NULL;
        s->edge_late.n--;
        s->edge_late.added++;
    }
    uint64_t who = g->who[number] | (r->contributes ? BIT(r->self) : 0);
    if (!who)
        return; /* a joiner that nothing came to */
    r->held[fragment] = (struct held){who, (float)__builtin_popcountll(who), (uint8_t)r->self};
    r->filled++;
    bool all = true;
    for (uint32_t i = 0; i < r->group.n; i++)
        all &= !g->lane[i].in || !edge_comes(s, r, i, number) || (who & BIT(i));
    r->got_n += all;
}

/* Of what waits for the other's word the difference is kept, the node's own values go. */
static void keep_differences(struct set *s, struct round *r)
{
    struct edges *g = r->edges;
    for (uint32_t i = 0; i < r->group.n; i++) {
        struct edge_lane *l = &g->lane[i];
        for (uint32_t k = 0; l->kept_n && k < r->due; k++) {
            uint32_t n;
            const float *own = edge_own(s, r, k, &n);
            for (uint32_t j = 0; l->kept[k] && j < n; j++)
                l->kept[k][j] = (float)(g->edge[i].weight * ((double)l->kept[k][j] - (double)own[j]));
        }
        l->again_n = 0;
        low_close(s, r, i);
        r->lane[i].summary_due |= l->in && (int)i != r->self;
    }
}

bool edge_finish(struct set *s, struct round *r)
{
    struct edges *g = r->edges;
    for (uint32_t i = 0; !g->closed && i < r->group.n; i++)
        low_last_call(s, r, i);
    if (!g->closed && r->contributes && !g->late) {
        g->late = s->low.late;
        s->low.late = NULL;
    }
    for (uint32_t i = 0; i < SLICE_FRAGMENTS && g->closed < r->due; i++)
        make(s, r, g->closed++);
    if (g->closed < r->due)
        return false;
    keep_differences(s, r);
    return true;
}

void edge_withdraw(struct set *s, struct round *r)
{
    for (uint32_t i = 0; r->edges && i < r->group.n; i++) {
        for (uint32_t k = 0; r->edges->lane[i].kept_n && k < r->due; k++)
            edge_drop_kept(&r->edges->lane[i], k);
        low_withdraw(s, r, i);
    }
}

void edge_decide(struct set *s, struct round *r, uint32_t rank)
{
    struct edge_lane *l = &r->edges->lane[rank];
    struct edge_late *late = &s->edge_late;
    for (uint32_t k = 0; l->kept_n && k < r->due; k++) {
        if (!l->kept[k] || !bitmap_test(l->told, k))
            continue;
        if (!late->sum && !(late->sum = calloc((size_t)s->layout.fragments + 1, sizeof *late->sum)))
            return;
        float **sum = &late->sum[r->frag[k]];
        if (!*sum) {
            *sum = l->kept[k];
            l->kept[k] = NULL;
            l->kept_n--;
            late->n++;
            continue;
        }
        uint32_t n, tensor;
        uint64_t offset;
        layout_locate(&s->layout, r->frag[k], &tensor, &offset, &n);
        for (uint32_t j = 0; j < n; j++)
            (*sum)[j] += l->kept[k][j];
        edge_drop_kept(l, k);
    }
}

void edge_retire(struct set *s, struct round *r)
{
    for (uint32_t i = 0; r->edges && i < r->group.n; i++) {
        low_retire(s, r, i);
        s->edge_late.dropped += r->closed ? r->edges->lane[i].kept_n : 0;
    }
}

void edge_late_drop(struct set *s)
{
    for (uint32_t f = 0; s->edge_late.sum && f < s->layout.fragments; f++)
        free(s->edge_late.sum[f]);
    free(s->edge_late.sum);
    s->edge_late = (struct edge_late){0};
}
