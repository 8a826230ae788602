/* Groups that others pinned, so that their masks can be read. */
#include "round/round.h"

const struct group *set_known_group(const struct set *s, const struct round *r, uint32_t hash)
{
    if (r->group.hash == hash)
        return &r->group;
    for (uint32_t i = 0; i < KNOWN_GROUPS; i++)
        if (s->known[i].n && s->known[i].hash == hash)
            return &s->known[i];
    return NULL;
}

void set_learn_group(struct set *s, const struct group *g)
{
    for (uint32_t i = 0; i < KNOWN_GROUPS; i++)
        if (s->known[i].n && s->known[i].hash == g->hash)
            return;
    s->known[s->known_next++ % KNOWN_GROUPS] = *g; /* the oldest makes room */
}

const struct group *set_pinned_group(const struct set *s, uint32_t hash)
{
    for (uint32_t i = 0; i < ROUNDS_RING; i++)
        if (s->ring[i] && s->ring[i]->group.hash == hash)
            return &s->ring[i]->group;
    return NULL;
}

bool round_note_group(struct round *r, uint32_t rank, uint32_t hash)
{
    struct lane *l = &r->lane[rank];
    bool news = hash != r->group.hash && l->group != hash;
    l->group = hash;
    r->mixed |= news;
    return news;
}

bool round_disagrees(const struct round *r, uint32_t rank)
{
    return r->lane[rank].group && r->lane[rank].group != r->group.hash;
}
