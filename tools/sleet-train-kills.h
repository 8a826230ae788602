/* sleet-train-kills.h - simulated nodes that die and start anew (--kill), and rounds that wait for them (--blocking). */
#ifndef SLEET_TRAIN_KILLS_H
#define SLEET_TRAIN_KILLS_H
#include "sleet-train.h"
#include "sim/cluster.h"

struct kills {
    const struct train_options *options;
    cluster *cluster;
    struct train_node *nodes;
    sleet_rng rng;
    bool away[SLEET_GROUP_MAX]; /* dead, or started anew and not yet in a round with the others */
    uint32_t victim, count;     /* the newest, and how many there were */
    bool over;                  /* nobody dies any more */
    sleet_time began;
};

/* From now on a node drawn anew dies every --kill seconds of virtual time.  It is back some seconds later as a new
 * process, with the model of the start, and takes that of the others; its place in its data it keeps, as nodes hold it
 * for each other (docs/architecture.md). */
void kills_begin(struct kills *, const struct train_options *, cluster *, struct train_node *nodes);
/* No more of them; who is dead is back at once. */
void kills_end(struct kills *);
/* Virtual seconds since it began. */
double kills_seconds(const struct kills *);
static inline bool kills_dead(const struct kills *k, uint32_t node)
{
    return k->cluster && !sim_engine(cluster_sim(k->cluster), node);
}
bool kills_any_away(const struct kills *);
/* What the node's newest round says of where it is. */
void kills_round(struct kills *, uint32_t node, uint32_t flags);

/* Plain all-reduce: exact rounds until one is of all nodes, those that are away too; nobody's model changes before.
 * Adds what it took to *wait; false when it comes to no end. */
bool round_of_all(cluster *, struct train_node *nodes, uint32_t n, const sleet_round_options *, double *wait);
#endif
