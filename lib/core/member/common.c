#include "member/common.h"
#include <stdlib.h>
#include <string.h>

void common_fini(struct common *c)
{
    free(c->p);
    *c = (struct common){0};
}

/* Where the id is, or belongs. */
static uint32_t place_of(const struct common *c, uint64_t node_id)
{
    uint32_t low = 0, high = c->n;
    while (low < high) {
        uint32_t mid = (low + high) / 2;
        if (c->p[mid].node_id < node_id)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

struct person *common_find(const struct common *c, uint64_t node_id)
{
    uint32_t i = place_of(c, node_id);
    return i < c->n && c->p[i].node_id == node_id ? &c->p[i] : NULL;
}

bool common_add(struct common *c, uint64_t node_id, uint64_t boot_id)
{
    uint32_t i = place_of(c, node_id);
    if (c->n == c->room) {
        uint32_t room = c->room ? 2 * c->room : 8;
        struct person *p = realloc(c->p, room * sizeof *p);
        if (!p)
            return false;
        c->p = p;
        c->room = room;
    }
    memmove(&c->p[i + 1], &c->p[i], (c->n - i) * sizeof c->p[0]);
    c->p[i] = (struct person){.node_id = node_id, .boot_id = boot_id};
    c->n++;
    return true;
}

void common_remove(struct common *c, uint64_t node_id)
{
    uint32_t i = place_of(c, node_id);
    if (i == c->n || c->p[i].node_id != node_id)
        return;
    c->n--;
    memmove(&c->p[i], &c->p[i + 1], (c->n - i) * sizeof c->p[0]);
}

bool common_settle(struct common *c, sleet_time now)
{
    bool news = false;
    for (uint32_t i = 0; i < c->n; i++) {
        struct person *p = &c->p[i];
        news |= p->missing == p->here;
        if (!p->here && !p->missing)
            p->since = now;
        p->missing = !p->here;
    }
    return news;
}

bool common_goes_on(const struct common *c, uint64_t self)
{
    uint32_t all = c->n + 1, here = all - common_missing(c);
    bool lowest = c->n == 0 || self < c->p[0].node_id || !c->p[0].missing;
    return 2 * here > all || (2 * here == all && lowest);
}

bool common_leads(const struct common *c, uint64_t self)
{
    for (uint32_t i = 0; i < c->n && c->p[i].node_id < self; i++)
        if (!c->p[i].missing)
            return false;
    return true;
}

uint32_t common_missing(const struct common *c)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->n; i++)
        n += c->p[i].missing;
    return n;
}

void common_drop(struct common *c, sleet_duration missing_for, sleet_time now)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < c->n; i++)
        if (!c->p[i].missing || time_since(now, c->p[i].since) < missing_for)
            c->p[kept++] = c->p[i];
    c->n = kept;
}

sleet_time common_deadline(const struct common *c, sleet_duration missing_for)
{
    sleet_time t = TIME_NEVER;
    for (uint32_t i = 0; i < c->n; i++)
        if (c->p[i].missing)
            t = time_min(t, time_add(c->p[i].since, missing_for));
    return t;
}
