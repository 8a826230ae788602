/* wire.h - the bytes of docs/protocol.md as structs.
 *
 * Encoders return the bytes written, or 0 when `cap` is too small or a field is
 * out of the protocol's bounds.  Decoders take a whole frame (the body of a
 * datagram) and return SLEET_OK or SLEET_EMALFORMED; the struct's content is
 * meaningful only after SLEET_OK.  Pointers in a decoded struct borrow from the
 * frame.  Nothing is allocated.  Names are NUL-terminated, 1 to 63 bytes, and
 * NUL-padded after decoding.
 */
#ifndef WIRE_WIRE_H
#define WIRE_WIRE_H
#include "base/declared.h"
#include "sleet.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WIRE_VERSION 1
#define WIRE_HEADER_BYTES 16
#define WIRE_TAG_BYTES 16
#define WIRE_DATAGRAM_MAX 1224
#define WIRE_BODY_MAX (WIRE_DATAGRAM_MAX - WIRE_HEADER_BYTES - WIRE_TAG_BYTES)
#define WIRE_ELEMENTS 288 /* elements in a full fragment */
#define WIRE_PAYLOAD_MAX (4 * WIRE_ELEMENTS)
#define WIRE_DATA_BYTES 40    /* header of a DATA frame */
#define WIRE_SUMMARY_BYTES 56 /* a SUMMARY frame without its bitmap */
#define WIRE_WITNESS_BYTES 12 /* between those and the bitmap, with SUMMARY_WITNESS */
#define WIRE_SUMMARY_BITS_MAX 8192
#define WIRE_SCHEMA_MAX 1180 /* bytes of a SCHEMA frame */
#define WIRE_SCHEMA_ENTRIES_MAX 16
#define WIRE_PING_SETS_MAX 8
#define WIRE_DECLARED_BYTES 24
#define WIRE_KIND_BYTES 10 /* how a set is averaged, in SCHEMA and SCHEMA_ACK */
#define WIRE_CODEC_MAX 31 /* ids of codecs are 1 .. */
#define WIRE_PACKED_MAX 8 /* fragments in a DATA frame: one run */

enum wire_type {
    WIRE_HELLO = 1,
    WIRE_HELLO_ACK,
    WIRE_SCHEMA,
    WIRE_SCHEMA_ACK,
    WIRE_PING,
    WIRE_DATA,
    WIRE_SUMMARY,
    WIRE_GROUP_REQ,
    WIRE_GROUP,
    WIRE_CLOSE,
    WIRE_HELLO_DONE, /* wire/handshake.h, as COOKIE and, in sealed sessions, HELLO, HELLO_ACK */
    WIRE_COOKIE,
    WIRE_MEMBERS, /* wire/members.h */
    WIRE_NOTICE,  /* wire/notice.h */
    WIRE_STATE    /* wire/state.h */
};

struct wire_header {
    uint8_t version;
    uint8_t type;     /* enum wire_type */
    uint32_t index;   /* the receiver's session index */
    uint64_t counter; /* from 1 */
};

struct wire_hello { /* HELLO and HELLO_ACK */
    uint64_t node_id, boot_id;
    uint32_t index;
    uint16_t elements;
    char job[64];
};

enum {
    PING_ATTACHED = 1,
    PING_ESTABLISHED = 2,
    PING_CLOSED = 4,
    PING_DIFFERS = 8,
    PING_PARKED = 16, /* cut off: takes part in no round */
    PING_PAUSED = 32, /* too little reaches it: its values stay as they are */
    PING_MERGED = 64, /* its values are not of this lineage, they come to be by averaging */
    PING_SKETCH = 128 /* a sketch of its values follows */
};

#define WIRE_PROJECTIONS 4
#define WIRE_SKETCH_BYTES 56

/* Of a sample of what ought to be the same on all nodes; round/drift.h. */
struct wire_sketch {
    uint32_t round, group; /* low half of its number; the group's hash */
    uint64_t digest;
    float norm, projection[WIRE_PROJECTIONS];
    float before[WIRE_PROJECTIONS]; /* of the values that the node came into the round with */
};

struct wire_strategy {
    uint8_t id; /* SLEET_STRATEGY_MAP, or one that is not known here; not 0 */
    uint16_t numbers[2];
};

#define WIRE_SWITCH_BYTES 32

/* How a set is averaged from a round on, and before it; round/switch.h. */
struct wire_switch {
    uint64_t from, by; /* round; node id of who made it, not 0 */
    uint32_t version;  /* 0: there is none */
    struct wire_strategy to, before;
};

