/* Parity that comes, and what is rebuilt from it. */
#include "engine_internal.h"
#include "wire/parity.h"

struct rebuilding {
    engine *e;
    struct member *m;
    struct set *s;
    struct round *r;
    uint32_t rank, hash;
    enum parity_way way;
};

/* A datagram as if it had come from that member.  It counts in the ledger as repaired. */
static void take_block(void *arg, const uint8_t *block, size_t len)
{
    const struct rebuilding *b = arg;
    const struct layout *l = &b->s->layout;
    struct wire_data d;
    struct part part[RUN_FRAGMENTS];
    uint32_t tensor, n;
    uint64_t offset;
    uint8_t phase = b->way == PARITY_GATHER ? PHASE_REPAIR : PHASE_SCATTER_REPAIR;
    if (wire_block_decode(&d, phase, block, len) != SLEET_OK || d.fragment >= l->fragments)
        return;
    layout_locate(l, d.fragment, &tensor, &offset, &n);
    d.fragment -= l->tensors[tensor].first;
    d.tensor = l->tensors[tensor].id;
    d.group = b->hash;
    if (parts_decode(l, tensor, &d, part) != SLEET_OK)
        return;
    b->e->counters.rebuilt +=
        engine_take_data(b->e, b->m, b->s, b->r, (int)b->rank, &d, part) == FATE_ACCEPTED;
}

void parity_try(engine *e, struct member *m, struct set *s, struct round *r, uint32_t rank, uint32_t hash,
                enum parity_way way, uint32_t group)
{
    struct rebuilding b = {e, m, s, r, rank, hash, way};
    parity_rebuild(r, rank, way, group, take_block, &b);
}

void parity_recv(engine *e, struct member *m, const uint8_t *body, size_t len)
{
    struct wire_parity p;
    struct env env = engine_env(e);
    if (wire_parity_decode(&p, body, len) != SLEET_OK) {
        e->counters.corrupt++;
        return;
    }
    struct set *s = engine_set_by_hash(e, p.set);
    if (!s) {
        e->counters.foreign++;
        return;
    }
    struct round *r = set_find(s, round_expand(set_job_round(s, &env), p.round));
    int rank = r ? engine_rank_of(r, m) : -1;
    if (rank < 0) {
        e->counters.stale++;
        return;
    }
    if (!parity_take(r, (uint32_t)rank, &p)) {
        e->counters.corrupt++;
        return;
    }
    e->counters.accepted++;
    parity_try(e, m, s, r, (uint32_t)rank, p.group,
               p.phase == PHASE_GATHER_PARITY ? PARITY_GATHER : PARITY_SCATTER, p.index);
}
