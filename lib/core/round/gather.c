/* The member's half: commits into the result. */
#include "round/round.h"
#include "base/bitmap.h"
#include "codec/codec.h"
#include <math.h>
#include <string.h>

static uint32_t mask_count(const struct round *r, uint64_t mask)
{
    uint64_t all = r->group.n == 64 ? ~(uint64_t)0 : ((uint64_t)1 << r->group.n) - 1;
    return (mask & ~all) ? 0 : (uint32_t)__builtin_popcountll(mask);
}

static void note_held(struct round *r, uint32_t fragment, uint32_t contributors, uint32_t elements)
{
    bitmap_set(r->got, fragment);
    r->got_n++;
    r->present += (uint64_t)contributors * elements;
}

/* A commit made here. */
void gather_own(struct set *s, struct round *r, uint32_t number)
{
    uint32_t fragment = r->frag[r->lane[r->self].start + number], tensor, n;
    uint64_t offset;
    if (!r->joined || r->closed || bitmap_test(r->got, fragment))
        return;
    layout_locate(&s->layout, fragment, &tensor, &offset, &n);
    memcpy((float *)r->result[tensor] + offset, r->own.commit + (size_t)number * FRAGMENT_ELEMENTS,
           n * sizeof(float));
    note_held(r, fragment, mask_count(r, r->own.mask[number]), n);
}

enum fate gather_recv(struct set *s, struct round *r, const struct env *e, uint32_t rank,
                      const struct wire_data *d, uint32_t fragment, sleet_time now)
{
    struct lane *lane = &r->lane[rank];
    if (d->group != r->group.hash) {
        lane->disagrees = true;
        return FATE_FOREIGN;
    }
    uint32_t contributors = mask_count(r, d->mask);
    if (r->owner_of_run[fragment / RUN_FRAGMENTS] != rank || !contributors)
        return FATE_FOREIGN;
    (void)now;
    if (!r->joined)
        return FATE_STALE; /* it will be asked for once the trainer is here */
    if (r->closed || r->closing) {
        lane->got_late += lane->got_direct + lane->got_repaired + lane->got_late < lane->share;
        return FATE_STALE;
    }
    if (bitmap_test(r->got, fragment))
        return FATE_ACCEPTED;
    float x[FRAGMENT_ELEMENTS];
    uint32_t tensor, n;
    uint64_t offset;
    layout_locate(&s->layout, fragment, &tensor, &offset, &n);
    const struct codec *c = codec_by_id(d->codec);
    if (!c || !c->decode(x, d->payload, n)) {
        e->counters->nonfinite++;
        return FATE_CORRUPT;
    }
    memcpy((float *)r->result[tensor] + offset, x, n * sizeof(float));
    note_held(r, fragment, contributors, n);
    if (d->phase == PHASE_REPAIR)
        lane->got_repaired++;
    else
        lane->got_direct++;
    lane->summary_gap = MS(1);
    return FATE_ACCEPTED;
}

/* True when nothing more can come from the member as an owner. */
bool gather_done_from(const struct set *s, const struct round *r, const struct env *e, uint32_t rank)
{
    const struct lane *l = &r->lane[rank];
    const struct group_member *g = &r->group.members[rank];
    const struct member *m = &e->members[g->slot];
    uint32_t got = l->got_direct + l->got_repaired;
    if ((int)rank == r->self)
        return r->own.final && r->own.taken == r->own.commits;
    bool over = l->commits_final && (got >= l->commits_told || e->config->repair_off);
    bool never = !m->sets[s->handle].attached && got == 0 && l->commits_told == 0;
    return got >= l->share || over || never || l->disagrees || !m->alive ||
           m->boot_id != g->boot_id;
}

static bool sole_contributor(const struct round *r)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < r->group.n; i++)
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
    if ((int)rank == r->self || !m->alive || m->boot_id != g->boot_id || !r->contributes ||
        (!sole && time_since(now, r->started) >= budget))
        return true;
    if (!sent)
        return false;
    return g->contributes || ms->round != r->number || ms->closed ||
           time_since(now, l->gather_sent_at) >= budget;
}

bool gather_complete(const struct set *s, const struct round *r, const struct env *e, sleet_time now)
{
    for (uint32_t i = 0; i < r->group.n; i++)
        if (!gather_done_from(s, r, e, i))
            return false;
    for (uint32_t i = 0; i < r->group.n; i++)
        if (!served(s, r, e, i, now))
            return false;
    return true;
}

sleet_time gather_deadline(const struct set *s, const struct round *r, sleet_time now)
{
    sleet_duration budget = budget_now(&s->budget);
    sleet_time t = TIME_NEVER;
    for (uint32_t i = 0; i < r->group.n; i++) {
        sleet_time at = time_add(r->lane[i].gather_sent_at, budget);
        if (sole_contributor(r) && time_before(now, at))
            t = time_min(t, at);
    }
    sleet_time at = time_add(r->started, budget);
    return time_before(now, at) ? time_min(t, at) : t;
}
