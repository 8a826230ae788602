/* A set's rounds: their numbers, the window, and what time alone brings about. */
#include "round/round.h"
#include <string.h>

#define KEEP_LEAST (16u << 20) /* bytes */
#define RETRY MS(20)

struct member_rounds set_others(const struct set *s, const struct env *e)
{
    uint64_t lineage = s->lineage;
    if (!s->established && !set_heaviest_lineage(s, e, &lineage))
        return (struct member_rounds){0};
    return view_rounds(e->view, (uint32_t)s->handle, lineage);
}

uint64_t set_job_round(const struct set *s, const struct env *e)
{
    struct member_rounds o = set_others(s, e);
    return o.second > s->own_round ? o.second : s->own_round;
}

bool set_wanted(const struct set *s, const struct env *e)
{
    struct member_rounds o = set_others(s, e);
    uint64_t next = s->own_round + 1 > o.second ? s->own_round + 1 : o.second;
    return !s->open && !s->waiting && !set_parked(s, e) && next <= o.joined;
}

struct round *set_find(const struct set *s, uint64_t number)
{
    struct round *r = s->ring[number % ROUNDS_RING];
    if (!r || r->number != number)
        return NULL;
    r->quiet_until = (sleet_time){0};
    return r;
}

bool set_refers_to(const struct set *s, int slot)
{
    for (uint32_t i = 0; i < ROUNDS_RING; i++)
        for (uint32_t k = 0; s->ring[i] && k < s->ring[i]->group.n; k++)
            if (s->ring[i]->group.members[k].slot == slot)
                return true;
    return false;
}

void set_retire(struct set *s, const struct env *e, uint32_t slot)
{
    struct round *r = s->ring[slot];
    if (!r)
        return;
    ledger_finish(s, r, e, true);
    carry_retire(s, r);
    edge_retire(s, r);
    round_free(r);
    s->ring[slot] = NULL;
}

/* Where a strategy parts the view others may be far ahead, but for those that this node is to meet: its window is that
 * of its own next round. */
static uint64_t window_end(const struct set *s, const struct env *e)
{
    bool own = s->established && s->own_round && set_parts(s, s->own_round + 1);
    uint64_t job = set_job_round(s, e);
    return own && s->own_round + 1 < job ? s->own_round + 1 : job;
}

/* Commits of past rounds serve those who still miss some, the newest first within
 * keep_bytes; by default twice what a round has of own and of others' commits, and 16 MiB where that is more. */
static void bound_kept(struct set *s, const struct env *e)
{
    uint64_t kept = 0, end = window_end(s, e);
    for (uint64_t back = 1; back < ROUNDS_RING && back < end; back++) {
        struct round *r = set_find(s, end - back);
        if (!r || r == s->open)
            continue;
        uint64_t own = (uint64_t)r->lane[r->self].share * s->layout.coded;
        uint64_t others = (uint64_t)r->backup.n * s->layout.coded;
        uint64_t most = 2 * (own + others) > KEEP_LEAST ? 2 * (own + others) : KEEP_LEAST;
        if (e->config->keep_bytes)
            most = e->config->keep_bytes;
        kept += r->own.commit ? own : 0;
        if (r->own.commit && kept > most)
            owner_drop_commits(r);
        kept += others;
        if (others && kept > most)
            backup_drop(r);
    }
}

/* Among neighbours nothing is given before the trainer is here: a list that a datagram brought about is looked at again. */
static bool outdated(const struct set *s, const struct env *e, const struct round *r)
{
    struct plan p;
    return r->edges && set_group(s, e, r->number, &p) && p.group.hash != r->group.hash;
}

/* The round `number` with its group pinned, made if it is new. */
struct round *set_pin(struct set *s, const struct env *e, uint64_t number, sleet_time now)
{
    struct plan p;
    struct round **slot = &s->ring[number % ROUNDS_RING];
    uint64_t lineage = s->established ? s->lineage : 0;
    if (!s->established)
        set_heaviest_lineage(s, e, &lineage);
    if (*slot && (*slot)->number == number && !(*slot)->lineage && !layout_has_model(&s->layout))
        (*slot)->lineage = lineage; /* its founder is heard now; the group is the same all along */
    if (*slot && (*slot)->number == number && ((*slot)->joined || ((*slot)->lineage == lineage && !outdated(s, e, *slot))))
        return *slot;
    if ((*slot && ((*slot)->number > number || *slot == s->open)) || !set_group(s, e, number, &p))
        return NULL;
    set_retire(s, e, number % ROUNDS_RING);
    bound_kept(s, e);
    *slot = round_new(&s->layout, &p, group_rank(&p.group, e->members[0].node_id), number, now);
    if (*slot)
        (*slot)->lineage = lineage;
    return *slot;
}

