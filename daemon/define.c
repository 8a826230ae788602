/* define.c - the commands that define a set, tensor by tensor, and register it. */
#include "command.h"
#include "log.h"
#include "loop.h"
#include "strategy/edge_list.h"
#include <inttypes.h>

#define ELEMENTS_MAX (UINT64_C(1) << 40)

void define_forget(struct definition *def)
{
    free(def->tensors);
    *def = (struct definition){0};
}

/* The number of an optional word; 0, the default, where it is missing or "-"; -1: unknown. */
static int choice(const struct call *a, int i, int (*of)(const char *))
{
    if (a->argc <= i || strcmp(a->argv[i], "-") == 0)
        return 0;
    int value = of(a->argv[i]);
    return value ? value : -1;
}

void define_do_set(const struct call *a)
{
    struct definition *def = &a->c->def;
    define_forget(def);
    struct set_kind kind = {.payload = (sleet_payload)payload_of(a->argv[1]),
                            .estimator = (sleet_estimator)choice(a, 2, estimator_of),
                            .update = (sleet_update)choice(a, 3, update_of),
                            .exchange = (sleet_exchange)choice(a, 4, exchange_of)};
    bool named = a->argc > 5 && strcmp(a->argv[5], "-") != 0;
    const char *why = named && !kind_strategy_of(&kind, a->argv[5]) ? "unknown strategy" : NULL;
    uint64_t spread = 0;
    if (a->argc > 6 && !command_number(a->argv[6], SLEET_SPREAD_MAX, &spread))
        why = "spread is 1 to 64 rounds";
    kind.spread = (uint8_t)spread;
    def->kind = kind_resolved(kind);
    why = why ? why : kind_refuse(&def->kind);
    why = why ? why : edge_list_fit(a->k->d->config->edges, a->k->d->config->node_id, &def->kind);
    if (!why && control_decode(def->name, a->argv[0])) {
        control_say(a->c, "200 ok");
        return;
    }
    define_forget(def);
    command_fail(a->c, SLEET_EINVAL, why ? why : "set NAME PAYLOAD: bad name");
}

void define_do_tensor(const struct call *a)
{
    struct definition *def = &a->c->def;
    engine_tensor t = {.dtype = (sleet_dtype)control_dtype_of(a->argv[1]),
                       .codec = (sleet_codec)choice(a, 3, codec_of)};
    if (!def->name[0]) {
        command_fail(a->c, SLEET_ESTATE, "tensor: say `set` first");
        return;
    }
    uint64_t rows = 0;
    if (!control_decode(t.name, a->argv[0]) || !t.dtype ||
        !command_number(a->argv[2], ELEMENTS_MAX, &t.count) ||
        (a->argc > 4 && !command_number(a->argv[4], UINT32_MAX, &rows)) || (rows && t.count % rows)) {
        command_fail(a->c, SLEET_EINVAL, "tensor NAME DTYPE COUNT: bad name, dtype, count or rows");
        return;
    }
    t.rows = (uint32_t)rows;
    const char *why = t.codec ? kind_refuse_codec(&def->kind, t.dtype, (int)t.codec) : NULL;
    if (why) {
        command_fail(a->c, SLEET_EINVAL, why);
        return;
    }
    if (def->count == SLEET_TENSORS_MAX) {
        command_fail(a->c, SLEET_ELIMIT, "too many tensors in one set");
        return;
    }
    for (uint32_t i = 0; i < def->count; i++)
        if (strcmp(def->tensors[i].name, t.name) == 0) {
            command_fail(a->c, SLEET_EEXIST, "the set has a tensor of this name already");
            return;
        }
    if (def->count == def->cap) {
        uint32_t cap = def->cap ? 2 * def->cap : 16;
        engine_tensor *grown = realloc(def->tensors, cap * sizeof *grown);
        if (!grown) {
            command_fail(a->c, SLEET_ENOMEM, NULL);
            return;
        }
        def->tensors = grown;
        def->cap = cap;
    }
    def->tensors[def->count++] = t;
    def->half += control_align(4 * t.count, CONTROL_ALIGN);
    def->fragments += kind_fragments(t.count);
    control_say(a->c, "200 ok");
}

