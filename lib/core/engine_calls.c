/* The trainer's calls and the events that answer them. */
#include "engine_internal.h"
#include <stdlib.h>
#include <string.h>

struct set *engine_set_at(engine *e, int handle)
{
    if (!e || handle < 0 || handle >= ENGINE_SETS_MAX || !e->sets[handle].used)
        return NULL;
    return &e->sets[handle];
}

struct set *engine_set_by_tensor(engine *e, uint32_t tensor_id, int *index)
{
    for (uint32_t i = 0; i < ENGINE_SETS_MAX; i++)
        if (e->sets[i].used && (*index = layout_find(&e->sets[i].layout, tensor_id)) >= 0)
            return &e->sets[i];
    return NULL;
}

struct set *engine_set_by_hash(engine *e, uint32_t hash)
{
    for (uint32_t i = 0; i < ENGINE_SETS_MAX; i++)
        if (e->sets[i].used && e->sets[i].layout.hash == hash)
            return &e->sets[i];
    return NULL;
}

static int layout_from(struct layout *l, const char *name, struct set_kind kind,
                       const engine_tensor *t, uint32_t n)
{
    struct tensor_spec specs[SLEET_TENSORS_MAX];
    for (uint32_t i = 0; i < n; i++)
        specs[i] = (struct tensor_spec){t[i].name, t[i].dtype, t[i].codec, t[i].count, t[i].rows};
    return layout_init(l, name, kind, specs, n);
}

void engine_forget_set(engine *e, struct set *s)
{
    int handle = s->handle;
    state_forget_set(e, handle);
    set_fini(s);
    for (uint32_t i = 1; i < e->view.n; i++)
        memset(&e->members[i].sets[handle], 0, sizeof e->members[i].sets[handle]);
    view_changed(&e->view);
}

/* The same set again, a free place, or the place of a set that changed while detached. */
static struct set *place_for(engine *e, const struct layout *l)
{
    struct set *spare = NULL;
    for (int i = ENGINE_SETS_MAX - 1; i >= 0; i--) {
        struct set *s = &e->sets[i];
        if (!s->used)
            spare = s;
        else if (s->layout.hash == l->hash)
            return s;
    }
    for (uint32_t i = 0; i < ENGINE_SETS_MAX; i++) {
        struct set *s = &e->sets[i];
        if (s->used && !s->attached && (!spare || strcmp(s->layout.name, l->name) == 0)) {
            engine_forget_set(e, s);
            return s;
        }
    }
    return spare;
}

/* How long the whole set takes at this node's rate. */
static sleet_duration on_the_wire(const engine *e, const struct layout *l)
{
    double seconds = (double)l->elements * 32 / (double)e->config.rate_bps;
    return seconds < 3600 ? (sleet_duration)(seconds * 1e9) : SEC(3600);
}

int engine_add_set(engine *e, const char *name, struct set_kind kind, const engine_tensor *t, uint32_t n, uint32_t hash,
                   struct set **out)
{
    struct layout l;
    int err = layout_from(&l, name, kind, t, n);
    if (err != SLEET_OK)
        return err;
    bool other = hash && l.hash != hash;
    struct set *s = other ? NULL : place_for(e, &l);
    *out = s;
    if (!s || s->used) {
        layout_fini(&l);
        return s ? SLEET_OK : other ? SLEET_EINVAL : SLEET_ELIMIT;
    }
    s->used = true;
    s->handle = (int)(s - e->sets);
    s->layout = l;
    sleet_duration wire = on_the_wire(e, &s->layout);
    budget_init(&s->budget, e->config.budget_first + wire, e->config.budget_min, e->config.budget_max + 2 * wire);
    return SLEET_OK;
}

