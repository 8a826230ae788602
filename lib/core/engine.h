/* engine.h - the protocol engine of one node.
 *
 * Sans-I/O: datagrams, calls and time go in; datagrams, events and one deadline
 * come out.  The engine reads no clock, opens nothing, draws no randomness of
 * its own: the same inputs give the same outputs.  One thread at a time.
 *
 * Drive it so:
 *   engine_recv() for each datagram, engine_submit_*() for calls, then
 *   engine_expire() if engine_deadline() has passed, then
 *   engine_send() until it returns 0, engine_poll() until it returns false,
 *   and sleep until engine_deadline() or the next input.
 * `now` must not go backwards. A gap between engine_deadline() and the next
 * call tells the engine that its process was paused.
 */
#ifndef ENGINE_H
#define ENGINE_H
#include "base/config.h"
#include "base/stats.h"
#include "protect/rule.h"
#include "sleet.h"
#include "tensor/kind.h"
#include <stdbool.h>
#include <stddef.h>

#define ENGINE_PEERS_MAX 1023
#define ENGINE_SETS_MAX 8
#define ENGINE_DATAGRAM_MAX 1224 /* UDP payload bytes: 16 + 40 + 1152 + 16 */
#define ENGINE_BURST_MAX 16      /* datagrams in one burst */

typedef struct engine engine;

/* NULL when out of memory or the configuration is out of range. */
engine *engine_new(const engine_config *, sleet_time now);
void engine_free(engine *);

/* ---- datagrams --------------------------------------------------------- */

/* Any bytes from anywhere; `data` is only read during the call. */
void engine_recv(engine *, const sleet_addr *from, const uint8_t *data, size_t len, sleet_time now);

/* Datagrams the socket dropped since the last call (SO_RXQ_OVFL). */
void engine_overflow(engine *, uint32_t datagrams, sleet_time now);

/* One burst to one address: `count` datagrams back to back in `data`, each
 * `segment` bytes but the last, which may be shorter (ready for UDP_SEGMENT). */
typedef struct {
    sleet_addr to;
    uint32_t count;
    uint32_t segment; /* bytes */
    uint32_t len;     /* bytes in all */
    uint8_t data[ENGINE_BURST_MAX * ENGINE_DATAGRAM_MAX];
} engine_burst;

/* Fill the next burst that may leave at `now`; 0 when there is none yet. */
size_t engine_send(engine *, engine_burst *, sleet_time now);

/* The next instant at which engine_expire() or engine_send() has work. */
sleet_time engine_deadline(const engine *);
void engine_expire(engine *, sleet_time now);

/* ---- calls ------------------------------------------------------------- */

typedef struct {
    char name[SLEET_NAME_MAX + 1];
    sleet_dtype dtype;
    sleet_codec codec; /* 0: the default */
    uint64_t count;    /* elements */
    uint32_t rows;     /* of a matrix; 0: it is a vector */
} engine_tensor;

/* Make a set known with its local contributor.  Arrays are copied.  Returns a
 * set handle >= 0 that stays the same when the same set is registered again
 * after engine_detach(), or SLEET_EINVAL, ELIMIT, ENOMEM, EBUSY, EPERM (the node is an auxiliary). */
int engine_register(engine *, const char *name, struct set_kind, const engine_tensor *, uint32_t n,
                    sleet_time now);

/* The trainer of `set` is gone or done.  Its buffers are not touched again. */
void engine_detach(engine *, int set, sleet_time now);

/* Open a round (engine_start_args: base/config.h).  The two pointer tables are copied, the arrays are borrowed.
 * An older open round of the set is withdrawn without an event.
 * Errors: EINVAL, ESTATE (no contributor), ESCHEMA, ELEFT, ENOMEM. */
int engine_start(engine *, int set, const engine_start_args *, sleet_time now);

/* Close the open round with what there is and withdraw what was not sent;
 * an EVENT_ROUND with error SLEET_ECANCELED follows if one was open. */
int engine_cancel(engine *, int set, sleet_time now);

/* The operator's word: from a round a little ahead on the set's strategy is "NAME[:A[,B]]", on all
 * nodes of the job (round/switch.h).  Errors: EINVAL and ELIMIT, with a sentence in *why (may be NULL;
 * static), ELEFT. */
int engine_set_strategy(engine *, int set, const char *word, const char **why, sleet_time now);

/* The operator's word: the members that can be heard are all there are.  Sets that were parked or
 * paused go on, in a lineage of their own; returns how many. */
uint32_t engine_resume(engine *, sleet_time now);

/* ---- state: exact transfer to late joiners -------------------------------- */

