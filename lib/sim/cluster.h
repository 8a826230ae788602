/* cluster.h - a simulated trainer on every node of a simulation.
 *
 * All trainers hold the same set "model" of f32 tensors.  A node without a
 * running engine or frozen takes part in no round until it is back. */
#ifndef SIM_CLUSTER_H
#define SIM_CLUSTER_H
#include "sim/sim.h"

typedef struct cluster cluster;

/* The outcome of a node's part in the last round. */
struct cluster_report {
    bool started;  /* engine_start() was called and succeeded */
    bool reported; /* the event has come */
    int error;     /* of engine_start(), or of the event */
    sleet_time started_at, reported_at;
    sleet_duration deadline; /* of the options */
    sleet_report report;
};

/* NULL when out of memory or the set is refused.  `counts` is copied: elements
 * of each tensor.  Registers the set on all nodes but auxiliaries at time 0. */
cluster *cluster_new(const struct sim_config *, const uint64_t *counts, uint32_t tensors);
void cluster_free(cluster *);

sim *cluster_sim(cluster *); /* borrowed */
int cluster_set(const cluster *, uint32_t node); /* the engine's handle of the set */
uint64_t cluster_elements(const cluster *);
/* The node's values, all tensors one after another; the caller may write
 * between rounds. */
float *cluster_values(cluster *, uint32_t node);
/* Did the node own the run in its last round?  Of sets whose owners stay. */
bool cluster_owns(const cluster *, uint32_t node, uint32_t run);
/* What it carries over (estimator carry), laid out as the values. */
float *cluster_residual(cluster *, uint32_t node);
const struct cluster_report *cluster_report(const cluster *, uint32_t node);

/* After sim_restart(): register the set again. 0 or a SLEET_E code. */
int cluster_register(cluster *, uint32_t node);
void cluster_set_active(cluster *, uint32_t node, bool active); /* false: the trainer pauses */

/* Of its contributions where the round's options give none; 0: the default. */
void cluster_set_weight(cluster *, uint32_t node, double weight);

/* Start a round on one node now: 0 or a SLEET_E code. */
int cluster_start(cluster *, uint32_t node, const sleet_round_options *);
/* Start a round on every node that runs and is active, run until all of them
 * have reported, and put the results into the values.  NULL means defaults.
 * False when a report is missing 1 ms after the node's deadline. */
bool cluster_round(cluster *, const sleet_round_options *);
/* The same where only the nodes with `begins` start: the others do as soon as they learn that there is a round
 * for them, or do not take part: their report then says so. */
bool cluster_round_from(cluster *, const bool *begins, const sleet_round_options *);
/* Call fn whenever a node's round has reported and its values are in place; it
 * may start the next one. */
void cluster_on_report(cluster *, void (*fn)(cluster *, uint32_t node, void *), void *arg);
/* Let virtual time pass without a round, e.g. for the nodes to meet. */
void cluster_idle(cluster *, sleet_duration d);

/* Reports that came later than their deadline in virtual time, since the
 * start, thawed nodes' open rounds not counted; 0 is right. */
uint64_t cluster_overdue(const cluster *);
#endif
