/* batchnorm.c - batch normalisation (Ioffe and Szegedy 2015). */
#include "train/layer.h"
#include <math.h>
#include <string.h>

#define EPSILON 1e-5f
#define NEW_SHARE 0.1f /* of a batch in the running statistics */

struct batchnorm batchnorm_at(size_t *params, uint32_t width)
{
    struct batchnorm b = {.width = width, .gain = *params, .bias = *params + width};
    *params += 2 * (size_t)width;
    return b;
}

void batchnorm_keep(struct batchnorm *b, size_t *statistics)
{
    b->mean = *statistics;
    b->variance = *statistics + b->width;
    *statistics += 2 * (size_t)b->width;
}

void batchnorm_init(const struct batchnorm *b, float *params)
{
    for (uint32_t k = 0; k < b->width; k++) {
        params[b->gain + k] = params[b->variance + k] = 1;
        params[b->bias + k] = params[b->mean + k] = 0;
    }
}

/* Mean and variance of each column. */
static void measure(uint32_t width, const float *x, size_t n, float *mean, float *variance)
{
    memset(mean, 0, width * sizeof *mean);
    memset(variance, 0, width * sizeof *variance);
    for (size_t i = 0; i < n * width; i += width)
        for (uint32_t k = 0; k < width; k++)
            mean[k] += x[i + k];
    for (uint32_t k = 0; k < width; k++)
        mean[k] /= (float)n;
    for (size_t i = 0; i < n * width; i += width)
        for (uint32_t k = 0; k < width; k++)
            variance[k] += (x[i + k] - mean[k]) * (x[i + k] - mean[k]);
    for (uint32_t k = 0; k < width; k++)
        variance[k] /= (float)n;
}

/* LAYER_RUN columns of a row. */
static void normalise(const float *x, const float *mean, const float *scale, const float *gain, const float *bias,
                      float *restrict y)
{
    for (uint32_t k = 0; k < LAYER_RUN; k++)
        y[k] = (x[k] - mean[k]) * scale[k] * gain[k] + bias[k];
}

void batchnorm_forward(const struct batchnorm *b, const float *params, const float *x, size_t n,
                       bool train, float *batch, float *y)
{
    const float *gain = params + b->gain, *bias = params + b->bias;
    float *mean = batch, *variance = mean + b->width, *scale = variance + b->width;
    if (train) {
        measure(b->width, x, n, mean, variance);
    } else {
        memcpy(mean, params + b->mean, b->width * sizeof *mean);
        memcpy(variance, params + b->variance, b->width * sizeof *variance);
    }
    for (uint32_t k = 0; k < b->width; k++)
        scale[k] = 1 / sqrtf(variance[k] + EPSILON);
    for (size_t i = 0; i < n * b->width; i += b->width)
        for (uint32_t k = 0; k < b->width; k += LAYER_RUN)
            normalise(x + i + k, mean + k, scale + k, gain + k, bias + k, y + i + k);
}

void batchnorm_track(const struct batchnorm *b, const float *batch, size_t n, float *params)
{
    float *mean = params + b->mean, *variance = params + b->variance;
    float whole = n > 1 ? (float)n / (float)(n - 1) : 1; /* the variance of more than this batch */
    for (uint32_t k = 0; k < b->width; k++) {
        mean[k] += NEW_SHARE * (batch[k] - mean[k]);
        variance[k] += NEW_SHARE * (whole * batch[b->width + k] - variance[k]);
    }
}

void batchnorm_backward(const struct batchnorm *b, const float *params, const float *x, size_t n,
                        const float *batch, float *delta, float *gradient)
{
    const float *mean = batch, *scale = mean + 2 * b->width, *gain = params + b->gain;
    float *along = gradient + b->gain, *sum = gradient + b->bias; /* of delta and the unit rows */
    memset(along, 0, b->width * sizeof *along);
    memset(sum, 0, b->width * sizeof *sum);
    for (size_t i = 0; i < n * b->width; i += b->width)
        for (uint32_t k = 0; k < b->width; k++) {
            sum[k] += delta[i + k];
            along[k] += delta[i + k] * (x[i + k] - mean[k]) * scale[k];
        }
    for (size_t i = 0; i < n * b->width; i += b->width)
        for (uint32_t k = 0; k < b->width; k++) {
            float unit = (x[i + k] - mean[k]) * scale[k];
            delta[i + k] = gain[k] * scale[k] * (delta[i + k] - (sum[k] + unit * along[k]) / (float)n);
        }
}
