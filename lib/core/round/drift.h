/* How far replicas have come apart: each node tells a sketch of a sample of its values, another
 * sample each round and the same on all nodes; two sketches of one round tell the distance of the
 * samples.  A random +-1 projection of x - y has the expectation 0 and the variance |x - y|^2 (Achlioptas 2003). */
#ifndef ROUND_DRIFT_H
#define ROUND_DRIFT_H
#include "wire/wire.h"

#define DRIFT_ROUNDS 16  /* of one's own sketches that are kept */
#define DRIFT_SAMPLE 8   /* fragments */
#define DRIFT_ALARM 1e-2 /* relative to the larger norm of the two samples */

struct drift {
    struct wire_sketch own[DRIFT_ROUNDS]; /* ring; round 0: none */
    uint64_t n;                           /* made so far */
};

/* The distance of two samples over the larger norm of the two, estimated by their sketches; exactly 0 where
 * they are equal bit for bit. */
double drift_between(const struct wire_sketch *, const struct wire_sketch *);
#endif
