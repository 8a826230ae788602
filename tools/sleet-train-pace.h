/* sleet-train-pace.h - simulated nodes that go on by themselves: a step takes virtual time, and who is slow
 * misses rounds, as real ones do. */
#ifndef SLEET_TRAIN_PACE_H
#define SLEET_TRAIN_PACE_H
#include "sleet-train-print.h"
#include "sim/cluster.h"

struct pace {
    const struct train_options *options;
    cluster *cluster;
    struct train_node *nodes;
    struct train_tally *tally;
    float *scratch;         /* learner.params floats */
    uint64_t steps;         /* at which a node is done */
    uint64_t base, newest;  /* the job's round before the first step, and now */
    uint64_t until;         /* the one to run to */
    sleet_time began;
    struct runner {
        struct pace *pace;
        uint32_t node;
        uint64_t step; /* made by the job when the node was last there */
        bool done;
    } runner[SLEET_GROUP_MAX];
    double loss, losses, coverage, reports, wait; /* since the last line; sums, and the longest */
    double contributors, rounds;                  /* in all */
    bool failed;
};

/* The nodes begin; everything is borrowed, and set but for what is below `steps`. */
void pace_start(struct pace *);
/* Until the job has made so many steps: what the line says of them.  False: a node's round failed. */
bool pace_run(struct pace *, uint64_t steps, struct train_line *);
/* Until all nodes have come to the last step. */
bool pace_finish(struct pace *);
/* Virtual ms of a step so far. */
double pace_ms(const struct pace *);
#endif
