/* state.c - publish, fetch and blobs, through the memory that a set's state lies in. */
#include "client/client.h"
#include <inttypes.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define LIMIT_MAX_NS INT64_C(86400000000000)

static uint8_t *half_at(const sleet_set *set, int half)
{
    return set->state.map + (uint64_t)half * control_state_half(set->half);
}

void client_state_line(sleet *ctx, const char *text)
{
    int handle, error, half;
    uint64_t seq;
    sleet_state_report r = {0};
    int n = sscanf(text,
                   "%d %" SCNu64 " %d %" SCNu64 " %d %" SCNu32 " %" SCNu32 " %" SCNu64 " %lf %" SCNu64
                   " %" SCNu64 " %" SCNd64,
                   &handle, &seq, &error, &r.version, &half, &r.donors, &r.lies, &r.bytes, &r.coverage,
                   &r.blob_of, &r.newest, &r.elapsed_ns);
    for (sleet_set *s = ctx->sets; n == 12 && s; s = s->next) {
        if (s->handle != handle || s->state.seq != seq)
            continue;
        s->state.came = true;
        s->state.error = error;
        s->state.half = half;
        s->state.report = r;
    }
}

void client_blob_line(sleet *ctx, const char *text)
{
    int handle, error;
    uint64_t seq, node, version, bytes;
    int n = sscanf(text, "%d %" SCNu64 " %d %" SCNu64 " %" SCNu64 " %" SCNu64, &handle, &seq, &error,
                   &node, &version, &bytes);
    for (sleet_set *s = ctx->sets; n == 6 && s; s = s->next) {
        if (s->handle != handle || s->state.seq != seq)
            continue;
        s->state.came = true;
        s->state.error = error;
        s->state.blob_version = version;
        s->state.blob_bytes = bytes;
    }
}

/* Map the state's memory, once. */
static int attach(sleet_set *set, int64_t until)
{
    char text[CLIENT_INPUT_MAX];
    struct state_side *st = &set->state;
    sleet *ctx = set->ctx;
    struct stat about;
    int handle = -1;
    uint64_t bytes = 0;
    if (st->map)
        return SLEET_OK;
    int error = client_call(ctx, until, text, "attach %d", set->handle);
    int fd = ctx->passed;
    ctx->passed = -1;
    if (!error && (fd < 0 || sscanf(text, "%d %" SCNu64, &handle, &bytes) != 2 ||
                   handle != set->handle || bytes != control_state_bytes(set->half) ||
                   fstat(fd, &about) || (uint64_t)about.st_size < bytes))
        error = client_fail(ctx, SLEET_EPROTO, "unexpected reply to attach: %.100s", text);
    void *map = error ? MAP_FAILED : mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd >= 0)
        close(fd);
    if (error)
        return error;
    if (map == MAP_FAILED)
        return client_fail(ctx, SLEET_ENOMEM, "cannot map %" PRIu64 " bytes of shared memory", bytes);
    st->map = map;
    st->map_bytes = bytes;
    return SLEET_OK;
}

static void *values_of(sleet_set *set, uint32_t i)
{
    struct tensor *t = &set->tensors[i];
    return t->data ? t->data : set->map + t->offset;
}

static int check_set(sleet_set *set)
{
    if (!set)
        return SLEET_EINVAL;
    if (set->handle < 0)
        return client_fail(set->ctx, SLEET_ESTATE, "set %s is not registered", set->name);
    return SLEET_OK;
}

int sleet_state_publish(sleet_set *set, uint64_t version, const void *blob, size_t blob_bytes)
{
    char text[CLIENT_INPUT_MAX];
    int half = -1, error = check_set(set);
    if (error)
        return error;
    sleet *ctx = set->ctx;
    int64_t until = client_now() + CLIENT_REPLY_NS;
    if (version == 0 || (blob_bytes && !blob))
        return client_fail(ctx, SLEET_EINVAL, "a state's version is not 0, and a blob has bytes");
    if (blob_bytes > SLEET_BLOB_MAX)
        return client_fail(ctx, SLEET_ELIMIT, "a blob has at most %d bytes, not %zu", SLEET_BLOB_MAX,
                           blob_bytes);
    error = attach(set, until);
    if (!error)
        error = client_call(ctx, until, text, "reserve %d", set->handle);
    if (!error && (sscanf(text, "%d", &half) != 1 || half < 0 || half > 1))
        error = client_fail(ctx, SLEET_EPROTO, "unexpected reply to reserve: %.100s", text);
    if (error)
        return error;
    uint8_t *at = half_at(set, half);
    for (uint32_t i = 0; i < set->count; i++) { /* what lies between tensors is and stays 0 */
        const struct tensor *t = &set->tensors[i];
        if (t->bytes)
            memcpy(at + t->offset, values_of(set, i), t->bytes);
    }
    if (blob_bytes)
        memcpy(half_at(set, 2), blob, blob_bytes);
    return client_call(ctx, client_now() + CLIENT_REPLY_NS, text, "publish %d %" PRIu64 " %zu",
                       set->handle, version, blob_bytes);
}

