#include "round/late.h"
#include "base/bitmap.h"
#include "codec/codec.h"
#include "round/round.h"
#include <stdlib.h>

#define FOLLOW_MAX 64 /* rounds for a trainer that does not come */
#define LATE_WEIGHT 0x1p-20

void late_drop(struct late *l)
{
    free(l->sum);
    free(l->has);
    *l = (struct late){0};
}

uint64_t late_bytes_bound(const struct layout *l)
{
    return late_serves(l) ? (uint64_t)l->fragments * FRAGMENT_ELEMENTS * sizeof(float) +
                                bitmap_words(l->fragments) * 8
                          : 0;
}

static bool wanted(const struct set *s, const struct round *r, uint32_t fragment)
{
    uint32_t tensor, n;
    uint64_t offset;
    if (r->number_of[fragment] == NOT_DUE || bitmap_test(r->got, fragment))
        return false;
    layout_locate(&s->layout, fragment, &tensor, &offset, &n);
    return layout_additive(&s->layout, tensor);
}

/* To be added to the next result; false when out of memory, or rotated otherwise than that will be. */
static bool keep(struct set *s, const struct round *r, uint32_t fragment, const float *x, uint32_t n)
{
    struct late *l = &s->late;
    uint64_t offset, turn = rotated_turn(s->own_round);
    uint32_t tensor;
    layout_locate(&s->layout, fragment, &tensor, &offset, &n);
    if (rotated_tensor(&s->layout, tensor) && rotated_turn(r->number) != turn)
        return false;
    l->turn = turn;
    if (!l->sum) /* pages that are not written cost nothing */
        l->sum = malloc(((size_t)s->layout.fragments * FRAGMENT_ELEMENTS + 1) * sizeof *l->sum);
    if (!l->has)
        l->has = calloc(bitmap_words(s->layout.fragments) + 1, 8);
    if (!l->sum || !l->has)
        return false;
    float *sum = l->sum + (size_t)fragment * FRAGMENT_ELEMENTS;
    bool more = bitmap_test(l->has, fragment);
    for (uint32_t i = 0; i < n; i++)
        sum[i] = more ? sum[i] + x[i] : x[i];
    bitmap_set(l->has, fragment);
    l->n += !more;
    return true;
}

void late_note_hole(const struct set *s, struct round *r, uint32_t fragment)
{
    if (late_serves(&s->layout) && wanted(s, r, fragment))
        r->lane[r->owner_of_run[fragment / RUN_FRAGMENTS]].holes++;
}

uint64_t late_known(const struct set *s)
{
    const struct late *l = &s->late;
    return l->lineage == s->lineage && l->followed > s->own_round ? l->followed : s->own_round;
}

void late_skip(struct set *s, const struct env *e, uint64_t next, sleet_time now)
{
    uint64_t known = late_known(s);
    if (!late_serves(&s->layout) || !s->own_round || !s->established || next > known + e->config->window + 1)
        return;
    for (uint64_t number = known + 1; number < next; number++) {
        s->late.followed = number;
        s->late.lineage = s->lineage;
        struct round *r = set_pin(s, e, number, now);
        if (!r || r->joined)
            continue;
        r->joined = r->closed = r->prepared = true;
        r->contributes = false;
        for (uint32_t f = 0; f < s->layout.fragments; f++)
            late_note_hole(s, r, f);
        for (uint32_t i = 0; i < r->group.n; i++) {
            r->lane[i].summary_due = (int)i != r->self;
            r->lane[i].summary_gap = MS(1);
        }
        late_own(s, r);
    }
}

/* A tensor of state beside one that is added to it. */
static bool is_beside(const struct set *s, uint32_t tensor)
{
    return kind_additive(&s->layout.kind) && !layout_additive(&s->layout, tensor);
}

bool late_tells_weight(const struct set *s, uint32_t fragment)
{
    uint32_t tensor, n;
    uint64_t offset;
    layout_locate(&s->layout, fragment, &tensor, &offset, &n);
    return !is_beside(s, tensor);
}

