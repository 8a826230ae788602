/* Who averages with whom in a round, and who owns what.
 *
 * A strategy is one file and one entry of the table in table.c (the names: SLEET_STRATEGY_MAP in
 * sleet.h).  It is a pure function of the members that average and the round, so that all nodes
 * with one view come to one answer without a word. */
#ifndef STRATEGY_H
#define STRATEGY_H
#include "sleet.h"
#include "strategy/edge_list.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GROUP_MEMBERS_MAX 64
#define VIEW_MEMBERS_MAX 1024
#define OWNER_NONE 0xff /* owner of a run in a group without contributors */
#define ALL_SEGMENTS UINT64_MAX
#define EDGES_IN_MAX 16 /* neighbours that a node takes values from in a round */

struct group_member {
    uint64_t node_id, boot_id;
    uint8_t contributes; /* 0 or 1 */
    int16_t slot;        /* the caller's own number for it; not hashed */
    uint8_t uplink;      /* grade of what it can send (share.h); not 0 although it does not contribute: an auxiliary */
    uint16_t share;      /* where the group is uneven; not hashed */
    uint64_t site;       /* a number for where it stands, 0: not said; not hashed */
};

static inline bool group_auxiliary(const struct group_member *m)
{
    return !m->contributes && m->uplink;
}

struct group {
    uint32_t hash; /* of the members as in a GROUP frame; among neighbours: of all that average */
    uint8_t n;
    uint8_t cell_bits; /* see cell_select(); 0: the whole view; not hashed */
    bool uneven;       /* members own as much as their `share` says, else all alike; not hashed */
    bool part;         /* others of the view average elsewhere, by the strategy; not hashed */
    struct group_member members[GROUP_MEMBERS_MAX]; /* ascending node id */
};

/* The way between this node and a neighbour, for strategies without owners (exchange edge). */
struct edge {
    double weight;    /* of the neighbour's values in this node's result: x += weight * (theirs - x) */
    uint64_t in, out; /* segments that come from it, that go to it: a bit each */
};

/* Who averages with this node. */
struct plan {
    bool edges;       /* neighbours, as `edge` has them; else owners: all members get one result */
    bool atomic;      /* edges: what one of two neighbours takes, the other takes as well, or neither */
    uint8_t segments; /* edges: 1 to 64 parts of the set, in order */
    uint16_t rank;    /* edges both ways: of the differences of matrices (round/power.h); 0: all goes whole */
    uint32_t beyond;  /* by edges that are given: members of the view that no way leads to */
    struct group group;                  /* this node is among them */
    struct edge edge[GROUP_MEMBERS_MAX + 1]; /* by rank; the last is nobody's */
};

/* What a strategy goes by.  For those that take joiners `members` are all of the view, else those that
 * contribute. */
struct strategy_view {
    const struct group_member *members; /* ascending node id */
    uint32_t n, self;                   /* self: index of this node */
    uint64_t round;
    uint16_t numbers[2]; /* of its kind; 0: its usual ones */
    const struct edge_list *edges; /* those that the user gives; NULL: none */
};

struct strategy {
    sleet_strategy id;
    bool edges;
    bool joiners; /* it says itself where those belong that do not contribute yet */
    /* Fill the empty plan by plan_add(). */
    void (*plan)(const struct strategy_view *, struct plan *);
};

/* Add member i of the view, which is not self where there are edges, or find it: its edge.  A plan has
 * room for GROUP_MEMBERS_MAX: further ones are not in it, and their edge is nobody's. */
struct edge *plan_add(struct plan *, const struct strategy_view *, uint32_t i);

/* Shuffle `which` of the round into at[0..n): the place of `self` in it; n where it has none. */
uint32_t round_shuffle(uint64_t round, uint64_t which, uint32_t n, uint32_t self, uint16_t *at);

#define HIERARCHY_MAX 32 /* groups */
/* Groups of `most` members: in even rounds this node's is the plan, and the answer 0.  In odd ones the plan is left as it
 * is, and the answer the number of groups where this node goes for its own, else 0: `leaders` is the view
 * of those that do, in room[HIERARCHY_MAX], its rounds being theirs. */
uint32_t hierarchy_leaders(const struct strategy_view *, uint32_t most, struct plan *, struct strategy_view *leaders,
                           struct group_member *room);

/* NULL for an unknown one. */
const struct strategy *strategy_by_id(int id);

extern const struct strategy strategy_rps, strategy_one_peer, strategy_exponential, strategy_ring, strategy_pairs,
    strategy_moshpit, strategy_random, strategy_torus, strategy_crossover, strategy_hierarchical, strategy_graph;

/* Who averages with `self` in `round` by the strategy: out of `n` members of a view in ascending order of
 * node id, of whom some may not contribute yet.  Those are given to a contributor each, which they take
 * their values from.  False: nobody in the node's reach contributes. */
bool strategy_plan(const struct strategy *, const uint16_t numbers[2], const struct edge_list *edges,
                   const struct group_member *view, uint32_t n, uint64_t self, uint64_t round, struct plan *);

/* Sort the members by node id, set the hash and the shares. */
void group_seal(struct group *);
/* Index of a node in the group, -1 if it is not a member. */
int group_rank(const struct group *, uint64_t node_id);

/* Where a view has more members than a group: keep those of `self`'s cell in this round in
 * `view`, in order, and return how many, at most GROUP_MEMBERS_MAX.  A cell is all members
 * that are cell_same() in `bits` bits (docs/protocol.md, "Cells"); ids differ. */
uint32_t cell_select(struct group_member *view, uint32_t n, uint64_t self, uint64_t round,
                     uint8_t *bits);
bool cell_same(uint64_t node_id, uint64_t other, uint64_t round, uint32_t bits);

/* owner_of_run[r] = member index of the owner of run r (docs/protocol.md, "Ownership"), for r < runs;
 * OWNER_NONE where nobody contributes.  By rendezvous, weighted where the group is uneven. */
void owners_assign(const struct group *, uint64_t round, uint32_t runs, uint8_t *owner_of_run);
/* backup_of_run[r] = who would own run r if its owner did not contribute; OWNER_NONE: nobody. */
void backups_assign(const struct group *, uint64_t round, uint32_t runs, const uint8_t *owner_of_run,
                    uint8_t *backup_of_run);
/* The owner of one run. */
uint8_t owner_of(const struct group *, uint64_t round, uint32_t run);
#endif
