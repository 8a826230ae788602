/* See switch.h. */
#include "round/switch.h"
#include "round/round.h"

bool switch_newer(const struct wire_switch *a, const struct wire_switch *than)
{
    return a->version > than->version || (a->version == than->version && a->by > than->by);
}

static struct set_kind with(struct set_kind kind, const struct wire_strategy *s)
{
    kind.strategy = (sleet_strategy)s->id;
    kind.numbers[0] = s->numbers[0];
    kind.numbers[1] = s->numbers[1];
    return kind;
}

static struct wire_strategy strategy_in(const struct set_kind *kind)
{
    return (struct wire_strategy){(uint8_t)kind->strategy, {kind->numbers[0], kind->numbers[1]}};
}

struct set_kind switch_kind_at(const struct layout *l, const struct switching *s, uint64_t round)
{
    const struct wire_switch *w = &s->newest;
    return w->version ? with(l->kind, round < w->from ? &w->before : &w->to) : l->kind;
}

void switch_pace(struct switching *s, sleet_time now)
{
    if (s->started.ns) {
        sleet_duration gap = time_since(now, s->started);
        s->pace = s->pace ? s->pace + (gap - s->pace) / 4 : gap;
    }
    s->started = now;
}

/* Of so many rounds among neighbours, and what is kept between them. */
static uint64_t edges_bound(const struct layout *l, uint32_t members, uint32_t rounds)
{
    uint64_t late = l->kind.strategy == SLEET_RPS ? 0 : l->fragments * (uint64_t)(FRAGMENT_ELEMENTS * 4 + 8);
    return rounds * edge_bytes_bound(l, members) + low_bytes_bound(l) + late;
}

uint64_t switch_bytes_bound(const struct layout *l, const struct switching *s, uint32_t members, uint32_t rounds)
{
    const struct wire_strategy *const may[] = {&s->newest.to, &s->newest.before};
    uint64_t most = edges_bound(l, members, rounds);
    for (int i = 0; i < 2 && s->newest.version; i++) {
        struct layout any = *l;
        any.kind = with(l->kind, may[i]);
        uint64_t bytes = edges_bound(&any, members, rounds);
        most = bytes > most ? bytes : most;
    }
    return most - rounds * edge_bytes_bound(l, members);
}

/* NULL, or why the set cannot be averaged by it here. */
static const char *refuses(const struct layout *l, const struct env *e, const struct wire_strategy *s)
{
    struct set_kind kind = with(l->kind, s);
    const char *why = strategy_by_id((int)kind.strategy) ? kind_refuse(&kind) : "unknown strategy";
    return why ? why : edge_list_fit(e->config->edges, e->members[0].node_id, &kind);
}

/* Once more to everybody, see engine_send.c. */
static void adopt(struct set *s, const struct env *e, const struct wire_switch *w)
{
    char word[STRATEGY_WORD];
    const struct set_kind kind = with(s->layout.kind, &w->to);
    s->switching.newest = *w;
    s->announced |= SET_SWITCHED;
    LOG(&e->config->log, LOG_INFO, FAULT_NONE, "strategy-switched", F_S("set", s->layout.name),
        F_S("strategy", kind_strategy_word(&kind, word)), F_U("version", w->version), F_U("from_round", w->from),
        F_X("node", w->by));
}

/* Far enough ahead that all hear of it before they pin that round. */
static uint64_t effective(const struct set *s, const struct env *e)
{
    uint64_t rounds = s->switching.pace > 0 ? (uint64_t)(SWITCH_AHEAD / s->switching.pace) : 0;
    rounds = rounds < SWITCH_ROUNDS_MAX ? rounds : SWITCH_ROUNDS_MAX;
    return set_job_round(s, e) + e->config->window + 2 + rounds;
}

int set_switch(struct set *s, const struct env *e, const char *word, const char **why)
{
    struct set_kind kind = s->layout.kind;
    const struct wire_switch *last = &s->switching.newest;
    if (!kind_strategy_of(&kind, word)) {
#define WORD(name, value, text, ...) " " text
        *why = "unknown strategy: it is NAME or NAME:A or NAME:A,B, the names are" SLEET_STRATEGY_MAP(WORD);
#undef WORD
        return SLEET_EINVAL;
    }
    if ((*why = edge_list_fit(e->config->edges, e->members[0].node_id, &kind)) != NULL)
        return SLEET_EINVAL;
    const struct set_kind now = switch_kind_at(&s->layout, &s->switching, set_job_round(s, e) + 1);
    struct wire_switch w = {.version = last->version + 1, .by = e->members[0].node_id, .from = effective(s, e),
                            .to = strategy_in(&kind), .before = strategy_in(&now)};
    if ((*why = refuses(&s->layout, e, &w.to)) != NULL)
        return SLEET_EINVAL;
    if (last->version == UINT32_MAX) {
        *why = "no version is left above the one that a member has told: register the set under another name";
        return SLEET_ELIMIT;
    }
    adopt(s, e, &w);
    return SLEET_OK;
}

void set_hear_switch(struct set *s, const struct env *e, const struct wire_switch *w)
{
    const char *why = NULL;
    if (!switch_newer(w, &s->switching.newest))
        return;
    if (!(why = refuses(&s->layout, e, &w->before)) && !(why = refuses(&s->layout, e, &w->to))) {
        adopt(s, e, w);
        return;
    }
    if (s->switching.refused != w->version)
        LOG(&e->config->log, LOG_ERROR, FAULT_REMOTE, "switch-refused", F_S("set", s->layout.name),
            F_U("version", w->version), F_X("node", w->by), F_S("text", why));
    s->switching.refused = w->version;
}
