/* cnn.c - two stages of 3 x 3 convolution, 2 x 2 max-pool and ReLU, then an MLP; as `cnn-bn` with batch
 * normalisation behind each convolution, in the place of its biases.
 *
 * Parameters: of each stage those of the convolution and of the normalisation, then those of the MLP;
 * then the statistics, the running mean and variance of each stage. */
#include "train/conv.h"
#include "train/layer.h"
#include "train/model.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STAGES 2

static const uint32_t channels[STAGES] = {8, 16};

struct stage {
    struct conv conv;
    struct batchnorm norm; /* cnn-bn */
    float *raw;            /* outputs of the convolution, batch samples */
    float *unit;           /* those normalised; cnn: the same array */
    float *moment;         /* of the batch, cnn-bn */
    float *pooled;         /* outputs of the stage, batch samples */
    uint32_t *from;        /* for each of those the place of the maximum in its sample */
    float *delta;          /* gradients at the stage's outputs, batch samples */
};

struct cnn {
    model base;
    bool normal; /* cnn-bn */
    uint32_t samples; /* of the last batch to learn from */
    struct stage stage[STAGES];
    model *head;    /* the MLP */
    size_t head_at; /* where its parameters start */
    float *room;    /* of a convolution */
    float *raw_delta; /* gradients at the outputs of a stage's convolution, batch samples */
};

static struct cnn *cnn_of(model *m)
{
    return (struct cnn *)m;
}

static const char *cnn_refuse(const struct model_shape *s)
{
    uint32_t least = 1u << STAGES; /* CONV_POOL to the power of STAGES */
    return s->rows < least || s->columns < least ? "the cnn needs images of at least 4 x 4 pixels"
                                                 : NULL;
}

static void cnn_close(model *base)
{
    struct cnn *m = cnn_of(base);
    for (int i = 0; i < STAGES; i++) {
        struct stage *g = &m->stage[i];
        if (g->unit != g->raw)
            free(g->unit);
        free(g->raw);
        free(g->moment);
        free(g->pooled);
        free(g->from);
        free(g->delta);
    }
    model_free(m->head);
    free(m->room);
    free(m->raw_delta);
    free(m);
}

/* A stage's memory; false when out of it. */
static bool allocate(struct stage *g, bool normal, size_t batch)
{
    size_t raw = batch * conv_out(&g->conv), pooled = batch * conv_pooled(&g->conv);
    g->raw = malloc(raw * sizeof(float));
    g->unit = normal ? malloc(raw * sizeof(float)) : g->raw;
    g->moment = malloc(3 * (size_t)g->conv.out * sizeof(float));
    g->pooled = malloc(pooled * sizeof(float));
    g->from = malloc(pooled * sizeof *g->from);
    g->delta = malloc(pooled * sizeof(float));
    return g->raw && g->unit && g->moment && g->pooled && g->from && g->delta;
}

/* Stages and head with their memory; false when out of it. */
static bool build(struct cnn *m, const struct model_shape *s)
{
    struct model_shape head = *s;
    uint32_t in = 1;
    size_t room = 0, most = 0, *params = &m->base.params;
    for (int i = 0; i < STAGES; i++) {
        struct stage *g = &m->stage[i];
        g->conv = conv_at(params, head.rows, head.columns, in, channels[i], !m->normal);
        model_has_matrix(&m->base, g->conv.weight, (g->conv.bias - g->conv.weight) / channels[i], channels[i]);
        if (m->normal)
            g->norm = batchnorm_at(params, channels[i]);
        if (!allocate(g, m->normal, s->batch))
            return false;
        room = conv_room(&g->conv) > room ? conv_room(&g->conv) : room;
        most = conv_out(&g->conv) > most ? conv_out(&g->conv) : most;
        head.rows /= CONV_POOL;
        head.columns /= CONV_POOL;
        in = channels[i];
    }
    const char *why;
    head.columns *= head.rows * in;
    head.rows = 1;
    m->head = model_new(&model_mlp, &head, &why);
    m->room = malloc(room * sizeof(float));
    m->raw_delta = malloc(s->batch * most * sizeof(float));
    return m->head && m->room && m->raw_delta;
}

static model *open_kind(const struct model_shape *s, bool normal)
{
    struct cnn *m = calloc(1, sizeof *m);
    if (!m)
        return NULL;
    m->normal = normal;
    if (!build(m, s)) {
        cnn_close(&m->base);
        return NULL;
    }
    m->head_at = m->base.params;
    m->base.params += model_params(m->head);
    for (uint32_t i = 0; i < m->head->matrices; i++) {
        const struct model_matrix *x = &m->head->matrix[i];
        model_has_matrix(&m->base, m->head_at + x->at, x->rows, x->cols);
    }
    size_t end = m->base.params;
    for (int i = 0; normal && i < STAGES; i++)
        batchnorm_keep(&m->stage[i].norm, &end);
    m->base.statistics = end - m->base.params;
    m->base.classes = s->classes;
    m->base.batch = s->batch;
    return &m->base;
}

