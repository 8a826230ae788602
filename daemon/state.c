/* state.c - the commands around published state, and the memory it lies in.
 *
 * A set's state has two halves of one memfd and room for a blob.  The newest version is in one
 * half; the other is the trainer's after `reserve`, the engine's during `fetch`, else it
 * holds the version before, as long as that is fetched.  It all outlives the trainer. */
#include "command.h"
#include "log.h"
#include "loop.h"
#include <inttypes.h>

#define LIMIT_MAX_NS UINT64_C(86400000000000) /* a day */

static uint64_t bytes_of(const struct slot *s)
{
    return s->count ? (uint64_t)((uint8_t *)s->buffers[s->count] - s->shm.map) : 0;
}

static uint8_t *half_at(const struct state_slot *st, int half)
{
    return st->shm.map + (uint64_t)half * control_state_half(st->bytes);
}

static uint8_t *blob_at(const struct state_slot *st) { return half_at(st, 2); }

static void drop(struct control *k, int handle)
{
    engine_state_withdraw(k->d->engine, handle);
    shm_destroy(&k->states[handle].shm);
    k->states[handle] = (struct state_slot){.shm.fd = -1};
}

void state_renew(struct control *k, int handle)
{
    engine_set info;
    struct state_slot *st = &k->states[handle];
    bool same = engine_get_set(k->d->engine, handle, &info, k->d->now) && st->hash == info.hash;
    if (st->shm.map && !same)
        drop(k, handle);
    st->hash = info.hash;
}

void state_detach(struct control *k, int handle)
{
    struct state_slot *st = &k->states[handle];
    engine_state_cancel(k->d->engine, handle);
    st->reserved = st->fetching = st->asking = false;
}

/* ---- the memory --------------------------------------------------------------------- */

void state_do_attach(const struct call *a)
{
    int handle;
    char line[80];
    const struct slot *s = command_slot(a, &handle);
    if (!s)
        return;
    struct state_slot *st = &a->k->states[handle];
    if (bytes_of(s) == 0) {
        command_fail(a->c, SLEET_EINVAL, "attach: the set's tensors have no elements");
        return;
    }
    if (!st->shm.map) {
        st->bytes = bytes_of(s);
        if (!shm_create(&st->shm, control_state_bytes(st->bytes), define_shared_held(a->k))) {
            st->shm = (struct shm){.fd = -1};
            control_say(a->c, "507 no %" PRIu64 " bytes of shared memory", control_state_bytes(st->bytes));
            return;
        }
    }
    snprintf(line, sizeof line, "201 %d %" PRIu64 "\n", handle, st->shm.bytes);
    if (!control_say_fd(a->c, line, st->shm.fd))
        a->c->closing = true;
}

/* The state of the caller's set; NULL after answering. */
static struct state_slot *attached(const struct call *a, int *handle)
{
    if (!command_slot(a, handle))
        return NULL;
    struct state_slot *st = &a->k->states[*handle];
    if (st->shm.map)
        return st;
    command_fail(a->c, SLEET_ESTATE, "say `attach` first");
    return NULL;
}

static int spare_half(const struct state_slot *st) { return st->published ? 1 - st->newest : 0; }

/* The spare half for writing, by the trainer or by a fetch; false after answering. */
static bool take_half(const struct call *a, const struct state_slot *st, int handle)
{
    if (st->fetching) {
        command_fail(a->c, SLEET_EAGAIN, "a fetch of this set is under way");
        return false;
    }
    if (!engine_state_reserve(a->k->d->engine, handle, a->k->d->now)) {
        command_fail(a->c, SLEET_EAGAIN, "the version before the newest is still being fetched by others");
        return false;
    }
    return true;
}

void state_do_reserve(const struct call *a)
{
    int handle;
    struct state_slot *st = attached(a, &handle);
    if (!st || !take_half(a, st, handle))
        return;
    st->reserved = true;
    control_say(a->c, "214 %d", spare_half(st));
}

/* ---- publish -------------------------------------------------------------------------- */

void state_do_publish(const struct call *a)
{
    int handle;
    uint64_t version, blob;
    struct state_slot *st = attached(a, &handle);
    if (!st)
        return;
    if (!command_number(a->argv[1], UINT64_MAX, &version) || version == 0 ||
        !command_number(a->argv[2], SLEET_BLOB_MAX, &blob)) {
        command_fail(a->c, SLEET_EINVAL, "publish HANDLE VERSION BLOB_BYTES: a value is out of range");
        return;
    }
    if (!st->reserved) {
        command_fail(a->c, SLEET_ESTATE, "publish: say `reserve` first");
        return;
    }
    int half = spare_half(st);
    engine_state state = {.data = half_at(st, half), .bytes = st->bytes, .version = version,
                          .blob = blob ? blob_at(st) : NULL, .blob_bytes = (uint32_t)blob};
    int error = engine_state_publish(a->k->d->engine, handle, &state, a->k->d->now);
    st->reserved = false;
    if (error) {
        command_fail(a->c, error, NULL);
        return;
    }
    st->newest = half;
    st->published = true;
    control_say(a->c, "200 published");
}

