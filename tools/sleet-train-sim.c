/* sleet-train-sim.c - all nodes in one process over the simulated network: a
 * local step of every node, then one round, in virtual time. */
#include "sleet-train-pace.h"
#include "sleet-train-partition.h"
#include "sleet-train-sites.h"
#include "sim/cluster.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define EVALUATIONS 5 /* at 80, 85 ... 100 % of the steps */
#define MEETING SEC(4) /* virtual, in which the nodes meet before the first step */

struct simulation {
    const struct train_options *o;
    struct train_print print;
    struct learner learner;
    struct shard_split split;
    struct train_node node[SLEET_GROUP_MAX];
    struct trigger trigger[SLEET_GROUP_MAX]; /* but of the first */
    cluster *cluster;
    struct sites sites; /* of the cluster's nodes */
    cluster *handing;   /* --average owner: of the parameters */
    cluster *errors;    /* --ef-average: of what was left out */
    float *mean;                    /* the averaged model with its statistics */
    float *mixed;                   /* a node's with the mean statistics */
    struct pace pace;               /* --straggle: without lock step */
    struct train_done done;
    struct train_tally *tally; /* the one in `done` */
    double started;
    double bytes_before; /* sent by all before the first step */
};

static struct sim_config network(const struct train_options *o)
{
    struct sim_config c = {.nodes = o->sim,
                           .seed = o->seed,
                           .link = {.delay = MS(1), .jitter = US(200)},
                           .clip = o->clip,
                           .kind = o->kind,
                           .codec = o->codec,
                           .repair_off = o->no_repair,
                           .go_on_isolated = true}; /* what loss does is the question */
    if (o->burst > 0) {
        c.link.ge_r = 1 / o->burst;
        c.link.ge_p = o->loss * c.link.ge_r / (1 - o->loss);
    } else {
        c.link.loss = o->loss;
    }
    return c;
}

/* A round of no gradient, or of the models as they are at the start, in which all take the founder's state and hear of each other: from the first
 * step on each has its say. */
static bool found(struct simulation *s)
{
    memset(s->learner.gradient, 0, s->learner.params * sizeof(float));
    for (uint32_t i = 0; i < s->o->sim; i++)
        learner_pack(&s->learner, s->node[i].values, cluster_values(s->cluster, i));
    bool ok = cluster_round(s->cluster, NULL);
    cluster_idle(s->cluster, MEETING);
    return ok;
}

static int prepare(struct simulation *s, const struct dataset *data)
{
    const struct train_options *o = s->o;
    uint64_t counts[TENSORS_MAX];
    uint32_t rows[TENSORS_MAX];
    const char *why = learner_open(&s->learner, o, data, o->sim);
    if (why)
        return train_fail(&s->print, "%s", why);
    s->print = train_print_of(o, &s->learner);
    for (uint32_t i = 0; i < s->learner.tensors; i++) {
        counts[i] = s->learner.tensor[i].count;
        rows[i] = s->learner.tensor[i].rows;
    }
    size_t of_model = s->learner.params + s->learner.statistics;
    s->mean = malloc(of_model * sizeof(float));
    s->mixed = malloc(of_model * sizeof(float));
    struct sim_config config = network(o);
    for (uint32_t i = 0; i < s->learner.tensors; i++)
        config.state_tensors += s->learner.tensor[i].state;
    config.rows = rows;
    s->cluster = cluster_new(&config, counts, s->learner.tensors);
    config.rows = NULL; /* of the set's tensors only */
    if (!s->mean || !s->mixed || !s->cluster ||
        !data_split(data, o->shards, o->sim, o->seed, &s->split))
        return train_fail(&s->print, "out of memory");
    if (average_owned(o->average)) {
        config.kind = (struct set_kind){.payload = SLEET_MODEL, .exchange = SLEET_ALL_GATHER};
        config.codec = o->codec <= SLEET_CODEC_I8 ? o->codec : 0; /* coarser ones are for gradients */
        s->handing = cluster_new(&config, (uint64_t[]){s->learner.params}, 1);
        if (!s->handing)
            return train_fail(&s->print, "out of memory");
        cluster_idle(s->handing, MEETING);
        cluster_round(s->handing, NULL); /* of nothing: then all are members */
        cluster_idle(s->handing, MEETING);
    }
    if (o->ef_average) {
        config.kind = (struct set_kind){.payload = SLEET_MODEL};
        config.codec = SLEET_CODEC_F32;
        config.state_tensors = 0;
        s->errors = cluster_new(&config, (uint64_t[]){s->learner.params}, 1);
        if (!s->errors)
            return train_fail(&s->print, "out of memory");
        cluster_idle(s->errors, MEETING);
        cluster_round(s->errors, NULL); /* of nothing: then all are members */
        cluster_idle(s->errors, MEETING);
    }
    for (uint32_t i = 0; i < o->sim; i++)
        if (!node_open(&s->node[i], o, &s->learner, &s->split, i, i ? &s->trigger[i] : &s->tally->trigger))
            return train_fail(&s->print, "out of memory");
    if (o->average)
        cluster_idle(s->cluster, MEETING);
    bool meet_first = o->average == AVERAGE_GRADIENT || (o->average == AVERAGE_MODEL && trigger_waits(&o->trigger));
    if (meet_first && !found(s))
        return train_fail(&s->print, "the first round failed");
    if (!sites_lay(&s->sites, o, &config.link, s->cluster))
        return train_fail(&s->print, "out of memory");
    return EXIT_OK;
}

