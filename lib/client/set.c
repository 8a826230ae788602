/* set.c - sets, tensors, and the shared memory they live in. */
#include "client/client.h"
#include <inttypes.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define ELEMENTS_MAX (UINT64_C(1) << 40)

static bool name_ok(const char *name)
{
    return name && name[0] && strlen(name) <= SLEET_NAME_MAX;
}

int sleet_set_new(sleet_set **out, sleet *ctx, const char *name, sleet_payload payload)
{
    if (out)
        *out = NULL;
    if (!out || !ctx)
        return SLEET_EINVAL;
    if (!name_ok(name))
        return client_fail(ctx, SLEET_EINVAL, "a set's name has 1 to %d bytes", SLEET_NAME_MAX);
    struct set_kind kind = kind_resolved((struct set_kind){.payload = payload});
    if (kind_refuse(&kind))
        return client_fail(ctx, SLEET_EINVAL, "set %s: %s", name, kind_refuse(&kind));
    for (const sleet_set *s = ctx->sets; s; s = s->next)
        if (strcmp(s->name, name) == 0)
            return client_fail(ctx, SLEET_EEXIST, "set %s exists already", name);
    sleet_set *set = calloc(1, sizeof *set);
    if (!set)
        return client_fail(ctx, SLEET_ENOMEM, "out of memory");
    set->ctx = ctx;
    strcpy(set->name, name);
    set->kind = kind;
    set->handle = -1;
    set->next = ctx->sets;
    ctx->sets = set;
    *out = set;
    return SLEET_OK;
}

int sleet_set_add(sleet_set *set, const char *name, sleet_dtype dtype, uint64_t count, void *data)
{
    if (!set)
        return SLEET_EINVAL;
    sleet *ctx = set->ctx;
    if (set->handle >= 0)
        return client_fail(ctx, SLEET_ESTATE, "set %s is registered already", set->name);
    if (!name_ok(name))
        return client_fail(ctx, SLEET_EINVAL, "a tensor's name has 1 to %d bytes", SLEET_NAME_MAX);
    if (!control_dtype_text(dtype))
        return client_fail(ctx, SLEET_EINVAL, "tensor %s: unknown dtype %d", name, (int)dtype);
    if (count > ELEMENTS_MAX)
        return client_fail(ctx, SLEET_ELIMIT, "tensor %s: %" PRIu64 " elements are too many", name,
                           count);
    if (set->count == SLEET_TENSORS_MAX)
        return client_fail(ctx, SLEET_ELIMIT, "set %s: more than %d tensors", set->name,
                           SLEET_TENSORS_MAX);
    for (uint32_t i = 0; i < set->count; i++)
        if (strcmp(set->tensors[i].name, name) == 0)
            return client_fail(ctx, SLEET_EEXIST, "set %s has a tensor %s already", set->name, name);
    if (set->count == set->cap) {
        uint32_t cap = set->cap ? 2 * set->cap : 16;
        struct tensor *grown = realloc(set->tensors, cap * sizeof *grown);
        if (!grown)
            return client_fail(ctx, SLEET_ENOMEM, "out of memory");
        set->tensors = grown;
        set->cap = cap;
    }
    struct tensor *t = &set->tensors[set->count++];
    *t = (struct tensor){.dtype = dtype, .count = count, .bytes = 4 * count, .offset = set->half,
                         .data = data};
    strcpy(t->name, name);
    set->half += control_align(t->bytes, CONTROL_ALIGN);
    set->fragments += kind_fragments(count);
    return SLEET_OK;
}

int sleet_set_configure(sleet_set *set, const sleet_set_options *in)
{
    sleet_set_options o = {0};
    if (!set)
        return SLEET_EINVAL;
    sleet *ctx = set->ctx;
    if (!in || in->size < sizeof(size_t) || in->size > sizeof o)
        return client_fail(ctx, SLEET_EINVAL, "sleet_set_options.size is not %zu", sizeof o);
    if (set->handle >= 0)
        return client_fail(ctx, SLEET_ESTATE, "set %s is registered already", set->name);
    memcpy(&o, in, in->size);
    struct set_kind kind =
        kind_resolved((struct set_kind){.payload = set->kind.payload,
                                        .estimator = o.estimator,
                                        .update = o.update,
                                        .exchange = o.exchange,
                                        .strategy = o.strategy,
                                        .numbers = {o.strategy_numbers[0], o.strategy_numbers[1]},
                                        .spread = o.spread < UINT8_MAX ? (uint8_t)o.spread : UINT8_MAX});
    const char *why = kind_refuse(&kind);
    if (why)
        return client_fail(ctx, SLEET_EINVAL, "set %s: %s", set->name, why);
    set->kind = kind;
    return SLEET_OK;
}

