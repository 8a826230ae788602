/* The object and its memory. */
#include "round/round.h"
#include "base/bitmap.h"
#include "tensor/order.h"
#include <stdlib.h>
#include <string.h>

static void number_fragments(struct round *r, const struct layout *l)
{
    uint32_t fill[SLEET_GROUP_MAX] = {0};
    owners_assign(&r->group, r->number, l->runs, r->owner_of_run);
    for (uint32_t f = 0; f < l->fragments; f++)
        r->lane[r->owner_of_run[f / RUN_FRAGMENTS]].share++;
    for (uint32_t i = 1; i < r->group.n; i++)
        r->lane[i].start = r->lane[i - 1].start + r->lane[i - 1].share;
    for (uint32_t f = 0; f < l->fragments; f++) {
        uint32_t o = r->owner_of_run[f / RUN_FRAGMENTS];
        r->number_of[f] = fill[o];
        r->frag[r->lane[o].start + fill[o]++] = f;
    }
}

struct round *round_new(const struct layout *l, const struct group *g, int self, uint64_t number,
                        sleet_time now)
{
    struct round *r = calloc(1, sizeof *r);
    if (!r)
        return NULL;
    size_t words = bitmap_words(l->fragments);
    r->group = *g;
    r->self = self;
    r->number = number;
    r->contributes = g->members[self].contributes;
    r->owner_of_run = calloc((size_t)l->runs + 1, 1);
    r->frag = calloc((size_t)l->fragments + 1, sizeof *r->frag);
    r->number_of = calloc((size_t)l->fragments + 1, sizeof *r->number_of);
    r->got = calloc(words + 1, 8);
    r->scatter_again = calloc(words + 1, 8);
    if (!r->owner_of_run || !r->frag || !r->number_of || !r->got || !r->scatter_again)
        goto fail;
    number_fragments(r, l);
    uint32_t mine = r->lane[self].share;
    struct owner_side *o = &r->own;
    o->acc = calloc((size_t)mine + 1, sizeof *o->acc);
    o->wsum = calloc((size_t)mine + 1, sizeof *o->wsum);
    o->mask = calloc((size_t)mine + 1, sizeof *o->mask);
    o->order = calloc((size_t)mine + 1, sizeof *o->order);
    if (!o->acc || !o->wsum || !o->mask || !o->order)
        goto fail;
    o->final = mine == 0;
    o->first_seen = o->grace_at = TIME_NEVER;
    for (uint32_t i = 0; i < g->n; i++) {
        r->lane[i].summary_at = TIME_NEVER;
        r->lane[i].gather_sent_at = now;
        r->lane[i].summary_gap = MS(1);
    }
    return r;
fail:
    round_free(r);
    return NULL;
}

void round_free(struct round *r)
{
    if (!r)
        return;
    for (uint32_t i = 0; i < SLEET_GROUP_MAX; i++) {
        free(r->lane[i].sent_at);
        free(r->lane[i].repair);
    }
    for (uint32_t i = 0; r->own.acc && i < r->lane[r->self].share; i++)
        free(r->own.acc[i]);
    free(r->own.acc);
    free(r->own.wsum);
    free(r->own.mask);
    free(r->own.commit);
    free(r->own.order);
    free(r->send);
    free(r->result);
    free(r->owner_of_run);
    free(r->frag);
    free(r->number_of);
    free(r->got);
    free(r->scatter_again);
    free(r);
}

uint64_t round_bytes_bound(const struct layout *l, uint32_t members)
{
    uint64_t frags = (uint64_t)l->fragments;
    uint64_t share = members > 1 ? frags : 0; /* rendezvous may give one member everything */
    return sizeof(struct round) + frags * 10 + share * (FRAGMENT_ELEMENTS * 12 + 48) +
           share * members * 5 + (uint64_t)l->n * 16;
}