/* The same for a round that a datagram names; NULL outside the window. */
struct round *set_round(struct set *s, const struct env *e, uint64_t number, sleet_time now)
{
    struct round *r = set_find(s, number);
    uint64_t end = window_end(s, e);
    if (r || !(s->attached || s->serves) || number == 0 || number > end + 1 || number + e->config->window < end)
        return r;
    return set_pin(s, e, number, now);
}

/* Longer than several polls and their answers can get lost. */
static sleet_duration silence_limit(const struct set *s)
{
    sleet_duration limit = 2 * budget_now(&s->budget);
    return limit > MS(500) ? limit : MS(500);
}

/* Members that keep a round waiting and answer no poll are left out until they speak. */
static void suspect_silent(struct set *s, struct round *r, const struct env *e, sleet_time now)
{
    sleet_duration limit = silence_limit(s);
    if (time_since(now, r->started) < limit)
        return;
    for (uint32_t i = 0; i < r->group.n; i++) {
        struct member *m = &e->members[r->group.members[i].slot];
        if ((int)i == r->self || !m->alive || gather_done_from(s, r, e, i, now) ||
            time_since(now, m->heard) < limit)
            continue;
        view_set_alive(e->view, m, false);
        LOG(&e->config->log, LOG_WARN, FAULT_REMOTE, "member-silent", F_X("node", m->node_id),
            F_U("round", r->number), F_F("silent_s", (double)time_since(now, m->heard) / 1e9));
    }
}

void set_expire(struct set *s, const struct env *e, sleet_time now)
{
    struct round *r = s->open;
    set_look(s, e, now);
    if (s->waiting)
        set_retry_start(s, e, now);
    late_follow(s, e, now);
    if (r && !r->closing && !r->prepared) {
        r->quiet_until = (sleet_time){0};
        rotated_forward(s, r);
    }
    if (r && (r->closing || !time_before(now, set_last_call(s, r)))) {
        r->flags |= r->closing ? 0 : SLEET_DEADLINE;
        set_close(s, r, e, SLEET_OK, now);
    }
    uint64_t job = set_job_round(s, e), end = window_end(s, e);
    bool met = s->open && s->open->group.part && set_still_met(s, e, &s->open->group, s->open->edges != NULL, s->open->number);
    if (s->open && !met && s->open->number + e->config->window < job)
        set_close(s, s->open, e, SLEET_OK, now); /* the others no longer serve it */
    for (uint32_t i = 0; i < ROUNDS_RING; i++) {
        r = s->ring[i];
        if (!r)
            continue;
        if (!r->own.final || r == s->open)
            r->quiet_until = (sleet_time){0};
        owner_check(s, r, e, now);
        if (r == s->open)
            suspect_silent(s, r, e, now);
        if (r == s->open && gather_complete(s, r, e, now))
            set_close(s, r, e, SLEET_OK, now);
        if (r != s->open && r->number + e->config->window < end)
            set_retire(s, e, i);
    }
}

sleet_time set_deadline(const struct set *s, const struct env *e, sleet_time now)
{
    sleet_time t =
        s->waiting ? time_min(time_add(now, RETRY), set_pending_deadline(s)) : TIME_NEVER;
    t = time_min(t, set_look_deadline(s));
    if (s->alone.active || (s->open && (s->open->closing || !s->open->prepared)))
        return now;
    if (s->open) {
        sleet_time look = time_add(s->open->started, silence_limit(s));
        if (!time_before(now, look))
            look = time_add(now, MS(50));
        t = time_min(t, time_min(set_last_call(s, s->open), look));
        t = time_min(t, gather_deadline(s, s->open, e, now));
    }
    for (uint32_t i = 0; i < ROUNDS_RING; i++)
        if (s->ring[i])
            t = time_min(t, time_min(owner_deadline(s, s->ring[i]),
                                     feedback_deadline(s, s->ring[i], e, now)));
    return t;
}

void set_fini(struct set *s)
{
    for (uint32_t i = 0; i < ROUNDS_RING; i++)
        round_free(s->ring[i]);
    set_drop_pending(s);
    common_fini(&s->apart.common);
    clip_fini(&s->clip);
    collect_drop(&s->collect);
    late_drop(&s->late);
    edge_late_drop(s);
    low_drop(s);
    carry_drop(&s->carry, s->layout.fragments);
    layout_fini(&s->layout);
    memset(s, 0, sizeof *s);
}
