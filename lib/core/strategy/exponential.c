/* Exponential graphs (arXiv 2110.13363): neighbours at distances 1, 2, 4, ... in the order of ids. */
#include "strategy/strategy.h"

/* ceil(log2 n) */
static uint32_t distances(uint32_t n)
{
    uint32_t tau = 0;
    while ((1u << tau) < n)
        tau++;
    return tau;
}

static void link_at(const struct strategy_view *v, struct plan *out, uint32_t distance, double weight)
{
    struct edge *from = plan_add(out, v, (v->self + distance) % v->n);
    from->weight += weight; /* two distances may lead to one node */
    from->in = ALL_SEGMENTS;
    plan_add(out, v, (v->self + v->n - distance) % v->n)->out = ALL_SEGMENTS;
}

/* One of them a round, in turn: of 2^k nodes all have the mean after k rounds. */
static void one_peer_plan(const struct strategy_view *v, struct plan *out)
{
    uint32_t tau = distances(v->n);
    if (tau)
        link_at(v, out, 1u << v->round % tau, 0.5);
}

/* All of them in each round. */
static void exponential_plan(const struct strategy_view *v, struct plan *out)
{
    uint32_t tau = distances(v->n);
    for (uint32_t k = 0; k < tau; k++)
        link_at(v, out, 1u << k, 1.0 / (tau + 1));
}

const struct strategy strategy_one_peer = {.id = SLEET_ONE_PEER, .edges = true, .plan = one_peer_plan};
const struct strategy strategy_exponential = {.id = SLEET_EXPONENTIAL, .edges = true, .plan = exponential_plan};
