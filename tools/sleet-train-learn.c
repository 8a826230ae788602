#include "sleet-train.h"
#include <stdlib.h>
#include <string.h>

static struct train_tensor *add_tensor(struct learner *l, const char *name, size_t elements, bool state)
{
    struct train_tensor *t = &l->tensor[l->tensors++];
    *t = (struct train_tensor){.elements = elements, .state = state};
    snprintf(t->name, sizeof t->name, "%s", name);
    return t;
}

static void add_part(struct train_tensor *t, size_t at, size_t each)
{
    t->part[t->parts].at = at;
    t->part[t->parts++].each = each;
    t->count += t->elements * each;
}

/* `n` parameters from `at` on, where neighbours send differences of low rank. */
static void add_stretch(struct learner *l, size_t at, size_t n, uint32_t rows)
{
    char name[24];
    snprintf(name, sizeof name, "params %zu", at);
    if (!n)
        return;
    struct train_tensor *t = add_tensor(l, name, n, false);
    add_part(t, at, 1);
    t->rows = rows;
}

/* Each matrix is a tensor, and what lies between them is. */
static void add_matrices(struct learner *l)
{
    size_t at = 0;
    for (const struct model_matrix *m = l->net->matrix; m < l->net->matrix + l->net->matrices; m++) {
        size_t n = (size_t)m->rows * m->cols;
        add_stretch(l, at, m->at - at, 0);
        add_stretch(l, m->at, n, m->rows);
        at = m->at + n;
    }
    add_stretch(l, at, l->params - at, 0);
}

/* Where gradients are averaged, parameters and moments are state, of which each round brings a part: both
 * of a parameter together, or there were steps between with moments of another node. */
static void lay_out(struct learner *l, const struct train_options *o)
{
    const struct optimizer_kind *kind = l->optimizer.kind;
    size_t n = l->params = model_params(l->net), moments = n + model_statistics(l->net);
    bool gradient = o->average == AVERAGE_GRADIENT;
    l->statistics = model_statistics(l->net);
    l->elements = moments;
    if (o->average != AVERAGE_OWNER) /* there they are the keeper's, as those of outer steps are */
        l->elements += kind->moments * n;
    if (o->average == AVERAGE_OUTER) {
        l->anchor = l->elements;
        l->elements += l->handed;
    }
    if (o->trigger.kind == &trigger_auto)
        l->wish = l->elements++;
    if (gradient || average_owned(o->average))
        add_tensor(l, "gradient", l->handed, false)->count = l->handed;
    if (average_owned(o->average))
        return; /* the parameters have a set of their own */
    if (kind_rank(&o->kind)) {
        add_matrices(l);
    } else {
        struct train_tensor *t = add_tensor(l, gradient ? "state" : "params", n, gradient);
        add_part(t, 0, 1);
        if (gradient && kind->moments)
            add_part(t, moments, kind->moments);
    }
    if (l->statistics && !o->local_statistics)
        add_part(add_tensor(l, "statistics", l->statistics, gradient), n, 1);
    if (l->wish)
        add_part(add_tensor(l, "wish", 1, false), l->wish, 1);
    if (!gradient && kind->moments && !o->local_moments)
        add_part(add_tensor(l, kind->moments_name, n, o->refresh), moments, kind->moments);
}

static float *copy(float *to, const float *from, size_t n)
{
    for (size_t k = 0; k < n; k++)
        to[k] = from[k];
    return to + n;
}

void learner_pack(const struct learner *l, const float *values, float *tensors)
{
    for (const struct train_tensor *t = l->tensor; t < l->tensor + l->tensors; t++) {
        if (!t->parts)
            tensors = copy(tensors, l->gradient, t->count);
        for (size_t i = 0; i < t->elements; i++)
            for (uint32_t p = 0; p < t->parts; p++)
                tensors = copy(tensors, values + t->part[p].at + i * t->part[p].each, t->part[p].each);
    }
}

void learner_unpack(const struct learner *l, const float *tensors, float *values)
{
    for (const struct train_tensor *t = l->tensor; t < l->tensor + l->tensors; t++) {
        if (!t->parts)
            tensors += t->count;
        for (size_t i = 0; i < t->elements; i++)
            for (uint32_t p = 0; p < t->parts; p++) {
                copy(values + t->part[p].at + i * t->part[p].each, tensors, t->part[p].each);
                tensors += t->part[p].each;
            }
    }
}

void learner_to_handed(const struct learner *l, const float *values, float *handed)
{
    if (l->slices.n)
        slices_from_model(&l->slices, values, handed);
    else
        memcpy(handed, values, l->params * sizeof *handed);
}

size_t learner_packed(const struct learner *l)
{
    size_t n = 0;
    for (uint32_t i = 0; i < l->tensors; i++)
        n += l->tensor[i].count;
    return n;
}

