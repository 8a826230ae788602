/* Gossip between pairs: what one of the two takes the other takes as well, so that the mean of all stays. */
#include "base/rng.h"
#include "strategy/strategy.h"

#define PHI 0x9e3779b97f4a7c15u

static void meet(const struct strategy_view *v, struct plan *out, uint32_t other, double weight)
{
    struct edge *e = plan_add(out, v, other);
    e->weight += weight;
    e->in = e->out = ALL_SEGMENTS;
}

/* A ring in the order of ids: a third of each neighbour. */
static void ring_plan(const struct strategy_view *v, struct plan *out)
{
    out->atomic = true;
    if (v->n == 2)
        meet(v, out, 1 - v->self, 0.5);
    for (uint32_t side = 1; v->n > 2 && side < v->n; side += v->n - 2)
        meet(v, out, (v->self + side) % v->n, 1.0 / 3);
}

/* Place i of a shuffle of the round; each node works out the whole of it. */
static void pairs_plan(const struct strategy_view *v, struct plan *out)
{
    uint16_t at[VIEW_MEMBERS_MAX] = {0};
    uint64_t seed = mix64(v->round * PHI - 3);
    uint32_t mine = 0;
    out->atomic = true;
    for (uint32_t i = 0; i < v->n; i++) {
        seed = mix64(seed + PHI);
        uint32_t j = (uint32_t)(seed % (i + 1)); /* Fisher and Yates, from the inside out */
        at[i] = at[j];
        at[j] = (uint16_t)i;
    }
    while (at[mine] != v->self)
        mine++;
    if ((mine ^ 1) < v->n) /* the last of an odd number stays alone */
        meet(v, out, at[mine ^ 1], 0.5);
}

const struct strategy strategy_ring = {.id = SLEET_RING, .edges = true, .plan = ring_plan};
const struct strategy strategy_pairs = {.id = SLEET_PAIRS, .edges = true, .plan = pairs_plan};
