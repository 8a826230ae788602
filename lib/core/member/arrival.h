/* How much of what a member contributes arrives in time: the mean of the first ARRIVAL_ROUNDS
 * rounds, then one that forgets with that time constant.  Zero-filled: nothing is known. */
#ifndef MEMBER_ARRIVAL_H
#define MEMBER_ARRIVAL_H
#include <stdint.h>

#define ARRIVAL_LEAST 0.1 /* reckoned with: a value never counts more than ten times */
#define ARRIVAL_ROUNDS 64

struct arrival {
    double rate;
    uint32_t rounds;
};

/* In a round `share` (0 to 1) of its fragments came. */
static inline void arrival_add(struct arrival *a, double share)
{
    a->rounds += a->rounds < ARRIVAL_ROUNDS;
    a->rate += (share - a->rate) / a->rounds;
}

/* The probability to reckon with, ARRIVAL_LEAST to 1; 1 while nothing is known. */
static inline double arrival_rate(const struct arrival *a)
{
    if (!a->rounds || a->rate > 1)
        return 1;
    return a->rate < ARRIVAL_LEAST ? ARRIVAL_LEAST : a->rate;
}
#endif
