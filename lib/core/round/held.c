/* The commits a member holds.  Where all pinned one group there is one a fragment.
 * Where they did not there may be several, of different owners: each contributor
 * gave its fragment to one owner only, so their contributors are disjoint and the
 * result is their weighted mean (with an estimator that divides by the weight of all, their sum), taken in the order of the owners' ids, so that
 * all who hold the same commits get the same bits. */
#include "round/round.h"
#include "tensor/reduce.h"
#include <stdlib.h>
#include <string.h>

#define PARTS_MAX 8 /* commits of one fragment */

/* A node's life as a bit of `held.who`: the group's members by rank, then others as they
 * are met; -1 when 64 are known. */
static int person(struct round *r, const struct group_member *m)
{
    for (uint32_t i = 0; i < r->people_n; i++)
        if (r->people[i].node_id == m->node_id && r->people[i].boot_id == m->boot_id)
            return (int)i;
    if (r->people_n == SLEET_GROUP_MAX)
        return -1;
    r->people[r->people_n] = *m;
    return (int)r->people_n++;
}

bool held_who(struct round *r, const struct group *g, uint64_t mask, uint64_t *who)
{
    uint64_t all = g->n == 64 ? ~(uint64_t)0 : ((uint64_t)1 << g->n) - 1;
    if (!mask || (mask & ~all))
        return false;
    *who = mask;
    if (g->hash == r->group.hash)
        return true;
    for (*who = 0; mask; mask &= mask - 1) {
        int i = person(r, &g->members[__builtin_ctzll(mask)]);
        if (i < 0)
            return false;
        *who |= (uint64_t)1 << i;
    }
    return true;
}

static void write_values(struct set *s, struct round *r, uint32_t fragment, const float *x)
{
    uint32_t tensor, n;
    uint64_t offset;
    layout_locate(&s->layout, fragment, &tensor, &offset, &n);
    memcpy((float *)r->result[tensor] + offset, x, n * sizeof(float));
}

/* Another owner's commit of a fragment that has one already. */
static bool put_extra(struct set *s, struct round *r, uint32_t fragment, const struct held *h,
                      const float *x, uint32_t n)
{
    uint32_t most =
        s->layout.fragments / r->group.n + 2 * RUN_FRAGMENTS; /* about one owned share */
    if (!r->extra_of &&
        !(r->extra_of = calloc((size_t)s->layout.fragments + 1, sizeof *r->extra_of)))
        return false;
    if (r->extra_n == r->extra_cap) {
        uint32_t cap = r->extra_cap ? 2 * r->extra_cap : 16;
        struct extra *grown = r->extra_n < most ? realloc(r->extra, cap * sizeof *grown) : NULL;
        if (!grown)
            return false;
        r->extra = grown;
        r->extra_cap = cap;
    }
    struct extra *p = &r->extra[r->extra_n];
    p->fragment = fragment;
    p->head = *h;
    p->next = r->extra_of[fragment];
    memcpy(p->x, x, n * sizeof(float));
    r->extra_of[fragment] = ++r->extra_n;
    return true;
}

bool held_put(struct set *s, struct round *r, const struct env *e, uint32_t fragment,
              const struct held *h, const float *x)
{
    struct held *first = &r->held[fragment], *over = first->who & h->who ? first : NULL;
    float *over_x = NULL;
    uint32_t tensor, n, parts = 1;
    uint64_t offset;
    layout_locate(&s->layout, fragment, &tensor, &offset, &n);
    if (first->weight == 0) {
        *first = *h;
        r->filled++;
        write_values(s, r, fragment, x);
        clip_committed(s, e, fragment, x, n);
        return true;
    }
    if (first->owner == h->owner)
        return true;
    for (uint32_t i = r->extra_of ? r->extra_of[fragment] : 0; i;
         i = r->extra[i - 1].next, parts++) {
        struct extra *p = &r->extra[i - 1];
        if (p->head.owner == h->owner)
            return true;
        if (p->head.who & h->who) {
            over = &p->head;
            over_x = p->x;
        }
    }
    if (!over)
        return parts < PARTS_MAX && put_extra(s, r, fragment, h, x, n);
    e->counters->overlap++;
    if (over->weight >= h->weight)
        return false;
    *over = *h; /* only the heavier counts */
    if (over_x)
        memcpy(over_x, x, n * sizeof(float));
    else
        write_values(s, r, fragment, x);
    return true;
}

struct piece {
    uint64_t node_id;
    double weight;
    const float *x;
};

static int compare_parts(const void *a, const void *b)
{
    const struct piece *x = a, *y = b;
    return (x->node_id > y->node_id) - (x->node_id < y->node_id);
}

static void merge(struct set *s, struct round *r, uint32_t fragment)
{
    struct piece part[PARTS_MAX];
    float first[FRAGMENT_ELEMENTS];
    double sum[FRAGMENT_ELEMENTS] = {0}, weight = 0;
    uint32_t tensor, n, parts = 0;
    uint64_t offset;
    layout_locate(&s->layout, fragment, &tensor, &offset, &n);
    bool whole = estimator_for(&s->layout, tensor)->whole;
    float *out = (float *)r->result[tensor] + offset;
    struct held *h = &r->held[fragment];
    memcpy(first, out, n * sizeof(float));
    part[parts++] = (struct piece){r->people[h->owner].node_id, h->weight, first};
    for (uint32_t i = r->extra_of[fragment]; i; i = r->extra[i - 1].next) {
        const struct extra *p = &r->extra[i - 1];
        part[parts++] = (struct piece){r->people[p->head.owner].node_id, p->head.weight, p->x};
        h->who |= p->head.who;
    }
    qsort(part, parts, sizeof part[0], compare_parts);
    for (uint32_t i = 0; i < parts; i++) {
        reduce_add(sum, part[i].x, part[i].weight, n);
        weight = !whole || i == 0 ? weight + part[i].weight
                 : part[i].weight > weight ? part[i].weight : weight;
    }
    reduce_mean(out, sum, weight, n);
}

void held_merge(struct set *s, struct round *r)
{
    for (uint32_t i = 0; i < r->extra_n; i++)
        if (r->extra_of[r->extra[i].fragment] == i + 1) /* the newest of its fragment */
            merge(s, r, r->extra[i].fragment);
}
