/* sleet-train-run.c - one real node: a local step, then a round through sleetd. */
#include "sleet-train-partition.h"
#include "sleet-train-save.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STALLS_MAX 10      /* rounds in a row without an answer until the daemon is given up */
#define LAST_ROUND_TRIES 3
#define LAST_ROUND_WAIT 30 /* seconds in which the last round may be tried again */
#define MEET_WAIT 5 /* seconds for rounds of no gradient, until all have the state of the job */
#define MEET_PAUSE_MS 20 /* between them, in which others come */

struct run {
    const struct train_options *o;
    struct train_print print;
    struct learner learner;
    struct shard_split split;
    struct train_node node;
    float *before; /* the node's values as they were before the step; NULL where that is not its own */
    struct train_sets sets;
    struct train_done done;
    struct train_tally *tally; /* the one in `done` */
    double started;
    uint64_t stalls_in_a_row;
    struct train_share share;
    struct train_parts parts;
    float *given; /* to their merge; NULL: there is none */
    uint64_t base;     /* the job's round before this training's first step */
    uint64_t averaged; /* step of the last round with others */
    bool based;
    bool took_over; /* the job's state: it is under way */
    struct train_line line;
};

static int prepare(struct run *r, const struct dataset *data)
{
    const struct train_options *o = r->o;
    const char *why = learner_open(&r->learner, o, data, o->shard_count);
    if (why)
        return train_fail(&r->print, "%s", why);
    r->print = train_print_of(o, &r->learner);
    if (average_local(o->average) && !(r->before = malloc(r->learner.elements * sizeof(float))))
        return train_fail(&r->print, "out of memory");
    if (!sets_open(&r->sets, &r->learner) ||
        !data_split(data, o->shards, o->shard_count, o->seed, &r->split) ||
        !node_open(&r->node, o, &r->learner, &r->split, o->shard, &r->tally->trigger))
        return train_fail(&r->print, "out of memory");
    return EXIT_OK;
}

static int give_up(struct run *r, const char *doing, int error)
{
    const char *detail = sleet_detail(r->sets.ctx);
    return train_fail(&r->print, "%s: %s", doing, detail[0] ? detail : sleet_strerror(error));
}

static int connect_daemon(struct run *r)
{
    int error = sets_connect(&r->sets, &r->node);
    if (error)
        return give_up(r, "cannot take part", error);
    r->share = (struct train_share){.ctx = r->sets.ctx,
                                    .set = r->sets.set,
                                    .schedule = &r->sets.schedule,
                                    .tensors = r->sets.tensors};
    error = sleet_wait_nodes(r->sets.set, r->o->min_nodes, (int64_t)(r->o->min_wait * 1e9));
    if (error == SLEET_EAGAIN) {
        fprintf(stderr, "sleet-train: fewer than %u trainers came within %g s; going on without "
                        "the rest\n", r->o->min_nodes, r->o->min_wait);
        return EXIT_OK;
    }
    return error ? give_up(r, "waiting for other trainers", error) : EXIT_OK;
}

/* The epochs in parts, before anything is sent. */
static int learn_part(struct run *r)
{
    const char *why;
    if (!r->o->partition || r->line.step > 0)
        return EXIT_OK;
    r->given = parts_learn(&r->node, r->o->shard, &r->parts, &why);
    if (!r->given)
        return train_fail(&r->print, "%s", why);
    r->tally->steps = (double)r->parts.steps;
    r->tally->drawn = r->tally->steps * r->o->batch;
    return EXIT_OK;
}

/* Their merge, unless the others' was before this node came and gave it what they made of it. */
static int merge_parts(struct run *r)
{
    if (!r->given || r->line.step > 0)
        return EXIT_OK;
    int error = parts_merge(&r->sets, &r->node, r->given, &r->parts);
    if (error)
        return give_up(r, "merging the parts", error);
    parts_print(&r->print, &r->parts);
    r->line.step = r->parts.steps;
    return EXIT_OK;
}

/* Do all trainers that are there have a say in rounds? */
static bool all_met(const struct run *r, const sleet_report *report)
{
    sleet_job_info info;
    return sleet_job(r->sets.ctx, r->sets.set, &info) != SLEET_OK || report->expected >= info.trainers;
}

/* A round before the first step, in which all take the founder's state: where local steps come before a round.  Where
 * gradients are averaged, rounds of none: until all have that state a round would have the gradients of few.  Also where
 * all go on from checkpoints; in a job that is under way nobody waits. */