/* A tensor that may still be changed; NULL: *error says why not. */
static struct tensor *open_tensor(sleet_set *set, uint32_t index, int *error)
{
    *error = SLEET_EINVAL;
    if (!set)
        return NULL;
    if (index >= set->count)
        *error = client_fail(set->ctx, SLEET_EINVAL, "set %s has no tensor %u", set->name, index);
    else if (set->handle >= 0)
        *error = client_fail(set->ctx, SLEET_ESTATE, "set %s is registered already", set->name);
    else
        return &set->tensors[index];
    return NULL;
}

int sleet_set_codec(sleet_set *set, uint32_t index, sleet_codec codec)
{
    int error;
    struct tensor *t = open_tensor(set, index, &error);
    if (!t)
        return error;
    const char *why = codec ? kind_refuse_codec(&set->kind, t->dtype, (int)codec) : NULL;
    if (why)
        return client_fail(set->ctx, SLEET_EINVAL, "set %s, tensor %s: %s", set->name, t->name, why);
    t->codec = codec;
    return SLEET_OK;
}

int sleet_set_rows(sleet_set *set, uint32_t index, uint32_t rows)
{
    int error;
    struct tensor *t = open_tensor(set, index, &error);
    if (!t)
        return error;
    if (rows && t->count % rows)
        return client_fail(set->ctx, SLEET_EINVAL, "set %s, tensor %s: %" PRIu64 " elements are not %u equal rows",
                           set->name, t->name, t->count, rows);
    t->rows = rows;
    return SLEET_OK;
}

/* Map the descriptor that came with the reply "HANDLE BYTES". */
static int map_shared(sleet_set *set, const char *text)
{
    sleet *ctx = set->ctx;
    int fd = ctx->passed, handle = -1;
    uint64_t bytes = 0;
    struct stat st;
    ctx->passed = -1;
    set->shared = control_shared_of(&set->kind, set->half, set->fragments);
    if (fd < 0 || sscanf(text, "%d %" SCNu64, &handle, &bytes) != 2 || handle < 0 ||
        bytes != set->shared.bytes || fstat(fd, &st) || (uint64_t)st.st_size < bytes) {
        if (fd >= 0)
            close(fd);
        return client_fail(ctx, SLEET_EPROTO, "unexpected reply to register: %.100s", text);
    }
    void *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (map == MAP_FAILED)
        return client_fail(ctx, SLEET_ENOMEM, "cannot map %" PRIu64 " bytes of shared memory", bytes);
    set->map = map;
    set->map_bytes = bytes;
    set->handle = handle;
    return SLEET_OK;
}

/* A tensor that is spread over so many rounds. */
static bool spreads(const sleet_set *set)
{
    bool any = set->kind.spread <= 1;
    for (uint32_t i = 0; i < set->count; i++)
        any |= set->tensors[i].dtype != SLEET_F32_STATE && kind_spreads(&set->kind, set->tensors[i].count);
    return any;
}

int sleet_set_register(sleet_set *set)
{
    char text[CLIENT_INPUT_MAX], name[CONTROL_NAME_MAX];
    if (!set)
        return SLEET_EINVAL;
    sleet *ctx = set->ctx;
    if (set->handle >= 0)
        return client_fail(ctx, SLEET_ESTATE, "set %s is registered already", set->name);
    if (set->count == 0)
        return client_fail(ctx, SLEET_EINVAL, "set %s has no tensors", set->name);
    if (!spreads(set))
        return client_fail(ctx, SLEET_EINVAL, "set %s has no tensor of more than %u elements to spread over %u rounds",
                           set->name, (set->kind.spread - 1u) * RUN_FRAGMENTS * FRAGMENT_ELEMENTS, (unsigned)set->kind.spread);
    int64_t until = client_now() + CLIENT_REPLY_NS;
    control_encode(name, set->name);
    char strategy[STRATEGY_WORD];
    int error = client_call(ctx, until, text, "set %s %s %s %s %s %s %u", name,
                            payload_text((int)set->kind.payload), estimator_text((int)set->kind.estimator),
                            update_text((int)set->kind.update), exchange_text((int)set->kind.exchange),
                            kind_strategy_word(&set->kind, strategy), (unsigned)set->kind.spread);
    for (uint32_t i = 0; i < set->count && !error; i++) {
        control_encode(name, set->tensors[i].name);
        error = client_call(ctx, until, text, "tensor %s %s %" PRIu64 " %s %u", name,
                            control_dtype_text(set->tensors[i].dtype), set->tensors[i].count,
                            set->tensors[i].codec ? codec_text((int)set->tensors[i].codec) : "-",
                            set->tensors[i].rows);
    }
    if (!error)
        error = client_call(ctx, client_now() + CLIENT_REPLY_NS + (int64_t)set->half, text,
                            "register");
    return error ? error : map_shared(set, text);
}

void *sleet_send_buffer(sleet_set *set, uint32_t index)
{
    return set && set->map && index < set->count ? set->map + set->tensors[index].offset : NULL;
}

