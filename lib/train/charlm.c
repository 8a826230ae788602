/* charlm.c - a character transformer: what comes next, at each place of a text.
 *
 * Two blocks of causal attention and a ReLU MLP of four widths, each behind a layer
 * normalisation and added to the stream (pre-norm); learned positions, one width throughout
 * (shape.hidden[0]), an output layer of its own.  An input is `columns` characters, each its class
 * as a float; the targets are the same characters one place on.  Parameters: the characters'
 * vectors, the positions', the blocks, the last normalisation, the output layer. */
#include "train/layer.h"
#include "train/model.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCKS 2
#define HEADS 4

/* The parts of a block; `in` and `mid` are the stream before the attention and the MLP. */
struct block {
    struct norm before_attention, before_mlp;
    struct dense qkv, mix, widen, narrow;
    float *in, *in_moment, *in_unit, *all, *weight, *mixed;
    float *mid, *mid_moment, *mid_unit, *wide;
};

struct charlm {
    model base;
    uint32_t context, width;
    struct attention attention;
    struct block block[BLOCKS];
    struct norm last;
    struct dense output;
    size_t characters, positions; /* where they start */
    float *end, *end_moment, *end_unit, *z;
    float *delta, *side, *room; /* gradient at the stream, in a branch off it, of one attention */
    float *memory;              /* all of the above */
};

static struct charlm *charlm_of(model *m)
{
    return (struct charlm *)m;
}

static const char *charlm_refuse(const struct model_shape *s)
{
    if (s->hidden_count != 1 || s->hidden[0] % HEADS)
        return "the charlm has one width, a multiple of 4: --hidden 96";
    return s->columns < 2 || s->rows != 1 ? "the charlm needs a text" : NULL;
}

static void charlm_close(model *base)
{
    free(charlm_of(base)->memory);
    free(base);
}

/* Hand out `count` floats of memory; counts only where there is none yet. */
static float *take(const struct charlm *m, size_t *used, size_t count)
{
    float *at = m->memory ? m->memory + *used : NULL;
    *used += count;
    return at;
}

/* Place all arrays for `n` characters in `samples`; the floats they take. */
static size_t place(struct charlm *m, size_t samples)
{
    size_t n = samples * m->context, row = n * m->width, used = 0;
    for (int i = 0; i < BLOCKS; i++) {
        struct block *b = &m->block[i];
        b->in = take(m, &used, row);
        b->in_moment = take(m, &used, 2 * n);
        b->in_unit = take(m, &used, row);
        b->all = take(m, &used, 3 * row);
        b->weight = take(m, &used, samples * HEADS * m->context * m->context);
        b->mixed = take(m, &used, row);
        b->mid = take(m, &used, row);
        b->mid_moment = take(m, &used, 2 * n);
        b->mid_unit = take(m, &used, row);
        b->wide = take(m, &used, 4 * row);
    }
    m->end = take(m, &used, row);
    m->end_moment = take(m, &used, 2 * n);
    m->end_unit = take(m, &used, row);
    m->z = take(m, &used, n * m->base.classes);
    m->delta = take(m, &used, row);
    m->side = take(m, &used, 5 * row);
    m->room = take(m, &used, (size_t)m->context * m->context);
    return used;
}

/* by_rows, units: see struct model_matrix. */
static struct dense dense_of(struct charlm *m, uint32_t in, uint32_t out, bool by_rows, uint32_t units)
{
    struct dense l = dense_at(&m->base.params, in, out);
    model_has_matrix(&m->base, l.weight, in, out);
    model_has_units(&m->base, by_rows, units);
    return l;
}

static model *charlm_open(const struct model_shape *s)
{
    struct charlm *m = calloc(1, sizeof *m);
    if (!m)
        return NULL;
    uint32_t d = m->width = s->hidden[0];
    m->context = s->columns;
    m->attention = (struct attention){.context = s->columns, .width = d, .heads = HEADS};
    m->base.classes = s->classes;
    m->base.batch = s->batch;
    m->base.targets = s->columns;
    size_t *params = &m->base.params;
    m->positions = (size_t)s->classes * d;
    *params = m->positions + (size_t)m->context * d;
    model_has_matrix(&m->base, 0, s->classes, d);
    model_has_units(&m->base, false, 0);
    model_has_matrix(&m->base, m->positions, m->context, d);
    model_has_units(&m->base, false, 0);
    for (int i = 0; i < BLOCKS; i++) {
        struct block *b = &m->block[i];
        b->before_attention = norm_at(params, d);
        b->qkv = dense_of(m, d, 3 * d, false, d);
        b->mix = dense_of(m, d, d, true, d);
        b->before_mlp = norm_at(params, d);
        b->widen = dense_of(m, d, 4 * d, false, 4 * d);
        b->narrow = dense_of(m, 4 * d, d, true, 4 * d);
    }
    m->last = norm_at(params, d);
    m->output = dense_of(m, d, s->classes, false, 0);
    m->memory = malloc(place(m, s->batch) * sizeof(float));
    place(m, s->batch);
    if (m->memory)
        return &m->base;
    charlm_close(&m->base);
    return NULL;
}

