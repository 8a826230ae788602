/* Rounds among neighbours: see edge.h. */
#include "base/bitmap.h"
#include "base/rng.h"
#include "codec/codec.h"
#include "round/round.h"
#include "tensor/order.h"
#include "tensor/reduce.h"
#include <stdlib.h>
#include <string.h>

#define BITS_MAX 8192u
#define ASK_GAP MS(10) /* between answers to a neighbour that asks */
#define BIT(rank) ((uint64_t)1 << (rank))

static struct member *member_of(const struct round *r, const struct env *e, uint32_t rank)
{
    return &e->members[r->group.members[rank].slot];
}

/* ---- the object */

static uint64_t segment_of(const struct edges *g, const struct layout *l, uint32_t fragment)
{
    return UINT64_C(1) << (uint64_t)(fragment / RUN_FRAGMENTS) * g->segments / (l->runs ? l->runs : 1);
}

/* Who goes both ways with this node, where differences of low rank go in the place of values. */
static bool goes_low(const struct round *r, const struct plan *p, uint32_t rank)
{
    return p->rank && p->edge[rank].in && p->edge[rank].out && r->contributes && r->group.members[rank].contributes;
}

static bool lane_new(struct round *r, const struct layout *l, const struct plan *p, struct power_map *map, uint32_t rank)
{
    struct edges *g = r->edges;
    struct edge_lane *l2 = &g->lane[rank];
    if (goes_low(r, p, rank)) {
        l2->low = low_lane_new(map);
        l2->n = l2->in = l2->out = low_fragments(map);
    } else {
        l2->n = r->due;
    }
    for (uint32_t k = 0; !l2->low && k < r->due; k++) {
        uint64_t segment = segment_of(g, l, r->frag[k]);
        l2->in += (g->edge[rank].in & segment) != 0 && r->group.members[rank].contributes;
        l2->out += (g->edge[rank].out & segment) != 0 && r->contributes;
    }
    size_t words = bitmap_words(l2->n) + 1;
    r->lane[rank].share = l2->in;
    l2->got = calloc(words, 8);
    l2->told = calloc(words, 8);
    l2->again = calloc(words, 8);
    l2->kept = l2->in && !l2->low ? calloc((size_t)r->due + 1, sizeof *l2->kept) : NULL;
    l2->sent_at = l2->asked_at = r->started;
    return l2->got && l2->told && l2->again && (l2->kept || l2->low || !l2->in) && (l2->low || !goes_low(r, p, rank));
}

bool edge_new(struct round *r, const struct layout *l, const struct plan *p)
{
    struct edges *g = calloc(1, sizeof *g);
    if (!g)
        return false;
    r->edges = g;
    g->atomic = p->atomic;
    g->segments = p->segments;
    memcpy(g->edge, p->edge, sizeof g->edge);
    g->change = calloc((size_t)r->due + 1, sizeof *g->change);
    g->who = calloc((size_t)r->due + 1, sizeof *g->who);
    if (!g->change || !g->who)
        return false;
    struct power_map *map = p->rank ? power_map_new(l, p->rank, r->number) : NULL;
    bool ok = map || !p->rank;
    for (uint32_t i = 0; ok && i < p->group.n; i++)
        ok = lane_new(r, l, p, map, i);
    power_map_free(map); /* the lanes have it */
    return ok;
}

static void drop_kept(struct edge_lane *l, uint32_t number)
{
    l->kept_n -= l->kept && l->kept[number];
    if (l->kept) {
        free(l->kept[number]);
        l->kept[number] = NULL;
    }
}

void edge_free(struct round *r)
{
    struct edges *g = r->edges;
    if (!g)
        return;
    for (uint32_t i = 0; i < r->group.n; i++) {
        struct edge_lane *l = &g->lane[i];
        for (uint32_t k = 0; l->kept && k < r->due; k++)
            free(l->kept[k]);
        free(l->kept);
        low_lanes_free(l->low);
        free(l->got);
        free(l->told);
        free(l->again);
    }
    for (uint32_t k = 0; g->change && k < r->due; k++)
        free(g->change[k]);
    low_lanes_free(g->late);
    free(g->change);
    free(g->who);
    free(g);
    r->edges = NULL;
}

