#include "sleet-train.h"
#include <stdlib.h>
#include <string.h>

static void add_tensor(struct learner *l, const char *name, size_t count, bool state)
{
    l->tensor[l->tensors++] = (struct train_tensor){name, l->elements, count, state};
    l->elements += count;
}

static void lay_out(struct learner *l, bool refresh)
{
    const struct optimizer_kind *kind = l->optimizer.kind;
    size_t n = model_params(l->net);
    add_tensor(l, "params", n, false);
    for (uint32_t i = 0; i < kind->moments; i++)
        add_tensor(l, kind->moment[i], n, refresh);
}

const char *learner_open(struct learner *l, const struct train_options *o,
                         const struct idx_dataset *data)
{
    struct model_shape shape = {.rows = data->train.rows,
                                .columns = data->train.columns,
                                .hidden_count = o->hidden_count,
                                .classes = IDX_CLASSES,
                                /* tests go faster in larger batches */
                                .batch = o->batch < 256 ? 256 : o->batch};
    const char *why;
    memcpy(shape.hidden, o->hidden, sizeof shape.hidden);
    *l = (struct learner){.data = data, .optimizer = o->optimizer};
    l->net = model_new(o->model, &shape, &why);
    if (!l->net)
        return why;
    o->model->title(&shape, l->title);
    l->image = malloc((size_t)shape.batch * data->train.features * sizeof(float));
    l->label = malloc(shape.batch);
    l->gradient = malloc(model_params(l->net) * sizeof(float));
    lay_out(l, o->refresh);
    if (l->image && l->label && l->gradient)
        return NULL;
    learner_close(l);
    return "out of memory";
}

void learner_close(struct learner *l)
{
    model_free(l->net);
    free(l->image);
    free(l->label);
    free(l->gradient);
    *l = (struct learner){0};
}

void learner_init(const struct learner *l, uint64_t seed, float *values)
{
    memset(values, 0, l->elements * sizeof *values);
    model_init(l->net, values, seed);
}

double learner_step(struct learner *l, struct shard_walk *walk, uint32_t batch, uint64_t step, float *values)
{
    const struct idx_samples *train = &l->data->train;
    const struct optimizer *o = &l->optimizer;
    float *moment[OPTIMIZER_MOMENTS_MAX] = {NULL}, *gradient = l->gradient;
    size_t n = model_params(l->net);
    for (uint32_t i = 0; i < batch; i++) {
        uint32_t sample = shard_walk_next(walk);
        idx_image(train, sample, l->image + (size_t)i * train->features);
        l->label[i] = train->label[sample];
    }
    double loss = model_loss(l->net, values, l->image, l->label, batch, gradient, NULL);
    float scale = o->clip_norm > 0 ? optimizer_clip(o, optimizer_energy(gradient, n)) : 1;
    for (size_t i = 0; scale < 1 && i < n; i++)
        gradient[i] *= scale;
    for (uint32_t i = 0; i < o->kind->moments; i++)
        moment[i] = values + l->tensor[l->tensors - o->kind->moments + i].at;
    optimizer_step(o, step, step, values, moment, gradient, n);
    return loss;
}

double learner_accuracy(struct learner *l, const float *params)
{
    const struct idx_samples *test = &l->data->test;
    uint32_t right = 0, n;
    for (uint32_t at = 0; at < test->count; at += n) {
        uint32_t hits;
        n = test->count - at < model_batch(l->net) ? test->count - at : model_batch(l->net);
        for (uint32_t i = 0; i < n; i++)
            idx_image(test, at + i, l->image + (size_t)i * test->features);
        model_loss(l->net, params, l->image, test->label + at, n, NULL, &hits);
        right += hits;
    }
    return (double)right / test->count;
}

uint64_t train_steps_per_epoch(const struct train_options *o, const struct idx_dataset *data,
                               uint32_t nodes)
{
    uint64_t steps = (uint64_t)data->train.count / ((uint64_t)nodes * o->batch);
    return steps ? steps : 1;
}

void tally_round(struct train_tally *t, double coverage, uint64_t skipped)
{
    t->skipped += (double)skipped;
    t->coverage_sum += coverage;
    if (t->rounds++ == 0 || coverage < t->least_coverage)
        t->least_coverage = coverage;
}
