#include "strategy/strategy.h"
#include <string.h>

/* RPS (arXiv 1810.07766): every node averages with the whole view, or its cell of that. */
static void rps_plan(const struct strategy_view *v, struct plan *out)
{
    struct group_member cell[VIEW_MEMBERS_MAX];
    memcpy(cell, v->members, v->n * sizeof *cell);
    out->group.n = (uint8_t)cell_select(cell, v->n, v->members[v->self].node_id, v->round, &out->group.cell_bits);
    memcpy(out->group.members, cell, out->group.n * sizeof *cell);
}

const struct strategy strategy_rps = {.id = SLEET_RPS, .joiners = true, .plan = rps_plan};
