/* sleet-train-run.c - one real node: a local step, then a round through sleetd. */
#include "sleet-train.h"
#include "sleet.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STALLS_MAX 10      /* rounds in a row without an answer until the daemon is given up */
#define LAST_ROUND_TRIES 3
#define ERRORS_WAIT 2 /* seconds for a node that misses the step; an exact round would wait 30 */
#define LAST_ROUND_WAIT 30 /* seconds in which the last round may be tried again */

struct run {
    const struct train_options *o;
    struct train_print print;
    struct learner learner;
    struct shard_split split;
    struct shard_walk walk;
    float *values;
    float *before;  /* the same, as they were before the step */
    float *tensors; /* in the set: packed from the values */
    sleet *ctx; /* NULL: no averaging */
    sleet_set *set;
    sleet_set *errors;  /* --ef-average: of what was left out */
    float *left_out;    /* in it; between its rounds scratch */
    sleet_set *handing; /* --average owner: of the parameters, and the schedule */
    struct train_keeper keeper;
    uint8_t *mine; /* by run: does this node own it? */
    struct train_done done;
    struct train_tally *tally; /* the one in `done` */
    double started;
    uint64_t stalls_in_a_row;
    struct train_share share;
    float schedule; /* in the set: steps done, so that joiners learn where the training is */
    uint64_t base;  /* the job's round before this training's first step */
    bool based;
    struct train_line line;
};

static int prepare(struct run *r, const struct dataset *data)
{
    const struct train_options *o = r->o;
    const char *why = learner_open(&r->learner, o, data, o->shard_count);
    if (why)
        return train_fail(&r->print, "%s", why);
    r->print = train_print_of(o, &r->learner);
    r->values = malloc(r->learner.elements * sizeof(float));
    r->before = malloc(r->learner.elements * sizeof(float));
    r->tensors = malloc(learner_packed(&r->learner) * sizeof(float));
    if (!r->values || !r->before || !r->tensors ||
        !data_split(data, o->shards, o->shard_count, o->seed, &r->split))
        return train_fail(&r->print, "out of memory");
    r->left_out = calloc(r->learner.params, sizeof(float));
    if (!r->left_out)
        return train_fail(&r->print, "out of memory");
    r->walk = shard_walk_of(&r->split, o->shard, o->seed);
    learner_init(&r->learner, o->seed, r->values);
    return EXIT_OK;
}

static int give_up(struct run *r, const char *doing, int error)
{
    const char *detail = sleet_detail(r->ctx);
    return train_fail(&r->print, "%s: %s", doing, detail[0] ? detail : sleet_strerror(error));
}

/* In which owners hand out the parameters, where they lie. */
static int make_handing_set(struct run *r)
{
    sleet_set_options options = {.size = sizeof options, .exchange = SLEET_ALL_GATHER};
    size_t n = r->learner.params;
    int error = sleet_set_new(&r->handing, r->ctx, "owned", SLEET_MODEL);
    if (!error)
        error = sleet_set_configure(r->handing, &options);
    if (!error)
        error = sleet_set_add(r->handing, "params", SLEET_F32, n, r->values);
    if (!error && r->o->codec <= SLEET_CODEC_I8) /* coarser ones are for gradients */
        error = sleet_set_codec(r->handing, 0, r->o->codec);
    r->mine = calloc(n / (RUN_FRAGMENTS * FRAGMENT_ELEMENTS) + 1, 1);
    if (!r->mine || !keeper_open(&r->keeper, &r->learner))
        return SLEET_ENOMEM;
    return error ? error : sleet_set_add(r->handing, "schedule", SLEET_F32, 1, &r->schedule);
}

/* In which nodes average what their codec has left out; the first round makes all of them members. */
static int make_error_set(struct run *r)
{
    int error = sleet_set_new(&r->errors, r->ctx, "errors", SLEET_MODEL);
    if (!error)
        error = sleet_set_add(r->errors, "errors", SLEET_F32, r->learner.params, r->left_out);
    if (!error)
        error = sleet_set_codec(r->errors, 0, SLEET_CODEC_F32);
    return error ? error : sleet_set_register(r->errors);
}

static int average_errors(struct run *r)
{
    double deadline = r->o->deadline > 0 ? r->o->deadline : ERRORS_WAIT;
    const sleet_round_options exact = {.size = sizeof exact, .exact = 1, .deadline_ns = (int64_t)(deadline * 1e9)};
    float *residual = sleet_residual_buffer(r->set, 0);
    size_t bytes = r->learner.params * sizeof(float);
    sleet_report report;
    memcpy(r->left_out, residual, bytes);
    int error = sleet_start(r->errors, &exact);
    if (!error)
        error = sleet_wait(r->errors, &report);
    if (!error && !(report.flags & (SLEET_JOINING | SLEET_PARKED))) /* a joiner keeps its own */
        memcpy(residual, r->left_out, bytes);
    return error;
}

