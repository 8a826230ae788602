/* How long to wait for others, learned from how long they took. */
#ifndef ROUND_BUDGET_H
#define ROUND_BUDGET_H
#include "base/time.h"
#include <stdbool.h>
#include <stdint.h>

#define BUDGET_SAMPLES 64
#define BUDGET_SAMPLES_MIN 8 /* before that the first budget holds */
#define BUDGET_RECENT 8      /* the longest of so many counts at once, rare as it may be */

struct budget {
    sleet_duration samples[BUDGET_SAMPLES]; /* ring */
    uint32_t n, pos;
    sleet_duration first, min, max;
    sleet_duration longest; /* the 95th percentile of the samples, or the longest recent one */
    sleet_duration floor;   /* what an answer alone may take */
};

/* 0 < min <= first <= max; `first` is brought into the bounds. */
void budget_init(struct budget *, sleet_duration first, sleet_duration min, sleet_duration max);
/* Time that everything took.  `censored`: the wait was cut off before all was in; 1.5 times
 * the present budget counts instead of the sample, so the budget grows. */
void budget_add(struct budget *, sleet_duration sample, bool censored);
/* What a wait that was cut off would have taken, now that the last one has come.  One such stall is no
 * rule: it counts as 500 ms or four times the present budget at most, whichever is more. */
void budget_late(struct budget *, sleet_duration sample);
/* From now on never less than this (within max): the longest timeout of the paths. */
void budget_floor(struct budget *, sleet_duration floor);
/* 1.25 times the 95th percentile of the last 64 samples, or the longest of the last 8, and not below the
 * floor; within [min, max]. */
sleet_duration budget_now(const struct budget *);
#endif
