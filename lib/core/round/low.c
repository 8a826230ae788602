/* Edges of low rank: see low.h. */
#include "base/bitmap.h"
#include "base/rng.h"
#include "round/round.h"
#include "tensor/reduce.h"
#include <stdlib.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#define EPOCH 64 /* rounds: ends that begin anew in one of them do so alike */

static uint64_t node_of(const struct round *r, uint32_t rank)
{
    return r->group.members[rank].node_id;
}

static void drop_vectors(struct low_lane *w)
{
    free(w->theirs);
    free(w->made);
    w->theirs = NULL;
    w->made = NULL;
}

static void lane_free(struct low_lane *w)
{
    if (!w)
        return;
    drop_vectors(w);
    free(w->own);
    free(w->sides);
    power_map_free(w->map);
    free(w);
}

struct low_lane *low_lane_new(struct power_map *map)
{
    struct low_lane *w = calloc(1, sizeof *w);
    if (!w)
        return NULL;
    w->map = map;
    map->users++;
    return w;
}

void low_lanes_free(struct low_lane *w)
{
    while (w) {
        struct low_lane *next = w->next;
        lane_free(w);
        w = next;
    }
}

uint32_t low_fragments(const struct power_map *m)
{
    return (uint32_t)(m->floats / FRAGMENT_ELEMENTS + (m->floats % FRAGMENT_ELEMENTS != 0));
}

uint32_t low_elements(const struct low_lane *w, uint32_t number)
{
    uint64_t left = w->map->floats - (uint64_t)number * FRAGMENT_ELEMENTS;
    return left < FRAGMENT_ELEMENTS ? (uint32_t)left : FRAGMENT_ELEMENTS;
}

/* ---- what is kept of an edge */

static struct low_edge *find(struct low *low, uint64_t node)
{
    for (uint32_t i = 0; i < LOW_EDGES; i++)
        if (low->edge[i].node == node)
            return &low->edge[i];
    return NULL;
}

/* Both ends begin with the same sides, whichever of them was there first. */
static void begin(struct low_edge *k, const struct round *r, const struct power_map *m)
{
    uint64_t self = node_of(r, (uint32_t)r->self);
    uint64_t low = self < k->node ? self : k->node, high = self < k->node ? k->node : self;
    uint64_t seed = mix64(low ^ mix64(high ^ mix64(r->number / EPOCH + 1)));
    power_begin(m, seed, k->sides);
    k->tag = (uint32_t)seed | 1;
    k->round = 0;
}

/* The edge's, made if it is new; NULL: out of memory, or all are in use. */
static struct low_edge *edge_of(struct low *low, const struct round *r, uint32_t rank)
{
    const struct power_map *m = r->edges->lane[rank].low->map;
    struct low_edge *k = find(low, node_of(r, rank));
    if (k && k->floats == m->sides)
        return k;
    if (k && k->round)
        return NULL;
    if (k) { /* the rank was another one */
        free(k->sides);
        *k = (struct low_edge){0};
    }
    for (uint32_t i = 0; i < LOW_EDGES; i++) /* in the place of the one that was not used for longest */
        if (!low->edge[i].round && (!k || low->edge[i].used < k->used))
            k = &low->edge[i];
    float *sides = k ? realloc(k->sides, (m->sides + 1) * sizeof *sides) : NULL;
    if (!sides)
        return NULL;
    k->sides = sides;
    k->node = node_of(r, rank);
    k->floats = m->sides;
    begin(k, r, m);
    return k;
}

/* ---- in a round */

/* Nothing comes of it.  `doubt`: nor is it known whether the other end goes on from the same sides. */
static void give_up(struct set *s, struct round *r, uint32_t rank, bool doubt)
{
    struct low_lane *w = r->edges->lane[rank].low;
    struct low_edge *k = find(&s->low, node_of(r, rank));
    bool mine = k && k->round == r->number;
    w->over = true;
    drop_vectors(w);
    if (mine)
        k->round = 0;
    if (doubt && mine)
        begin(k, r, w->map);
}

