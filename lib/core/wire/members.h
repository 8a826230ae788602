/* members.h - the MEMBERS frame of docs/protocol.md: what a node says of the
 * members of its job.  Same contract as wire.h. */
#ifndef WIRE_MEMBERS_H
#define WIRE_MEMBERS_H
#include "base/addr.h"
#include "wire/wire.h"

#define WIRE_KEY_BYTES 32
#define WIRE_CANDIDATES 3    /* addresses of a member */
#define WIRE_MEMBERS_HEAD 20 /* bytes before the updates */
#define WIRE_UPDATE_BYTES_MAX (30 + WIRE_KEY_BYTES + 18 * WIRE_CANDIDATES)
#define WIRE_UPDATE_BYTES_MIN 22
#define WIRE_UPDATES_MAX ((WIRE_BODY_MAX - WIRE_MEMBERS_HEAD) / WIRE_UPDATE_BYTES_MIN)

enum wire_members_kind {
    MEMBERS_UPDATES = 1,  /* news */
    MEMBERS_PROBE,        /* ask the node `subject` for a sign of life, please */
    MEMBERS_PROBE_ANSWER, /* of that: heard or not */
    MEMBERS_TABLE_ASK,    /* members after `subject`, in the order of ids */
    MEMBERS_TABLE         /* they */
};

enum { MEMBERS_HEARD = 1, MEMBERS_MORE = 2, MEMBERS_SAME = 4 };

enum wire_status { STATUS_ALIVE, STATUS_SUSPECT, STATUS_DEAD, STATUS_LEFT };

/* Where a member may be reached; port 0: not known. */
enum { CANDIDATE_OBSERVED, CANDIDATE_V4, CANDIDATE_V6 };

struct wire_update {
    uint64_t node_id, boot_id;
    uint32_t incarnation;
    uint8_t status;              /* enum wire_status */
    uint64_t by;                 /* who suspects it or found it dead; 0 with the others */
    uint8_t key[WIRE_KEY_BYTES]; /* static public key; all zero: none */
    sleet_addr at[WIRE_CANDIDATES];
};

struct wire_members {
    uint8_t kind;  /* enum wire_members_kind */
    uint8_t flags; /* MEMBERS_HEARD ... */
    uint8_t n;
    uint32_t sequence; /* of a question, repeated in its answer */
    uint64_t subject;  /* node id, 0 where the kind has none */
    uint32_t digest;   /* TABLE_ASK: of the members the sender takes for alive */
    struct wire_update updates[WIRE_UPDATES_MAX];
};

/* Bytes of one update, for filling a frame. */
size_t wire_update_bytes(const struct wire_update *);
size_t wire_members_encode(uint8_t *out, size_t cap, const struct wire_members *);
/* Only the n updates of the frame are written to. */
int wire_members_decode(struct wire_members *, const uint8_t *, size_t);
#endif
