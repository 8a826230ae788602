/* The object and its memory. */
#include "round/round.h"
#include "base/bitmap.h"
#include "tensor/order.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Among neighbours: in one row through all that are due. */
static void number_fragments(struct round *r, const struct layout *l, bool edges)
{
    uint32_t fill[SLEET_GROUP_MAX] = {0};
    if (edges)
        memset(r->owner_of_run, OWNER_NONE, l->runs);
    else
        owners_assign(&r->group, r->turn, l->runs, r->owner_of_run);
    for (uint32_t t = 0; t < l->n; t++) {
        const struct tensor *ten = &l->tensors[t];
        uint32_t fit = parts_fit(ten);
        r->fit = fit > r->fit ? fit : r->fit;
        for (uint32_t f = ten->first; f < ten->first + ten->fragments; f++) {
            r->number_of[f] = layout_due(l, ten, f, r->number) ? 0 : NOT_DUE;
            r->due += r->number_of[f] != NOT_DUE;
            if (!edges)
                r->lane[r->owner_of_run[f / RUN_FRAGMENTS]].share += r->number_of[f] != NOT_DUE;
        }
    }
    if (edges)
        memset(r->backup.of_run, OWNER_NONE, l->runs);
    else
        backups_assign(&r->group, r->turn, l->runs, r->owner_of_run, r->backup.of_run);
    for (uint32_t f = 0; f < l->fragments; f++)
        r->backup.share += r->number_of[f] != NOT_DUE && r->backup.of_run[f / RUN_FRAGMENTS] == r->self;
    r->wanted = edges || round_gathers(r) ? r->due : r->lane[r->self].share;
    for (uint32_t i = 1; i < r->group.n; i++)
        r->lane[i].start = r->lane[i - 1].start + r->lane[i - 1].share;
    for (uint32_t f = 0; f < l->fragments; f++) {
        uint32_t o = edges ? 0 : r->owner_of_run[f / RUN_FRAGMENTS];
        if (r->number_of[f] == NOT_DUE)
            continue;
        r->number_of[f] = fill[o];
        r->frag[r->lane[o].start + fill[o]++] = f;
    }
}

struct round *round_new(const struct layout *l, const struct plan *p, int self, uint64_t number,
                        sleet_time now)
{
    const struct group *g = &p->group;
    struct round *r = calloc(1, sizeof *r);
    if (!r)
        return NULL;
    size_t words = bitmap_words(l->fragments);
    r->group = *g;
    r->self = self;
    r->number = number;
    r->exchange = l->kind.exchange;
    r->turn = r->exchange == SLEET_ALL_REDUCE ? number : 0;
    r->contributes = g->members[self].contributes;
    memcpy(r->people, g->members, g->n * sizeof g->members[0]);
    r->people_n = g->n;
    r->parity_room = parity_room(l, g->n);
    r->owner_of_run = calloc((size_t)l->runs + 1, 1);
    r->backup.of_run = calloc((size_t)l->runs + 1, 1);
    r->frag = calloc((size_t)l->fragments + 1, sizeof *r->frag);
    r->number_of = calloc((size_t)l->fragments + 1, sizeof *r->number_of);
    r->got = calloc(words + 1, 8);
    r->scatter_again = calloc(words + 1, 8);
    r->held = calloc((size_t)l->fragments + 1, sizeof *r->held);
    if (!r->owner_of_run || !r->backup.of_run || !r->frag || !r->number_of || !r->got || !r->scatter_again ||
        !r->held)
        goto fail;
    r->started = now;
    number_fragments(r, l, p->edges);
    if (p->edges && !edge_new(r, l, p))
        goto fail;
    struct owner_side *o = &r->own;
    if (r->lane[self].share)
        o->foreign_max = l->fragments / g->n + 2 * RUN_FRAGMENTS;
    size_t numbers = (size_t)owner_numbers(r) + 1;
    o->acc = calloc(numbers, sizeof *o->acc);
    o->wsum = calloc(numbers, sizeof *o->wsum);
    o->mask = calloc(numbers, sizeof *o->mask);
    o->order = calloc(numbers, sizeof *o->order);
    if (!o->acc || !o->wsum || !o->mask || !o->order)
        goto fail;
    o->final = r->lane[self].share == 0;
    o->first_seen = o->grace_at = o->until = o->turn_at = TIME_NEVER;
    for (uint32_t i = 0; i < g->n; i++) {
        r->lane[i].summary_at = group_auxiliary(&g->members[self]) ? now : TIME_NEVER; /* else once it has joined */
        r->lane[i].gather_sent_at = now;
        r->lane[i].past = group_auxiliary(&g->members[i]); /* it wants none of the result */
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
    parity_free(r);
    edge_free(r);
    for (uint32_t i = 0; i < SLEET_GROUP_MAX; i++) {
        free(r->lane[i].sent_at);
        free(r->lane[i].repair);
        free(r->lane[i].backup.give);
    }
    for (uint32_t i = 0; r->own.acc && i < r->lane[r->self].share + r->own.foreign_n; i++)
        free(r->own.acc[i]);
    if (r->own.wsum) /* the group is there */
        clip_drop_suspects(&r->own, owner_numbers(r));
    free(r->own.acc);
    free(r->own.wsum);
    free(r->own.mask);
    free(r->own.commit);
    free(r->own.coded);
    free(r->own.order);
    free(r->own.foreign);
    free(r->own.foreign_of);
    free(r->held);
    free(r->extra);
    free(r->extra_of);
    free(r->send);
    free(r->residual);
    free(r->sent);
    free(r->decided);
    free(r->counted);
    free(r->result);
    free(r->owner_of_run);
    free(r->backup.of_run);
    free(r->backup.slot_of);
    free(r->backup.kept);
    free(r->backup.coded);
    free(r->frag);
    free(r->number_of);
    free(r->got);
    free(r->scatter_again);
    free(r->twice.energy);
    free(r->twice.chosen);
    free(r);
}

uint64_t round_bytes_bound(const struct layout *l, uint32_t members)
{
    uint64_t frags = (uint64_t)l->fragments;
    uint64_t share = members > 1 ? frags : 0; /* rendezvous may give one member everything */
    uint64_t extras = members > 1 ? frags / members + 2 * RUN_FRAGMENTS : 0;
    /* What is kept as a backup is of other runs, and takes less than those that are owned. */
    static_assert(sizeof(struct kept_commit) + 8 <= 50, "a slot and its bits");
    return sizeof(struct round) + frags * 45 + parity_bytes_bound(l, members) + edge_bytes_bound(l, members) +
           (share + extras) * (FRAGMENT_ELEMENTS * 8 + l->coded + 50 + members * 5) +
           2 * extras * sizeof(struct extra) + (uint64_t)l->n * 16;
}
