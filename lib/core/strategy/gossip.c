/* Gossip between pairs: what one of the two takes the other takes as well, so that the mean of all stays. */
#include "strategy/strategy.h"

static void meet(const struct strategy_view *v, struct plan *out, uint32_t other, double weight)
{
    struct edge *e = plan_add(out, v, other);
    e->weight += weight;
    e->in = e->out = ALL_SEGMENTS;
}

/* A ring in the order of ids: a third of each neighbour.  The number is a rank, 0: the whole. */
static void ring_plan(const struct strategy_view *v, struct plan *out)
{
    out->atomic = true;
    out->rank = v->numbers[0];
    if (v->n == 2)
        meet(v, out, 1 - v->self, 0.5);
    for (uint32_t side = 1; v->n > 2 && side < v->n; side += v->n - 2)
        meet(v, out, (v->self + side) % v->n, 1.0 / 3);
}

/* Every second one with the next of a shuffle of the round; the last of an odd number stays alone. */
static void pairs_plan(const struct strategy_view *v, struct plan *out)
{
    uint16_t at[VIEW_MEMBERS_MAX] = {0};
    uint32_t mine = round_shuffle(v->round, 3, v->n, v->self, at);
    out->atomic = true;
    out->rank = v->numbers[0];
    if ((mine ^ 1) < v->n)
        meet(v, out, at[mine ^ 1], 0.5);
}

const struct strategy strategy_ring = {.id = SLEET_RING, .edges = true, .plan = ring_plan};
const struct strategy strategy_pairs = {.id = SLEET_PAIRS, .edges = true, .plan = pairs_plan};
