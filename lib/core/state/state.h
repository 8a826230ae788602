/* state.h - exact transfer of a published state: blocks, donors, joiners, blobs.
 *
 * A state is the bytes of a set's tensors at a version.  It is cut into blocks of
 * 64 KiB; the manifest is the XXH3-128 of each, 16 bytes a block, and is cut likewise;
 * the digest is the XXH3-128 of the manifest.  A joiner asks (WANT) for pieces of blocks,
 * a donor answers each wanted piece once (DATA): whatever is lost is asked for again.
 * A blob is up to 64 KiB that a node hands along with its state; members keep the
 * newest of each other.
 *
 * Sans-I/O like the rest of the core: frames and time go in, frames come out. */
#ifndef STATE_STATE_H
#define STATE_STATE_H
#include "base/time.h"
#include "wire/state.h"

#define STATE_JOBS_MAX 256         /* blocks that donors' receivers wait for, all together */
#define STATE_JOBS_EACH 40         /* of one receiver */
#define STATE_CACHE 8              /* compressed blocks kept by a donor */
#define STATE_BLOBS_MAX 64         /* of other nodes */
#define STATE_DONORS_MAX 64        /* that a joiner looks at */
#define STATE_FLIGHT_MAX 64        /* blocks on their way to a joiner */
#define STATE_FLIGHT_EACH 8        /* of one donor */
#define STATE_HASH_SLICE (4u << 20) /* bytes hashed in one go */
#define STATE_PIN SEC(2)           /* a replaced version stays this long after it was last asked for */
#define STATE_PIN_MAX SEC(60)      /* but no longer than this and twice what its bytes take */

/* ---- blocks (block.c) -------------------------------------------------------- */

struct wire_digest state_digest(const void *, size_t bytes);
static inline bool digest_equal(struct wire_digest a, struct wire_digest b)
{
    return a.low == b.low && a.high == b.high;
}
static inline uint32_t state_blocks(uint64_t bytes)
{
    return (uint32_t)((bytes + WIRE_STATE_BLOCK - 1) / WIRE_STATE_BLOCK);
}
static inline uint32_t state_block_bytes(uint64_t bytes, uint32_t index)
{
    uint64_t rest = bytes - (uint64_t)index * WIRE_STATE_BLOCK;
    return rest < WIRE_STATE_BLOCK ? (uint32_t)rest : WIRE_STATE_BLOCK;
}
static inline uint64_t state_pieces_mask(uint32_t stored)
{
    return (UINT64_C(1) << wire_state_pieces(stored)) - 1;
}

/* A block coming in, from one donor: pieces, then the whole. */
struct block_in {
    uint32_t bytes;  /* of the block when it is whole */
    uint32_t stored; /* in the donor's form; 0: not known yet */
    uint8_t codec;
    uint64_t have; /* pieces */
    uint8_t *data; /* WIRE_STATE_BLOCK bytes; allocated with the first piece */
};

void block_in_start(struct block_in *, uint32_t bytes);
void block_in_fini(struct block_in *);
/* Pieces that still lack, as far as is known. */
uint64_t block_in_lacks(const struct block_in *);
enum block_fate { BLOCK_STALE, BLOCK_PIECE, BLOCK_WHOLE, BLOCK_BAD };
/* A piece of it.  BAD: it contradicts the ones before, or no memory. */
enum block_fate block_in_put(struct block_in *, const struct wire_state_data *);
/* Write ->bytes to `out`; false when that is not what `digest` (NULL: anything) says. */
bool block_in_open(const struct block_in *, const struct wire_digest *digest, uint8_t *out);

/* ---- published versions (snapshot.c) ----------------------------------------- */

struct snapshot {
    const uint8_t *data; /* borrowed; NULL: none */
    uint64_t version, bytes;
    uint32_t hashed;  /* blocks; the state is offered when all are */
    uint8_t *manifest; /* owned; 16 bytes a block */
    struct wire_digest digest;
    sleet_time asked_at;    /* by a WANT, last */
    sleet_time replaced_at; /* TIME_NEVER: the newest */
};

static inline bool snapshot_ready(const struct snapshot *s)
{
    return s->data && s->hashed == state_blocks(s->bytes);
}
struct wire_digest manifest_at(const uint8_t *manifest, uint32_t index);

/* What this node publishes of a set: the newest version, and the one before while it is asked for. */
struct published {
    struct snapshot snap[2];
    uint32_t newest;
};

void published_fini(struct published *);
/* SLEET_OK, ENOMEM, EINVAL (version 0, no bytes, too many), EAGAIN: the one before is still
 * being fetched, so its memory cannot be given back. */
