/* Estimators: what an owner makes of the contributions to a fragment that came.
 *
 *     commit = sum over those present of factor * weight * value, over the divisor
 *
 *   ratio     The mean of those present.  Weight is lost with those that are not, nothing is scaled: what
 *             models are averaged by (RPS, arXiv 1810.07766).
 *   expected  Inverse probability (Horvitz and Thompson 1952): each value over the probability q
 *             that it arrives, all over the weight of everybody who takes part.  Unbiased also where
 *             contributors differ by more than noise; its variance is p / (1 - p) times the mean square of
 *             the values that can be lost, over their number.  q is measured: member/arrival.h.
 *   carry     One constant divisor, the weight of all contributors, and what is absent counts
 *             zero: its sender gives it again (carry.h).  Unbiased over time, not in one round.
 *   givers    The mean of those present, where a fragment of zeros is never given: nodes that have taken no
 *             step there have no say (partial parameter updates, arXiv 2509.22418).
 *
 * Pure: nothing here looks at a round. */
#ifndef ROUND_ESTIMATE_H
#define ROUND_ESTIMATE_H
#include "tensor/layout.h"

struct estimator {
    uint8_t id; /* of sleet_estimator */
    const char *name;
    bool whole; /* the divisor stands for all: of several commits of a fragment the sums add up */
    /* Of a contribution that arrives with probability q; own values arrive with 1. */
    double (*factor)(double q);
    /* `present`: weight of those that came, > 0.  `live`: of those and of all that take part in rounds
     * lately.  `all`: of every contributor of the group. */
    double (*divisor)(double present, double live, double all);
};

/* NULL for an unknown id. */
const struct estimator *estimator_by_id(uint8_t id);
/* Is the fragment of such a tensor worth giving? */
bool estimator_takes(const struct layout *, uint32_t tensor, const float *x, uint32_t n);
/* The one of a tensor: whatever the set's is, tensors of state are models. */
const struct estimator *estimator_for(const struct layout *, uint32_t tensor);
#endif
