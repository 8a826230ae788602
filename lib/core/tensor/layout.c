#define XXH_INLINE_ALL
#include "tensor/layout.h"
#include "codec/codec.h"
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#define TENSOR_HEAD 10
#define TENSOR_BYTES (TENSOR_HEAD + 64 + 4)
#define LARGE (UINT64_C(1) << 20) /* elements; sets above it travel in half the bytes */

/* dtype, codec, count and name as hashed; `nul` includes the name's end.  Of a matrix the end in any case,
 * then the rows. */
static size_t tensor_bytes(uint8_t out[TENSOR_BYTES], const struct tensor *t, bool nul)
{
    size_t len = strlen(t->name) + (nul || t->rows ? 1 : 0);
    out[0] = (uint8_t)t->dtype;
    out[1] = (uint8_t)t->codec;
    for (int i = 0; i < 8; i++)
        out[2 + i] = (uint8_t)(t->count >> (8 * i));
    memcpy(out + TENSOR_HEAD, t->name, len);
    for (int i = 0; t->rows && i < 4; i++)
        out[TENSOR_HEAD + len++] = (uint8_t)(t->rows >> (8 * i));
    return TENSOR_HEAD + len;
}

static bool name_ok(const char *name)
{
    return name && name[0] && strnlen(name, SLEET_NAME_MAX + 1) <= SLEET_NAME_MAX;
}

static bool dtype_ok(sleet_dtype d)
{
#define SLEET_X(name, value, text, bytes)                                                    \
    if (d == name)                                                                           \
        return true;
    SLEET_DTYPE_MAP(SLEET_X)
#undef SLEET_X
    return false;
}

