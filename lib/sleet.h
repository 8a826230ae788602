/* sleet.h - the public C interface of libsleet.
 *
 * A trainer links libsleet, talks to the sleetd of its own machine over a Unix
 * socket, and averages sets of tensors with the trainers of the other nodes.
 *
 *   sleet_open -> sleet_set_new -> sleet_set_add ... -> sleet_set_register
 *   then per step: sleet_start, (compute), sleet_wait
 *
 * No call outlives its deadline.  A frozen peer, a dead link or a lossy path
 * cost coverage, not time, and the report says how much was covered.
 *
 * Units.  Times are nanoseconds (`_ns`), sizes bytes (`_bytes`), lengths of
 * arrays elements (`count`).  Coverage is a fraction from 0 to 1.
 *
 * Errors.  Functions that can fail return SLEET_OK (0) or a negative code of
 * SLEET_ERROR_MAP.  sleet_strerror() gives the code's sentence,
 * sleet_detail() the last error of a context with names and numbers in it.
 * Every function accepts NULL handles and answers SLEET_EINVAL.
 *
 * Threads.  A context and the sets made from it belong to one thread at a
 * time; the caller provides the exclusion.  Different contexts are independent.
 */
#ifndef SLEET_H
#define SLEET_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SLEET_VERSION_MAJOR 0
#define SLEET_VERSION_MINOR 1
#define SLEET_VERSION_PATCH 0

#if defined(__GNUC__)
#define SLEET_API __attribute__((visibility("default")))
#else
#define SLEET_API
#endif

/* X(name, value, sentence): the one list of errors. */
#define SLEET_ERROR_MAP(X)                                                                  \
    X(SLEET_OK, 0, "success")                                                               \
    X(SLEET_EINVAL, -1, "invalid argument")                                                 \
    X(SLEET_ENOMEM, -2, "out of memory")                                                    \
    X(SLEET_ESTATE, -3, "call not allowed in this state")                                   \
    X(SLEET_ENODAEMON, -4, "no sleetd answers on the control socket")                       \
    X(SLEET_EDAEMON, -5, "sleetd went away")                                                \
    X(SLEET_ESTALLED, -6, "sleetd did not answer in time")                                  \
    X(SLEET_EBUSY, -7, "another trainer already contributes to this set on this node")      \
    X(SLEET_ESCHEMA, -8, "the set's tensors differ from those of another node")             \
    X(SLEET_ENONFINITE, -9, "a tensor holds NaN or infinity")                               \
    X(SLEET_ELIMIT, -10, "a limit of this version is exceeded")                             \
    X(SLEET_EPROTO, -11, "unexpected answer from sleetd")                                   \
    X(SLEET_EMALFORMED, -12, "malformed datagram or frame")                                 \
    X(SLEET_EAGAIN, -13, "not finished yet")                                                \
    X(SLEET_ECANCELED, -14, "the round was cancelled")                                      \
    X(SLEET_EPERM, -15, "permission denied")                                                \
    X(SLEET_EEXIST, -16, "name already in use")                                             \
    X(SLEET_ELEFT, -17, "this node has left the job")                                       \
    X(SLEET_ENOSTATE, -18, "no such state, or none newer, is published in the job")

enum {
#define SLEET_X(name, value, text) name = value,
    SLEET_ERROR_MAP(SLEET_X)
#undef SLEET_X
};

/* The sentence for an error code; never NULL, static storage. */
SLEET_API const char *sleet_strerror(int error);

/* Element types.  X(name, value, text, bytes per element)
 * f32-state: f32 that is each node's own and only kept from drifting apart (moments of an optimizer):
 * each round averages another one in SLEET_REFRESH_ROUNDS of its parts, the rest keeps the
 * caller's values and counts as covered.  A set has other tensors as well. */
#define SLEET_DTYPE_MAP(X) X(SLEET_F32, 1, "f32", 4) X(SLEET_F32_STATE, 129, "f32-state", 4)
#define SLEET_REFRESH_ROUNDS 16

typedef enum sleet_dtype {
#define SLEET_X(name, value, text, bytes) name = value,
    SLEET_DTYPE_MAP(SLEET_X)
#undef SLEET_X
} sleet_dtype;

/* What is averaged.  X(name, value, text)
 * model: absolute values; the result is the weighted mean of what arrived, and
 * elements nobody delivered keep the caller's own value (RPS, arXiv 1810.07766).
 * The others are added to a model by their callers, in whom nobody else has a say: elements nobody
 * delivered are 0, and so is the whole result where nothing was exchanged (SLEET_BEHIND) but
 * for a node that is the whole job: its own values are the result.  delta: the way of some local steps; gradient: of one batch;
 * pseudo-gradient: the way back, for an outer optimizer (DiLoCo, arXiv 2311.08105). */