struct wire_ping_set {
    uint32_t hash;
    uint8_t flags; /* PING_ATTACHED ... */
    uint64_t round;
    uint64_t lineage, parent, forked_at, weight; /* 0 unless established */
    struct wire_sketch sketch;                   /* with PING_SKETCH */
    struct wire_switch change;
};

struct wire_ping {
    uint32_t time, echo, hold, overflow; /* times in microseconds */
    bool request;
    uint8_t n;
    struct declared declared; /* of the sender */
    struct wire_ping_set sets[WIRE_PING_SETS_MAX];
};

struct wire_tensor {
    uint64_t count;
    uint32_t rows; /* 0: not a matrix */
    uint8_t dtype, codec;
    char name[64];
};

struct wire_schema {
    uint32_t set;
    uint16_t tensors, first;
    uint8_t n, kind[WIRE_KIND_BYTES]; /* payload, estimator, update, exchange, strategy, its numbers, spread */
    char name[64];
    struct wire_tensor entries[WIRE_SCHEMA_ENTRIES_MAX];
};

enum { VERDICT_UNKNOWN = 0, VERDICT_MATCH = 1, VERDICT_DIFFERS = 2, VERDICT_KIND = 3 };

struct wire_schema_ack {
    uint32_t set;
    uint8_t verdict; /* VERDICT_UNKNOWN ... */
    uint16_t next;
    uint8_t n; /* 0 or 1; 1 only with VERDICT_DIFFERS */
    uint8_t kind[WIRE_KIND_BYTES]; /* of the set, 0 where it is unknown */
    struct wire_tensor entry;
};

enum {
    PHASE_SCATTER = 1,
    PHASE_GATHER = 2,
    PHASE_REPAIR = 3,
    PHASE_SCATTER_REPAIR = 4,
    PHASE_GATHER_PARITY = 5, /* wire/parity.h */
    PHASE_SCATTER_PARITY = 6,
    PHASE_EDGE = 7,       /* own values to a neighbour */
    PHASE_EDGE_REPAIR = 8,
    PHASE_LOW = 9,        /* of what goes over an edge of low rank (round/power.h) */
    PHASE_LOW_REPAIR = 10,
    PHASE_BACKUP = 11     /* a gather, by the backup of the owner */
};
enum { DATA_YOURS = 1, DATA_LAST = 2, DATA_CLOSED = 4, DATA_EXACT = 8 };

struct wire_data {
    uint32_t group, tensor, round, fragment; /* PHASE_LOW...: tensor is the set's hash, fragment of the edge's vector */
    uint8_t phase, codec, packed, flags; /* PHASE_..., codec id, fragments, DATA_... */
    uint8_t rows, depth; /* of the parity that comes for it (wire/parity.h), rows 0: none; PHASE_SCATTER, _GATHER */
    uint32_t number;     /* its own among the datagrams that are protected, below WIRE_NUMBER_MAX */
    uint32_t tag;        /* of the edge's state, PHASE_LOW..., not 0; else 0 */
    float weight;
    uint32_t time, remaining; /* scatter phases, else 0 */
    uint64_t mask;            /* gather phases, else 0 */
    uint32_t sender_round;
    const uint8_t *payload; /* decoder only */
    uint32_t payload_len;   /* bytes */
};

enum {
    SUMMARY_SCATTER_OVER = 1,
    SUMMARY_COMMITS_FINAL = 2,
    SUMMARY_CLOSED = 4,
    SUMMARY_SCATTER_HOLES = 8,
    SUMMARY_WITNESS = 16, /* `owner` and `digest` are there */
    SUMMARY_ASKS = 32, /* among neighbours: say what you hold; of an owner whose commits stay: when you have committed, and what */
    SUMMARY_TAKES_NONE = 64, /* among neighbours: of you in this round */
    SUMMARY_ALL = 128        /* the bitmap numbers the fragments of the set */
};

struct wire_summary {
    uint32_t set, group, round, sender_round;
    uint64_t counter_seen;
    uint32_t scatter_sent, committed, overflow, echo, hold, first;
    uint16_t bits;
    uint16_t loss; /* of 65535 datagrams sent to the sender lately */
    uint16_t capacity; /* of the way to the sender, see path/path.h */
    uint8_t flags;
    const uint8_t *bitmap; /* (bits + 7) / 8 bytes, bit i = byte i / 8, bit i % 8; may be NULL
                              for the encoder when bits is 0 */
    uint8_t of;      /* 1 + rank of the owner whose commits it is about: holes, or none are here; 0: receiver's */
    uint8_t owner;   /* a member of the group, by rank */
    uint64_t digest; /* of all commits that the sender holds of it */
};

