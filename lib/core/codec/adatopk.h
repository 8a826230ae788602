/* adatopk.h - how much less goes over slow links (AdaTopK, arXiv 2410.12707): each link sends so
 * large a part of the elements that it takes as long as the fastest link takes for all of them.
 * Links that are not slower send all: leaving out there would cost accuracy and win no time. */
#ifndef CODEC_ADATOPK_H
#define CODEC_ADATOPK_H
#include <stdint.h>

/* A link; zero at first. */
struct adatopk {
    double log_rate; /* mean of the logarithm of its rate, recent rounds weighing more */
    uint64_t rounds; /* that were measured */
};

/* Once a round: what the link could carry, in bytes a second (not what was asked of it).  A rate
 * that changes tenfold at once is followed to 4 % in six rounds.  Rates of 0 or less are passed
 * over. */
void adatopk_measured(struct adatopk *, double rate);

/* The rate as smoothed, 0 while none was measured. */
double adatopk_rate(const struct adatopk *);

/* Elements for each one that is sent, 1 to `most`: 1, all are, while the rate is unknown and where
 * it would be below 2. `fastest` is the highest adatopk_rate() of the links. */
double adatopk_ratio(const struct adatopk *, double fastest, double most);

/* codec_args.keep of a fragment of n elements; 0, all, for a ratio of 1. */
uint32_t adatopk_keep(double ratio, uint32_t n);
#endif
