/* cnn.c - two stages of 3 x 3 convolution, 2 x 2 max-pool and ReLU, then an MLP.
 *
 * An image becomes a matrix (im2col: one row a pixel, one column a value under the
 * kernel), so that convolution is a product with the weights.  Values lie pixel by
 * pixel, channels innermost.  Parameters: of each stage the weights, (row, column,
 * channel) x outputs row-major, then the biases; then those of the MLP. */
#include "base/rng.h"
#include "train/model.h"
#include <cblas.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STAGES 2
#define KERNEL 3
#define POOL 2

static const uint32_t channels[STAGES] = {8, 16};

struct stage {
    uint32_t rows, columns, in, out; /* pixels of the input, channels */
    size_t weight, bias;             /* where they start */
    float *pooled;                   /* outputs, batch samples */
    uint32_t *from;                  /* for each output the place of the maximum in its sample */
};

struct cnn {
    model base;
    struct stage stage[STAGES];
    model *head;          /* the MLP, its parameters last */
    size_t head_at;       /* where they start */
    float *columns;       /* im2col of one sample, and its gradient */
    float *pixels;        /* outputs of one sample before the pool, and their gradient */
    float *delta[STAGES]; /* gradients at the stages' outputs, batch samples */
};

static struct cnn *cnn_of(model *m)
{
    return (struct cnn *)m;
}
static const struct cnn *cnn_of_const(const model *m)
{
    return (const struct cnn *)m;
}

static size_t in_size(const struct stage *s)
{
    return (size_t)s->rows * s->columns * s->in;
}
static size_t out_size(const struct stage *s)
{
    return (size_t)(s->rows / POOL) * (s->columns / POOL) * s->out;
}
static size_t patch_size(const struct stage *s)
{
    return (size_t)KERNEL * KERNEL * s->in;
}

static const char *cnn_refuse(const struct model_shape *s)
{
    uint32_t least = 1u << STAGES; /* POOL to the power of STAGES */
    return s->rows < least || s->columns < least ? "the cnn needs images of at least 4 x 4 pixels"
                                                 : NULL;
}

static void cnn_close(model *base)
{
    struct cnn *m = cnn_of(base);
    for (int i = 0; i < STAGES; i++) {
        free(m->stage[i].pooled);
        free(m->stage[i].from);
        free(m->delta[i]);
    }
    model_free(m->head);
    free(m->columns);
    free(m->pixels);
    free(m);
}

/* Stages and head with their memory; false when out of it. */
static bool build(struct cnn *m, const struct model_shape *s)
{
    uint32_t rows = s->rows, columns = s->columns, in = 1;
    size_t most_columns = 0, most_pixels = 0;
    for (int i = 0; i < STAGES; i++) {
        struct stage *g = &m->stage[i];
        *g = (struct stage){.rows = rows, .columns = columns, .in = in, .out = channels[i]};
        size_t pixels = (size_t)rows * columns, outputs = s->batch * out_size(g);
        g->weight = m->base.params;
        g->bias = g->weight + patch_size(g) * g->out;
        m->base.params = g->bias + g->out;
        g->pooled = malloc(outputs * sizeof(float));
        g->from = malloc(outputs * sizeof *g->from);
        m->delta[i] = malloc(outputs * sizeof(float));
        if (!g->pooled || !g->from || !m->delta[i])
            return false;
        if (pixels * patch_size(g) > most_columns)
            most_columns = pixels * patch_size(g);
        if (pixels * g->out > most_pixels)
            most_pixels = pixels * g->out;
        rows /= POOL;
        columns /= POOL;
        in = g->out;
    }
    struct model_shape head = *s;
    const char *why;
    head.rows = 1;
    head.columns = (uint32_t)out_size(&m->stage[STAGES - 1]);
    m->head = model_new(&model_mlp, &head, &why);
    m->columns = malloc(most_columns * sizeof(float));
    m->pixels = malloc(most_pixels * sizeof(float));
    return m->head && m->columns && m->pixels;
}

