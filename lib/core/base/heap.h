/* A binary heap of numbers below `n` by their times, each in it once; of equal
 * times the lower number comes first.  At first all times are TIME_NEVER. */
#ifndef BASE_HEAP_H
#define BASE_HEAP_H
#include "base/time.h"
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#define HEAP_MAX UINT16_MAX

struct heap {
    uint32_t n;
    sleet_time *at;  /* by number; change it by heap_move() only */
    uint16_t *order; /* the heap of numbers */
    uint16_t *place; /* number -> place in `order` */
};

static inline void heap_fini(struct heap *h)
{
    free(h->at);
    free(h->order);
    free(h->place);
    *h = (struct heap){0};
}

/* 0 < n <= HEAP_MAX.  False when out of memory. */
static inline bool heap_init(struct heap *h, uint32_t n)
{
    *h = (struct heap){.n = n,
                       .at = malloc(n * sizeof *h->at),
                       .order = malloc(n * sizeof *h->order),
                       .place = malloc(n * sizeof *h->place)};
    if (!h->at || !h->order || !h->place) {
        heap_fini(h);
        return false;
    }
    for (uint32_t i = 0; i < n; i++) {
        h->at[i] = TIME_NEVER;
        h->order[i] = h->place[i] = (uint16_t)i;
    }
    return true;
}

static inline bool heap_earlier(const struct heap *h, uint32_t a, uint32_t b)
{
    return h->at[a].ns != h->at[b].ns ? h->at[a].ns < h->at[b].ns : a < b;
}

static inline void heap_put(struct heap *h, uint32_t place, uint32_t id)
{
    h->order[place] = (uint16_t)id;
    h->place[id] = (uint16_t)place;
}

static inline void heap_move(struct heap *h, uint32_t id, sleet_time at)
{
    uint32_t i = h->place[id];
    h->at[id] = at;
    while (i > 0 && heap_earlier(h, id, h->order[(i - 1) / 2])) {
        heap_put(h, i, h->order[(i - 1) / 2]);
        i = (i - 1) / 2;
    }
    for (uint32_t child; (child = 2 * i + 1) < h->n; i = child) {
        if (child + 1 < h->n && heap_earlier(h, h->order[child + 1], h->order[child]))
            child++;
        if (!heap_earlier(h, h->order[child], id))
            break;
        heap_put(h, i, h->order[child]);
    }
    heap_put(h, i, id);
}

static inline uint32_t heap_first(const struct heap *h)
{
    return h->order[0];
}
#endif
