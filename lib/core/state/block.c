/* One block: its digest, and its way from pieces to the whole. */
#include "base/bytes.h"
#include "state/state.h"
#include <stdlib.h>
#include <xxhash.h>
#include <zstd.h>

struct wire_digest state_digest(const void *p, size_t bytes)
{
    XXH128_hash_t h = XXH3_128bits(p, bytes);
    return (struct wire_digest){h.low64, h.high64};
}

void block_in_start(struct block_in *b, uint32_t bytes)
{
    uint8_t *data = b->data;
    *b = (struct block_in){.bytes = bytes, .data = data};
}

void block_in_fini(struct block_in *b)
{
    free(b->data);
    *b = (struct block_in){0};
}

/* The compressed form is the shorter one, so the plain one's pieces are enough to ask for. */
uint64_t block_in_lacks(const struct block_in *b)
{
    return state_pieces_mask(b->stored ? b->stored : b->bytes) & ~b->have;
}

enum block_fate block_in_put(struct block_in *b, const struct wire_state_data *d)
{
    if (!b->stored) {
        bool fits = d->codec == STATE_RAW ? d->stored == b->bytes : d->stored < b->bytes;
        if (!fits || (!b->data && !(b->data = malloc(WIRE_STATE_BLOCK))))
            return BLOCK_BAD;
        b->stored = d->stored;
        b->codec = d->codec;
    }
    if (d->stored != b->stored || d->codec != b->codec)
        return BLOCK_BAD;
    if (b->have >> d->piece & 1)
        return BLOCK_STALE;
    memcpy(b->data + (size_t)d->piece * WIRE_PAYLOAD_MAX, d->payload, d->payload_len);
    b->have |= UINT64_C(1) << d->piece;
    return block_in_lacks(b) ? BLOCK_PIECE : BLOCK_WHOLE;
}

bool block_in_open(const struct block_in *b, const struct wire_digest *digest, uint8_t *out)
{
    if (b->codec == STATE_RAW)
        memcpy(out, b->data, b->bytes);
    else if (ZSTD_decompress(out, b->bytes, b->data, b->stored) != b->bytes)
        return false;
    return !digest || digest_equal(state_digest(out, b->bytes), *digest);
}