#define SLEET_PAYLOAD_MAP(X)                                                                \
    X(SLEET_MODEL, 1, "model")                                                              \
    X(SLEET_DELTA, 2, "delta")                                                              \
    X(SLEET_GRADIENT, 3, "gradient")                                                        \
    X(SLEET_PSEUDO_GRADIENT, 4, "pseudo-gradient")

typedef enum sleet_payload {
#define SLEET_X(name, value, text) name = value,
    SLEET_PAYLOAD_MAP(SLEET_X)
#undef SLEET_X
} sleet_payload;

/* How contributions that did not arrive count.  X(name, value, text)
 * ratio: the mean of those that did.  expected: each over its link's arrival rate, the sum over
 * the weight of all: unbiased, also where nodes hold different kinds of data.  carry: the sum
 * over the weight of all, and what is missing goes into the sender's next contribution.  givers: the mean of
 * those that have something to give: parts of 288 elements that are 0 all over are not sent and do not count. */
#define SLEET_ESTIMATOR_MAP(X)                                                              \
    X(SLEET_RATIO, 1, "ratio") X(SLEET_EXPECTED, 2, "expected") X(SLEET_CARRY, 3, "carry")  \
    X(SLEET_GIVERS, 4, "givers")

/* What the caller does with the result.  X(name, value, text)
 * linear: adds multiples of it (SGD, momentum): a part that comes a round late is as good.
 * nonlinear: more than that (Adam, clipping by a norm, loss scaling): it needs all of it at once. */
#define SLEET_UPDATE_MAP(X) X(SLEET_LINEAR, 1, "linear") X(SLEET_NONLINEAR, 2, "nonlinear")

/* Which half of a round takes place.  X(name, value, text)
 * all-reduce: both.  reduce-scatter: each owner gets the average of its share.  all-gather: each
 * owner hands out its own values of its share.  In the last two owners stay the same while the members do. */
#define SLEET_EXCHANGE_MAP(X)                                                               \
    X(SLEET_ALL_REDUCE, 1, "all-reduce")                                                    \
    X(SLEET_REDUCE_SCATTER, 2, "reduce-scatter")                                            \
    X(SLEET_ALL_GATHER, 3, "all-gather")

/* Who averages with whom in a round; each is a pure function of the members and the round, of two
 * numbers at most, and of nothing else (docs/architecture.md, "Strategies"); graph: of a list of edges, too.
 * X(name, value, text, what the numbers are) */
#define SLEET_STRATEGY_MAP(X)                                                               \
    X(SLEET_RPS, 1, "rps", "")                                                              \
    X(SLEET_ONE_PEER, 2, "one-peer", "")                                                    \
    X(SLEET_EXPONENTIAL, 3, "exponential", "")                                              \
    X(SLEET_RING, 4, "ring", "R")       /* differences of rank R, 1 to 32 (PowerGossip); none: all values */ \
    X(SLEET_PAIRS, 5, "pairs", "R")     /* likewise */                                      \
    X(SLEET_MOSHPIT, 6, "moshpit", "M,D") /* groups of M at most, 2 to 32; a pass is D rounds at least */ \
    X(SLEET_RANDOM, 7, "random", "M")   /* groups of M at most, 2 to 32 */                  \
    X(SLEET_TORUS, 8, "torus", "R")     /* R rows, or the next fewer that part the nodes evenly */ \
    X(SLEET_CROSSOVER, 9, "crossover", "S,M") /* S segments, 1 to 64; in groups of M at most, 2 to 32 */ \
    X(SLEET_HIERARCHICAL, 10, "hierarchical", "M") /* groups of M at most, 2 to 32 */       \
    X(SLEET_GRAPH, 11, "graph", "A,B")  /* sleetd's job.edges, which A,B is the digest of; none: whatever they are */

