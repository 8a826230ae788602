/* Gossip along edges that the user gives (edge_list.h).  Pairs are atomic as in gossip.c.
 *
 * Of a neighbour a node takes 1 / (1 + the more neighbours that one of the two has) (Metropolis and Hastings): what
 * it keeps of its own is never less than nothing, and both take as much, so that the mean of all stays.  Members that are not there have no
 * edges, and count for nobody. */
#include "strategy/edge_list.h"
#include "strategy/strategy.h"

static uint32_t place_of(const struct strategy_view *v, uint64_t node_id)
{
    uint32_t low = 0, high = v->n;
    while (low < high) {
        uint32_t mid = (low + high) / 2;
        if (v->members[mid].node_id < node_id)
            low = mid + 1;
        else
            high = mid;
    }
    return low < v->n && v->members[low].node_id == node_id ? low : v->n;
}

/* The neighbours of member i that are in the view. */
static uint32_t neighbours(const struct strategy_view *v, uint32_t i, uint32_t at[static EDGES_IN_MAX])
{
    uint32_t arcs, n = 0;
    const struct arc *arc = edge_list_of(v->edges, v->members[i].node_id, &arcs);
    for (uint32_t k = 0; k < arcs; k++) {
        at[n] = place_of(v, arc[k].to);
        n += at[n] < v->n;
    }
    return n;
}

/* Members that ways lead to, this one included. */
static uint32_t reached(const struct strategy_view *v)
{
    uint16_t stack[VIEW_MEMBERS_MAX] = {(uint16_t)v->self};
    bool seen[VIEW_MEMBERS_MAX] = {false};
    uint32_t count = 1, at[EDGES_IN_MAX];
    seen[v->self] = true;
    for (uint32_t depth = 1; depth;) {
        uint32_t n = neighbours(v, stack[--depth], at);
        for (uint32_t k = 0; k < n; k++) {
            if (seen[at[k]])
                continue;
            seen[at[k]] = true;
            stack[depth++] = (uint16_t)at[k];
            count++;
        }
    }
    return count;
}

static void graph_plan(const struct strategy_view *v, struct plan *out)
{
    uint32_t mine[EDGES_IN_MAX], theirs[EDGES_IN_MAX];
    uint32_t n = v->edges ? neighbours(v, v->self, mine) : 0;
    out->atomic = true;
    out->beyond = v->edges ? v->n - reached(v) : 0;
    for (uint32_t k = 0; k < n; k++) {
        uint32_t m = neighbours(v, mine[k], theirs);
        *plan_add(out, v, mine[k]) = (struct edge){1.0 / (1 + (m > n ? m : n)), ALL_SEGMENTS, ALL_SEGMENTS};
    }
}

const struct strategy strategy_graph = {.id = SLEET_GRAPH, .edges = true, .plan = graph_plan};