static int meet(struct run *r)
{
    sleet_report report = {0};
    bool gradients = !average_local(r->o->average) && !r->took_over;
    uint64_t began = r->line.step;
    double until = train_clock() + MEET_WAIT;
    if (!r->sets.ctx || !(gradients || trigger_waits(&r->o->trigger)))
        return EXIT_OK;
    memset(r->learner.gradient, 0, r->learner.params * sizeof *r->learner.gradient);
    for (;;) {
        r->sets.schedule = (float)r->line.step;
        int error = sets_first_round(&r->sets, &r->node, &report);
        if (error && error != SLEET_ESTALLED)
            return give_up(r, "the first round", error);
        if (report.round && (report.flags & SLEET_JOINING)) /* it goes on where the others are */
            r->line.step = (uint64_t)lroundf(r->sets.schedule);
        if (error || !gradients || r->line.step != began || train_clock() > until || all_met(r, &report))
            return EXIT_OK;
        usleep(MEET_PAUSE_MS * 1000);
    }
}

static struct train_state state_of(struct run *r)
{
    return (struct train_state){.print = &r->print,
                                .tally = r->tally,
                                .node = &r->node,
                                .residual = sets_residual(&r->sets, r->o)};
}

/* Does the trigger go by times?  Else they stay out of its state, and so of checkpoints. */
static bool times_count(const struct run *r)
{
    return r->o->trigger.kind == &trigger_auto;
}

/* One round behind the step from `step`; `report` is zero-filled where the daemon did not answer in time. */
static int average(struct run *r, uint64_t step, bool exact, sleet_report *report)
{
    sleet_round_options options = node_round(r->o, exact);
    options.weight = batch_weight(&r->node.batch);
    double before = train_clock();
    *report = (sleet_report){0};
    r->sets.schedule = (float)r->line.step;
    node_give(&r->node, r->sets.tensors);
    feedback_forget(&r->learner, r->o, sets_residual(&r->sets, r->o));
    int error = sleet_start(r->sets.set, &options);
    if (error == SLEET_ENONFINITE)
        return train_diverged(&r->print, r->line.step, r->line.rate);
    if (!error)
        error = sleet_wait(r->sets.set, report);
    if (!error && r->sets.handing) {
        double gradients = report->coverage;
        error = sets_hand_out(&r->sets, &r->node, step, &options, report);
        report->coverage = gradients; /* how much the step was made of; parameters that are missing stay as they were */
    }
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
    r->tally->behind += !node_take(&r->node, step, report->flags, r->sets.tensors);
    r->line.round = report->round;
    r->line.group = report->group_size;
    r->line.coverage = report->coverage;
    trigger_round(r->node.trigger, times_count(r) ? r->line.wait : 0);
    train_print_every(&r->print, r->line.step, r->node.trigger);
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
        r->line.score = learner_score(&r->learner, r->node.values);
    train_print_step(&r->print, &r->line);
    if (ended) {
        struct train_line epoch = r->line;
        epoch.loss = r->tally->loss_sum / r->tally->loss_count;
        train_print_epoch(&r->print, &epoch);
        r->tally->loss_sum = r->tally->loss_count = 0;
    }
}

/* The job's rounds are the steps of its schedule, or every so many of them: one that was away goes on where the others
 * are, also when it made more steps alone. */
static void follow_job(struct run *r, uint64_t before, const sleet_report *report)
{
    if (report->round == 0) { /* alone: with its own step, or with none */
        r->line.step = report->flags & SLEET_BEHIND ? before : r->line.step;
        return;
    }
    uint64_t every = r->o->trigger.every;
    if (r->o->trigger.kind->joins) { /* the mean of where they are */
        r->line.step = (uint64_t)lroundf(r->sets.schedule);
        return;
    }
    if (!r->based || (report->flags & SLEET_JOINING)) /* as the others have it */
        r->base = report->round - (uint64_t)lroundf(r->sets.schedule / (float)every);
    r->based = true;
    r->line.step = (report->round - r->base) * every;
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
        if (r->before)
            memcpy(r->node.values, r->before, r->learner.elements * sizeof(float));
        status = average(r, before, false, report);
    }
    if (status == EXIT_OK)
        train_print_parked(&r->print, before, train_clock() - since);
    return status;
}

static void keep_before(struct run *r)
{
    if (r->before)
        memcpy(r->before, r->node.values, r->learner.elements * sizeof(float));
}

/* A step that is done sooner waits for its time to pass. */
static void fill_time(const struct run *r, double began)
{
    double left = began + r->o->step_time - train_clock();
    if (left > 0)
        usleep((useconds_t)(left * 1e6));
}

