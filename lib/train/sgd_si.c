/* sgd_si.c - gradient descent for scale-invariant models (arXiv 2202.00980): p = (1 - rate weight_decay) p - rate g,
 * after the gradient was shortened to at most sqrt(2 weight_decay / rate) times the norm of the parameters.
 *
 * Where the loss does not depend on the scale of p, g is at a right angle to it: steps make p longer, the decay
 * makes it shorter, and at rest each step turns p by sqrt(2 rate weight_decay), whatever the scale of the loss.
 * The bound is what g is then: p that is too short for its gradients turns by as much at once, and keeps its length.
 * Their product says how far a step turns, their ratio from which gradients on: with a high rate nearly all are
 * shortened, and parameters that begin too long need not wait for the decay.  There is no state but the parameters. */
#include "train/optimizer.h"
#include <math.h>

static void sgd_si_step(const struct optimizer *o, double rate, uint64_t age, float *params,
                        float *moments, const float *gradient, size_t n)
{
    (void)age, (void)moments;
    float by = (float)rate, keep = (float)(1 - rate * o->weight_decay);
    for (size_t i = 0; i < n; i++)
        params[i] = keep * params[i] - by * gradient[i];
}

/* Without decay there is no such rest. */
static double longest(const struct optimizer *o, double rate, double params)
{
    return o->weight_decay > 0 && rate > 0 ? sqrt(2 * o->weight_decay / rate) * params : (double)INFINITY;
}

const struct optimizer_kind optimizer_sgd_si = {.name = "sgd-si",
                                                .rate = 1000,
                                                .weight_decay = 3e-6,
                                                .linear = false,
                                                .moments = 0,
                                                .longest = longest,
                                                .step = sgd_si_step};
