/* What is counted, as an operator sees it.  One list per fact: the structs, the
 * sums that must balance and the print-outs come from these maps. */
#ifndef BASE_STATS_H
#define BASE_STATS_H
#include "base/time.h"
#include <stdbool.h>
#include <stdint.h>

/* X(field, help): datagram counters.  in == the sum of those marked "in:". */
#define ENGINE_COUNTER_MAP(X)                                                               \
    X(in, "datagrams received, socket overflow included")                                   \
    X(accepted, "in: decoded and used or already known")                                    \
    X(duplicate, "in: packet counter seen before, or far off")                              \
    X(corrupt, "in: tag, length or field wrong")                                            \
    X(foreign, "in: unlisted address, unknown session, job, set or group")                  \
    X(stale, "in: round outside the window or closed")                                      \
    X(overflow, "in: dropped by the socket")                                                \
    X(out, "datagrams sent")                                                                \
    X(out_bytes, "bytes of datagrams sent")                                                 \
    X(in_bytes, "bytes of datagrams received")                                              \
    X(parity_out, "datagrams of parity sent")                                               \
    X(rebuilt, "datagrams rebuilt from parity")                                             \
    X(backup_out, "commits of other owners sent as their backup")                              \
    X(healed, "commits taken from a backup, the owner being out of reach")                     \
    X(nonfinite, "fragments with NaN or infinity left out")                                 \
    X(overlap, "commits with overlapping contributors (a fault)")                           \
    X(usurped, "commits refused: their sender does not own the fragment")                   \
    X(clipped, "contributions cut down: far off or heavy against the others")               \
    X(refused, "results not taken: far off or heavy against one's own")                     \
    X(disputed, "rounds in which two nodes held different results of one owner")

typedef struct {
#define ENGINE_X(field, help) uint64_t field;
    ENGINE_COUNTER_MAP(ENGINE_X)
#undef ENGINE_X
} engine_counters;

/* X(field): fates of fragments in a round, summing to `expected` (guarantee 10). */
#define LEDGER_FATE_MAP(X) X(direct) X(repaired) X(late) X(lost) X(unsent)

typedef struct {
    uint64_t expected;
#define LEDGER_X(field) uint64_t field;
    LEDGER_FATE_MAP(LEDGER_X)
#undef LEDGER_X
} ledger_side;

/* What a node carries over to its next contribution, weight-premultiplied; round/carry.h. */
typedef struct {
    double norm;       /* of the residual, all tensors together */
    double squares;    /* that squared */
    double shed;       /* sum of the elements that decay and clip took, over all rounds */
    double shed_norm;  /* sum of the norms of that */
    uint64_t frozen;   /* fragments whose commit has not been seen yet */
    uint64_t returned; /* that were never seen: they were sent again and may be counted twice */
} engine_residual;

typedef struct {
    uint64_t round;
    bool final, joined;
    uint32_t group_size, flags;
    double coverage;
    sleet_duration elapsed;
    double residual;     /* norm of what was carried over to the next, estimator carry */
    ledger_side scatter; /* contributions that this node was to receive as owner */
    ledger_side gather;  /* commits that this node was to receive as member */
} engine_round;

/* X(name, text): what became of a member in a round. */
#define LANE_STATE_MAP(X)                                                                    \
    X(LANE_OK, "ok")                                                                         \
    X(LANE_SELF, "this node")                                                                \
    X(LANE_JOINING, "joining: takes, gives nothing")                                         \
    X(LANE_OTHER_GROUP, "pinned another group")                                              \
    X(LANE_SILENT, "silent")                                                                 \
    X(LANE_LEFT, "left")                                                                     \
    X(LANE_RESTARTED, "restarted since")

enum engine_lane_state {
#define LANE_X(name, text) name,
    LANE_STATE_MAP(LANE_X)
#undef LANE_X
};

#define ENGINE_CLASSES_MAX 64

typedef struct { /* elements that have the same contributors */
    uint64_t contributors; /* bit i: people[i] */
    uint64_t elements;
    uint32_t tensor; /* index in the set; where the first of them lies */
    uint64_t first;  /* element of that tensor */
} engine_class;

typedef struct { /* one member of the group; the node at people[] of the same index */
    enum engine_lane_state state;
    ledger_side scatter; /* its contributions to this node's share */
    ledger_side gather;  /* its results to this node */
    uint32_t clipped;    /* of its contributions to this node's share, */
    double excess;       /* which went beyond what is allowed at most so many times */
    uint32_t refused;    /* of its results: too far off */
} engine_lane;

/* A round as this node saw it.  people: the group by ascending id, then those met through
 * the groups of others. */
typedef struct {
    uint64_t round;
    bool joined, closed;
    uint32_t expected, flags;
    uint64_t people[64];
    uint32_t people_n, lanes, classes;
    engine_lane lane[64];
    engine_class class[ENGINE_CLASSES_MAX]; /* most elements first */
    uint64_t other_elements;                /* with yet other contributors */
} engine_explanation;
#endif
