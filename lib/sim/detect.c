#include "sim/detect.h"
#include <string.h>

#define SETTLE 5 /* periods before anything is measured */
#define QUIET 20 /* measured without an event */
#define KNOWN 90 /* the longest wait for all to declare a member dead */
#define STEP MS(10)

struct study {
    members *net;
    struct detection *d;
    uint8_t *is_victim, *is_starved; /* by node */
    uint8_t *wronged;
    struct victim {
        sleet_time died, first, last, dead;
        uint32_t suspects, declarers;
    } victims[DETECT_VICTIMS_MAX];
    uint32_t victim_of[SWIM_MEMBERS_MAX];
    struct starvation *s;
};

static double periods(sleet_time from, sleet_time to)
{
    return (double)time_since(to, from) / 1e9;
}

static void saw(members *net, uint32_t node, const struct swim_member *m, void *arg)
{
    struct study *t = arg;
    uint32_t who = (uint32_t)m->record.node_id - 1;
    sleet_time now = members_now(net);
    bool suspect = m->record.status == STATUS_SUSPECT, dead = m->record.status == STATUS_DEAD;
    (void)node;
    if (!t->is_victim[who]) {
        t->d->wronged += (suspect || dead) && !t->wronged[who];
        t->wronged[who] |= suspect || dead;
        return;
    }
    struct victim *v = &t->victims[t->victim_of[who]];
    if (suspect && time_since(m->since, now) == 0 && m->accusers_n == 1) {
        v->first = v->suspects++ ? v->first : now;
        v->last = now;
    } else if (dead) {
        v->declarers++;
        v->dead = now;
    }
}

static void sum_up(struct study *t)
{
    struct detection *d = t->d;
    for (uint32_t i = 0; i < d->victims; i++) {
        const struct victim *v = &t->victims[i];
        double first = periods(v->died, v->first), spread = periods(v->first, v->last);
        d->first += first / d->victims;
        d->spread += spread / d->victims;
        d->dead += periods(v->died, v->dead) / d->victims;
        d->first_most = first > d->first_most ? first : d->first_most;
        d->spread_most = spread > d->spread_most ? spread : d->spread_most;
        d->missed += d->nodes - d->victims - v->declarers;
    }
}

static bool all_suspected(const struct study *t)
{
    for (uint32_t i = 0; i < t->d->victims; i++)
        if (t->victims[i].suspects < t->d->nodes - t->d->victims)
            return false;
    return true;
}

/* Messages and bytes a node a period between two counts. */
static void rate(const struct study *t, struct members_totals a, double length, double *messages,
                 double *bytes)
{
    struct members_totals b = members_totals(t->net);
    *messages = (double)(b.sent - a.sent) / length / t->d->nodes;
    *bytes = (double)(b.bytes - a.bytes) / length / t->d->nodes;
}

static void play(struct study *t, sleet_rng *rng)
{
    struct detection *d = t->d;
    members_run(t->net, SETTLE * SEC(1));
    struct members_totals before = members_totals(t->net);
    members_run(t->net, QUIET * SEC(1));
    rate(t, before, QUIET, &d->idle_messages, &d->idle_bytes);
    before = members_totals(t->net);
    sleet_time begin = members_now(t->net);
    for (uint32_t i = 0; i < d->victims; i++) {
        uint32_t node = (uint32_t)((uint64_t)i * d->nodes / d->victims);
        members_run(t->net, SEC(1) / d->victims / 2 +
                                (sleet_duration)(rng_double(rng) * 1e9 / d->victims / 2));
        t->is_victim[node] = 1;
        t->victim_of[node] = i;
        t->victims[i].died = members_now(t->net);
        members_kill(t->net, node);
    }
    for (int k = 0; k < 10 * 100 && !all_suspected(t); k++)
        members_run(t->net, STEP);
    rate(t, before, periods(begin, members_now(t->net)), &d->busy_messages, &d->busy_bytes);
    members_run(t->net, KNOWN * SEC(1));
    sum_up(t);
    for (uint32_t i = 0; i < d->nodes; i++) {
        const struct swim *s = members_node(t->net, i);
        if (s && swim_bytes(s) + sizeof *s > d->memory_bytes)
            d->memory_bytes = swim_bytes(s) + sizeof *s;
    }
}

static bool study_begin(struct study *t, const struct members_config *c)
{
    t->net = members_new(c);
    t->is_victim = calloc(c->nodes, 1);
    t->is_starved = calloc(c->nodes, 1);
    t->wronged = calloc(c->nodes, 1);
    return t->net && t->is_victim && t->is_starved && t->wronged;
}

static void study_end(struct study *t)
{
    members_on_change(t->net, NULL, NULL);
    members_free(t->net);
    free(t->is_victim);
    free(t->is_starved);
    free(t->wronged);
}

bool detect(const struct members_config *c, uint32_t victims, struct detection *d)
{
    sleet_rng rng = {mix64(c->seed + 77)};
    *d = (struct detection){.nodes = c->nodes, .victims = victims};
    struct study *t = calloc(1, sizeof *t);
    if (!t)
        return false;
    t->d = d;
    bool ok = study_begin(t, c);
    if (ok) {
        members_on_change(t->net, saw, t);
        play(t, &rng);
    }
    if (t->net)
        study_end(t);
    free(t);
    return ok;
}

/* ---- starved nodes --------------------------------------------------------------- */

static void wronged(members *net, uint32_t node, const struct swim_member *m, void *arg)
{
    struct study *t = arg;
    uint32_t who = (uint32_t)m->record.node_id - 1;
    if (t->is_starved[who] || time_since(m->since, members_now(net)) != 0)
        return;
    bool dead = m->record.status == STATUS_DEAD;
    t->s->suspected += !t->is_starved[node] && m->record.status == STATUS_SUSPECT;
    t->s->declared += !t->is_starved[node] && dead;
    t->s->declared_by_starved += t->is_starved[node] && dead;
}

static void starve(struct study *t, sleet_duration blocked, sleet_duration awake, uint32_t length)
{
    uint32_t n = t->s->nodes, step = 0;
    sleet_time end = time_add(members_now(t->net), length * SEC(1));
    while (time_before(members_now(t->net), end)) {
        for (uint32_t i = 0; i < n; i++)
            if (t->is_starved[i])
                members_starve(t->net, i, step % 2 == 0);
        members_run(t->net, step++ % 2 == 0 ? blocked : awake);
    }
    for (uint32_t i = 0; i < n; i++)
        members_starve(t->net, i, false);
}

bool detect_starved(const struct members_config *c, uint32_t starved, sleet_duration blocked,
                    sleet_duration awake, uint32_t length, struct starvation *s)
{
    *s = (struct starvation){.nodes = c->nodes, .starved = starved};
    struct study *t = calloc(1, sizeof *t);
    if (!t)
        return false;
    t->s = s;
    bool ok = study_begin(t, c);
    for (uint32_t i = 0; ok && i < starved; i++)
        t->is_starved[(uint64_t)i * c->nodes / starved] = 1;
    if (ok) {
        members_run(t->net, SETTLE * SEC(1));
        members_on_change(t->net, wronged, t);
        starve(t, blocked, awake, length);
    }
    if (t->net)
        study_end(t);
    free(t);
    return ok;
}
