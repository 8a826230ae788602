/* How much of the vector each member of a group owns, by what it can send. */
#ifndef STRATEGY_SHARE_H
#define STRATEGY_SHARE_H
#include "base/declared.h"
#include "strategy/strategy.h"

/* The grade that stands for a bandwidth in a group: sixths of an octave from 64 kbit/s on (1 to 126). */
#define UPLINK_UNSAID 0 /* counts as UPLINK_USUAL_KBIT where another member has said something */
#define UPLINK_MOST 126
#define UPLINK_CLIENT 127 /* owns nothing, unless all that contribute are such */
#define UPLINK_USUAL_KBIT 100000

/* The nearest grade; of a client UPLINK_CLIENT, of an auxiliary never UPLINK_UNSAID. */
uint8_t uplink_of(const struct declared *);
/* A number for the site's name, 0 for none. */
uint64_t site_of(const struct declared *);

/* Shares of one vector, in SHARE_WHOLE, of n members (at most GROUP_MEMBERS_MAX), of which the first c contribute and
 * the others are auxiliaries.  A contributor sends
 * its part of what others own and what it owns to all others: 1 + (c - 2) f vectors; an auxiliary c f.  So the time that the last
 * one takes, max (1 + (c - 2) f_i) / b_i, is least (the rule of Moshpit SGD, arXiv 2103.03239); a share below an eighth of an equal
 * one is not worth an owner and becomes 0.  All in integers: every node comes to the same. */
#define SHARE_WHOLE 32768u
void shares_of(const uint8_t *uplink, uint32_t n, uint32_t c, uint16_t *share);

/* Fill in the members' shares; `uneven` where they differ.  By group_seal(). */
void group_share(struct group *);
#endif
