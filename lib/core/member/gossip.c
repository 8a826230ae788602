/* Buckets of doubly linked lists: one for each number of times sent. */
#include "member/gossip.h"
#include <stdlib.h>

void gossip_init(struct gossip *g)
{
    *g = (struct gossip){0};
    for (uint32_t i = 0; i < GOSSIP_SENDS_MAX; i++)
        g->head[i] = g->tail[i] = GOSSIP_END;
}

void gossip_fini(struct gossip *g)
{
    free(g->link);
    gossip_init(g);
}

bool gossip_grow(struct gossip *g, uint32_t room)
{
    struct gossip_link *link = realloc(g->link, room * sizeof *link);
    if (!link)
        return false;
    for (g->link = link; g->room < room; g->room++)
        link[g->room].sent = GOSSIP_SENDS_MAX;
    return true;
}

bool gossip_has(const struct gossip *g, uint32_t id)
{
    return g->link[id].sent < GOSSIP_SENDS_MAX;
}

static void append(struct gossip *g, uint32_t id, uint8_t sent)
{
    uint16_t last = g->tail[sent];
    g->link[id] = (struct gossip_link){last, GOSSIP_END, sent};
    g->tail[sent] = (uint16_t)id;
    if (last == GOSSIP_END)
        g->head[sent] = (uint16_t)id;
    else
        g->link[last].after = (uint16_t)id;
    g->n++;
}

void gossip_remove(struct gossip *g, uint32_t id)
{
    struct gossip_link *l = &g->link[id];
    if (!gossip_has(g, id))
        return;
    if (l->before == GOSSIP_END)
        g->head[l->sent] = l->after;
    else
        g->link[l->before].after = l->after;
    if (l->after == GOSSIP_END)
        g->tail[l->sent] = l->before;
    else
        g->link[l->after].before = l->before;
    l->sent = GOSSIP_SENDS_MAX;
    g->n--;
}

void gossip_add(struct gossip *g, uint32_t id)
{
    gossip_remove(g, id);
    append(g, id, 0);
}

void gossip_sent(struct gossip *g, uint32_t id, uint32_t limit)
{
    if (!gossip_has(g, id))
        return;
    uint8_t sent = (uint8_t)(g->link[id].sent + 1);
    gossip_remove(g, id);
    if (sent < limit && sent < GOSSIP_SENDS_MAX)
        append(g, id, sent);
}

static uint32_t first_from(const struct gossip *g, uint32_t sent)
{
    while (sent < GOSSIP_SENDS_MAX && g->head[sent] == GOSSIP_END)
        sent++;
    return sent < GOSSIP_SENDS_MAX ? g->head[sent] : GOSSIP_END;
}

uint32_t gossip_first(const struct gossip *g)
{
    return g->n ? first_from(g, 0) : GOSSIP_END;
}

uint32_t gossip_after(const struct gossip *g, uint32_t id)
{
    const struct gossip_link *l = &g->link[id];
    return l->after != GOSSIP_END ? l->after : first_from(g, l->sent + 1u);
}