/* The state of node 0: only a simulation of one is saved. */
static struct train_state state_of(struct simulation *s)
{
    return (struct train_state){.options = s->o,
                                .learner = &s->learner,
                                .print = &s->print,
                                .shard = 0,
                                .shards = s->o->sim,
                                .tally = s->tally,
                                .walk = &s->node[0].walk,
                                .values = s->node[0].values};
}

/* The nodes whose models count: a liar's own is its own affair. */
static uint32_t honest(const struct simulation *s)
{
    return s->o->sim - (s->o->lie != 1);
}

/* What the last node sends instead of its values; it goes on from an honest node's result. */
static void lie(struct simulation *s)
{
    float *tensors = cluster_values(s->cluster, s->o->sim - 1);
    for (size_t k = 0; k < cluster_elements(s->cluster); k++)
        tensors[k] *= (float)s->o->lie;
}

static void come_clean(struct simulation *s)
{
    memcpy(cluster_values(s->cluster, s->o->sim - 1), cluster_values(s->cluster, 0),
           cluster_elements(s->cluster) * sizeof(float));
}

struct share {
    const cluster *cluster;
    uint32_t node;
};

static bool owns(const void *share, uint32_t run)
{
    const struct share *s = share;
    return cluster_owns(s->cluster, s->node, run);
}

/* The owners' steps, and a round that hands out the parameters; false when a report is overdue. */
static bool hand_out(struct simulation *s, uint64_t step, const sleet_round_options *options)
{
    size_t n = s->learner.params;
    for (uint32_t i = 0; i < s->o->sim; i++) {
        const struct share share = {s->cluster, i};
        node_own_step(&s->node[i], step, owns, &share, cluster_values(s->cluster, i));
        memcpy(cluster_values(s->handing, i), s->node[i].values, n * sizeof(float));
    }
    if (!cluster_round(s->handing, options))
        return false;
    for (uint32_t i = 0; i < s->o->sim; i++) {
        memcpy(s->node[i].values, cluster_values(s->handing, i), n * sizeof(float));
        node_handed(&s->node[i]);
    }
    return true;
}

/* An exact round of what was left out; false when a report is overdue. */
static bool average_errors(struct simulation *s)
{
    const sleet_round_options exact = {.size = sizeof exact, .exact = 1};
    size_t bytes = s->learner.params * sizeof(float);
    for (uint32_t i = 0; i < s->o->sim; i++)
        memcpy(cluster_values(s->errors, i), cluster_residual(s->cluster, i), bytes);
    if (!cluster_round(s->errors, &exact))
        return false;
    for (uint32_t i = 0; i < s->o->sim; i++)
        memcpy(cluster_residual(s->cluster, i), cluster_values(s->errors, i), bytes);
    return true;
}

/* A round of the nodes for which one is due behind step `step`, and of those who learn of it; the mean coverage,
 * below 0 when a report is overdue. */
static double average(struct simulation *s, uint64_t step, const bool *due, bool exact, double *wait)
{
    sleet_round_options options = {.size = sizeof options,
                                   .exact = exact,
                                   .keep = s->o->keep,
                                   .keep_auto = s->o->keep_auto,
                                   .quorum = s->o->quorum,
                                   .max_async = s->o->max_async,
                                   .deadline_ns = exact ? 0 : (int64_t)(s->o->deadline * 1e9)};
    double sum = 0;
    uint32_t in = 0;
    if (s->o->lie != 1)
        lie(s);
    if (!cluster_round_from(s->cluster, due, &options))
        return -1;
    if (s->o->lie != 1)
        come_clean(s);
    for (uint32_t i = 0; i < s->o->sim; i++) {
        const struct cluster_report *r = cluster_report(s->cluster, i);
        if (r->error)
            return -1;
        if (!r->started)
            continue; /* it has not heard of the round */
        double took = (double)time_since(r->reported_at, r->started_at) * 1e-9;
        *wait = fmax(*wait, took);
        s->tally->behind += !node_take(&s->node[i], step, r->report.flags, cluster_values(s->cluster, i));
        trigger_round(s->node[i].trigger, took);
        sum += r->report.coverage;
        in++;
        tally_round(s->tally, r->report.coverage, r->report.skipped);
    }
    if (s->handing && !hand_out(s, step, &options))
        return -1;
    if (s->errors && (step + 1) % s->o->ef_average == 0 && !average_errors(s))
        return -1;
    s->tally->longest_wait = fmax(s->tally->longest_wait, *wait);
    return sum / in;
    s->done.wait_sum += *wait;
    s->done.waits++;
    return sum / s->o->sim;
}

