/* detect.h - how fast members.h finds the dead, what that costs, whom it wrongs. */
#ifndef SIM_DETECT_H
#define SIM_DETECT_H
#include "sim/members.h"

#define DETECT_VICTIMS_MAX 64

struct detection { /* times in periods, means over the victims unless named otherwise */
    uint32_t nodes, victims;
    double idle_messages, idle_bytes; /* a node a period while nothing happens */
    double busy_messages, busy_bytes; /* a node a period from the kill until all know */
    uint64_t memory_bytes;            /* a node, most */
    double first, first_most;         /* from death until one suspects it */
    double spread, spread_most;       /* from then until every living node does */
    double dead;                      /* from death until every living node has declared it */
    uint32_t missed;                  /* living node x victim that never knew */
    uint32_t wronged;                 /* living nodes that somebody suspected */
};

/* All meet, nothing happens for 20 periods, then the victims die at random instants of one
 * period.  False: out of memory. */
bool detect(const struct members_config *, uint32_t victims, struct detection *);

struct starvation {
    uint32_t nodes, starved;
    uint64_t suspected;           /* healthy members, at healthy observers */
    uint64_t declared;            /* the same, declared dead */
    uint64_t declared_by_starved; /* healthy members, at starved observers */
};

/* `starved` nodes again and again do not handle datagrams for `blocked`, then do for `awake`
 * (Lifeguard, section V); `periods` long. */
bool detect_starved(const struct members_config *, uint32_t starved, sleet_duration blocked,
                    sleet_duration awake, uint32_t periods, struct starvation *);
#endif
