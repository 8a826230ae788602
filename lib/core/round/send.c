/* Data datagrams, built when they leave: gather, then repair, then scatter. */
#include "base/bitmap.h"
#include "codec/codec.h"
#include "round/round.h"
#include "tensor/order.h"
#include "tensor/reduce.h"
#include <stdlib.h>
#include <string.h>

static bool scatter_open(const struct round *r)
{
    return r->joined && !r->closed && r->contributes;
}

bool round_has_data(const struct round *r, uint32_t rank)
{
    const struct lane *l = &r->lane[rank];
    return (!l->past && (l->gather_pos < r->own.commits || l->repairs)) ||
           (scatter_open(r) && (l->scatter_pos < l->share || l->scatter_repairs));
}

static size_t put(const struct layout *lay, const struct round *r, struct wire_data *d,
                  uint32_t fragment, const float *x, uint32_t tensor, uint32_t n, uint8_t *out)
{
    const struct codec *c = codec_by_id(1);
    d->group = r->group.hash;
    d->tensor = lay->tensors[tensor].id;
    d->round = (uint32_t)r->number;
    d->fragment = fragment - lay->tensors[tensor].first;
    d->codec = c->id;
    d->packed = 1;
    d->scale = 1;
    size_t head = wire_data_encode(out, 40, d);
    c->encode(out + head, x, n);
    return head + (size_t)n * 4;
}

static size_t fill_gather(struct set *s, struct round *r, uint32_t rank, uint32_t number,
                          uint8_t phase, uint8_t *out, uint64_t counter, sleet_time now)
{
    struct lane *l = &r->lane[rank];
    uint32_t fragment = owner_fragment(r, number), tensor, n;
    uint64_t offset;
    if (!l->sent_at && !(l->sent_at = calloc((size_t)owner_numbers(r) + 1, sizeof *l->sent_at)))
        return 0;
    l->sent_at[number] = counter ? (uint32_t)counter : 1;
    l->gather_sent_at = now;
    layout_locate(&s->layout, fragment, &tensor, &offset, &n);
    struct wire_data d = {.phase = phase,
                          .weight = (float)-r->own.wsum[number],
                          .mask = r->own.mask[number],
                          .sender_round = (uint32_t)s->own_round};
    d.flags = (r->own.mask[number] >> rank & 1) ? DATA_YOURS : 0;
    if (!s->open || s->open->number != s->own_round)
        d.flags |= DATA_CLOSED;
    return put(&s->layout, r, &d, fragment, r->own.commit + (size_t)number * FRAGMENT_ELEMENTS,
               tensor, n, out);
}

static size_t fill_scatter(struct set *s, struct round *r, const struct env *e, uint32_t rank,
                           uint32_t fragment, uint8_t phase, uint8_t *out, sleet_time now)
{
    struct lane *l = &r->lane[rank];
    uint32_t tensor, n;
    uint64_t offset;
    layout_locate(&s->layout, fragment, &tensor, &offset, &n);
    const float *x = (const float *)r->send[tensor] + offset;
    if (!reduce_finite(x, n)) {
        e->counters->nonfinite++;
        return 0;
    }
    struct wire_data d = {.phase = phase,
                          .weight = (float)r->weight,
                          .time = (uint32_t)(now.ns / 1000),
                          .remaining = l->share - l->scatter_pos,
                          .sender_round = (uint32_t)s->own_round};
    l->scatter_sent_at = now;
    d.flags = (uint8_t)((d.remaining == 0 ? DATA_LAST : 0) | (r->exact ? DATA_EXACT : 0));
    return put(&s->layout, r, &d, fragment, x, tensor, n, out);
}

static size_t next_scatter(struct set *s, struct round *r, const struct env *e, uint32_t rank,
                           uint8_t *out, sleet_time now)
{
    struct lane *l = &r->lane[rank];
    size_t len = 0;
    while (!len && l->scatter_pos < l->share) {
        uint32_t stride = order_stride(l->share, r->number);
        uint32_t i = order_at(l->scatter_pos++, l->share, stride, (uint32_t)r->self % l->share);
        len = fill_scatter(s, r, e, rank, r->frag[l->start + i], PHASE_SCATTER, out, now);
    }
    if (l->scatter_pos >= l->share)
        l->summary_due = true; /* say END */
    return len;
}

static size_t next_repair(struct set *s, struct round *r, const struct env *e, uint32_t rank,
                          uint8_t *out, uint64_t counter, sleet_time now)
{
    struct lane *l = &r->lane[rank];
    uint32_t mine = r->lane[r->self].share;
    if (l->repairs && !l->past) {
        uint32_t i = (uint32_t)bitmap_next(l->repair, l->repair_pos, mine);
        if (i == mine) /* from the start again */
            i = (uint32_t)bitmap_next(l->repair, 0, mine);
        l->repair_pos = i + 1;
        bitmap_clear(l->repair, i);
        l->repairs--;
        return fill_gather(s, r, rank, i, PHASE_REPAIR, out, counter, now);
    }
    for (uint32_t tries = 0; scatter_open(r) && l->scatter_repairs && tries < l->share; tries++) {
        uint32_t f = r->frag[l->start + l->scatter_repair_pos++ % l->share];
        if (!bitmap_test(r->scatter_again, f))
            continue;
        bitmap_clear(r->scatter_again, f);
        l->scatter_repairs--;
        size_t len = fill_scatter(s, r, e, rank, f, PHASE_SCATTER_REPAIR, out, now);
        if (len)
            return len;
    }
    return 0;
}

size_t round_fill(struct set *s, struct round *r, const struct env *e, uint32_t rank, uint8_t *out,
                  uint64_t counter, sleet_time now)
{
    struct lane *l = &r->lane[rank];
    if (l->past)
        l->gather_pos = r->own.commits;
    if (l->gather_pos < r->own.commits) {
        uint32_t number = r->own.order[l->gather_pos++];
        l->summary_due |= gather_sent(r, e, rank);
        return fill_gather(s, r, rank, number, PHASE_GATHER, out, counter, now);
    }
    size_t len = next_repair(s, r, e, rank, out, counter, now);
    return len || !scatter_open(r) ? len : next_scatter(s, r, e, rank, out, now);
}
