/* Where commits stay with their owners no mask comes back.  There an owner tells each contributor of a set with estimator
 * carry which of its contributions its trainer has in the result: when the round has closed, and again when it is asked
 * (SUMMARY_ASKS), a window of its share at a time.  An owner that has skipped the round has none.  What is told decides as
 * a mask would, see carry.h. */
#include "base/bitmap.h"
#include "round/round.h"

bool receipt_gives(const struct set *s, const struct round *r, uint32_t rank)
{
    bool over = r->joined ? r->closed : s->own_round > r->number; /* the result is what it will be */
    return s->layout.kind.estimator == SLEET_CARRY && !round_gathers(r) && over && (int)rank != r->self &&
           !round_disagrees(r, rank);
}

void receipt_fill(struct round *r, uint32_t rank, struct wire_summary *w, uint8_t *bits)
{
    struct lane *l = &r->lane[rank];
    const struct lane *own = &r->lane[r->self];
    uint32_t left = own->share - l->receipt_pos;
    w->flags |= SUMMARY_SCATTER_HOLES | SUMMARY_COMMITS_FINAL;
    w->first = l->receipt_pos;
    w->bits = (uint16_t)(left < WIRE_SUMMARY_BITS_MAX ? left : WIRE_SUMMARY_BITS_MAX);
    for (uint32_t i = 0; i < w->bits; i++) {
        uint32_t number = w->first + i;
        bool used = bitmap_test(r->got, r->frag[own->start + number]) && !r->withheld;
        if (!used || !(r->own.mask[number] >> rank & 1))
            bits[i / 8] |= (uint8_t)(1u << i % 8);
    }
    l->receipt_pos = w->bits < left ? l->receipt_pos + w->bits : 0;
}

bool receipt_is(const struct wire_summary *w)
{
    return (w->flags & SUMMARY_SCATTER_HOLES) && (w->flags & SUMMARY_COMMITS_FINAL);
}

bool receipt_wanted(const struct round *r, const struct env *e, uint32_t rank)
{
    const struct lane *l = &r->lane[rank];
    const struct group_member *g = &r->group.members[rank];
    const struct member *m = &e->members[g->slot];
    return r->residual && !round_gathers(r) && (int)rank != r->self && l->receipts < l->share && l->scatter_pos > 0 &&
           (r->closed || l->scatter_pos >= l->share) && m->alive && m->boot_id == g->boot_id && !round_disagrees(r, rank);
}

void receipt_recv(struct set *s, struct round *r, uint32_t rank, const struct wire_summary *w)
{
    struct lane *l = &r->lane[rank];
    if (!r->residual || round_gathers(r))
        return;
    for (uint32_t i = 0; i < w->bits && w->first < l->share && i < l->share - w->first; i++) {
        uint32_t fragment = r->frag[l->start + w->first + i];
        bool in = !(w->bitmap[i / 8] >> (i % 8) & 1);
        if (bitmap_test(r->decided, fragment))
            continue;
        bitmap_set(r->decided, fragment);
        if (in)
            bitmap_set(r->counted, fragment);
        l->receipts++;
        carry_decide(s, r, fragment, in);
    }
}
