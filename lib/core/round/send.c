/* Data datagrams, built when they leave: gather, then repair, then scatter. */
#include "base/bitmap.h"
#include "base/rng.h"
#include "codec/codec.h"
#include "round/round.h"
#include "tensor/order.h"
#include "tensor/reduce.h"
#include <stdlib.h>
#include <string.h>

static bool scatter_open(const struct round *r)
{
    return r->joined && !r->closed && r->contributes && r->prepared && round_scatters(r);
}

bool round_has_data(const struct round *r, uint32_t rank)
{
    const struct lane *l = &r->lane[rank];
    if (r->edges)
        return edge_has_data(r, rank);
    return (!l->past && round_gathers(r) && (l->gather_pos < r->own.commits || l->repairs)) ||
           (scatter_open(r) && (l->scatter_pos < l->share || l->scatter_repairs)) || l->backup.gives ||
           parity_due(r, rank, PARITY_GATHER) || parity_due(r, rank, PARITY_SCATTER);
}

/* A datagram in the making: fragments of one run and tensor, one after the other. */
struct packing {
    const struct codec *codec;
    uint32_t tensor, first, n; /* fragments first .. first + n - 1 */
    uint8_t payload[WIRE_PAYLOAD_MAX];
    size_t bytes;
};

/* May the fragment be the next one? */
static bool fits(const struct packing *p, const struct layout *l, uint32_t fragment)
{
    return p->bytes + p->codec->bytes_max <= WIRE_PAYLOAD_MAX && fragment == p->first + p->n &&
           fragment / RUN_FRAGMENTS == p->first / RUN_FRAGMENTS &&
           fragment < l->tensors[p->tensor].first + l->tensors[p->tensor].fragments;
}

static void begin(struct packing *p, const struct layout *l, uint32_t fragment)
{
    uint32_t n;
    uint64_t offset;
    layout_locate(l, fragment, &p->tensor, &offset, &n);
    p->codec = codec_by_id((uint8_t)l->tensors[p->tensor].codec);
    p->first = fragment;
    p->n = 0;
    p->bytes = 0;
}

static size_t finish(const struct packing *p, const struct layout *l, struct round *r, uint32_t rank,
                     struct wire_data *d, uint8_t *out, uint64_t counter)
{
    d->group = r->group.hash;
    d->tensor = l->tensors[p->tensor].id;
    d->round = (uint32_t)r->number;
    d->fragment = p->first - l->tensors[p->tensor].first;
    d->codec = p->codec->id;
    d->packed = (uint8_t)p->n;
    parity_cover(r, rank, d, p->first, p->payload, p->bytes, counter);
    size_t head = wire_data_encode(out, WIRE_DATA_BYTES, d);
    memcpy(out + head, p->payload, p->bytes);
    return head + p->bytes;
}

/* One number of the share and those behind it that `more` names, as far as they go together. */
static size_t fill_gather(struct set *s, struct round *r, uint32_t rank, uint32_t number, uint8_t phase,
                          bool (*more)(struct round *, struct lane *, uint32_t), uint8_t *out,
                          uint64_t counter, sleet_time now)
{
    struct lane *l = &r->lane[rank];
    struct packing p;
    uint32_t bytes, first = number;
    if (!l->sent_at && !(l->sent_at = calloc((size_t)owner_numbers(r) + 1, sizeof *l->sent_at)))
        return 0;
    l->gather_sent_at = now;
    begin(&p, &s->layout, owner_fragment(r, number));
    do {
        const uint8_t *coded = owner_coded(s, r, number, &bytes);
        memcpy(p.payload + p.bytes, coded, bytes);
        p.bytes += bytes;
        p.n++;
        l->sent_at[number++] = counter ? (uint32_t)counter : 1;
    } while (number < r->lane[r->self].share && fits(&p, &s->layout, owner_fragment(r, number)) &&
             r->own.mask[number] == r->own.mask[first] && r->own.wsum[number] == r->own.wsum[first] &&
             more(r, l, number));
    struct wire_data d = {.phase = phase,
                          .weight = (float)-r->own.wsum[first],
                          .mask = r->own.mask[first],
                          .sender_round = (uint32_t)s->own_round};
    d.flags = (r->own.mask[first] >> rank & 1) ? DATA_YOURS : 0;
    if (!s->open || s->open->number != s->own_round)
        d.flags |= DATA_CLOSED;
    return finish(&p, &s->layout, r, rank, &d, out, counter);
}

static bool is_backup(const struct round *r, const struct lane *l, uint32_t number)
{
    return number < r->lane[r->self].share &&
           r->backup.of_run[owner_fragment(r, number) / RUN_FRAGMENTS] == l - r->lane;
}

/* The next commit for the member, NOT_DUE: none; *pos: where it is taken.  Those that it is the backup of go
 * first: where the owner dies on the way the backups have more than anybody else. */
