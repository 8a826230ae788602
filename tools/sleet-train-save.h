/* sleet-train-save.h - what outlives a process: checkpoints, and the state that nodes fetch from each other. */
#ifndef SLEET_TRAIN_SAVE_H
#define SLEET_TRAIN_SAVE_H
#include "sleet-train-print.h"

/* ---- checkpoints (sleet-train-save.c) ------------------------------------ */

/* What a run hands over to be saved, or gets back. */
struct train_state {
    struct train_print *print;
    struct train_tally *tally;
    struct train_node *node;
    float *residual; /* estimator carry: learner.params of what was left out; else NULL */
};

/* Resume, or claim the file's name by a first checkpoint; without --checkpoint nothing.
 * The step to go on from is in *step.  Exit status. */
int train_checkpoint_open(const struct train_state *, uint64_t *step);
/* Save where one is due between the steps `before` and `step`, and at the last step.  A failure
 * is told and tried again at the next one; at the last step it is the exit status. */
int train_checkpoint_step(const struct train_state *, uint64_t before, uint64_t step);
/* Does the run end behind `step`, to go on later?  Then this saves it and says so; exit status. */
bool train_stops(const struct train_options *, uint64_t step);
int train_checkpoint_stop(const struct train_state *, uint64_t step);

/* What `drawn` samples mean the same place in the data for: options, data and shard. */
uint64_t train_place(const struct train_state *);

/* ---- state of the job (sleet-train-state.c) -------------------------------- */

struct sleet;
struct sleet_set;
struct train_share {
    struct sleet *ctx;
    struct sleet_set *set;
    float *schedule; /* in the set: the step */
    float *tensors;  /* in the set: packed */
    bool due, told;
};

/* Take the newest state that other nodes publish, if it is of a later step than *step; else
 * all is as it was.  Exit status: only a daemon that is gone is a failure. */
int train_state_fetch(const struct train_state *, struct train_share *, uint64_t *step);
/* Publish where it is due between the steps. */
void train_state_publish(const struct train_state *, struct train_share *, uint64_t before, uint64_t step);
#endif
