/* Who averages with whom: the group of a round, pinned from the view. */
#include "round/round.h"

static bool takes_part(const struct member *m, int set)
{
    return m->alive && !m->left && m->sets[set].matches && m->sets[set].attached;
}

/* The lineage to join: of the established members the one furthest on, ties to the lower. */
bool set_heaviest_lineage(const struct set *s, const struct env *e, uint64_t *lineage)
{
    bool found = false;
    uint64_t best = 0;
    for (uint32_t i = 1; i < e->n; i++) {
        const struct member_set *ms = &e->members[i].sets[s->handle];
        if (!takes_part(&e->members[i], s->handle) || !ms->established)
            continue;
        if (!found || ms->round > best || (ms->round == best && ms->lineage < *lineage)) {
            best = ms->round;
            *lineage = ms->lineage;
            found = true;
        }
    }
    return found;
}

/* A new job's model is that of the lowest id; it must have looked around first. */
bool set_may_found(const struct set *s, const struct env *e, sleet_time now)
{
    bool all_heard = true;
    for (uint32_t i = 1; i < e->n; i++) {
        const struct member *m = &e->members[i];
        if (!m->told && !m->left)
            all_heard = false;
        if (takes_part(m, s->handle) && m->node_id < e->members[0].node_id)
            return false;
    }
    return all_heard || time_since(now, e->created) >= e->config->join_wait;
}

static void add(struct group *g, const struct member *m, int slot, bool contributes)
{
    g->members[g->n++] = (struct group_member){.node_id = m->node_id,
                                               .boot_id = m->boot_id,
                                               .contributes = contributes,
                                               .slot = (int16_t)slot};
}

/* False when nobody's model can be taken yet: the start has to wait. */
bool set_group(const struct set *s, const struct env *e, uint64_t number, struct group *out)
{
    struct group view = {0};
    uint64_t lineage = s->lineage, lowest = 0;

    if (!s->established && !set_heaviest_lineage(s, e, &lineage)) {
        lowest = e->members[0].node_id; /* the founder to be */
        for (uint32_t i = 1; i < e->n; i++)
            if (takes_part(&e->members[i], s->handle) && e->members[i].node_id < lowest)
                lowest = e->members[i].node_id;
        if (lowest == e->members[0].node_id)
            return false; /* others may still appear */
    }
    add(&view, &e->members[0], 0, s->attached && s->established);
    for (uint32_t i = 1; i < e->n; i++) {
        const struct member *m = &e->members[i];
        const struct member_set *ms = &m->sets[s->handle];
        if (!takes_part(m, s->handle))
            continue;
        bool same = !lowest && ms->established && ms->lineage == lineage;
        add(&view, m, (int)i, same || m->node_id == lowest);
    }
    strategy_by_name("rps")->plan(&view, number, out);
    group_seal(out);
    return true;
}

/* The nodes that count as coverage 1.0: contributors of the group and those that
 * fell silent without a good-bye less than a minute ago. */
uint32_t set_expected(const struct set *s, const struct env *e, const struct group *g, sleet_time now)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < g->n; i++)
        n += g->members[i].contributes;
    for (uint32_t i = 1; i < e->n; i++) {
        const struct member *m = &e->members[i];
        if (!m->alive && !m->left && m->sets[s->handle].established && !time_is_never(m->heard) &&
            time_since(now, m->heard) < SEC(60) && group_rank(g, m->node_id) < 0)
            n++;
    }
    return n ? n : 1;
}
