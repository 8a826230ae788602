/* How long to wait for others, learned from how long they took. */
#ifndef ROUND_BUDGET_H
#define ROUND_BUDGET_H
#include "base/time.h"
#include <stdbool.h>
#include <stdint.h>

#define BUDGET_SAMPLES 64
#define BUDGET_SAMPLES_MIN 8 /* before that the first budget holds */

struct budget {
    sleet_duration samples[BUDGET_SAMPLES]; /* ring */
    uint32_t n, pos;
    sleet_duration first, min, max;
    sleet_duration p95; /* of the samples */
};

/* 0 < min <= first <= max; `first` is brought into the bounds. */
void budget_init(struct budget *, sleet_duration first, sleet_duration min, sleet_duration max);
/* Time that everything took.  `censored`: the wait was cut off before all was in; 1.5 times
 * the present budget counts instead of the sample, so the budget grows. */
void budget_add(struct budget *, sleet_duration sample, bool censored);
/* 1.25 times the 95th percentile, within [min, max]. */
sleet_duration budget_now(const struct budget *);
#endif