const char *learner_open(struct learner *l, const struct train_options *o,
                         const struct dataset *data, uint32_t nodes)
{
    const struct data_kind *kind = data->kind;
    uint32_t most = o->batches.on ? o->batches.control.most : o->batch;
    struct model_shape shape = {.rows = data->rows,
                                .columns = data->columns,
                                .hidden_count = o->hidden_count,
                                .classes = data->classes,
                                .batch = most < kind->test_batch ? kind->test_batch : most};
    const char *why;
    memcpy(shape.hidden, o->hidden, sizeof shape.hidden);
    *l = (struct learner){.data = data, .batch = o->batch, .optimizer = o->optimizer,
                          .loss_scale = o->loss_scale, .init_scale = o->init_scale};
    l->net = model_new(o->model, &shape, &why);
    if (!l->net)
        return why;
    o->model->title(&shape, l->title);
    l->input = malloc((size_t)shape.batch * data->rows * data->columns * sizeof(float));
    l->target = malloc((size_t)shape.batch * data->targets);
    if (o->slices && !slices_open(&l->slices, l->net, o->slices, FRAGMENT_ELEMENTS)) {
        learner_close(l);
        return "out of memory";
    }
    l->handed = o->slices ? l->slices.length : model_params(l->net);
    l->gradient = malloc(l->handed * sizeof(float)); /* no less than there are parameters */
    lay_out(l, o);
    if (o->spread > 1 && !kind_spreads(&o->kind, l->params)) {
        learner_close(l);
        return "the model is too small for --spread: there is none of its parts of 2,304 parameters for each round";
    }
    l->steps_per_epoch = data->count[DATA_TRAIN] / ((uint64_t)nodes * o->batch);
    if (l->steps_per_epoch == 0)
        l->steps_per_epoch = 1;
    l->optimizer.begin = o->partition * l->steps_per_epoch;
    if (o->partition && o->hidden_count) { /* outputs are divided by the parts: units would learn so much slower than they did in theirs */
        l->hidden_rate = nodes;
        l->hidden = l->params - (size_t)(o->hidden[o->hidden_count - 1] + 1) * data->classes;
    }
    l->optimizer.steps = o->epochs ? o->epochs * l->steps_per_epoch : o->steps;
    if (l->input && l->target && l->gradient)
        return NULL;
    learner_close(l);
    return "out of memory";
}

void learner_close(struct learner *l)
{
    model_free(l->net);
    free(l->input);
    free(l->target);
    free(l->gradient);
    slices_close(&l->slices);
    *l = (struct learner){0};
}

static void multiply(float *values, double by, size_t n)
{
    for (size_t i = 0; by > 0 && by != 1 && i < n; i++) /* 0 stands for 1 */
        values[i] *= (float)by;
}

void learner_init(const struct learner *l, uint64_t seed, float *values)
{
    memset(values, 0, l->elements * sizeof *values);
    model_init(l->net, values, seed);
    multiply(values, l->init_scale, l->params);
    if (l->anchor)
        learner_to_handed(l, values, values + l->anchor);
}

double learner_before(struct learner *l, struct shard_walk *walk, enum average average, uint64_t step,
                      float *values)
{
    return average_local(average) ? learner_step(l, walk, step, values) : learner_gradient(l, walk, values);
}

bool learner_after(struct learner *l, enum average average, uint64_t step, uint32_t flags,
                   const float *tensors, float *values)
{
    learner_unpack(l, tensors, values);
    if (flags & SLEET_BEHIND)
        return false;
    if (average == AVERAGE_GRADIENT) {
        copy(l->gradient, tensors, l->params); /* the first tensor */
        learner_apply(l, step, values);
    }
    return true;
}

/* Sample `i` as the k-th of the batch. */
static void put_sample(struct learner *l, enum data_part part, uint32_t i, uint32_t k)
{
    const struct dataset *d = l->data;
    data_sample(d, part, i, l->input + (size_t)k * d->rows * d->columns, l->target + (size_t)k * d->targets);
}

double learner_gradient(struct learner *l, struct shard_walk *walk, float *values)
{
    for (uint32_t k = 0; k < l->batch; k++)
        put_sample(l, DATA_TRAIN, shard_walk_next(walk), k);
    double loss = model_loss(l->net, values, l->input, l->target, l->batch, l->gradient, NULL);
    model_track(l->net, values);
    multiply(l->gradient, l->loss_scale, l->params);
    multiply(l->gradient, l->hidden_rate, l->hidden);
    return loss;
}

void learner_apply(struct learner *l, uint64_t step, float *values)
{
    const struct optimizer *o = &l->optimizer;
    float *gradient = l->gradient;
    size_t n = l->params;
    float scale = !optimizer_clips(o) ? 1
                                      : optimizer_clip(o, step, optimizer_energy(gradient, n), optimizer_energy(values, n));
    for (size_t i = 0; scale < 1 && i < n; i++)
        gradient[i] *= scale;
    optimizer_step(o, step, step, values, values + n + l->statistics, gradient, n);
}

double learner_step(struct learner *l, struct shard_walk *walk, uint64_t step, float *values)
{
    double loss = learner_gradient(l, walk, values);
    learner_apply(l, step, values);
    return loss;
}

/* The mean loss on the part's first `count` samples; how many labels of them are right. */
static double measure(struct learner *l, const float *values, enum data_part part, uint32_t count, uint64_t *right)
{
    double loss = 0;
    *right = 0;
    for (uint32_t at = 0, n; at < count; at += n) {
        uint32_t hits;
        n = count - at < model_batch(l->net) ? count - at : model_batch(l->net);
        for (uint32_t k = 0; k < n; k++)
            put_sample(l, part, at + k, k);
        loss += n * model_loss(l->net, values, l->input, l->target, n, NULL, &hits);
        *right += hits;
    }
    return loss / count;
}

double learner_score(struct learner *l, const float *values)
{
    uint32_t count = l->data->count[DATA_TEST];
    uint64_t right;
    double loss = measure(l, values, DATA_TEST, count, &right);
    return l->data->kind->score(loss, right, (uint64_t)count * l->data->targets);
}

double learner_loss(struct learner *l, const float *values)
{
    uint64_t right;
    uint32_t all = l->data->count[DATA_TRAIN], test = l->data->count[DATA_TEST];
    return measure(l, values, DATA_TRAIN, all < test ? all : test, &right);
}
