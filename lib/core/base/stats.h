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
    X(duplicate, "in: packet counter seen before")                                          \
    X(corrupt, "in: tag, length or field wrong")                                            \
    X(foreign, "in: unlisted address, unknown session, job, set or group")                  \
    X(stale, "in: round outside the window or closed")                                      \
    X(overflow, "in: dropped by the socket")                                                \
    X(out, "datagrams sent")                                                                \
    X(out_bytes, "bytes of datagrams sent")                                                 \
    X(in_bytes, "bytes of datagrams received")                                              \
    X(nonfinite, "fragments with NaN or infinity left out")                                 \
    X(overlap, "commits with overlapping contributors (a fault)")

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

typedef struct {
    uint64_t round;
    bool final, joined;
    uint32_t group_size, flags;
    double coverage;
    sleet_duration elapsed;
    ledger_side scatter; /* contributions that this node was to receive as owner */
    ledger_side gather;  /* commits that this node was to receive as member */
} engine_round;
#endif
