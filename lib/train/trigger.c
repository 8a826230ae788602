#include "train/trigger.h"
#include <math.h>
#include <stddef.h>
#include <string.h>

#define FORGET 0.25 /* weight of the newest time in the means */

static const struct trigger_kind *const kinds[] = {
#define TRIGGER_X(name, kind) &kind,
    TRIGGER_MAP(TRIGGER_X)
#undef TRIGGER_X
};

const struct trigger_kind *trigger_find(const char *name)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kinds[i]->name, name) == 0)
            return kinds[i];
    return NULL;
}

static void take_in(double *mean, double x)
{
    *mean = *mean > 0 ? *mean + FORGET * (x - *mean) : x;
}

void trigger_step(struct trigger *t, double seconds)
{
    t->local++;
    take_in(&t->step_s, seconds);
}

void trigger_round(struct trigger *t, double seconds)
{
    t->local = 0;
    take_in(&t->round_s, seconds);
}

bool trigger_due(const struct trigger_options *o, const struct trigger *t, uint64_t done)
{
    return o->kind->due(o, t, done);
}

bool trigger_always(const struct trigger_options *o)
{
    return o->kind == &trigger_every && o->every == 1;
}

bool trigger_waits(const struct trigger_options *o)
{
    return o->kind == &trigger_every && o->every > 1;
}

/* ---- every ------------------------------------------------------------------------ */

static bool every_due(const struct trigger_options *o, const struct trigger *t, uint64_t done)
{
    (void)t;
    return done % o->every == 0;
}

const struct trigger_kind trigger_every = {.name = "every", .due = every_due};

/* ---- auto ------------------------------------------------------------------------- */

static bool auto_due(const struct trigger_options *o, const struct trigger *t, uint64_t done)
{
    (void)o;
    (void)done;
    return t->local >= t->every;
}

/* A first round waits for those who come late, a slow one for what is not the rule: hence the bound. */
double trigger_wish(const struct trigger *t)
{
    double now = t->every < 1 ? 1 : t->every;
    double steps = t->step_s > 0 ? t->round_s / (TRIGGER_AUTO_SHARE * t->step_s) : TRIGGER_AUTO_MAX;
    return log2(fmax(1, fmin(steps, fmin(2 * now, TRIGGER_AUTO_MAX))));
}

uint64_t trigger_choose(struct trigger *t, double mean_wish)
{
    double steps = ceil(exp2(mean_wish) - 1e-3); /* what f32 makes of a whole number stays one */
    t->every = steps >= 1 ? fmin(steps, TRIGGER_AUTO_MAX) : 1; /* of a NaN as well */
    return (uint64_t)t->every;
}

const struct trigger_kind trigger_auto = {.name = "auto", .due = auto_due, .joins = true};
