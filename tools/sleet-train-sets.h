/* sleet-train-sets.h - the sets in which a real node averages; functions return a code of libsleet. */
#ifndef SLEET_TRAIN_SETS_H
#define SLEET_TRAIN_SETS_H
#include "sleet-train.h"
#include "sleet.h"

struct train_sets {
    sleet *ctx; /* NULL: no averaging */
    sleet_set *set;
    sleet_set *errors;  /* --ef-average: of what was left out */
    sleet_set *tables;  /* --batch-control, --slices */
    sleet_set *handing; /* --average owner: of the parameters, and the schedule */
    float *tensors;     /* in the set: packed from the values */
    float *left_out;    /* in `errors`; between its rounds scratch */
    float table[TABLE_FLOATS]; /* in `tables` */
    float schedule;     /* in a set: steps done, so that joiners learn where the training is */
    uint8_t *mine;      /* by run: does this node own it? */
    float *parts;       /* --partition: what they were merged in */
};

/* The memory; false when there is not enough. */
bool sets_open(struct train_sets *, const struct learner *);
/* Estimator carry: learner.params of what was left out so far; else NULL.  What is there before sets_connect()
 * goes with the first contribution. */
float *sets_residual(struct train_sets *, const struct train_options *);
/* Connect to the daemon, make and register the sets. */
int sets_connect(struct train_sets *, struct train_node *);
/* A round before the first step: a node that comes to a job has a say only once it has the model, and its
 * steps until then would be for nothing. */
int sets_first_round(struct train_sets *, struct train_node *, sleet_report *);
void sets_close(struct train_sets *);
/* A round of what was left out. */
int sets_average_errors(struct train_sets *, const struct train_node *);
/* A round of the table that batches and slices follow, and the next batch and slices. */
int sets_share_table(struct train_sets *, struct train_node *, uint64_t step);
/* Behind the reduce-scatter that `report` is of: the step with the node's share of the gradient, then
 * the round in which all hand out theirs, whose report takes the place of the first. */
int sets_hand_out(struct train_sets *, struct train_node *, uint64_t step,
                  const sleet_round_options *, sleet_report *report);
#endif
