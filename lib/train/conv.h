/* conv.h - 3 x 3 convolution and 2 x 2 max-pool of one image.
 *
 * Values lie pixel by pixel, channels innermost.  The convolution unfolds the image into a matrix (one
 * row a pixel, one column a value under the kernel), so that it is a product with the weights: (row,
 * column, channel) x outputs row-major, then, where there are any, the biases. */
#ifndef TRAIN_CONV_H
#define TRAIN_CONV_H
#include "base/rng.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CONV_KERNEL 3
#define CONV_POOL 2

struct conv {
    uint32_t rows, columns, in, out; /* pixels; channels, `out` a multiple of LAYER_RUN */
    size_t weight, bias;             /* where they start */
    bool biased;
};

struct conv conv_at(size_t *params, uint32_t rows, uint32_t columns, uint32_t in, uint32_t out,
                    bool biased);
/* Weights uniform with variance 2 / values under the kernel, biases 0. */
void conv_init(const struct conv *, float *params, sleet_rng *);

/* Floats of an input, of an output before and behind the pool, and of the room for a call. */
size_t conv_in(const struct conv *);
size_t conv_out(const struct conv *);
size_t conv_pooled(const struct conv *);
size_t conv_room(const struct conv *);

void conv_forward(const struct conv *, const float *params, const float *x, float *room, float *y);
/* Adds to the layer's part of `gradient`; overwrites `x_delta` unless it is NULL. */
void conv_backward(const struct conv *, const float *params, const float *x, const float *delta,
                   float *room, float *gradient, float *x_delta);

/* The maximum of each 2 x 2 pixels, not below 0 (a ReLU), and where it was; pixels beyond an even edge
 * are left out. */
void pool_forward(const struct conv *, const float *y, float *pooled, uint32_t *from);
void pool_backward(const struct conv *, const float *pooled, const uint32_t *from,
                   const float *delta, float *y_delta);
#endif
