#include "train/mlp.h"
#include "base/rng.h"
#include <cblas.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct mlp {
    uint32_t layers; /* of weights */
    uint32_t width[MLP_WIDTHS_MAX];
    uint32_t batch;
    size_t params;
    size_t weight[MLP_WIDTHS_MAX - 1], bias[MLP_WIDTHS_MAX - 1]; /* where they start */
    float *out[MLP_WIDTHS_MAX - 1];   /* outputs of each layer, batch x width */
    float *delta[MLP_WIDTHS_MAX - 1]; /* gradients at those outputs */
};

mlp *mlp_new(const uint32_t *widths, uint32_t count, uint32_t batch)
{
    if (count < 2 || count > MLP_WIDTHS_MAX || batch == 0 || batch > 1u << 20)
        return NULL;
    for (uint32_t i = 0; i < count; i++)
        if (widths[i] == 0 || widths[i] > 65536)
            return NULL;
    mlp *m = calloc(1, sizeof *m);
    if (!m)
        return NULL;
    m->layers = count - 1;
    m->batch = batch;
    memcpy(m->width, widths, count * sizeof *widths);
    for (uint32_t l = 0; l < m->layers; l++) {
        m->weight[l] = m->params;
        m->bias[l] = m->weight[l] + (size_t)widths[l] * widths[l + 1];
        m->params = m->bias[l] + widths[l + 1];
        m->out[l] = calloc((size_t)batch * widths[l + 1], sizeof(float));
        m->delta[l] = calloc((size_t)batch * widths[l + 1], sizeof(float));
        if (!m->out[l] || !m->delta[l]) {
            mlp_free(m);
            return NULL;
        }
    }
    return m;
}

void mlp_free(mlp *m)
{
    if (!m)
        return;
    for (uint32_t l = 0; l < m->layers; l++) {
        free(m->out[l]);
        free(m->delta[l]);
    }
    free(m);
}

size_t mlp_params(const mlp *m)
{
    return m->params;
}

uint32_t mlp_batch(const mlp *m)
{
    return m->batch;
}

void mlp_init(const mlp *m, float *params, uint64_t seed)
{
    sleet_rng rng = {mix64(seed ^ 0x6d6c702d696e6974u)};
    for (uint32_t l = 0; l < m->layers; l++) {
        double bound = sqrt(6.0 / m->width[l]);
        for (size_t i = m->weight[l]; i < m->bias[l]; i++)
            params[i] = (float)((2 * rng_double(&rng) - 1) * bound);
        memset(params + m->bias[l], 0, m->width[l + 1] * sizeof *params);
    }
}

static void forward(mlp *m, const float *params, const float *x, uint32_t n)
{
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
}

/* Loss at the outputs; their gradient goes to the last layer's delta. */
static double softmax(mlp *m, const uint8_t *label, uint32_t n, uint32_t *correct)
{
    uint32_t classes = m->width[m->layers], hits = 0;
    double loss = 0;
    for (uint32_t i = 0; i < n; i++) {
        const float *z = m->out[m->layers - 1] + (size_t)i * classes;
        float *d = m->delta[m->layers - 1] + (size_t)i * classes;
        uint32_t best = 0;
        for (uint32_t c = 1; c < classes; c++)
            best = z[c] > z[best] ? c : best;
        double sum = 0;
        for (uint32_t c = 0; c < classes; c++)
            sum += exp((double)z[c] - (double)z[best]);
        loss += log(sum) + (double)z[best] - (double)z[label[i]];
        hits += best == label[i];
        for (uint32_t c = 0; c < classes; c++) {
            double p = exp((double)z[c] - (double)z[best]) / sum;
            d[c] = (float)((p - (c == label[i])) / n);
        }
    }
    if (correct)
        *correct = hits;
    return loss / n;
}

static void backward(mlp *m, const float *params, const float *x, uint32_t n, float *gradient)
{
    for (uint32_t l = m->layers; l-- > 0;) {
        int in = (int)m->width[l], wide = (int)m->width[l + 1];
        const float *input = l ? m->out[l - 1] : x, *delta = m->delta[l];
        cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, in, wide, (int)n, 1.0f, input, in,
                    delta, wide, 0.0f, gradient + m->weight[l], wide);
        float *bias = gradient + m->bias[l];
        memset(bias, 0, (size_t)wide * sizeof *bias);
        for (uint32_t i = 0; i < n; i++)
            for (int k = 0; k < wide; k++)
                bias[k] += delta[(size_t)i * (size_t)wide + (size_t)k];
        if (l == 0)
            break;
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)n, in, wide, 1.0f, delta, wide,
                    params + m->weight[l], wide, 0.0f, m->delta[l - 1], in);
        for (size_t i = 0; i < (size_t)n * (size_t)in; i++)
            if (m->out[l - 1][i] <= 0)
                m->delta[l - 1][i] = 0;
    }
}

double mlp_loss(mlp *m, const float *params, const float *x, const uint8_t *label, uint32_t n,
                float *gradient, uint32_t *correct)
{
    forward(m, params, x, n);
    double loss = softmax(m, label, n, correct);
    if (gradient)
        backward(m, params, x, n, gradient);
    return loss;
}
