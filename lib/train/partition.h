/* partition.h - a wide perceptron learnt in thin parts that never talk, and put together afterwards (Reducing the
 * training time by partitioning, arXiv 1511.02954).
 *
 * Part j of n is the mlp with units j h / n to (j + 1) h / n - 1 of each hidden layer of h.  The whole is made of
 * the parts' first layers side by side, their others as blocks of a diagonal with 0 beside them, and their
 * outputs divided by the number of parts: it says the mean of what the parts say.
 *
 * What nodes average to merge is a vector of partition_merged() floats, 0 but for the node's own part, a 1 in the
 * place of its number, and its output biases behind.  The mean over whichever nodes gave one is enough: the
 * mean at the number says by how much a part was divided, so nobody has to count, and two nodes may give one part. */
#ifndef TRAIN_PARTITION_H
#define TRAIN_PARTITION_H
#include "train/model.h"

/* NULL, or in a sentence why the mlp has not so many parts. */
const char *partition_refuse(const struct model_shape *whole, uint32_t parts);
/* The shape of part j. */
struct model_shape partition_shape(const struct model_shape *whole, uint32_t parts, uint32_t j);
/* Parameters of the mlp of this shape. */
size_t partition_params(const struct model_shape *);

/* Part j of the whole's parameters, with its output biases: where it starts from. */
void partition_cut(const struct model_shape *whole, uint32_t parts, uint32_t j, const float *params, float *part);

/* Floats of what is averaged. */
size_t partition_merged(const struct model_shape *whole, uint32_t parts);
/* What the node with part j gives. */
void partition_give(const struct model_shape *whole, uint32_t parts, uint32_t j, const float *part, float *given);
/* Parts in the mean of what nodes gave. */
uint32_t partition_present(const struct model_shape *whole, uint32_t parts, const float *mean);
/* The whole, from the mean of what nodes gave.  `params` holds the values that it started from: units of which nobody
 * had the part stay as they are, but say nothing yet (outputs 0).  Returns the parts that were there; with none
 * `params` is left alone. */
uint32_t partition_merge(const struct model_shape *whole, uint32_t parts, const float *mean, float *params);
#endif
