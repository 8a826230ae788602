/* nat.h - the box between a node and the others: one public address and port for all that
 * the node sends (endpoint-independent mapping), and nothing let in but from where the node
 * has sent something to since (address- and port-dependent filtering); RFC 4787. */
#ifndef SIM_NAT_H
#define SIM_NAT_H
#include "base/addr.h"

/* Zero-filled: a box that has seen nothing. */
struct sim_nat {
    bool on;
    sleet_addr outside; /* what others see */
    sleet_addr *sent_to;
    uint32_t n, room;
};

/* The mapping is forgotten, and what it let in with it; the next one is `outside`. */
void nat_rebind(struct sim_nat *, const sleet_addr *outside);
/* False when out of memory. */
bool nat_note_sent(struct sim_nat *, const sleet_addr *to);
bool nat_lets_in(const struct sim_nat *, const sleet_addr *from);
void nat_fini(struct sim_nat *);
#endif
