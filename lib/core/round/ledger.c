/* Guarantee 10: every fragment this node was to receive ends in one fate.
 * What was sent is told by the sender, what arrived is counted here: lost is
 * the difference, and a negative one is a bug of one of the two. */
#include "round/round.h"
#include <assert.h>

static void account(ledger_side *side, uint32_t expected, uint32_t told, uint32_t direct,
                    uint32_t repaired, uint32_t late)
{
    assert(direct + repaired <= expected && told <= expected);
    if (late > expected - direct - repaired)
        late = expected - direct - repaired; /* the same one may have come late twice */
    uint32_t arrived = direct + repaired + late;
    uint32_t sent = told > arrived ? told : arrived;
    side->expected += expected;
    side->direct += direct;
    side->repaired += repaired;
    side->late += late;
    side->lost += sent - arrived;
    side->unsent += expected - sent;
}

void ledger_lane(const struct round *r, uint32_t rank, ledger_side *scatter, ledger_side *gather)
{
    const struct lane *l = &r->lane[rank];
    uint32_t mine = r->lane[r->self].share;
    if ((int)rank == r->self)
        return;
    if (l->share && round_gathers(r))
        account(gather, l->share, round_disagrees(r, rank) ? 0 : l->commits_told, l->got_direct,
                l->got_repaired, l->got_late);
    if (mine && round_scatters(r) && r->group.members[rank].contributes)
        account(scatter, mine, l->sent_told, l->in_direct, l->in_repaired, l->in_late);
}

void ledger_gather(const struct round *r, ledger_side *side)
{
    ledger_side ignored = {0};
    for (uint32_t i = 0; i < r->group.n; i++)
        ledger_lane(r, i, &ignored, side);
}

static void add(ledger_side *sum, const ledger_side *x)
{
    sum->expected += x->expected;
#define LEDGER_X(field) sum->field += x->field;
    LEDGER_FATE_MAP(LEDGER_X)
#undef LEDGER_X
}

/* Said after 1, 2, 4, ... rounds. */
static void note_far_off(struct set *s, const struct round *r, const struct env *e, uint32_t rank)
{
    const struct lane *l = &r->lane[rank];
    struct member *m = &e->members[r->group.members[rank].slot];
    struct member_set *ms = &m->sets[s->handle];
    if (!l->clipped && !l->refused)
        return;
    ms->clipped += l->clipped;
    ms->refused += l->refused;
    ms->far_rounds++;
    ms->excess = l->excess > ms->excess ? l->excess : ms->excess;
    if ((ms->far_rounds & (ms->far_rounds - 1)) == 0)
        LOG(&e->config->log, LOG_WARN, FAULT_REMOTE, "member-far-off", F_X("node", m->node_id),
            F_U("round", r->number), F_U("rounds", ms->far_rounds), F_U("clipped", l->clipped),
            F_U("refused", l->refused), F_F("excess", (double)l->excess),
            F_S("set", s->layout.name));
}

static void judge_contributors(struct set *s, const struct round *r, const struct env *e)
{
    uint32_t mine = r->lane[r->self].share;
    for (uint32_t i = 0; mine && i < r->group.n; i++) {
        const struct lane *l = &r->lane[i];
        if ((int)i == r->self || !r->group.members[i].contributes)
            continue;
        struct member *m = &e->members[r->group.members[i].slot];
        struct member_set *ms = &m->sets[s->handle];
        uint32_t in = l->in_direct + l->in_repaired;
        ms->coverage += ((double)in / mine - ms->coverage) / 16;
        if (in || ms->silent_rounds < e->config->absent_rounds)
            arrival_add(&ms->arrival, (double)in / mine);
        ms->silent_rounds = in ? 0 : ms->silent_rounds + 1;
        if (ms->silent_rounds == 10)
            LOG(&e->config->log, LOG_WARN, FAULT_REMOTE, "member-contributes-nothing",
                F_X("node", m->node_id), F_U("rounds", ms->silent_rounds), F_S("set", s->layout.name));
    }
}

void ledger_finish(struct set *s, struct round *r, const struct env *e, bool final)
{
    engine_round h = {.round = r->number,
                      .final = final,
                      .joined = r->joined,
                      .group_size = r->group.n,
                      .flags = r->flags};
    for (uint32_t i = 0; i < r->group.n; i++)
        ledger_lane(r, i, &h.scatter, &h.gather);
    for (uint64_t i = 0; i < SET_HISTORY && i < s->history_n; i++) {
        engine_round *old = &s->history[i];
        if (old->round != r->number)
            continue;
        h.coverage = old->coverage;
        h.elapsed = old->elapsed;
        h.residual = old->residual;
        *old = h;
    }
    if (!final)
        return;
    add(&s->scatter_sum, &h.scatter);
    add(&s->gather_sum, &h.gather);
    judge_contributors(s, r, e);
    for (uint32_t i = 0; i < r->group.n; i++)
        note_far_off(s, r, e, i);
    witness_judge(s, r, e);
}
