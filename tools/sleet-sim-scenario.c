/* sleet-sim-scenario.c - plays a scenario file on simulated links. */
#include "sleet-sim-scenario.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TICK MS(2)   /* between two looks at the events */
#define HEADERS 42.0 /* of a datagram on Ethernet, which a real rate counts */
#define DATAGRAM 1224.0
#define QUEUE_KB 256.0 /* as the lab's */
#define METRICS_LEFT_OUT (1u << METRIC_CORRUPT_KERNEL | 1u << METRIC_CORRUPT)

/* ---- links ------------------------------------------------------------------- */

/* netem's jitter lies to both sides of the delay; what is reordered is not delayed.  The
 * paths towards a node share its rate and its queue. */
static struct sim_link to_sim(const struct scenario_link *l, sleet_time *free_at)
{
    double queue_kb = l->queue_kb > 0 ? l->queue_kb : QUEUE_KB;
    double payload = DATAGRAM / (DATAGRAM + HEADERS);
    struct sim_link out = {.loss = l->loss,
                           .ge_p = l->gemodel_p,
                           .ge_r = l->gemodel_r,
                           .duplicate = l->duplicate,
                           .corrupt = l->corrupt,
                           .rate_bps = (uint64_t)(l->rate_mbit * 1e6 * payload),
                           .queue_bytes = (uint32_t)(queue_kb * 1024 * payload),
                           .free_at = free_at};
    sleet_duration delay = (sleet_duration)((l->delay_ms - l->jitter_ms) * 1e6);
    out.jitter = (sleet_duration)(2 * l->jitter_ms * 1e6);
    if (l->reorder > 0 && delay > 0) {
        out.reorder = 1 - l->reorder;
        out.reorder_delay = delay;
    } else {
        out.delay = delay;
    }
    return out;
}

static void set_links(struct play *p)
{
    uint32_t n = (uint32_t)p->s->nodes;
    for (uint32_t to = 0; to < n; to++) {
        struct sim_link link = to_sim(&p->link[to], &p->free_at[to]);
        for (uint32_t from = 0; from < n; from++) {
            link.down = p->group[from] != p->group[to] ||
                        p->down & (1u << from | 1u << to);
            if (from != to)
                sim_set_link(cluster_sim(p->c), from, to, &link);
        }
    }
}

/* ---- events -------------------------------------------------------------------- */

double play_now(const struct play *p)
{
    return (double)time_since(sim_now(cluster_sim(p->c)), (sleet_time){0}) * 1e-9;
}

static void bring_up(struct play *p, uint32_t node, bool late)
{
    sim *s = cluster_sim(p->c);
    scenario_course_start(&p->trainer[node].course, play_now(p));
    if (!sim_restart(s, node) || cluster_register(p->c, node) != SLEET_OK)
        fprintf(stderr, "sleet-sim: node %u cannot be started\n", node + 1);
    trainer_start(&p->trainer[node], late);
}

static void play_on_node(struct play *p, const struct scenario_event *e, uint32_t node)
{
    struct trainer *t = &p->trainer[node];
    sim *s = cluster_sim(p->c);
    switch (e->action) {
    case SCENARIO_KILL:
        trainer_stop(t);
        sim_kill(s, node);
        break;
    case SCENARIO_START:
        bring_up(p, node, p->top_step > 0);
        break;
    case SCENARIO_FREEZE:
        sim_freeze(s, node, true);
        t->frozen = t->excused = true;
        break;
    case SCENARIO_FREEZE_TRAINER:
        t->frozen = t->excused = true;
        break;
    case SCENARIO_THAW:
        if (sim_frozen(s, node))
            sim_freeze(s, node, false);
        t->frozen = false;
        break;
    case SCENARIO_LINK:
        p->link[node] = e->link;
        break;
    case SCENARIO_DOWN:
    case SCENARIO_UP:
        p->down ^= 1u << node;
        break;
    case SCENARIO_REBIND:
        sim_rebind(s, node);
        break;
    default:
        break;
    }
}

static bool due(struct play *p, const struct scenario_event *e)
{
    double since = (double)time_since(p->event_at, (sleet_time){0}) * 1e-9;
    if (e->when == WHEN_AT_STEP)
        return (double)p->top_step >= e->value;
    return play_now(p) >= e->value + (e->when == WHEN_AFTER_S ? since : 0);
}

