/* mlp_si.c - a multilayer perceptron whose outputs do not change when its parameters are all multiplied by
 * one number above 0, nor those of one layer (scale-invariant architectures, arXiv 2202.00980).
 *
 * Behind each hidden linear layer its rows are brought to mean 0 and variance 1, without gain and bias of
 * their own, then ReLU.  The last layer is divided by the norm of its parameters: SCALE (h W + b) / ||W, b||.
 * The gradient of a layer is then at a right angle to its parameters.  Parameters as those of the mlp. */
#include "train/layer.h"
#include "train/model.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define LAYERS_MAX (MODEL_HIDDEN_MAX + 1)
#define TINY 1e-30f /* added to a variance: rows of one value become 0, others do not notice */

struct mlp_si {
    model base;
    uint32_t layers; /* of weights */
    struct dense layer[LAYERS_MAX];
    float scale;               /* of the outputs */
    double norm;               /* of the last layer's parameters, by the last forward() */
    float *out[LAYERS_MAX];    /* behind the ReLU, batch x width; of the last layer the outputs */
    float *unit[LAYERS_MAX];   /* before the ReLU, mean 0 and variance 1; not of the last layer */
    float *spread[LAYERS_MAX]; /* 1 / standard deviation of each row; likewise */
    float *delta[LAYERS_MAX];  /* gradients at each linear layer's result */
};

static struct mlp_si *mlp_of(model *m)
{
    return (struct mlp_si *)m;
}

static void mlp_si_close(model *base)
{
    struct mlp_si *m = mlp_of(base);
    for (uint32_t l = 0; l < m->layers; l++) {
        free(m->out[l]);
        free(m->unit[l]);
        free(m->spread[l]);
        free(m->delta[l]);
    }
    free(m);
}

static bool make_room(struct mlp_si *m, uint32_t l, uint32_t batch)
{
    size_t n = (size_t)batch * m->layer[l].out;
    m->out[l] = calloc(n, sizeof(float));
    m->delta[l] = calloc(n, sizeof(float));
    if (l + 1 < m->layers) {
        m->unit[l] = calloc(n, sizeof(float));
        m->spread[l] = calloc(batch, sizeof(float));
    }
    return m->out[l] && m->delta[l] && (l + 1 == m->layers || (m->unit[l] && m->spread[l]));
}

static model *mlp_si_open(const struct model_shape *s)
{
    struct mlp_si *m = calloc(1, sizeof *m);
    if (!m)
        return NULL;
    m->layers = s->hidden_count + 1;
    for (uint32_t l = 0; l < m->layers; l++) {
        uint32_t in = l ? s->hidden[l - 1] : s->rows * s->columns;
        m->layer[l] = dense_at(&m->base.params, in, l < s->hidden_count ? s->hidden[l] : s->classes);
        model_has_matrix(&m->base, m->layer[l].weight, in, m->layer[l].out);
        if (!make_room(m, l, s->batch)) {
            mlp_si_close(&m->base);
            return NULL;
        }
    }
    m->scale = sqrtf(2.0f * (float)s->classes); /* as He initialisation has the norm, and so the outputs */
    m->base.classes = s->classes;
    m->base.batch = s->batch;
    return &m->base;
}

static void mlp_si_init(const model *base, float *params, uint64_t seed)
{
    const struct mlp_si *m = (const struct mlp_si *)base;
    sleet_rng rng = {mix64(seed ^ 0x6d6c702d696e6974u)}; /* the bits of the mlp of these widths */
    for (uint32_t l = 0; l < m->layers; l++)
        dense_init(&m->layer[l], params, 2, &rng);
}

/* Each row of x to mean 0 and variance 1. */
static void to_unit(const float *x, uint32_t n, uint32_t width, float *spread, float *unit)
{
    for (uint32_t i = 0; i < n; i++, x += width, unit += width) {
        float mean = 0, square = 0;
        for (uint32_t k = 0; k < width; k++)
            mean += x[k];
        mean /= (float)width;
        for (uint32_t k = 0; k < width; k++)
            square += (x[k] - mean) * (x[k] - mean);
        spread[i] = 1 / sqrtf(square / (float)width + TINY);
        for (uint32_t k = 0; k < width; k++)
            unit[k] = (x[k] - mean) * spread[i];
    }
}

