/* Who averages with whom: the group of a round, pinned from the view. */
#include "round/round.h"
#include "strategy/share.h"
#include <assert.h>
#include <stdlib.h>

static_assert(VIEW_MEMBERS_MAX == MEMBERS_MAX, "a strategy takes the whole view");

/* More than one group: its rounds are held in cells (strategy/cell.c). */
static bool has_cells(const struct env *e)
{
    return e->view->count > SLEET_GROUP_MAX;
}

static bool takes_part(const struct member *m, int set)
{
    return m->alive && !m->left && m->sets[set].matches && m->sets[set].attached;
}

/* Owns and reduces, without a trainer: where owners have no values of their own to hand out. */
static bool helps(const struct member *m, int set, const struct set_kind *kind, const struct strategy *strategy)
{
    return m->alive && !m->left && m->sets[set].matches && m->declared.role == ROLE_AUXILIARY && !strategy->edges &&
           kind->exchange == SLEET_ALL_REDUCE;
}

bool set_heaviest_lineage(const struct set *s, const struct env *e, uint64_t *lineage)
{
    const struct member_set *ms = view_heaviest(e->view, (uint32_t)s->handle);
    if (ms)
        *lineage = ms->lineage;
    return ms != NULL;
}

bool set_parts(const struct set *s, uint64_t number)
{
    return switch_kind_at(&s->layout, &s->switching, number).strategy != SLEET_RPS;
}

/* In a job of cells, and by strategies that part the view, most members are met only now and then: what one
 * said long ago does not mean that it has come no further.  By the latter nodes go ahead of those that they do not meet,
 * by rounds that are no absence of the others. */
bool set_takes_part_lately(const struct set *s, const struct env *e, const struct member *m,
                           uint64_t number)
{
    const struct member_set *ms = &m->sets[s->handle];
    bool parts = set_parts(s, number);
    if ((has_cells(e) || parts) && ms->round_as_of < number)
        number = ms->round_as_of;
    return ms->round + e->config->absent_rounds + (parts ? e->config->window : 0) >= number;
}

/* Is `a` rather to found the job's model: a lower id, but clients after all others. */
static bool founds_before(const struct member *a, const struct member *b)
{
    bool client = a->declared.role == ROLE_CLIENT, other = b->declared.role == ROLE_CLIENT;
    return client == other ? a->node_id < b->node_id : other;
}

/* It must have looked around first. */
bool set_may_found(const struct set *s, const struct env *e, sleet_time now)
{
    bool all_heard = true;
    for (uint32_t i = 1; i < e->view->n; i++) {
        const struct member *m = &e->members[i];
        if (m->used && !m->told && !m->left)
            all_heard = false;
        if (takes_part(m, s->handle) && founds_before(m, &e->members[0]))
            return false;
    }
    return all_heard || time_since(now, e->created) >= e->config->join_wait;
}

static struct group_member listed(const struct member *m, uint32_t slot, bool contributes)
{
    return (struct group_member){.node_id = m->node_id,
                                 .boot_id = m->boot_id,
                                 .contributes = contributes,
                                 .slot = (int16_t)slot,
                                 .uplink = contributes || m->declared.role == ROLE_AUXILIARY ? uplink_of(&m->declared) : 0,
                                 .site = site_of(&m->declared)};
}

/* Has a say although it shares no history yet: there is none that matters. */
static bool fresh(const struct set *s, bool established)
{
    return !established && !layout_has_model(&s->layout);
}

bool set_too_many(const struct set *s, const struct env *e)
{
    uint32_t n = 1;
    for (uint32_t i = 1; i < e->view->n; i++)
        n += takes_part(&e->members[i], s->handle);
    return kind_additive(&s->layout.kind) && n > SLEET_GROUP_MAX;
}

static int compare_ids(const void *a, const void *b)
{
    const struct group_member *x = a, *y = b;
    return (x->node_id > y->node_id) - (x->node_id < y->node_id);
}