static void play_events(struct play *p)
{
    while (p->next_event < p->s->events && due(p, &p->s->event[p->next_event])) {
        const struct scenario_event *e = &p->s->event[p->next_event++];
        char nodes[64];
        scenario_nodes_text(e->nodes, nodes, sizeof nodes);
        printf("  %6.1f s, step %llu: %s, %s %s\n", play_now(p), (unsigned long long)p->top_step,
               e->name, scenario_action_names[e->action], nodes);
        p->event_at = sim_now(cluster_sim(p->c));
        for (uint32_t i = 0; i < (uint32_t)p->s->nodes; i++)
            if (e->nodes & 1u << i)
                play_on_node(p, e, i);
        if (e->action == SCENARIO_PARTITION)
            memcpy(p->group, e->group, sizeof p->group);
        if (e->action == SCENARIO_HEAL)
            memset(p->group, 0, sizeof p->group);
        set_links(p);
    }
}

static bool by_time(const struct play *p)
{
    return p->next_event < p->s->events && p->s->event[p->next_event].when != WHEN_AT_STEP;
}

/* Until all trainers are done; false when that takes too long. */
static bool conduct(struct play *p)
{
    bool up[SCENARIO_NODES_MAX] = {false};
    for (;;) {
        bool busy = by_time(p);
        for (uint32_t i = 0; i < (uint32_t)p->s->nodes; i++) {
            if (!up[i] && play_now(p) >= p->s->start_s[i]) {
                bring_up(p, i, p->top_step > 0);
                up[i] = true;
            }
            enum trainer_phase phase = p->trainer[i].phase;
            busy |= !up[i] || (phase != TRAINER_DONE && phase != TRAINER_OFF);
        }
        if (!busy)
            return p->next_event == p->s->events;
        if (play_now(p) > p->s->limit_s)
            return false;
        play_events(p);
        cluster_idle(p->c, TICK);
    }
}

/* ---- what came out ---------------------------------------------------------------- */

static void peers_values(struct play *p, uint32_t node, scenario_values v)
{
    static engine_peer peers[SCENARIO_NODES_MAX];
    engine *e = sim_engine(cluster_sim(p->c), node);
    double lost = 0, received = 0, gaps = 0, rtt[SCENARIO_NODES_MAX];
    size_t known = 0;
    if (!e)
        return;
    uint32_t n = engine_get_peers(e, peers, SCENARIO_NODES_MAX, sim_now(cluster_sim(p->c)));
    for (uint32_t i = 0; i < n; i++) {
        lost += (double)peers[i].lost;
        received += (double)peers[i].received;
        gaps += (double)peers[i].gaps;
        if (peers[i].rtt >= 0)
            rtt[known++] = (double)peers[i].rtt / 1e6;
    }
    v[METRIC_RTT][node] = scenario_quantile(rtt, known, 0.5);
    if (gaps > 0)
        v[METRIC_LOSS_RUN][node] = lost / gaps;
    if (lost + received > 0)
        v[METRIC_LOSS_LEDGER][node] = lost / (lost + received);
    engine_counters n2;
    engine_get_counters(e, &n2);
    v[METRIC_DUPLICATES][node] = (double)n2.duplicate;
}

static void collect(struct play *p, scenario_values v)
{
    struct sim_totals totals;
    double best = 0;
    sim_get_totals(cluster_sim(p->c), &totals);
    for (int m = 0; m < METRIC_COUNT; m++)
        for (int i = 0; i < SCENARIO_NODES_MAX; i++)
            v[m][i] = NAN;
    for (uint32_t i = 0; i < (uint32_t)p->s->nodes; i++)
        if (p->trainer[i].phase == TRAINER_DONE)
            best = fmax(best, p->trainer[i].accuracy);
    for (uint32_t i = 0; i < (uint32_t)p->s->nodes; i++) {
        struct trainer *t = &p->trainer[i];
        v[METRIC_DONE][i] = t->phase == TRAINER_DONE;
        v[METRIC_STEPS][i] = (double)t->steps;
        v[METRIC_RETURNED][i] = (double)t->returned;
        scenario_course_values(&t->course, &v[METRIC_JOINED][i], &v[METRIC_GAP][i]);
        v[METRIC_LONGEST_WAIT][i] = t->wait_count ? t->longest_wait : NAN;
        v[METRIC_WAIT_P50][i] = 1000 * scenario_quantile(t->waits, t->wait_count, 0.5);
        v[METRIC_WAIT_P95][i] = 1000 * scenario_quantile(t->waits, t->wait_count, 0.95);
        v[METRIC_LOSS_LINK][i] = totals.sent ? (double)totals.lost / (double)totals.sent : NAN;
        peers_values(p, i, v);
        v[METRIC_LOSS_GAP][i] = fabs(v[METRIC_LOSS_LINK][i] - v[METRIC_LOSS_LEDGER][i]);
        if (t->phase != TRAINER_DONE)
            continue;
        v[METRIC_ACCURACY][i] = t->accuracy;
        v[METRIC_ACCURACY_GAP][i] = best - t->accuracy;
        v[METRIC_COVERAGE][i] = t->coverage_sum / (double)t->rounds;
        v[METRIC_LEAST_COVERAGE][i] = t->least_coverage;
    }
}

