/* Another strategy for a set whose rounds run.
 *
 * Whoever may command a node names the strategy; from a round a little ahead on everybody is to
 * average by it.  What is told is whole in itself: the round, the strategy from there on and the
 * one before it.  So the strategy of a round is a pure function of the newest switch that a node
 * knows, as members are of the view, and nodes that hear of it late cost coverage, nothing else.
 * The highest version counts, of two equal ones that of the node with the higher id.  It is told
 * in PINGs for as long as the set is known, hence to joiners and nodes that were away as well. */
#ifndef ROUND_SWITCH_H
#define ROUND_SWITCH_H
#include "base/time.h"
#include "tensor/layout.h"
#include "wire/wire.h"

#define SWITCH_AHEAD SEC(1)    /* it takes effect so much later at the pace of the last rounds, */
#define SWITCH_ROUNDS_MAX 100u /* but no more rounds than this, and W + 2, */

struct switching {
    struct wire_switch newest; /* version 0: none, the set's kind says it all */
    sleet_duration pace;       /* from one start of a round to the next, smoothed; 0: not known */
    sleet_time started;        /* the last one */
    uint32_t refused;          /* version that this node cannot follow, said once */
};

bool switch_newer(const struct wire_switch *, const struct wire_switch *than);
/* Kind of the set with the strategy of that round. */
struct set_kind switch_kind_at(const struct layout *, const struct switching *, uint64_t round);
/* A round has been joined. */
void switch_pace(struct switching *, sleet_time now);
/* Bytes of so many rounds beyond round_bytes_bound(), which goes by the kind, and of what is kept between rounds among
 * neighbours: by any of the strategies that may be in force. */
uint64_t switch_bytes_bound(const struct layout *, const struct switching *, uint32_t members, uint32_t rounds);
#endif
