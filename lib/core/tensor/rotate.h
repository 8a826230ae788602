/* The transform before low-bit codecs: it spreads what a tensor holds evenly over the elements
 * of many fragments, so that each fragment looks Gaussian and a lost one takes a little of
 * everything (randomized Hadamard transform; arXiv 2105.08339, 2108.08842).
 *
 * Fragments form groups of 64, what is left at the tensor's end groups of 32, 16 .. 1.  A group
 * of m fragments is multiplied by random signs, then by a Hadamard matrix down its columns (of
 * length m) and one along its rows (of length 288), over sqrt(288 m).  A last fragment of fewer
 * elements is a group of its own, cut into blocks of powers of two, largest first.  The transform
 * is linear, orthonormal but for rounding, and the same at all nodes with the same seed; so what
 * was rotated can be added.  Matrices and signs: docs/protocol.md, "Rotation". */
#ifndef TENSOR_ROTATE_H
#define TENSOR_ROTATE_H
#include <stdint.h>

#define ROTATE_FRAGMENTS 64 /* of a whole group */

/* Transform in place the group that begins at fragment `at` of a tensor of `count` elements; x is
 * the tensor's first element.  The number of its fragments, 0 at the tensor's end, so that
 * groups can be done one by one from at = 0.  Values beyond FLT_MAX / sqrt(288 m) may become
 * infinite. */
uint32_t rotate_group(float *x, uint64_t count, uint64_t seed, uint64_t at);
/* Likewise, its inverse. */
uint32_t rotate_group_back(float *x, uint64_t count, uint64_t seed, uint64_t at);

/* All groups of a tensor. */
void rotate_forward(float *x, uint64_t count, uint64_t seed);
void rotate_inverse(float *x, uint64_t count, uint64_t seed);
#endif
