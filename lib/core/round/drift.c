/* Which values are compared: those that ought to be the same on all nodes.  Of a set of payload
 * model that is the result; its tensors of state are each node's own.  Of an additive set it is
 * the tensors of state, as they are before the caller adds the result to them. */
#define XXH_INLINE_ALL
#include "base/rng.h"
#include "round/round.h"
#include <math.h>
#include <xxhash.h>

#define PHI UINT64_C(0x9e3779b97f4a7c15)

static bool compared(const struct layout *l, uint32_t tensor)
{
    bool state = l->tensors[tensor].dtype == SLEET_F32_STATE;
    return state == kind_additive(&l->kind);
}

/* Fragment number i of those that are compared. */
static uint32_t nth(const struct layout *l, uint64_t i)
{
    for (uint32_t t = 0; t < l->n; t++) {
        if (!compared(l, t))
            continue;
        if (i < l->tensors[t].fragments)
            return l->tensors[t].first + (uint32_t)i;
        i -= l->tensors[t].fragments;
    }
    return l->fragments;
}

/* The same; of a set that is spread the next one that the round has averaged, for the others go their own way
 * between their rounds. */
static uint32_t sampled(const struct layout *l, const struct round *r, uint64_t i, uint64_t all)
{
    uint32_t f = nth(l, i % all);
    for (uint32_t k = 1; l->kind.spread > 1 && r->number_of[f] == NOT_DUE && k < 2 * l->kind.spread; k++)
        f = nth(l, (i + k) % all);
    return f;
}

static void add(const struct layout *l, const struct round *r, uint32_t fragment, struct wire_sketch *k,
                double sums[static WIRE_PROJECTIONS + 1])
{
    uint32_t tensor, n;
    uint64_t offset, signs = 0;
    sleet_rng rng = {mix64(r->number * PHI) ^ fragment};
    layout_locate(l, fragment, &tensor, &offset, &n);
    const float *x = (const float *)r->result[tensor] + offset;
    k->digest += XXH3_64bits_withSeed(x, n * sizeof *x, fragment);
    for (uint32_t i = 0; i < n; i++) {
        double v = (double)x[i];
        if (i % (64 / WIRE_PROJECTIONS) == 0)
            signs = rng_next(&rng);
        for (uint32_t p = 0; p < WIRE_PROJECTIONS; p++, signs >>= 1)
            sums[p] += signs & 1 ? v : -v;
        sums[WIRE_PROJECTIONS] += v * v;
    }
}

void drift_note(struct set *s, const struct round *r)
{
    struct wire_sketch k = {.round = (uint32_t)r->number, .group = r->group.hash};
    double sums[WIRE_PROJECTIONS + 1] = {0};
    uint64_t all = 0;
    for (uint32_t t = 0; t < s->layout.n; t++)
        all += compared(&s->layout, t) ? s->layout.tensors[t].fragments : 0;
    if (!all || s->layout.kind.exchange == SLEET_REDUCE_SCATTER)
        return;
    for (uint64_t i = 0; i < DRIFT_SAMPLE; i++)
        add(&s->layout, r, sampled(&s->layout, r, mix64(r->number * PHI + i) % all, all), &k, sums);
    k.norm = (float)sqrt(sums[WIRE_PROJECTIONS]);
    bool finite = isfinite(k.norm) != 0;
    for (uint32_t p = 0; p < WIRE_PROJECTIONS; p++) {
        k.projection[p] = (float)sums[p];
        finite &= isfinite(k.projection[p]) != 0;
    }
    if (finite)
        s->drift.own[s->drift.n++ % DRIFT_ROUNDS] = k;
}

/* Not the newest: that round is not over yet at some of the others. */
const struct wire_sketch *drift_told(const struct set *s)
{
    return s->drift.n < 2 ? NULL : &s->drift.own[(s->drift.n - 2) % DRIFT_ROUNDS];
}

double drift_between(const struct wire_sketch *a, const struct wire_sketch *b)
{
    double sum = 0, norm = (double)(a->norm > b->norm ? a->norm : b->norm);
    if (a->digest == b->digest || norm <= 0)
        return 0;
    for (uint32_t p = 0; p < WIRE_PROJECTIONS; p++) {
        double d = ((double)a->projection[p] - (double)b->projection[p]) / norm;
        sum += d * d;
    }
    return sqrt(sum / WIRE_PROJECTIONS);
}

/* Of three or more, the odd one is who differs from most. */
static bool odd_myself(const struct set *s, const struct env *e)
{
    uint32_t n = 0, off = 0;
    for (uint32_t i = 1; i < e->view->n; i++) {
        const struct member *m = &e->members[i];
        if (!m->used || !m->alive || !m->sets[s->handle].drift_round)
            continue;
        n++;
        off += m->sets[s->handle].drift_off > 0;
    }
    return n >= 2 && 2 * off > n;
}

/* Twice in a row: one round may have been cut short.  Said after 1, 2, 4, ... times. */
static void alarm(struct set *s, const struct env *e, struct member *m)
{
    struct member_set *ms = &m->sets[s->handle];
    bool self = odd_myself(s, e);
    struct member *who = self ? &e->members[0] : m;
    uint64_t times = ++who->sets[s->handle].drift_alarms;
    if ((times & (times - 1)) == 0)
        LOG(&e->config->log, LOG_WARN, self ? FAULT_LOCAL : FAULT_REMOTE, "replicas-drift", F_X("node", who->node_id),
            F_F("difference", (double)ms->drift), F_U("round", ms->drift_round), F_S("set", s->layout.name));
}

void drift_recv(struct set *s, const struct env *e, struct member *m, const struct wire_sketch *k)
{
    struct member_set *ms = &m->sets[s->handle];
    for (uint32_t i = 0; i < DRIFT_ROUNDS && ms->drift_round != k->round; i++) {
        const struct wire_sketch *own = &s->drift.own[i];
        if (own->round != k->round || own->group != k->group)
            continue;
        ms->drift = (float)drift_between(own, k);
        ms->drift_round = k->round;
        ms->drift_off = (double)ms->drift > DRIFT_ALARM ? ms->drift_off + 1 : 0;
        if (ms->drift_off >= 2)
            alarm(s, e, m);
    }
}
