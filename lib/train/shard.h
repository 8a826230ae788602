/* shard.h - which samples belong to which node, from a seed alone, and the
 * order in which a node visits its own.  All nodes compute the same split. */
#ifndef TRAIN_SHARD_H
#define TRAIN_SHARD_H
#include "base/rng.h"
#include <stdbool.h>
#include <stdint.h>

struct shard_kind {
    enum {
        SHARD_IID,       /* shuffled, cut evenly */
        SHARD_DIRICHLET, /* each class divided by Dirichlet(alpha) shares */
        SHARD_LABEL      /* sorted by class, cut evenly: few classes a node */
    } kind;
    double alpha;
};

/* Parse "iid", "dirichlet:A" (0.001 to 1000) or "label"; false when none of them. */
bool shard_parse(const char *text, struct shard_kind *out);

/* A partition of `count` samples; shard i is order[start[i]] to order[start[i + 1] - 1]. */
struct shard_split {
    uint32_t shards, count;
    uint32_t *order; /* count */
    uint32_t *start; /* shards + 1 */
};

/* Split; no shard is empty.  Labels are below `classes` (at most 256), `shards` is 1 to
 * `count`.  False when out of memory or range.  Freed by shard_free(). */
bool shard_make(struct shard_split *out, struct shard_kind, const uint8_t *label, uint32_t count,
                uint32_t classes, uint32_t shards, uint64_t seed);
void shard_free(struct shard_split *);

/* Walks through samples without end, in a new order each time round. */
struct shard_walk {
    uint32_t *sample; /* borrowed, reordered in place */
    uint32_t count, at;
    sleet_rng rng;
};

/* Walk shard `i`; the split stays alive and is walked once a shard. */
struct shard_walk shard_walk_of(struct shard_split *, uint32_t i, uint64_t seed);
uint32_t shard_walk_next(struct shard_walk *);
/* Pass over the next `samples`: a new walk stands where one that drew them stood. */
void shard_walk_skip(struct shard_walk *, uint64_t samples);
#endif
