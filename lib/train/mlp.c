/* mlp.c - a multilayer perceptron with ReLU between layers.  Parameters layer after
 * layer: the weights, inputs x outputs row-major, then the biases. */
#include "base/rng.h"
#include "train/model.h"
#include <cblas.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LAYERS_MAX (MODEL_HIDDEN_MAX + 1)

struct mlp {
    model base;
    uint32_t layers; /* of weights */
    uint32_t width[LAYERS_MAX + 1];
    size_t weight[LAYERS_MAX], bias[LAYERS_MAX]; /* where they start */
    float *out[LAYERS_MAX];                      /* outputs of each layer, batch x width */
    float *delta[LAYERS_MAX]; /* gradients at those outputs; not of the last layer */
};

static struct mlp *mlp_of(model *m)
{
    return (struct mlp *)m;
}
static const struct mlp *mlp_of_const(const model *m)
{
    return (const struct mlp *)m;
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
    m->width[0] = s->rows * s->columns;
    memcpy(m->width + 1, s->hidden, s->hidden_count * sizeof *s->hidden);
    m->width[m->layers] = s->classes;
    for (uint32_t l = 0; l < m->layers; l++) {
        size_t in = m->width[l], wide = m->width[l + 1];
        m->weight[l] = m->base.params;
        m->bias[l] = m->weight[l] + in * wide;
        m->base.params = m->bias[l] + wide;
        m->out[l] = calloc(s->batch * wide, sizeof(float));
        if (l + 1 < m->layers)
            m->delta[l] = calloc(s->batch * wide, sizeof(float));
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
    const struct mlp *m = mlp_of_const(base);
    sleet_rng rng = {mix64(seed ^ 0x6d6c702d696e6974u)};
    for (uint32_t l = 0; l < m->layers; l++) {
        double bound = sqrt(6.0 / m->width[l]);
        for (size_t i = m->weight[l]; i < m->bias[l]; i++)
            params[i] = (float)((2 * rng_double(&rng) - 1) * bound);
        memset(params + m->bias[l], 0, m->width[l + 1] * sizeof *params);
    }
}

static const float *mlp_forward(model *base, const float *params, const float *x, uint32_t n)
{
    struct mlp *m = mlp_of(base);
    for (uint32_t l = 0; l < m->layers; l++) {
        int in = (int)m->width[l], wide = (int)m->width[l + 1];
        float *out = m->out[l];
        for (uint32_t i = 0; i < n; i++)
            memcpy(out + (size_t)i * (size_t)wide, params + m->bias[l],
                   (size_t)wide * sizeof(float));
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)n, wide, in, 1.0f,
                    l ? m->out[l - 1] : x, in, params + m->weight[l], wide, 1.0f, out, wide);
        if (l + 1 == m->layers)
            break;
        for (size_t i = 0; i < (size_t)n * (size_t)wide; i++)
            out[i] = out[i] < 0 ? 0 : out[i]; /* a NaN stays one */
    }
    return m->out[m->layers - 1];
}

static void mlp_backward(model *base, const float *params, const float *x, uint32_t n,
                         const float *last_delta, float *gradient, float *x_delta)
{
    struct mlp *m = mlp_of(base);
    for (uint32_t l = m->layers; l-- > 0;) {
        int in = (int)m->width[l], wide = (int)m->width[l + 1];
        const float *input = l ? m->out[l - 1] : x;
        const float *delta = l + 1 == m->layers ? last_delta : m->delta[l];
        float *in_delta = l ? m->delta[l - 1] : x_delta;
        cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, in, wide, (int)n, 1.0f, input, in,
                    delta, wide, 0.0f, gradient + m->weight[l], wide);
        float *bias = gradient + m->bias[l];
        memset(bias, 0, (size_t)wide * sizeof *bias);
        for (uint32_t i = 0; i < n; i++)
            for (int k = 0; k < wide; k++)
                bias[k] += delta[(size_t)i * (size_t)wide + (size_t)k];
        if (!in_delta)
            break;
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)n, in, wide, 1.0f, delta, wide,
                    params + m->weight[l], wide, 0.0f, in_delta, in);
        for (size_t i = 0; l && i < (size_t)n * (size_t)in; i++)
            if (input[i] <= 0)
                in_delta[i] = 0;
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
