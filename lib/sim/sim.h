/* sim.h - many engines, one thread, one virtual clock, one seed.
 *
 * The same configuration and calls give the same run, bit for bit.  Node i has
 * node id i + 1 (without `sealed`), address fd00::(i + 1) port 7000 and all others as peers.
 * Pairs of nodes on the common link cost no memory.
 *
 * Callbacks may call into any engine; after such a call they call
 * sim_kick() for its node.  Times are virtual nanoseconds from 0. */
#ifndef SIM_H
#define SIM_H
#include "engine.h"
#include "sim/link.h"

#define SIM_NODES_MAX (ENGINE_PEERS_MAX + 1)
#define SIM_ALL UINT32_MAX /* as from or to: every node */

/* What is different about a node. */
struct sim_node {
    uint64_t rate_bps; /* 0: as all */
    struct declared declared;
};

struct sim_config {
    uint32_t nodes; /* 1 .. SIM_NODES_MAX */
    uint32_t seeds; /* each node's list of peers is the first so many; 0: all */
    bool open_join; /* members that are not listed are taken, too */
    uint64_t seed;
    bool sealed; /* sessions are; node ids are then those of keys, in the order of the nodes */
    const uint8_t *operator_key; /* sealed: whose orders are taken; NULL: nobody's; borrowed */
    struct sim_link link;  /* of every directed pair at first */
    uint64_t rate_bps;     /* of every engine; 0: its default */
    const struct sim_node *each; /* one a node; NULL: nothing is different; borrowed */
    uint64_t keep_bytes;   /* as in engine_config */
    bool repair_off, repair_late, parity_off, backup_off, edges_one_sided; /* as in engine_config */
    bool part_continue, go_on_isolated; /* on_partition = continue, as in engine_config */
    uint32_t merge_rounds;              /* likewise */
    double clip;           /* likewise */
    uint32_t window, absent_rounds;                /* as in engine_config, 0: default */
    uint32_t state_tensors; /* of a cluster's set: the last so many are f32-state */
    const uint32_t *rows;   /* of its tensors, those that are matrices; NULL: none is; borrowed */
    struct set_kind kind;   /* of a cluster's set; payload 0: model */
    const struct edge_list *edges; /* as in engine_config */
    sleet_codec codec;      /* of its other tensors; 0: the default */
    sleet_duration budget_min, budget_max, budget_first, join_wait, ping; /* likewise */
    log_sink log;
};

/* Datagrams by what became of them; sent + duplicated == delivered + lost +
 * frozen_dropped + unrouted + in flight. */
struct sim_totals {
    uint64_t unrouted; /* to an address that is nobody's, or kept out by a NAT */
    uint64_t sent, delivered, lost, duplicated, corrupted, reordered, frozen_dropped, bytes;
};

typedef struct sim sim;

/* A datagram on its way.  `seen`: the address that it comes from for the receiver. */
struct sim_datagram {
    uint32_t from, to, len; /* nodes; bytes */
    sleet_addr seen;
    uint8_t data[2048];
};

/* NULL when out of memory or an engine refuses its configuration. */
sim *sim_new(const struct sim_config *);
void sim_free(sim *);

/* Borrowed; NULL while the node is killed.  Changes with sim_restart(). */
engine *sim_engine(sim *, uint32_t node);
uint32_t sim_nodes(const sim *);
uint64_t sim_node_id(const sim *, uint32_t node);
sleet_time sim_now(const sim *);

/* Change the path from -> to; SIM_ALL stands for every node.  Out of memory: no change. */
void sim_set_link(sim *, uint32_t from, uint32_t to, const struct sim_link *);

/* Put the node behind a NAT; where it is behind one already, the NAT forgets its mapping and
 * makes a new one, with another port.  See sim/nat.h. */
void sim_rebind(sim *, uint32_t node);

/* A frozen node does nothing; up to 400 datagrams wait for it, more are
 * dropped and reported by engine_overflow() at thaw, which delivers. */
void sim_freeze(sim *, uint32_t node, bool frozen);
bool sim_frozen(const sim *, uint32_t node);
/* How often the node was frozen or killed. */
uint64_t sim_halts(const sim *, uint32_t node);

/* Free the node's engine without a good-bye; datagrams to it are lost. */
void sim_kill(sim *, uint32_t node);
/* A new engine with a new boot id (kills the old first).  False: out of memory. */
bool sim_restart(sim *, uint32_t node);

/* Call fn(sim, arg) at that instant (now, if it has passed). */
void sim_at(sim *, sleet_time, void (*fn)(sim *, void *), void *arg);
/* Call fn for every event of every engine; one function at a time. */
void sim_on_event(sim *, void (*fn)(sim *, uint32_t node, const engine_event *, void *), void *arg);
/* A relay in every path: fn is handed each datagram that an engine sends, and only what it
 * gives to sim_relay() goes on: altered, doubled, later, or of its own making.  NULL: none. */
void sim_on_datagram(sim *, void (*fn)(sim *, const struct sim_datagram *, void *), void *arg);
/* It enters the path from -> to and arrives `later` after the time the path takes. */
void sim_relay(sim *, const struct sim_datagram *, sleet_duration later);
/* The node's engine was called from outside: pump it, at this same instant. */
void sim_kick(sim *, uint32_t node);

/* Process the next thing that happens; false when nothing ever will. */
bool sim_step(sim *);
/* Process everything up to and including the instant; the clock then shows it. */
void sim_run_until(sim *, sleet_time);
/* Run while more(arg) and the next thing happens at `limit` or before.
 * True when more() turned false. */
bool sim_run_while(sim *, bool (*more)(void *), void *arg, sleet_time limit);

void sim_get_totals(const sim *, struct sim_totals *);
#endif
