/* Moshpit (arXiv 2103.03239): small groups that are formed anew in each round, so that whom a node has met
 * stands in other groups next.
 *
 * Members stand in a grid of D dimensions in the order of their ids, and a round is held along one dimension,
 * the next one along the next: after D rounds, from any on, all of a full grid hold the mean of all.  In the paper a
 * member's key is the D - 1 last places that it had in its groups.  In the order of ids the place in a group is the
 * coordinate along it, so that keys need not be remembered (tests/unit/test_strategy.c holds one against the other).
 * Who joins or leaves moves those behind it. */
#include "strategy/strategy.h"

#define DIMENSIONS_MAX 10 /* 2^10 members */
#define MEMBERS 4         /* of a group, if nothing is said */

struct grid {
    uint32_t n, cells;
    uint32_t size[DIMENSIONS_MAX]; /* ascending, the product is `cells` */
};

static uint32_t digits(uint32_t n, uint32_t base)
{
    uint32_t d = 1;
    for (uint32_t cells = base; cells < n; cells *= base)
        d++;
    return d;
}

/* The fullest grid, and of those the most even, that begins with g's first `fixed` sizes. */
static void fill_in(const struct grid *g, uint32_t fixed, uint32_t members, uint32_t most, struct grid *best)
{
    struct grid t = *g;
    uint32_t least = fixed ? g->size[fixed - 1] : 2;
    if (fixed + 1 == g->n) {
        uint32_t last = (members + g->cells - 1) / g->cells;
        t.size[fixed] = last < least ? least : last;
        t.cells *= t.size[fixed];
        if (t.size[fixed] <= most &&
            (t.cells < best->cells || (t.cells == best->cells && t.size[fixed] < best->size[fixed])))
            *best = t;
        return;
    }
    for (uint32_t m = least; m <= most && m * g->cells < 2 * members; m++) {
        t.size[fixed] = m;
        t.cells = g->cells * m;
        fill_in(&t, fixed + 1, members, most, best);
    }
}

/* Of as few dimensions as groups of `most` allow, but `least` at least, as long as a group has two members. */
static struct grid grid_of(uint32_t members, uint32_t most, uint32_t least)
{
    uint32_t few = digits(members, most), many = digits(members, 2);
    struct grid g = {.n = least < few ? few : least < many ? least : many, .cells = 1}, best = {.cells = UINT32_MAX};
    fill_in(&g, 0, members, most, &best);
    return best;
}

static void moshpit_plan(const struct strategy_view *v, struct plan *out)
{
    struct grid g = grid_of(v->n, v->numbers[0] ? v->numbers[0] : MEMBERS, v->numbers[1]);
    uint32_t along = (uint32_t)(v->round % g.n), step = 1;
    for (uint32_t k = along + 1; k < g.n; k++)
        step *= g.size[k];
    uint32_t first = v->self - v->self / step % g.size[along] * step;
    for (uint32_t k = 0; k < g.size[along] && first + k * step < v->n; k++)
        plan_add(out, v, first + k * step);
}

const struct strategy strategy_moshpit = {.id = SLEET_MOSHPIT, .plan = moshpit_plan};
