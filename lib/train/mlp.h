/* mlp.h - a multilayer perceptron: ReLU between layers, softmax cross entropy.
 *
 * The shape and its working memory are one object; parameters and gradients
 * are flat vectors of mlp_params() floats that the caller owns.  Layer after
 * layer: the weights, inputs x outputs row-major, then the biases. */
#ifndef TRAIN_MLP_H
#define TRAIN_MLP_H
#include <stddef.h>
#include <stdint.h>

#define MLP_WIDTHS_MAX 16

typedef struct mlp mlp;

/* `widths`: input, hidden ..., classes; 2 to MLP_WIDTHS_MAX of them, each 1 to 65536.
 * `batch`: the most samples in one call, > 0.  NULL when out of memory or range. */
mlp *mlp_new(const uint32_t *widths, uint32_t count, uint32_t batch);
void mlp_free(mlp *);

size_t mlp_params(const mlp *);
uint32_t mlp_batch(const mlp *);

/* He initialisation: weights uniform with variance 2 / inputs, biases 0.  The
 * same seed gives the same bits. */
void mlp_init(const mlp *, float *params, uint64_t seed);

/* Mean loss of `n` samples (at most mlp_batch(), > 0), n x inputs floats in `x`.
 * `gradient`, if not NULL, is overwritten with the mean gradient.  `correct`, if
 * not NULL, counts samples whose largest output is their label. */
double mlp_loss(mlp *, const float *params, const float *x, const uint8_t *label, uint32_t n,
                float *gradient, uint32_t *correct);
#endif
