/* How far replicas have come apart: each node tells a sketch of a sample of its values, another
 * sample each round and the same on all nodes; two sketches of one round tell the distance of the
 * samples.  A random +-1 projection of x - y has the expectation 0 and the variance |x - y|^2 (Achlioptas 2003).
 *
 * Where all members of a round get one result, replicas that differ are a fault: alarm().  Among neighbours,
 * and between groups, they do differ, and what counts is whether averaging brings them together: a
 * sketch holds projections of the values before the round as well, of the same sample. */
#ifndef ROUND_DRIFT_H
#define ROUND_DRIFT_H
#include "wire/wire.h"

#define DRIFT_ROUNDS 16  /* of one's own sketches that are kept */
#define DRIFT_SAMPLE 8   /* fragments */
#define DRIFT_ALARM 1e-2 /* relative to the larger norm of the two samples */

#define DRIFT_SMOOTH 4   /* of the squares of distances one in so many is the newest */

struct drift {
    struct wire_sketch own[DRIFT_ROUNDS]; /* ring; round 0: none */
    bool differs[DRIFT_ROUNDS];           /* the members of that round need not have equal values */
    uint64_t n;                           /* made so far */
};

/* Root of the mean, over the members that can be heard, of the squares of their distances from this
 * node behind a round (as drift_between(), smoothed): a pair's distance, sqrt(2) times that from the
 * mean of all.  mixing: over the same before the round; 1: averaging brings them no closer, 0: they are equal.
 * Both -1 where nothing is known. */
struct drift_distance {
    double consensus, mixing;
};

/* The distance of two samples over the larger norm of the two, estimated by their sketches; exactly 0 where
 * they are equal bit for bit. */
double drift_between(const struct wire_sketch *, const struct wire_sketch *);
#endif
