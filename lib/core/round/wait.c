/* How long an owner waits for those it needs, and what it learns from whom it did not wait for.
 *
 * The budget says what was enough so far.  Two things tell at once that it no longer is: silence,
 * since whoever is there and has nothing to give answers all the same; and those
 * who come after the commit, since by then it is known how long they would have taken. */
#include "round/round.h"

#define UNHEARD_MAX MS(500) /* several polls and their answers can get lost */
#define BIT(rank) ((uint64_t)1 << (rank))

static struct member_set *said_by(const struct set *s, const struct round *r, const struct env *e, uint32_t rank)
{
    return &e->members[r->group.members[rank].slot].sets[s->handle];
}

sleet_duration wait_budget(const struct set *s, const struct round *r)
{
    if (!r->exact)
        return quorum_wait(s, r);
    sleet_duration own = r->joined ? time_since(r->deadline, r->started) : 0;
    return own > s->budget.max ? own : s->budget.max;
}

/* Nothing of one of them has come since this round is waited for: it is the way that takes so
 * long, or the member is dead.  Such are asked: it may also be that what they were sent is lost, so
 * that they do not know of the round.  Whom that was done for in vain is not waited for so again. */
static bool ask_unheard(const struct set *s, const struct round *r, const struct env *e, uint64_t missing)
{
    bool any = false;
    for (uint32_t i = 0; i < r->group.n; i++) {
        struct member *m = &e->members[r->group.members[i].slot];
        if (!(missing & BIT(i)) || (int)i == r->self || !time_before(m->heard, r->own.first_seen) ||
            m->sets[s->handle].cut_round)
            continue;
        m->probe_due = any = true;
        view_answer(e->view, m);
    }
    return any;
}

static void set_floor(struct set *s, const struct round *r, const struct env *e)
{
    sleet_duration floor = 0;
    for (uint32_t i = 0; i < r->group.n; i++) {
        const struct member *m = &e->members[r->group.members[i].slot];
        if ((r->own.need & BIT(i)) && m->rtt.valid && rtt_timeout(&m->rtt) > floor)
            floor = rtt_timeout(&m->rtt);
    }
    budget_floor(&s->budget, floor);
}

bool wait_is_over(struct set *s, struct round *r, const struct env *e, uint64_t missing, sleet_time now)
{
    struct owner_side *o = &r->own;
    set_floor(s, r, e);
    sleet_duration budget = wait_budget(s, r), most = UNHEARD_MAX;
    if (time_since(now, o->first_seen) < budget) {
        o->until = time_add(o->first_seen, budget);
        return false;
    }
    if (!time_is_never(o->until) && time_before(now, o->until))
        return false; /* they were asked */
    if (r->exact || time_since(now, o->first_seen) >= most || !ask_unheard(s, r, e, missing))
        return true;
    o->until = time_min(time_add(o->first_seen, most), time_add(now, budget));
    return false;
}

void wait_note_cut(struct set *s, const struct round *r, const struct env *e, uint64_t missing)
{
    for (uint32_t i = 0; i < r->group.n; i++) {
        struct member_set *ms = said_by(s, r, e, i);
        if (!(missing & BIT(i)) || ms->cut_round)
            continue;
        ms->cut_round = r->number;
        ms->cut_since = r->own.first_seen;
        s->cut_off++;
    }
}

/* All of its contribution has come to the round in which it was cut off, or it has gone on. */
static bool has_come(const struct set *s, const struct round *r, uint32_t rank, const struct member_set *ms)
{
    const struct lane *l = &r->lane[rank];
    bool own = (int)rank == r->self;
    uint64_t round = own ? s->own_round : ms->round;
    bool whole = own || (r->own.over & BIT(rank)) ||
                 l->in_direct + l->in_repaired + l->in_late >= r->lane[r->self].share;
    return round > ms->cut_round || (round == ms->cut_round && r->number == round && whole);
}

void wait_learn(struct set *s, const struct round *r, const struct env *e, sleet_time now)
{
    for (uint32_t i = 0; s->cut_off && i < r->group.n; i++) {
        const struct group_member *g = &r->group.members[i];
        const struct member *m = &e->members[g->slot];
        struct member_set *ms = said_by(s, r, e, i);
        bool gone = !m->alive || m->boot_id != g->boot_id;
        if (!ms->cut_round || (!gone && !has_come(s, r, i, ms)))
            continue;
        if (!gone)
            budget_late(&s->budget, time_since(now, ms->cut_since));
        ms->cut_round = 0;
        s->cut_off--;
    }
}