uint64_t edge_bytes_bound(const struct layout *l, uint32_t members)
{
    uint64_t in = members - 1 < EDGES_IN_MAX ? members - 1 : EDGES_IN_MAX;
    if (l->kind.strategy == SLEET_RPS)
        return 0;
    return sizeof(struct edges) + low_round_bytes_bound(l, (uint32_t)in) + (uint64_t)l->fragments * (in * (FRAGMENT_ELEMENTS * 4 + 8) + FRAGMENT_ELEMENTS * 8 + 16 + members / 2);
}

uint32_t edge_expected(const struct round *r)
{
    uint64_t in = 0;
    for (uint32_t i = 0; i < r->group.n; i++)
        in += r->edges->lane[i].low ? r->due : r->edges->lane[i].in;
    return r->due ? (uint32_t)((in + r->due - 1) / r->due) + r->contributes : 1;
}

/* ---- values in */

static const float *own_values(const struct set *s, const struct round *r, uint32_t number, uint32_t *n)
{
    uint32_t tensor;
    uint64_t offset;
    layout_locate(&s->layout, r->frag[number], &tensor, &offset, n);
    return (const float *)r->send[tensor] + offset;
}

/* Its values join the result. */
static void add(const struct set *s, struct round *r, uint32_t rank, uint32_t number, const float *x)
{
    struct edges *g = r->edges;
    uint32_t n;
    const float *own = own_values(s, r, number, &n);
    if (!g->change[number] && !(g->change[number] = calloc(FRAGMENT_ELEMENTS, sizeof(double))))
        return;
    for (uint32_t i = 0; i < n; i++)
        g->change[number][i] += g->edge[rank].weight * ((double)x[i] - (double)own[i]);
    g->who[number] |= BIT(rank);
}

/* Both take of each other, or neither; a joiner only takes. */
static bool two_way(const struct edges *g, uint32_t rank)
{
    return g->atomic && g->edge[rank].in && g->edge[rank].out;
}

static bool counts(const struct edges *g, uint32_t rank, uint32_t number)
{
    return !two_way(g, rank) || bitmap_test(g->lane[rank].told, number);
}

/* Take what waits, as far as it may be taken. */
static void take_kept(const struct set *s, struct round *r, uint32_t rank)
{
    struct edge_lane *l = &r->edges->lane[rank];
    for (uint32_t k = 0; l->kept_n && k < r->due; k++) {
        if (!l->kept[k] || !counts(r->edges, rank, k))
            continue;
        add(s, r, rank, k, l->kept[k]);
        drop_kept(l, k);
    }
}

static bool open_here(const struct round *r)
{
    return r->joined && r->prepared && !r->closing && !r->closed;
}

/* Begin with the edges of low rank whose older rounds are decided. */
static void open_low(struct set *s, struct round *r)
{
    for (uint32_t i = 0; i < r->group.n && open_here(r); i++)
        if (r->edges->lane[i].low && low_open(s, r, i)) {
            r->quiet_until = (sleet_time){0};
            low_settle(s, r, i, false);
        }
}

void edge_join(struct set *s, struct round *r, const struct env *e, sleet_time now)
{
    r->own.first_seen = now;
    for (uint32_t i = 0; i < r->group.n; i++) {
        const struct member *m = member_of(r, e, i);
        r->lane[i].summary_at = time_add(now, MS(2) + 2 * (m->rtt.valid ? m->rtt.srtt : MS(1)));
        r->lane[i].summary_due = false;
        take_kept(s, r, i);
    }
    open_low(s, r);
}

/* Among the fragments of a lane: does the number come, does it go? */
static bool comes(const struct set *s, const struct round *r, uint32_t rank, uint32_t number)
{
    const struct edges *g = r->edges;
    return g->lane[rank].low || (g->edge[rank].in & segment_of(g, &s->layout, r->frag[number]));
}

static bool goes(const struct set *s, const struct round *r, uint32_t rank, uint32_t number)
{
    const struct edges *g = r->edges;
    return g->lane[rank].low || (g->edge[rank].out & segment_of(g, &s->layout, r->frag[number]));
}

/* The number of what has come; NOT_DUE: it is none that is expected. */
static uint32_t number_of(const struct set *s, const struct round *r, uint32_t rank, const struct wire_data *d,
                          const struct part *part)
{
    const struct edge_lane *l = &r->edges->lane[rank];
    if (!l->in || wire_is_low(d->phase) != (l->low != NULL))
        return NOT_DUE;
    if (l->low)
        return d->fragment < l->n && part->n == low_elements(l->low, d->fragment) ? d->fragment : NOT_DUE;
    uint32_t number = r->number_of[part->fragment];
    return number != NOT_DUE && comes(s, r, rank, number) ? number : NOT_DUE;
}

