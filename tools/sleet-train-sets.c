#include "sleet-train-sets.h"
#include <stdlib.h>
#include <string.h>

#define ERRORS_WAIT 2 /* seconds for a node that misses the step; an exact round would wait 30 */
#define RUN (RUN_FRAGMENTS * FRAGMENT_ELEMENTS)

bool sets_open(struct train_sets *s, const struct learner *l)
{
    s->tensors = malloc(learner_packed(l) * sizeof(float));
    s->left_out = calloc(l->params, sizeof(float));
    s->mine = calloc(l->handed / RUN + 1, 1);
    return s->tensors && s->left_out && s->mine;
}

void sets_close(struct train_sets *s)
{
    sleet_close(s->ctx);
    free(s->tensors);
    free(s->left_out);
    free(s->mine);
    free(s->parts);
}

/* In which owners hand out the parameters, where they lie. */
static int make_handing_set(struct train_sets *s, struct train_node *n)
{
    sleet_set_options options = {.size = sizeof options, .exchange = SLEET_ALL_GATHER};
    sleet_codec codec = n->options->codec;
    int error = sleet_set_new(&s->handing, s->ctx, "owned", SLEET_MODEL);
    if (!error)
        error = sleet_set_configure(s->handing, &options);
    if (!error)
        error = sleet_set_add(s->handing, "params", SLEET_F32, n->learner->handed, node_hands(n));
    if (!error && codec <= SLEET_CODEC_I8) /* coarser ones are for gradients */
        error = sleet_set_codec(s->handing, 0, codec);
    return error ? error : sleet_set_add(s->handing, "schedule", SLEET_F32, 1, &s->schedule);
}

/* In which nodes average what their codec has left out; the first round makes all of them members. */
static int make_error_set(struct train_sets *s, const struct learner *l)
{
    int error = sleet_set_new(&s->errors, s->ctx, "errors", SLEET_MODEL);
    if (!error)
        error = sleet_set_add(s->errors, "errors", SLEET_F32, l->params, s->left_out);
    if (!error)
        error = sleet_set_codec(s->errors, 0, SLEET_CODEC_F32);
    return error ? error : sleet_set_register(s->errors);
}

/* In which nodes share what batches follow: all of a table, or nothing. */
static int make_table_set(struct train_sets *s)
{
    sleet_set_options options = {.size = sizeof options, .update = SLEET_NONLINEAR};
    int error = sleet_set_new(&s->tables, s->ctx, "batches", SLEET_GRADIENT);
    if (!error)
        error = sleet_set_configure(s->tables, &options);
    if (!error)
        error = sleet_set_add(s->tables, "table", SLEET_F32, TABLE_FLOATS, s->table);
    return error ? error : sleet_set_register(s->tables);
}

int sets_share_table(struct train_sets *s, struct train_node *n, uint64_t step)
{
    const sleet_round_options exact = {.size = sizeof exact, .exact = 1, .deadline_ns = ERRORS_WAIT * INT64_C(1000000000)};
    sleet_report report = {0};
    batch_give(&n->batch, s->table);
    int error = sleet_start(s->tables, &exact);
    if (!error)
        error = sleet_wait(s->tables, &report);
    if (error == SLEET_ESTALLED) { /* as one that comes too late */
        report.flags = SLEET_BEHIND;
        error = SLEET_OK;
    }
    return !error && !node_table(n, step, report.flags, s->table) ? SLEET_ENOMEM : error;
}

/* The set, named after what is averaged: nodes that differ in it are told so. */
static int make_set(struct train_sets *s, struct train_node *n)
{
    const struct train_options *o = n->options;
    const struct set_kind *k = &o->kind;
    sleet_set_options options = {.size = sizeof options, .estimator = k->estimator, .update = k->update,
                                 .exchange = k->exchange, .strategy = k->strategy,
                                 .strategy_numbers = {k->numbers[0], k->numbers[1]},
                                 .spread = k->spread};
    float *at = s->tensors;
    int error = sleet_set_new(&s->set, s->ctx, "model", k->payload);
    if (!error)
        error = sleet_set_configure(s->set, &options);
    for (uint32_t i = 0; !error && i < n->learner->tensors; i++) {
        const struct train_tensor *t = &n->learner->tensor[i];
        error = sleet_set_add(s->set, t->name, t->state ? SLEET_F32_STATE : SLEET_F32, t->count, at);
        if (!error && t->rows)
            error = sleet_set_rows(s->set, i, t->rows);
        if (!error && !t->state && o->codec)
            error = sleet_set_codec(s->set, i, o->codec);
        at += t->count;
    }
    if (error)
        return error;
    if (average_owned(o->average))
        return make_handing_set(s, n);
    bool state = o->average == AVERAGE_GRADIENT; /* it is not to be added to */
    return sleet_set_add(s->set, "schedule", state ? SLEET_F32_STATE : SLEET_F32, 1, &s->schedule);
}