static void charlm_init(const model *base, float *params, uint64_t seed)
{
    const struct charlm *m = (const struct charlm *)base;
    sleet_rng rng = {mix64(seed ^ 0x63686172u)};
    for (size_t i = 0; i < m->positions + (size_t)m->context * m->width; i++)
        params[i] = (float)(0.2 * (2 * rng_double(&rng) - 1));
    for (int i = 0; i < BLOCKS; i++) {
        const struct block *b = &m->block[i];
        norm_init(&b->before_attention, params);
        dense_init(&b->qkv, params, 1, &rng);
        dense_init(&b->mix, params, 0.5 / BLOCKS, &rng); /* the stream stays about as wide */
        norm_init(&b->before_mlp, params);
        dense_init(&b->widen, params, 2, &rng);
        dense_init(&b->narrow, params, 0.5 / BLOCKS, &rng);
    }
    norm_init(&m->last, params);
    dense_init(&m->output, params, 0.1, &rng); /* all classes are as likely at first */
}

static void add(float *to, const float *what, size_t count)
{
    for (size_t i = 0; i < count; i++)
        to[i] += what[i];
}

/* out = in + a branch of `n` rows. */
static void block_forward(struct charlm *m, struct block *b, const float *params, uint32_t samples,
                          float *out)
{
    uint32_t n = samples * m->context;
    size_t count = (size_t)n * m->width;
    norm_forward(&b->before_attention, params, b->in, n, b->in_moment, b->in_unit);
    dense_forward(&b->qkv, params, b->in_unit, n, b->all);
    attention_forward(&m->attention, b->all, samples, b->weight, b->mixed);
    dense_forward(&b->mix, params, b->mixed, n, b->mid);
    add(b->mid, b->in, count);
    norm_forward(&b->before_mlp, params, b->mid, n, b->mid_moment, b->mid_unit);
    dense_forward(&b->widen, params, b->mid_unit, n, b->wide);
    relu(b->wide, 4 * count);
    dense_forward(&b->narrow, params, b->wide, n, out);
    add(out, b->mid, count);
}

/* m->delta: the gradient at the block's output becomes that at its input. */
static void block_backward(struct charlm *m, const struct block *b, const float *params,
                           uint32_t samples, float *gradient)
{
    uint32_t n = samples * m->context;
    size_t count = (size_t)n * m->width;
    uint32_t d = m->width;
    const struct dense_units heads = {false, d, m->base.share}, mixing = {true, d, m->base.share};
    const struct dense_units widening = {false, 4 * d, m->base.share}, narrowing = {true, 4 * d, m->base.share};
    float *branch = m->side, *wide = m->side + count;
    dense_backward_of(&b->narrow, &narrowing, params, b->wide, n, m->delta, gradient, wide);
    relu_backward(b->wide, wide, 4 * count);
    dense_backward_of(&b->widen, &widening, params, b->mid_unit, n, wide, gradient, branch);
    norm_backward(&b->before_mlp, params, b->mid, n, b->mid_moment, branch, gradient, m->delta);
    dense_backward_of(&b->mix, &mixing, params, b->mixed, n, m->delta, gradient, branch);
    attention_backward(&m->attention, b->all, samples, b->weight, branch, m->room, wide);
    dense_backward_of(&b->qkv, &heads, params, b->in_unit, n, wide, gradient, branch);
    norm_backward(&b->before_attention, params, b->in, n, b->in_moment, branch, gradient, m->delta);
}

static const float *charlm_forward(model *base, const float *params, const float *x, uint32_t samples,
                                   bool train)
{
    (void)train;
    struct charlm *m = charlm_of(base);
    uint32_t n = samples * m->context;
    for (uint32_t i = 0; i < n; i++) {
        float *row = m->block[0].in + (size_t)i * m->width;
        memcpy(row, params + (size_t)x[i] * m->width, m->width * sizeof *row);
        add(row, params + m->positions + (size_t)(i % m->context) * m->width, m->width);
    }
    for (int i = 0; i < BLOCKS; i++)
        block_forward(m, &m->block[i], params, samples, i + 1 < BLOCKS ? m->block[i + 1].in : m->end);
    norm_forward(&m->last, params, m->end, n, m->end_moment, m->end_unit);
    dense_forward(&m->output, params, m->end_unit, n, m->z);
    return m->z;
}

/* x_delta: there is no gradient at a character. */
static void charlm_backward(model *base, const float *params, const float *x, uint32_t samples,
                            const float *delta, float *gradient, float *x_delta)
{
    struct charlm *m = charlm_of(base);
    uint32_t n = samples * m->context;
    (void)x_delta;
    dense_backward(&m->output, params, m->end_unit, n, delta, gradient, m->side);
    memset(m->delta, 0, (size_t)n * m->width * sizeof *m->delta);
    norm_backward(&m->last, params, m->end, n, m->end_moment, m->side, gradient, m->delta);
    for (int i = BLOCKS; i-- > 0;)
        block_backward(m, &m->block[i], params, samples, gradient);
    memset(gradient, 0, (m->positions + (size_t)m->context * m->width) * sizeof *gradient);
    for (uint32_t i = 0; i < n; i++) {
        const float *row = m->delta + (size_t)i * m->width;
        add(gradient + (size_t)x[i] * m->width, row, m->width);
        add(gradient + m->positions + (size_t)(i % m->context) * m->width, row, m->width);
    }
}

static void charlm_title(const struct model_shape *s, char out[static MODEL_TITLE_MAX])
{
    snprintf(out, MODEL_TITLE_MAX, "charlm %dx%u of %u characters, context %u", BLOCKS, s->hidden[0],
             s->classes, s->columns);
}

const struct model_kind model_charlm = {.text = true,
                                        .refuse = charlm_refuse,
                                        .open = charlm_open,
                                        .close = charlm_close,
                                        .init = charlm_init,
                                        .forward = charlm_forward,
                                        .backward = charlm_backward,
                                        .title = charlm_title};
