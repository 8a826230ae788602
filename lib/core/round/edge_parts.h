/* edge_parts.h - what the files of rounds among neighbours share.
 *   edge.c        the object, values in
 *   edge_send.c   values out, and who has what
 *   edge_close.c  the end, and what is decided after it */
#ifndef ROUND_EDGE_PARTS_H
#define ROUND_EDGE_PARTS_H
#include "base/bitmap.h"
#include "round/round.h"
#include <stdlib.h>

#define ASK_GAP MS(10) /* between answers to a neighbour that asks */
#define BIT(rank) ((uint64_t)1 << (rank))

static inline struct member *edge_member(const struct round *r, const struct env *e, uint32_t rank)
{
    return &e->members[r->group.members[rank].slot];
}

static inline const float *edge_own(const struct set *s, const struct round *r, uint32_t number, uint32_t *n)
{
    uint32_t tensor;
    uint64_t offset;
    layout_locate(&s->layout, r->frag[number], &tensor, &offset, n);
    return (const float *)r->send[tensor] + offset;
}

static inline bool edge_open(const struct round *r)
{
    return r->joined && r->prepared && !r->closing && !r->closed;
}

static inline uint64_t edge_segment(const struct edges *g, const struct layout *l, uint32_t fragment)
{
    return UINT64_C(1) << (uint64_t)(fragment / RUN_FRAGMENTS) * g->segments / (l->runs ? l->runs : 1);
}

/* Among the fragments of a lane: does the number come, does it go? */
static inline bool edge_comes(const struct set *s, const struct round *r, uint32_t rank, uint32_t number)
{
    const struct edges *g = r->edges;
    return g->lane[rank].low || (g->edge[rank].in & edge_segment(g, &s->layout, r->frag[number]));
}

static inline bool edge_goes(const struct set *s, const struct round *r, uint32_t rank, uint32_t number)
{
    const struct edges *g = r->edges;
    return g->lane[rank].low || (g->edge[rank].out & edge_segment(g, &s->layout, r->frag[number]));
}

/* Both take of each other, or neither; a joiner only takes. */
static inline bool edge_two_way(const struct edges *g, uint32_t rank)
{
    return g->atomic && g->edge[rank].in && g->edge[rank].out;
}

static inline bool edge_counts(const struct edges *g, uint32_t rank, uint32_t number)
{
    return !edge_two_way(g, rank) || bitmap_test(g->lane[rank].told, number);
}

static inline void edge_drop_kept(struct edge_lane *l, uint32_t number)
{
    l->kept_n -= l->kept && l->kept[number];
    if (l->kept) {
        free(l->kept[number]);
        l->kept[number] = NULL;
    }
}

/* Nothing more is to come of it. */
static inline bool edge_over(const struct edge_lane *l)
{
    return l->apart || (l->low && l->low->over);
}

/* Take what waits, as far as it may be taken. */
void edge_take_kept(const struct set *, struct round *, uint32_t rank);
/* Begin with the edges of low rank whose older rounds are decided. */
void edge_open_low(struct set *, struct round *);
#endif
