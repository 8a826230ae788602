/* Random groups of a size, anew in each round: what moshpit (arXiv 2103.03239) is compared with. */
#include "strategy/strategy.h"

#define MEMBERS 4 /* of a group, if nothing is said */

static void random_plan(const struct strategy_view *v, struct plan *out)
{
    uint16_t at[VIEW_MEMBERS_MAX] = {0};
    uint32_t most = v->numbers[0] ? v->numbers[0] : MEMBERS, groups = (v->n + most - 1) / most;
    uint32_t mine = round_shuffle(v->round, 6, v->n, v->self, at);
    for (uint32_t i = mine % groups; i < v->n; i += groups)
        plan_add(out, v, at[i]);
}

const struct strategy strategy_random = {.id = SLEET_RANDOM, .plan = random_plan};
