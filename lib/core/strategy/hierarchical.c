/* Groups of groups: many rounds stay within a group, and few members talk across.
 *
 * In even rounds all of a group average, in odd ones a member of each group, in turn: the others go without that
 * round.  What it brings home is its part of the group's mean two rounds on, so that the mean of all stays.  Groups are of
 * members whose ids follow each other: a strategy knows nothing of networks. */
#include "strategy/strategy.h"

#define MEMBERS 4 /* of a group, if nothing is said */

/* The first member of a group; all are of nearly one size. */
static uint32_t first_of(uint32_t n, uint32_t groups, uint32_t group)
{
    return (uint32_t)((uint64_t)n * group / groups);
}

static uint32_t leader_of(const struct strategy_view *v, uint32_t groups, uint32_t group)
{
    uint32_t first = first_of(v->n, groups, group), size = first_of(v->n, groups, group + 1) - first;
    return first + (uint32_t)(v->round / 2 % size);
}

uint32_t hierarchy_leaders(const struct strategy_view *v, uint32_t most, struct plan *out, struct strategy_view *leaders,
                           struct group_member *room)
{
    uint32_t groups = (v->n + most - 1) / most, mine = 0;
    groups = groups < HIERARCHY_MAX ? groups : HIERARCHY_MAX;
    while (first_of(v->n, groups, mine + 1) <= v->self)
        mine++;
    *leaders = (struct strategy_view){.members = room, .self = mine, .round = v->round / 2, .numbers = {v->numbers[0]}};
    bool within = v->round % 2 == 0 || groups == 1;
    for (uint32_t i = first_of(v->n, groups, mine); within && i < first_of(v->n, groups, mine + 1); i++)
        plan_add(out, v, i);
    if (within || leader_of(v, groups, mine) != v->self)
        return 0;
    for (; leaders->n < groups; leaders->n++)
        room[leaders->n] = v->members[leader_of(v, groups, leaders->n)];
    return groups;
}

static void hierarchical_plan(const struct strategy_view *v, struct plan *out)
{
    struct group_member room[HIERARCHY_MAX];
    struct strategy_view leaders;
    uint32_t n = hierarchy_leaders(v, v->numbers[0] ? v->numbers[0] : MEMBERS, out, &leaders, room);
    for (uint32_t i = 0; i < n; i++)
        plan_add(out, &leaders, i);
}

const struct strategy strategy_hierarchical = {.id = SLEET_HIERARCHICAL, .plan = hierarchical_plan};