static model *cnn_open(const struct model_shape *s)
{
    struct cnn *m = calloc(1, sizeof *m);
    if (!m)
        return NULL;
    if (!build(m, s)) {
        cnn_close(&m->base);
        return NULL;
    }
    m->head_at = m->base.params;
    m->base.params += model_params(m->head);
    m->base.classes = s->classes;
    m->base.batch = s->batch;
    return &m->base;
}

static void cnn_init(const model *base, float *params, uint64_t seed)
{
    const struct cnn *m = cnn_of_const(base);
    sleet_rng rng = {mix64(seed ^ 0x636e6e2d696e6974u)};
    for (int i = 0; i < STAGES; i++) {
        const struct stage *g = &m->stage[i];
        double bound = sqrt(6.0 / (double)patch_size(g));
        for (size_t k = g->weight; k < g->bias; k++)
            params[k] = (float)((2 * rng_double(&rng) - 1) * bound);
        memset(params + g->bias, 0, g->out * sizeof *params);
    }
    model_init(m->head, params + m->head_at, seed);
}

/* ---- one sample through one stage ------------------------------------------------ */

/* One row a pixel: the values under the kernel around it, 0 outside the image. */
static void unfold(const struct stage *g, const float *x, float *columns)
{
    size_t bytes = g->in * sizeof(float);
    for (uint32_t r = 0; r < g->rows; r++)
        for (uint32_t c = 0; c < g->columns; c++)
            for (uint32_t k = 0; k < KERNEL * KERNEL; k++, columns += g->in) {
                uint32_t y = r + k / KERNEL - 1, z = c + k % KERNEL - 1; /* 0 - 1 wraps: outside */
                if (y < g->rows && z < g->columns)
                    memcpy(columns, x + ((size_t)y * g->columns + z) * g->in, bytes);
                else
                    memset(columns, 0, bytes);
            }
}

/* The gradient at the image from that at the columns. */
static void fold(const struct stage *g, const float *columns, float *x_delta)
{
    memset(x_delta, 0, in_size(g) * sizeof *x_delta);
    for (uint32_t r = 0; r < g->rows; r++)
        for (uint32_t c = 0; c < g->columns; c++)
            for (uint32_t k = 0; k < KERNEL * KERNEL; k++, columns += g->in) {
                uint32_t y = r + k / KERNEL - 1, z = c + k % KERNEL - 1;
                if (y >= g->rows || z >= g->columns)
                    continue;
                float *to = x_delta + ((size_t)y * g->columns + z) * g->in;
                for (uint32_t i = 0; i < g->in; i++)
                    to[i] += columns[i];
            }
}

/* The maximum of each 2 x 2 pixels, not below 0; pixels beyond an even edge are left out. */
static void pool(const struct stage *g, const float *pixels, float *pooled, uint32_t *from)
{
    for (uint32_t r = 0; r + POOL <= g->rows; r += POOL)
        for (uint32_t c = 0; c + POOL <= g->columns; c += POOL)
            for (uint32_t o = 0; o < g->out; o++, pooled++, from++) {
                uint32_t first = (r * g->columns + c) * g->out + o;
                uint32_t below = first + g->columns * g->out;
                const uint32_t others[] = {first + g->out, below, below + g->out};
                *from = first;
                for (int k = 0; k < 3; k++)
                    if (pixels[others[k]] > pixels[*from] || isnan(pixels[others[k]]))
                        *from = others[k];
                float best = pixels[*from];
                *pooled = best < 0 ? 0 : best; /* a NaN stays one */
            }
}