static void print_nodes(struct play *p, scenario_values v)
{
    printf("  %-4s  %9s  %4s  %8s  %8s  %8s  %9s  %9s  %8s\n", "node", "lost", "run", "rtt", "coverage",
           "accuracy", "wait p50", "wait p95", "longest");
    char run[16];
    for (int i = 0; i < (int)p->s->nodes; i++)
        printf("  %-4d  %7.2f %%  %4s  %5.1f ms  %8.4f  %6.2f %%  %6.1f ms  %6.1f ms  %6.2f s\n", i + 1,
               100 * v[METRIC_LOSS_LEDGER][i], scenario_figure(v[METRIC_LOSS_RUN][i], run), v[METRIC_RTT][i], v[METRIC_COVERAGE][i],
               100 * v[METRIC_ACCURACY][i], v[METRIC_WAIT_P50][i], v[METRIC_WAIT_P95][i],
               v[METRIC_LONGEST_WAIT][i]);
}

static bool prepare(struct play *p)
{
    struct sim_config config = {.nodes = (uint32_t)p->s->nodes,
                                .seeds = (uint32_t)p->s->seeds,
                                .sealed = p->s->sealed,
                                .seed = (uint64_t)p->s->seed,
                                .rate_bps = (uint64_t)(p->s->rate_mbit * 1e6),
                                .part_continue = p->s->go_on};
    if (!trainers_open(p))
        return false;
    p->c = cluster_new(&config, (uint64_t[]){p->learner.tensor[0].count, p->learner.tensor[1].count}, 2);
    if (!p->c) {
        fputs("sleet-sim: out of memory\n", stderr);
        return false;
    }
    memcpy(p->link, p->s->link, sizeof p->link);
    for (uint32_t i = 0; i < config.nodes; i++) {
        p->trainer[i] = (struct trainer){.play = p, .node = i};
        sim_kill(cluster_sim(p->c), i); /* each starts at its time */
        if (p->s->nat & 1u << i)
            sim_rebind(cluster_sim(p->c), i);
    }
    set_links(p);
    cluster_on_report(p->c, trainer_reported, p);
    return true;
}

int sim_scenario(const char *path)
{
    static struct scenario s;
    static struct play p;
    static scenario_values v;
    if (!scenario_load(&s, path, stderr))
        return 2;
    if (scenario_has(&s, SCENARIO_CLOCK)) {
        fprintf(stderr, "sleet-sim: %s moves the wall clock, and simulated nodes have none; "
                        "use lab run --backend uml\n", s.name);
        return SIM_SCENARIO_LEFT_OUT;
    }
    p = (struct play){.s = &s};
    printf("%s: %g nodes, simulated%s%s\n", s.name, s.nodes, s.about[0] ? "; " : "", s.about);
    bool ready = prepare(&p), over = ready && conduct(&p);
    struct scenario_verdict verdict = {0, 1};
    if (ready) {
        collect(&p, v);
        print_nodes(&p, v);
        verdict = scenario_check(&s, v, METRICS_LEFT_OUT, stdout);
        if (!over)
            printf("  FAILED: the run came to its end (at %.1f s, step %llu)\n", play_now(&p),
                   (unsigned long long)p.top_step);
        verdict.failed += !over;
        printf("sleet-sim: %d passed, %d failed\n", verdict.passed, verdict.failed);
    }
    cluster_free(p.c);
    trainers_close(&p);
    return verdict.failed ? 1 : 0;
}
