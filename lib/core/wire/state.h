/* state.h - the frames of state transfer, one wire type whose first byte is the kind.
 * Contracts as in wire.h. */
#ifndef WIRE_STATE_H
#define WIRE_STATE_H
#include "wire/wire.h"

#define WIRE_STATE_BLOCK 65536u /* bytes of a block, but for a state's last */
#define WIRE_STATE_PIECES_MAX 57 /* datagrams of a block */
#define WIRE_STATE_BLOCKS_MAX (1u << 24)
#define WIRE_STATE_BYTES_MAX ((uint64_t)WIRE_STATE_BLOCKS_MAX * WIRE_STATE_BLOCK)
#define WIRE_STATE_WANTS_MAX 32
#define WIRE_STATE_DATA_BYTES 32 /* of a DATA before its payload */

enum wire_state_kind { STATE_QUERY = 1, STATE_INFO, STATE_WANT, STATE_DATA, STATE_NONE };
enum { STATE_BLOCK = 1, STATE_MANIFEST, STATE_BLOB };   /* objects */
enum { STATE_RAW = 0, STATE_ZSTD };                     /* codecs of a block */
enum { STATE_NOT_HELD = 1, STATE_DIFFERS };             /* reasons of NONE */

struct wire_digest { /* XXH3-128 */
    uint64_t low, high;
};

struct wire_state_query {
    uint32_t set;
    uint64_t owner; /* 0: what you publish; else the blob of that node */
};

/* What the sender publishes where owner is the sender, else the blob it keeps of `owner`. */
struct wire_state_info {
    uint32_t set;
    uint64_t owner;   /* node id, not 0 */
    uint64_t version; /* of the state, 0: none */
    uint64_t bytes;   /* of the state, 0: none */
    struct wire_digest digest; /* of the manifest */
    uint64_t blob_version;     /* 0: none */
    struct wire_digest blob_digest;
    uint32_t blob_bytes;
};

struct wire_state_ref {
    uint8_t object; /* STATE_BLOCK ... */
    uint32_t set;
    uint64_t version; /* not 0 */
    uint64_t owner;   /* of a blob, else 0 */
};

struct wire_state_want {
    struct wire_state_ref ref;
    uint8_t n;
    struct wire_state_entry {
        uint32_t index;  /* of the block; of a manifest's block */
        uint64_t check;  /* low half of the digest expected: of the block, the manifest or the blob */
        uint64_t pieces; /* bit i: piece i; not 0 */
    } entries[WIRE_STATE_WANTS_MAX];
};

struct wire_state_data {
    struct wire_state_ref ref;
    uint8_t codec, piece;
    uint32_t index;
    uint32_t stored; /* bytes of the block in this codec */
    const uint8_t *payload;
    uint32_t payload_len; /* of that piece */
};

struct wire_state_none {
    struct wire_state_ref ref;
    uint8_t reason; /* STATE_NOT_HELD ... */
    uint32_t index;
};

/* enum wire_state_kind, or 0. */
int wire_state_kind(const uint8_t *, size_t);
/* Datagrams for that many bytes of a block. */
uint32_t wire_state_pieces(uint32_t bytes);
size_t wire_state_query_encode(uint8_t *out, size_t cap, const struct wire_state_query *);
int wire_state_query_decode(struct wire_state_query *, const uint8_t *, size_t);
size_t wire_state_info_encode(uint8_t *out, size_t cap, const struct wire_state_info *);
int wire_state_info_decode(struct wire_state_info *, const uint8_t *, size_t);
size_t wire_state_want_encode(uint8_t *out, size_t cap, const struct wire_state_want *);
int wire_state_want_decode(struct wire_state_want *, const uint8_t *, size_t);
/* Copies the payload behind the header. */
size_t wire_state_data_encode(uint8_t *out, size_t cap, const struct wire_state_data *);
int wire_state_data_decode(struct wire_state_data *, const uint8_t *, size_t);
size_t wire_state_none_encode(uint8_t *out, size_t cap, const struct wire_state_none *);
int wire_state_none_decode(struct wire_state_none *, const uint8_t *, size_t);
#endif
