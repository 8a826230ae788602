#include "sleet-train-pace.h"
#include "base/rng.h"
#include <math.h>

#define LONGEST SEC(120) /* virtual, between two rounds of the job */

static void begin(sim *s, void *arg)
{
    struct runner *r = arg;
    struct pace *p = r->pace;
    struct train_node *n = &p->nodes[r->node];
    float *residual = cluster_residual(p->cluster, r->node);
    const sleet_round_options options = node_round(p->options, false);
    (void)s;
    p->loss += node_step(n, r->step, residual, p->scratch);
    p->losses++;
    node_give(n, cluster_values(p->cluster, r->node));
    feedback_forget(n->learner, p->options, residual);
    p->failed |= cluster_start(p->cluster, r->node, &options) != SLEET_OK;
}

/* Of the nodes' steps towards the same round one takes longer, and none quite as long as another; or all differ. */
static sleet_duration step_time(const struct runner *r)
{
    const struct train_options *o = r->pace->options;
    sleet_rng of_all = {mix64(o->seed ^ mix64(r->step))}, own = {mix64(of_all.state + 1 + r->node)};
    double s = o->step_time > 0 ? o->step_time : STEP_TIME, part = rng_double(&own);
    if (o->uneven)
        return (sleet_duration)(1e9 * s * o->straggle * part);
    return (sleet_duration)(1e9 * s * (1 + 0.1 * part) * (rng_below(&of_all, o->sim) == r->node ? o->straggle : 1));
}

static void go_on(struct runner *r)
{
    sim *s = cluster_sim(r->pace->cluster);
    sim_at(s, time_add(sim_now(s), step_time(r)), begin, r);
}

/* Whose values are in a result, of those expected, where coverage counts state that was not due as covered. */
static double contributors(const struct pace *p, const sleet_report *q)
{
    const struct learner *l = p->nodes[0].learner;
    double all = 0, due = 0;
    for (const struct train_tensor *t = l->tensor; t < l->tensor + l->tensors; t++) {
        all += (double)t->count;
        due += (double)t->count / (t->state ? SLEET_REFRESH_ROUNDS : 1);
    }
    return q->expected * (1 - (1 - q->coverage) * all / due);
}

static void reported(cluster *c, uint32_t node, void *arg)
{
    struct pace *p = arg;
    struct runner *r = &p->runner[node];
    const struct cluster_report *report = cluster_report(c, node);
    const sleet_report *q = &report->report;
    p->failed |= report->error != SLEET_OK;
    p->tally->behind += !node_take(&p->nodes[node], r->step, q->flags, cluster_values(c, node));
    p->wait = fmax(p->wait, (double)time_since(report->reported_at, report->started_at) * 1e-9);
    p->coverage += q->coverage;
    p->reports++;
    tally_round(p->tally, q->coverage, q->skipped);
    if (q->round > p->newest) {
        p->newest = q->round;
        p->contributors += contributors(p, q);
        p->rounds++;
    }
    if (q->round > p->base)
        r->step = q->round - p->base;
    r->done = r->step >= p->steps;
    if (!r->done)
        go_on(r);
}

void pace_start(struct pace *p)
{
    p->base = p->newest = cluster_report(p->cluster, 0)->report.round;
    p->began = sim_now(cluster_sim(p->cluster));
    cluster_on_report(p->cluster, reported, p);
    for (uint32_t i = 0; i < p->options->sim; i++) {
        p->runner[i] = (struct runner){.pace = p, .node = i};
        go_on(&p->runner[i]);
    }
}

static bool not_there(void *arg)
{
    const struct pace *p = arg;
    return p->newest < p->until && !p->failed;
}

static bool some_go(void *arg)
{
    const struct pace *p = arg;
    bool any = false;
    for (uint32_t i = 0; i < p->options->sim; i++)
        any |= !p->runner[i].done;
    return any && !p->failed;
}

static bool run_while(struct pace *p, bool (*more)(void *))
{
    sim *s = cluster_sim(p->cluster);
    return sim_run_while(s, more, p, time_add(sim_now(s), LONGEST)) && !p->failed;
}

bool pace_run(struct pace *p, uint64_t steps, struct train_line *line)
{
    p->loss = p->losses = p->coverage = p->reports = p->wait = 0;
    p->until = p->base + steps;
    bool ok = run_while(p, not_there);
    line->loss = p->losses > 0 ? p->loss / p->losses : 0;
    line->coverage = p->reports > 0 ? p->coverage / p->reports : 0;
    line->wait = p->wait;
    p->tally->longest_wait = fmax(p->tally->longest_wait, p->wait);
    return ok;
}

bool pace_finish(struct pace *p)
{
    return run_while(p, some_go);
}

double pace_ms(const struct pace *p)
{
    double s = (double)time_since(sim_now(cluster_sim(p->cluster)), p->began) * 1e-9;
    return 1e3 * s / (double)(p->newest - p->base);
}
