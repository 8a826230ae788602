/* Groups of groups: many rounds stay within a group, and few members talk across.
 *
 * In even rounds all of a group average, in odd ones a member of each group, in turn: the others go without that
 * round.  What it brings home is its part of the group's mean two rounds on, so that the mean of all stays.  Groups are of
 * members of one site, as they say, and of such whose ids follow each other. */
#include "strategy/share.h"
#include <stdlib.h>
#include <string.h>

#define MEMBERS 4 /* of a group, if nothing is said */

/* The members in the order in which groups are cut, and where. */
struct groups {
    struct group_member members[VIEW_MEMBERS_MAX];
    uint32_t n, first[HIERARCHY_MAX + 1]; /* group k: from first[k] to below first[k + 1] */
};

static int by_site(const void *a, const void *b)
{
    const struct group_member *x = a, *y = b;
    if (x->site != y->site)
        return x->site > y->site ? 1 : -1;
    return (x->node_id > y->node_id) - (x->node_id < y->node_id);
}

/* From member `from` to below `to` as few groups of `most` as that takes, all of nearly one size. */
static void cut(struct groups *g, uint32_t from, uint32_t to, uint32_t most)
{
    uint32_t n = to - from, groups = (n + most - 1) / most;
    groups = groups < HIERARCHY_MAX ? groups : HIERARCHY_MAX;
    for (uint32_t k = 1; g->n + groups <= HIERARCHY_MAX && k <= groups; k++)
        g->first[g->n + k] = from + (uint32_t)((uint64_t)n * k / groups);
    g->n += groups;
}

/* No group is of two sites, unless that makes too many. */
static void cut_by_sites(struct groups *g, uint32_t n, uint32_t most)
{
    g->n = g->first[0] = 0;
    for (uint32_t from = 0, to = 1; from < n; from = to++) {
        while (to < n && g->members[to].site == g->members[from].site)
            to++;
        cut(g, from, to, most);
    }
    if (g->n <= HIERARCHY_MAX)
        return;
    g->n = 0;
    cut(g, 0, n, most);
}

/* The one whose turn it is; clients have none where there are others. */
static uint32_t leader_of(const struct groups *g, uint64_t turn, uint32_t group)
{
    uint32_t first = g->first[group], size = g->first[group + 1] - first, can[VIEW_MEMBERS_MAX], n = 0;
    for (uint32_t i = first; i < first + size; i++)
        if (g->members[i].uplink != UPLINK_CLIENT)
            can[n++] = i;
    return n ? can[turn % n] : first + (uint32_t)(turn % size);
}

uint32_t hierarchy_leaders(const struct strategy_view *v, uint32_t most, struct plan *out, struct strategy_view *leaders,
                           struct group_member *room)
{
    struct groups g;
    struct strategy_view ordered = *v;
    uint32_t self = 0, mine = 0;
    memcpy(g.members, v->members, v->n * sizeof g.members[0]);
    qsort(g.members, v->n, sizeof g.members[0], by_site);
    ordered.members = g.members;
    while (g.members[self].node_id != v->members[v->self].node_id)
        self++;
    cut_by_sites(&g, v->n, most);
    while (g.first[mine + 1] <= self)
        mine++;
    *leaders = (struct strategy_view){.members = room, .self = mine, .round = v->round / 2, .numbers = {v->numbers[0]}};
    bool within = v->round % 2 == 0 || g.n == 1;
    for (uint32_t i = g.first[mine]; within && i < g.first[mine + 1]; i++)
        plan_add(out, &ordered, i);
    if (within || leader_of(&g, v->round / 2, mine) != self)
        return 0;
    for (; leaders->n < g.n; leaders->n++)
        room[leaders->n] = g.members[leader_of(&g, v->round / 2, leaders->n)];
    return g.n;
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
