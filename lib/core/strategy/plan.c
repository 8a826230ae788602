/* A view, a strategy and a round make a plan. */
#include "base/rng.h"
#include "strategy/share.h"
#include <string.h>

#define PHI 0x9e3779b97f4a7c15u

struct edge *plan_add(struct plan *p, const struct strategy_view *v, uint32_t i)
{
    struct group *g = &p->group;
    uint32_t at = g->n;
    while (at && g->members[at - 1].node_id >= v->members[i].node_id)
        at--;
    if (at < g->n && g->members[at].node_id == v->members[i].node_id)
        return &p->edge[at];
    if (g->n == GROUP_MEMBERS_MAX)
        return &p->edge[GROUP_MEMBERS_MAX];
    memmove(&g->members[at + 1], &g->members[at], (g->n - at) * sizeof g->members[0]);
    memmove(&p->edge[at + 1], &p->edge[at], (g->n - at) * sizeof p->edge[0]);
    g->members[at] = v->members[i];
    p->edge[at] = (struct edge){0};
    g->n++;
    return &p->edge[at];
}

/* The contributor that a joiner takes its values from: no client, if there is another. */
static uint32_t server_of(const struct strategy_view *v, const struct group_member *joiner)
{
    uint32_t i = (uint32_t)(mix64(v->round * PHI ^ mix64(joiner->node_id)) % v->n);
    for (uint32_t tried = 0; tried < v->n && v->members[i].uplink == UPLINK_CLIENT; tried++)
        i = (i + 1) % v->n;
    return i;
}

/* Joiners beside those that they take their values from. */
static void add_joiners(const struct group_member *view, uint32_t n, const struct strategy_view *v, struct plan *p)
{
    struct strategy_view all = {.members = view, .n = n};
    uint64_t self = v->members[v->self].node_id;
    bool alone = p->group.n < 2; /* one that averages with nobody needs no auxiliary */
    for (uint32_t i = 0; i < n && p->group.n < GROUP_MEMBERS_MAX; i++) {
        if (view[i].contributes || (alone && group_auxiliary(&view[i])))
            continue;
        const struct group_member *server = &v->members[server_of(v, &view[i])];
        if (p->edges ? server->node_id == self : group_rank(&p->group, server->node_id) >= 0)
            plan_add(p, &all, i)->out = ALL_SEGMENTS;
    }
}

/* The joiner's own part of that, among neighbours. */
static void only_server(struct plan *p, const struct strategy_view *v, const struct group_member *me)
{
    p->group.n = 0;
    p->atomic = false;
    *plan_add(p, v, v->self) = (struct edge){.weight = 1, .in = ALL_SEGMENTS};
    plan_add(p, &(struct strategy_view){.members = me, .n = 1}, 0);
}

/* Nodes whose lists of those that average differ ought to know it, and those that do it otherwise. */
static uint32_t hash_of(const struct strategy_view *v, int id)
{
    uint64_t h = mix64((uint64_t)id << 32 | (uint32_t)v->numbers[0] << 16 | v->numbers[1]);
    for (uint32_t i = 0; i < v->n; i++)
        h = mix64(h ^ v->members[i].node_id) + mix64(v->members[i].boot_id);
    return (uint32_t)mix64(h);
}

/* The node is one of the group, and no neighbour of its own; what more neighbours than there is room for
 * would send it is not for it. */
static void finish(struct plan *p, const struct strategy_view *v)
{
    uint32_t in = 0;
    *plan_add(p, v, v->self) = (struct edge){0};
    for (uint32_t i = 0; i < p->group.n; i++)
        if (p->edge[i].in && ++in > EDGES_IN_MAX)
            p->edge[i].in = 0;
}

bool strategy_plan(const struct strategy *s, const uint16_t numbers[2], const struct edge_list *edges,
                   const struct group_member *view, uint32_t n, uint64_t self, uint64_t round, struct plan *p)
{
    struct group_member some[VIEW_MEMBERS_MAX];
    struct strategy_view v = {.members = s->joiners ? view : some, .round = round, .numbers = {numbers[0], numbers[1]},
                              .edges = edges};
    const struct group_member *me = NULL;
    memset(p, 0, sizeof *p);
    p->edges = s->edges;
    p->segments = 1;
    for (uint32_t i = 0; i < n; i++) {
        me = view[i].node_id == self ? &view[i] : me;
        if (s->joiners || view[i].contributes) {
            v.self = view[i].node_id == self ? v.n : v.self;
            some[v.n++] = view[i];
        }
    }
    if (!me || !v.n)
        return false;
    if (s->joiners) {
        s->plan(&v, p);
        group_seal(&p->group);
        return true;
    }
    p->group.part = true;
    if (!me->contributes)
        v.self = server_of(&v, me);
    s->plan(&v, p);
    finish(p, &v);
    if (me->contributes || !p->edges)
        add_joiners(view, n, &v, p);
    else
        only_server(p, &v, me);
    if (p->edges)
        p->group.hash = hash_of(&v, (int)s->id);
    else
        group_seal(&p->group);
    return group_rank(&p->group, self) >= 0; /* there was room for it */
}
