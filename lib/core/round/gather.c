/* The member's half: commits into the result. */
#include "base/bitmap.h"
#include "codec/codec.h"
#include "round/round.h"

static void note_got(struct round *r, uint32_t fragment)
{
    if (!bitmap_test(r->got, fragment)) {
        bitmap_set(r->got, fragment);
        r->got_n++;
    }
}

/* A commit made here. */
void gather_own(struct set *s, struct round *r, const struct env *e, uint32_t number)
{
    uint32_t fragment = owner_fragment(r, number), tensor, n, bytes;
    uint64_t offset;
    float x[FRAGMENT_ELEMENTS];
    if (!r->joined || r->closed || !r->own.commit)
        return;
    layout_locate(&s->layout, fragment, &tensor, &offset, &n);
    const uint8_t *coded = owner_coded(s, r, number, &bytes);
    codec_by_id((uint8_t)s->layout.tensors[tensor].codec)->decode(x, coded, bytes, n);
    struct held h = {r->own.mask[number], (float)-r->own.wsum[number], (uint8_t)r->self};
    held_put(s, r, e, fragment, &h, x);
    if (number < r->lane[r->self].share)
        note_got(r, fragment);
}

static void count_late(struct lane *l)
{
    l->got_late += l->got_direct + l->got_repaired + l->got_late < l->share;
}

/* The group that a contributor pinned in this round, as it told this node; NULL: unknown. */
static const struct group *pinned_by(const struct set *s, const struct round *r,
                                     const struct group_member *who)
{
    int rank = group_rank(&r->group, who->node_id);
    if (rank < 0 || r->group.members[rank].boot_id != who->boot_id)
        return NULL;
    if (rank == r->self)
        return &r->group;
    return r->lane[rank].group ? set_known_group(s, r, r->lane[rank].group) : NULL;
}

/* Where groups differ a member may commit what this node's own list gives to another: then
 * each contributor gave it the fragment by the contributor's list.  Nobody else's word for that is
 * taken, or any member could put its own values in the place of the owner's. */
static enum fate vouched_for(const struct set *s, struct round *r, const struct env *e,
                             const struct member *m, const struct group *named, uint64_t mask,
                             uint32_t run)
{
    enum fate fate = FATE_ACCEPTED;
    for (; mask; mask &= mask - 1) {
        const struct group_member *who = &named->members[__builtin_ctzll(mask)];
        const struct group *g = who->node_id == m->node_id ? named : pinned_by(s, r, who);
        uint8_t owner = g ? owner_of(g, r->turn, run) : OWNER_NONE;
        if (g && (owner == OWNER_NONE || g->members[owner].node_id != m->node_id)) {
            e->counters->usurped++;
            return FATE_FOREIGN;
        }
        if (!g)
            fate = FATE_FOREIGN; /* it may be true */
    }
    return fate;
}

static void note_refused(struct lane *l, const struct env *e, double excess)
{
    e->counters->refused++;
    if (!l)
        return;
    l->refused++;
    l->excess = (double)l->excess > excess ? l->excess : (float)excess;
}

enum fate gather_recv(struct set *s, struct round *r, const struct env *e, const struct member *m,
                      int rank, const struct wire_data *d, const struct part *part)
{
    uint32_t fragment = part->fragment;
    bool backs = d->phase == PHASE_BACKUP; /* the owner is another one, which is gone */
    if (backs && (r->mixed || d->group != r->group.hash))
        return FATE_FOREIGN;
    if (backs && (rank = backup_speaks_for(r, rank, fragment)) < 0) {
        e->counters->usurped++;
        return FATE_FOREIGN;
    }
    struct lane *lane = rank >= 0 ? &r->lane[rank] : NULL;
    bool expected = r->owner_of_run[fragment / RUN_FRAGMENTS] == rank && lane;
    const struct group *g = set_known_group(s, r, d->group);
    if (!g)
        return FATE_UNKNOWN_GROUP;
    struct held h = {.weight = d->weight};
    int in_theirs = group_rank(g, m->node_id), owner = -1;
    uint64_t owner_bit;
    const struct member_set *ms = &m->sets[s->handle];
    if (r->lineage && ms->established && ms->lineage != r->lineage)
        return FATE_FOREIGN; /* another model */
    if (in_theirs < 0 || g->members[in_theirs].boot_id != m->boot_id ||
        group_rank(g, r->group.members[r->self].node_id) < 0 || !held_who(r, g, d->mask, &h.who) ||
        !held_who(r, g, (uint64_t)1 << in_theirs, &owner_bit))
        return FATE_FOREIGN;
    if (!expected && vouched_for(s, r, e, m, g, d->mask, fragment / RUN_FRAGMENTS) != FATE_ACCEPTED)
        return FATE_FOREIGN;
    owner = backs ? rank : __builtin_ctzll(owner_bit);
    h.owner = (uint8_t)owner;
    if (expected && !backs && d->group == r->group.hash && !e->config->backup_off)
        backup_keep(s, r, (uint32_t)rank, d, part);
    if (!r->joined)
        return FATE_STALE; /* it will be asked for once the trainer is here */
    if (r->closed || r->closing) {
        bool known = bitmap_test(r->got, fragment);
        if (expected && r->closed)
            carry_decide(s, r, fragment, h.who >> r->self & 1);
        enum fate fate = expected ? late_recv(s, r, e, (uint32_t)rank, &h, part) : FATE_STALE;
        if (expected && !(fate == FATE_ACCEPTED && known))
            count_late(lane);
        if (backs && fate == FATE_ACCEPTED && !known)
            backup_healed(lane, e);
        return fate;
    }
    if (expected && bitmap_test(r->got, fragment))
        return FATE_ACCEPTED;
    double excess = clip_excess(s, r, e, fragment, &h, part->x);
    if (excess <= 1)
        held_put(s, r, e, fragment, &h, part->x);
    else
        note_refused(lane, e, excess); /* as if there were none */
    if (lane)
        lane->summary_gap = MS(1);
    if (!expected) {
        if (lane)
            lane->got_foreign++;
        return FATE_ACCEPTED;
    }
    note_got(r, fragment);
    witness_note(r, e, (uint32_t)rank, fragment, d->weight, d->mask, part->payload, part->bytes);
    if (backs)
        backup_healed(lane, e);
    if (backs || d->phase == PHASE_REPAIR)
        lane->got_repaired++;
    else
        lane->got_direct++;
    return FATE_ACCEPTED;
}