static void stage_forward(struct cnn *m, struct stage *g, const float *params, const float *x,
                          uint32_t sample)
{
    size_t pixels = (size_t)g->rows * g->columns, at = sample * out_size(g);
    int patch = (int)patch_size(g), out = (int)g->out;
    unfold(g, x, m->columns);
    for (size_t i = 0; i < pixels; i++)
        memcpy(m->pixels + i * g->out, params + g->bias, g->out * sizeof(float));
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)pixels, out, patch, 1.0f,
                m->columns, patch, params + g->weight, out, 1.0f, m->pixels, out);
    pool(g, m->pixels, g->pooled + at, g->from + at);
}

/* Adds to the stage's gradient; overwrites `x_delta` unless it is NULL. */
static void stage_backward(struct cnn *m, const struct stage *g, const float *params,
                           const float *x, uint32_t sample, const float *delta, float *gradient,
                           float *x_delta)
{
    size_t pixels = (size_t)g->rows * g->columns, n = out_size(g), at = sample * n;
    int patch = (int)patch_size(g), out = (int)g->out;
    float *bias = gradient + g->bias;
    memset(m->pixels, 0, pixels * g->out * sizeof(float));
    for (size_t i = 0; i < n; i++) {
        if (g->pooled[at + i] <= 0)
            continue;
        m->pixels[g->from[at + i]] = delta[i];
        bias[i % g->out] += delta[i];
    }
    unfold(g, x, m->columns);
    cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, patch, out, (int)pixels, 1.0f, m->columns,
                patch, m->pixels, out, 1.0f, gradient + g->weight, out);
    if (!x_delta)
        return;
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)pixels, patch, out, 1.0f, m->pixels,
                out, params + g->weight, out, 0.0f, m->columns, patch);
    fold(g, m->columns, x_delta);
}

/* ---- a batch --------------------------------------------------------------------- */

static const float *cnn_forward(model *base, const float *params, const float *x, uint32_t n)
{
    struct cnn *m = cnn_of(base);
    for (int i = 0; i < STAGES; i++) {
        struct stage *g = &m->stage[i];
        for (uint32_t k = 0; k < n; k++)
            stage_forward(m, g, params, x + k * in_size(g), k);
        x = g->pooled;
    }
    return m->head->kind->forward(m->head, params + m->head_at, x, n);
}

static void cnn_backward(model *base, const float *params, const float *x, uint32_t n,
                         const float *delta, float *gradient, float *x_delta)
{
    struct cnn *m = cnn_of(base);
    memset(gradient, 0, m->head_at * sizeof *gradient);
    m->head->kind->backward(m->head, params + m->head_at, m->stage[STAGES - 1].pooled, n, delta,
                            gradient + m->head_at, m->delta[STAGES - 1]);
    for (int i = STAGES; i-- > 0;) {
        const struct stage *g = &m->stage[i];
        const float *input = i ? m->stage[i - 1].pooled : x;
        float *in_delta = i ? m->delta[i - 1] : x_delta;
        for (uint32_t k = 0; k < n; k++)
            stage_backward(m, g, params, input + k * in_size(g), k, m->delta[i] + k * out_size(g),
                           gradient, in_delta ? in_delta + k * in_size(g) : NULL);
    }
}

static void cnn_title(const struct model_shape *s, char out[static MODEL_TITLE_MAX])
{
    int len = snprintf(out, MODEL_TITLE_MAX, "CNN %ux%u", s->rows, s->columns);
    for (int i = 0; i < STAGES; i++)
        len += snprintf(out + len, MODEL_TITLE_MAX - (size_t)len, "-%uc%d", channels[i], KERNEL);
    for (uint32_t i = 0; i < s->hidden_count; i++)
        len += snprintf(out + len, MODEL_TITLE_MAX - (size_t)len, "-%u", s->hidden[i]);
    snprintf(out + len, MODEL_TITLE_MAX - (size_t)len, "-%u", s->classes);
}

const struct model_kind model_cnn = {.refuse = cnn_refuse,
                                     .open = cnn_open,
                                     .close = cnn_close,
                                     .init = cnn_init,
                                     .forward = cnn_forward,
                                     .backward = cnn_backward,
                                     .title = cnn_title};
