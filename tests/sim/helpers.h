/* helpers.h - what the simulated tests share. */
#ifndef TESTS_SIM_HELPERS_H
#define TESTS_SIM_HELPERS_H
#include "sim/cluster.h"
#include "sleet_test.h"
#include <string.h>

#define CLEAN_LINK ((struct sim_link){.delay = US(200)})

static inline uint32_t nodes_of(cluster *c)
{
    return sim_nodes(cluster_sim(c));
}

/* values = a multiple of 2^-12 below 1/4 in absolute value: sums of 64 are exact. */
static inline void fill_grid(cluster *c, sleet_rng *rng)
{
    for (uint32_t i = 0; i < nodes_of(c); i++)
        for (uint64_t k = 0; k < cluster_elements(c); k++)
            cluster_values(c, i)[k] = (float)((int32_t)rng_below(rng, 2048) - 1024) * 0x1p-12f;
}

static inline void fill_constant(cluster *c, float value)
{
    for (uint32_t i = 0; i < nodes_of(c); i++)
        for (uint64_t k = 0; k < cluster_elements(c); k++)
            cluster_values(c, i)[k] = value;
}

static inline bool identical(cluster *c)
{
    for (uint32_t i = 1; i < nodes_of(c); i++)
        if (memcmp(cluster_values(c, 0), cluster_values(c, i),
                   cluster_elements(c) * sizeof(float)) != 0)
            return false;
    return true;
}

/* Of element k, over the nodes. */
static inline double mean_at(cluster *c, uint64_t k)
{
    double sum = 0;
    for (uint32_t i = 0; i < nodes_of(c); i++)
        sum += (double)cluster_values(c, i)[k];
    return sum / nodes_of(c);
}

/* Variance between the nodes, the mean over the elements. */
static inline double variance_between(cluster *c)
{
    double sum = 0;
    for (uint64_t k = 0; k < cluster_elements(c); k++) {
        double mean = mean_at(c, k);
        for (uint32_t i = 0; i < nodes_of(c); i++) {
            double off = (double)cluster_values(c, i)[k] - mean;
            sum += off * off;
        }
    }
    return sum / (double)cluster_elements(c) / nodes_of(c);
}

static inline bool all_complete(cluster *c)
{
    for (uint32_t i = 0; i < nodes_of(c); i++) {
        const struct cluster_report *r = cluster_report(c, i);
        if (!r->reported || r->error != SLEET_OK || r->report.coverage != 1.0 ||
            r->report.expected != nodes_of(c))
            return false;
    }
    return true;
}

/* A cluster on clean links in which every node contributes; then `config->link`
 * applies.  NULL when it does not get there. */
static inline cluster *ready_cluster(const struct sim_config *config, const uint64_t *counts,
                                     uint32_t tensors)
{
    struct sim_config clean = *config;
    clean.link = CLEAN_LINK;
    cluster *c = cluster_new(&clean, counts, tensors);
    if (!c)
        return NULL;
    cluster_idle(c, SEC(4));
    for (int round = 0; round < 6; round++) {
        if (!cluster_round(c, NULL))
            break;
        if (round > 0 && all_complete(c)) {
            sim_set_link(cluster_sim(c), SIM_ALL, SIM_ALL, &config->link);
            return c;
        }
        cluster_idle(c, MS(100)); /* what each node now is has to get around */
    }
    cluster_free(c);
    return NULL;
}

/* Guarantee 10 on every node: datagrams in and final rounds add up. */
static inline bool ledger_side_balances(const ledger_side *s)
{
    uint64_t sum = 0;
#define LEDGER_ADD(field) sum += s->field;
    LEDGER_FATE_MAP(LEDGER_ADD)
#undef LEDGER_ADD
    return sum == s->expected;
}

static inline bool ledger_balances(cluster *c)
{
    for (uint32_t i = 0; i < nodes_of(c); i++) {
        engine *e = sim_engine(cluster_sim(c), i);
        engine_counters k;
        engine_round rounds[64];
        if (!e)
            continue;
        engine_get_counters(e, &k);
        if (k.in != k.accepted + k.duplicate + k.corrupt + k.foreign + k.stale + k.overflow)
            return false;
        uint32_t n = engine_get_rounds(e, cluster_set(c, i), rounds, 64);
        for (uint32_t r = 0; r < n; r++)
            if (rounds[r].final && (!ledger_side_balances(&rounds[r].scatter) ||
                                    !ledger_side_balances(&rounds[r].gather)))
                return false;
        if (k.overlap)
            return false;
    }
    return true;
}
#endif
