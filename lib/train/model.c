#include "train/model.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const struct {
    const char *name;
    const struct model_kind *kind;
} kinds[] = {
#define MODEL_X(name, kind) {name, &kind},
    MODEL_MAP(MODEL_X)
#undef MODEL_X
};

const struct model_kind *model_find(const char *name)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kinds[i].name, name) == 0)
            return kinds[i].kind;
    return NULL;
}

static const char *refuse(const struct model_kind *kind, const struct model_shape *s)
{
    if (s->rows == 0 || s->columns == 0 || (uint64_t)s->rows * s->columns > MODEL_WIDTH_MAX)
        return "images of more than 65536 pixels are too large";
    if (s->hidden_count > MODEL_HIDDEN_MAX || s->classes == 0 || s->classes > MODEL_WIDTH_MAX)
        return "too many layers or classes";
    for (uint32_t i = 0; i < s->hidden_count; i++)
        if (s->hidden[i] == 0 || s->hidden[i] > MODEL_WIDTH_MAX)
            return "a hidden layer has a width outside 1 to 65536";
    if (s->batch == 0 || s->batch > MODEL_BATCH_MAX)
        return "the batch is empty or too large";
    return kind->refuse ? kind->refuse(s) : NULL;
}

model *model_new(const struct model_kind *kind, const struct model_shape *s, const char **why)
{
    *why = refuse(kind, s);
    if (*why)
        return NULL;
    *why = "out of memory";
    model *m = kind->open(s);
    if (!m)
        return NULL;
    m->kind = kind;
    if (m->targets == 0)
        m->targets = 1;
    m->delta = malloc((size_t)s->batch * m->targets * s->classes * sizeof *m->delta);
    if (m->delta)
        return m;
    model_free(m);
    return NULL;
}

void model_free(model *m)
{
    if (!m)
        return;
    free(m->delta);
    m->kind->close(m);
}

void model_has_matrix(model *m, size_t at, size_t rows, size_t cols)
{
    if (m->matrices < MODEL_MATRICES_MAX)
        m->matrix[m->matrices++] = (struct model_matrix){.at = at, .rows = (uint32_t)rows, .cols = (uint32_t)cols,
                                                         .units = (uint32_t)cols};
}

void model_has_units(model *m, bool by_rows, uint32_t units)
{
    m->matrix[m->matrices - 1].by_rows = by_rows;
    m->matrix[m->matrices - 1].units = units;
}

size_t model_params(const model *m)
{
    return m->params;
}

size_t model_statistics(const model *m)
{
    return m->statistics;
}

uint32_t model_batch(const model *m)
{
    return m->batch;
}

void model_init(const model *m, float *params, uint64_t seed)
{
    m->kind->init(m, params, seed);
}

static double processor_time(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Loss at the `n` rows of outputs `z`; their gradient, if wanted, goes to m->delta. */
static double softmax(model *m, const float *z, const uint8_t *label, uint32_t n, bool gradient, uint32_t *correct)
{
    uint32_t classes = m->classes, hits = 0;
    float *d = m->delta;
    double loss = 0;
    for (uint32_t i = 0; i < n; i++, z += classes, d += classes) {
        uint32_t best = 0;
        for (uint32_t c = 1; c < classes; c++)
            best = z[c] > z[best] ? c : best;
        double sum = 0;
        for (uint32_t c = 0; c < classes; c++)
            sum += exp((double)z[c] - (double)z[best]);
        loss += log(sum) + (double)z[best] - (double)z[label[i]];
        hits += best == label[i];
        for (uint32_t c = 0; gradient && c < classes; c++) {
            double p = exp((double)z[c] - (double)z[best]) / sum;
            d[c] = (float)((p - (c == label[i])) / n);
        }
    }
    if (correct)
        *correct = hits;
    return loss / n;
}

double model_loss(model *m, const float *params, const float *x, const uint8_t *label, uint32_t n,
                  float *gradient, uint32_t *correct)
{
    const float *z = m->kind->forward(m, params, x, n, gradient != NULL);
    double loss = softmax(m, z, label, n * m->targets, gradient != NULL, correct);
    if (gradient) {
        double began = processor_time();
        m->kind->backward(m, params, x, n, m->delta, gradient, NULL);
        m->backward_s += processor_time() - began;
        m->backwards++;
    }
    return loss;
}

void model_wants(model *m, struct model_share share)
{
    m->share = share;
}

/* Unit u is of slice u slices / units. */
void model_units(uint32_t units, uint32_t slices, uint32_t slice, uint32_t *first, uint32_t *end)
{
    *first = (uint32_t)(((uint64_t)slice * units + slices - 1) / slices);
    *end = (uint32_t)((((uint64_t)slice + 1) * units + slices - 1) / slices);
}

void model_track(const model *m, float *params)
{
    if (m->kind->track)
        m->kind->track(m, params);
}
