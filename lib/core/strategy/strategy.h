/* Cells and groups, who averages with whom in a round, and who owns what. */
#ifndef STRATEGY_H
#define STRATEGY_H
#include <stdbool.h>
#include <stdint.h>

#define GROUP_MEMBERS_MAX 64
#define OWNER_NONE 0xff /* owner of a run in a group without contributors */

struct group_member {
    uint64_t node_id, boot_id;
    uint8_t contributes; /* 0 or 1 */
    int16_t slot;        /* the caller's own number for it; not hashed */
};

struct group {
    uint32_t hash; /* of the members as in a GROUP frame */
    uint8_t n;
    uint8_t cell_bits; /* see cell_select(); 0: the whole view; not hashed */
    struct group_member members[GROUP_MEMBERS_MAX]; /* ascending node id */
};

/* Sort the members by node id and set the hash. */
void group_seal(struct group *);
/* Index of a node in the group, -1 if it is not a member. */
int group_rank(const struct group *, uint64_t node_id);

/* Where a view has more members than a group: keep those of `self`'s cell in this round in
 * `view`, in order, and return how many, at most GROUP_MEMBERS_MAX.  A cell is all members
 * that are cell_same() in `bits` bits (docs/protocol.md, "Cells"); ids differ. */
uint32_t cell_select(struct group_member *view, uint32_t n, uint64_t self, uint64_t round,
                     uint8_t *bits);
bool cell_same(uint64_t node_id, uint64_t other, uint64_t round, uint32_t bits);

/* A strategy is a pure function of the view (sealed) and the round. */
struct strategy {
    const char *name;
    void (*plan)(const struct group *view, uint64_t round, struct group *out); /* out is sealed */
};

/* NULL for an unknown name. */
const struct strategy *strategy_by_name(const char *name);

extern const struct strategy strategy_rps; /* everybody in the view */

/* owner_of_run[r] = member index of the owner of run r (docs/protocol.md,
 * "Ownership"), for r < runs; OWNER_NONE where nobody contributes. */
void owners_assign(const struct group *, uint64_t round, uint32_t runs, uint8_t *owner_of_run);
/* The same for one run. */
uint8_t owner_of(const struct group *, uint64_t round, uint32_t run);
#endif
