/* Rounds among neighbours: values out, and who has what; see edge.h. */
#include "base/rng.h"
#include "codec/codec.h"
#include "round/edge_parts.h"
#include "tensor/order.h"
#include "tensor/reduce.h"
#include <string.h>

#define BITS_MAX 8192u

/* ---- values out */

bool edge_has_data(const struct round *r, uint32_t rank)
{
    const struct edge_lane *l = &r->edges->lane[rank];
    return edge_open(r) && l->out && (l->next < l->n || l->again_n) && (!l->low || (l->low->open && l->low->own));
}

/* The next number to send, from the place on; l->n: none.  In a stride, so that a burst hits no neighbours. */
static uint32_t next_number(const struct set *s, struct round *r, uint32_t rank)
{
    struct edge_lane *l = &r->edges->lane[rank];
    uint32_t stride = order_stride(l->n, r->number);
    while (l->next < l->n) {
        uint32_t number = order_at(l->next++, l->n, stride, (uint32_t)r->self % l->n);
        if (edge_goes(s, r, rank, number))
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
        const float *x = l->low ? low_own(r, l->low, number) : edge_own(s, r, number, &n);
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
                              .weight = edge_two_way(r->edges, rank) ? (float)r->edges->edge[rank].weight : 1,
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
    struct member *m = edge_member(r, e, rank);
    uint32_t end = w->first + w->bits;
    bool quiet = time_since(now, l->sent_at) > feedback_settle(m);
    uint64_t theirs = round_expand(r->number, w->sender_round);
    bool shut = theirs > r->number || (theirs == r->number && (w->flags & SUMMARY_CLOSED)) ||
                (w->flags & SUMMARY_TAKES_NONE);
    if (w->scatter_sent > lane->commits_told && w->scatter_sent <= l->in)
        lane->commits_told = w->scatter_sent;
    l->end |= (w->flags & SUMMARY_SCATTER_OVER) != 0;
    l->final |= shut;
    for (uint32_t k = 0; l->out && k < l->n && k < end; k++) {
        bool hole = k >= w->first && (w->bitmap[(k - w->first) / 8] >> ((k - w->first) % 8) & 1);
        if (!edge_goes(s, r, rank, k) || bitmap_test(l->told, k))
            continue;
        if (!hole) {
            bitmap_set(l->told, k);
            l->told_n++;
        } else if (quiet && edge_open(r) && l->next >= l->n && !e->config->repair_off && !bitmap_test(l->again, k)) {
            bitmap_set(l->again, k);
            l->again_n++;
        }
    }
    l->final |= quiet && l->sent == l->out && e->config->repair_off;
    if (l->low && (r->closed || edge_open(r)))
        low_settle(s, r, rank, shut);
    else if (r->closed)
        edge_decide(s, r, rank);
    else if (edge_open(r))
        edge_take_kept(s, r, rank);
    if (l->low && s->open && s->open != r && s->open->edges)
        edge_open_low(s, s->open); /* it may have waited for this */
    if ((w->flags & SUMMARY_ASKS) && time_since(now, lane->said_at) >= ASK_GAP) {
        lane->summary_due = true;
        view_answer(e->view, m);
    }
}

/* Is there something to hear from the neighbour: its values, or its word? */
bool edge_wants(const struct round *r, uint32_t rank)
{
    const struct edge_lane *l = &r->edges->lane[rank];
    if (r->closed)
        return l->kept_n > 0 || low_pending(l);
    return r->joined && !r->closing && !edge_over(l) && (l->got_n < l->in || l->told_n < l->out);
}

/* It has sent all it has, and takes of ours what it can: whether it did is all that is missing. */
bool edge_wants_word(const struct round *r, uint32_t rank)
{
    const struct edge_lane *l = &r->edges->lane[rank];
    return edge_open(r) && edge_two_way(r->edges, rank) && l->got_n == l->in && l->sent == l->out && l->told_n < l->out;
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
                         (edge_wants(r, rank) ? SUMMARY_ASKS : 0) | (l->in ? 0 : SUMMARY_TAKES_NONE));
    if (!l->in)
        return;
    for (uint32_t k = l->whole; k < l->n; k++) {
        bool hole = !bitmap_test(l->got, k) && edge_comes(s, r, rank, k);
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