static int compare_keys(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Fills by_id; EEXIST when two tensors share an id or a name. */
static int index_ids(struct layout *l)
{
    uint64_t keys[SLEET_TENSORS_MAX];
    for (uint32_t i = 0; i < l->n; i++)
        keys[i] = (uint64_t)l->tensors[i].id << 32 | i;
    qsort(keys, l->n, sizeof(keys[0]), compare_keys);
    for (uint32_t i = 0; i < l->n; i++) {
        l->by_id[i] = (uint32_t)keys[i];
        if (i > 0 && keys[i] >> 32 == keys[i - 1] >> 32)
            return SLEET_EEXIST;
    }
    for (uint32_t i = 1; i < l->n; i++)
        for (uint32_t j = 0; j < i; j++)
            if (strcmp(l->tensors[i].name, l->tensors[j].name) == 0)
                return SLEET_EEXIST;
    return SLEET_OK;
}

static uint32_t layout_hash(const struct layout *l)
{
    XXH3_state_t state;
    uint8_t bytes[TENSOR_BYTES];
    uint8_t kind[KIND_BYTES];
    kind_put(kind, &l->kind);
    XXH3_64bits_reset(&state);
    XXH3_64bits_update(&state, kind, sizeof kind);
    XXH3_64bits_update(&state, l->name, strlen(l->name) + 1);
    for (uint32_t i = 0; i < l->n; i++)
        XXH3_64bits_update(&state, bytes, tensor_bytes(bytes, &l->tensors[i], true));
    return (uint32_t)XXH3_64bits_digest(&state);
}

static sleet_codec codec_of_size(const struct tensor_spec *s, const struct set_kind *k, uint64_t elements)
{
    return elements > LARGE && !kind_rank(k) && s->dtype != SLEET_F32_STATE ? SLEET_CODEC_BF16 : SLEET_CODEC_F32;
}

static int fill(struct layout *l, const struct tensor_spec *specs)
{
    uint64_t next = 0, due = 0; /* fragments; of those that every round averages */
    for (uint32_t i = 0; i < l->n; i++)
        l->elements += specs[i].count;
    for (uint32_t i = 0; i < l->n; i++) {
        const struct tensor_spec *s = &specs[i];
        struct tensor *t = &l->tensors[i];
        uint8_t bytes[TENSOR_BYTES];
        uint64_t fragments = kind_fragments(s->count);
        if (!name_ok(s->name) || !dtype_ok(s->dtype) || (s->rows && s->count % s->rows))
            return SLEET_EINVAL;
        if (next + fragments > UINT32_MAX)
            return SLEET_ELIMIT;
        memcpy(t->name, s->name, strlen(s->name) + 1);
        t->dtype = s->dtype;
        t->codec = s->codec ? s->codec : codec_of_size(s, &l->kind, l->elements);
        if (kind_refuse_codec(&l->kind, t->dtype, (int)t->codec))
            return SLEET_EINVAL;
        t->count = s->count;
        t->rows = s->rows;
        t->first = (uint32_t)next;
        t->fragments = (uint32_t)fragments;
        t->id = (uint32_t)XXH3_64bits(bytes, tensor_bytes(bytes, t, false));
        const struct codec *c = codec_by_id((uint8_t)t->codec);
        if (!c)
            return SLEET_EINVAL;
        l->coded = c->bytes_max > l->coded ? c->bytes_max : l->coded;
        next += fragments;
        due += s->dtype == SLEET_F32_STATE ? 0 : fragments;
        l->state += s->dtype == SLEET_F32_STATE ? (uint32_t)fragments : 0;
    }
    if (next && !due)
        return SLEET_EINVAL; /* rounds of nothing keep nobody together */
    l->fragments = (uint32_t)next;
    l->runs = (uint32_t)(next / RUN_FRAGMENTS + (next % RUN_FRAGMENTS != 0));
    return index_ids(l);
}

static bool spreads(const struct layout *l)
{
    bool any = l->kind.spread <= 1;
    for (uint32_t i = 0; i < l->n; i++)
        any |= l->tensors[i].dtype != SLEET_F32_STATE && kind_spreads(&l->kind, l->tensors[i].count);
    return any;
}

int layout_init(struct layout *l, const char *name, struct set_kind kind,
                const struct tensor_spec *specs, uint32_t n)
{
    int error;
    *l = (struct layout){.kind = kind_resolved(kind)};
    if (!name_ok(name) || kind_refuse(&l->kind) || n == 0 || !specs)
        return SLEET_EINVAL;
    if (n > SLEET_TENSORS_MAX)
        return SLEET_ELIMIT;
    memcpy(l->name, name, strlen(name) + 1);
    l->n = n;
    l->tensors = calloc(n, sizeof(*l->tensors));
    l->by_id = calloc(n, sizeof(*l->by_id));
    error = l->tensors && l->by_id ? fill(l, specs) : SLEET_ENOMEM;
    if (!error && !spreads(l))
        error = SLEET_EINVAL;
    if (error) {
        layout_fini(l);
        return error;
    }
    l->hash = layout_hash(l);
    return SLEET_OK;
}

void layout_fini(struct layout *l)
{
    free(l->tensors);
    free(l->by_id);
    *l = (struct layout){0};
}

int layout_find(const struct layout *l, uint32_t tensor_id)
{
    uint32_t low = 0, high = l->n;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (l->tensors[l->by_id[mid]].id < tensor_id)
            low = mid + 1;
        else
            high = mid;
    }
    return low < l->n && l->tensors[l->by_id[low]].id == tensor_id ? (int)l->by_id[low] : -1;
}

void layout_locate(const struct layout *l, uint32_t fragment, uint32_t *tensor,
                   uint64_t *offset_elements, uint32_t *elements)
{
    /* The last tensor that starts at or before the fragment: an empty tensor
     * shares its start with the one after it and so is never chosen. */
    uint32_t low = 0, high = l->n;
    while (high - low > 1) {
        uint32_t mid = low + (high - low) / 2;
        if (l->tensors[mid].first <= fragment)
            low = mid;
        else
            high = mid;
    }
    const struct tensor *t = &l->tensors[low];
    uint64_t offset = (uint64_t)(fragment - t->first) * FRAGMENT_ELEMENTS;
    uint64_t left = t->count - offset;
    *tensor = low;
    *offset_elements = offset;
    *elements = left < FRAGMENT_ELEMENTS ? (uint32_t)left : FRAGMENT_ELEMENTS;
}
