/* config.h - the daemon's options: one table; INI, environment, command line.
 * Later sources win: default, file, SLEET_SECTION_KEY, --section.key=value. */
#ifndef DAEMON_CONFIG_H
#define DAEMON_CONFIG_H
#include "base/declared.h"
#include "base/log.h"
#include "session/keys.h"
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* X(id, section, key, type, default, lowest, highest, help) */
#define CONFIG_MAP(X)                                                                       \
    X(ID, "node", "id", NUMBER, "", 1, 18446744073709551615.0,                              \
      "this node's number, unique in the job; sealed: empty, its key gives it")                                         \
    X(LISTEN, "node", "listen", ADDRESS, "127.0.0.1:7700", 0, 0,                            \
      "UDP host:port; [host]:port for IPv6; no host: all addresses; port 0: any free one")  \
    X(CONTROL, "node", "control", TEXT, "", 0, 107,                                         \
      "path of the control socket; empty: $XDG_RUNTIME_DIR/sleet.sock or /tmp/sleet-UID.sock") \
    X(ADVERTISE, "node", "advertise", ADVERTISED, "auto", 0, 0,                             \
      "where others reach this node: host:port, interface, prefix/bits or auto; first match wins") \
    X(BANDWIDTH, "node", "bandwidth", SPEED, "", 1e3, 4e12,                                  \
      "bits a second that this node can send, as in 20M or 1.5G; the others own more if it is less") \
    X(ROLE, "node", "role", ROLE_NAME, "node", 0, 0,                                        \
      "client: owns nothing where others can, e.g. behind a firewall; auxiliary: reduces, without a trainer; node") \
    X(SITE, "node", "site", SITE_NAME, "", 0, SITE_MAX,                                     \
      "where it stands, the same word on nodes of one LAN: they average first in hierarchical") \
    X(USER, "node", "user", TEXT, "", 0, 32,                                                \
      "user to become once all is open, for a start as root; empty: nobody else")           \
    X(GROUP, "node", "group", TEXT, "", 0, 32,                                              \
      "group whose members may train through this daemon; empty: only the daemon's user")   \
    X(GSO, "node", "gso", SWITCH, "auto", 0, 0,                                             \
      "auto: bursts go to the kernel in one piece where it can cut them; off: one by one")  \
    X(RECEIVE_BUFFER, "node", "receive_buffer", NUMBER, "8388608", 4096, 1000000000,        \
      "bytes asked of the kernel for datagrams that wait to be read")                       \
    X(NODE_KEY, "node", "key", TEXT, "", 0, 180,                                            \
      "file of this node's key; empty: the default of sleetctl keygen")                     \
    X(NAME, "job", "name", TEXT, "sleet", 1, 63, "the job's name, the same on all nodes")   \
    X(SECURITY, "job", "security", SECURITY, "sealed", 0, 0,                                  \
      "sealed: only holders of the job's key are heard, datagrams are encrypted; none: neither") \
    X(JOB_KEY, "job", "key", TEXT, "", 0, 180,                                              \
      "file of the job's key, the same on all nodes; empty: the default of sleetctl keygen") \
    X(ALLOW, "job", "allow", IDS, "", 0, 0,                                                 \
      "ids of the nodes that may join, separated by commas; empty: all with the job's key") \
    X(OPERATOR, "job", "operator", PUBLIC_KEY, "", 0, 0,                                    \
      "public key of who may evict nodes and change the job's key; empty: nobody")          \
    X(PEERS, "job", "peers", PEERS, "", 0, 0,                                                \
      "host:port of the other nodes, separated by commas; may name this node as well")      \
    X(EDGES, "job", "edges", TEXT, "", 0, 180,                                              \
      "file of the edges of strategy graph, two node ids a line, the same on all nodes; empty: none") \
    X(RATE, "job", "rate_mbit", NUMBER, "100", 0.001, 1000000,                              \
      "most Mbit of datagrams a second from this node")                                     \
    X(KEEP, "job", "keep_mib", NUMBER, "0", 0, 1048576,                                      \
      "MiB of past rounds' results kept a set for members that miss some; 0: 2 shares, at least 16") \
    X(CLIP, "job", "clip", NUMBER, "8", 0, 1000000,                                          \
      "contributions and results that lie so many times further off than usual are bounded; 0: none are") \
    X(ON_PARTITION, "job", "on_partition", SWITCH, "park", 0, 0,                            \
      "what the smaller side of a cut does: park waits for the others, continue goes on")   \
    X(MERGE_ROUNDS, "job", "merge_rounds", NUMBER, "4", 1, 1000000000,                      \
      "sides that were apart for fewer rounds are averaged, else one takes the other's model") \
    X(ON_ISOLATED, "job", "on_isolated", SWITCH, "pause", 0, 0,                             \
      "after 10 rounds in a row of low coverage: pause keeps the values as they are, or go-on") \
    X(PARITY, "job", "parity", SWITCH, "auto", 0, 0,                                        \
      "protect what is sent by parity where asking again takes longer: auto, or off")       \
    X(LOSS, "emulate", "loss", NUMBER, "0", 0, 1,                                           \
      "emulated: share of datagrams dropped on receipt")                                    \
    X(SEED, "emulate", "seed", NUMBER, "0", 0, 18446744073709551615.0,                      \
      "seed of all random choices; 0: a new one at each start")                             \
    X(LEVEL, "log", "level", LEVEL, "info", 0, 0, "debug, info, warn or error")

enum config_id {
#define X(id, ...) CONFIG_##id,
    CONFIG_MAP(X)
#undef X
        CONFIG_COUNT
};

struct config {
    char *text[CONFIG_COUNT];   /* owned; what is in force */
    char *origin[CONFIG_COUNT]; /* owned; "FILE:LINE", "SLEET_X", "--x" or "default" */
    int rank[CONFIG_COUNT];     /* of the source, higher wins */
    /* The same, parsed: */
    uint64_t node_id, seed;
    double rate_mbit, keep_mib, clip, loss, receive_buffer, merge_rounds;
    struct declared declared;
    bool part_continue, go_on_isolated, parity_off;
    bool gso, sealed, has_operator;
    uint8_t operator_key[KEY_BYTES]; /* ed25519 public key */
    uint64_t *allow;                 /* owned; node ids, as many as */
    uint32_t allow_count;
    const struct edge_list *edges;   /* borrowed; NULL: none; main.c reads them */
    log_level level;
    bool check_only;
};

#define CONFIG_UNUSABLE 3 /* of config_load(): what is configured cannot be used */

/* Fill `c` from all sources.  0 to go on; otherwise the process should exit
 * with the result minus 1 (1: help was printed, 2: failed, 3: usage); errors
 * and their fixes have been printed to stderr. */
int config_load(struct config *c, int argc, char **argv);

/* What another source has found out to be in force; `origin` says which.  False: no memory. */
bool config_set(struct config *, int id, const char *value, const char *origin);
/* Print why option `id` cannot be as it is, with the fix; returns false. */
bool config_wrong(const struct config *, int id, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Print what is in force as a file that parses to the same. */
void config_print(const struct config *c, FILE *out);
void config_free(struct config *c);

/* The next item of a list into `item`, cut to `cap`; where to go on, or NULL after the last. */
const char *config_next_item(const char *at, char *item, size_t cap);
#endif
