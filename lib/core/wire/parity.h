/* wire/parity.h - the PARITY form of DATA, and the blocks that parity is computed of.  As in
 * wire.h: 0 or SLEET_EMALFORMED where something does not fit, nothing is allocated, pointers borrow. */
#ifndef WIRE_PARITY_H
#define WIRE_PARITY_H
#include "wire/wire.h"

#define WIRE_PARITY_BYTES 20 /* before the block */
#define WIRE_BLOCK_BYTES 20  /* of a block, before the payload */
#define WIRE_BLOCK_MAX (WIRE_BLOCK_BYTES + WIRE_PAYLOAD_MAX)
#define WIRE_NUMBER_MAX (1u << 24)

/* A code in a byte: rows of a full group (64 blocks), 1..32, and groups interleaved, 1, 2, 4 or 8.
 * Rows 0 is no code, and depth 0. */
static inline bool wire_code_fits(uint8_t rows, uint8_t depth)
{
    return rows <= 32 && depth <= 8 && (depth & (depth - 1)) == 0 && (rows == 0) == (depth == 0);
}

static inline uint8_t wire_code_byte(uint8_t rows, uint8_t depth)
{
    return (uint8_t)(rows | (depth ? __builtin_ctz(depth) << 6 : 0));
}

/* What does not fit is given rows above 32. */
static inline void wire_code_of(uint8_t byte, uint8_t *rows, uint8_t *depth)
{
    *rows = byte & 63;
    *depth = (uint8_t)(*rows ? 1 << (byte >> 6) : 0);
    *rows = byte && !*rows ? 63 : *rows;
}

struct wire_parity {
    uint32_t group, set, round; /* group and set hash */
    uint32_t index;             /* of the parity group */
    uint8_t phase;              /* PHASE_GATHER_PARITY or PHASE_SCATTER_PARITY */
    uint8_t rows, depth;        /* the code; rows not 0 */
    uint8_t row, blocks;        /* this row, blocks of data in the group: 1..64 */
    const uint8_t *bytes;
    uint32_t len; /* 1..WIRE_BLOCK_MAX */
};

/* Is the body of a DATA datagram one of these? */
bool wire_is_parity(const uint8_t *, size_t);
size_t wire_parity_encode(uint8_t *out, size_t cap, const struct wire_parity *);
int wire_parity_decode(struct wire_parity *, const uint8_t *, size_t);

/* What a DATA datagram says of its fragments: `fragment` is the first one's number in the set,
 * then codec, packed, weight and, in gather phases, mask. */
size_t wire_block_encode(uint8_t out[static WIRE_BLOCK_MAX], uint32_t fragment, const struct wire_data *,
                         const uint8_t *payload, size_t len);
/* Fills a frame of `phase` (a repair) but for group, tensor, round and sender_round, with ->fragment as
 * in the block; n bytes of which the last may be padding. */
int wire_block_decode(struct wire_data *, uint8_t phase, const uint8_t *, size_t n);
#endif
