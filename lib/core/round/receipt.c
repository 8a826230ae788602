/* Where commits stay with their owners no mask comes back.  There an owner tells each contributor of a set with estimator
 * carry which of its contributions its trainer has in the result: when the round has closed, and again when it is asked
 * (SUMMARY_ASKS), a window of its share at a time, or of the whole set where the two have different lists, and so number the
 * share differently.  An owner that has skipped the round uses none.  What is told decides as a mask would, see carry.h. */
#include "base/bitmap.h"
#include "round/round.h"

bool receipt_gives(const struct set *s, const struct round *r, uint32_t rank)
{
    bool over = r->joined ? r->closed : s->own_round > r->number; /* the result is what it will be */
    return s->layout.kind.estimator == SLEET_CARRY && !round_gathers(r) && over && (int)rank != r->self;
}

void receipt_skip(struct set *s)
{
    for (uint32_t k = 0; k < ROUNDS_RING; k++) {
        struct round *r = s->ring[k];
        for (uint32_t i = 0; r && !r->joined && i < r->group.n; i++)
            r->lane[i].summary_due |= receipt_gives(s, r, i);
        if (r)
            r->quiet_until = (sleet_time){0};
    }
}

/* The contribution of the member is in the trainer's result. */
static bool uses(const struct round *r, uint32_t rank, uint32_t fragment)
{
    bool own = r->owner_of_run[fragment / RUN_FRAGMENTS] == r->self && r->number_of[fragment] != NOT_DUE;
    return own && bitmap_test(r->got, fragment) && !r->withheld && (r->own.mask[r->number_of[fragment]] >> rank & 1);
}

void receipt_fill(const struct set *s, struct round *r, uint32_t rank, struct wire_summary *w, uint8_t *bits)
{
    struct lane *l = &r->lane[rank];
    const struct lane *own = &r->lane[r->self];
    bool all = round_disagrees(r, rank);
    uint32_t of = all ? s->layout.fragments : own->share;
    w->flags |= SUMMARY_SCATTER_HOLES | SUMMARY_COMMITS_FINAL | (all ? SUMMARY_ALL : 0);
    w->first = l->receipt_pos < of ? l->receipt_pos : 0;
    w->bits = (uint16_t)(of - w->first < WIRE_SUMMARY_BITS_MAX ? of - w->first : WIRE_SUMMARY_BITS_MAX);
    for (uint32_t i = 0; i < w->bits; i++)
        if (!uses(r, rank, all ? w->first + i : r->frag[own->start + w->first + i]))
            bits[i / 8] |= (uint8_t)(1u << i % 8);
    l->receipt_pos = w->first + w->bits;
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
           r->closed && m->alive && m->boot_id == g->boot_id;
}

void receipt_recv(struct set *s, struct round *r, uint32_t rank, const struct wire_summary *w)
{
    struct lane *l = &r->lane[rank];
    bool all = w->flags & SUMMARY_ALL;
    uint32_t of = all ? s->layout.fragments : l->share;
    if (!r->residual || round_gathers(r) || !(all || w->group == r->group.hash))
        return;
    for (uint32_t i = 0; i < w->bits && w->first < of && i < of - w->first; i++) {
        uint32_t fragment = all ? w->first + i : r->frag[l->start + w->first + i];
        bool in = !(w->bitmap[i / 8] >> (i % 8) & 1), given = r->owner_of_run[fragment / RUN_FRAGMENTS] == rank;
        if (!given || r->number_of[fragment] == NOT_DUE || bitmap_test(r->decided, fragment))
            continue;
        bitmap_set(r->decided, fragment);
        if (in)
            bitmap_set(r->counted, fragment);
        l->receipts++;
        carry_decide(s, r, fragment, in);
    }
}