/* How values become bytes on the way.  X(name, value, text); docs/protocol.md, "Codecs". */
#define SLEET_CODEC_MAP(X)                                                                  \
    X(SLEET_CODEC_F32, 1, "f32")                                                            \
    X(SLEET_CODEC_BF16, 2, "bf16")                                                          \
    X(SLEET_CODEC_F16, 3, "f16")                                                            \
    X(SLEET_CODEC_I8, 4, "i8") /* a byte an element, rounded at random */                   \
    X(SLEET_CODEC_TRUNC1, 5, "trunc1") /* leading bytes of each f32 */                      \
    X(SLEET_CODEC_TRUNC2, 6, "trunc2")                                                      \
    X(SLEET_CODEC_TRUNC3, 7, "trunc3")                                                      \
    X(SLEET_CODEC_ROT1, 8, "rot1") /* rotated, so many bits an element */                   \
    X(SLEET_CODEC_ROT2, 9, "rot2")                                                          \
    X(SLEET_CODEC_ROT3, 10, "rot3")                                                         \
    X(SLEET_CODEC_ROT4, 11, "rot4")                                                         \
    X(SLEET_CODEC_TOPK, 12, "topk") /* the largest elements */

#define SLEET_X(name, value, text) name = value,
typedef enum sleet_estimator { SLEET_ESTIMATOR_MAP(SLEET_X) } sleet_estimator;
typedef enum sleet_update { SLEET_UPDATE_MAP(SLEET_X) } sleet_update;
typedef enum sleet_exchange { SLEET_EXCHANGE_MAP(SLEET_X) } sleet_exchange;
typedef enum sleet_codec { SLEET_CODEC_MAP(SLEET_X) } sleet_codec;
#undef SLEET_X
#define SLEET_X(name, value, text, numbers) name = value,
typedef enum sleet_strategy { SLEET_STRATEGY_MAP(SLEET_X) } sleet_strategy;
#undef SLEET_X

typedef struct sleet sleet;         /* a connection to the local daemon */
typedef struct sleet_set sleet_set; /* tensors that are averaged together */

#define SLEET_NAME_MAX 63       /* bytes of a set's or tensor's name, without the NUL */
#define SLEET_TENSORS_MAX 1024  /* tensors in a set */
#define SLEET_GROUP_MAX 64      /* members of a group */
#define SLEET_BLOB_MAX 65536    /* bytes of a blob */

/* ---- connection ------------------------------------------------------- */

/* Connect to the daemon at `socket_path`; NULL means $SLEET_CONTROL, and where
 * that is unset the daemon's default path.  Waits at most 5 s for the answer.
 * On success *out is owned by the caller and freed by sleet_close().
 * Errors: EINVAL, ENOMEM, ENODAEMON, EPERM, EPROTO.  On failure *out is NULL and
 * sleet_detail(NULL) holds the sentence of this thread's last failed open. */
SLEET_API int sleet_open(sleet **out, const char *socket_path);

/* Detach and free the context and every set made from it.  Mapped buffers
 * become invalid.  An open round is withdrawn; commits already made for others
 * stay with the daemon.  NULL is allowed. */
SLEET_API void sleet_close(sleet *ctx);

/* One sentence about the last error of `ctx`, with the names and numbers
 * involved; "" if there was none.  Valid until the next call on `ctx`. */
SLEET_API const char *sleet_detail(const sleet *ctx);

typedef struct sleet_job_info {
    uint64_t node_id;      /* this node */
    uint32_t nodes_known;  /* nodes in the daemon's peer list and itself */
    uint32_t nodes_alive;  /* nodes heard of lately, this one included */
    uint32_t trainers;     /* alive nodes with a trainer on the same set, this one included;
                              0 when `set` is NULL */
    uint64_t job_round;    /* newest round known of the set; 0 when `set` is NULL */
} sleet_job_info;

/* What the daemon knows of the job now, and of `set` where it is not NULL.
 * Returns within 5 s.  Errors: EINVAL, EDAEMON, ESTALLED, EPROTO. */
SLEET_API int sleet_job(sleet *ctx, const sleet_set *set, sleet_job_info *out);

/* Wait until at least `nodes` trainers (this one included) have registered the
 * same set, or `wait_ns` nanoseconds have passed.  Errors: EAGAIN when time
 * ran out with fewer, ESCHEMA, EDAEMON, ESTALLED. */
SLEET_API int sleet_wait_nodes(sleet_set *set, uint32_t nodes, int64_t wait_ns);

/* ---- sets and tensors -------------------------------------------------- */

/* A new, empty set, to be averaged as sleet_set_configure() says.  `name` is copied.  All nodes use the same name for the
 * same set.  Freed by sleet_close().  Errors: EINVAL, ENOMEM, EEXIST, ELIMIT. */
SLEET_API int sleet_set_new(sleet_set **out, sleet *ctx, const char *name, sleet_payload payload);