int published_put(struct published *, const void *data, uint64_t bytes, uint64_t version,
                  uint64_t rate_bps, sleet_time now);
/* Forget the version before the newest, so that its memory can be written; false while it is
 * being fetched. */
bool published_reserve(struct published *, uint64_t rate_bps, sleet_time now);
/* Hash a slice; false when nothing is left to hash. */
bool published_hash(struct published *);
static inline bool published_hashing(const struct published *p)
{
    return p->snap[p->newest].data && !snapshot_ready(&p->snap[p->newest]);
}
/* The newest that is ready, or NULL. */
const struct snapshot *published_newest(const struct published *);
struct snapshot *published_version(struct published *, uint64_t version);

/* ---- a donor's work (serve.c) -------------------------------------------------- */

/* Where the bytes of an object are: NULL where they are not held, or not those of `check`. */
struct served {
    const uint8_t *data;
    uint32_t bytes;
};
struct serve_source {
    void *arg;
    /* STATE_DIFFERS, STATE_NOT_HELD, or 0 with *out filled. */
    int (*find)(void *arg, const struct wire_state_ref *, uint32_t index, uint64_t check,
                struct served *out);
};

struct serve_job {
    uint16_t slot; /* of the receiver, 0: free */
    struct wire_state_ref ref;
    uint32_t index;
    uint64_t check, pieces;
    uint64_t order; /* of their coming */
};

struct serve_cached {
    bool used;
    struct wire_state_ref ref;
    uint32_t index;
    uint64_t check, turn;
    uint32_t stored; /* 0: compression does not help */
    uint8_t *data;   /* WIRE_STATE_BLOCK */
};

struct server {
    struct serve_job jobs[STATE_JOBS_MAX];
    uint32_t n;
    uint64_t order, turn;
    struct serve_cached cache[STATE_CACHE];
    void *zstd; /* ZSTD_CCtx, made when first needed */
    uint64_t blocks, bytes, refused; /* begun, payload sent, wants that found no room */
};

void server_fini(struct server *);
/* Take a WANT; what is not held is told in `none` (a frame for the sender): true then. */
bool server_want(struct server *, const struct serve_source *, uint32_t slot,
                 const struct wire_state_want *, struct wire_state_none *none);
bool server_has(const struct server *, uint32_t slot);
/* Write the next DATA frame for the receiver; 0: none is left. */
size_t server_fill(struct server *, const struct serve_source *, uint32_t slot, uint8_t *out,
                   size_t cap);
void server_forget(struct server *, uint32_t slot);

/* ---- ways to others -------------------------------------------------------------- */

struct state_path {
    sleet_duration timeout; /* RFC 6298 */
    sleet_duration grace;   /* for reordering */
};
struct state_paths {
    void *arg;
    /* False: the node cannot be reached now. */
    bool (*find)(void *arg, uint64_t node_id, struct state_path *out);
};

/* A frame to a node. */
struct state_frame {
    uint64_t to; /* node id */
    size_t len;
    uint8_t body[1184];
};

/* ---- blobs of all nodes (blobs.c) ------------------------------------------------ */

struct blob {
    uint32_t set;
    uint64_t owner; /* 0: free */
    uint64_t version; /* held; 0: none */
    struct wire_digest digest;
    uint32_t bytes;
    uint8_t *data; /* owned */
    uint64_t state_version; /* its owner publishes; 0: none */
    uint64_t turn; /* of its last change */
    /* a newer one on its way: */
    uint64_t next_version, holder;
    struct wire_digest next_digest;
    struct block_in in;
    sleet_time ask_at; /* TIME_NEVER: nothing is under way */
    uint32_t tries;
};

struct blobs {
    struct blob of[STATE_BLOBS_MAX + 8]; /* the rest: this node's own, one a set */
    uint64_t turn;
};

void blobs_fini(struct blobs *);
/* This node's own.  SLEET_OK, ENOMEM, ELIMIT. */
int blobs_put(struct blobs *, uint64_t self, uint32_t set, uint64_t version, const void *, uint32_t bytes);
struct blob *blobs_find(struct blobs *, uint32_t set, uint64_t owner);
/* `holder` has told of a blob; fetched from it where it is newer than what is held (of the
 * owner's own, where it differs). */
void blobs_learn(struct blobs *, uint64_t self, uint64_t holder, const struct wire_state_info *,
                 sleet_time now);