static uint32_t peek_commit(const struct round *r, struct lane *l, uint32_t **pos)
{
    const struct owner_side *o = &r->own;
    while (l->ahead_pos < o->commits && !is_backup(r, l, o->order[l->ahead_pos]))
        l->ahead_pos++;
    while (l->ahead_pos >= o->commits && l->gather_pos < o->commits && is_backup(r, l, o->order[l->gather_pos]))
        l->gather_pos++;
    *pos = l->ahead_pos < o->commits ? &l->ahead_pos : &l->gather_pos;
    return **pos < o->commits ? o->order[**pos] : NOT_DUE;
}

bool round_goes_ahead(struct round *r, uint32_t rank)
{
    struct lane *l = &r->lane[rank];
    uint32_t *pos;
    return !r->edges && !l->past && l->gather_pos < r->own.commits && peek_commit(r, l, &pos) != NOT_DUE &&
           pos == &l->ahead_pos;
}

/* The next commit in order. */
static bool next_commit(struct round *r, struct lane *l, uint32_t number)
{
    uint32_t *pos;
    if (peek_commit(r, l, &pos) != number)
        return false;
    ++*pos;
    return true;
}

static void repair_done(struct lane *l, uint32_t number)
{
    bitmap_clear(l->repair, number);
    l->repairs--;
    l->repair_pos = number + 1;
}

/* The next one asked for again. */
static bool next_asked(struct round *r, struct lane *l, uint32_t number)
{
    if (!l->repairs || number >= r->lane[r->self].share || !bitmap_test(l->repair, number))
        return false;
    repair_done(l, number);
    return true;
}

/* What a member asked for of another owner's commits, and those behind it as far as they go together. */
static size_t fill_backup(struct set *s, struct round *r, const struct env *e, uint32_t rank, uint8_t *out,
                          sleet_time now)
{
    struct lane *l = &r->lane[rank];
    uint32_t slot = backup_next(r, l), f;
    const struct kept_commit *first = &r->backup.kept[slot], *k = first;
    struct packing p;
    begin(&p, &s->layout, first->fragment);
    for (bool more = backup_take(r, l, slot, now); more; more = backup_take(r, l, slot, now)) {
        memcpy(p.payload + p.bytes, backup_coded(s, r, slot), k->bytes);
        p.bytes += k->bytes;
        f = p.first + ++p.n;
        if (!fits(&p, &s->layout, f) || !r->backup.slot_of[f])
            break;
        slot = r->backup.slot_of[f] - 1;
        k = &r->backup.kept[slot];
        if (k->mask != first->mask || k->weight != first->weight)
            break;
    }
    e->counters->backup_out += p.n;
    struct wire_data d = {.phase = PHASE_BACKUP,
                          .weight = first->weight,
                          .mask = first->mask,
                          .sender_round = (uint32_t)s->own_round};
    d.flags = (first->mask >> rank & 1) ? DATA_YOURS : 0;
    if (!s->open || s->open->number != s->own_round)
        d.flags |= DATA_CLOSED;
    return finish(&p, &s->layout, r, rank, &d, out, 0);
}

struct codec_args scatter_args(const struct round *r, uint32_t fragment)
{
    const struct lane *owner = &r->lane[r->owner_of_run[fragment / RUN_FRAGMENTS]];
    return (struct codec_args){
        .seed = mix64(r->number ^ mix64(fragment ^ mix64(r->group.members[r->self].node_id))),
        .keep = links_kept(owner->keep)};
}

/* Add the node's own values to the packing; false when they are not finite, or not worth giving. */
static bool pack_own(struct packing *p, struct set *s, struct round *r, const struct env *e,
                     uint32_t fragment)
{
    uint32_t tensor, n;
    uint64_t offset;
    layout_locate(&s->layout, fragment, &tensor, &offset, &n);
    float sum[FRAGMENT_ELEMENTS];
    const float *x = carry_add(s, r, fragment, (const float *)r->send[tensor] + offset, sum);
    const struct codec_args args = scatter_args(r, fragment);
    if (!reduce_finite(x, n)) {
        e->counters->nonfinite++;
        return false;
    }
    if (!estimator_takes(&s->layout, tensor, x, n))
        return false;
    p->bytes += p->codec->encode(p->payload + p->bytes, x, n, &args);
    p->n++;
    if (r->sent)
        bitmap_set(r->sent, fragment);
    return true;
}

static size_t scatter_datagram(const struct packing *p, struct set *s, struct round *r, uint32_t rank,
                               uint8_t phase, uint8_t *out, sleet_time now)
{
    struct lane *l = &r->lane[rank];
    struct wire_data d = {.phase = phase,
                          .weight = (float)late_weight(s, r, p->tensor),
                          .time = (uint32_t)(now.ns / 1000),
                          .remaining = l->share - l->scatter_pos,
                          .sender_round = (uint32_t)s->own_round};
    l->scatter_sent_at = now;
    d.flags = (uint8_t)((d.remaining == 0 && !twice_waits(l) ? DATA_LAST : 0) | (r->exact ? DATA_EXACT : 0));
    return finish(p, &s->layout, r, rank, &d, out, 0);
}

