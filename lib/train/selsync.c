#include "train/trigger.h"
#include <math.h>

#define DECAY 0.99 /* of a value's weight, a step */

/* The mean of the newest `n` of the values; `last` is the place of the newest. */
static double mean_of(const double *ring, uint32_t window, uint64_t last, uint32_t n)
{
    double sum = 0, weights = 0, weight = 1;
    for (uint32_t age = 0; age < n; age++, weight *= DECAY) {
        sum += weight * ring[(last + window - age) % window];
        weights += weight;
    }
    return sum / weights;
}

void trigger_gradient(const struct trigger_options *o, struct trigger *t, double norm)
{
    uint64_t at = (uint64_t)t->gradients++;
    uint32_t n = at + 1 < o->window ? (uint32_t)at + 1 : o->window;
    double before = t->mean;
    t->norm[at % o->window] = norm;
    t->mean = mean_of(t->norm, o->window, at, n);
    t->change[at % o->window] = before > 0 ? fabs(t->mean - before) / before : at > 0 && t->mean > 0; /* from nothing: all of it */
    t->flag = at < o->window || mean_of(t->change, o->window, at, n) >= o->delta;
}

static bool selsync_due(const struct trigger_options *o, const struct trigger *t, uint64_t done)
{
    (void)done;
    return t->flag > 0 || (o->most && t->local >= (double)o->most);
}

const struct trigger_kind trigger_selsync = {.name = "selsync", .due = selsync_due, .joins = true};
