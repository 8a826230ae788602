/* A set whose members are cut apart, and meet again.
 *
 * The last common view (member/common.h) says which side goes on.  The other one parks: its starts
 * are answered without progress and use up no number.  Told to go on all the same, by configuration or by
 * the operator, it forks: its lineage gets a new id, which says from what and when.  Where
 * two lineages meet the lighter yields: it joins again by absolute values, or, if they were apart for
 * a few rounds only, goes on with its own values in the other's lineage, so that these are averaged. */
#include "base/rng.h"
#include "round/round.h"

#define LOOK_GAP MS(100) /* between two looks at all members, beyond a group's number */

/* The silence after which a member is missing.  Where not everybody pings everybody, the news of it
 * takes a few periods more (tests/sim/test_swim.c). */
static sleet_duration suspicion(const struct env *e)
{
    sleet_duration ping = e->config->ping;
    return (e->view->count <= SLEET_GROUP_MAX ? ping : 3 * ping) * 5 / 2;
}

/* All have noticed by then, however late: who is missing for so long is dead to those who go on. */
static sleet_duration certainty(const struct env *e)
{
    return 4 * suspicion(e);
}

/* After this long a node that is not to go on does so.  Of two one cannot tell a death from a
 * cut, and deaths are more common: the one left waits until it is certain. */
static sleet_duration patience(const struct set *s, const struct env *e)
{
    if (e->config->on_partition == PARTITION_CONTINUE)
        return suspicion(e);
    return s->apart.common.n == 1 ? certainty(e) : INT64_MAX;
}

/* ---- who is there ------------------------------------------------------------ */

/* Both ways, and it is known how far it has come meanwhile. */
static bool heard(const struct set *s, const struct member *m)
{
    return m->alive && !m->deaf && !m->sets[s->handle].stale;
}

static bool shares_model(const struct set *s, const struct member *m)
{
    const struct member_set *ms = &m->sets[s->handle];
    return m->alive && !m->left && m->told && ms->matches && ms->attached && ms->established &&
           s->established && ms->lineage == s->lineage;
}

/* It said good-bye, lives anew, or its trainer is gone: it is not missed. */
static bool parted(const struct set *s, const struct member *m, const struct person *p)
{
    return m->left || (m->boot_id && m->boot_id != p->boot_id) ||
           (m->alive && m->told && !m->sets[s->handle].attached);
}

static void look_around(struct set *s, const struct env *e)
{
    struct common *c = &s->apart.common;
    for (uint32_t i = 0; i < c->n; i++)
        c->p[i].here = false;
    for (uint32_t i = 1; i < e->view->n; i++) {
        const struct member *m = &e->members[i];
        struct person *p = m->node_id ? common_find(c, m->node_id) : NULL;
        if (p && parted(s, m, p)) {
            common_remove(c, m->node_id);
            p = NULL;
        }
        if (!p && m->node_id && m->node_id != e->members[0].node_id && shares_model(s, m) && heard(s, m) &&
            common_add(c, m->node_id, m->boot_id))
            p = common_find(c, m->node_id);
        if (p && heard(s, m))
            p->here = true;
    }
}

static void tell(const struct set *s, const struct env *e, const char *what)
{
    LOG(&e->config->log, LOG_WARN, FAULT_REMOTE, what, F_X("self", e->members[0].node_id), F_X("w", s->weight), F_S("set", s->layout.name),
        F_X("lineage", s->lineage), F_U("round", s->own_round),
        F_U("common", s->apart.common.n + 1), F_U("missing", common_missing(&s->apart.common)));
}

/* ---- parting ------------------------------------------------------------------- */

bool set_parked(const struct set *s, const struct env *e)
{
    return s->apart.minor && e->config->on_partition == PARTITION_PARK;
}

/* Rounds under way are its own as well. */
static void rename_lineage(struct set *s, uint64_t lineage)
{
    for (uint32_t i = 0; i < ROUNDS_RING; i++)
        if (s->ring[i] && s->ring[i]->lineage == s->lineage)
            s->ring[i]->lineage = lineage;
    s->lineage = lineage;
}

