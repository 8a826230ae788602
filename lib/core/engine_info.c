/* What an operator sees. */
#include "engine_internal.h"
#include <string.h>

void engine_get_counters(const engine *e, engine_counters *out)
{
    *out = e->counters;
}

uint32_t engine_get_peers(const engine *e, engine_peer *out, uint32_t max, sleet_time now)
{
    uint32_t n = 0;
    for (uint32_t i = 1; i < e->view.n && n < max; i++) {
        const struct member *m = &e->members[i];
        if (!m->used)
            continue;
        engine_peer *p = &out[n++];
        *p = (engine_peer){.node_id = m->node_id,
                           .boot_id = m->boot_id,
                           .addr = m->addr,
                           .declared = m->declared,
                           .alive = m->alive,
                           .left = m->left,
                           .evicted = m->evicted,
                           .stopped = m->alive && flow_stopped(&m->flow),
                           .rate_bps = m->flow.pacer.rate_bps,
                           .silent = time_is_never(m->heard) ? -1 : time_since(now, m->heard),
                           .rtt = m->rtt.valid ? m->rtt.srtt : -1,
                           .sent = m->tx_sent,
                           .received = m->rx_received,
                           .drift = -1,
                           .gaps = m->gaps,
                           .loss = loss_share(&m->loss),
                           .loss_told = m->loss_told,
                           .keep = m->keep,
                           .capacity_least = m->capacity_told && m->capacity_least,
                           .capacity = m->capacity_told ? (int64_t)m->capacity_told : -1,
                           .protection = m->protection};
        p->lost = member_highest(m) > m->rx_received ? member_highest(m) - m->rx_received : 0;
        for (uint32_t k = 0; k < ENGINE_SETS_MAX; k++) {
            if (!e->sets[k].used || !m->sets[k].matches)
                continue;
            p->round = m->sets[k].round;
            p->contributing = m->sets[k].attached && m->sets[k].established;
            p->silent_rounds = m->sets[k].silent_rounds;
            p->coverage = m->sets[k].coverage;
            p->clipped = m->sets[k].clipped;
            p->refused = m->sets[k].refused;
            p->far_rounds = m->sets[k].far_rounds;
            p->disputed = m->sets[k].disputed;
            p->disputes = m->sets[k].disputes;
            p->excess = (double)m->sets[k].excess;
            p->drift = m->sets[k].drift_round ? (double)m->sets[k].drift : -1;
            break;
        }
    }
    return n;
}

/* The first of these that holds. */
static const char *why_idle(const struct set *s, const struct env *e)
{
    struct plan p;
    if (s->serves)
        return NULL; /* rounds are the others' */
    if (!s->attached)
        return "no trainer is attached";
    if (s->schema_differs)
        return "the tensors differ from another node's";
    if (!s->established && set_too_many(s, e))
        return "more than 64 trainers: a set that averages gradients or deltas has one group; average models instead";
    if (set_parked(s, e))
        return "parked: too few of the last common view can be heard; sleetctl resume goes on with these";
    if (s->apart.isolated)
        return "paused: ten rounds in a row covered too little; sleetctl resume goes on all the same";
    if (!s->established && !set_group(s, e, s->own_round + 1, &p))
        return "joining: nobody that can be heard holds the job's model yet";
    if (!s->established)
        return "joining: takes the others' model with the next round that arrives whole";
    return NULL;
}

static void tell_strategy(const struct set *s, engine_set *out)
{
    const struct wire_switch *w = &s->switching.newest;
    const struct set_kind now = switch_kind_at(&s->layout, &s->switching, out->job_round + 1),
                          last = switch_kind_at(&s->layout, &s->switching, UINT64_MAX);
    kind_strategy_word(&now, out->strategy);
    kind_strategy_word(&last, out->next_strategy);
    out->strategy_version = w->version;
    out->strategy_from = w->from;
    out->strategy_by = w->by;
}

bool engine_wanted(const engine *e, int handle)
{
    if (handle < 0 || handle >= ENGINE_SETS_MAX || !e->sets[handle].used || !e->sets[handle].attached)
        return false;
    struct env env = engine_env(e);
    return set_wanted(&e->sets[handle], &env);
}