static double averaged_score(struct simulation *s)
{
    for (size_t k = 0; k < s->learner.params + s->learner.statistics; k++) {
        double sum = 0;
        for (uint32_t i = 0; i < honest(s); i++)
            sum += (double)s->node[i].values[k];
        s->mean[k] = (float)(sum / honest(s));
    }
    return learner_score(&s->learner, s->mean);
}

/* Where nodes keep statistics of their own, it is shown beside what their mean would give. */
static bool beside(const struct simulation *s)
{
    return s->learner.statistics && s->o->local_statistics;
}

/* Node i's model with the mean of all nodes' statistics, which averaged_score() left. */
static double mixed_score(struct simulation *s, uint32_t i)
{
    const struct learner *l = &s->learner;
    memcpy(s->mixed, s->node[i].values, l->params * sizeof(float));
    memcpy(s->mixed + l->params, s->mean + l->params, l->statistics * sizeof(float));
    return learner_score(&s->learner, s->mixed);
}

static void evaluate(struct simulation *s)
{
    s->tally->averaged += averaged_score(s);
    for (uint32_t i = 0; i < honest(s); i++) {
        s->tally->score[i] += learner_score(&s->learner, s->node[i].values);
        if (beside(s))
            s->tally->mean_statistics[i] += mixed_score(s, i);
    }
    s->tally->evaluations++;
}

/* Step `step` is one after which the models are evaluated: 80 %, 85 % ... 100 %. */
static bool evaluation_due(uint64_t step, uint64_t steps)
{
    for (uint64_t i = 0; i < EVALUATIONS; i++)
        if (step == steps * (80 + 5 * i) / 100)
            return true;
    return false;
}

/* A local step of every node, or the gradient of one, which goes into its tensors: the mean loss. */
static double local_steps(struct simulation *s, uint64_t step)
{
    double sum = 0;
    for (uint32_t i = 0; i < s->o->sim; i++) {
        sum += node_step(&s->node[i], step, cluster_residual(s->cluster, i), s->mean);
        trigger_step(s->node[i].trigger, s->o->step_time);
        node_give(&s->node[i], cluster_values(s->cluster, i));
        feedback_forget(&s->learner, s->o, cluster_residual(s->cluster, i));
    }
    if (s->o->step_time > 0)
        cluster_idle(s->cluster, (sleet_duration)(s->o->step_time * 1e9));
    return sum / s->o->sim;
}

/* Those for which a round is due behind the first `done` steps: are there any? */
static bool any_due(const struct simulation *s, uint64_t done, bool due[SLEET_GROUP_MAX])
{
    bool any = false;
    for (uint32_t i = 0; i < s->o->sim; i++)
        any |= due[i] = node_due(&s->node[i], done);
    return any;
}

/* Train from the step `from` on. */
static int train(struct simulation *s, uint64_t from)
{
    const struct train_state state = state_of(s);
    uint64_t per_epoch = s->print.steps_per_epoch;
    for (uint64_t step = from; step < s->learner.optimizer.steps; step++) {
        struct train_line line = {.step = step + 1,
                                  .round = step + 1,
                                  .group = s->o->sim,
                                  .epoch = (uint32_t)(step / per_epoch) + 1,
                                  .rate = optimizer_rate(&s->learner.optimizer, step),
                                  .coverage = -1,
                                  .score = -1};
        if (s->o->straggle > 0 && !pace_run(&s->pace, step + 1, &line))
            return train_fail(&s->print, "a node's round failed at step %llu", (unsigned long long)step + 1);
        if (s->o->straggle <= 0)
            line.loss = local_steps(s, step);
        if (!isfinite(line.loss))
            return train_diverged(&s->print, step + 1, line.rate);
        s->tally->steps++;
        s->tally->loss_sum += line.loss;
        bool due[SLEET_GROUP_MAX];
        if (s->o->straggle <= 0 && any_due(s, step + 1, due)) {
            line.coverage = average(s, step, due, false, &line.wait);
            if (line.coverage < 0)
                return train_fail(&s->print, "a node's round failed at step %llu",
                                  (unsigned long long)step + 1);
            train_print_every(&s->print, step + 1, s->node[0].trigger);
        }
        if (evaluation_due(step + 1, s->learner.optimizer.steps))
            evaluate(s);
        bool ended = (step + 1) % per_epoch == 0;
        if (ended || (s->o->evaluate && (step + 1) % s->o->evaluate == 0))
            line.score = averaged_score(s);
        line.seconds = train_clock() - s->started;
        train_print_step(&s->print, &line);
        if (ended) {
            line.loss = s->tally->loss_sum / (double)per_epoch;
            train_print_epoch(&s->print, &line);
            s->tally->loss_sum = 0;
        }
        int status = train_checkpoint_step(&state, step, step + 1);
        if (status != EXIT_OK)
            return status;
    }
    return EXIT_OK;
}

