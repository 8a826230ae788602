/* Gossip on a torus: rows and columns in the order of ids, each closed to a ring.  Pairs are atomic as in gossip.c. */
#include "strategy/strategy.h"

/* The largest number that parts n evenly and is not above `most`. */
static uint32_t part_of(uint32_t n, uint32_t most)
{
    uint32_t p = most < n ? most : n;
    while (n % p)
        p--;
    return p;
}

static uint32_t root(uint32_t n)
{
    uint32_t r = 1;
    while ((r + 1) * (r + 1) <= n)
        r++;
    return r;
}

static void torus_plan(const struct strategy_view *v, struct plan *out)
{
    uint32_t rows = part_of(v->n, v->numbers[0] ? v->numbers[0] : root(v->n)), columns = v->n / rows;
    uint32_t row = v->self / columns * columns, column = v->self % columns;
    uint32_t next[] = {row + (column + 1) % columns, row + (column + columns - 1) % columns, (v->self + columns) % v->n,
                       (v->self + v->n - columns) % v->n};
    out->atomic = true;
    for (int i = 0; i < 4; i++)
        if (next[i] != v->self)
            plan_add(out, v, next[i])->in = ALL_SEGMENTS;
    for (uint32_t i = 0; i < out->group.n; i++) /* of each as of itself: all have as many */
        out->edge[i] = (struct edge){1.0 / (out->group.n + 1), ALL_SEGMENTS, ALL_SEGMENTS};
}

const struct strategy strategy_torus = {.id = SLEET_TORUS, .edges = true, .plan = torus_plan};
