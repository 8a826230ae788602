/* sgd.c - stochastic gradient descent with momentum:
 * v = momentum v + gradient + weight_decay p;  p = p - rate v. */
#include "train/optimizer.h"

static void sgd_step(const struct optimizer *o, double rate, uint64_t age, float *params,
                     float *v, const float *gradient, size_t n)
{
    (void)age;
    float by = (float)rate, mu = (float)o->momentum, wd = (float)o->weight_decay;
    for (size_t i = 0; i < n; i++) {
        v[i] = mu * v[i] + gradient[i] + wd * params[i];
        params[i] -= by * v[i];
    }
}

const struct optimizer_kind optimizer_sgd = {.name = "sgd",
                                             .rate = 0.1,
                                             .linear = true,
                                             .moments = 1,
                                             .moments_name = "momentum",
                                             .step = sgd_step};