/* Into the result, or beside it for the time being; false: it can be neither. */
static bool take(struct set *s, struct round *r, uint32_t rank, uint32_t number, const struct wire_data *d,
                 const struct part *part)
{
    struct edge_lane *l = &r->edges->lane[rank];
    if (l->low)
        return low_take(s, r, rank, number, d->tag, part->x);
    if (open_here(r) && counts(r->edges, rank, number)) {
        add(s, r, rank, number, part->x);
        return true;
    }
    if (!(l->kept[number] = malloc(FRAGMENT_ELEMENTS * sizeof(float))))
        return false;
    memcpy(l->kept[number], part->x, part->n * sizeof(float));
    l->kept_n++;
    return true;
}

enum fate edge_recv(struct set *s, struct round *r, const struct env *e, uint32_t rank, const struct wire_data *d,
                    const struct part *part, sleet_time now)
{
    struct edges *g = r->edges;
    struct edge_lane *l = &g->lane[rank];
    struct lane *lane = &r->lane[rank];
    uint32_t number = number_of(s, r, rank, d, part);
    (void)e;
    if (number == NOT_DUE || (two_way(g, rank) && d->weight != (float)g->edge[rank].weight))
        return FATE_FOREIGN;
    if (d->remaining <= l->in && l->in - d->remaining > lane->commits_told)
        lane->commits_told = l->in - d->remaining;
    l->end |= (d->flags & DATA_LAST) != 0;
    if (bitmap_test(l->got, number)) {
        lane->summary_due |= time_since(now, lane->said_at) >= ASK_GAP; /* it has not heard so */
        return FATE_ACCEPTED;
    }
    if (r->closing || r->closed) {
        lane->got_late += lane->got_direct + lane->got_repaired + lane->got_late < lane->share;
        lane->summary_due |= time_since(now, lane->said_at) >= ASK_GAP;
        return FATE_STALE;
    }
    if (!take(s, r, rank, number, d, part))
        return FATE_STALE;
    bitmap_set(l->got, number);
    lane->summary_due |= ++l->got_n == l->in;
    *(d->phase == PHASE_EDGE || d->phase == PHASE_LOW ? &lane->got_direct : &lane->got_repaired) += 1;
    if (l->low)
        low_settle(s, r, rank, false);
    return FATE_ACCEPTED;
}

/* ---- values out */

bool edge_has_data(const struct round *r, uint32_t rank)
{
    const struct edge_lane *l = &r->edges->lane[rank];
    return open_here(r) && l->out && (l->next < l->n || l->again_n) && (!l->low || (l->low->open && l->low->own));
}

/* The next number to send, from the place on; l->n: none.  In a stride, so that a burst hits no neighbours. */
static uint32_t next_number(const struct set *s, struct round *r, uint32_t rank)
{
    struct edge_lane *l = &r->edges->lane[rank];
    uint32_t stride = order_stride(l->n, r->number);
    while (l->next < l->n) {
        uint32_t number = order_at(l->next++, l->n, stride, (uint32_t)r->self % l->n);
        if (goes(s, r, rank, number))
            return number;
    }
    return l->n;
}

static uint32_t next_again(struct round *r, uint32_t rank)
{
    struct edge_lane *l = &r->edges->lane[rank];
    uint32_t number = (uint32_t)bitmap_next(l->again, l->again_at, l->n);
    if (number == l->n)
        number = (uint32_t)bitmap_next(l->again, 0, l->n);
    if (number == l->n)
        return number;
    bitmap_clear(l->again, number);
    l->again_n--;
    l->again_at = number + 1;
    return number;
}

