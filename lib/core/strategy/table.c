#define XXH_INLINE_ALL
#include "base/rng.h"
#include "strategy/share.h"
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#define MEMBER_BYTES 17 /* in a GROUP frame */
#define PHI 0x9e3779b97f4a7c15u

static const struct strategy *const strategies[] = {&strategy_rps, &strategy_one_peer, &strategy_exponential,
                                                    &strategy_ring, &strategy_pairs,      &strategy_moshpit,
                                                    &strategy_random, &strategy_torus,    &strategy_crossover,
                                                    &strategy_hierarchical, &strategy_graph};

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
        p[16] = (uint8_t)(g->members[i].contributes | g->members[i].uplink << 1);
    }
    g->hash = (uint32_t)XXH3_64bits(bytes, (size_t)g->n * MEMBER_BYTES);
    group_share(g);
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

/* Those that may own, and their part of the score. */
struct runners {
    uint64_t key[GROUP_MEMBERS_MAX];
    uint16_t share[GROUP_MEMBERS_MAX];
    uint8_t who[GROUP_MEMBERS_MAX];
    uint32_t n;
    bool uneven;
};

static struct runners runners_of(const struct group *g)
{
    struct runners c = {.n = 0, .uneven = g->uneven};
    for (uint32_t i = 0; i < g->n; i++) {
        const struct group_member *m = &g->members[i];
        if (g->uneven ? m->share != 0 : m->contributes) {
            c.key[c.n] = mix64(m->node_id);
            c.share[c.n] = m->share;
            c.who[c.n++] = (uint8_t)i;
        }
    }
    return c;
}

/* -log2 of score / 2^64, in 1/2^24, bit by bit: the same everywhere, and never less for a lower score. */
static uint64_t minus_log2(uint64_t score)
{
    uint64_t zeros = score ? (uint64_t)__builtin_clzll(score) : 63, fraction = 0;
    uint64_t m = score << zeros >> 32 | (uint64_t)1 << 31; /* 1 to 2, in 1/2^31 */
    for (int bit = 0; bit < 24; bit++) {
        m = m * m >> 31;
        fraction = fraction << 1 | m >> 32;
        m >>= m >> 32;
    }
    return ((zeros + 1) << 24) - fraction;
}

/* The least -log(score) / share (weighted rendezvous): a member wins as often as its share says, and where
 * shares change runs go from those that lose to those that gain only. */
static bool better(uint64_t score, uint64_t log, uint64_t share, uint64_t best, uint64_t best_log, uint64_t best_share)
{
    uint64_t mine = log * best_share, other = best_log * share;
    return mine != other ? mine < other : score > best;
}

static uint8_t uneven_winner(const struct runners *c, uint64_t base)
{
    uint64_t best = 0, best_log = 0;
    uint32_t at = 0;
    for (uint32_t i = 0; i < c->n; i++) {
        uint64_t score = mix64(base ^ c->key[i]), log = minus_log2(score);
        if (i == 0 || better(score, log, c->share[i], best, best_log, c->share[at])) {
            best = score;
            best_log = log;
            at = i;
        }
    }
    return c->n ? c->who[at] : OWNER_NONE;
}

static uint8_t winner(const struct runners *c, uint64_t round, uint32_t run)
{
    uint64_t base = mix64(round * PHI + run), best = 0;
    uint8_t owner = OWNER_NONE;
    if (c->uneven)
        return uneven_winner(c, base);
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

/* The owner would be another one if the present one were not there. */
void backups_assign(const struct group *g, uint64_t round, uint32_t runs, const uint8_t *owner_of_run,
                    uint8_t *backup_of_run)
{
    for (uint32_t i = 0; i < g->n; i++) {
        struct group others = *g;
        if (g->uneven ? !g->members[i].share : !g->members[i].contributes)
            continue;
        others.members[i].contributes = 0;
        others.members[i].share = 0;
        struct runners c = runners_of(&others);
        for (uint32_t r = 0; r < runs; r++)
            if (owner_of_run[r] == i)
                backup_of_run[r] = winner(&c, round, r);
    }
}