int engine_register(engine *e, const char *name, struct set_kind kind, const engine_tensor *t,
                    uint32_t n, sleet_time now)
{
    struct set *s;
    if (!e || !name || !t || n == 0 || n > SLEET_TENSORS_MAX)
        return n > SLEET_TENSORS_MAX ? SLEET_ELIMIT : SLEET_EINVAL;
    if (e->config.declared.role == ROLE_AUXILIARY)
        return SLEET_EPERM;
    if (edge_list_fit(e->config.edges, e->members[0].node_id, &kind))
        return SLEET_EINVAL;
    for (uint32_t i = 0; i < ENGINE_SETS_MAX; i++)
        if (e->sets[i].used && e->sets[i].attached && strcmp(e->sets[i].layout.name, name) == 0)
            return SLEET_EBUSY;
    int err = engine_add_set(e, name, kind, t, n, 0, &s);
    if (err != SLEET_OK)
        return err;
    s->attached = true;
    late_drop(&s->late);
    edge_late_drop(s);
    low_drop(s);
    carry_drop(&s->carry, s->layout.fragments);
    s->established = false; /* new values: they count once they are the job's */
    s->schema_differs = false;
    s->low_in_a_row = s->apart.low = 0;
    s->apart.isolated = s->apart.looked = false;
    for (uint32_t i = 1; i < e->view.n; i++)
        e->members[i].sets[s->handle].differs = false;
    member_ping_all(e, now);
    return s->handle;
}

void engine_detach(engine *e, int handle, sleet_time now)
{
    struct set *s = engine_set_at(e, handle);
    if (!s)
        return;
    struct env env = engine_env(e);
    set_withdraw(s, &env, now);
    s->attached = s->established = s->event = false;
}

int engine_start(engine *e, int handle, const engine_start_args *a, sleet_time now)
{
    struct set *s = engine_set_at(e, handle);
    if (!s || !a || !a->send || !a->result)
        return SLEET_EINVAL;
    if (e->leaving)
        return SLEET_ELEFT;
    struct env env = engine_env(e);
    e->now = now;
    return set_start(s, &env, a, now);
}

int engine_cancel(engine *e, int handle, sleet_time now)
{
    struct set *s = engine_set_at(e, handle);
    if (!s)
        return SLEET_EINVAL;
    struct env env = engine_env(e);
    if (s->open) {
        set_close(s, s->open, &env, SLEET_ECANCELED, now);
    } else if (s->waiting) {
        set_withdraw(s, &env, now);
        s->event = true;
        s->event_error = SLEET_ECANCELED;
        memset(&s->report, 0, sizeof s->report);
    }
    return SLEET_OK;
}

int engine_set_strategy(engine *e, int handle, const char *word, const char **why, sleet_time now)
{
    const char *text;
    struct set *s = engine_set_at(e, handle);
    if (!s || !word)
        return SLEET_EINVAL;
    if (e->leaving)
        return SLEET_ELEFT;
    struct env env = engine_env(e);
    e->now = now;
    return set_switch(s, &env, word, why ? why : &text);
}

uint32_t engine_resume(engine *e, sleet_time now)
{
    struct env env = engine_env(e);
    uint32_t n = 0;
    e->now = now;
    for (uint32_t i = 0; i < ENGINE_SETS_MAX; i++)
        if (e->sets[i].used && e->sets[i].attached)
            n += set_resume(&e->sets[i], &env, now);
    return n;
}

void engine_leave(engine *e, sleet_time now)
{
    e->now = now;
    for (uint32_t i = 0; i < ENGINE_SETS_MAX; i++)
        if (e->sets[i].used)
            engine_cancel(e, (int)i, now);
    e->leaving = true;
    session_farewell(e);
    e->left = e->outbox_n == 0;
}

bool engine_poll(engine *e, engine_event *ev)
{
    memset(ev, 0, sizeof *ev);
    if (notice_poll(e, ev))
        return true;
    for (uint32_t i = 0; i < ENGINE_SETS_MAX; i++) {
        struct set *s = &e->sets[i];
        ev->set = (int)i;
        if (s->used && s->event) {
            s->event = false;
            ev->type = EVENT_ROUND;
            ev->error = s->event_error;
            ev->report = s->report;
            return true;
        }
        if (s->used && s->schema_event) {
            s->schema_event = false;
            ev->type = EVENT_SCHEMA;
            memcpy(ev->text, s->schema_text, sizeof ev->text);
            return true;
        }
        if (s->used && state_poll(e, (int)i, ev))
            return true;
    }
    return false;
}
