/* sleet-train-owner.c - parameters whose owners stay (ZeRO stage 1, arXiv 1910.02054): each node has
 * moments of its own share only, takes the step there with the mean of the gradients, and
 * hands the parameters out. */
#include "sleet-train.h"
#include <stdlib.h>
#include <string.h>

#define RUN (RUN_FRAGMENTS * FRAGMENT_ELEMENTS)

static uint32_t runs_of(const struct train_keeper *k)
{
    return (uint32_t)((k->params + RUN - 1) / RUN);
}

static size_t run_length(const struct train_keeper *k, uint32_t run)
{
    size_t left = k->params - (size_t)run * RUN;
    return left < RUN ? left : RUN;
}

bool keeper_open(struct train_keeper *k, size_t params)
{
    k->params = params;
    k->since = calloc(runs_of(k), sizeof *k->since);
    return k->since != NULL;
}

void keeper_close(struct train_keeper *k)
{
    free(k->since);
    *k = (struct train_keeper){0};
}

/* The norm of the whole gradient, as the share lets one expect it. */
static float clip_of(const struct train_keeper *k, const struct optimizer *o, uint64_t step, const float *gradient,
                     const float *params, train_owns *owns, const void *arg)
{
    double energy = 0;
    size_t own = 0;
    if (!optimizer_clips(o))
        return 1;
    for (uint32_t run = 0; run < runs_of(k); run++)
        if (owns(arg, run)) {
            energy += optimizer_energy(gradient + (size_t)run * RUN, run_length(k, run));
            own += run_length(k, run);
        }
    return own ? optimizer_clip(o, step, energy * (double)k->params / (double)own, optimizer_energy(params, k->params))
               : 1;
}

uint32_t keeper_step(struct train_keeper *k, const struct optimizer *o, uint64_t step, train_owns *owns,
                     const void *arg, float *gradient, float *params, float *moments)
{
    float scale = clip_of(k, o, step, gradient, params, owns, arg);
    uint32_t each = o->kind->moments, fresh = 0;
    for (uint32_t run = 0; run < runs_of(k); run++) {
        size_t at = (size_t)run * RUN, n = run_length(k, run);
        if (!owns(arg, run)) { /* it will be as at a start when it comes back */
            memset(moments + at * each, 0, n * each * sizeof *moments);
            k->since[run] = 0;
            continue;
        }
        if (!k->since[run]) { /* another's until now, or of a checkpoint, which has no ages */
            if (!o->kind->linear)
                memset(moments + at * each, 0, n * each * sizeof *moments);
            k->since[run] = step + 1;
            fresh++;
        }
        for (size_t i = at; scale < 1 && i < at + n; i++)
            gradient[i] *= scale;
        optimizer_step(o, step, step + 1 - k->since[run], params + at, moments + at * each, gradient + at, n);
    }
    return fresh;
}
