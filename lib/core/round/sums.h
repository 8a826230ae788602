/* sums.h - what an owner adds up: the numbers of its fragments, their sums and what these are divided by.
 * owner_add() and owner_numbers() (round.h) belong to it. */
#ifndef ROUND_SUMS_H
#define ROUND_SUMS_H
#include "round/round.h"

/* The number of a fragment of the own share, or of one that a member with another group
 * gives to this node; false when there is no room for more of those. */
bool sums_number(const struct set *, struct round *, uint32_t fragment, uint32_t *number);
/* 288 sums, made when first asked for; NULL when out of memory. */
double *sums_of(struct round *, uint32_t number);
/* Add the node's own values to a fragment it owns. */
void sums_add_own(struct set *, struct round *, const struct env *, uint32_t number);
/* What the sums of a number are divided by.  Who has not been heard in this round counts as
 * it did last. */
double sums_divisor(const struct set *, const struct round *, const struct env *, uint32_t number);
#endif
