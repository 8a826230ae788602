/* layer.h - layers that models are made of.
 *
 * A layer knows its sizes and where its parameters start in the model's vector.  Values are rows of
 * floats, one for a sample or, in a text, for a character; `n` counts rows.  backward() overwrites
 * the layer's part of `gradient`. */
#ifndef TRAIN_LAYER_H
#define TRAIN_LAYER_H
#include "base/rng.h"
#include "train/model.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Inner loops of this fixed length are compiled without branches, half of which would be guessed wrong. */
#define LAYER_RUN 8

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

/* The units of a dense layer, see struct model_matrix, and the slices of them whose gradient is wanted. */
struct dense_units {
    bool by_rows;
    uint32_t units;
    struct model_share share;
};

/* The same where the gradient of the weights of other slices may be 0, which it then is; that of the bias is whole. */
void dense_backward_of(const struct dense *, const struct dense_units *, const float *params, const float *x, uint32_t n,
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

/* Batch normalisation (Ioffe and Szegedy 2015): each column to mean 0 and variance 1 over the batch's
 * `n` rows, then times a gain and plus a bias.  Where nothing is learnt, the running mean and variance
 * stand in for the batch's: statistics, which no gradient moves. */
struct batchnorm {
    uint32_t width; /* a multiple of LAYER_RUN */
    size_t gain, bias, mean, variance;
};

struct batchnorm batchnorm_at(size_t *params, uint32_t width);
/* The statistics start at *statistics of the same vector, which is moved behind them. */
void batchnorm_keep(struct batchnorm *, size_t *statistics);
void batchnorm_init(const struct batchnorm *, float *params);
/* batch: 3 width floats, mean, variance and 1 / standard deviation: the batch's to learn, else the
 * running ones. */
void batchnorm_forward(const struct batchnorm *, const float *params, const float *x, size_t n,
                       bool train, float *batch, float *y);
/* A tenth of the running statistics becomes those of the batch that forward() learnt from. */
void batchnorm_track(const struct batchnorm *, const float *batch, size_t n, float *params);
/* After forward() to learn; delta: the gradient at y becomes that at x. */
void batchnorm_backward(const struct batchnorm *, const float *params, const float *x, size_t n,
                        const float *batch, float *delta, float *gradient);

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
