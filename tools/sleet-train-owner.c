/* sleet-train-owner.c - parameters whose owners stay (ZeRO stage 1, arXiv 1910.02054): each node has
 * moments of its own share only, in memory too, takes the step there with the mean of the gradients, and
 * hands the parameters out. */
#include "sleet-train.h"
#include "base/bytes.h"
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

bool keeper_open(struct train_keeper *k, size_t params, uint32_t moments)
{
    *k = (struct train_keeper){.params = params, .each = moments};
    k->run = calloc(runs_of(k), sizeof *k->run);
    return k->run != NULL;
}

static void forget(struct kept_run *r)
{
    free(r->moments);
    *r = (struct kept_run){0};
}

void keeper_close(struct train_keeper *k)
{
    for (uint32_t run = 0; k->run && run < runs_of(k); run++)
        forget(&k->run[run]);
    free(k->run);
    *k = (struct train_keeper){0};
}

static size_t moments_bytes(const struct train_keeper *k, uint32_t run)
{
    return run_length(k, run) * k->each * sizeof(float);
}

size_t keeper_bytes(const struct train_keeper *k)
{
    size_t sum = 0;
    for (uint32_t run = 0; k->run && run < runs_of(k); run++)
        sum += k->run[run].moments ? moments_bytes(k, run) : 0;
    return sum;
}

/* As at the start; false when out of memory. */
static bool begin(struct train_keeper *k, uint32_t run)
{
    k->run[run] = (struct kept_run){.moments = calloc(1, moments_bytes(k, run) + 1)};
    return k->run[run].moments != NULL;
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

bool keeper_step(struct train_keeper *k, const struct optimizer *o, uint64_t step, train_owns *owns, const void *arg,
                 float *gradient, float *params)
{
    float scale = clip_of(k, o, step, gradient, params, owns, arg);
    for (uint32_t run = 0; run < runs_of(k); run++) {
        size_t at = (size_t)run * RUN, n = run_length(k, run);
        struct kept_run *r = &k->run[run];
        if (!owns(arg, run)) {
            forget(r);
            continue;
        }
        if (!r->moments && !begin(k, run)) /* another's until now */
            return false;
        for (size_t i = at; scale < 1 && i < at + n; i++)
            gradient[i] *= scale;
        optimizer_step(o, step, r->age++, params + at, r->moments, gradient + at, n);
    }
    return true;
}

/* ---- in a checkpoint: of each run that is owned its number and age, u64, and its moments ---- */

void *keeper_save(const struct train_keeper *k, size_t *bytes)
{
    *bytes = 0;
    for (uint32_t run = 0; run < runs_of(k); run++)
        *bytes += k->run[run].moments ? 2 * sizeof(uint64_t) + moments_bytes(k, run) : 0;
    void *data = malloc(*bytes + 1);
    byte_writer w = writer_of(data, data ? *bytes : 0);
    for (uint32_t run = 0; data && run < runs_of(k); run++) {
        const struct kept_run *r = &k->run[run];
        if (!r->moments)
            continue;
        put_u64(&w, run);
        put_u64(&w, r->age);
        put_bytes(&w, r->moments, moments_bytes(k, run));
    }
    return data;
}

bool keeper_load(struct train_keeper *k, const void *data, size_t bytes)
{
    byte_reader r = reader_of(data, bytes);
    while (r.left > 0) {
        uint64_t run = get_u64(&r), age = get_u64(&r);
        if (!r.ok || run >= runs_of(k) || k->run[run].moments)
            return false;
        const void *moments = get_bytes(&r, moments_bytes(k, (uint32_t)run));
        if (!moments || !begin(k, (uint32_t)run))
            return false;
        memcpy(k->run[run].moments, moments, moments_bytes(k, (uint32_t)run));
        k->run[run].age = age;
    }
    return true;
}