/* The gradient at `unit` becomes that at x. */
static void to_unit_backward(const float *unit, uint32_t n, uint32_t width, const float *spread, float *delta)
{
    for (uint32_t i = 0; i < n; i++, unit += width, delta += width) {
        float mean = 0, along = 0;
        for (uint32_t k = 0; k < width; k++) {
            mean += delta[k];
            along += delta[k] * unit[k];
        }
        mean /= (float)width;
        along /= (float)width;
        for (uint32_t k = 0; k < width; k++)
            delta[k] = spread[i] * (delta[k] - mean - along * unit[k]);
    }
}

static size_t count(const struct dense *d)
{
    return (size_t)d->in * d->out + d->out;
}

static double product(const float *a, const float *b, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (double)a[i] * (double)b[i];
    return sum;
}

static const float *mlp_si_forward(model *base, const float *params, const float *x, uint32_t n, bool train)
{
    (void)train;
    struct mlp_si *m = mlp_of(base);
    uint32_t last = m->layers - 1;
    for (uint32_t l = 0; l < last; l++) {
        size_t values = (size_t)n * m->layer[l].out;
        dense_forward(&m->layer[l], params, l ? m->out[l - 1] : x, n, m->out[l]);
        to_unit(m->out[l], n, m->layer[l].out, m->spread[l], m->unit[l]);
        for (size_t i = 0; i < values; i++)
            m->out[l][i] = m->unit[l][i];
        relu(m->out[l], values);
    }
    const struct dense *d = &m->layer[last];
    dense_forward(d, params, last ? m->out[last - 1] : x, n, m->out[last]);
    m->norm = sqrt(product(params + d->weight, params + d->weight, count(d)));
    for (size_t i = 0; i < (size_t)n * d->out; i++)
        m->out[last][i] *= m->scale / (float)m->norm;
    return m->out[last];
}

/* Through the norm: what of the layer's gradient lies along its parameters is none. */
static void turn(const struct mlp_si *m, const struct dense *d, const float *params, float *gradient)
{
    const float *w = params + d->weight;
    float *g = gradient + d->weight;
    float along = (float)(product(g, w, count(d)) / (m->norm * m->norm));
    for (size_t i = 0; i < count(d); i++)
        g[i] -= along * w[i];
}

static void mlp_si_backward(model *base, const float *params, const float *x, uint32_t n, const float *last_delta,
                            float *gradient, float *x_delta)
{
    struct mlp_si *m = mlp_of(base);
    uint32_t last = m->layers - 1;
    for (size_t i = 0; i < (size_t)n * m->layer[last].out; i++)
        m->delta[last][i] = last_delta[i] * m->scale / (float)m->norm;
    for (uint32_t l = m->layers; l-- > 0;) {
        float *in_delta = l ? m->delta[l - 1] : x_delta;
        dense_backward(&m->layer[l], params, l ? m->out[l - 1] : x, n, m->delta[l], gradient, in_delta);
        if (l == last)
            turn(m, &m->layer[l], params, gradient);
        if (l) {
            relu_backward(m->out[l - 1], in_delta, (size_t)n * m->layer[l].in);
            to_unit_backward(m->unit[l - 1], n, m->layer[l].in, m->spread[l - 1], in_delta);
        }
    }
}

static const char *mlp_si_refuse(const struct model_shape *s)
{
    for (uint32_t i = 0; i < s->hidden_count; i++)
        if (s->hidden[i] < 2)
            return "a hidden layer of one unit has no variance: give each of an mlp-si two or more";
    return NULL;
}

static void mlp_si_title(const struct model_shape *s, char out[static MODEL_TITLE_MAX])
{
    char widths[MODEL_TITLE_MAX];
    model_mlp.title(s, widths);
    snprintf(out, MODEL_TITLE_MAX, "scale-invariant %.200s", widths);
}

const struct model_kind model_mlp_si = {.refuse = mlp_si_refuse,
                                        .open = mlp_si_open,
                                        .close = mlp_si_close,
                                        .init = mlp_si_init,
                                        .forward = mlp_si_forward,
                                        .backward = mlp_si_backward,
                                        .title = mlp_si_title};