struct wire_group_req {
    uint32_t set, group;
};

struct wire_member {
    uint64_t node_id, boot_id;
    uint8_t contributes; /* 0 or 1 */
    uint8_t uplink;      /* grade of what it can send, below 128; not 0 without `contributes`: an auxiliary, then below 127 */
};

struct wire_group {
    uint32_t set, group;
    uint8_t n;
    struct wire_member members[SLEET_GROUP_MAX]; /* node ids ascending */
};

enum { CLOSE_LEAVE = 1, CLOSE_VERSION, CLOSE_JOB, CLOSE_ELEMENTS, CLOSE_SESSION, CLOSE_DENIED };

struct wire_close {
    uint8_t reason, version; /* CLOSE_LEAVE ... */
    uint16_t elements;
};

/* The header alone, WIRE_HEADER_BYTES. */
void datagram_header(uint8_t *dgram, const struct wire_header *);
/* Length, version and the header's fields; no tag is looked at.  As datagram_open(). */
int datagram_peek(const uint8_t *, size_t, struct wire_header *);

/* Write header and tag round the `body_len` bytes at dgram + WIRE_HEADER_BYTES.
 * `dgram` has room for WIRE_DATAGRAM_MAX.  Bytes of the datagram, or 0 when the
 * body is too long. */
size_t datagram_seal(uint8_t *dgram, size_t body_len, const struct wire_header *);

/* Check length, tag, version, then the header's fields.  SLEET_OK: header, body
 * and length are filled, the body borrows from the datagram.  SLEET_EPROTO:
 * intact, but of another version; only the header is filled. */
int datagram_open(const uint8_t *, size_t, struct wire_header *, const uint8_t **body, size_t *len);

/* The round nearest to `near` whose low 32 bits are `low`. */
uint64_t round_expand(uint64_t near, uint32_t low);

size_t wire_hello_encode(uint8_t *out, size_t cap, const struct wire_hello *);
int wire_hello_decode(struct wire_hello *, const uint8_t *, size_t);

size_t wire_ping_encode(uint8_t *out, size_t cap, const struct wire_ping *);
int wire_ping_decode(struct wire_ping *, const uint8_t *, size_t);

/* Packs as many of the n entries as fit WIRE_SCHEMA_MAX; ->n becomes that number. */
size_t wire_schema_encode(uint8_t *out, size_t cap, struct wire_schema *);
int wire_schema_decode(struct wire_schema *, const uint8_t *, size_t);

size_t wire_schema_ack_encode(uint8_t *out, size_t cap, const struct wire_schema_ack *);
int wire_schema_ack_decode(struct wire_schema_ack *, const uint8_t *, size_t);

/* PHASE_LOW...? */
bool wire_is_low(uint8_t phase);
/* Are all fields but the payload within the bounds? */
bool wire_data_fits(const struct wire_data *);
/* Writes the 40 bytes before the payload; the caller puts the payload behind them. */
size_t wire_data_encode(uint8_t *out, size_t cap, const struct wire_data *);
/* Checks what can be checked without the set: the payload is of 1 to WIRE_PAYLOAD_MAX bytes. */
int wire_data_decode(struct wire_data *, const uint8_t *, size_t);

/* Copies the bitmap; bits past `bits` in its last byte are written as 0. */
size_t wire_summary_encode(uint8_t *out, size_t cap, const struct wire_summary *);
int wire_summary_decode(struct wire_summary *, const uint8_t *, size_t);

size_t wire_group_req_encode(uint8_t *out, size_t cap, const struct wire_group_req *);
int wire_group_req_decode(struct wire_group_req *, const uint8_t *, size_t);

/* The group hash of n members. */
uint32_t wire_group_hash(const struct wire_member *, uint8_t n);
/* ->group must be the members' hash, else 0 is returned. */
size_t wire_group_encode(uint8_t *out, size_t cap, const struct wire_group *);
int wire_group_decode(struct wire_group *, const uint8_t *, size_t);

size_t wire_close_encode(uint8_t *out, size_t cap, const struct wire_close *);
int wire_close_decode(struct wire_close *, const uint8_t *, size_t);
#endif
