/* members.h - SWIM without engines: many instances, one virtual clock, one seed.
 *
 * Every node is an instance of member/swim.h behind a link of one delay and
 * loss.  Node i has id i + 1 and boot id 1000 * (i + 1) + its number of starts.
 * A PING is answered at once; both carry what the engine's do, and news. */
#ifndef SIM_MEMBERS_H
#define SIM_MEMBERS_H
#include "member/swim.h"

struct members_config {
    uint32_t nodes;
    uint64_t seed;
    sleet_duration delay, jitter; /* one way; 0: 1 ms, none */
    double loss;
    bool lifeguard_off;
    bool strangers; /* all know node 0 only, else all know all */
};

struct members_totals {
    uint64_t sent, bytes; /* datagrams, UDP payload */
};

typedef struct members members;

/* NULL when out of memory. */
members *members_new(const struct members_config *);
void members_free(members *);
sleet_time members_now(const members *);
void members_run(members *, sleet_duration);
struct members_totals members_totals(const members *);

struct swim *members_node(members *, uint32_t node); /* NULL: killed */
void members_kill(members *, uint32_t node);
/* With another boot id; it knows node `seed`.  False: out of memory. */
bool members_restart(members *, uint32_t node, uint32_t seed);
/* A starved process: its timers run, its datagrams wait, both ways (Lifeguard, section V). */
void members_starve(members *, uint32_t node, bool starved);
void members_cut(members *, uint32_t from, uint32_t to,
                 bool cut); /* one direction; at most 64 cuts */

/* Called whenever an instance's view of a member changes. */
typedef void members_watch(members *, uint32_t node, const struct swim_member *, void *);
void members_on_change(members *, members_watch *, void *arg);
#endif