typedef struct {
    const void *data; /* `bytes` bytes, at most 2^40 */
    uint64_t bytes, version; /* neither is 0 */
    const void *blob; /* copied; NULL: none */
    uint32_t blob_bytes; /* at most SLEET_BLOB_MAX */
} engine_state;

/* Publish a version of the set's state in the place of the one before.  `data` is borrowed
 * and must not change until engine_state_reserve() or engine_state_withdraw(), or until the
 * version after the next is published: two versions are held.  It is offered once its
 * blocks are hashed, 4 MiB a call of engine_expire().
 * Errors: EINVAL, ELIMIT, ENOMEM, EAGAIN (the version before is still being fetched). */
int engine_state_publish(engine *, int set, const engine_state *, sleet_time now);
/* Let go of the version before the newest, so that its memory can be written again; false
 * while somebody fetches it, which ends by itself within a bound. */
bool engine_state_reserve(engine *, int set, sleet_time now);
/* Let go of all versions of the set, and end a fetch without an event. */
void engine_state_withdraw(engine *, int set);

typedef struct {
    void *into;     /* borrowed until EVENT_STATE */
    uint64_t bytes; /* of the state; others are not taken */
    uint64_t newer_than;  /* only versions above it; 0: any */
    sleet_duration limit; /* > 0 */
} engine_fetch_args;

/* Fetch the newest state that members publish.  EVENT_STATE follows within the limit.
 * One fetch a set at a time.  Errors: EINVAL, EBUSY, ENOMEM, ELEFT. */
int engine_state_fetch(engine *, int set, const engine_fetch_args *, sleet_time now);

/* End a fetch, or a question for a blob, without an event. */
void engine_state_cancel(engine *, int set);

/* Ask for the newest blob of a node, alive or not; EVENT_BLOB follows within the limit.  One a
 * set at a time.  Errors: EINVAL, EBUSY, ELEFT. */
int engine_blob_ask(engine *, int set, uint64_t node_id, sleet_duration limit, sleet_time now);
/* The blob of a node as it is held here; NULL when there is none.  Valid until the next call. */
const void *engine_blob(const engine *, int set, uint64_t node_id, uint64_t *version, uint32_t *bytes);

/* Say good-bye to all peers; afterwards only CLOSE is sent. */
void engine_leave(engine *, sleet_time now);

/* A record that an operator has signed, WIRE_RECORD_BYTES: done here and told to all members
 * until each has it.  Errors: EINVAL, ESTATE (security is not sealed, or the node leaves), EPERM
 * (not signed by the operator's key for this job), EEXIST (a newer order is here), ELIMIT. */
int engine_order(engine *, const uint8_t *record, size_t len, sleet_time now);

/* ---- events ------------------------------------------------------------ */

typedef struct {
    const void *data; /* the state: `into`, or what this node publishes itself where that is newest */
    uint64_t version, bytes;
    uint64_t blob_of; /* node whose blob at this version is held; 0: none */
    uint64_t newest;  /* version ever heard of: above `version`, its holders are gone */
    uint32_t donors, lies; /* nodes that gave blocks; wrong blocks refused */
    double coverage;  /* share of the blocks that is there: 1 unless there is an error */
    sleet_duration elapsed;
} engine_fetched;

typedef struct {
    enum { EVENT_ROUND = 1, EVENT_SCHEMA, EVENT_STATE, EVENT_BLOB, EVENT_JOB_KEY, EVENT_EVICTED } type;
    int set; /* not of the last two */
    int error;           /* ROUND: SLEET_OK or ECANCELED; STATE: OK, ENOSTATE, EAGAIN (time is up);
                            BLOB: OK, ENOSTATE */
    sleet_report report; /* EVENT_ROUND */
    engine_fetched fetched; /* EVENT_STATE */
    uint64_t node_id;    /* EVENT_BLOB: whose */
    char text[256];      /* EVENT_SCHEMA: which tensor differs, on which node */
    uint8_t job_key[32]; /* EVENT_JOB_KEY: to be saved: the job's key from now on */
} engine_event;

/* Take the next event; false when there is none.  At most one EVENT_ROUND is
 * pending a set. */
bool engine_poll(engine *, engine_event *);

/* ---- what an operator sees --------------------------------------------- */