/* The set, named after what is averaged: nodes that differ in it are told so. */
static int make_set(struct run *r)
{
    const struct set_kind *k = &r->o->kind;
    sleet_set_options options = {.size = sizeof options, .estimator = k->estimator, .update = k->update,
                                 .exchange = k->exchange, .strategy = k->strategy,
                                 .strategy_numbers = {k->numbers[0], k->numbers[1]}};
    float *at = r->tensors;
    int error = sleet_set_new(&r->set, r->ctx, "model", k->payload);
    if (!error)
        error = sleet_set_configure(r->set, &options);
    for (uint32_t i = 0; !error && i < r->learner.tensors; i++) {
        const struct train_tensor *t = &r->learner.tensor[i];
        error = sleet_set_add(r->set, t->name, t->state ? SLEET_F32_STATE : SLEET_F32, t->count, at);
        if (!error && !t->state && r->o->codec)
            error = sleet_set_codec(r->set, i, r->o->codec);
        at += t->count;
    }
    if (error)
        return error;
    if (r->o->average == AVERAGE_OWNER)
        return make_handing_set(r);
    bool state = r->o->average == AVERAGE_GRADIENT; /* it is not to be added to */
    return sleet_set_add(r->set, "schedule", state ? SLEET_F32_STATE : SLEET_F32, 1, &r->schedule);
}

static int connect_daemon(struct run *r)
{
    int error = sleet_open(&r->ctx, r->o->control);
    if (!error)
        error = make_set(r);
    if (!error)
        error = sleet_set_register(r->set);
    if (!error && r->handing)
        error = sleet_set_register(r->handing);
    if (!error && r->o->ef_average)
        error = make_error_set(r);
    if (error)
        return give_up(r, "cannot take part", error);
    r->share = (struct train_share){
        .ctx = r->ctx, .set = r->set, .schedule = &r->schedule, .tensors = r->tensors};
    error = sleet_wait_nodes(r->set, r->o->min_nodes, (int64_t)(r->o->min_wait * 1e9));
    if (error == SLEET_EAGAIN) {
        fprintf(stderr, "sleet-train: fewer than %u trainers came within %g s; going on without "
                        "the rest\n", r->o->min_nodes, r->o->min_wait);
        return EXIT_OK;
    }
    return error ? give_up(r, "waiting for other trainers", error) : EXIT_OK;
}

static struct train_state state_of(struct run *r)
{
    return (struct train_state){.options = r->o,
                                .learner = &r->learner,
                                .print = &r->print,
                                .shard = r->o->shard,
                                .shards = r->o->shard_count,
                                .tally = r->tally,
                                .walk = &r->walk,
                                .values = r->values};
}

static bool owns(const void *mine, uint32_t run)
{
    return ((const uint8_t *)mine)[run];
}

/* Which runs the reduce-scatter gave this node. */
static int take_share(struct run *r)
{
    size_t runs = r->learner.params / (RUN_FRAGMENTS * FRAGMENT_ELEMENTS) + 1;
    sleet_range *range = malloc(runs * sizeof *range);
    uint32_t n = 0;
    int error = range ? sleet_owned(r->set, 0, range, (uint32_t)runs, &n) : SLEET_ENOMEM;
    memset(r->mine, 0, runs);
    for (uint32_t i = 0; !error && i < n; i++)
        for (uint64_t k = range[i].first; k < range[i].first + range[i].count; k += RUN_FRAGMENTS * FRAGMENT_ELEMENTS)
            r->mine[k / (RUN_FRAGMENTS * FRAGMENT_ELEMENTS)] = 1;
    free(range);
    return error;
}

/* Step with the node's share of the gradient, then the round in which all hand out theirs. */
static int hand_out(struct run *r, uint64_t step, const sleet_round_options *options, sleet_report *report)
{
    int error = report->flags & (SLEET_PARKED | SLEET_BEHIND) ? SLEET_OK : take_share(r);
    if (!error && !(report->flags & (SLEET_PARKED | SLEET_BEHIND)))
        keeper_step(&r->keeper, &r->learner, step, owns, r->mine, r->tensors, r->values);
    if (!error)
        error = sleet_start(r->handing, options);
    return error ? error : sleet_wait(r->handing, report);
}

