/* Cells: how a view of more members than a group may have falls into groups.
 *
 * Each member has a hash of its id and the round.  Members whose hashes begin with the same
 * bits are a cell; a cell of too many is halved by the next bit.  So every round has other
 * neighbours, and averages mix over the whole job.  Equal parts of a sorted list would be of
 * more even size, but there one member more or less moves the bounds of all parts: nodes
 * whose views differ by one would disagree everywhere.  Here they disagree in one cell. */
#include "base/rng.h"
#include "strategy/strategy.h"

#define PHI 0x9e3779b97f4a7c15u

static uint64_t hash_of(uint64_t node_id, uint64_t round)
{
    return mix64(mix64(round * PHI - 1) ^ mix64(node_id)); /* different ids never collide */
}

bool cell_same(uint64_t a, uint64_t b, uint64_t round, uint32_t bits)
{
    return bits == 0 || (hash_of(a, round) ^ hash_of(b, round)) >> (64 - bits) == 0;
}

uint32_t cell_select(struct group_member *view, uint32_t n, uint64_t self, uint64_t round,
                     uint8_t *bits)
{
    uint64_t mine = hash_of(self, round);
    uint32_t depth = 0;
    while (n > GROUP_MEMBERS_MAX) {
        uint32_t kept = 0;
        depth++;
        for (uint32_t i = 0; i < n; i++)
            if ((hash_of(view[i].node_id, round) ^ mine) >> (64 - depth) == 0)
                view[kept++] = view[i];
        n = kept;
    }
    *bits = (uint8_t)depth;
    return n;
}