/* The present view is the whole one from now on, in a lineage of its own. */
static void fork_lineage(struct set *s, const struct env *e, sleet_time now)
{
    struct apart *a = &s->apart;
    common_drop(&a->common, 0, now);
    a->minor = false;
    s->announced |= SET_UNTOLD;
    if (!s->established)
        return;
    s->parent = s->lineage;
    s->forked_at = a->round;
    rename_lineage(s, mix64(s->parent ^ mix64(a->round) ^ mix64(e->members[0].node_id)) | 1);
    a->merged = false;
    tell(s, e, "lineage-forks");
}

/* Another one made progress that this node has no part in. */
static bool left_behind(const struct set *s, const struct env *e)
{
    for (uint32_t i = 1; i < e->view->n; i++) {
        const struct member *m = &e->members[i];
        if (shares_model(s, m) && !m->sets[s->handle].parked &&
            m->sets[s->handle].round > s->own_round)
            return true;
    }
    return false;
}

static void judge(struct set *s, const struct env *e, sleet_time now)
{
    struct apart *a = &s->apart;
    bool was = a->minor;
    a->minor = !common_goes_on(&a->common, e->members[0].node_id);
    if (a->minor && !was) {
        a->since = now;
        a->round = s->own_round;
        tell(s, e, set_parked(s, e) ? "partition-parked" : "partition");
    }
    if (was && !a->minor) {
        tell(s, e, "partition-healed");
        if (e->config->on_partition == PARTITION_PARK && left_behind(s, e))
            s->established = false; /* it joins again, by absolute values */
    }
    if (!a->minor)
        common_drop(&a->common, certainty(e), now);
    else if (time_since(now, a->since) >= patience(s, e) &&
             common_leads(&a->common, e->members[0].node_id))
        fork_lineage(s, e, now);
}

void set_look(struct set *s, const struct env *e, sleet_time now)
{
    struct apart *a = &s->apart;
    uint64_t lineage = s->established ? s->lineage : 0;
    bool news = !a->looked || a->generation != e->view->generation || a->lineage != lineage;
    if (!s->attached || (!news && time_before(now, a->look_at)))
        return;
    if (a->looked && a->lineage == lineage && e->view->count > SLEET_GROUP_MAX &&
        time_before(now, time_add(a->looked_at, LOOK_GAP)) && time_before(now, a->look_at)) {
        a->look_at = time_min(a->look_at, time_add(a->looked_at, LOOK_GAP));
        return; /* where there are many something always changes */
    }
    a->looked_at = now;
    look_around(s, e);
    common_settle(&a->common, now);
    judge(s, e, now);
    a->looked = true;
    a->generation = e->view->generation;
    a->lineage = lineage;
    a->look_at = a->minor ? time_add(a->since, patience(s, e))
                          : common_deadline(&a->common, certainty(e));
    if (common_missing(&a->common)) /* it may be heard of by others; another one may lead */
        a->look_at = time_min(time_before(now, a->look_at) ? a->look_at : TIME_NEVER,
                              time_add(now, suspicion(e)));
}

sleet_time set_look_deadline(const struct set *s)
{
    return s->attached && s->apart.looked ? s->apart.look_at : TIME_NEVER;
}

void set_forget(struct set *s, uint64_t node_id)
{
    common_remove(&s->apart.common, node_id);
    s->apart.looked = false;
}

bool set_resume(struct set *s, const struct env *e, sleet_time now)
{
    struct apart *a = &s->apart;
    set_look(s, e, now);
    bool held = a->minor || a->isolated;
    if (a->minor)
        fork_lineage(s, e, now);
    common_drop(&a->common, 0, now);
    a->isolated = a->looked = false;
    a->low = 0;
    return held;
}

/* ---- meeting ------------------------------------------------------------------- */

/* Rounds of the side that made more of them; false where the two are not forks of one. */
static bool rounds_apart(const struct set *s, const struct member_set *t, uint64_t *rounds)
{
    bool they = t->parent && (t->parent == s->lineage || t->parent == s->parent);
    bool we = s->parent && (s->parent == t->lineage || s->parent == t->parent);
    uint64_t fork = they && we ? (t->forked_at < s->forked_at ? t->forked_at : s->forked_at)
                    : they     ? t->forked_at
                               : s->forked_at;
    uint64_t most = t->round > s->own_round ? t->round : s->own_round;
    *rounds = most > fork ? most - fork : 0;
    return they || we;
}