/* What the datagram of a number is: the rest of its head; how it is encoded. */
static struct codec_args name(const struct set *s, const struct round *r, const struct edge_lane *l, uint32_t number,
                              bool first, struct wire_data *d)
{
    uint32_t tensor, n;
    uint64_t offset;
    if (l->low) {
        d->phase = first ? PHASE_LOW : PHASE_LOW_REPAIR;
        d->codec = SLEET_CODEC_F32;
        d->tensor = s->layout.hash;
        d->fragment = number;
        d->tag = l->low->tag;
        return (struct codec_args){0};
    }
    layout_locate(&s->layout, r->frag[number], &tensor, &offset, &n);
    d->phase = first ? PHASE_EDGE : PHASE_EDGE_REPAIR;
    d->codec = (uint8_t)s->layout.tensors[tensor].codec;
    d->tensor = s->layout.tensors[tensor].id;
    d->fragment = r->frag[number] - s->layout.tensors[tensor].first;
    return (struct codec_args){
        .seed = mix64(r->number ^ mix64(r->frag[number] ^ mix64(r->group.members[r->self].node_id)))};
}

size_t edge_fill(struct set *s, struct round *r, const struct env *e, uint32_t rank, uint8_t *out, sleet_time now)
{
    struct edge_lane *l = &r->edges->lane[rank];
    uint8_t payload[WIRE_PAYLOAD_MAX];
    for (;;) {
        bool first = l->next < l->n;
        uint32_t number = first ? next_number(s, r, rank) : next_again(r, rank), n;
        if (number == l->n)
            return 0;
        const float *x = l->low ? low_own(r, l->low, number) : own_values(s, r, number, &n);
        n = l->low ? low_elements(l->low, number) : n;
        l->sent += first;
        if (!reduce_finite(x, n)) {
            e->counters->nonfinite++;
            continue;
        }
        struct wire_data d = {.group = r->group.hash,
                              .round = (uint32_t)r->number,
                              .packed = 1,
                              .flags = l->sent == l->out ? DATA_LAST : 0,
                              .weight = two_way(r->edges, rank) ? (float)r->edges->edge[rank].weight : 1,
                              .time = (uint32_t)(now.ns / 1000),
                              .remaining = l->out - l->sent,
                              .sender_round = (uint32_t)s->own_round};
        const struct codec_args args = name(s, r, l, number, first, &d);
        size_t bytes = codec_by_id(d.codec)->encode(payload, x, n, &args);
        l->sent_at = now;
        size_t head = wire_data_encode(out, WIRE_DATA_BYTES, &d);
        memcpy(out + head, payload, bytes);
        return head + bytes;
    }
}

/* ---- who has what */

/* The word of a neighbour: all numbers before `first` are there, and those of the bitmap that are no holes. */
void edge_told(struct set *s, struct round *r, const struct env *e, uint32_t rank, const struct wire_summary *w,
               sleet_time now)
{
    struct edges *g = r->edges;
    struct edge_lane *l = &g->lane[rank];
    struct lane *lane = &r->lane[rank];
    struct member *m = member_of(r, e, rank);
    uint32_t end = w->first + w->bits;
    bool quiet = time_since(now, l->sent_at) > feedback_settle(m);
    uint64_t theirs = round_expand(r->number, w->sender_round);
    if (w->scatter_sent > lane->commits_told && w->scatter_sent <= l->in)
        lane->commits_told = w->scatter_sent;
    l->end |= (w->flags & SUMMARY_SCATTER_OVER) != 0;
    l->final |= (w->flags & SUMMARY_CLOSED) && round_expand(r->number, w->sender_round) >= r->number;
    for (uint32_t k = 0; l->out && k < l->n && k < end; k++) {
        bool hole = k >= w->first && (w->bitmap[(k - w->first) / 8] >> ((k - w->first) % 8) & 1);
        if (!goes(s, r, rank, k) || bitmap_test(l->told, k))
            continue;
        if (!hole) {
            bitmap_set(l->told, k);
            l->told_n++;
        } else if (quiet && open_here(r) && l->next >= l->n && !e->config->repair_off && !bitmap_test(l->again, k)) {
            bitmap_set(l->again, k);
            l->again_n++;
        }
    }
    l->final |= quiet && l->sent == l->out && e->config->repair_off;
    if (l->low && (r->closed || open_here(r)))
        low_settle(s, r, rank, theirs > r->number || (theirs == r->number && (w->flags & SUMMARY_CLOSED)));
    else if (r->closed)
        edge_decide(s, r, rank);
    else if (open_here(r))
        take_kept(s, r, rank);
    if (l->low && s->open && s->open != r && s->open->edges)
        open_low(s, s->open); /* it may have waited for this */
    if ((w->flags & SUMMARY_ASKS) && time_since(now, lane->said_at) >= ASK_GAP) {
        lane->summary_due = true;
        view_answer(e->view, m);
    }
}