/* The worst node's mean of the sums. */
static double worst(const struct simulation *s, const double *sum)
{
    double w = sum[0];
    for (uint32_t i = 1; i < honest(s); i++)
        w = s->print.data->less_is_better ? fmax(w, sum[i]) : fmin(w, sum[i]);
    return w / s->tally->evaluations;
}

/* Sent by all nodes so far, in all sets. */
static double sent_bytes(const struct simulation *s)
{
    cluster *const all[] = {s->cluster, s->handing, s->errors};
    struct sim_totals t;
    double sum = 0;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i]) {
            sim_get_totals(cluster_sim(all[i]), &t);
            sum += (double)t.bytes;
        }
    return sum;
}

static int finish(struct simulation *s)
{
    double wait = 0;
    if (s->o->straggle > 0) {
        s->done.pace_ms = pace_ms(&s->pace);
        s->done.contributors = s->pace.contributors / s->pace.rounds;
        if (!pace_finish(&s->pace))
            return train_fail(&s->print, "a node did not come to the last step");
        cluster_on_report(s->cluster, NULL, NULL);
    }
    s->done.bytes = (sent_bytes(s) - s->bytes_before) / s->o->sim;
    s->done.across = s->sites.n ? s->sites.bytes / s->o->sim : -1;
    s->done.keep_inside = sites_keep(&s->sites, s->cluster, false);
    s->done.keep_across = sites_keep(&s->sites, s->cluster, true);
    s->done.score = worst(s, s->tally->score);
    s->done.mean_statistics = beside(s) ? worst(s, s->tally->mean_statistics) : -1;
    s->done.averaged_score = s->tally->averaged / s->tally->evaluations;
    bool all[SLEET_GROUP_MAX];
    memset(all, true, sizeof all);
    uint32_t parts = s->o->average == AVERAGE_MODEL ? (s->o->spread ? s->o->spread : 1) : 0;
    for (uint32_t part = 0; part < parts; part++) {
        for (uint32_t i = 0; i < s->o->sim; i++)
            learner_pack(&s->learner, s->node[i].values, cluster_values(s->cluster, i));
        if (average(s, s->print.steps, all, true, &wait) < 0)
            return train_fail(&s->print, "a node's last round failed");
    }
    s->done.final_score = averaged_score(s);
    s->done.final_loss = learner_loss(&s->learner, s->mean);
    s->done.seconds = train_clock() - s->started;
    train_print_done(&s->print, &s->done, s->o->sim);
    return EXIT_OK;
}

int train_sim(const struct train_options *o, const struct dataset *data)
{
    struct simulation *s = calloc(1, sizeof *s);
    if (!s)
        return EXIT_FAILED;
    uint64_t from;
    s->o = o;
    s->tally = &s->done.tally;
    s->started = train_clock();
    int status = prepare(s, data);
    if (status == EXIT_OK) {
        const struct train_state state = state_of(s);
        train_print_settings(&s->print, o, &s->learner, o->sim);
        status = train_checkpoint_open(&state, &from);
    }
    if (status == EXIT_OK)
        s->bytes_before = sent_bytes(s);
    if (status == EXIT_OK && o->partition && from == 0) {
        const struct sim_config config = network(o);
        status = parts_simulate(s->node, &config, &s->print, s->tally, &s->bytes_before);
        from = (uint64_t)s->tally->steps;
    }
    s->pace = (struct pace){.options = o,
                            .cluster = s->cluster,
                            .nodes = s->node,
                            .tally = s->tally,
                            .scratch = s->mean,
                            .steps = s->print.steps};
    if (status == EXIT_OK && o->straggle > 0)
        pace_start(&s->pace);
    if (status == EXIT_OK)
        status = train(s, from);
    if (status == EXIT_OK)
        status = finish(s);
    if (s->cluster)
        cluster_free(s->cluster);
    sites_close(&s->sites);
    cluster_free(s->errors);
    cluster_free(s->handing); /* NULL is allowed */
    learner_close(&s->learner);
    shard_free(&s->split);
    for (uint32_t i = 0; i < o->sim; i++)
        node_close(&s->node[i]);
    free(s->mean);
    free(s->mixed);
    free(s);
    return status;
}
