/* When an owner starts closing: for whom it waits first.
 *
 *     all        for everybody
 *     solo, N    for so many, whoever they are: one, N
 *     majority   for one that all draw alike for the round, its initiator.  Where the members come in any order
 *                (n + 1) / 2 of them are there by then, on the average.  When its time is over the next of the
 *                same draw may close the round as well
 *
 * After Li et al., Taming Unbalanced Training Workloads (arXiv 1908.04207), where each process has the whole sum and a
 * signal starts it.  Here no signal is needed: each owner sees who has come.  And whom nobody waits for, since it
 * is dead or took part in none of the last rounds, is not drawn.
 *
 * No contribution may be left out for ever: each round after max_async others waits for all that have a trainer, however
 * late they are, until half of the deadline; in vain only once, until such a trainer takes part again. */
#include "base/rng.h"
#include "round/round.h"

#define TURNS 2      /* that may pass before a round is closed with whoever is there */
#define MAX_ASYNC 64 /* by default */
#define BIT(rank) ((uint64_t)1 << (rank))

/* As the node's trainer asked last: what the others bring may be closed before it comes. */
static uint32_t quorum_of(const struct set *s, const struct round *r)
{
    return r->exact || quorum_is_synchronous(s, r) ? SLEET_QUORUM_ALL : s->pending.options.quorum;
}

bool quorum_leaves_out(const struct set *s)
{
    return s->pending.options.quorum != SLEET_QUORUM_ALL;
}

uint32_t quorum_max_async(const struct set *s)
{
    return s->pending.options.max_async ? s->pending.options.max_async : MAX_ASYNC;
}

bool quorum_is_synchronous(const struct set *s, const struct round *r)
{
    return quorum_leaves_out(s) && r->number % ((uint64_t)quorum_max_async(s) + 1) == 0;
}

bool quorum_calls(const struct set *s, const struct round *r, const struct member_set *ms, uint64_t newest)
{
    return quorum_is_synchronous(s, r) && (!ms->vain_round || ms->vain_round != newest);
}

void quorum_give_up(const struct set *s, const struct round *r, const struct env *e, uint64_t missing)
{
    for (uint32_t i = 0; quorum_is_synchronous(s, r) && i < r->group.n; i++) {
        struct member_set *ms = &e->members[r->group.members[i].slot].sets[s->handle];
        if (missing & BIT(i))
            ms->vain_round = (int)i == r->self ? s->own_round : ms->round;
    }
}

/* Whose turn it is among `left`. */
static uint64_t draw(const struct round *r, uint64_t left)
{
    uint64_t best = 0, lowest = 0;
    for (; left; left &= left - 1) {
        uint64_t id = r->group.members[__builtin_ctzll(left)].node_id;
        uint64_t hash = mix64(r->number ^ mix64(id));
        if (!best || hash < lowest) {
            best = left & -left;
            lowest = hash;
        }
    }
    return best;
}

/* Those who may close the round by now. */
static uint64_t initiators(const struct set *s, struct round *r, sleet_time now)
{
    sleet_duration turn = budget_now(&s->budget);
    sleet_time until = time_add(r->own.first_seen, turn);
    uint64_t some = 0;
    for (uint32_t i = 0; i < TURNS; i++, until = time_add(until, turn)) {
        some |= draw(r, r->own.need & ~some);
        if (time_before(now, until)) {
            r->own.turn_at = until;
            break;
        }
    }
    return some;
}

bool quorum_is_in(const struct set *s, struct round *r, uint64_t over, sleet_time now)
{
    uint32_t quorum = quorum_of(s, r), n = (uint32_t)__builtin_popcountll(r->own.need);
    r->own.turn_at = TIME_NEVER;
    if (quorum == SLEET_QUORUM_MAJORITY)
        return (initiators(s, r, now) & over) != 0;
    if (quorum == SLEET_QUORUM_ALL || quorum > n)
        quorum = n;
    return (uint32_t)__builtin_popcountll(over & r->own.need) >= quorum;
}

sleet_duration quorum_wait(const struct set *s, const struct round *r)
{
    sleet_duration budget = budget_now(&s->budget);
    if (quorum_is_synchronous(s, r)) {
        sleet_duration half = time_since(set_pending_deadline(s), s->pending.at) / 2;
        return half > budget ? half : budget;
    }
    return quorum_of(s, r) == SLEET_QUORUM_MAJORITY ? TURNS * budget : budget;
}