/* One round behind the step from `step`; `report` is zero-filled where the daemon did not answer in time. */
static int average(struct run *r, uint64_t step, bool exact, sleet_report *report)
{
    sleet_round_options options = {.size = sizeof options,
                                   .exact = exact,
                                   .keep = r->o->keep,
                                   .deadline_ns = exact ? 0 : (int64_t)(r->o->deadline * 1e9)};
    double before = train_clock();
    *report = (sleet_report){0};
    r->schedule = (float)r->line.step;
    learner_pack(&r->learner, r->values, r->tensors);
    int error = sleet_start(r->set, &options);
    if (error == SLEET_ENONFINITE)
        return train_diverged(&r->print, r->line.step, r->line.rate);
    if (!error)
        error = sleet_wait(r->set, report);
    if (!error && r->handing)
        error = hand_out(r, step, &options, report);
    r->line.wait = train_clock() - before;
    r->tally->longest_wait = fmax(r->tally->longest_wait, r->line.wait);
    if (error == SLEET_ESTALLED && ++r->stalls_in_a_row < STALLS_MAX) {
        r->tally->stalled++;
        r->line.coverage = 0;
        return EXIT_OK;
    }
    if (error)
        return give_up(r, "averaging", error);
    r->stalls_in_a_row = 0;
    if (r->o->ef)
        r->tally->behind += !feedback_after(&r->learner, step, report->flags, r->tensors, r->values);
    else if (!r->handing)
        r->tally->behind += !learner_after(&r->learner, r->o->average, step, report->flags, r->tensors, r->values);
    r->line.round = report->round;
    r->line.group = report->group_size;
    r->line.coverage = report->coverage;
    if (report->flags & SLEET_PARKED)
        return EXIT_OK; /* no round, and nothing covered */
    tally_round(r->tally, report->coverage, report->skipped);
    return EXIT_OK;
}

static bool evaluation_due(const struct run *r)
{
    return r->o->evaluate && r->line.step % r->o->evaluate == 0;
}

/* Print the line of this step, and of the epoch if one has ended. */
static void tell(struct run *r, uint64_t before)
{
    uint64_t per_epoch = r->print.steps_per_epoch, step = r->line.step;
    bool ended = step / per_epoch > before / per_epoch;
    r->line.epoch = (uint32_t)((step - 1) / per_epoch) + 1;
    r->line.seconds = train_clock() - r->started;
    r->line.score = -1;
    if (ended || evaluation_due(r))
        r->line.score = learner_score(&r->learner, r->values);
    train_print_step(&r->print, &r->line);
    if (ended) {
        struct train_line epoch = r->line;
        epoch.loss = r->tally->loss_sum / r->tally->loss_count;
        train_print_epoch(&r->print, &epoch);
        r->tally->loss_sum = r->tally->loss_count = 0;
    }
}

/* The job's rounds are the steps of its schedule: one that was away goes on where the others
 * are, also when it made more steps alone. */
static void follow_job(struct run *r, uint64_t before, const sleet_report *report)
{
    if (report->round == 0) { /* alone: with its own step, or with none */
        r->line.step = report->flags & SLEET_BEHIND ? before : r->line.step;
        return;
    }
    if (!r->based || (report->flags & SLEET_JOINING)) /* as the others have it */
        r->base = report->round - (uint64_t)lroundf(r->schedule);
    r->based = true;
    r->line.step = report->round - r->base;
    if (r->line.step > r->learner.optimizer.steps)
        r->line.step = r->learner.optimizer.steps;
}

/* The step just taken is undone: it would be of a model that the job may not keep.  Then nothing but
 * to start again with these values until the others, or the operator, let the round be one; each
 * wait lasts up to its deadline. */
static int wait_parked(struct run *r, uint64_t before, sleet_report *report)
{
    double since = train_clock();
    int status = EXIT_OK;
    r->line.step = before;
    train_print_parked(&r->print, before, -1);
    while (status == EXIT_OK && (report->flags & SLEET_PARKED)) {
        if (r->o->average == AVERAGE_MODEL)
            memcpy(r->values, r->before, r->learner.elements * sizeof(float));
        status = average(r, before, false, report);
    }
    if (status == EXIT_OK)
        train_print_parked(&r->print, before, train_clock() - since);
    return status;
}

static void keep_before(struct run *r)
{
    memcpy(r->before, r->values, r->learner.elements * sizeof(float));
}

