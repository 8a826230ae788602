/* sleet-train-owner.c - parameters whose owners stay (ZeRO stage 1, arXiv 1910.02054): each node has
 * moments of its own share only, takes the step there with the mean of the gradients, and
 * hands the parameters out. */
#include "sleet-train.h"
#include <stdlib.h>
#include <string.h>

#define RUN (RUN_FRAGMENTS * FRAGMENT_ELEMENTS)

static uint32_t runs_of(const struct learner *l)
{
    return (uint32_t)((l->params + RUN - 1) / RUN);
}

static size_t run_length(const struct learner *l, uint32_t run)
{
    size_t left = l->params - (size_t)run * RUN;
    return left < RUN ? left : RUN;
}

bool keeper_open(struct train_keeper *k, const struct learner *l)
{
    k->since = calloc(runs_of(l), sizeof *k->since);
    return k->since != NULL;
}

void keeper_close(struct train_keeper *k)
{
    free(k->since);
    *k = (struct train_keeper){0};
}

/* The norm of the whole gradient, as the share lets one expect it. */
static float clip_of(const struct learner *l, const float *gradient, train_owns *owns, const void *arg)
{
    double energy = 0;
    size_t own = 0;
    if (l->optimizer.clip_norm <= 0)
        return 1;
    for (uint32_t run = 0; run < runs_of(l); run++)
        if (owns(arg, run)) {
            energy += optimizer_energy(gradient + (size_t)run * RUN, run_length(l, run));
            own += run_length(l, run);
        }
    return own ? optimizer_clip(&l->optimizer, energy * (double)l->params / (double)own) : 1;
}

uint32_t keeper_step(struct train_keeper *k, const struct learner *l, uint64_t step, train_owns *owns,
                     const void *arg, float *gradient, float *values)
{
    float *moments = values + l->params + l->statistics, scale = clip_of(l, gradient, owns, arg);
    uint32_t each = l->optimizer.kind->moments, fresh = 0;
    for (uint32_t run = 0; run < runs_of(l); run++) {
        size_t at = (size_t)run * RUN, n = run_length(l, run);
        if (!owns(arg, run)) {
            k->since[run] = 0;
            continue;
        }
        if (!k->since[run]) { /* another's until now: from the own copy, and as at a start */
            memset(moments + at * each, 0, n * each * sizeof *moments);
            k->since[run] = step + 1;
            fresh++;
        }
        for (size_t i = at; scale < 1 && i < at + n; i++)
            gradient[i] *= scale;
        optimizer_step(&l->optimizer, step, step + 1 - k->since[run], values + at, moments + at * each,
                       gradient + at, n);
    }
    return fresh;
}