/* Add a flat array of `count` elements; count may be 0.  `data`, if not NULL,
 * stays the caller's memory: sleet_start() copies from it and a successful
 * sleet_wait() copies the result into it (in-place use).  With NULL the caller
 * uses sleet_send_buffer() and sleet_result_buffer() and nothing is copied.
 * Order, names, dtypes and counts must be equal on all nodes.
 * Errors: EINVAL, ENOMEM, EEXIST, ELIMIT, ESTATE (already registered). */
SLEET_API int sleet_set_add(sleet_set *set, const char *name, sleet_dtype dtype, uint64_t count,
                            void *data);

#define SLEET_SPREAD_MAX 64

/* Zero-filled means defaults; set `size` to sizeof(sleet_set_options). */
typedef struct sleet_set_options {
    size_t size;
    sleet_estimator estimator; /* 0: ratio; with reduce-scatter: expected */
    sleet_update update;       /* 0: linear */
    sleet_exchange exchange;   /* 0: all-reduce */
    sleet_strategy strategy;   /* 0: rps */
    uint16_t strategy_numbers[2]; /* 0: the strategy's usual ones */
    uint32_t spread;           /* average each element in one of so many rounds, in turns of 2,304: even traffic,
                                  and less of it, where each step has a round.  Tensors that have no turn for each
                                  round, and the first round of a job, are averaged whole.  Payload model.
                                  0: 1; at most SLEET_SPREAD_MAX */
} sleet_set_options;

/* Say how the set is averaged, before it is registered; equal on all nodes.
 * Errors: EINVAL (the detail says which two do not go together), ESTATE. */
SLEET_API int sleet_set_configure(sleet_set *set, const sleet_set_options *options);

/* Choose how tensor `index` travels, before the set is registered; equal on all nodes.  0, the
 * default: f32, and bf16 in a set of more than 1,048,576 elements.  State (f32-state) travels as f32.
 * Errors: EINVAL, ESTATE. */
SLEET_API int sleet_set_codec(sleet_set *set, uint32_t index, sleet_codec codec);

/* Say that tensor `index` is a matrix, row by row, of so many rows (0: a vector, the default), before the
 * set is registered; equal on all nodes.  Strategies that send low-rank differences (ring and pairs with a
 * rank) take a matrix as one; to the others it is all the same.
 * Errors: EINVAL (the rows do not divide the elements), ESTATE. */
SLEET_API int sleet_set_rows(sleet_set *set, uint32_t index, uint32_t rows);

/* Hand the set to the daemon and map the shared buffers.  From here on this
 * process is the node's one contributor to the set.
 * A schema that differs from another node's is known a round trip later:
 * sleet_wait_nodes() and sleet_start() report it.
 * Errors: EBUSY (the detail names the other process), EINVAL (strategy graph: the daemon has
 * no list of edges, or another one), EPERM (the daemon is an auxiliary), ELIMIT, ENOMEM, ESTATE,
 * EDAEMON, ESTALLED. */
SLEET_API int sleet_set_register(sleet_set *set);

/* The shared buffers of tensor `index` (order of sleet_set_add), `count`
 * elements each; NULL before sleet_set_register() or for a bad index.
 * send: written by the caller, the daemon's, which may change it, from sleet_start() until the round
 * closes.
 * result: the caller's from the return of sleet_wait() until the next
 * sleet_start(); the daemon never writes it in between. */
SLEET_API void *sleet_send_buffer(sleet_set *set, uint32_t index);
SLEET_API const void *sleet_result_buffer(const sleet_set *set, uint32_t index);

/* Estimator carry: what of tensor `index` did not get through and goes with the next contribution,
 * `count` elements, each times the weight that it was given with; NULL with other estimators, before
 * sleet_set_register() and for a bad index.  The caller's from the return of sleet_wait() until the next
 * sleet_start(): to be saved in a checkpoint, and restored before the first start.  What was given in the last
 * few rounds and has an unknown fate is not in it, and is lost with the process. */
SLEET_API float *sleet_residual_buffer(sleet_set *set, uint32_t index);

/* Elements first .. first + count - 1 of a tensor. */
typedef struct sleet_range {
    uint64_t first, count;
} sleet_range;

/* What this node owns of tensor `index` in a set whose owners stay (exchange reduce-scatter or
 * all-gather), as of its last round: at most `cap` ranges in ascending order into `out`; *n is how
 * many there are.  One that it has come to own (sleet_report.runs_moved) was another's before.
 * Errors: EINVAL, ESTATE. */
