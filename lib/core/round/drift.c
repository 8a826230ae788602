/* Which values are compared: those that ought to be the same on all nodes.  Of a set of payload
 * model that is the result; its tensors of state are each node's own.  Of an additive set it is
 * the tensors of state, as they are before the caller adds the result to them. */
#define XXH_INLINE_ALL
#include "base/rng.h"
#include "round/round.h"
#include <math.h>
#include <string.h>
#include <xxhash.h>

#define PHI UINT64_C(0x9e3779b97f4a7c15)
/* The square of a distance is no more: projections of n values are sqrt(n) norms long at most. */
#define APART_MAX (4.0 * DRIFT_SAMPLE * FRAGMENT_ELEMENTS)

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

struct sums {
    double projection[WIRE_PROJECTIONS], squares;
    uint64_t digest;
};

static void add(const struct layout *l, uint64_t round, uint32_t fragment, const void *const *values, struct sums *sums)
{
    uint32_t tensor, n;
    uint64_t offset, signs = 0;
    sleet_rng rng = {mix64(round * PHI) ^ fragment};
    layout_locate(l, fragment, &tensor, &offset, &n);
    const float *x = (const float *)values[tensor] + offset;
    sums->digest += XXH3_64bits_withSeed(x, n * sizeof *x, fragment);
    for (uint32_t i = 0; i < n; i++) {
        double v = (double)x[i];
        if (i % (64 / WIRE_PROJECTIONS) == 0)
            signs = rng_next(&rng);
        for (uint32_t p = 0; p < WIRE_PROJECTIONS; p++, signs >>= 1)
            sums->projection[p] += signs & 1 ? v : -v;
        sums->squares += v * v;
    }
}

/* False: there is nothing to compare, or it is not finite. */
static bool sketch(const struct layout *l, const struct round *r, const void *const *values,
                   float out[static WIRE_PROJECTIONS], struct sums *sums)
{
    uint64_t all = 0;
    for (uint32_t t = 0; t < l->n; t++)
        all += compared(l, t) ? l->tensors[t].fragments : 0;
    *sums = (struct sums){.squares = 0};
    if (!all || l->kind.exchange == SLEET_REDUCE_SCATTER)
        return false;
    for (uint64_t i = 0; i < DRIFT_SAMPLE; i++)
        add(l, r->number, sampled(l, r, mix64(r->number * PHI + i) % all, all), values, sums);
    bool finite = isfinite((float)sqrt(sums->squares)) != 0;
    for (uint32_t p = 0; p < WIRE_PROJECTIONS; p++) {
        out[p] = (float)sums->projection[p];
        finite &= isfinite(out[p]) != 0;
    }
    return finite;
}

void drift_begin(const struct set *s, struct round *r)
{
    struct sums sums;
    if (!sketch(&s->layout, r, r->send, r->before, &sums))
        memset(r->before, 0, sizeof r->before);
}

void drift_note(struct set *s, const struct round *r)
{
    struct wire_sketch k = {.round = (uint32_t)r->number, .group = r->group.hash};
    struct sums sums;
    if (!sketch(&s->layout, r, (const void *const *)r->result, k.projection, &sums))
        return;
    k.norm = (float)sqrt(sums.squares);
    k.digest = sums.digest;
    memcpy(k.before, r->before, sizeof k.before);
    s->drift.differs[s->drift.n % DRIFT_ROUNDS] = r->edges != NULL;
    s->drift.own[s->drift.n++ % DRIFT_ROUNDS] = k;
}

/* Not the newest: that round is not over yet at some of the others. */
const struct wire_sketch *drift_told(const struct set *s)
{
    return s->drift.n < 2 ? NULL : &s->drift.own[(s->drift.n - 2) % DRIFT_ROUNDS];
}

static double square(const float a[static WIRE_PROJECTIONS], const float b[static WIRE_PROJECTIONS], double norm)
{
    double sum = 0;
    for (uint32_t p = 0; p < WIRE_PROJECTIONS && norm > 0; p++)
        sum += pow(((double)a[p] - (double)b[p]) / norm, 2);
    return sum / WIRE_PROJECTIONS;
}

static double larger_norm(const struct wire_sketch *a, const struct wire_sketch *b)
{
    return (double)(a->norm > b->norm ? a->norm : b->norm);
}

double drift_between(const struct wire_sketch *a, const struct wire_sketch *b)
{
    return a->digest == b->digest ? 0 : sqrt(square(a->projection, b->projection, larger_norm(a, b)));
}

/* Squares, smoothed.  A member may tell anything, and infinity would stay in them for ever. */
static void note_distance(struct member_set *ms, const struct wire_sketch *own, const struct wire_sketch *k)
{
    double after = fmin(pow(drift_between(own, k), 2), APART_MAX);
    double before = fmin(square(own->before, k->before, larger_norm(own, k)), APART_MAX);
    float share = ms->apart_round ? 1.0f / DRIFT_SMOOTH : 1;
    ms->apart += share * ((float)after - ms->apart);
    ms->apart_before += share * ((float)before - ms->apart_before);
    ms->apart_round = k->round;
}

struct drift_distance drift_distance(const struct set *s, const struct env *e)
{
    double after = 0, before = 0;
    uint32_t n = 0;
    for (uint32_t i = 1; i < e->view->n; i++) {
        const struct member_set *ms = &e->members[i].sets[s->handle];
        if (!e->members[i].used || !e->members[i].alive || !ms->attached || !ms->apart_round)
            continue;
        after += (double)ms->apart;
        before += (double)ms->apart_before;
        n++;
    }
    return (struct drift_distance){.consensus = n ? sqrt(after / n) : -1, .mixing = before > 0 ? sqrt(after / before) : -1};
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
    for (uint32_t i = 0; i < DRIFT_ROUNDS && ms->apart_round != k->round; i++) {
        const struct wire_sketch *own = &s->drift.own[i];
        if (own->round != k->round)
            continue;
        note_distance(ms, own, k);
        ms->drift_round = 0;
        if (own->group != k->group || s->drift.differs[i])
            continue;
        ms->drift = (float)drift_between(own, k);
        ms->drift_round = k->round;
        ms->drift_off = (double)ms->drift > DRIFT_ALARM ? ms->drift_off + 1 : 0;
        if (ms->drift_off >= 2)
            alarm(s, e, m);
    }
}
