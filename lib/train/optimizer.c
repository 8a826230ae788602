#include "train/optimizer.h"
#include <math.h>
#include <string.h>

static const struct optimizer_kind *const kinds[] = {
#define OPTIMIZER_X(name, kind) &kind,
    OPTIMIZER_MAP(OPTIMIZER_X)
#undef OPTIMIZER_X
};

const struct optimizer_kind *optimizer_find(const char *name)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kinds[i]->name, name) == 0)
            return kinds[i];
    return NULL;
}

static const char *const schedules[] = {
#define SCHEDULE_X(name, text) [name] = text,
    SCHEDULE_MAP(SCHEDULE_X)
#undef SCHEDULE_X
};

const char *schedule_text(enum schedule s)
{
    return schedules[s];
}

bool schedule_find(const char *name, enum schedule *out)
{
    for (size_t i = 0; i < sizeof schedules / sizeof *schedules; i++)
        if (strcmp(schedules[i], name) == 0) {
            *out = (enum schedule)i;
            return true;
        }
    return false;
}

bool optimizer_linear(const struct optimizer *o)
{
    return o->kind->linear && !optimizer_clips(o);
}

bool optimizer_clips(const struct optimizer *o)
{
    return o->clip_norm > 0 || o->kind->longest;
}

double optimizer_rate(const struct optimizer *o, uint64_t step)
{
    bool falls = o->schedule != SCHEDULE_CONSTANT;
    if (falls && step >= o->steps)
        return 0;
    uint64_t peak = o->begin + o->warm_up;
    step = step < o->begin ? o->begin : step;
    if (step < peak)
        return o->rate * (double)(step - o->begin + 1) / (double)(o->warm_up + 1);
    if (!falls)
        return o->rate;
    double part = (double)(step - peak) / (double)(o->steps - peak);
    if (o->schedule == SCHEDULE_LINEAR)
        return o->rate * (1 - part);
    return o->rate * 0.5 * (1 + cos(3.14159265358979323846 * part));
}

void optimizer_step(const struct optimizer *o, uint64_t step, uint64_t age, float *params,
                    float *moments, const float *gradient, size_t n)
{
    o->kind->step(o, optimizer_rate(o, step), age, params, moments, gradient, n);
}

double optimizer_energy(const float *gradient, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (double)gradient[i] * (double)gradient[i];
    return sum;
}

float optimizer_clip(const struct optimizer *o, uint64_t step, double gradient_energy, double params_energy)
{
    double norm = sqrt(gradient_energy), longest = o->clip_norm > 0 ? o->clip_norm : (double)INFINITY;
    if (o->kind->longest)
        longest = fmin(longest, o->kind->longest(o, optimizer_rate(o, step), sqrt(params_energy)));
    return norm > longest ? (float)(longest / norm) : 1;
}