typedef struct {
    uint64_t node_id; /* 0 until the first HELLO */
    uint64_t boot_id;
    sleet_addr addr;
    struct declared declared;
    bool alive, left, evicted;
    bool stopped;          /* no data goes to it until it is heard again */
    uint64_t rate_bps;     /* pace of data to it now, at most the node's */
    sleet_duration silent; /* since last heard; -1: never */
    sleet_duration rtt;    /* smoothed; -1: unknown */
    uint64_t sent, received, lost; /* datagrams to, from, and lost on the way from it */
    uint64_t gaps;                 /* runs in which the lost ones were missing */
    double loss, loss_told;        /* share lost lately on the way from it, and to it by its word */
    int64_t capacity;              /* of the way to it, by its word, bits a second; -1: not known */
    bool capacity_least;           /* ... which has never held up what was sent: it may be more */
    double keep;                   /* share of sparse tensors that last went to it; 0: the same to all */
    struct protection protection;  /* of what was last sent to it, and why */
    uint64_t round;                /* of its first set in common */
    bool contributing;
    uint32_t silent_rounds; /* rounds in a row in which it contributed nothing to us */
    double coverage;        /* long-run share of its fragments that reached this node's commits */
    uint64_t clipped, refused, far_rounds; /* contributions of its cut down, results not
                                              taken, rounds with some of them */
    uint64_t disputed, disputes; /* rounds in which another node was told other results by it
                                    than we were; in which it said so of others */
    double drift; /* how far its values are from ours, relative; -1: not known */
    double excess;          /* which went beyond what is allowed at most so many times */
} engine_peer;

typedef struct {
    char name[SLEET_NAME_MAX + 1];
    uint32_t tensors, hash;
    uint64_t elements, round, job_round;
    bool attached, joining, schema_differs;
    bool parked, paused;      /* cut off; covers too little */
    uint32_t common, missing; /* members of the last common view, this one included; of them unheard */
    uint64_t lineage, parent, forked_at; /* 0: none */
    const char *idle;         /* why no round makes progress, as a sentence; NULL: nothing is known */
    uint32_t trainers; /* alive nodes with a trainer on the same set, this included */
    sleet_duration budget;
    sleet_duration longest_wait; /* of a round since registration */
    double coverage;             /* long-run mean of the reports */
    uint64_t rounds;             /* reports delivered */
    ledger_side scatter, gather; /* sums over final rounds */
    engine_residual residual;    /* estimator carry */
    char strategy[STRATEGY_WORD]; /* of the next round */
    char next_strategy[STRATEGY_WORD]; /* the newest that was asked for */
    uint32_t strategy_version; /* of that; 0: it is that of the kind */
    uint64_t strategy_from;    /* round */
    uint64_t strategy_by;      /* node id */
    double consensus_distance, mixing; /* round/drift.h; -1: not known */
    uint32_t late_waiting; /* fragments decided after their round among neighbours, for the next result; round/edge.h */
    uint64_t late_added, late_dropped; /* so many are in a result; were never decided */
} engine_set;

typedef struct {
    uint64_t version, bytes; /* published and offered; 0: none */
    bool hashing;            /* a newer one is on its way */
    uint32_t waiting;        /* blocks that others wait for, of all sets */
    uint64_t served_bytes;   /* of all sets */
    bool fetching;
    uint64_t fetch_version; /* 0: not chosen yet */
    uint32_t fetch_donors;
    double fetch_coverage;
} engine_state_info;

typedef struct {
    uint64_t node_id;
    uint64_t state_version;       /* that it last told of; 0: none */
    uint64_t blob_version;        /* held here; 0: none */
    uint32_t blob_bytes;
} engine_holding;

/* False for an unused handle. */
bool engine_get_state(const engine *, int set, engine_state_info *);
/* What other nodes publish of the set, and which of their blobs are held here. */
uint32_t engine_get_holdings(const engine *, int set, engine_holding *, uint32_t max);

/* An order of an operator, and who has it. */
typedef struct {
    uint8_t kind;    /* 1 evict, 2 rekey */
    uint64_t serial; /* of the next order: above all of these */
    uint64_t subject; /* node id, 0 in 2 */
    uint32_t members, told, refused; /* members with a session; of them those who have it; won't */
} engine_order_info;
uint32_t engine_get_orders(const engine *, engine_order_info *, uint32_t max);

void engine_get_counters(const engine *, engine_counters *);
uint32_t engine_get_peers(const engine *, engine_peer *, uint32_t max, sleet_time now);
/* False for an unused handle. */
bool engine_get_set(const engine *, int set, engine_set *, sleet_time now);
/* Would a start now join a round that others have begun? */
bool engine_wanted(const engine *, int set);
/* Newest first; at most 64 are kept. */
uint32_t engine_get_rounds(const engine *, int set, engine_round *, uint32_t max);
/* Why a round covered what it did; false when it has left the window. */
bool engine_explain(const engine *, int set, uint64_t round, engine_explanation *);
/* Alive nodes, this one included. */
uint32_t engine_nodes_alive(const engine *, sleet_time now);
/* Upper bound of the engine's own heap, shared buffers not counted. */
uint64_t engine_memory_bound_bytes(const engine *);
#endif