bool low_pending(const struct edge_lane *l)
{
    return l->low && l->low->open && !l->low->counts && !l->low->over;
}

/* The larger id's vector less the smaller's, the same bits at both ends. */
static bool subtract(struct low_lane *w, bool larger)
{
    bool finite = true;
    for (uint64_t i = 0; i < w->map->floats; i++)
        w->own[i] = larger ? w->own[i] - w->theirs[i] : w->theirs[i] - w->own[i];
    for (uint64_t i = 0; finite && i < w->map->floats; i += FRAGMENT_ELEMENTS)
        finite = reduce_finite(w->own + i, low_elements(w, (uint32_t)(i / FRAGMENT_ELEMENTS)));
    return finite;
}

/* The result is made: the step goes into the next. */
static void come_late(struct set *s, struct edge_lane *l)
{
    struct low_lane *w = l->low, *step = malloc(sizeof *step);
    if (!step) {
        s->edge_late.dropped += l->n;
        return;
    }
    *step = *w;
    step->map->users++;
    step->next = s->low.late;
    s->low.late = step;
    s->edge_late.added += l->n;
    w->own = w->sides = NULL;
}

/* Both have all of it.  `there`: the tag that the other end has come to, 0: unknown. */
static void count(struct set *s, struct round *r, uint32_t rank, uint32_t there)
{
    struct edge_lane *l = &r->edges->lane[rank];
    struct low_lane *w = l->low;
    struct low_edge *k = find(&s->low, node_of(r, rank));
    bool larger = node_of(r, (uint32_t)r->self) > node_of(r, rank);
    if (!k || k->round != r->number || !subtract(w, larger)) { /* the other end comes to the same */
        give_up(s, r, rank, false);
        return;
    }
    uint64_t hash = XXH3_64bits_withSeed(w->own, w->map->floats * sizeof *w->own, k->tag);
    uint32_t tag = (uint32_t)mix64(hash ^ r->number) | 1;
    if (there && there != tag) {
        s->edge_late.dropped += l->n;
        give_up(s, r, rank, true);
        return;
    }
    w->counts = true;
    w->weight = r->edges->edge[rank].weight * (larger ? -1 : 1);
    k->tag = tag;
    k->round = 0;
    power_turn(w->map, w->own, k->tag, k->sides);
    drop_vectors(w);
    if (r->closed)
        come_late(s, l);
}

void low_settle(struct set *s, struct round *r, uint32_t rank, bool shut)
{
    struct edge_lane *l = &r->edges->lane[rank];
    const struct low_lane *w = l->low;
    bool all = l->got_n == l->in, heard = l->told_n == l->out;
    if (!w->open || w->counts || w->over)
        return;
    if (all && heard) {
        count(s, r, rank, 0);
    } else if (!heard && shut) {
        give_up(s, r, rank, false); /* it closed the round without ours */
    }
}

/* The other end has gone on to a later round, so it knows of the undecided one; its tag tells. */
static void learn(struct set *s, const struct low_edge *k, uint32_t tag)
{
    struct round *r = set_find(s, k->round);
    int rank = r && r->edges ? group_rank(&r->group, k->node) : -1;
    if (rank < 0 || !r->closed || !low_pending(&r->edges->lane[rank]))
        return;
    if (tag == k->tag)
        give_up(s, r, (uint32_t)rank, false);
    else
        count(s, r, (uint32_t)rank, tag);
}

static bool prepare(struct low_lane *w, const struct low_edge *k)
{
    w->own = malloc((w->map->floats + 1) * sizeof *w->own);
    w->sides = malloc((w->map->sides + 1) * sizeof *w->sides);
    w->made = calloc(bitmap_words(low_fragments(w->map)) + 1, 8);
    if (!w->own || !w->sides || !w->made)
        return false;
    memcpy(w->sides, k->sides, w->map->sides * sizeof *w->sides);
    w->tag = k->tag;
    return true;
}

