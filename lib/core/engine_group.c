/* Groups told and asked for, where members pinned different ones. */
#include "engine_internal.h"
#include "strategy/share.h"

#define ASK_GAP MS(10)

static void tell(engine *e, struct member *m, const struct set *s, const struct group *g)
{
    uint8_t body[1184];
    struct wire_group w = {.set = s->layout.hash, .group = g->hash, .n = g->n};
    for (uint32_t i = 0; i < g->n; i++)
        w.members[i] = (struct wire_member){g->members[i].node_id, g->members[i].boot_id,
                                            g->members[i].contributes, g->members[i].uplink};
    size_t len = wire_group_encode(body, sizeof body, &w);
    outbox_put(e, &m->addr, (uint32_t)(m - e->members), m->peer_index, WIRE_GROUP, body, len);
}

void group_note(engine *e, struct member *m, struct set *s, struct round *r, uint32_t rank, uint32_t hash)
{
    if (round_note_group(r, rank, hash))
        tell(e, m, s, &r->group); /* before commits that it could not read */
}

void group_ask(engine *e, struct member *m, const struct set *s, uint32_t hash)
{
    uint8_t body[16];
    struct wire_group_req w = {.set = s->layout.hash, .group = hash};
    struct member_set *ms = &m->sets[s->handle];
    if (time_before(e->now, ms->ask_at))
        return;
    ms->ask_at = time_add(e->now, ASK_GAP);
    size_t len = wire_group_req_encode(body, sizeof body, &w);
    outbox_put(e, &m->addr, (uint32_t)(m - e->members), m->peer_index, WIRE_GROUP_REQ, body, len);
}

void group_recv_req(engine *e, struct member *m, const uint8_t *body, size_t len)
{
    struct wire_group_req w;
    if (wire_group_req_decode(&w, body, len) != SLEET_OK) {
        e->counters.corrupt++;
        return;
    }
    const struct set *s = engine_set_by_hash(e, w.set);
    const struct group *g = s ? set_pinned_group(s, w.group) : NULL;
    e->counters.accepted += s != NULL;
    e->counters.foreign += s == NULL;
    if (g)
        tell(e, m, s, g);
}

void group_recv(engine *e, const uint8_t *body, size_t len)
{
    struct wire_group w;
    struct group g = {0};
    if (wire_group_decode(&w, body, len) != SLEET_OK) {
        e->counters.corrupt++;
        return;
    }
    struct set *s = engine_set_by_hash(e, w.set);
    e->counters.accepted += s != NULL;
    e->counters.foreign += s == NULL;
    if (!s)
        return;
    for (uint32_t i = 0; i < w.n; i++)
        g.members[g.n++] = (struct group_member){.node_id = w.members[i].node_id,
                                                 .boot_id = w.members[i].boot_id,
                                                 .contributes = w.members[i].contributes,
                                                 .uplink = w.members[i].uplink,
                                                 .slot = -1};
    g.hash = w.group;
    group_share(&g);
    set_learn_group(s, &g);
}
