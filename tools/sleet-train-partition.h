/* sleet-train-partition.h - the first epochs in thin parts, without a packet, and the merge (--partition). */
#ifndef SLEET_TRAIN_PARTITION_H
#define SLEET_TRAIN_PARTITION_H
#include "sleet-train-print.h"
#include "sleet-train-sets.h"

struct sim_config;

/* What came of it. */
struct train_parts {
    uint64_t steps;        /* taken by each part */
    uint32_t present, all; /* parts in the merged model */
    double loss;           /* mean of a part's last epoch, and of all parts */
};

/* Part `shard` of the node's model, learnt with its data, and what it gives to the merge, the caller's to free.  NULL,
 * and what is wrong in *why. */
float *parts_learn(struct train_node *, uint32_t shard, struct train_parts *, const char **why);

/* Merge what the nodes of the job give; the model is in the node's values.  A code of libsleet. */
int parts_merge(struct train_sets *, struct train_node *, const float *given, struct train_parts *);

/* Both for all nodes of a simulation with that network, and what is to tell of it.  The steps are in the tally, the
 * bytes that all nodes sent are taken from *bytes.  Exit status. */
int parts_simulate(struct train_node *, const struct sim_config *, struct train_print *, struct train_tally *,
                   double *bytes);

void parts_print(struct train_print *, const struct train_parts *);
#endif
