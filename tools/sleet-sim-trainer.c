/* sleet-sim-trainer.c - one trainer a node in virtual time: it waits for the others, then
 * learns a step, averages, and ends with an exact round, as sleet-train does. */
#include "sleet-sim-scenario.h"
#include <cblas.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LOOK MS(50)      /* between two looks at who is there */
#define STEP_LEAST MS(1) /* virtual time of a local step */
#define LAST_WAIT SEC(30)

static void on_timer(sim *s, void *arg);

static void arm(struct trainer *t, sleet_duration in)
{
    sim *s = cluster_sim(t->play->c);
    t->due = time_add(sim_now(s), in);
    t->armed = true;
    sim_at(s, t->due, on_timer, t);
}

bool trainers_open(struct play *p)
{
    const struct scenario_workload *w = &p->s->workload;
    char error[DATA_ERROR_MAX];
    openblas_set_num_threads(1); /* the same bits on every machine size */
    p->options = (struct train_options){.model = &model_mlp,
                                        .hidden = {(uint32_t)w->hidden},
                                        .hidden_count = 1,
                                        .batch = (uint32_t)w->batch,
                                        .limit = (uint32_t)w->samples,
                                        .optimizer = {.kind = &optimizer_sgd,
                                                      .rate = w->lr,
                                                      .momentum = 0.9},
                                        .steps = scenario_steps(p->s)};
    if (!shard_parse(w->shards, &p->options.shards)) {
        fprintf(stderr, "sleet-sim: [workload] shards = %s: use iid, dirichlet:A or label\n",
                w->shards);
        return false;
    }
    if (!data_load(&p->data, &data_images, NULL, p->options.limit, error)) {
        fprintf(stderr, "sleet-sim: %s\n", error);
        return false;
    }
    const char *why = learner_open(&p->learner, &p->options, &p->data, (uint32_t)p->s->nodes);
    if (why || !data_split(&p->data, p->options.shards, (uint32_t)p->s->nodes, (uint64_t)p->s->seed, &p->split)) {
        fprintf(stderr, "sleet-sim: %s\n", why ? why : "out of memory");
        return false;
    }
    return true;
}

void trainers_close(struct play *p)
{
    for (int i = 0; i < SCENARIO_NODES_MAX; i++) {
        free(p->trainer[i].waits);
        free(p->trainer[i].before);
    }
    learner_close(&p->learner);
    shard_free(&p->split);
    data_free(&p->data);
}

void trainer_start(struct trainer *t, bool late)
{
    struct play *p = t->play;
    float *values = cluster_values(p->c, t->node);
    t->walk = shard_walk_of(&p->split, t->node, (uint64_t)p->s->seed);
    learner_init(&p->learner, (uint64_t)p->s->seed, values);
    if (!t->before && !(t->before = malloc(p->learner.elements * sizeof *t->before)))
        abort();
    t->phase = TRAINER_MEETS;
    t->late = late;
    t->based = t->excused = t->frozen = false;
    t->step = t->base = t->rounds = 0;
    t->coverage_sum = 0;
    t->least_coverage = 1;
    t->meets_until =
        time_add(sim_now(cluster_sim(p->c)), (sleet_duration)(p->s->workload.min_wait_s * 1e9));
    arm(t, LOOK);
}

void trainer_stop(struct trainer *t)
{
    t->armed = false;
    t->phase = TRAINER_OFF;
}

static void average(struct trainer *t, bool exact)
{
    sleet_round_options o = {.size = sizeof o,
                             .exact = exact,
                             .deadline_ns = (int64_t)(t->play->s->workload.deadline_s * 1e9)};
    if (exact)
        o.deadline_ns = 0;
    if (cluster_start(t->play->c, t->node, &o) != SLEET_OK)
        arm(t, LOOK); /* not allowed now: tried again */
}

static void learn(struct trainer *t)
{
    struct play *p = t->play;
    float *values = cluster_values(p->c, t->node);
    memcpy(t->before, values, p->learner.elements * sizeof *values);
    learner_step(&p->learner, &t->walk, t->step, values);
    t->step++;
    t->steps++;
    average(t, false);
}