double late_weight(const struct set *s, const struct round *r, uint32_t tensor)
{
    bool old = r->skipped && is_beside(s, tensor);
    return old ? r->weight * LATE_WEIGHT : r->weight;
}

void late_follow(struct set *s, const struct env *e, sleet_time now)
{
    if (!s->attached || !quorum_leaves_out(s) || s->open || s->waiting || s->alone.active)
        return;
    uint64_t next = set_others(s, e).second;
    if (next <= s->own_round + FOLLOW_MAX)
        late_skip(s, e, next, now);
}

bool late_wants(const struct set *s, const struct round *r, const struct env *e, uint32_t rank)
{
    const struct lane *l = &r->lane[rank];
    const struct group_member *g = &r->group.members[rank];
    const struct member *m = &e->members[g->slot];
    uint32_t got = l->got_direct + l->got_repaired + l->got_late;
    return r->closed && l->holes && !r->mixed && !r->withheld && !e->config->repair_off &&
           late_serves(&s->layout) && (int)rank != r->self && m->alive && m->boot_id == g->boot_id &&
           !(l->commits_final && got >= l->commits_told);
}

bool late_is_hole(const struct set *s, const struct round *r, uint32_t fragment)
{
    return wanted(s, r, fragment);
}

enum fate late_recv(struct set *s, struct round *r, const struct env *e, uint32_t rank,
                    const struct held *h, const struct part *part)
{
    struct lane *l = &r->lane[rank];
    if (!r->closed || r->withheld || !late_serves(&s->layout))
        return FATE_STALE;
    if (bitmap_test(r->got, part->fragment))
        return FATE_ACCEPTED; /* it is in a result */
    if (!l->holes || !wanted(s, r, part->fragment) ||
        clip_excess(s, r, e, part->fragment, h, part->x) > 1 ||
        !keep(s, r, part->fragment, part->x, part->n))
        return FATE_STALE;
    bitmap_set(r->got, part->fragment);
    r->got_n++;
    l->holes--;
    l->summary_gap = MS(1);
    return FATE_ACCEPTED;
}

void late_own(struct set *s, struct round *r)
{
    uint32_t share = r->lane[r->self].share;
    if (!late_serves(&s->layout) || !r->joined || !r->own.commit)
        return;
    for (; r->own.taken < r->own.commits; r->own.taken++) {
        uint32_t number = r->own.order[r->own.taken], tensor, n, bytes;
        uint32_t fragment = owner_fragment(r, number);
        uint64_t offset;
        float x[FRAGMENT_ELEMENTS];
        if (number < share)
            carry_decide(s, r, fragment, r->own.mask[number] >> r->self & 1);
        if (number >= share || r->withheld || !wanted(s, r, fragment))
            continue;
        layout_locate(&s->layout, fragment, &tensor, &offset, &n);
        const uint8_t *coded = owner_coded(s, r, number, &bytes);
        codec_by_id((uint8_t)s->layout.tensors[tensor].codec)->decode(x, coded, bytes, n);
        if (keep(s, r, fragment, x, n)) {
            bitmap_set(r->got, fragment);
            r->got_n++;
        }
    }
}

bool late_fold(struct set *s, void *const *result, const struct round *r, uint32_t *folded)
{
    struct late *l = &s->late;
    for (uint32_t i = 0; l->n && i < SLICE_FRAGMENTS && l->next < s->layout.fragments; i++) {
        uint32_t tensor, n, f = (uint32_t)bitmap_next(l->has, l->next, s->layout.fragments);
        uint64_t offset;
        l->next = f + 1;
        if (f == s->layout.fragments)
            break;
        layout_locate(&s->layout, f, &tensor, &offset, &n);
        float *out = (float *)result[tensor] + offset;
        const float *sum = l->sum + (size_t)f * FRAGMENT_ELEMENTS;
        bool same = !rotated_tensor(&s->layout, tensor) || (r && l->turn == rotated_turn(r->number));
        for (uint32_t k = 0; same && k < n; k++)
            out[k] += sum[k];
        bitmap_clear(l->has, f);
        l->n--;
        *folded += same;
    }
    if (l->n && l->next < s->layout.fragments)
        return false;
    l->next = 0;
    return true;
}