/* Nothing more is to come of it. */
static bool is_over(const struct edge_lane *l)
{
    return l->low && l->low->over;
}

/* Is there something to hear from the neighbour: its values, or its word? */
bool edge_wants(const struct round *r, uint32_t rank)
{
    const struct edge_lane *l = &r->edges->lane[rank];
    if (r->closed)
        return l->kept_n > 0 || low_pending(l);
    return r->joined && !r->closing && !is_over(l) && (l->got_n < l->in || l->told_n < l->out);
}

/* What a SUMMARY says among neighbours: what is here of the other's values. */
void edge_tell(const struct set *s, struct round *r, uint32_t rank, struct wire_summary *w, uint8_t *bits)
{
    struct edge_lane *l = &r->edges->lane[rank];
    uint32_t last = 0;
    bool any = false, sent = r->closed || (r->joined && l->sent == l->out && !l->again_n);
    w->scatter_sent = l->sent;
    w->committed = l->got_n;
    w->flags = (uint8_t)((w->flags & SUMMARY_CLOSED) | (sent ? SUMMARY_SCATTER_OVER : 0) |
                         (edge_wants(r, rank) ? SUMMARY_ASKS : 0));
    if (!l->in)
        return;
    for (uint32_t k = l->whole; k < l->n; k++) {
        bool hole = !bitmap_test(l->got, k) && comes(s, r, rank, k);
        if (hole && !any) {
            l->whole = w->first = k;
            any = true;
        }
        if (any && k - w->first >= BITS_MAX)
            break;
        last = any ? k - w->first : 0;
        if (hole)
            bits[last / 8] |= (uint8_t)(1u << last % 8);
    }
    if (!any)
        l->whole = w->first = l->n;
    w->bits = any ? (uint16_t)(last + 1) : 0;
}

/* ---- the end */

/* Neighbours whose trainer may still come to this round. */
static bool takes_part(const struct set *s, const struct round *r, const struct env *e, uint32_t rank)
{
    const struct member *m = member_of(r, e, rank);
    const struct member_set *ms = &m->sets[s->handle];
    return m->alive && m->boot_id == r->group.members[rank].boot_id && ms->attached && !ms->parked &&
           set_takes_part_lately(s, e, m, r->number);
}

static bool past(const struct set *s, const struct round *r, const struct env *e, uint32_t rank)
{
    return member_open_round(&member_of(r, e, rank)->sets[s->handle]) > r->number;
}

/* Nothing more can come from the neighbour, and it needs nothing more. */
bool edge_done_with(const struct set *s, const struct round *r, const struct env *e, uint32_t rank)
{
    const struct edge_lane *l = &r->edges->lane[rank];
    bool all = l->got_n == l->in, heard = l->told_n == l->out;
    if ((int)rank == r->self || is_over(l) || !takes_part(s, r, e, rank))
        return true;
    if (past(s, r, e, rank)) /* it still says what it has */
        return heard || l->final || !r->edges->atomic;
    if (e->config->repair_off)
        return (all || l->end) && l->sent == l->out && (!r->edges->atomic || heard || l->final);
    return all && heard;
}

static sleet_duration grace(const struct round *r, const struct env *e)
{
    sleet_duration g = MS(1);
    for (uint32_t i = 0; i < r->group.n; i++) {
        sleet_duration w = (int)i == r->self ? 0 : feedback_settle(member_of(r, e, i));
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
    if (!open_here(r) || g->done)
        return;
    open_low(s, r);
    r->own.need = BIT(r->self);
    for (uint32_t i = 0; i < r->group.n; i++) {
        const struct edge_lane *l = &g->lane[i];
        if ((int)i == r->self || !takes_part(s, r, e, i))
            continue;
        r->own.need |= BIT(i);
        missing |= edge_done_with(s, r, e, i) ? 0 : BIT(i);
        holes |= !is_over(l) && l->got_n < l->in;
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
    if (!open_here(r) || g->done)
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
        all &= !g->lane[i].in || !comes(s, r, i, number) || (who & BIT(i));
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
            const float *own = own_values(s, r, k, &n);
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
            drop_kept(&r->edges->lane[i], k);
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
        drop_kept(l, k);
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