bool engine_get_set(const engine *e, int handle, engine_set *out, sleet_time now)
{
    (void)now;
    if (handle < 0 || handle >= ENGINE_SETS_MAX || !e->sets[handle].used)
        return false;
    const struct set *s = &e->sets[handle];
    struct env env = engine_env(e);
    *out = (engine_set){.tensors = s->layout.n,
                        .hash = s->layout.hash,
                        .elements = s->layout.elements,
                        .round = s->own_round,
                        .job_round = set_job_round(s, &env),
                        .attached = s->attached,
                        .joining = s->attached && !s->established,
                        .parked = set_parked(s, &env),
                        .paused = s->apart.isolated,
                        .common = s->apart.common.n + 1,
                        .missing = common_missing(&s->apart.common),
                        .lineage = s->established ? s->lineage : 0,
                        .parent = s->established ? s->parent : 0,
                        .forked_at = s->established ? s->forked_at : 0,
                        .idle = why_idle(s, &env),
                        .schema_differs = s->schema_differs,
                        .trainers = s->attached,
                        .budget = budget_now(&s->budget),
                        .longest_wait = s->longest,
                        .coverage = s->reports ? s->coverage_sum / (double)s->reports : 0,
                        .rounds = s->reports,
                        .scatter = s->scatter_sum,
                        .gather = s->gather_sum};
    carry_tell(s, &out->residual);
    const struct drift_distance d = drift_distance(s, &env);
    out->consensus_distance = d.consensus;
    out->mixing = d.mixing;
    out->late_waiting = s->edge_late.n;
    out->late_added = s->edge_late.added;
    out->late_dropped = s->edge_late.dropped;
    tell_strategy(s, out);
    memcpy(out->name, s->layout.name, sizeof out->name);
    for (uint32_t i = 1; i < e->view.n; i++)
        out->trainers += e->members[i].alive && e->members[i].sets[handle].matches &&
                         e->members[i].sets[handle].attached;
    return true;
}

uint32_t engine_get_rounds(const engine *e, int handle, engine_round *out, uint32_t max)
{
    if (handle < 0 || handle >= ENGINE_SETS_MAX || !e->sets[handle].used)
        return 0;
    const struct set *s = &e->sets[handle];
    uint32_t n = 0;
    for (uint64_t i = s->history_n; i > 0 && s->history_n - i < SET_HISTORY && n < max; i--)
        out[n++] = s->history[(i - 1) % SET_HISTORY];
    return n;
}

bool engine_explain(const engine *e, int handle, uint64_t round, engine_explanation *out)
{
    struct env env = engine_env(e);
    return handle >= 0 && handle < ENGINE_SETS_MAX && e->sets[handle].used &&
           set_explain(&e->sets[handle], &env, round, out);
}

uint32_t engine_nodes_alive(const engine *e, sleet_time now)
{
    uint32_t n = 1;
    (void)now;
    for (uint32_t i = 1; i < e->view.n; i++)
        n += e->members[i].alive;
    return n;
}

uint64_t engine_memory_bound_bytes(const engine *e)
{
    uint32_t group = e->view.room < SLEET_GROUP_MAX ? e->view.room : SLEET_GROUP_MAX, rounds = e->config.window + 2;
    uint64_t sealed = sizeof(struct peer) + sizeof(struct offer) + 2 * REPLAY_WORDS * 8;
    uint64_t bytes = sizeof *e + state_memory_bound(e) +
                     (uint64_t)e->view.room * (sizeof(struct member) + REPLAY_WORDS * 8 + 32);
    if (e->config.declared.role == ROLE_AUXILIARY)
        bytes += SLEET_TENSORS_MAX * sizeof(engine_tensor); /* a set that it is being told of */
    if (e->gate)
        bytes += sizeof *e->gate + (uint64_t)e->view.room * sealed;
    for (uint32_t i = 0; e->config.clip > 0 && i < ENGINE_SETS_MAX; i++)
        if (e->sets[i].used)
            bytes += clip_bytes_bound(&e->sets[i].layout) + rounds * clip_round_bytes_bound(&e->sets[i].layout, group);
    for (uint32_t i = 0; i < ENGINE_SETS_MAX; i++) {
        const struct set *s = &e->sets[i];
        const struct layout *l = &s->layout;
        if (s->used)
            bytes += rounds * round_bytes_bound(l, group) + switch_bytes_bound(l, &s->switching, group, rounds) +
                     low_kept_bytes(&s->low) + late_bytes_bound(l) + carry_bytes_bound(l) + sizeof(struct tensor) * l->n;
    }
    return bytes;
}
