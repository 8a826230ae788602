#include "sleet-train-kills.h"
#include <string.h>

#define TRIES 1000 /* rounds, until one is of all */

static void strike(sim *, void *);

static void rise(sim *s, void *arg)
{
    struct kills *k = arg;
    struct train_node *n = &k->nodes[k->victim];
    if (!kills_dead(k, k->victim))
        return;
    if (sim_restart(s, k->victim) && cluster_register(k->cluster, k->victim) == SLEET_OK)
        learner_init(n->learner, k->options->seed, n->values);
}

static void next(struct kills *k)
{
    sim *s = cluster_sim(k->cluster);
    sim_at(s, time_add(sim_now(s), (sleet_duration)(k->options->kill * 1e9)), strike, k);
}

static void strike(sim *s, void *arg)
{
    struct kills *k = arg;
    if (k->over)
        return;
    k->victim = rng_below(&k->rng, k->options->sim);
    k->away[k->victim] = true;
    k->count++;
    sim_kill(s, k->victim);
    sim_at(s, time_add(sim_now(s), (sleet_duration)(k->options->down * 1e9)), rise, k);
    next(k);
}

void kills_begin(struct kills *k, const struct train_options *o, cluster *c, struct train_node *nodes)
{
    *k = (struct kills){.options = o, .cluster = c, .nodes = nodes, .rng = {o->seed}, .began = sim_now(cluster_sim(c))};
    if (o->kill > 0)
        next(k);
}

void kills_end(struct kills *k)
{
    k->over = true;
    if (k->count)
        rise(cluster_sim(k->cluster), k);
}

double kills_seconds(const struct kills *k)
{
    return (double)time_since(sim_now(cluster_sim(k->cluster)), k->began) * 1e-9;
}

bool kills_any_away(const struct kills *k)
{
    bool any = false;
    for (uint32_t i = 0; k->cluster && i < k->options->sim; i++)
        any |= k->away[i];
    return any;
}

void kills_round(struct kills *k, uint32_t node, uint32_t flags)
{
    if (!(flags & (SLEET_JOINING | SLEET_PARKED)) && !(k->cluster && kills_dead(k, node)))
        k->away[node] = false;
}

static bool all_in(cluster *c, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        const struct cluster_report *r = cluster_report(c, i);
        if (!r->reported || r->error || r->report.coverage < 1 || r->report.expected < n || r->report.flags & SLEET_JOINING)
            return false;
    }
    return true;
}

bool round_of_all(cluster *c, struct train_node *nodes, uint32_t n, const sleet_round_options *options, double *wait)
{
    sleet_round_options exact = *options;
    sleet_time began = sim_now(cluster_sim(c));
    exact.exact = 1;
    for (int i = 0; i < TRIES; i++) {
        if (!cluster_round(c, &exact))
            return false;
        if (all_in(c, n)) {
            *wait += (double)time_since(sim_now(cluster_sim(c)), began) * 1e-9;
            return true;
        }
        for (uint32_t k = 0; k < n; k++) {
            const struct cluster_report *r = cluster_report(c, k);
            if (r->reported && !r->error && r->report.flags & SLEET_JOINING)
                learner_unpack(nodes[k].learner, cluster_values(c, k), nodes[k].values);
            node_give(&nodes[k], cluster_values(c, k));
        }
        cluster_idle(c, MS(100)); /* whoever starts anew has to meet the others */
    }
    return false;
}
