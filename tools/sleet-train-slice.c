/* sleet-train-slice.c - partial parameter updates (arXiv 2509.22418): between rounds each node trains its slices
 * of the model only, of which every part has the same number of nodes.  What a node does not train it does not
 * move and does not give, so the mean is over those who train (estimator givers). */
#include "sleet-train.h"

#define RUN (RUN_FRAGMENTS * FRAGMENT_ELEMENTS)

bool slice_trains(const struct train_options *o, uint32_t place, uint32_t places, uint32_t run)
{
    uint64_t first = (uint64_t)(run % o->slices) * o->slice_members; /* of its members, in a ring of all */
    return (place + places - first % places) % places < o->slice_members;
}

void slice_apply(const struct train_node *n, uint64_t step)
{
    const struct learner *l = n->learner;
    const struct optimizer *o = &l->optimizer;
    float *moments = n->values + l->params + l->statistics, scale = 1;
    if (optimizer_clips(o)) /* by the whole gradient, as where all is trained */
        scale = optimizer_clip(o, step, optimizer_energy(l->gradient, l->params), optimizer_energy(n->values, l->params));
    for (size_t at = 0; at < l->params; at += RUN) {
        size_t length = l->params - at < RUN ? l->params - at : RUN;
        if (!slice_trains(n->options, n->place, n->places, (uint32_t)(at / RUN)))
            continue;
        for (size_t k = at; scale < 1 && k < at + length; k++)
            l->gradient[k] *= scale;
        optimizer_step(o, step, step, n->values + at, moments + at * o->kind->moments, l->gradient + at, length);
    }
}
