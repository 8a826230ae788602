/* trigger.h - when a node averages.
 *
 * A node is asked behind each local step whether a round is due.  What the answer depends on is a few
 * doubles, which a checkpoint keeps. */
#ifndef TRAIN_TRIGGER_H
#define TRAIN_TRIGGER_H
#include <stdbool.h>
#include <stdint.h>

struct trigger_options {
    uint64_t every; /* steps from round to round: behind each step that it divides; 1: behind each */
};

/* Is a round due behind the first `done` steps of the schedule? */
bool trigger_due(const struct trigger_options *, uint64_t done);
/* Does each step have its round, whatever comes? */
bool trigger_always(const struct trigger_options *);
#endif
