/* The one table of what a node is told at its start, and what it is told for a round. */
#ifndef BASE_CONFIG_H
#define BASE_CONFIG_H
#include "base/addr.h"
#include "base/declared.h"
#include "base/log.h"
#include "base/time.h"
#include "sleet.h"
#include <stdbool.h>

struct edge_list;

/* Zero means the default of docs/architecture.md for every duration and number. */
typedef struct engine_config {
    uint64_t node_id; /* not 0, unique in the job; the lowest founds a new job's model */
    uint64_t boot_id; /* not 0, new at each start */
    uint64_t seed;    /* for every random choice */
    char job[64];
    /* ENGINE_PLAIN: datagrams are neither encrypted nor authenticated, and only listed addresses
     * are heard.  ENGINE_SEALED: node_id is that of the key and need not be given. */
    enum { ENGINE_PLAIN, ENGINE_SEALED } security;
    uint8_t job_key[32], node_secret[32]; /* sealed; copied */
    uint8_t secret_seed[32]; /* sealed: fresh random bytes for every secret that is drawn */
    bool has_operator;        /* sealed: whose orders are taken, engine_order() */
    uint8_t operator_key[32]; /* ed25519 public key */
    const uint64_t *allow;   /* sealed: node ids that may have sessions; copied */
    uint32_t allow_count;    /* 0: whoever has the job's key */
    const sleet_addr *peers; /* copied; own address may be among them (found by node id) */
    uint32_t peer_count;     /* at most ENGINE_PEERS_MAX */
    bool open_join;          /* tests: with security = none, take members that are not listed */
    sleet_addr advertised[2]; /* where others may reach this node: IPv4, IPv6; port 0: not known */
    struct declared declared; /* what the others are told of this node */
    uint32_t members_max;    /* nodes there is room for, this one included; at most 1,024 */
    uint32_t window;         /* W: rounds kept open for others, 4 */
    uint32_t absent_rounds;  /* K: rounds without a trainer until nobody waits for it, 3 */
    uint64_t keep_bytes;     /* commits of past rounds kept a set, own and others'; see docs/architecture.md */
    uint64_t rate_bps;       /* bits of datagram per second of this node, 100,000,000 */
    sleet_duration ping;     /* 1 s */
    sleet_duration budget_min, budget_max, budget_first; /* 20 ms, 10 s, 500 ms */
    sleet_duration join_wait; /* a newcomer founds a job only after this long without others, 3 s */
    enum { PARTITION_PARK, PARTITION_CONTINUE } on_partition; /* of the smaller side */
    uint32_t merge_rounds; /* sides apart for fewer are averaged where they meet, 4 */
    bool go_on_isolated;   /* also after 10 rounds in a row of low coverage */
    double clip; /* contributions further off or heavier than so many times what is usual are cut
                    down to that, see round/clip.h; 0: none */
    const struct edge_list *edges; /* of strategy graph (strategy/edge_list.h); borrowed; NULL: none are given */
    bool parity_off;          /* experiments: nothing is protected by parity (protect/rule.h) */
    bool edges_one_sided;     /* experiments: neighbours take what they have, whether or not the other can */
    bool repair_off;          /* experiments: gather holes are neither asked for again nor protected */
    bool repair_late;         /* experiments: they are, but served only once the asker's round has closed */
    bool backup_off;          /* experiments: nobody keeps commits for an owner that is gone */
    log_sink log;
} engine_config;

/* What a round is told; see engine_start(). */
typedef struct {
    const void *const *send; /* one array a tensor; read until the round closes, and changed where its
                                codec takes rotated values */
    void *const *result;     /* one array a tensor; written until the round closes */
    float *const *residual;  /* likewise, read and written until it closes: what is carried over, 0 at
                                first; estimator carry only, else NULL */
    uint64_t *owned; /* a bit a run, for sets whose owners stay: those that this node owns, as of the last
                        round, written when the round closes; NULL: not asked for */
    sleet_round_options options;
} engine_start_args;
#endif
