/* sleet-train-feedback.c - error feedback: what a codec leaves out of a step goes with a later one.
 *
 * Nodes give what would be their own step, rate and momentum included: what is left out keeps its size when the rate
 * changes, and no momentum makes more of what comes late.  The model takes the mean of what was sent as its step.
 * Momentum is each node's own, but for the refresh of state, which averages it.
 *
 * Plain: Seide et al. 2014, arXiv 1901.09847.  Step-ahead (SAEF, arXiv 2008.05823): the gradient is that of the model as
 * it would be with all that the node has left out so far, and every few steps nodes average what they have left
 * out: where they do so in each, the run is, at a constant rate, the one without a codec. */
#include "sleet-train.h"
#include <string.h>

double feedback_before(struct learner *l, const struct train_options *o, struct shard_walk *walk,
                       uint64_t step, const float *residual, float *scratch, float *values)
{
    const struct optimizer *p = &l->optimizer;
    float rate = (float)optimizer_rate(p, step), ahead = (float)o->ef_alpha;
    size_t n = l->params;
    if (o->ef == EF_AHEAD) {
        memcpy(scratch, values, n * sizeof *scratch);
        for (size_t k = 0; k < n; k++)
            values[k] -= ahead * residual[k];
    }
    double loss = learner_gradient(l, walk, values);
    if (o->ef == EF_AHEAD)
        memcpy(values, scratch, n * sizeof *scratch);
    for (size_t k = 0; k < n; k++) {
        l->gradient[k] *= rate;
        scratch[k] = 0;
    }
    p->kind->step(p, 1, step, scratch, values + n + l->statistics, l->gradient, n);
    for (size_t k = 0; k < n; k++)
        l->gradient[k] = -scratch[k];
    return loss;
}

void feedback_forget(const struct learner *l, const struct train_options *o, float *residual)
{
    if (o->forget)
        memset(residual, 0, l->params * sizeof *residual);
}

bool feedback_after(struct learner *l, uint32_t flags, const float *tensors, float *values)
{
    learner_unpack(l, tensors, values);
    if (flags & SLEET_BEHIND)
        return false;
    for (size_t k = 0; k < l->params; k++)
        values[k] -= tensors[k];
    return true;
}
