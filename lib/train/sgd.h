/* sgd.h - stochastic gradient descent with momentum and weight decay. */
#ifndef TRAIN_SGD_H
#define TRAIN_SGD_H
#include <stddef.h>
#include <stdint.h>

/* X(name, text): how the rate falls from its peak to 0 at the last step. */
#define SGD_DECAY_MAP(X) X(SGD_COSINE, "cosine") X(SGD_LINEAR, "linear")

enum sgd_decay {
#define SGD_X(name, text) name,
    SGD_DECAY_MAP(SGD_X)
#undef SGD_X
};

struct sgd {
    double rate;         /* at its peak */
    double momentum;     /* 0 to below 1 */
    double weight_decay; /* added to the gradient, times the parameter */
    enum sgd_decay decay;
    uint64_t warm_up; /* steps in which the rate rises linearly to its peak */
    uint64_t steps;   /* in all; from there on the rate is 0 */
};

/* The learning rate of step `step`, from 0. */
double sgd_rate(const struct sgd *, uint64_t step);

/* v = momentum v + gradient + weight_decay p;  p = p - rate v; `n` elements each. */
void sgd_step(const struct sgd *, uint64_t step, float *params, float *momentum,
              const float *gradient, size_t n);
#endif