uint64_t define_shared_held(const struct control *k)
{
    uint64_t held = 0;
    for (int i = 0; i < ENGINE_SETS_MAX; i++)
        held += k->slots[i].shm.bytes + k->states[i].shm.bytes;
    return held;
}

/* Shared memory and pointer tables of a slot. */
static bool slot_map(struct slot *s, const struct definition *def, uint64_t held)
{
    const struct control_shared shared = control_shared_of(&def->kind, def->half, def->fragments);
    s->buffers = calloc(2 * (size_t)def->count, sizeof *s->buffers);
    if (!s->buffers || !shm_create(&s->shm, shared.bytes, held)) {
        free(s->buffers);
        s->buffers = NULL;
        return false;
    }
    uint64_t at = 0;
    for (uint32_t i = 0; i < def->count; i++) {
        s->buffers[i] = s->shm.map + at;
        s->buffers[def->count + i] = s->shm.map + shared.result + at;
        at += control_align(4 * def->tensors[i].count, CONTROL_ALIGN);
    }
    if (shared.residual && !(s->residual = calloc(def->count, sizeof *s->residual)))
        return false;
    for (uint32_t i = 0; s->residual && i < def->count; i++)
        s->residual[i] = (float *)(void *)(s->shm.map + shared.residual +
                                           ((uint8_t *)s->buffers[i] - (uint8_t *)s->shm.map));
    s->owned = shared.owned ? (void *)(s->shm.map + shared.owned) : NULL;
    s->count = def->count;
    return true;
}

void define_free_slot(struct control *k, int handle)
{
    struct slot *s = &k->slots[handle];
    engine_detach(k->d->engine, handle, k->d->now);
    shm_destroy(&s->shm);
    free(s->buffers);
    free(s->residual);
    *s = (struct slot){.shm.fd = -1};
}

static bool register_set(const struct call *a, const struct definition *def)
{
    struct control *k = a->k;
    char line[80];
    for (int i = 0; i < ENGINE_SETS_MAX; i++)
        if (k->slots[i].owner && strcmp(k->slots[i].name, def->name) == 0) {
            control_say(a->c, "409 the process with pid %d contributes to set %s on this node",
                        (int)k->slots[i].owner->pid, def->name);
            return false;
        }
    int handle = engine_register(k->d->engine, def->name, def->kind, def->tensors, def->count,
                                 k->d->now);
    if (handle < 0 || handle >= ENGINE_SETS_MAX) {
        command_fail(a->c, handle < 0 ? handle : SLEET_ELIMIT,
                     handle == SLEET_EPERM ? "this daemon is an auxiliary (node.role): train at another" : NULL);
        return false;
    }
    struct slot *s = &k->slots[handle];
    if (!slot_map(s, def, define_shared_held(k))) {
        define_free_slot(k, handle);
        control_say(a->c, "507 no %" PRIu64 " bytes of shared memory",
                    control_shared_of(&def->kind, def->half, def->fragments).bytes);
        return false;
    }
    state_renew(k, handle);
    s->owner = a->c;
    strcpy(s->name, def->name);
    snprintf(line, sizeof line, "201 %d %" PRIu64 "\n", handle, s->shm.bytes);
    if (!control_say_fd(a->c, line, s->shm.fd))
        a->c->closing = true;
    shm_close_fd(&s->shm);
    return true;
}

void define_do_register(const struct call *a)
{
    struct definition *def = &a->c->def;
    if (!def->name[0] || def->count == 0) {
        command_fail(a->c, SLEET_ESTATE, "register: say `set` and `tensor` first");
        return;
    }
    if (register_set(a, def))
        SAY(LOG_INFO, FAULT_NONE, "trainer-attached", F_S("set", def->name),
            F_U("pid", a->c->pid), F_U("tensors", def->count));
    define_forget(def);
}
