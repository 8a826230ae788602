/* sleet-train-print.h - what a run counts, and what it prints. */
#ifndef SLEET_TRAIN_PRINT_H
#define SLEET_TRAIN_PRINT_H
#include "sleet-train.h"

struct train_print {
    bool json, bar; /* bar: the progress bar on a terminal */
    uint64_t steps, steps_per_epoch;
    const struct data_kind *data; /* names the metric */
    bool bar_open; /* a bar is on the present line */
    double every;  /* --every auto: as it was told last */
    uint32_t batch, nodes, global; /* likewise */
};

struct train_line {
    uint64_t step;  /* done so far */
    uint64_t round; /* of the job */
    uint32_t group; /* nodes of that round */
    uint32_t epoch; /* from 1 */
    double loss, rate;
    double coverage; /* of the step's round; below 0: it had none */
    double wait;     /* seconds waited for the last round */
    double score;    /* the metric on the test samples; below 0: not measured */
    double seconds;  /* since the first step */
};

/* Kept over the run, and in a checkpoint: all doubles, counts are whole. */
struct train_tally {
    double steps;            /* taken by this node */
    double skipped, stalled; /* rounds missed, rounds the daemon did not answer */
    double behind;           /* rounds of gradients without a step */
    double drawn;            /* samples */
    double rounds, coverage_sum, least_coverage, longest_wait;
    double loss_sum, loss_count; /* of the epoch */
    /* simulation: evaluations and the sums of their scores */
    double evaluations, averaged, score[NODES_MAX];
    double mean_statistics[NODES_MAX]; /* with --bn-stats local: the same with the mean of all statistics */
    struct trigger trigger; /* of the node, in a simulation of the first */
};

struct train_done {
    struct train_tally tally;
    double score;          /* this node; simulation: worst node, mean of the last 5 */
    double averaged_score; /* averaged model; simulation: mean of the last 5 */
    double final_score;    /* simulation: after the exact last round */
    double final_loss;     /* likewise, on training samples, see learner_loss() */
    double mean_statistics; /* likewise, with --bn-stats local; else below 0 */
    double seconds;
    double slowest_s, timed; /* sum over steps since the start of the process of the longest of any node, a real node's own; and
                                how many */
    const struct train_batch *batch; /* a node's, at the end */
    struct train_memory memory;      /* likewise; simulation: mean moments of a node */
    double pace_ms, contributors; /* simulation with --straggle: virtual time of a round, and who is in it; else 0 */
    double bytes; /* simulation: sent by a node, up to the exact last round */
    double across; /* of them to other sites; below 0: there is one */
    double keep_inside, keep_across; /* share of a gradient's elements at the end; below 0: the same everywhere */
    double virtual_s;   /* simulation with --kill or --blocking: that it took; else 0 */
    uint32_t kills;
    double backward_s; /* simulation: processor time of a backward pass; else 0 */
    bool sliced;
    uint32_t still, slices_short; /* simulation with --slices: see struct sim_watch */
    double wait_sum, waits; /* simulation in lock step: s until the last node had its result, and rounds behind steps */
};

/* How and of what it prints. */
struct train_print train_print_of(const struct train_options *, const struct learner *);
void train_print_settings(const struct train_print *, const struct train_options *,
                          const struct learner *, uint32_t nodes);
void train_print_step(struct train_print *, const struct train_line *);
void train_print_epoch(struct train_print *, const struct train_line *);
void train_print_done(struct train_print *, const struct train_done *, uint32_t sim_nodes);
/* --stop-at has ended the run. */
void train_print_stopped(struct train_print *, const struct train_options *, uint64_t step, const struct train_batch *);
/* Batches of --batch-control, where they are not what was told last. */
void train_print_batch(struct train_print *, uint64_t step, const struct train_batch *);
/* --every auto has chosen, if it is not what was told last. */
void train_print_every(struct train_print *, uint64_t step, const struct trigger *);
/* The step after which the node was parked; seconds is how long it was, below 0: it begins. */
void train_print_parked(struct train_print *, uint64_t step, double seconds);
/* "sleet-train: " and a sentence on stderr, on a line of its own.  Returns EXIT_FAILED. */
int train_fail(struct train_print *, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The sentence for a loss that is no number. */
int train_diverged(struct train_print *, uint64_t step, double rate);

/* Count a round, or one node's part in it. */
void tally_round(struct train_tally *, double coverage, uint64_t skipped);
#endif
