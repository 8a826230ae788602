/* The sets of an auxiliary.  It has no trainer that would register one: those who train tell it which tensors they
 * average (SCHEMA frames, one set at a time), and it keeps what it takes to reduce them. */
#include "engine_internal.h"
#include <stdlib.h>
#include <string.h>

#define GIVEN_UP SEC(3) /* since a set was told further, in favour of another one */

void serve_fini(engine *e)
{
    free(e->lesson.tensors);
    e->lesson = (struct lesson){.refused = e->lesson.refused};
}

static bool trained(const engine *e, const struct set *s)
{
    for (uint32_t i = 1; i < e->view.n; i++)
        if (e->members[i].alive && e->members[i].sets[s->handle].matches && e->members[i].sets[s->handle].attached)
            return true;
    return false;
}

/* A place for the set: a free one, or that of a set that nobody trains any more. */
static bool make_room(engine *e, const char *name)
{
    struct set *spare = NULL;
    bool room = false;
    for (uint32_t i = 0; i < ENGINE_SETS_MAX; i++) {
        struct set *s = &e->sets[i];
        room |= !s->used;
        if (s->used && strcmp(s->layout.name, name) == 0 && trained(e, s))
            return false; /* the others do not agree what it is */
        if (s->used && !trained(e, s))
            spare = s;
    }
    if (!room && spare)
        engine_forget_set(e, spare);
    return room || spare;
}

static void refuse(engine *e, const struct wire_schema *w, const char *why)
{
    if (e->lesson.refused != w->set)
        LOG(&e->config.log, LOG_WARN, FAULT_LOCAL, "set-not-served", F_S("set", w->name), F_S("reason", why));
    serve_fini(e);
    e->lesson.refused = w->set;
}

/* All is told. */
static void begin(engine *e, const struct wire_schema *w)
{
    struct lesson *l = &e->lesson;
    struct set_kind kind = kind_get(w->kind);
    struct set *s;
    if (kind_refuse(&kind) || !make_room(e, w->name)) {
        refuse(e, w, kind_refuse(&kind) ? "its kind is not known here" : "eight others are trained, or one of this name with other tensors");
    } else if (engine_add_set(e, w->name, kind, l->tensors, w->tensors, w->set, &s) != SLEET_OK) {
        refuse(e, w, "its tensors are not known here, or memory is short");
    } else {
        s->serves = true;
        LOG(&e->config.log, LOG_INFO, FAULT_NONE, "set-served", F_S("set", w->name));
        serve_fini(e);
        member_ping_all(e, e->now);
    }
}

void serve_recv(engine *e, const struct wire_schema *w, struct wire_schema_ack *a)
{
    struct lesson *l = &e->lesson;
    if (l->tensors && l->set != w->set && time_since(e->now, l->at) > GIVEN_UP)
        serve_fini(e);
    if (!l->tensors && w->first == 0 && (l->tensors = calloc(w->tensors, sizeof *l->tensors))) {
        l->set = w->set;
        l->n = w->tensors;
    }
    if (!l->tensors || l->set != w->set || l->n != w->tensors)
        return; /* one after the other: it is told again */
    bool further = w->first == l->have; /* else it is what was told before */
    for (uint32_t i = 0; further && i < w->n; i++) {
        engine_tensor *t = &l->tensors[l->have + i];
        *t = (engine_tensor){.dtype = (sleet_dtype)w->entries[i].dtype, .codec = (sleet_codec)w->entries[i].codec,
                             .count = w->entries[i].count, .rows = w->entries[i].rows};
        memcpy(t->name, w->entries[i].name, sizeof t->name);
    }
    l->have = (uint16_t)(l->have + (further ? w->n : 0));
    l->at = further ? e->now : l->at;
    a->verdict = VERDICT_MATCH;
    a->next = l->have;
    memcpy(a->kind, w->kind, sizeof a->kind);
    if (l->have == l->n)
        begin(e, w);
}