/* A step that is done sooner waits for its time to pass. */
static void fill_time(const struct run *r, double began)
{
    double left = began + r->o->step_time - train_clock();
    if (left > 0)
        usleep((useconds_t)(left * 1e6));
}

#define NOT_THE_JOBS (SLEET_JOINING | SLEET_ALONE | SLEET_PARKED)

static int train(struct run *r)
{
    const struct train_state state = state_of(r);
    while (r->line.step < r->learner.optimizer.steps) {
        uint64_t before = r->line.step;
        double began = train_clock();
        keep_before(r);
        r->line.rate = optimizer_rate(&r->learner.optimizer, before);
        if (r->ctx && r->o->ef)
            r->line.loss = feedback_before(&r->learner, r->o, &r->walk, before, sleet_residual_buffer(r->set, 0),
                                           r->left_out, r->values);
        else
            r->line.loss = learner_before(&r->learner, &r->walk, r->o->average, before, r->values);
        r->tally->steps++;
        r->line.step++;
        if (!isfinite(r->line.loss))
            return train_diverged(&r->print, r->line.step, r->line.rate);
        r->tally->loss_sum += r->line.loss;
        r->tally->loss_count++;
        fill_time(r, began);
        sleet_report report = {.flags = SLEET_ALONE};
        if (r->ctx) {
            int status = average(r, before, false, &report);
            if (status == EXIT_OK && (report.flags & SLEET_PARKED))
                status = wait_parked(r, before, &report);
            if (status != EXIT_OK)
                return status;
            follow_job(r, before, &report);
            if (r->errors && r->line.step % r->o->ef_average == 0 && (status = average_errors(r)) != SLEET_OK)
                return give_up(r, "averaging what was left out", status);
        }
        tell(r, before);
        if (r->ctx && !r->handing && !(report.flags & NOT_THE_JOBS))
            train_state_publish(&state, &r->share, before, r->line.step);
        int status = train_checkpoint_step(&state, before, r->line.step);
        if (status != EXIT_OK)
            return status;
    }
    return EXIT_OK;
}

/* The exact last round; again where nodes were missing in it, and by a node ahead of all
 * others until they come. */
static int last_round(struct run *r)
{
    double until = train_clock() + LAST_ROUND_WAIT;
    for (int tries = 1;; tries++) {
        sleet_report report;
        sleet_job_info info;
        int status = average(r, r->line.step, true, &report);
        bool again = !(report.flags & SLEET_COMPLETE) && tries < LAST_ROUND_TRIES;
        if (status != EXIT_OK || !(again || (report.flags & (SLEET_ALONE | SLEET_PARKED))) || train_clock() > until)
            return status;
        if (sleet_job(r->ctx, r->set, &info) != SLEET_OK || info.trainers < 2)
            return EXIT_OK;
        usleep(100000);
    }
}

static int finish(struct run *r)
{
    r->done.score = learner_score(&r->learner, r->values);
    if (r->ctx && r->o->average == AVERAGE_MODEL) {
        const struct train_state state = state_of(r);
        int status = last_round(r);
        if (status == EXIT_OK) /* the averaged model */
            status = train_checkpoint_step(&state, r->line.step, r->line.step);
        if (status != EXIT_OK)
            return status;
    }
    r->done.averaged_score = learner_score(&r->learner, r->values);
    r->done.seconds = train_clock() - r->started;
    train_print_done(&r->print, &r->done, 0);
    return EXIT_OK;
}

int train_run(const struct train_options *o, const struct dataset *data)
{
    struct run r = {.o = o, .tally = &r.done.tally, .line = {.coverage = -1}};
    int status = prepare(&r, data);
    if (status == EXIT_OK) {
        const struct train_state state = state_of(&r);
        train_print_settings(&r.print, o, &r.learner, o->shard_count);
        status = train_checkpoint_open(&state, &r.line.step);
    }
    if (status == EXIT_OK && o->average)
        status = connect_daemon(&r);
    if (status == EXIT_OK && r.ctx && !r.handing) { /* owners hand out all there is to a joiner */
        const struct train_state state = state_of(&r);
        status = train_state_fetch(&state, &r.share, &r.line.step);
    }
    r.started = train_clock();
    if (status == EXIT_OK)
        status = train(&r);
    if (status == EXIT_OK)
        status = finish(&r);
    sleet_close(r.ctx);
    learner_close(&r.learner);
    shard_free(&r.split);
    free(r.values);
    free(r.before);
    free(r.tensors);
    free(r.mine);
    free(r.left_out);
    keeper_close(&r.keeper);
    return status;
}