/* A round is due, of the node's own accord or because others have begun one: 1; else 0 or an error. */
static int due(struct run *r)
{
    if (node_due(&r->node, r->line.step))
        return 1;
    return r->sets.ctx && r->o->trigger.kind->joins ? sleet_wanted(r->sets.set) : 0;
}

#define NOT_THE_JOBS (SLEET_JOINING | SLEET_ALONE | SLEET_PARKED)

static int train(struct run *r)
{
    const struct train_state state = state_of(r);
    while (r->line.step < r->learner.optimizer.steps && !train_stops(r->o, r->line.step)) {
        uint64_t before = r->line.step;
        double began = train_clock();
        keep_before(r);
        r->line.rate = optimizer_rate(&r->learner.optimizer, before);
        r->line.loss = node_step(&r->node, before, sets_residual(&r->sets, r->o), r->sets.left_out);
        r->line.coverage = -1;
        r->tally->steps++;
        r->tally->drawn += r->node.batch.now;
        r->done.slowest_s += r->node.batch.step_s;
        r->done.timed++;
        r->line.step++;
        if (!isfinite(r->line.loss))
            return train_diverged(&r->print, r->line.step, r->line.rate);
        r->tally->loss_sum += r->line.loss;
        r->tally->loss_count++;
        fill_time(r, began);
        sleet_report report = {.flags = SLEET_ALONE};
        trigger_step(r->node.trigger, times_count(r) ? train_clock() - began : 0);
        int round_due = due(r);
        if (round_due < 0)
            return give_up(r, "looking for a round of others", round_due);
        if (round_due) {
            int status = average(r, before, false, &report);
            if (status == EXIT_OK && (report.flags & SLEET_PARKED))
                status = wait_parked(r, before, &report);
            if (status != EXIT_OK)
                return status;
            follow_job(r, before, &report);
            if (r->sets.errors && r->line.step % r->o->ef_average == 0 &&
                (status = sets_average_errors(&r->sets, &r->node)) != SLEET_OK)
                return give_up(r, "averaging what was left out", status);
        }
        int shared = SLEET_OK;
        if (r->sets.tables && node_table_due(&r->node, r->line.step))
            shared = sets_share_table(&r->sets, &r->node, before);
        if (shared)
            return give_up(r, "sharing batches", shared);
        train_print_batch(&r->print, r->line.step, &r->node.batch);
        tell(r, before);
        if (r->sets.ctx && !r->sets.handing && !(report.flags & NOT_THE_JOBS)) {
            train_state_publish(&state, &r->share, r->averaged, r->line.step);
            r->averaged = r->line.step;
        }
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
        if (sleet_job(r->sets.ctx, r->sets.set, &info) != SLEET_OK || info.trainers < 2)
            return EXIT_OK;
        usleep(100000);
    }
}

static int finish(struct run *r)
{
    r->done.score = learner_score(&r->learner, r->node.values);
    if (r->sets.ctx && r->o->average == AVERAGE_MODEL) {
        const struct train_state state = state_of(r);
        int status = EXIT_OK;
        for (uint32_t part = 0; status == EXIT_OK && part < (r->o->spread ? r->o->spread : 1); part++)
            status = last_round(r); /* one for each part of a model that is spread */
        if (status == EXIT_OK) /* the averaged model */
            status = train_checkpoint_step(&state, r->line.step, r->line.step);
        if (status != EXIT_OK)
            return status;
    }
    r->done.batch = &r->node.batch;
    r->done.memory = memory_of(&r->node);
    r->done.averaged_score = learner_score(&r->learner, r->node.values);
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
    if (status == EXIT_OK)
        status = learn_part(&r);
    if (status == EXIT_OK && o->average)
        status = connect_daemon(&r);
    if (status == EXIT_OK && r.sets.ctx && !r.sets.handing) { /* owners hand out all there is to a joiner */
        const struct train_state state = state_of(&r);
        uint64_t before = r.line.step;
        status = train_state_fetch(&state, &r.share, &r.line.step);
        r.took_over = r.line.step != before;
    }
    if (status == EXIT_OK)
        status = merge_parts(&r);
    if (status == EXIT_OK)
        status = meet(&r);
    r.averaged = r.line.step;
    r.started = train_clock();
    if (status == EXIT_OK)
        status = train(&r);
    if (status == EXIT_OK && r.line.step < r.print.steps) {
        const struct train_state state = state_of(&r);
        status = train_checkpoint_stop(&state, r.line.step);
    } else if (status == EXIT_OK) {
        status = finish(&r);
    }
    sets_close(&r.sets);
    node_close(&r.node);
    learner_close(&r.learner);
    shard_free(&r.split);
    free(r.before);
    free(r.given);
    return status;
}
