#include "sim/cluster.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CLUSTER_SET "model"
#define DEADLINE_DEFAULT SEC(2)
#define DEADLINE_EXACT SEC(30)
#define LOOK MS(1) /* how often a node looks whether there is a round for it */

struct trainer {
    int set; /* < 0: not registered */
    bool paused;
    double weight; /* 0: the default */
    uint64_t halts; /* of its node when its round started */
    float *values, *result, *residual;
    uint64_t *owned; /* a bit a run */
    struct cluster_report report;
};

struct cluster {
    sim *sim;
    uint32_t nodes, tensors;
    struct set_kind kind;
    engine_tensor *tensor;
    uint64_t elements;
    uint64_t overdue;
    const void **send; /* tables for one engine_start() */
    void **results;
    float **residuals;
    void (*on_report)(cluster *, uint32_t, void *);
    void *on_report_arg;
    uint32_t waited_for; /* a node that waiting() looks at first */
    struct trainer *trainers;
};

static bool runs(cluster *c, uint32_t node)
{
    return sim_engine(c->sim, node) && !sim_frozen(c->sim, node);
}

/* Frozen or killed at some time since its round started. */
static bool disturbed(const cluster *c, uint32_t node)
{
    return c->trainers[node].halts != sim_halts(c->sim, node);
}

static void on_event(sim *s, uint32_t node, const engine_event *e, void *arg)
{
    cluster *c = arg;
    struct trainer *t = &c->trainers[node];
    struct cluster_report *r = &t->report;
    if (e->type != EVENT_ROUND || !r->started || r->reported)
        return;
    r->reported = true;
    r->error = e->error;
    r->report = e->report;
    r->reported_at = sim_now(s);
    if (!disturbed(c, node) && time_since(r->reported_at, r->started_at) > r->deadline)
        c->overdue++;
    if (e->error == SLEET_OK)
        memcpy(t->values, t->result, c->elements * sizeof *t->values);
    if (c->on_report)
        c->on_report(c, node, c->on_report_arg);
}

static bool allocate(cluster *c, const struct sim_config *config, const uint64_t *counts,
                     uint32_t tensors)
{
    c->kind = config->kind;
    c->kind.payload = c->kind.payload ? c->kind.payload : SLEET_MODEL;
    c->tensors = tensors;
    c->tensor = calloc(tensors, sizeof *c->tensor);
    c->send = calloc(tensors, sizeof *c->send);
    c->results = calloc(tensors, sizeof *c->results);
    c->residuals = calloc(tensors, sizeof *c->residuals);
    if (!c->tensor || !c->send || !c->results || !c->residuals)
        return false;
    for (uint32_t i = 0; i < tensors; i++) {
        snprintf(c->tensor[i].name, sizeof c->tensor[i].name, "t%u", i);
        bool state = i + config->state_tensors >= tensors;
        c->tensor[i].dtype = state ? SLEET_F32_STATE : SLEET_F32;
        c->tensor[i].codec = state ? 0 : config->codec;
        c->tensor[i].count = counts[i];
        c->tensor[i].rows = config->rows ? config->rows[i] : 0;
        c->elements += counts[i];
    }
    for (uint32_t i = 0; i < sim_nodes(c->sim); i++) {
        struct trainer *t = &c->trainers[i];
        t->values = calloc(c->elements + 1, sizeof *t->values);
        t->result = calloc(c->elements + 1, sizeof *t->result);
        t->residual = calloc(c->elements + 1, sizeof *t->residual);
        t->owned = calloc(c->elements / FRAGMENT_ELEMENTS / RUN_FRAGMENTS / 64 + tensors + 1, sizeof *t->owned);
        if (!t->values || !t->result || !t->residual || !t->owned)
            return false;
    }
    return true;
}

cluster *cluster_new(const struct sim_config *config, const uint64_t *counts, uint32_t tensors)
{
    cluster *c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    c->sim = sim_new(config);
    c->nodes = config->nodes;
    c->trainers = calloc(config->nodes + 1u, sizeof *c->trainers);
    bool ok = c->sim && c->trainers && tensors > 0 && allocate(c, config, counts, tensors);
    for (uint32_t i = 0; ok && i < config->nodes; i++)
        ok = cluster_register(c, i) == SLEET_OK || (config->each && config->each[i].declared.role == ROLE_AUXILIARY);
    if (!ok) {
        cluster_free(c);
        return NULL;
    }
    sim_on_event(c->sim, on_event, c);
    return c;
}

void cluster_free(cluster *c)
{
    if (!c)
        return;
    sim_free(c->sim); /* first: engines borrow the arrays */
    for (uint32_t i = 0; c->trainers && i < c->nodes; i++) {
        free(c->trainers[i].values);
        free(c->trainers[i].result);
        free(c->trainers[i].owned);
        free(c->trainers[i].residual);
    }
    free(c->trainers);
    free(c->tensor);
    free(c->send);
    free(c->results);
    free(c->residuals);
    free(c);
}

sim *cluster_sim(cluster *c)
{
    return c->sim;
}

uint64_t cluster_elements(const cluster *c)
{
    return c->elements;
}

float *cluster_values(cluster *c, uint32_t node)
{
    return c->trainers[node].values;
}