/* Place i in the order of the share: units of `fit` fragments, strided, what is left at the end. */
static uint32_t walk(const struct round *r, const struct lane *l, uint32_t fit, uint32_t i)
{
    uint32_t units = l->share / fit;
    if (i >= units * fit)
        return i;
    uint32_t unit = order_at(i / fit, units, order_stride(units, r->number), (uint32_t)r->self % units);
    return unit * fit + i % fit;
}

static size_t next_scatter(struct set *s, struct round *r, const struct env *e, uint32_t rank,
                           uint8_t *out, sleet_time now)
{
    struct lane *l = &r->lane[rank];
    struct packing p = {.n = 0};
    while (!p.n && l->scatter_pos < l->share) {
        uint32_t fragment = r->frag[l->start + walk(r, l, r->fit, l->scatter_pos++)];
        begin(&p, &s->layout, fragment);
        if (!pack_own(&p, s, r, e, fragment))
            continue;
        while (l->scatter_pos < l->share) {
            fragment = r->frag[l->start + walk(r, l, r->fit, l->scatter_pos)];
            if (!fits(&p, &s->layout, fragment) || !pack_own(&p, s, r, e, fragment))
                break;
            l->scatter_pos++;
        }
    }
    size_t len = p.n ? scatter_datagram(&p, s, r, rank, PHASE_SCATTER, out, now) : 0;
    if (l->scatter_pos >= l->share)
        twice_queue(r, l);
    if (l->scatter_pos >= l->share && !twice_waits(l) && !parity_due(r, rank, PARITY_SCATTER))
        l->summary_due = true; /* say END */
    return len;
}

/* The next own fragment that its owner asked for again; NOT_DUE: none. */
static uint32_t next_scatter_hole(struct round *r, struct lane *l)
{
    for (uint32_t tries = 0; l->scatter_repairs && tries < l->share; tries++) {
        uint32_t f = r->frag[l->start + l->scatter_repair_pos % l->share];
        if (bitmap_test(r->scatter_again, f))
            return f;
        l->scatter_repair_pos++;
    }
    return NOT_DUE;
}

static void scatter_hole_done(struct round *r, struct lane *l, uint32_t fragment)
{
    bitmap_clear(r->scatter_again, fragment);
    l->scatter_repairs--;
    l->scatter_repair_pos++;
}

static size_t next_repair(struct set *s, struct round *r, const struct env *e, uint32_t rank,
                          uint8_t *out, uint64_t counter, sleet_time now)
{
    struct lane *l = &r->lane[rank];
    uint32_t mine = r->lane[r->self].share, f;
    if (l->repairs && !l->past) {
        uint32_t i = (uint32_t)bitmap_next(l->repair, l->repair_pos, mine);
        if (i == mine) /* from the start again */
            i = (uint32_t)bitmap_next(l->repair, 0, mine);
        repair_done(l, i);
        return fill_gather(s, r, rank, i, PHASE_REPAIR, next_asked, out, counter, now);
    }
    if (l->backup.gives)
        return fill_backup(s, r, e, rank, out, now);
    struct packing p = {.n = 0};
    while (scatter_open(r) && (f = next_scatter_hole(r, l)) != NOT_DUE) {
        if (!p.n)
            begin(&p, &s->layout, f);
        else if (!fits(&p, &s->layout, f))
            break;
        scatter_hole_done(r, l, f);
        if (!pack_own(&p, s, r, e, f) && p.n)
            break;
    }
    l->summary_due |= r->twice.chosen && !twice_waits(l) && l->scatter_pos >= l->share; /* END */
    return p.n ? scatter_datagram(&p, s, r, rank, PHASE_SCATTER_REPAIR, out, now) : 0;
}

size_t round_fill(struct set *s, struct round *r, const struct env *e, uint32_t rank, uint8_t *out,
                  uint64_t counter, sleet_time now)
{
    struct lane *l = &r->lane[rank];
    if (r->edges)
        return edge_fill(s, r, e, rank, out, now);
    if (l->past || !round_gathers(r))
        l->gather_pos = r->own.commits;
    if (parity_due(r, rank, PARITY_GATHER))
        return parity_fill(s, r, e, rank, PARITY_GATHER, out, counter, now);
    if (l->gather_pos < r->own.commits) {
        parity_decide(r, e, rank, PARITY_GATHER, now);
        uint32_t *pos, number = peek_commit(r, l, &pos);
        if (number != NOT_DUE) {
            ++*pos;
            size_t len = fill_gather(s, r, rank, number, PHASE_GATHER, next_commit, out, counter, now);
            peek_commit(r, l, &pos); /* the rest may all have gone ahead */
            l->summary_due |= gather_sent(r, e, rank);
            return len;
        }
    }
    size_t len = next_repair(s, r, e, rank, out, counter, now);
    if (len || !scatter_open(r))
        return len;
    if (parity_due(r, rank, PARITY_SCATTER))
        return parity_fill(s, r, e, rank, PARITY_SCATTER, out, counter, now);
    parity_decide(r, e, rank, PARITY_SCATTER, now);
    return next_scatter(s, r, e, rank, out, now);
}
