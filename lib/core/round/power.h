/* power.h - what goes over an edge whose differences are of low rank: PowerGossip (Vogels, Karimireddy and
 * Jaggi, arXiv 2008.01425).
 *
 * Of a matrix X (rows x cols) the two ends of an edge find a few directions of their difference by power
 * iteration: in rounds of odd number each sends p = X Q and takes P = p of the larger id - p of the
 * smaller, in those of even number q = X^T P and Q likewise.  The sides that are multiplied with have orthonormal
 * columns.  Then both add w (P Q^T), the larger id with the opposite sign: what one gains the other loses, to the bit,
 * as both reckon it from the same floats in the same order.  Tensors that are no matrices, and matrices
 * so small that it would cost no less, go whole.
 *
 * All of it is one vector of floats for an edge and a round, which counts as a whole or not at all.  The
 * sides are kept from round to round, a start from the two ids.  A tag stands for their history: ends whose
 * tags differ have lost step, and begin anew. */
#ifndef ROUND_POWER_H
#define ROUND_POWER_H
#include "tensor/layout.h"

/* A part of the vector: a matrix, or elements of a tensor as they are. */
struct power_piece {
    uint32_t tensor, rows, cols; /* rows 0: as they are */
    uint64_t offset, count;      /* of those elements */
    uint64_t at, floats;         /* in the vector */
    uint64_t side;               /* in the sides: rows x rank of P, then cols x rank of Q */
};

/* The vector of a round, the same for all edges; shared, each user frees it. */
struct power_map {
    uint32_t users, n, rank, tensors;
    bool odd; /* the round's number is */
    uint64_t floats, sides; /* of the vector; of P and Q of all matrices */
    struct power_piece *piece; /* in order of the tensors */
    uint32_t *first;           /* of a tensor: its first piece; one more for the end */
};

/* NULL: out of memory. */
struct power_map *power_map_new(const struct layout *, uint32_t rank, uint64_t round);
void power_map_free(struct power_map *);
/* Floats of the vector and of the sides, at most. */
uint64_t power_floats_max(const struct layout *, uint32_t rank);
uint64_t power_sides(const struct layout *, uint32_t rank);

/* Both sides at random, with orthonormal columns. */
void power_begin(const struct power_map *, uint64_t seed, float *sides);
/* n floats of the node's own vector, from `from` on, at most FRAGMENT_ELEMENTS. */
void power_make(const struct power_map *, const float *sides, const void *const *values, uint64_t from, uint32_t n,
                float *out);
/* With the difference of the two vectors (larger id - smaller), the next sides.  A direction in which there
 * is no difference is replaced by another one, by the seed. */
void power_turn(const struct power_map *, const float *difference, uint64_t seed, float *sides);
/* Add weight times the step that a difference makes, with the sides it was made with, to n elements of a
 * tensor from `offset` on. */
void power_apply(const struct power_map *, const float *sides, const float *difference, double weight,
                 uint32_t tensor, uint64_t offset, uint32_t n, double *sum);
#endif
