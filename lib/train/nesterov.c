/* nesterov.c - stochastic gradient descent with Nesterov's momentum, as Sutskever et al. 2013 write it:
 * g = gradient + weight_decay p;  v = momentum v + g;  p = p - rate (g + momentum v).
 * Also the outer optimizer of DiLoCo (arXiv 2311.08105), whose gradient is the way back of many steps. */
#include "train/optimizer.h"

static void nesterov_step(const struct optimizer *o, double rate, uint64_t age, float *params, float *v,
                          const float *gradient, size_t n)
{
    (void)age;
    float by = (float)rate, mu = (float)o->momentum, wd = (float)o->weight_decay;
    for (size_t i = 0; i < n; i++) {
        float g = gradient[i] + wd * params[i];
        v[i] = mu * v[i] + g;
        params[i] -= by * (g + mu * v[i]);
    }
}

const struct optimizer_kind optimizer_nesterov = {.name = "nesterov",
                                                  .rate = 0.1,
                                                  .linear = true,
                                                  .moments = 1,
                                                  .moments_name = "momentum",
                                                  .step = nesterov_step};
