/* adamw.c - Adam with decoupled weight decay (Loshchilov and Hutter 2019):
 * m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2;
 * p = p - rate (m' / (sqrt(v') + epsilon) + weight_decay p),
 * where m' and v' are free of the bias that moments from 0 have at first. */
#include "train/optimizer.h"
#include <math.h>

#define EPSILON 1e-8f

static void adamw_step(const struct optimizer *o, double rate, uint64_t age, float *params,
                       float *moments, const float *gradient, size_t n)
{
    float b1 = (float)o->beta1, b2 = (float)o->beta2;
    float new1 = (float)(1 - o->beta1), new2 = (float)(1 - o->beta2);
    float m_scale = (float)(1 / (1 - pow(o->beta1, (double)age + 1)));
    float v_scale = (float)(1 / (1 - pow(o->beta2, (double)age + 1)));
    float by = (float)rate, wd = (float)o->weight_decay;
    for (size_t i = 0; i < n; i++) {
        float m = b1 * moments[2 * i] + new1 * gradient[i];
        float v = b2 * moments[2 * i + 1] + new2 * gradient[i] * gradient[i];
        moments[2 * i] = m;
        moments[2 * i + 1] = v;
        params[i] -= by * (m_scale * m / (sqrtf(v_scale * v) + EPSILON) + wd * params[i]);
    }
}

const struct optimizer_kind optimizer_adamw = {.name = "adamw",
                                               .rate = 0.001,
                                               .linear = false,
                                               .moments = 2,
                                               .moments_name = "moments",
                                               .step = adamw_step};