/* ---- fetch ------------------------------------------------------------------------------ */

void state_do_fetch(const struct call *a)
{
    int handle;
    uint64_t seq, limit, newer;
    struct state_slot *st = attached(a, &handle);
    if (!st)
        return;
    if (!command_number(a->argv[1], UINT64_MAX, &seq) ||
        !command_number(a->argv[2], LIMIT_MAX_NS, &limit) || limit == 0 ||
        !command_number(a->argv[3], UINT64_MAX, &newer)) {
        command_fail(a->c, SLEET_EINVAL, "fetch HANDLE SEQ LIMIT_NS NEWER_THAN: a value is out of range");
        return;
    }
    if (!take_half(a, st, handle))
        return;
    engine_fetch_args args = {.into = half_at(st, spare_half(st)), .bytes = st->bytes,
                              .newer_than = newer, .limit = (int64_t)limit};
    int error = engine_state_fetch(a->k->d->engine, handle, &args, a->k->d->now);
    if (error) {
        command_fail(a->c, error, NULL);
        return;
    }
    st->reserved = false;
    st->fetching = true;
    st->fetch_seq = seq;
    control_say(a->c, "200 fetching");
}

/* What was fetched is published as it is, so that the next joiner has a donor more. */
static void fetched(struct control *k, const engine_event *ev)
{
    struct state_slot *st = &k->states[ev->set];
    const engine_fetched *f = &ev->fetched;
    if (!st->fetching)
        return;
    int half = spare_half(st);
    st->fetching = false;
    if (!ev->error && f->data != half_at(st, half)) {
        half = st->newest;
    } else if (!ev->error) {
        engine_state state = {.data = f->data, .bytes = st->bytes, .version = f->version};
        if (engine_state_publish(k->d->engine, ev->set, &state, k->d->now) == SLEET_OK) {
            st->newest = half;
            st->published = true;
        }
    }
    control_say(k->slots[ev->set].owner,
                "152 state %d %" PRIu64 " %d %" PRIu64 " %d %u %u %" PRIu64 " %.17g %" PRIu64
                " %" PRIu64 " %" PRId64,
                ev->set, st->fetch_seq, ev->error, f->version, half, f->donors, f->lies, f->bytes,
                f->coverage, f->blob_of, f->newest, f->elapsed);
}

/* ---- blobs -------------------------------------------------------------------------------- */

void state_do_blob(const struct call *a)
{
    int handle;
    uint64_t seq, node, limit;
    struct state_slot *st = attached(a, &handle);
    if (!st)
        return;
    if (!command_number(a->argv[1], UINT64_MAX, &seq) ||
        !command_number(a->argv[2], UINT64_MAX, &node) || node == 0 ||
        !command_number(a->argv[3], LIMIT_MAX_NS, &limit) || limit == 0) {
        command_fail(a->c, SLEET_EINVAL, "blob HANDLE SEQ NODE LIMIT_NS: a value is out of range");
        return;
    }
    int error = engine_blob_ask(a->k->d->engine, handle, node, (int64_t)limit, a->k->d->now);
    if (error) {
        command_fail(a->c, error, NULL);
        return;
    }
    st->asking = true;
    st->blob_seq = seq;
    control_say(a->c, "200 asking");
}

static void blob_came(struct control *k, const engine_event *ev)
{
    struct state_slot *st = &k->states[ev->set];
    uint64_t version = 0;
    uint32_t bytes = 0;
    if (!st->asking)
        return;
    st->asking = false;
    const void *p = engine_blob(k->d->engine, ev->set, ev->node_id, &version, &bytes);
    if (p)
        memcpy(blob_at(st), p, bytes);
    control_say(k->slots[ev->set].owner, "153 blob %d %" PRIu64 " %d %" PRIu64 " %" PRIu64 " %u",
                ev->set, st->blob_seq, p ? SLEET_OK : SLEET_ENOSTATE, ev->node_id, version, bytes);
}

void state_event(struct control *k, const engine_event *ev)
{
    if (ev->type == EVENT_STATE)
        fetched(k, ev);
    else if (ev->type == EVENT_BLOB)
        blob_came(k, ev);
}

void state_do_show(const struct call *a) { command_say_json(a, status_state_json(a->k)); }
