/* batch.h - batches that follow measured step times (OmniLearn, arXiv 2503.17469).
 *
 * Nodes of different or changing speed take batches of different size, so that their steps last
 * equally long, while the samples of all steps together stay what they are.  Every node works the
 * next batches out of one table that all have: integers only, so that all come to the same ones.
 *
 * The paper moves each batch to b mean(t) / t and spreads what the sum is then off by.  Here the
 * batches become proportional to the speeds b / t at once, which is where that leads; bounds that
 * a batch meets are made up for by the others. */
#ifndef TRAIN_BATCH_H
#define TRAIN_BATCH_H
#include <stdbool.h>
#include <stdint.h>

#define BATCH_NODES_MAX 64
#define BATCH_MAX 65536 /* samples of a step */

/* What becomes of the batches when nodes come and go.  X(name, value, text)
 * constant-batch: the others share what a lost one had.  linear-lr: the samples of a step of all
 * are in proportion to the nodes, and so is the learning rate.  keep: likewise, at the rate there
 * was. */
#define ON_RESIZE_MAP(X)                                                                           \
    X(RESIZE_CONSTANT, 0, "constant-batch")                                                        \
    X(RESIZE_LINEAR, 1, "linear-lr") X(RESIZE_KEEP, 2, "keep")

enum on_resize {
#define RESIZE_X(name, value, text) name = value,
    ON_RESIZE_MAP(RESIZE_X)
#undef RESIZE_X
};

struct batch_control {
    uint32_t global;      /* samples of a step of all `nodes` together */
    uint32_t nodes;       /* that the job has when it is whole */
    uint32_t least, most; /* of one node */
    double deadband;      /* step times that far from their mean are left alone, fraction of it */
    enum on_resize on_resize;
};

/* A node's row of the table. */
struct batch_row {
    uint32_t batch;   /* samples of its step; 0: it is not there, and gets none */
    uint32_t time_us; /* of its steps without waiting, mean since the last table; 0: not measured */
};

/* The samples of a step of all where so many nodes are there. */
uint32_t batch_global(const struct batch_control *, uint32_t there);
/* What the learning rate is then multiplied by. */
double batch_rate(const struct batch_control *, uint32_t there);

/* Set the next batch of each of `n` rows (at most BATCH_NODES_MAX); false when all stay as they
 * are.  Their sum is batch_global(), unless the bounds do not allow it: then each is at the bound.
 */
bool batch_balance(const struct batch_control *, struct batch_row *, uint32_t n);
#endif
