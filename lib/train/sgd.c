#include "train/sgd.h"
#include <math.h>

double sgd_rate(const struct sgd *s, uint64_t step)
{
    if (step >= s->steps)
        return 0;
    if (step < s->warm_up)
        return s->rate * (double)(step + 1) / (double)(s->warm_up + 1);
    double part = (double)(step - s->warm_up) / (double)(s->steps - s->warm_up);
    if (s->decay == SGD_LINEAR)
        return s->rate * (1 - part);
    return s->rate * 0.5 * (1 + cos(3.14159265358979323846 * part));
}

void sgd_step(const struct sgd *s, uint64_t step, float *params, float *momentum,
              const float *gradient, size_t n)
{
    float rate = (float)sgd_rate(s, step), mu = (float)s->momentum, wd = (float)s->weight_decay;
    for (size_t i = 0; i < n; i++) {
        momentum[i] = mu * momentum[i] + gradient[i] + wd * params[i];
        params[i] -= rate * momentum[i];
    }
}
