#include "sleet-train.h"
#include <stdlib.h>
#include <string.h>

/* A part of the values; a tensor of it, unless it stays with its node. */
static void add_part(struct learner *l, const char *name, size_t count, bool state, bool local)
{
    if (count && !local)
        l->tensor[l->tensors++] = (struct train_tensor){name, l->elements, count, state};
    l->elements += count;
}

static void lay_out(struct learner *l, const struct train_options *o)
{
    const struct optimizer_kind *kind = l->optimizer.kind;
    l->params = model_params(l->net);
    l->statistics = model_statistics(l->net);
    add_part(l, "params", l->params, false, false);
    add_part(l, "statistics", l->statistics, false, o->local_statistics);
    add_part(l, kind->moments_name, kind->moments * l->params, o->refresh, false);
}

void learner_pack(const struct learner *l, const float *values, float *tensors)
{
    for (const struct train_tensor *t = l->tensor; t < l->tensor + l->tensors; tensors += t++->count)
        memcpy(tensors, values + t->at, t->count * sizeof *tensors);
}

void learner_unpack(const struct learner *l, const float *tensors, float *values)
{
    for (const struct train_tensor *t = l->tensor; t < l->tensor + l->tensors; tensors += t++->count)
        memcpy(values + t->at, tensors, t->count * sizeof *tensors);
}

const char *learner_open(struct learner *l, const struct train_options *o,
                         const struct dataset *data, uint32_t nodes)
{
    const struct data_kind *kind = data->kind;
    struct model_shape shape = {.rows = data->rows,
                                .columns = data->columns,
                                .hidden_count = o->hidden_count,
                                .classes = data->classes,
                                .batch = o->batch < kind->test_batch ? kind->test_batch : o->batch};
    const char *why;
    memcpy(shape.hidden, o->hidden, sizeof shape.hidden);
    *l = (struct learner){.data = data, .batch = o->batch, .optimizer = o->optimizer};
    l->net = model_new(o->model, &shape, &why);
    if (!l->net)
        return why;
    o->model->title(&shape, l->title);
    l->input = malloc((size_t)shape.batch * data->rows * data->columns * sizeof(float));
    l->target = malloc((size_t)shape.batch * data->targets);
    l->gradient = malloc(model_params(l->net) * sizeof(float));
    lay_out(l, o);
    l->steps_per_epoch = data->count[DATA_TRAIN] / ((uint64_t)nodes * o->batch);
    if (l->steps_per_epoch == 0)
        l->steps_per_epoch = 1;
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
    *l = (struct learner){0};
}

void learner_init(const struct learner *l, uint64_t seed, float *values)
{
    memset(values, 0, l->elements * sizeof *values);
    model_init(l->net, values, seed);
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
    return loss;
}

void learner_apply(struct learner *l, uint64_t step, float *values)
{
    const struct optimizer *o = &l->optimizer;
    float *gradient = l->gradient;
    float scale = o->clip_norm > 0 ? optimizer_clip(o, optimizer_energy(gradient, l->params)) : 1;
    for (size_t i = 0; scale < 1 && i < l->params; i++)
        gradient[i] *= scale;
    optimizer_step(o, step, step, values, values + l->params + l->statistics, gradient, l->params);
}

double learner_step(struct learner *l, struct shard_walk *walk, uint64_t step, float *values)
{
    double loss = learner_gradient(l, walk, values);
    learner_apply(l, step, values);
    return loss;
}

double learner_score(struct learner *l, const float *values)
{
    uint32_t count = l->data->count[DATA_TEST], n;
    uint64_t right = 0;
    double loss = 0;
    for (uint32_t at = 0; at < count; at += n) {
        uint32_t hits;
        n = count - at < model_batch(l->net) ? count - at : model_batch(l->net);
        for (uint32_t k = 0; k < n; k++)
            put_sample(l, DATA_TEST, at + k, k);
        loss += n * model_loss(l->net, values, l->input, l->target, n, NULL, &hits);
        right += hits;
    }
    return l->data->kind->score(loss / count, right, (uint64_t)count * l->data->targets);
}

void tally_round(struct train_tally *t, double coverage, uint64_t skipped)
{
    t->skipped += (double)skipped;
    t->coverage_sum += coverage;
    if (t->rounds++ == 0 || coverage < t->least_coverage)
        t->least_coverage = coverage;
}