bool low_open(struct set *s, struct round *r, uint32_t rank)
{
    struct low_lane *w = r->edges->lane[rank].low;
    struct low_edge *k = w->open || w->over ? NULL : edge_of(&s->low, r, rank);
    if (k && k->round && w->tagged)
        learn(s, k, w->tag_there);
    if (!k || k->round)
        return false;
    if (!prepare(w, k)) {
        give_up(s, r, rank, false);
        return false;
    }
    w->open = true;
    k->round = k->used = r->number;
    if (w->tagged && w->tag_there != w->tag)
        give_up(s, r, rank, true);
    return true;
}

/* n values of the vector that goes out, from the node's own. */
const float *low_own(const struct round *r, struct low_lane *w, uint32_t number)
{
    float *out = w->own + (size_t)number * FRAGMENT_ELEMENTS;
    if (w->made && !bitmap_test(w->made, number)) {
        power_make(w->map, w->sides, r->send, (uint64_t)number * FRAGMENT_ELEMENTS, low_elements(w, number), out);
        bitmap_set(w->made, number);
    }
    return out;
}

bool low_take(struct set *s, struct round *r, uint32_t rank, uint32_t number, uint32_t tag, const float *x)
{
    struct low_lane *w = r->edges->lane[rank].low;
    if (w->over || (w->tagged && tag != w->tag_there))
        return false;
    w->tagged = true;
    w->tag_there = tag;
    if (w->open && tag != w->tag) {
        give_up(s, r, rank, true);
        return false;
    }
    if (!w->theirs && !(w->theirs = malloc((w->map->floats + 1) * sizeof *w->theirs)))
        return false;
    memcpy(w->theirs + (size_t)number * FRAGMENT_ELEMENTS, x, low_elements(w, number) * sizeof *x);
    return true;
}

void low_last_call(struct set *s, struct round *r, uint32_t rank)
{
    struct edge_lane *l = &r->edges->lane[rank];
    if (low_pending(l) && !r->edges->atomic && l->got_n == l->in)
        count(s, r, rank, 0);
}

void low_close(struct set *s, struct round *r, uint32_t rank)
{
    struct edge_lane *l = &r->edges->lane[rank];
    struct low_lane *w = l->low;
    if (w && w->counts) { /* it is in the result */
        free(w->own);
        free(w->sides);
        w->own = w->sides = NULL;
    }
    if (w && !w->counts && !w->over && (!w->open || l->got_n < l->in))
        give_up(s, r, rank, false);
}

void low_withdraw(struct set *s, struct round *r, uint32_t rank)
{
    if (r->edges->lane[rank].low)
        give_up(s, r, rank, false);
}

void low_retire(struct set *s, struct round *r, uint32_t rank)
{
    struct edge_lane *l = &r->edges->lane[rank];
    if (!low_pending(l))
        return;
    s->edge_late.dropped += l->n;
    give_up(s, r, rank, true);
}

void low_apply(const struct low_lane *w, uint32_t tensor, uint64_t offset, uint32_t n, double *sum)
{
    power_apply(w->map, w->sides, w->own, w->weight, tensor, offset, n, sum);
}

void low_drop(struct set *s)
{
    for (uint32_t i = 0; i < LOW_EDGES; i++)
        free(s->low.edge[i].sides);
    low_lanes_free(s->low.late);
    s->low = (struct low){0};
}

uint64_t low_kept_bytes(const struct low *low)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < LOW_EDGES; i++)
        bytes += low->edge[i].floats * sizeof *low->edge[i].sides;
    return bytes;
}

uint64_t low_round_bytes_bound(const struct layout *l, uint32_t edges)
{
    uint32_t rank = kind_rank(&l->kind);
    uint64_t floats = rank ? power_floats_max(l, rank) : 0, sides = rank ? power_sides(l, rank) : 0;
    return rank ? edges * (sizeof(struct low_lane) + 64 + 4 * (2 * floats + sides) + floats / 1024) : 0;
}

uint64_t low_bytes_bound(const struct layout *l)
{
    uint32_t rank = kind_rank(&l->kind);
    return rank ? LOW_EDGES * 4 * (power_sides(l, rank) + 1) : 0;
}
