/* Commits that come when their round has closed.
 *
 * What is added to a model, by an update that is linear, may be added a round late as well.  So the holes of a
 * round are asked for until it leaves the window, and a commit that comes is added to the result of
 * the next round that closes.  Replicas differ by what is on its way: p / (1 - p) of one update's
 * variance, where without it their distance grows with each round.  Rounds that the node has skipped are such
 * rounds too: all of them is late.  Where a quorum leaves a slow trainer behind its node does not wait for the
 * next start: it asks while the others serve, and what comes adds up.
 *
 * Invariant: a commit is in the node's results once: in that of its round, or as a correction. */
#ifndef ROUND_LATE_H
#define ROUND_LATE_H
#include "tensor/layout.h"

struct late {
    float *sum;    /* FRAGMENT_ELEMENTS a fragment: to be added to the next result */
    uint64_t *has; /* fragments of which there is some */
    uint32_t n;    /* of them */
    uint64_t turn; /* of the rotated ones, see rotated.c */
    uint32_t next; /* fragment that late_fold() goes on with */
    uint64_t followed, lineage; /* newest round that was skipped so, and whose rounds those are */
};

void late_drop(struct late *);
uint64_t late_bytes_bound(const struct layout *);
/* Is a late commit of use to sets of that kind? */
static inline bool late_serves(const struct layout *l)
{
    return kind_additive(&l->kind) && l->kind.update == SLEET_LINEAR &&
           l->kind.exchange == SLEET_ALL_REDUCE;
}
#endif
