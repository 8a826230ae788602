/* Owners that tell different members different results.  Each member sums hashes of
 * the commits it holds of each owner; at the end of a round it tells one other member its sum of
 * one owner, another pair each round.  Where both hold the whole share and the sums differ, the
 * owner or the teller lies: who is named by several tellers is the owner, who names several owners
 * the teller. */
#define XXH_INLINE_ALL
#include "base/rng.h"
#include "round/round.h"
#include <xxhash.h>

void witness_note(struct round *r, const struct env *e, uint32_t owner, uint32_t fragment,
                  float weight, uint64_t mask, const void *values, size_t bytes)
{
    struct {
        uint64_t mask;
        uint32_t fragment;
        float weight;
    } head = {mask, fragment, weight};
    if (e->config->clip <= 0)
        return;
    uint64_t seed = XXH3_64bits(&head, sizeof head);
    r->lane[owner].digest += XXH3_64bits_withSeed(values, bytes, seed);
}

static bool holds_all(const struct round *r, uint32_t owner)
{
    const struct lane *l = &r->lane[owner];
    uint32_t held = (int)owner == r->self ? r->own.commits - r->own.foreign_commits
                                          : l->got_direct + l->got_repaired;
    return l->share && held == l->share && !l->backup.healed; /* else it may be a backup that lies */
}

/* The round has ended here: whom to tell of whom. */
void witness_choose(struct round *r, const struct env *e)
{
    uint32_t n = r->group.n, self = (uint32_t)r->self;
    if (e->config->clip <= 0 || n < 3 || r->mixed)
        return;
    uint64_t turn = mix64(r->number ^ mix64(r->group.members[self].node_id));
    uint32_t to = (self + 1 + (uint32_t)(turn % (n - 1))) % n;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t owner = (uint32_t)((turn / n + i) % n);
        if (owner == self || owner == to || !holds_all(r, owner))
            continue;
        r->witness = (uint8_t)(owner + 1);
        r->witness_to = (uint8_t)to;
        r->lane[to].summary_due = true;
        return;
    }
}

void witness_fill(const struct round *r, uint32_t rank, struct wire_summary *w)
{
    if (!r->witness || r->witness_to != rank || round_disagrees(r, rank))
        return;
    w->flags |= SUMMARY_WITNESS;
    w->owner = (uint8_t)(r->witness - 1);
    w->digest = r->lane[w->owner].digest;
}

void witness_recv(struct round *r, uint32_t rank, const struct wire_summary *w)
{
    if (!(w->flags & SUMMARY_WITNESS) || w->owner >= r->group.n || w->owner == rank)
        return;
    struct lane *l = &r->lane[w->owner];
    if (l->told_by && l->told_digest != l->digest && holds_all(r, w->owner))
        return; /* one contradiction is kept */
    l->told_by = (uint8_t)(rank + 1);
    l->told_digest = w->digest;
}

void witness_judge(struct set *s, const struct round *r, const struct env *e)
{
    for (uint32_t i = 0; e->config->clip > 0 && i < r->group.n; i++) {
        const struct lane *l = &r->lane[i];
        if (!l->told_by || !holds_all(r, i) || l->told_digest == l->digest)
            continue;
        struct member *owner = &e->members[r->group.members[i].slot];
        struct member *teller = &e->members[r->group.members[l->told_by - 1].slot];
        owner->sets[s->handle].disputed++;
        teller->sets[s->handle].disputes++;
        e->counters->disputed++;
        LOG(&e->config->log, LOG_WARN, FAULT_REMOTE, "results-differ", F_X("owner", owner->node_id),
            F_X("told_by", teller->node_id), F_U("round", r->number), F_S("set", s->layout.name));
    }
}
