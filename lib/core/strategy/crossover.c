/* Crossover (arXiv 2012.15198): segments of the set go different ways, to random members, other ones in each round.
 *
 * All stand in a ring that the round shuffles, and a segment goes so many places on: by one permutation without
 * fixed points, in which everybody sends and takes each segment once.  The distances are different ones as far as there are any,
 * so that no neighbour has a segment more than its share of them.
 *
 * With a hierarchy the members of a group average in even rounds, with owners, and one of each crosses over in odd ones. */
#include "strategy/strategy.h"

#define SEGMENTS 16 /* if nothing is said */

static uint32_t least_of(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static void cross(const struct strategy_view *v, struct plan *out)
{
    uint16_t ring[VIEW_MEMBERS_MAX] = {0}, distance[VIEW_MEMBERS_MAX] = {0};
    uint32_t segments = out->segments;
    uint32_t ways = least_of(v->n - 1, least_of(segments, EDGES_IN_MAX));
    uint32_t mine = round_shuffle(v->round, 4, v->n, v->self, ring);
    round_shuffle(v->round, 5, v->n - 1, 0, distance);
    for (uint32_t s = 0; ways && s < segments; s++) {
        uint32_t d = 1 + distance[s % ways];
        struct edge *from = plan_add(out, v, ring[(mine + v->n - d) % v->n]);
        from->weight = 0.5;
        from->in |= UINT64_C(1) << s;
        plan_add(out, v, ring[(mine + d) % v->n])->out |= UINT64_C(1) << s;
    }
}

static void crossover_plan(const struct strategy_view *v, struct plan *out)
{
    struct group_member room[HIERARCHY_MAX];
    struct strategy_view leaders;
    out->segments = (uint8_t)(v->numbers[0] ? v->numbers[0] : SEGMENTS);
    if (!v->numbers[1])
        cross(v, out);
    else if (hierarchy_leaders(v, v->numbers[1], out, &leaders, room))
        cross(&leaders, out);
    else
        out->edges = false;
}

const struct strategy strategy_crossover = {.id = SLEET_CROSSOVER, .edges = true, .plan = crossover_plan};