bool cluster_owns(const cluster *c, uint32_t node, uint32_t run)
{
    return c->trainers[node].owned[run / 64] >> (run % 64) & 1;
}

float *cluster_residual(cluster *c, uint32_t node)
{
    return c->trainers[node].residual;
}

const struct cluster_report *cluster_report(const cluster *c, uint32_t node)
{
    return &c->trainers[node].report;
}

uint64_t cluster_overdue(const cluster *c)
{
    return c->overdue;
}

int cluster_set(const cluster *c, uint32_t node)
{
    return c->trainers[node].set;
}

int cluster_register(cluster *c, uint32_t node)
{
    engine *e = sim_engine(c->sim, node);
    if (!e)
        return SLEET_ESTATE;
    struct trainer *t = &c->trainers[node];
    t->report = (struct cluster_report){0};
    t->set = engine_register(e, CLUSTER_SET, c->kind, c->tensor, c->tensors, sim_now(c->sim));
    sim_kick(c->sim, node);
    return t->set < 0 ? t->set : SLEET_OK;
}

void cluster_set_active(cluster *c, uint32_t node, bool active)
{
    c->trainers[node].paused = !active;
}

void cluster_set_weight(cluster *c, uint32_t node, double weight)
{
    c->trainers[node].weight = weight;
}

int cluster_start(cluster *c, uint32_t node, const sleet_round_options *options)
{
    struct trainer *t = &c->trainers[node];
    engine_start_args args = {.send = c->send, .result = c->results, .residual = c->residuals,
                              .owned = t->owned};
    if (options)
        args.options = *options;
    args.options.size = sizeof args.options;
    if (args.options.weight == 0)
        args.options.weight = t->weight;
    uint64_t at = 0;
    for (uint32_t i = 0; i < c->tensors; i++) {
        c->send[i] = t->values + at;
        c->results[i] = t->result + at;
        c->residuals[i] = t->residual + at;
        at += c->tensor[i].count;
    }
    sleet_duration deadline = args.options.deadline_ns;
    if (deadline == 0)
        deadline = args.options.exact ? DEADLINE_EXACT : DEADLINE_DEFAULT;
    t->halts = sim_halts(c->sim, node);
    t->report = (struct cluster_report){.started_at = sim_now(c->sim), .deadline = deadline};
    t->report.error = SLEET_ESTATE;
    if (runs(c, node) && t->set >= 0)
        t->report.error = engine_start(sim_engine(c->sim, node), t->set, &args, sim_now(c->sim));
    t->report.started = t->report.error == SLEET_OK;
    sim_kick(c->sim, node);
    return t->report.error;
}

void cluster_on_report(cluster *c, void (*fn)(cluster *, uint32_t, void *), void *arg)
{
    c->on_report = fn;
    c->on_report_arg = arg;
}

static bool waiting(void *arg)
{
    cluster *c = arg;
    uint32_t n = sim_nodes(c->sim);
    for (uint32_t i = 0; i < n; i++, c->waited_for = (c->waited_for + 1) % n) {
        const struct cluster_report *r = &c->trainers[c->waited_for].report;
        if (r->started && !r->reported && !disturbed(c, c->waited_for))
            return true;
    }
    return false;
}

bool cluster_round(cluster *c, const sleet_round_options *options)
{
    sleet_duration longest = 0;
    for (uint32_t i = 0; i < sim_nodes(c->sim); i++) {
        if (!runs(c, i) || c->trainers[i].paused) {
            if (!sim_frozen(c->sim, i))
                c->trainers[i].report = (struct cluster_report){0};
            continue;
        }
        cluster_start(c, i, options);
        if (c->trainers[i].report.deadline > longest)
            longest = c->trainers[i].report.deadline;
    }
    sleet_time limit = time_add(sim_now(c->sim), longest + MS(1));
    return sim_run_while(c->sim, waiting, c, limit);
}

bool cluster_round_from(cluster *c, const bool *begins, const sleet_round_options *options)
{
    uint32_t n = sim_nodes(c->sim), all = 0;
    while (all < n && begins[all])
        all++;
    if (all == n)
        return cluster_round(c, options);
    for (uint32_t i = 0; i < n; i++) {
        c->trainers[i].report = (struct cluster_report){0};
        if (begins[i] && runs(c, i) && !c->trainers[i].paused)
            cluster_start(c, i, options);
    }
    for (bool open = true; open;) {
        open = false;
        sim_run_until(c->sim, time_add(sim_now(c->sim), LOOK));
        for (uint32_t i = 0; i < n; i++) {
            const struct trainer *t = &c->trainers[i];
            if (t->report.started && !t->report.reported &&
                time_since(sim_now(c->sim), t->report.started_at) > t->report.deadline + LOOK)
                return false;
            open |= t->report.started && !t->report.reported;
            if (!t->report.started && runs(c, i) && !t->paused && engine_wanted(sim_engine(c->sim, i), t->set))
                open |= cluster_start(c, i, options) == SLEET_OK;
        }
    }
    return true;
}

void cluster_idle(cluster *c, sleet_duration d)
{
    sim_run_until(c->sim, time_add(sim_now(c->sim), d));
}
