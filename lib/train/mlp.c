/* mlp.c - a multilayer perceptron with ReLU between layers.  Parameters layer after
 * layer: the weights, inputs x outputs row-major, then the biases. */
#include "train/layer.h"
#include "train/model.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LAYERS_MAX (MODEL_HIDDEN_MAX + 1)

struct mlp {
    model base;
    uint32_t layers; /* of weights */
    struct dense layer[LAYERS_MAX];
    float *out[LAYERS_MAX];   /* outputs of each layer, batch x width */
    float *delta[LAYERS_MAX]; /* gradients at those outputs; not of the last layer */
};

static struct mlp *mlp_of(model *m)
{
    return (struct mlp *)m;
}

static void mlp_close(model *base)
{
    struct mlp *m = mlp_of(base);
    for (uint32_t l = 0; l < m->layers; l++) {
        free(m->out[l]);
        free(m->delta[l]);
    }
    free(m);
}

static model *mlp_open(const struct model_shape *s)
{
    struct mlp *m = calloc(1, sizeof *m);
    if (!m)
        return NULL;
    m->layers = s->hidden_count + 1;
    for (uint32_t l = 0; l < m->layers; l++) {
        uint32_t in = l ? s->hidden[l - 1] : s->rows * s->columns;
        uint32_t wide = l < s->hidden_count ? s->hidden[l] : s->classes;
        m->layer[l] = dense_at(&m->base.params, in, wide);
        model_has_matrix(&m->base, m->layer[l].weight, in, wide);
        m->out[l] = calloc((size_t)s->batch * wide, sizeof(float));
        if (l + 1 < m->layers)
            m->delta[l] = calloc((size_t)s->batch * wide, sizeof(float));
        if (!m->out[l] || (l + 1 < m->layers && !m->delta[l])) {
            mlp_close(&m->base);
            return NULL;
        }
    }
    m->base.classes = s->classes;
    m->base.batch = s->batch;
    return &m->base;
}

static void mlp_init(const model *base, float *params, uint64_t seed)
{
    const struct mlp *m = (const struct mlp *)base;
    sleet_rng rng = {mix64(seed ^ 0x6d6c702d696e6974u)};
    for (uint32_t l = 0; l < m->layers; l++)
        dense_init(&m->layer[l], params, 2, &rng);
}

static const float *mlp_forward(model *base, const float *params, const float *x, uint32_t n, bool train)
{
    (void)train;
    struct mlp *m = mlp_of(base);
    for (uint32_t l = 0; l < m->layers; l++) {
        dense_forward(&m->layer[l], params, l ? m->out[l - 1] : x, n, m->out[l]);
        if (l + 1 < m->layers)
            relu(m->out[l], (size_t)n * m->layer[l].out);
    }
    return m->out[m->layers - 1];
}

static void mlp_backward(model *base, const float *params, const float *x, uint32_t n,
                         const float *last_delta, float *gradient, float *x_delta)
{
    struct mlp *m = mlp_of(base);
    for (uint32_t l = m->layers; l-- > 0;) {
        const float *delta = l + 1 == m->layers ? last_delta : m->delta[l];
        float *in_delta = l ? m->delta[l - 1] : x_delta;
        dense_backward(&m->layer[l], params, l ? m->out[l - 1] : x, n, delta, gradient, in_delta);
        if (l)
            relu_backward(m->out[l - 1], in_delta, (size_t)n * m->layer[l].in);
    }
}

static void mlp_title(const struct model_shape *s, char out[static MODEL_TITLE_MAX])
{
    int len = snprintf(out, MODEL_TITLE_MAX, "MLP %u", s->rows * s->columns);
    for (uint32_t i = 0; i < s->hidden_count; i++)
        len += snprintf(out + len, MODEL_TITLE_MAX - (size_t)len, "-%u", s->hidden[i]);
    snprintf(out + len, MODEL_TITLE_MAX - (size_t)len, "-%u", s->classes);
}

const struct model_kind model_mlp = {.open = mlp_open,
                                     .close = mlp_close,
                                     .init = mlp_init,
                                     .forward = mlp_forward,
                                     .backward = mlp_backward,
                                     .title = mlp_title};