/* Wait for 152 or 153, which the daemon sends by the limit. */
static int await_answer(sleet_set *set, int64_t until, const char *what)
{
    while (!set->state.came) {
        bool over = client_now() >= until;
        int error = client_pump(set->ctx, over ? 0 : until);
        if (set->state.came)
            break;
        if (error)
            return error;
        if (over)
            return client_fail(set->ctx, SLEET_ESTALLED, "sleetd did not answer a %s of set %s in time",
                               what, set->name);
    }
    return SLEET_OK;
}

static int fetch_failed(const sleet_set *set, const sleet_state_report *r)
{
    if (set->state.error == SLEET_ENOSTATE)
        return client_fail(set->ctx, SLEET_ENOSTATE, "no member publishes a state of set %s, or a newer one",
                           set->name);
    if (set->state.error == SLEET_EAGAIN)
        return client_fail(set->ctx, SLEET_EAGAIN,
                           "%.0f %% of version %" PRIu64 " of set %s came in time, from %u nodes",
                           100 * r->coverage, r->version, set->name, r->donors);
    return client_fail(set->ctx, set->state.error, "fetching set %s: %s", set->name,
                       sleet_strerror(set->state.error));
}

int sleet_state_fetch(sleet_set *set, uint64_t newer_than, int64_t limit_ns, sleet_state_report *report)
{
    char text[CLIENT_INPUT_MAX];
    int error = check_set(set);
    if (error)
        return error;
    int64_t begun = client_now();
    if (report)
        *report = (sleet_state_report){0};
    if (limit_ns <= 0 || limit_ns > LIMIT_MAX_NS)
        return client_fail(set->ctx, SLEET_EINVAL, "limit_ns is not within 1 ns and a day");
    int64_t patience = limit_ns < CLIENT_REPLY_NS ? limit_ns : CLIENT_REPLY_NS;
    error = attach(set, begun + patience + CLIENT_STALL_NS);
    set->state.seq++;
    set->state.came = false;
    int64_t left = begun + limit_ns - client_now();
    if (!error)
        error = client_call(set->ctx, begun + patience + CLIENT_STALL_NS, text,
                            "fetch %d %" PRIu64 " %" PRId64 " %" PRIu64, set->handle, set->state.seq,
                            left > 0 ? left : 1, newer_than);
    if (!error)
        error = await_answer(set, begun + limit_ns + CLIENT_STALL_NS, "fetch");
    if (error)
        return error;
    const sleet_state_report *r = &set->state.report;
    if (report)
        *report = *r;
    if (set->state.error)
        return fetch_failed(set, r);
    if (set->state.half < 0 || set->state.half > 1)
        return client_fail(set->ctx, SLEET_EPROTO, "half %d of a state", set->state.half);
    for (uint32_t i = 0; i < set->count; i++)
        if (set->tensors[i].bytes)
            memcpy(values_of(set, i), half_at(set, set->state.half) + set->tensors[i].offset,
                   set->tensors[i].bytes);
    return SLEET_OK;
}

int sleet_state_blob(sleet_set *set, uint64_t node_id, int64_t limit_ns, void *out, size_t cap,
                     size_t *bytes, uint64_t *version)
{
    char text[CLIENT_INPUT_MAX];
    int error = check_set(set);
    if (error)
        return error;
    int64_t begun = client_now();
    if (limit_ns <= 0 || limit_ns > LIMIT_MAX_NS || !node_id || (cap && !out))
        return client_fail(set->ctx, SLEET_EINVAL, "a node id is not 0, limit_ns within 1 ns and a day");
    int64_t patience = limit_ns < CLIENT_REPLY_NS ? limit_ns : CLIENT_REPLY_NS;
    error = attach(set, begun + patience + CLIENT_STALL_NS);
    set->state.seq++;
    set->state.came = false;
    if (!error)
        error = client_call(set->ctx, begun + patience + CLIENT_STALL_NS, text,
                            "blob %d %" PRIu64 " %" PRIu64 " %" PRId64, set->handle, set->state.seq,
                            node_id, limit_ns);
    if (!error)
        error = await_answer(set, begun + limit_ns + CLIENT_STALL_NS, "blob");
    if (error)
        return error;
    if (set->state.error)
        return client_fail(set->ctx, set->state.error, "no member holds a blob of node %" PRIu64, node_id);
    if (set->state.blob_bytes > cap || set->state.blob_bytes > SLEET_BLOB_MAX)
        return client_fail(set->ctx, SLEET_EINVAL, "the blob of node %" PRIu64 " has %" PRIu64
                           " bytes, the buffer %zu", node_id, set->state.blob_bytes, cap);
    if (set->state.blob_bytes)
        memcpy(out, half_at(set, 2), set->state.blob_bytes);
    if (bytes)
        *bytes = set->state.blob_bytes;
    if (version)
        *version = set->state.blob_version;
    return SLEET_OK;
}