/* The lowest id of the lineage decides for all of it, so that they do not differ. */
static bool leads_lineage(const struct set *s, const struct env *e)
{
    for (uint32_t i = 1; i < e->view->n; i++)
        if (shares_model(s, &e->members[i]) && e->members[i].node_id < e->members[0].node_id)
            return false;
    return true;
}

static void adopt(struct set *s, const struct env *e, const struct member_set *t, const char *what)
{
    rename_lineage(s, t->lineage);
    s->parent = t->parent;
    s->forked_at = t->forked_at;
    s->announced |= SET_UNTOLD;
    s->apart.waits = false;
    s->apart.looked = false;
    tell(s, e, what);
}

void set_meet(struct set *s, const struct env *e, const struct member_set *before,
              const struct member_set *t, sleet_time now)
{
    struct apart *a = &s->apart;
    uint64_t rounds;
    if (!s->established || !t->established || t->lineage == s->lineage || t->lineage == a->merge_to)
        return;
    if (t->parent == s->lineage && a->minor && !t->parked) { /* one of this side goes on */
        common_drop(&a->common, 0, now);
        a->minor = a->merged = false;
        adopt(s, e, t, "lineage-forks");
        return;
    }
    if (!lineage_heavier(t->weight, t->lineage, s->weight, s->lineage))
        return;
    if (t->merged && before->established && before->lineage == s->lineage) {
        a->merge_to = t->lineage; /* as the one that decides has done */
        return;
    }
    bool brief = rounds_apart(s, t, &rounds) && rounds < e->config->merge_rounds;
    if (!leads_lineage(s, e)) { /* it will be heard, or else */
        if (!a->waits)
            a->waits_since = now;
        a->waits = true;
        if (time_since(now, a->waits_since) < suspicion(e))
            return;
    }
    a->waits = false;
    a->merge_to = brief ? t->lineage : 0;
    if (brief)
        return;
    s->established = false;
    a->renumber = true;
    tell(s, e, "lineage-yields");
}

/* ---- too little arrives ---------------------------------------------------------- */

void set_note_coverage(struct set *s, const struct env *e, bool low)
{
    struct apart *a = &s->apart;
    if (!low || e->config->go_on_isolated) {
        if (a->isolated)
            tell(s, e, "isolation-over");
        a->isolated = false;
        a->low = 0;
        return;
    }
    if (a->isolated || ++a->low < ISOLATED_AFTER)
        return;
    a->isolated = true;
    a->isolated_at = s->own_round;
    s->announced |= SET_UNTOLD;
    tell(s, e, "isolated");
}

/* Round numbers are a lineage's: those of the one joined may be lower, or far ahead. */
static void renumber(struct set *s, const struct env *e)
{
    uint64_t joined = set_others(s, e).joined;
    bool off = s->own_round > joined ||
               (s->established && s->own_round + e->config->window < joined);
    if (!s->apart.renumber || !joined)
        return;
    s->apart.renumber = false;
    if (!off)
        return;
    s->own_round = joined;
    for (uint32_t i = 0; i < ROUNDS_RING; i++)
        if (s->ring[i] && s->ring[i]->number > joined)
            set_retire(s, e, i);
}

void set_change_over(struct set *s, const struct env *e)
{
    const struct member_set *t = view_heaviest(e->view, (uint32_t)s->handle);
    if (t && s->established && s->apart.merge_to == t->lineage) {
        s->weight = t->weight;
        s->apart.merged = s->apart.renumber = true;
        adopt(s, e, t, "lineage-merges");
    }
    s->apart.merge_to = 0;
    renumber(s, e);
}

/* The others go on: their model is the one to have once they can be heard well. */
void set_isolated_joins(struct set *s, const struct env *e)
{
    const struct apart *a = &s->apart;
    for (uint32_t i = 1; a->isolated && s->established && i < e->view->n; i++) {
        const struct member_set *ms = &e->members[i].sets[s->handle];
        if (shares_model(s, &e->members[i]) && !ms->parked && !ms->paused &&
            ms->round > a->isolated_at + e->config->window)
            s->established = false;
    }
}
