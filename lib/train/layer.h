/* layer.h - layers that models are made of.
 *
 * A layer knows its sizes and where its parameters start in the model's vector.  Values are rows of
 * floats, one for a sample or, in a text, for a character; `n` counts rows.  backward() overwrites
 * the layer's part of `gradient`. */
#ifndef TRAIN_LAYER_H
#define TRAIN_LAYER_H
#include "base/rng.h"
#include <stddef.h>
#include <stdint.h>

/* y = x W + b: W in x out row-major, then b. */
struct dense {
    uint32_t in, out;
    size_t weight, bias;
};

/* The layer whose parameters start at *params, which is moved behind them. */
struct dense dense_at(size_t *params, uint32_t in, uint32_t out);
/* Weights uniform with variance gain / in, biases 0. */
void dense_init(const struct dense *, float *params, double gain, sleet_rng *);
void dense_forward(const struct dense *, const float *params, const float *x, uint32_t n, float *y);
/* `delta` is the gradient at y; x_delta, unless NULL, is overwritten with that at x. */
void dense_backward(const struct dense *, const float *params, const float *x, uint32_t n,
                    const float *delta, float *gradient, float *x_delta);

/* Below 0 becomes 0; a NaN stays one.  relu_backward() clears `delta` where `y` is not above 0. */
void relu(float *x, size_t count);
void relu_backward(const float *y, float *delta, size_t count);

/* Layer normalisation (Ba, Kiros and Hinton 2016): each row to mean 0 and variance 1, then times a
 * gain and plus a bias of each column. */
struct norm {
    uint32_t width;
    size_t gain, bias;
};

struct norm norm_at(size_t *params, uint32_t width);
void norm_init(const struct norm *, float *params); /* gain 1, bias 0 */
/* moment: mean and 1 / standard deviation of each row, 2 n floats, for norm_backward(). */
void norm_forward(const struct norm *, const float *params, const float *x, uint32_t n,
                  float *moment, float *y);
/* Adds the gradient at x to x_delta. */
void norm_backward(const struct norm *, const float *params, const float *x, uint32_t n,
                   const float *moment, const float *delta, float *gradient, float *x_delta);

/* Causal attention (Vaswani et al. 2017): in each sample of `context` rows, a row takes the mean of its
 * own and earlier rows' values, weighted by its query times their keys, head by head. */
struct attention {
    uint32_t context, width, heads;
};

/* qkv: rows of query, key and value, 3 width each.  weight: samples x heads x context x context floats,
 * for attention_backward(). */
void attention_forward(const struct attention *, const float *qkv, uint32_t samples, float *weight,
                       float *y);
/* Overwrites qkv_delta; room: context x context floats. */
void attention_backward(const struct attention *, const float *qkv, uint32_t samples,
                        const float *weight, const float *delta, float *room, float *qkv_delta);
#endif