static uint32_t trainers_there(struct trainer *t)
{
    engine *e = sim_engine(cluster_sim(t->play->c), t->node);
    engine_set set;
    return e && engine_get_set(e, cluster_set(t->play->c, t->node), &set,
                               sim_now(cluster_sim(t->play->c)))
               ? set.trainers
               : 0;
}

static void begin_step(struct trainer *t)
{
    sleet_duration d = (sleet_duration)(t->play->s->workload.step_ms * 1e6);
    arm(t, d > STEP_LEAST ? d : STEP_LEAST);
}

static void on_timer(sim *s, void *arg)
{
    struct trainer *t = arg;
    sleet_time now = sim_now(s);
    if (!t->armed || time_before(now, t->due))
        return; /* of an earlier life, or replaced */
    t->armed = false;
    if (t->frozen) {
        arm(t, MS(10));
    } else if (t->phase == TRAINER_MEETS) {
        if (trainers_there(t) < (uint32_t)t->play->s->workload.min_nodes &&
            time_before(now, t->meets_until)) {
            arm(t, LOOK);
            return;
        }
        t->phase = TRAINER_STEPS;
        begin_step(t);
    } else if (t->phase == TRAINER_STEPS) {
        learn(t);
    } else if (t->phase == TRAINER_ENDS) {
        average(t, true);
    }
}

static void note_wait(struct trainer *t, const struct cluster_report *r)
{
    double wait = (double)time_since(r->reported_at, r->started_at) * 1e-9;
    if (!t->excused) {
        if (t->wait_count == t->wait_room) {
            t->wait_room = t->wait_room ? 2 * t->wait_room : 256;
            t->waits = realloc(t->waits, t->wait_room * sizeof *t->waits);
            if (!t->waits)
                abort();
        }
        t->waits[t->wait_count++] = wait;
        t->longest_wait = fmax(t->longest_wait, wait);
    }
    t->excused = t->frozen;
}

/* As sleet-train: the job's round is the step, also for one that was away. */
static void follow_job(struct trainer *t, uint64_t round)
{
    if (round == 0)
        return;
    if (!t->based) {
        t->based = true;
        t->base = t->late && round > t->step ? 0 : round - t->step;
    }
    t->step = round - t->base;
}

static void end(struct trainer *t)
{
    cluster *c = t->play->c;
    t->accuracy = learner_score(&t->play->learner, cluster_values(c, t->node));
    t->phase = TRAINER_DONE;
    scenario_course_end(&t->course, play_now(t->play));
    engine_detach(sim_engine(cluster_sim(c), t->node), cluster_set(c, t->node),
                  sim_now(cluster_sim(c)));
    sim_kick(cluster_sim(c), t->node);
}

void trainer_reported(cluster *c, uint32_t node, void *arg)
{
    struct play *p = arg;
    struct trainer *t = &p->trainer[node];
    const struct cluster_report *r = cluster_report(c, node);
    sleet_time now = sim_now(cluster_sim(c));
    double coverage = r->report.group_size > 1 ? r->report.coverage : 0;
    if (r->report.flags & SLEET_PARKED && t->phase == TRAINER_STEPS) {
        memcpy(cluster_values(c, node), t->before, p->learner.elements * sizeof *t->before);
        note_wait(t, r);
        average(t, false); /* as sleet-train: the step is undone, nothing but to wait */
        return;
    }
    t->coverage_sum += r->report.coverage;
    t->least_coverage = fmin(t->least_coverage, r->report.coverage);
    t->rounds++;
    if (t->phase == TRAINER_ENDS) {
        if (r->report.flags & (SLEET_ALONE | SLEET_PARKED) && time_before(now, t->ends_until) &&
            trainers_there(t) > 1)
            arm(t, MS(100));
        else
            end(t);
        return;
    }
    note_wait(t, r);
    follow_job(t, r->report.round);
    if (t->step > p->top_step)
        p->top_step = t->step;
    scenario_course_round(&t->course, play_now(p), coverage, t->step + 2 >= p->top_step);
    if (p->next_event == p->s->events && coverage >= SCENARIO_COVERED)
        t->returned++;
    if (t->step < p->learner.optimizer.steps) {
        begin_step(t);
        return;
    }
    t->phase = TRAINER_ENDS;
    t->ends_until = time_add(now, LAST_WAIT);
    arm(t, STEP_LEAST);
}