SLEET_API int sleet_owned(const sleet_set *set, uint32_t index, sleet_range *out, uint32_t cap,
                          uint32_t *n);

/* ---- rounds ------------------------------------------------------------ */

/* Any other number is a count.  Majority: one node, drawn anew in each round and alike by all, which half of
 * the others are ahead of on the average; when its time is over the next one.  For strategies with owners. */
#define SLEET_QUORUM_ALL 0u
#define SLEET_QUORUM_MAJORITY 0xffffffffu
#define SLEET_QUORUM_SOLO 1u

/* Zero-filled means defaults; set `size` to sizeof(sleet_round_options). */
typedef struct sleet_round_options {
    size_t size;
    int64_t deadline_ns;   /* longest wait from now; 0: 2 s, exact rounds 30 s; at most 1 h */
    double weight;         /* of this contribution, e.g. samples; 0 means 1; finite, > 0 */
    double least_coverage; /* below it the report is marked; 0 means 0.5, with a quorum none */
    uint32_t quorum;       /* contributors after which an owner starts closing, or one of the above;
                              exact rounds wait for all.  What comes too late is lost but with estimator
                              carry: there it goes with the next contribution */
    uint32_t exact;        /* not 0: repair the scatter phase as well (last round, rare rounds) */
    double keep;           /* share of its elements that a tensor with codec topk sends, the largest
                              ones; 0 means 0.01, at most 1.  With estimator carry the rest goes with later
                              contributions (error feedback), else it is lost */
    uint32_t keep_auto;    /* not 0: that share of what goes over a slow way, by its measured capacity: as much
                              as takes no longer than all of it over the fastest, where all is sent, but
                              `keep` at least (AdaTopK, arXiv 2410.12707) */
    uint32_t max_async;    /* with a quorum: after so many rounds one waits for all, at most half the
                              deadline, so that none is left out for ever.  0 means 64 */
    double twice;          /* share of its fragments, 0 to 1, that a contribution sends twice: those that carry
                              most energy, since what is lost is not repaired.  Not of models, in exact rounds
                              or with estimator expected */
} sleet_round_options;

/* X(name, bit, text) */
#define SLEET_REPORT_FLAG_MAP(X)                                                            \
    X(SLEET_COMPLETE, 0, "complete")         /* every element from every expected node */   \
    X(SLEET_DEADLINE, 1, "deadline")         /* closed by the caller's deadline */          \
    X(SLEET_LOW_COVERAGE, 2, "low-coverage") /* below least_coverage */                     \
    X(SLEET_JOINING, 3, "joining")           /* weight 0: took the others' model */         \
    X(SLEET_ALONE, 4, "alone")               /* ahead of all others: nothing exchanged */      \
    X(SLEET_PARKED, 5, "parked")             /* cut off: no progress, the caller's own values; \
                                                a trainer should not count its last step */ \
    X(SLEET_BEHIND, 6, "behind")             /* additive payloads: the others took a step that  \
                                                is not here, or nobody did: take none.  The result \
                                                is 0 but for tensors of state, which are to be taken */

enum {
#define SLEET_X(name, bit, text) name = 1u << bit,
    SLEET_REPORT_FLAG_MAP(SLEET_X)
#undef SLEET_X
};

typedef struct sleet_report {
    uint64_t round;         /* the job's number of the round joined; 0 when alone */
    uint64_t skipped;       /* rounds of the job missed since this node's last one */
    double coverage;        /* contributors present over nodes expected, mean over elements; an
                               element filled with the caller's own value counts one, with 0 none */
    uint32_t group_size;    /* members of the pinned group */
    uint32_t expected;      /* nodes that count as 1.0: the group's contributors and those
                               lost without a word in the last minute */
    uint32_t flags;         /* SLEET_COMPLETE ... */
    uint32_t low_in_a_row;  /* consecutive rounds below least_coverage, this one included */
    int64_t elapsed_ns;     /* from sleet_start() to the close of the round */
    uint64_t fragments_expected, fragments_direct, fragments_repaired, fragments_late,
        fragments_lost, fragments_unsent; /* what this node was to receive, at close */
    uint32_t runs_moved;    /* parts that this node did not own in its last round, see sleet_owned() */
    uint64_t fragments_corrected; /* of older rounds, which came late and are in this result */
} sleet_report;

/* Begin a round with the set's present values; does not block.  An older round
 * still open is withdrawn: what it has not sent is dropped.  `options` may be NULL.
 * Errors: EINVAL, ENONFINITE (nothing was sent; the detail names tensor and
 * element), ESCHEMA, ESTATE, ELEFT, EDAEMON, ESTALLED. */