/* A piece came.  True: one is complete now. */
bool blobs_data(struct blobs *, uint64_t from, const struct wire_state_data *, sleet_time now);
void blobs_none(struct blobs *, uint64_t from, const struct wire_state_none *);
bool blobs_pending(const struct blobs *, uint32_t set, uint64_t owner);
/* The next WANT that is due; false: none. */
bool blobs_next(struct blobs *, const struct state_paths *, struct state_frame *, sleet_time now);
sleet_time blobs_deadline(const struct blobs *);

/* ---- a joiner's work (fetch.c, fetch_ask.c) ---------------------------------------- */

struct fetch_donor {
    uint64_t node_id;
    bool answered, banned;
    bool dropped; /* it does not hold the version any more */
    struct wire_state_info info;
    uint32_t queries, in_flight, window, timeouts;
    uint32_t contradictions; /* pieces that did not fit the ones before */
    sleet_time ask_at;     /* QUERY (again) at */
    sleet_time due;        /* of an answer to what was wanted; TIME_NEVER: nothing is */
    sleet_time away_until; /* silent: not asked before */
    uint32_t blocks;       /* delivered, right */
};

struct fetch_block {
    bool used, ask; /* ask: a WANT is due */
    uint32_t index, donor, moves;
    uint64_t seq; /* of its last WANT */
    sleet_time asked_at;
    sleet_time retry_at; /* later ones have come, so what lacks is lost; TIME_NEVER: not yet */
    struct block_in in;
};

enum fetch_phase { FETCH_LOOK, FETCH_MANIFEST, FETCH_BLOCKS, FETCH_DONE };

struct fetch {
    enum fetch_phase phase;
    int error;  /* of FETCH_DONE */
    bool own;   /* of FETCH_DONE: what this node publishes itself is the newest */
    uint32_t set;
    uint8_t *into; /* borrowed */
    uint64_t bytes, own_version, least;
    uint64_t version, source; /* chosen; the node whose manifest it is */
    struct wire_digest digest;
    sleet_time deadline, look_until;
    sleet_time look_at; /* when to decide or to plan again */
    struct fetch_donor donors[STATE_DONORS_MAX];
    uint32_t donors_n, turn;
    uint32_t blocks, done_n; /* of this phase: of the manifest, or of the state */
    uint64_t *done, *taken;  /* bitmaps */
    uint8_t *manifest, *old_manifest;
    uint64_t *old_done; /* blocks in `into` that are as old_manifest says */
    uint64_t *refused;  /* a block's donors that have others there */
    struct fetch_block flight[STATE_FLIGHT_MAX];
    uint32_t flight_n;
    uint64_t seq;
    uint64_t asked_again, lies, kept; /* blocks asked again, wrong ones, taken over from before */
    uint64_t liar;                    /* the last one; 0 once told */
    uint64_t seed; /* where to begin among many members */
    uint32_t wrong_size;              /* donors whose state has another size */
};

/* `into` takes `bytes` bytes.  own_version: of what this node publishes itself, 0: nothing; where
 * nobody has a newer one the fetch ends with it.  Versions up to `least` are not wanted.
 * NULL when out of memory. */
struct fetch *fetch_new(uint32_t set, void *into, uint64_t bytes, uint64_t own_version,
                        uint64_t least, sleet_duration limit, sleet_time now);
void fetch_free(struct fetch *);
/* A member that may have it. */
void fetch_candidate(struct fetch *, uint64_t node_id, sleet_time now);
void fetch_info(struct fetch *, uint64_t from, const struct wire_state_info *);
/* What a datagram was good for. */
enum block_fate fetch_data(struct fetch *, const struct state_paths *, uint64_t from,
                           const struct wire_state_data *, sleet_time now);
void fetch_none(struct fetch *, uint64_t from, const struct wire_state_none *);
/* What is due: decide, time out, give blocks to donors. */
void fetch_expire(struct fetch *, const struct state_paths *, sleet_time now);
/* The next QUERY or WANT; false: none now. */
bool fetch_next(struct fetch *, const struct state_paths *, struct state_frame *, sleet_time now);
sleet_time fetch_deadline(const struct fetch *);
/* Donors that delivered a block. */
uint32_t fetch_donors(const struct fetch *);

/* fetch_ask.c */
bool fetch_usable(const struct fetch *, const struct fetch_donor *);
void fetch_release(struct fetch *, struct fetch_block *);
void fetch_release_all(struct fetch *, uint32_t donor);
/* False: nobody is left to ask. */
bool fetch_plan(struct fetch *, const struct state_paths *, sleet_time now);
void fetch_time_out(struct fetch *, const struct state_paths *, sleet_time now);
bool fetch_want(struct fetch *, const struct state_paths *, struct state_frame *, sleet_time now);
#endif