/* False when nobody's model can be taken yet: the start has to wait. */
bool set_group(const struct set *s, const struct env *e, uint64_t number, struct plan *out)
{
    const struct set_kind kind = switch_kind_at(&s->layout, &s->switching, number);
    const struct strategy *strategy = strategy_by_id((int)kind.strategy);
    struct group_member view[MEMBERS_MAX];
    uint32_t n = 0;
    bool open = false, any = false;
    const struct member *founder = NULL; /* to be */
    uint64_t lineage = s->lineage;

    if (!s->established && !set_heaviest_lineage(s, e, &lineage)) {
        founder = s->serves ? NULL : &e->members[0];
        for (uint32_t i = 1; i < e->view->n; i++)
            if (takes_part(&e->members[i], s->handle) && (!founder || founds_before(&e->members[i], founder)))
                founder = &e->members[i];
        if (!founder || founder == &e->members[0])
            return false; /* others may still appear */
    }
    const struct member_set *furthest = view_furthest(e->view, (uint32_t)s->handle);
    if (has_cells(e) && !s->established && furthest && furthest->round < number)
        return false; /* as below, but found without a look at all */
    if (s->serves && (strategy->edges || kind.exchange != SLEET_ALL_REDUCE))
        return false; /* of no use */
    bool own = s->established || fresh(s, s->established);
    view[n++] = listed(&e->members[0], 0, s->attached && own && !set_parked(s, e));
    for (uint32_t i = 1; i < e->view->n; i++) {
        const struct member *m = &e->members[i];
        const struct member_set *ms = &m->sets[s->handle];
        if (helps(m, s->handle, &kind, strategy))
            view[n++] = listed(m, i, false);
        if (!takes_part(m, s->handle))
            continue;
        bool same = !founder && ms->established && !ms->parked && ms->lineage == lineage;
        bool comes = !ms->parked && fresh(s, ms->established);
        view[n++] = listed(m, i, same || comes || m == founder);
    }
    if (kind_additive(&s->layout.kind) && n > SLEET_GROUP_MAX) { /* cells would step apart */
        uint32_t kept = 1;
        for (uint32_t i = 1; i < n; i++)
            if (e->members[view[i].slot].sets[s->handle].established)
                view[kept++] = view[i];
        n = kept;
        if (!s->established || n > SLEET_GROUP_MAX)
            return false; /* too late, for who comes when there are enough */
    }
    qsort(view, n, sizeof view[0], compare_ids);
    if (!strategy_plan(strategy, kind.numbers, e->config->edges, view, n, e->members[0].node_id, number, out))
        return false; /* all are parked */
    out->atomic &= !e->config->edges_one_sided;
    for (uint32_t i = 0; i < out->group.n; i++) {
        const struct group_member *g = &out->group.members[i];
        any |= g->contributes;
        open |= g->contributes && (g->slot == 0 || e->members[g->slot].sets[s->handle].round >= number);
    }
    /* All are parked; nobody in the joiner's cell has the model, or is there yet. */
    return any && (open || !has_cells(e) || out->edges);
}

/* The nodes that count as coverage 1.0: contributors of the group and those of its cell
 * that fell silent without a good-bye less than a minute ago; not more than a group has. */
uint32_t set_expected(const struct set *s, const struct env *e, const struct group *g, uint64_t number,
                      sleet_time now)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < g->n; i++)
        n += g->members[i].contributes;
    for (uint32_t i = 1; i < e->view->n && !g->part; i++) {
        const struct member *m = &e->members[i];
        if (!m->alive && !m->left && m->sets[s->handle].established && !time_is_never(m->heard) &&
            time_since(now, m->heard) < SEC(60) && group_rank(g, m->node_id) < 0 &&
            cell_same(m->node_id, e->members[0].node_id, number, g->cell_bits))
            n++;
    }
    return n == 0 ? 1 : n < SLEET_GROUP_MAX ? n : SLEET_GROUP_MAX;
}
