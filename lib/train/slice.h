/* slice.h - slices of a model, of which each node trains some (partial parameter updates, arXiv 2509.22418).
 *
 * A slice is made of units: columns or rows of the model's matrices, as each of them says, so that a
 * slice of a transformer is heads of its attention and units of its feed-forward layers, with the weights before and
 * behind them.  What is in no matrix, normalisations and biases, is small and all nodes train it.
 *
 * What nodes send are fragments, so the parameters have a second order: what all train, then slice after slice, each
 * beginning with a fragment. */
#ifndef TRAIN_SLICE_H
#define TRAIN_SLICE_H
#include "train/model.h"

#define SLICES_MAX 1024
#define SLICE_NODES_MAX 64

struct slices {
    uint32_t n; /* slices; 0: there are none, and the order is the model's */
    size_t length;     /* of that order: whole fragments, so that there are gaps behind slices */
    uint32_t *order;   /* where in the model what stands there is; SLICES_GAP: it is always 0 */
    uint32_t fragment; /* places in a fragment */
    uint32_t *of;      /* of each fragment: its slice; n: all nodes train it */
};
#define SLICES_GAP UINT32_MAX

/* 2 to SLICES_MAX slices.  False when out of memory; slices_close() also then. */
bool slices_open(struct slices *, const model *, uint32_t n, uint32_t fragment);
void slices_close(struct slices *);
/* The model's parameters from that order, and into it. */
void slices_to_model(const struct slices *, const float *ordered, float *params);
void slices_from_model(const struct slices *, const float *params, float *ordered);

/* Who trains what: bit i of who[slice] says that node i does.  `nodes`: the bits of those who are there.  Each slice has
 * `members` of them, or all where they are fewer, and as near as may be each node has as many slices.  A pure
 * function (rendezvous hashing with bounded loads): all nodes that know the same nodes find the same, and what
 * a node that leaves had goes to others, while most of the rest stays where it is.  False when out of memory. */
bool slices_assign(uint32_t slices, uint32_t members, uint64_t nodes, uint64_t *who);
#endif
