/* The last common view: the lives with whom this node has shared a model and who have not said
 * good-bye, whether they can be heard or not.  This node itself counts and is not listed.
 * By node id, not by slot: who is missing stays missed when its slot is given back. */
#ifndef MEMBER_COMMON_H
#define MEMBER_COMMON_H
#include "base/time.h"
#include <stdbool.h>
#include <stdint.h>

struct person {
    uint64_t node_id, boot_id;
    bool here, missing; /* here: for the caller, while it looks around */
    sleet_time since;   /* missing since */
};

struct common {
    struct person *p; /* by ascending node id */
    uint32_t n, room;
};

void common_fini(struct common *);
struct person *common_find(const struct common *, uint64_t node_id);
/* False when out of memory. */
bool common_add(struct common *, uint64_t node_id, uint64_t boot_id);
/* Nothing happens where it is not listed. */
void common_remove(struct common *, uint64_t node_id);

/* After `here` has been set for each: the others are missing from now on.  True when that is a
 * change. */
bool common_settle(struct common *, sleet_time now);
/* This node and those who are here are most of all; of two halves the one with the lowest id. */
bool common_goes_on(const struct common *, uint64_t self);
/* This node has the lowest id of those who are here. */
bool common_leads(const struct common *, uint64_t self);
uint32_t common_missing(const struct common *);
/* Drop those that have been missing for so long; 0: all that are missing. */
void common_drop(struct common *, sleet_duration missing_for, sleet_time now);
/* When the next of them will have been missing for so long. */
sleet_time common_deadline(const struct common *, sleet_duration missing_for);
#endif
