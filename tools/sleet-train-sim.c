/* sleet-train-sim.c - all nodes in one process over the simulated network: a
 * local step of every node, then one round, in virtual time. */
#include "sleet-train-save.h"
#include "sleet-train-sim.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define RETURN_ROUNDS 30 /* at the end, for nodes that are not back in the rounds yet */
#define SETS 4

/* The state of node 0: only a simulation of one is saved. */
static struct train_state state_of(struct simulation *s)
{
    return (struct train_state){.print = &s->print,
                                .tally = s->tally,
                                .node = &s->node[0],
                                .residual = cluster_residual(s->cluster, 0)};
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

/* The owners' steps, and a round that hands out the parameters; false when a report is overdue, or out of memory. */
static bool hand_out(struct simulation *s, uint64_t step, const sleet_round_options *options)
{
    size_t n = s->learner.handed;
    for (uint32_t i = 0; i < s->alive; i++) {
        const struct share share = {s->cluster, i};
        if (!node_own_step(&s->node[i], step, owns, &share, cluster_values(s->cluster, i)))
            return false;
        memcpy(cluster_values(s->handing, i), node_hands(&s->node[i]), n * sizeof(float));
    }
    if (!cluster_round(s->handing, options))
        return false;
    for (uint32_t i = 0; i < s->alive; i++) {
        memcpy(node_hands(&s->node[i]), cluster_values(s->handing, i), n * sizeof(float));
        node_handed(&s->node[i]);
    }
    sim_watch(s);
    return true;
}

/* An exact round of what was left out; false when a report is overdue. */
static bool average_errors(struct simulation *s)
{
    const sleet_round_options exact = {.size = sizeof exact, .exact = 1};
    size_t bytes = s->learner.params * sizeof(float);
    for (uint32_t i = 0; i < s->alive; i++)
        memcpy(cluster_values(s->errors, i), cluster_residual(s->cluster, i), bytes);
    if (!cluster_round(s->errors, &exact))
        return false;
    for (uint32_t i = 0; i < s->alive; i++)
        memcpy(cluster_residual(s->cluster, i), cluster_values(s->errors, i), bytes);
    return true;
}

/* An exact round of tables, and the next batches; false when a report is overdue. */
static bool share_tables(struct simulation *s, uint64_t step)
{
    const sleet_round_options exact = {.size = sizeof exact, .exact = 1, .deadline_ns = SEC(2)};
    for (uint32_t i = 0; i < s->alive; i++)
        batch_give(&s->node[i].batch, cluster_values(s->tables, i));
    if (!cluster_round(s->tables, &exact))
        return false;
    for (uint32_t i = 0; i < s->alive; i++)
        if (!node_table(&s->node[i], step, cluster_report(s->tables, i)->report.flags, cluster_values(s->tables, i)))
            return false;
    return true;
}

/* A round of the nodes for which one is due behind step `step`, and of those who learn of it; the mean coverage,
 * below 0 when a report is overdue. */
static double average(struct simulation *s, uint64_t step, const bool *due, bool exact, double *wait)
{
    const sleet_round_options options = node_round(s->o, exact);
    double sum = 0;
    uint32_t in = 0;
    if (s->o->lie != 1)
        lie(s);
    bool all = s->o->blocking && !exact;
    if (all ? !round_of_all(s->cluster, s->node, s->o->sim, &options, wait) : !cluster_round_from(s->cluster, due, &options))
        return -1;
    if (s->o->lie != 1)
        come_clean(s);
    for (uint32_t i = 0; i < s->alive; i++) {
        const struct cluster_report *r = cluster_report(s->cluster, i);
        if (!r->started || kills_dead(&s->kills, i))
            continue; /* it has not heard of the round, or died in it */
        if (r->error)
            return -1;
        if (!r->reported)
            continue; /* it died in it, and is back */
        kills_round(&s->kills, i, r->report.flags);
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
    if (!exact) {
        s->done.wait_sum += *wait;
        s->done.waits++;
    }
    return sum / in;
}

/* The sets of the nodes; NULL in between. */
static void clusters_of(const struct simulation *s, cluster *all[SETS])
{
    all[0] = s->cluster;
    all[1] = s->handing;
    all[2] = s->errors;
    all[3] = s->tables;
}

/* The last node is gone, without a word. */
static void die(struct simulation *s)
{
    cluster *all[SETS];
    clusters_of(s, all);
    s->alive--;
    for (size_t i = 0; i < SETS; i++)
        if (all[i])
            sim_kill(cluster_sim(all[i]), s->alive);
}

/* Each set has a network of its own: where one of them learns who is gone the others do. */
static void keep_time(struct simulation *s)
{
    cluster *all[SETS];
    sleet_time latest = sim_now(cluster_sim(s->cluster));
    clusters_of(s, all);
    for (size_t i = 1; i < SETS; i++)
        if (all[i] && time_before(latest, sim_now(cluster_sim(all[i]))))
            latest = sim_now(cluster_sim(all[i]));
    for (size_t i = 0; i < SETS; i++)
        if (all[i])
            cluster_idle(all[i], time_since(latest, sim_now(cluster_sim(all[i]))));
}

/* A local step of every node, or the gradient of one, which goes into its tensors: the mean loss. */
static double local_steps(struct simulation *s, uint64_t step)
{
    double sum = 0, slowest = 0;
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->alive; i++) {
        if (kills_dead(&s->kills, i))
            continue;
        n++;
        sum += node_step(&s->node[i], step, cluster_residual(s->cluster, i), s->mean);
        trigger_step(s->node[i].trigger, s->o->step_time);
        node_give(&s->node[i], cluster_values(s->cluster, i));
        feedback_forget(&s->learner, s->o, cluster_residual(s->cluster, i));
        cluster_set_weight(s->cluster, i, batch_weight(&s->node[i].batch));
        slowest = fmax(slowest, s->node[i].batch.step_s);
    }
    s->tally->drawn += s->node[0].batch.now;
    s->done.slowest_s += slowest;
    s->done.timed++;
    if (s->o->step_time > 0)
        cluster_idle(s->cluster, (sleet_duration)(s->o->step_time * 1e9));
    if (s->alive < s->o->sim)
        keep_time(s);
    return sum / n;
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
    for (uint64_t step = from; step < s->learner.optimizer.steps && !train_stops(s->o, step); step++) {
        if (s->o->dies && step == s->o->dies)
            die(s);
        struct train_line line = {.step = step + 1,
                                  .round = step + 1,
                                  .group = s->alive,
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
        if (node_table_due(&s->node[0], step + 1) && !share_tables(s, step))
            return train_fail(&s->print, "a node's round of the batches failed at step %llu",
                              (unsigned long long)step + 1);
        train_print_batch(&s->print, step + 1, &s->node[0].batch);
        if (sim_evaluation_due(step + 1, s->learner.optimizer.steps))
            sim_evaluate(s);
        bool ended = (step + 1) % per_epoch == 0;
        if (ended || (s->o->evaluate && (step + 1) % s->o->evaluate == 0))
            line.score = sim_averaged_score(s);
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

/* Sent by all nodes so far, in all sets. */
static double sent_bytes(const struct simulation *s)
{
    cluster *all[SETS];
    struct sim_totals t;
    double sum = 0;
    clusters_of(s, all);
    for (size_t i = 0; i < SETS; i++)
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
    if (s->o->kill > 0 || s->o->blocking)
        s->done.virtual_s = kills_seconds(&s->kills);
    s->done.kills = s->kills.count;
    s->done.bytes = (sent_bytes(s) - s->bytes_before) / s->o->sim;
    s->done.across = s->sites.n ? s->sites.bytes / s->o->sim : -1;
    s->done.keep_inside = sites_keep(&s->sites, s->cluster, false);
    s->done.keep_across = sites_keep(&s->sites, s->cluster, true);
    s->done.score = sim_worst(s, s->tally->score);
    s->done.mean_statistics = sim_beside(s) ? sim_worst(s, s->tally->mean_statistics) : -1;
    s->done.averaged_score = s->tally->averaged / s->tally->evaluations;
    bool all[SLEET_GROUP_MAX];
    memset(all, true, sizeof all);
    if (s->kills.cluster)
        kills_end(&s->kills);
    for (int i = 0; i < RETURN_ROUNDS && kills_any_away(&s->kills); i++) {
        cluster_idle(s->cluster, SEC(1));
        if (average(s, s->print.steps, all, false, &wait) < 0)
            return train_fail(&s->print, "a round for who was away failed");
    }
    uint32_t parts = s->o->average == AVERAGE_MODEL ? (s->o->spread ? s->o->spread : 1) : 0;
    for (uint32_t part = 0; part < parts; part++) {
        for (uint32_t i = 0; i < s->alive; i++)
            learner_pack(&s->learner, s->node[i].values, cluster_values(s->cluster, i));
        if (average(s, s->print.steps, all, true, &wait) < 0)
            return train_fail(&s->print, "a node's last round failed");
    }
    const model *net = s->learner.net;
    s->done.backward_s = net->backwards ? net->backward_s / (double)net->backwards : 0;
    s->done.sliced = s->o->slices > 0;
    s->done.still = s->watch.most_still;
    s->done.slices_short = s->watch.rounds_short;
    s->done.final_score = sim_averaged_score(s);
    s->done.final_loss = learner_loss(&s->learner, s->mean);
    s->done.seconds = train_clock() - s->started;
    s->done.batch = &s->node[0].batch;
    s->done.memory = memory_of(&s->node[0]);
    for (uint32_t i = 1; i < s->o->sim; i++)
        s->done.memory.moments += memory_of(&s->node[i]).moments;
    s->done.memory.moments /= s->o->sim;
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
    s->alive = o->sim;
    s->tally = &s->done.tally;
    s->started = train_clock();
    int status = sim_open(s, data);
    if (status == EXIT_OK) {
        const struct train_state state = state_of(s);
        train_print_settings(&s->print, o, &s->learner, o->sim);
        status = train_checkpoint_open(&state, &from);
    }
    if (status == EXIT_OK)
        s->bytes_before = sent_bytes(s);
    if (status == EXIT_OK && o->partition && from == 0) {
        const struct sim_config config = sim_network(o);
        status = parts_simulate(s->node, &config, &s->print, s->tally, &s->bytes_before);
        from = (uint64_t)s->tally->steps;
        s->tally->drawn = s->tally->steps * o->batch;
    }
    s->pace = (struct pace){.options = o,
                            .cluster = s->cluster,
                            .nodes = s->node,
                            .tally = s->tally,
                            .scratch = s->mean,
                            .steps = s->print.steps};
    if (status == EXIT_OK && (o->kill > 0 || o->blocking))
        kills_begin(&s->kills, o, s->cluster, s->node);
    if (status == EXIT_OK && o->straggle > 0)
        pace_start(&s->pace);
    if (status == EXIT_OK)
        status = train(s, from);
    if (status == EXIT_OK && s->tally->steps < (double)s->print.steps) {
        const struct train_state state = state_of(s);
        status = train_checkpoint_stop(&state, (uint64_t)s->tally->steps);
    } else if (status == EXIT_OK) {
        status = finish(s);
    }
    if (s->cluster)
        cluster_free(s->cluster);
    sites_close(&s->sites);
    sim_watch_close(s);
    cluster_free(s->errors);
    cluster_free(s->tables);
    cluster_free(s->handing); /* NULL is allowed */
    learner_close(&s->learner);
    shard_free(&s->split);
    for (uint32_t i = 0; i < o->sim; i++)
        node_close(&s->node[i]);
    free(s->mean);
    free(s->mixed);
    free(s->tested);
    free(s);
    return status;
}
