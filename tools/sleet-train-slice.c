/* sleet-train-slice.c - partial parameter updates (arXiv 2509.22418): between rounds each node trains its slices
 * of the model only.  What a node does not train it does not move and does not give, so the mean is over those
 * who train (estimator givers).  Who trains what follows who took part in the last round's table. */
#include "sleet-train.h"
#include <stdlib.h>
#include <string.h>

#define ALL UINT64_MAX

bool slice_open(struct train_node *n)
{
    uint32_t slices = n->learner->slices.n;
    struct train_slices *s = &n->slices;
    if (!slices)
        return true;
    s->who = calloc(SLICE_NUMBERS(slices), sizeof *s->who);
    s->mine = calloc(slices + 1, 1);
    if (!s->who || !s->mine)
        return false;
    s->since = s->who + slices;
    s->mine[slices] = 1; /* what all train */
    for (uint32_t i = 0; i <= slices; i++)
        s->since[i] = 1; /* the moments are those of a start */
    return slice_share(n, ALL >> (NODES_MAX - n->places), 0);
}

void slice_close(struct train_node *n)
{
    free(n->slices.who); /* with `since` */
    free(n->slices.mine);
    n->slices = (struct train_slices){0};
}

/* What lies together in the model too, from `at` to `end` of the slices' order: the end of the first piece. */
static size_t piece(const struct slices *s, size_t at, size_t end)
{
    size_t next = at + 1;
    while (next < end && s->order[at] != SLICES_GAP && s->order[next] == s->order[next - 1] + 1)
        next++;
    return next;
}

/* As at a start, where another trained until now. */
static void forget(const struct train_node *n, uint32_t slice)
{
    const struct learner *l = n->learner;
    const struct slices *s = &l->slices;
    uint32_t each = l->optimizer.kind->moments;
    float *moments = n->values + l->params + l->statistics;
    for (size_t k = 0; k < s->length; k++)
        if (s->of[k / s->fragment] == slice && s->order[k] != SLICES_GAP)
            memset(moments + (size_t)s->order[k] * each, 0, each * sizeof *moments);
}

bool slice_share(struct train_node *n, uint64_t nodes, uint64_t step)
{
    const struct train_options *o = n->options;
    struct train_slices *s = &n->slices;
    if (!slices_assign(o->slices, o->slice_members, nodes | UINT64_C(1) << n->place, s->who))
        return false;
    for (uint32_t i = 0; i < o->slices; i++) {
        s->mine[i] = s->who[i] >> n->place & 1;
        if (!s->mine[i]) {
            s->since[i] = 0;
        } else if (!s->since[i]) {
            forget(n, i);
            s->since[i] = step + 1;
        }
    }
    return true;
}

bool slice_restored(struct train_node *n, bool same, uint64_t step)
{
    struct train_slices *s = &n->slices;
    if (!same)
        return slice_share(n, ALL >> (NODES_MAX - n->places), step);
    for (uint32_t i = 0; i < n->options->slices; i++)
        s->mine[i] = s->who[i] >> n->place & 1;
    return true;
}

/* The length of the gradient that is trained with. */
static double energy(const struct train_node *n)
{
    const struct slices *s = &n->learner->slices;
    double sum = 0;
    for (size_t k = 0; k < s->length; k++)
        if (s->order[k] != SLICES_GAP && n->slices.mine[s->of[k / s->fragment]])
            sum += (double)n->learner->gradient[s->order[k]] * (double)n->learner->gradient[s->order[k]];
    return sum;
}

void slice_apply(const struct train_node *n, uint64_t step)
{
    const struct learner *l = n->learner;
    const struct optimizer *o = &l->optimizer;
    const struct slices *s = &l->slices;
    float *moments = n->values + l->params + l->statistics, scale = 1;
    if (optimizer_clips(o))
        scale = optimizer_clip(o, step, energy(n), optimizer_energy(n->values, l->params));
    for (size_t k = 0; scale < 1 && k < l->params; k++)
        l->gradient[k] *= scale;
    for (size_t k = 0, end = s->fragment, next; k < s->length; k = next, end += k == end ? s->fragment : 0) {
        uint32_t slice = s->of[k / s->fragment];
        size_t at = s->order[k];
        next = piece(s, k, end);
        if (at == SLICES_GAP || !n->slices.mine[slice])
            continue;
        optimizer_step(o, step, step + 1 - n->slices.since[slice], n->values + at, moments + at * o->kind->moments,
                       l->gradient + at, next - k);
    }
}
