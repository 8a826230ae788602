#define XXH_INLINE_ALL
#include "base/rng.h"
#include "strategy/strategy.h"
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#define MEMBER_BYTES 17 /* in a GROUP frame */
#define PHI 0x9e3779b97f4a7c15u

static const struct strategy *const strategies[] = {&strategy_rps, &strategy_one_peer, &strategy_exponential,
                                                    &strategy_ring, &strategy_pairs,      &strategy_moshpit,
                                                    &strategy_random, &strategy_torus,    &strategy_crossover,
                                                    &strategy_hierarchical};

const struct strategy *strategy_by_id(int id)
{
    for (size_t i = 0; i < sizeof(strategies) / sizeof(strategies[0]); i++)
        if ((int)strategies[i]->id == id)
            return strategies[i];
    return NULL;
}

static int compare_members(const void *a, const void *b)
{
    const struct group_member *x = a, *y = b;
    return (x->node_id > y->node_id) - (x->node_id < y->node_id);
}

static void put_u64(uint8_t *p, uint64_t v)
{
    for (int i = 0; i < 8; i++)
        p[i] = (uint8_t)(v >> (8 * i));
}

void group_seal(struct group *g)
{
    uint8_t bytes[GROUP_MEMBERS_MAX * MEMBER_BYTES];
    qsort(g->members, g->n, sizeof(g->members[0]), compare_members);
    for (uint32_t i = 0; i < g->n; i++) {
        uint8_t *p = bytes + (size_t)i * MEMBER_BYTES;
        put_u64(p, g->members[i].node_id);
        put_u64(p + 8, g->members[i].boot_id);
        p[16] = g->members[i].contributes;
    }
    g->hash = (uint32_t)XXH3_64bits(bytes, (size_t)g->n * MEMBER_BYTES);
}

int group_rank(const struct group *g, uint64_t node_id)
{
    int low = 0, high = g->n;
    while (low < high) {
        int mid = (low + high) / 2;
        if (g->members[mid].node_id < node_id)
            low = mid + 1;
        else
            high = mid;
    }
    return low < g->n && g->members[low].node_id == node_id ? low : -1;
}

/* The contributors and their part of the score. */
struct runners {
    uint64_t key[GROUP_MEMBERS_MAX];
    uint8_t who[GROUP_MEMBERS_MAX];
    uint32_t n;
};

static struct runners runners_of(const struct group *g)
{
    struct runners c = {.n = 0};
    for (uint32_t i = 0; i < g->n; i++) {
        if (g->members[i].contributes) {
            c.key[c.n] = mix64(g->members[i].node_id);
            c.who[c.n++] = (uint8_t)i;
        }
    }
    return c;
}

static uint8_t winner(const struct runners *c, uint64_t round, uint32_t run)
{
    uint64_t base = mix64(round * PHI + run), best = 0;
    uint8_t owner = OWNER_NONE;
    for (uint32_t i = 0; i < c->n; i++) {
        uint64_t score = mix64(base ^ c->key[i]);
        if (owner == OWNER_NONE || score > best) {
            best = score;
            owner = c->who[i];
        }
    }
    return owner;
}

void owners_assign(const struct group *g, uint64_t round, uint32_t runs, uint8_t *owner_of_run)
{
    struct runners c = runners_of(g);
    for (uint32_t r = 0; r < runs; r++)
        owner_of_run[r] = winner(&c, round, r);
}

uint8_t owner_of(const struct group *g, uint64_t round, uint32_t run)
{
    struct runners c = runners_of(g);
    return winner(&c, round, run);
}