SLEET_API int sleet_start(sleet_set *set, const sleet_round_options *options);

/* SLEET_OK when the open round has closed, SLEET_EAGAIN when not yet,
 * SLEET_ESTATE with no round open, SLEET_EDAEMON when the daemon is gone. */
SLEET_API int sleet_poll(sleet_set *set);

/* Wait for the open round to close: at its deadline at the latest.  On success
 * results are in place and *report (may be NULL) is filled.  A daemon that does
 * not answer within 250 ms after the deadline gives ESTALLED, a dead one
 * EDAEMON at once; the caller's tensors then hold their old values.
 * Errors: EINVAL, ESTATE, ESTALLED, EDAEMON, ECANCELED. */
SLEET_API int sleet_wait(sleet_set *set, sleet_report *report);

/* End the open round now and withdraw what was not sent.  Idempotent: SLEET_OK
 * without an open round as well. */
SLEET_API int sleet_cancel(sleet_set *set);

/* 1 where other nodes have begun a round of the set that sleet_start() would join, 0 where not: for a
 * trainer that averages now and then, to ask behind each step.  One question to the daemon, which asks
 * nobody.  Errors: EINVAL, ESTATE (not registered), EDAEMON, ESTALLED, EPROTO. */
SLEET_API int sleet_wanted(sleet_set *set);

/* ---- state ---------------------------------------------------------------- */

/* What a node needs to go on where another is: the tensors of a set at a version, and a blob of
 * its own (step, samples, place in the data, state of an optimizer).  Others fetch it exactly,
 * also over links that lose packets, without pausing the rounds of anybody. */

/* Publish the set's present tensors (`data` of sleet_set_add(), else the send buffers; not
 * during a round that uses those) as `version`, which is not 0 and grows, e.g. the step.
 * `blob`: `blob_bytes` bytes, at most SLEET_BLOB_MAX, or NULL; members keep the newest one of
 * each node.  Both are copied.  The daemon keeps the newest version, also when this process ends.
 * Returns within 5 s.  Errors: EINVAL, ELIMIT, ENOMEM, ESTATE (not registered), EAGAIN (the version
 * before the newest is still being fetched: publish at a later step), EDAEMON, ESTALLED. */
SLEET_API int sleet_state_publish(sleet_set *set, uint64_t version, const void *blob,
                                  size_t blob_bytes);

typedef struct sleet_state_report {
    uint64_t version; /* fetched; with an error: what was being fetched, or 0 */
    uint64_t newest;  /* version that was ever heard of: above `version` its holders are gone */
    uint64_t bytes;   /* of the state */
    uint64_t blob_of; /* a node whose blob at this version can be read; 0: none */
    uint32_t donors;  /* nodes that delivered parts; 0: this node's daemon had it */
    uint32_t lies;    /* wrong parts that were found and refused */
    double coverage;  /* share of the state that is there: 1 unless there is an error */
    int64_t elapsed_ns;
} sleet_state_report;

/* Fetch the newest version above `newer_than` (0: any) that members or this daemon hold, into
 * the set's tensors (as above), within `limit_ns` (> 0, at most a day).  `report` may be NULL.
 * On an error the tensors are as they were.  Errors: ENOSTATE (nobody publishes one; known after
 * some round trips, at most 3 s), EAGAIN (time is up, or a fetch is under way), EINVAL, ESTATE,
 * ENOMEM, EDAEMON, ESTALLED (no answer 250 ms after the limit). */
SLEET_API int sleet_state_fetch(sleet_set *set, uint64_t newer_than, int64_t limit_ns,
                                sleet_state_report *report);

/* The newest blob of a node, which may be this one in an earlier life, or dead: from this daemon or a member that keeps
 * it, within `limit_ns`.  Writes at most `cap` bytes to `out`; *bytes is the blob's size and
 * *version the state's that it came with (either may be NULL).
 * Errors: ENOSTATE (nobody has one), EINVAL (also: `cap` is too small), ESTATE, EDAEMON, ESTALLED. */
SLEET_API int sleet_state_blob(sleet_set *set, uint64_t node_id, int64_t limit_ns, void *out,
                               size_t cap, size_t *bytes, uint64_t *version);

/* A descriptor that polls readable when sleet_poll() may have news; owned by
 * the context.  -1 on a NULL context. */
SLEET_API int sleet_fd(const sleet *ctx);

#ifdef __cplusplus
}
#endif
#endif