/* Where groups differ any member may commit fragments that the own group gives to others; such
 * commits are not repaired and nothing waits for them longer than a budget. */
static bool mixed_done(const struct set *s, const struct round *r, const struct member *m,
                       uint32_t rank, bool own_list, sleet_time now)
{
    const struct lane *l = &r->lane[rank];
    uint32_t got = l->got_direct + l->got_repaired + l->got_foreign;
    if (time_since(now, r->started) >= budget_now(&s->budget))
        return own_list || round_disagrees(r, rank);
    if (!l->commits_final || !(own_list || round_disagrees(r, rank)))
        return false;
    return (round_disagrees(r, rank) && got >= l->commits_told) ||
           time_since(now, l->final_at) >= feedback_settle(m);
}

/* Where an owner's commits stay with it: it has all that this node had to give. */
static bool scatter_done(const struct set *s, const struct round *r, uint32_t rank, sleet_time now)
{
    const struct lane *l = &r->lane[rank];
    if (!r->contributes || time_since(now, r->started) >= budget_now(&s->budget))
        return true;
    return l->scatter_pos >= l->share && (!r->exact || l->commits_final);
}

/* True when nothing more can come from the member as an owner. */
bool gather_done_from(const struct set *s, const struct round *r, const struct env *e,
                      uint32_t rank, sleet_time now)
{
    const struct lane *l = &r->lane[rank];
    const struct group_member *g = &r->group.members[rank];
    const struct member *m = &e->members[g->slot];
    uint32_t got = l->got_direct + l->got_repaired;
    if (r->edges)
        return edge_done_with(s, r, e, rank);
    if ((int)rank == r->self)
        return r->own.final && r->own.taken == r->own.commits;
    if (!m->alive || m->boot_id != g->boot_id)
        return backup_done(s, r, e, rank, now);
    if (!round_gathers(r))
        return scatter_done(s, r, rank, now);
    if (!round_scatters(r) && got + l->commits_told == 0 && time_since(now, r->started) >= budget_now(&s->budget))
        return true; /* only its trainer could hand out something */
    bool over = l->commits_final && (got >= l->commits_told || e->config->repair_off || e->config->repair_late);
    bool never = !m->sets[s->handle].attached && !group_auxiliary(g) && got == 0 && l->commits_told == 0;
    bool done = got >= l->share || over || never;
    return r->mixed ? mixed_done(s, r, m, rank, done, now) : done;
}

static bool sole_contributor(const struct round *r)
{
    uint32_t n = 0;
    for (uint32_t i = 0; n < 2 && i < r->group.n; i++)
        n += r->group.members[i].contributes;
    return n == 1;
}

/* Own commits on their way, and members that take the model in this very round have it:
 * a node that needs nobody else must not run ahead of those who need it.  Who contributes
 * with others gives the joiners its budget; who is alone with them waits while they advance. */
static bool served(const struct set *s, const struct round *r, const struct env *e, uint32_t rank,
                   sleet_time now)
{
    const struct group_member *g = &r->group.members[rank];
    const struct lane *l = &r->lane[rank];
    const struct member *m = &e->members[g->slot];
    const struct member_set *ms = &m->sets[s->handle];
    sleet_duration budget = budget_now(&s->budget);
    bool sole = sole_contributor(r), sent = l->gather_pos >= r->own.commits;
    if ((int)rank == r->self || !round_gathers(r) || !m->alive || m->boot_id != g->boot_id || !r->contributes || group_auxiliary(g) ||
        (!sole && time_since(now, r->started) >= budget))
        return true;
    if (!sent)
        return false;
    return g->contributes || ms->round != r->number || ms->closed ||
           time_since(now, l->gather_sent_at) >= budget;
}

bool gather_complete(const struct set *s, const struct round *r, const struct env *e,
                     sleet_time now)
{
    if (r->edges)
        return edge_complete(r);
    for (uint32_t i = 0; i < r->group.n; i++)
        if (!gather_done_from(s, r, e, i, now))
            return false;
    for (uint32_t i = 0; i < r->group.n; i++)
        if (!served(s, r, e, i, now))
            return false;
    return true;
}

sleet_time gather_deadline(const struct set *s, const struct round *r, const struct env *e,
                           sleet_time now)
{
    sleet_duration budget = budget_now(&s->budget);
    sleet_time t = TIME_NEVER;
    if (r->edges)
        return t; /* edge_deadline() */
    for (uint32_t i = 0; i < r->group.n; i++) {
        sleet_time at = time_add(r->lane[i].gather_sent_at, budget);
        if (sole_contributor(r) && time_before(now, at))
            t = time_min(t, at);
        t = time_min(t, backup_wait(s, r, e, i, now));
        if (!r->mixed || !r->lane[i].commits_final)
            continue;
        at = time_add(r->lane[i].final_at, feedback_settle(&e->members[r->group.members[i].slot]));
        if (time_before(now, at))
            t = time_min(t, at);
    }
    sleet_time at = time_add(r->started, budget);
    return time_before(now, at) ? time_min(t, at) : t;
}
