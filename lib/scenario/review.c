/* review.c - faults that only the whole file shows. */
#include "scenario/parse.h"
#include <string.h>

static uint32_t all_nodes(const struct scenario *s)
{
    return (1u << (unsigned)s->nodes) - 1;
}

static bool known_nodes(struct reader *r, int line, uint32_t nodes)
{
    uint32_t beyond = nodes & ~all_nodes(r->s);
    if (nodes == UINT32_MAX || !beyond)
        return true;
    return reader_wrong(r, line, "node %d is named, but [nodes] count = %g",
                        __builtin_ctz(beyond) + 1, r->s->nodes);
}

static bool sound_link(struct reader *r, int line, const struct scenario_link *l)
{
    if ((l->gemodel_p > 0) != (l->gemodel_r > 0))
        return reader_wrong(r, line, "gemodel_p and gemodel_r come together, e.g. 0.02 and 0.2");
    if (l->gemodel_p > 0 && l->loss > 0)
        return reader_wrong(r, line, "give loss or gemodel_p, not both");
    if (l->jitter_ms > l->delay_ms)
        return reader_wrong(r, line, "jitter_ms = %g is more than delay_ms = %g", l->jitter_ms,
                            l->delay_ms);
    if (l->reorder > 0 && l->delay_ms <= 0)
        return reader_wrong(r, line, "reorder needs a delay_ms that can be overtaken");
    if (l->queue_kb > 0 && l->rate_mbit <= 0)
        return reader_wrong(r, line, "queue_kb needs a rate_mbit that makes a queue");
    return true;
}

static const struct scenario_link no_link;

/* What the events so far have done. */
struct state {
    uint32_t killed, frozen, cut; /* nodes */
    bool parted;
};

/* The nodes that an action is not for, with what they are then. */
static uint32_t not_now(const struct scenario *s, const struct scenario_event *e,
                        const struct state *st, const char **are)
{
    const uint32_t killed = e->nodes & st->killed, frozen = e->nodes & st->frozen;
    switch (e->action) {
    case SCENARIO_KILL:
    case SCENARIO_FREEZE:
    case SCENARIO_FREEZE_TRAINER:
        *are = killed ? "killed" : "frozen";
        return killed ? killed : frozen;
    case SCENARIO_THAW:
        *are = killed ? "killed" : "running";
        return e->nodes & ~st->frozen;
    case SCENARIO_START:
        *are = frozen ? "frozen" : "running";
        return e->nodes & ~st->killed;
    case SCENARIO_DOWN:
        *are = "cut off";
        return e->nodes & st->cut;
    case SCENARIO_UP:
        *are = "not cut off";
        return e->nodes & ~st->cut;
    case SCENARIO_REBIND:
        *are = "behind no NAT ([nodes] nat)";
        return e->nodes & ~s->nat;
    default:
        return 0;
    }
}

static void follow(const struct scenario_event *e, struct state *st)
{
    switch (e->action) {
    case SCENARIO_KILL:
        st->killed |= e->nodes;
        break;
    case SCENARIO_START:
        st->killed &= ~e->nodes;
        break;
    case SCENARIO_FREEZE:
    case SCENARIO_FREEZE_TRAINER:
        st->frozen |= e->nodes;
        break;
    case SCENARIO_THAW:
        st->frozen &= ~e->nodes;
        break;
    case SCENARIO_DOWN:
        st->cut |= e->nodes;
        break;
    case SCENARIO_UP:
        st->cut &= ~e->nodes;
        break;
    case SCENARIO_PARTITION:
    case SCENARIO_HEAL:
        st->parted = e->action == SCENARIO_PARTITION;
        break;
    default:
        break;
    }
}

/* An event against the state that those before it leave. */
static bool sound_event(struct reader *r, struct scenario_event *e, struct state *st)
{
    const char *are = "";
    if (e->action == SCENARIO_ACTIONS || e->when == WHEN_MISSING)
        return reader_wrong(r, e->line, "[event %s] needs %s", e->name,
                            e->when == WHEN_MISSING ? "at_s, at_step or after_s"
                                                    : "do, e.g. do = freeze 3");
    if (!known_nodes(r, e->line, e->nodes))
        return false;
    e->nodes &= all_nodes(r->s);
    if (e->action == SCENARIO_LINK)
        return sound_link(r, e->line, &e->link);
    if (memcmp(&e->link, &no_link, sizeof no_link) != 0)
        return reader_wrong(r, e->line, "[event %s] changes a link only with do = link NODES",
                            e->name);
    uint32_t wrong = not_now(r->s, e, st, &are);
    if (wrong)
        return reader_wrong(r, e->line, "[event %s]: %s %d: the node is %s then", e->name,
                            scenario_action_names[e->action], __builtin_ctz(wrong) + 1, are);
    if (e->action == SCENARIO_HEAL && !st->parted)
        return reader_wrong(r, e->line, "[event %s]: heal without a partition before it", e->name);
    follow(e, st);
    return true;
}

static void review_links(struct reader *r)
{
    struct scenario *s = r->s;
    for (int i = 0; i < SCENARIO_NODES_MAX; i++) {
        if (!(r->own_link & 1u << i))
            s->link[i] = r->all;
        else if (!known_nodes(r, r->link_line[i], 1u << i))
            return;
        if (!sound_link(r, r->link_line[i] ? r->link_line[i] : 1, &s->link[i]))
            return;
    }
}

void scenario_review(struct reader *r)
{
    struct scenario *s = r->s;
    struct state state = {0};
    if (s->nodes < 1) {
        reader_wrong(r, r->line, "[nodes] count is missing, e.g. count = 4");
        return;
    }
    if (s->workload.min_nodes == 0)
        s->workload.min_nodes = s->nodes;
    if (s->workload.min_nodes > s->nodes)
        reader_wrong(r, r->line, "[workload] min_nodes = %g is more than [nodes] count = %g",
                     s->workload.min_nodes, s->nodes);
    if (r->starts && r->starts != (int)s->nodes)
        reader_wrong(r, r->starts_line, "start_s has %d numbers for %g nodes", r->starts, s->nodes);
    if (s->expects == 0)
        reader_wrong(r, r->line, "[expect] is missing: what should come out? e.g. done = 1");
    if (s->seeds > s->nodes)
        reader_wrong(r, r->line, "[nodes] seeds = %g is more than count = %g", s->seeds, s->nodes);
    if (known_nodes(r, r->nat_line, s->nat))
        s->nat &= all_nodes(s);
    review_links(r);
    for (int i = 0; i < s->events; i++)
        if (!sound_event(r, &s->event[i], &state))
            return;
    for (int i = 0; i < s->expects; i++)
        known_nodes(r, s->expect[i].line, s->expect[i].nodes);
}

bool scenario_has(const struct scenario *s, enum scenario_action action)
{
    for (int i = 0; i < s->events; i++)
        if (s->event[i].action == action)
            return true;
    return false;
}

uint32_t scenario_steps(const struct scenario *s)
{
    const struct scenario_workload *w = &s->workload;
    uint32_t each = (uint32_t)(w->samples / (s->nodes * w->batch));
    return (each ? each : 1) * (uint32_t)w->epochs;
}

uint32_t scenario_parameters(const struct scenario *s)
{
    uint32_t hidden = (uint32_t)s->workload.hidden;
    return (28 * 28 + 1) * hidden + (hidden + 1) * 10;
}