static model *cnn_open(const struct model_shape *s)
{
    return open_kind(s, false);
}
static model *cnn_bn_open(const struct model_shape *s)
{
    return open_kind(s, true);
}

static void cnn_init(const model *base, float *params, uint64_t seed)
{
    const struct cnn *m = (const struct cnn *)base;
    sleet_rng rng = {mix64(seed ^ 0x636e6e2d696e6974u)};
    for (int i = 0; i < STAGES; i++) {
        conv_init(&m->stage[i].conv, params, &rng);
        if (m->normal)
            batchnorm_init(&m->stage[i].norm, params);
    }
    model_init(m->head, params + m->head_at, seed);
}

/* ---- a batch --------------------------------------------------------------------- */

static size_t pixels_of(const struct conv *c)
{
    return (size_t)c->rows * c->columns;
}

static const float *cnn_forward(model *base, const float *params, const float *x, uint32_t n, bool train)
{
    struct cnn *m = cnn_of(base);
    if (train)
        m->samples = n;
    for (int i = 0; i < STAGES; i++) {
        struct stage *g = &m->stage[i];
        const struct conv *c = &g->conv;
        size_t in = conv_in(c), out = conv_out(c), pooled = conv_pooled(c);
        for (uint32_t k = 0; k < n; k++)
            conv_forward(c, params, x + k * in, m->room, g->raw + k * out);
        if (m->normal)
            batchnorm_forward(&g->norm, params, g->raw, n * pixels_of(c), train, g->moment, g->unit);
        for (uint32_t k = 0; k < n; k++)
            pool_forward(c, g->unit + k * out, g->pooled + k * pooled, g->from + k * pooled);
        x = g->pooled;
    }
    return m->head->kind->forward(m->head, params + m->head_at, x, n, train);
}

static void cnn_backward(model *base, const float *params, const float *x, uint32_t n,
                         const float *delta, float *gradient, float *x_delta)
{
    struct cnn *m = cnn_of(base);
    const struct stage *last = &m->stage[STAGES - 1];
    memset(gradient, 0, m->head_at * sizeof *gradient);
    m->head->kind->backward(m->head, params + m->head_at, last->pooled, n, delta,
                            gradient + m->head_at, last->delta);
    for (int i = STAGES; i-- > 0;) {
        const struct stage *g = &m->stage[i];
        const struct conv *c = &g->conv;
        const float *input = i ? m->stage[i - 1].pooled : x;
        float *in_delta = i ? m->stage[i - 1].delta : x_delta;
        size_t in = conv_in(c), out = conv_out(c), pooled = conv_pooled(c);
        for (uint32_t k = 0; k < n; k++)
            pool_backward(c, g->pooled + k * pooled, g->from + k * pooled, g->delta + k * pooled,
                          m->raw_delta + k * out);
        if (m->normal)
            batchnorm_backward(&g->norm, params, g->raw, n * pixels_of(c), g->moment, m->raw_delta,
                               gradient);
        for (uint32_t k = 0; k < n; k++)
            conv_backward(c, params, input + k * in, m->raw_delta + k * out, m->room, gradient,
                          in_delta ? in_delta + k * in : NULL);
    }
}

static void cnn_track(const model *base, float *params)
{
    const struct cnn *m = (const struct cnn *)base;
    for (int i = 0; i < STAGES; i++) {
        const struct stage *g = &m->stage[i];
        batchnorm_track(&g->norm, g->moment, m->samples * pixels_of(&g->conv), params);
    }
}

static void title(const char *kind, const struct model_shape *s, char out[static MODEL_TITLE_MAX])
{
    int len = snprintf(out, MODEL_TITLE_MAX, "%s %ux%u", kind, s->rows, s->columns);
    for (int i = 0; i < STAGES; i++)
        len += snprintf(out + len, MODEL_TITLE_MAX - (size_t)len, "-%uc%d", channels[i], CONV_KERNEL);
    for (uint32_t i = 0; i < s->hidden_count; i++)
        len += snprintf(out + len, MODEL_TITLE_MAX - (size_t)len, "-%u", s->hidden[i]);
    snprintf(out + len, MODEL_TITLE_MAX - (size_t)len, "-%u", s->classes);
}

static void cnn_title(const struct model_shape *s, char out[static MODEL_TITLE_MAX])
{
    title("CNN", s, out);
}
static void cnn_bn_title(const struct model_shape *s, char out[static MODEL_TITLE_MAX])
{
    title("CNN with BatchNorm", s, out);
}

const struct model_kind model_cnn = {.refuse = cnn_refuse,
                                     .open = cnn_open,
                                     .close = cnn_close,
                                     .init = cnn_init,
                                     .forward = cnn_forward,
                                     .backward = cnn_backward,
                                     .title = cnn_title};

const struct model_kind model_cnn_bn = {.refuse = cnn_refuse,
                                        .open = cnn_bn_open,
                                        .close = cnn_close,
                                        .init = cnn_init,
                                        .forward = cnn_forward,
                                        .backward = cnn_backward,
                                        .track = cnn_track,
                                        .title = cnn_bn_title};