float *sets_residual(struct train_sets *s, const struct train_options *o)
{
    if (!o->average || o->kind.estimator != SLEET_CARRY)
        return NULL;
    float *residual = s->set ? sleet_residual_buffer(s->set, 0) : NULL;
    return residual ? residual : s->left_out;
}

int sets_connect(struct train_sets *s, struct train_node *n)
{
    int error = sleet_open(&s->ctx, n->options->control);
    if (!error)
        error = make_set(s, n);
    if (!error)
        error = sleet_set_register(s->set);
    float *residual = error ? NULL : sleet_residual_buffer(s->set, 0);
    if (residual) /* of a checkpoint, else nothing */
        memcpy(residual, s->left_out, n->learner->params * sizeof *residual);
    if (!error && s->handing)
        error = sleet_set_register(s->handing);
    if (!error && n->options->ef_average)
        error = make_error_set(s, n->learner);
    if (!error && (n->options->batches.on || n->options->slices))
        error = make_table_set(s);
    return error;
}

int sets_first_round(struct train_sets *s, struct train_node *n, sleet_report *report)
{
    const sleet_round_options options = {.size = sizeof options, .deadline_ns = (int64_t)(n->options->deadline * 1e9)};
    sleet_set *set = s->handing ? s->handing : s->set;
    size_t bytes = n->learner->handed * sizeof(float);
    if (s->handing)
        memcpy(s->tensors, node_hands(n), bytes);
    else
        node_give(n, s->tensors);
    float *residual = sets_residual(s, n->options); /* the result is nobody's step: nothing is to be in it */
    if (residual) {
        memcpy(s->left_out, residual, n->learner->params * sizeof *residual);
        memset(residual, 0, n->learner->params * sizeof *residual);
    }
    int error = sleet_start(set, &options);
    if (!error)
        error = sleet_wait(set, report);
    if (residual)
        memcpy(residual, s->left_out, n->learner->params * sizeof *residual);
    if (error)
        return error;
    if (!s->handing)
        learner_unpack(n->learner, s->tensors, n->values);
    else if (memcmp(s->tensors, node_hands(n), bytes) != 0) /* else local steps of a checkpoint go on from there */
        node_handed(n);
    return SLEET_OK;
}

int sets_average_errors(struct train_sets *s, const struct train_node *n)
{
    double deadline = n->options->deadline > 0 ? n->options->deadline : ERRORS_WAIT;
    const sleet_round_options exact = {.size = sizeof exact, .exact = 1, .deadline_ns = (int64_t)(deadline * 1e9)};
    float *residual = sleet_residual_buffer(s->set, 0);
    size_t bytes = n->learner->params * sizeof(float);
    sleet_report report;
    memcpy(s->left_out, residual, bytes);
    int error = sleet_start(s->errors, &exact);
    if (!error)
        error = sleet_wait(s->errors, &report);
    if (!error && !(report.flags & (SLEET_JOINING | SLEET_PARKED))) /* a joiner keeps its own */
        memcpy(residual, s->left_out, bytes);
    return error;
}

static bool owns(const void *mine, uint32_t run)
{
    return ((const uint8_t *)mine)[run];
}

/* Which runs the reduce-scatter gave this node. */
static int take_share(struct train_sets *s, const struct learner *l)
{
    size_t runs = l->handed / RUN + 1;
    sleet_range *range = malloc(runs * sizeof *range);
    uint32_t n = 0;
    int error = range ? sleet_owned(s->set, 0, range, (uint32_t)runs, &n) : SLEET_ENOMEM;
    memset(s->mine, 0, runs);
    for (uint32_t i = 0; !error && i < n; i++)
        for (uint64_t k = range[i].first; k < range[i].first + range[i].count; k += RUN)
            s->mine[k / RUN] = 1;
    free(range);
    return error;
}

int sets_hand_out(struct train_sets *s, struct train_node *n, uint64_t step,
                  const sleet_round_options *options, sleet_report *report)
{
    bool stepped = !(report->flags & (SLEET_PARKED | SLEET_BEHIND));
    int error = stepped ? take_share(s, n->learner) : SLEET_OK;
    if (!error && stepped && !node_own_step(n, step, owns, s->mine, s->tensors))
        error = SLEET_ENOMEM;
    if (!error)
        error = sleet_start(s->handing, options);
    if (!error)
        error = sleet_wait(s->handing, report);
    if (!error && !(report->flags & SLEET_PARKED))
        node_handed(n);
    return error;
}
