/* sleet-train-feedback.c - error feedback: what a codec leaves out of a step goes with a later one.
 *
 * Nodes give rate x gradient, so that what is left out keeps its size when the rate changes, and the model
 * takes momentum x step + result as its step.  Plain: Seide et al. 2014, arXiv 1901.09847.  Step-ahead
 * (SAEF, arXiv 2008.05823): the gradient is that of the model as it would be with all that the node has
 * left out so far, and every few steps nodes average what they have left out: where they do so in each, the
 * run is the one without a codec. */
#include "sleet-train.h"
#include <string.h>

double feedback_before(struct learner *l, const struct train_options *o, struct shard_walk *walk,
                       uint64_t step, const float *residual, float *scratch, float *values)
{
    float rate = (float)optimizer_rate(&l->optimizer, step), ahead = (float)o->ef_alpha;
    size_t n = l->params;
    if (o->ef == EF_AHEAD) {
        memcpy(scratch, values, n * sizeof *scratch);
        for (size_t k = 0; k < n; k++)
            values[k] -= ahead * residual[k];
    }
    double loss = learner_gradient(l, walk, values);
    if (o->ef == EF_AHEAD)
        memcpy(values, scratch, n * sizeof *scratch);
    for (size_t k = 0; k < n; k++)
        l->gradient[k] *= rate;
    return loss;
}

void feedback_forget(const struct learner *l, const struct train_options *o, float *residual)
{
    if (o->forget)
        memset(residual, 0, l->params * sizeof *residual);
}

bool feedback_after(struct learner *l, uint64_t step, uint32_t flags, const float *tensors, float *values)
{
    learner_unpack(l, tensors, values);
    if (flags & SLEET_BEHIND)
        return false;
    l->optimizer.kind->step(&l->optimizer, 1, step, values, values + l->params + l->statistics,
                            tensors, l->params);
    return true;
}
