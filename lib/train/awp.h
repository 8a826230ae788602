/* awp.h - adaptive weight precision (arXiv 2004.02297): how many leading bytes of each f32 of a
 * tensor travel, from how its norm grows.  While weights still move a lot few bytes do; each time
 * the growth has stayed small for a while there is one more, and never one less.
 *
 * A change is (norm - last norm) / last norm, with its sign: the paper's thresholds are near 0, of
 * either sign.  Nodes need not agree: each says in a datagram which codec it has used. */
#ifndef TRAIN_AWP_H
#define TRAIN_AWP_H
#include "sleet.h"
#include <stdint.h>

#define AWP_BYTES_MAX 4

/* Of one tensor. */
struct awp {
    double threshold;  /* of the relative change of the norm in a batch */
    uint32_t interval; /* batches in a row below it that bring one byte more; not 0 */
    uint32_t bytes;    /* now, 1 to AWP_BYTES_MAX */
    uint32_t calm;     /* batches in a row below the threshold so far */
    double norm;       /* of the last batch */
};

/* Begin with `bytes` (the paper with 1, which is too coarse for what is not added to anything). */
void awp_init(struct awp *, double threshold, uint32_t interval, uint32_t bytes);

/* After a batch that left the tensor with this L2 norm: the bytes from now on.  The first batch,
 * and a norm that is not finite, begin the count anew. */
uint32_t awp_batch(struct awp *, double norm);

/* The codec of so many bytes, 1 to AWP_BYTES_MAX. */
sleet_codec awp_codec(uint32_t bytes);
#endif