const void *sleet_result_buffer(const sleet_set *set, uint32_t index)
{
    return set && set->map && index < set->count ? set->map + set->shared.result + set->tensors[index].offset
                                                 : NULL;
}

float *sleet_residual_buffer(sleet_set *set, uint32_t index)
{
    if (!set || !set->map || index >= set->count || !set->shared.residual)
        return NULL;
    return (float *)(void *)(set->map + set->shared.residual + set->tensors[index].offset);
}

int sleet_owned(const sleet_set *set, uint32_t index, sleet_range *out, uint32_t cap, uint32_t *n)
{
    if (!set || !n || index >= set->count || (cap && !out))
        return SLEET_EINVAL;
    *n = 0;
    if (!set->map || !set->shared.owned)
        return client_fail(set->ctx, SLEET_ESTATE, set->map ? "set %s: owners change with each round of an all-reduce"
                                                            : "set %s is not registered", set->name);
    const uint64_t *owned = (const void *)(set->map + set->shared.owned);
    uint64_t first = 0, end = 0;
    for (uint32_t i = 0; i < index; i++)
        first += kind_fragments(set->tensors[i].count);
    for (uint64_t f = 0; f < kind_fragments(set->tensors[index].count); f++) {
        uint64_t run = (first + f) / RUN_FRAGMENTS, at = f * FRAGMENT_ELEMENTS;
        if (!(owned[run / 64] >> (run % 64) & 1))
            continue;
        bool goes_on = *n && at == end;
        end = at + FRAGMENT_ELEMENTS;
        end = end < set->tensors[index].count ? end : set->tensors[index].count;
        *n += !goes_on;
        if (*n <= cap && !goes_on)
            out[*n - 1].first = at;
        if (*n <= cap)
            out[*n - 1].count = end - out[*n - 1].first;
    }
    return SLEET_OK;
}

void client_set_free(sleet_set *set)
{
    if (set->map)
        munmap(set->map, set->map_bytes);
    if (set->state.map)
        munmap(set->state.map, set->state.map_bytes);
    free(set->tensors);
    free(set);
}

void client_schema_line(sleet *ctx, const char *text)
{
    char *end;
    long handle = strtol(text, &end, 10);
    for (sleet_set *s = ctx->sets; s; s = s->next)
        if (s->handle == handle && *end == ' ')
            snprintf(s->schema, sizeof s->schema, "%s", end + 1);
}

int sleet_job(sleet *ctx, const sleet_set *set, sleet_job_info *out)
{
    char text[CLIENT_INPUT_MAX];
    if (!ctx || !out)
        return SLEET_EINVAL;
    if (set && (set->ctx != ctx || set->handle < 0))
        return client_fail(ctx, SLEET_EINVAL, "the set is not registered with this context");
    int64_t until = client_now() + CLIENT_REPLY_NS;
    int error = set ? client_call(ctx, until, text, "job %d", set->handle)
                    : client_call(ctx, until, text, "job");
    if (error)
        return error;
    *out = (sleet_job_info){0};
    if (sscanf(text, "%" SCNu64 " %" SCNu32 " %" SCNu32 " %" SCNu32 " %" SCNu64, &out->node_id,
               &out->nodes_known, &out->nodes_alive, &out->trainers, &out->job_round) != 5)
        return client_fail(ctx, SLEET_EPROTO, "unexpected reply to job: %.100s", text);
    return SLEET_OK;
}

int sleet_wanted(sleet_set *set)
{
    char text[CLIENT_INPUT_MAX];
    int wanted;
    if (!set)
        return SLEET_EINVAL;
    if (set->handle < 0)
        return client_fail(set->ctx, SLEET_ESTATE, "set %s is not registered", set->name);
    int error = client_call(set->ctx, client_now() + CLIENT_REPLY_NS, text, "job %d", set->handle);
    if (error)
        return error;
    if (sscanf(text, "%*s %*s %*s %*s %*s %*s %d", &wanted) != 1)
        return client_fail(set->ctx, SLEET_EPROTO, "unexpected reply to job: %.100s", text);
    return wanted != 0;
}

int sleet_wait_nodes(sleet_set *set, uint32_t nodes, int64_t wait_ns)
{
    if (!set || wait_ns < 0)
        return SLEET_EINVAL;
    int64_t start = client_now();
    for (;;) {
        sleet_job_info info;
        int error = sleet_job(set->ctx, set, &info);
        if (error)
            return error;
        if (set->schema[0])
            return client_fail(set->ctx, SLEET_ESCHEMA, "%s", set->schema);
        if (info.trainers >= nodes)
            return SLEET_OK;
        int64_t left = wait_ns - (client_now() - start);
        if (left <= 0)
            return client_fail(set->ctx, SLEET_EAGAIN, "%u of %u trainers have registered set %s",
                               info.trainers, nodes, set->name);
        int64_t nap = left < 20000000 ? left : 20000000;
        error = client_pump(set->ctx, client_now() + nap);
        if (error)
            return error;
    }
}
