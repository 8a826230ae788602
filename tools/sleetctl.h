/* sleetctl.h - what the three files of sleetctl share. */
#ifndef SLEETCTL_H
#define SLEETCTL_H
#include <cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CTL_OK = 0, CTL_FAILED = 1, CTL_USAGE = 2 }; /* exit codes */

/* Send one command to the daemon at `socket_path` and read its answer, all
 * within `limit_ms`.  Returns the object of a 2xx answer, owned by the caller
 * (cJSON_Delete), or NULL with one sentence in `why`. */
cJSON *ctl_request(const char *socket_path, const char *command, int limit_ms, char *why,
                   size_t why_len);

/* Send it, and print the answer: as JSON, or by `show` (NULL: not at all); the exit code. */
int ctl_ask(const char *socket_path, const char *line, void (*show)(const cJSON *), bool json);

/* Print the answer to "status", "peers", "rounds" or "config" for people. */
void show_status(const cJSON *answer);
void show_peers(const cJSON *answer);
void show_rounds(const cJSON *answer);
void show_explain(const cJSON *answer);
void show_config(const cJSON *answer);
void show_state(const cJSON *answer);

/* One flat JSON line about node `i` of a run, from its daemon's answers to
 * "status" and "peers": datagrams, fragments, longest wait (s), coverage. */
void show_summary(int i, const cJSON *status, const cJSON *peers);

/* `sleetctl keygen`: the words after it; its exit code. */
int keygen_main(int argc, char **argv, bool json);

/* `sleetctl evict` and `rekey`: argv[0] is which; its exit code. */
int order_main(const char *socket_path, int argc, char **argv, bool json);

/* `sleetctl set`: argv[0] is that; its exit code. */
int set_main(const char *socket_path, int argc, char **argv, bool json);

/* ---- sleetctl run ------------------------------------------------------- */

#define RUN_NODES_MAX 64
#define RUN_FREEZES_MAX 16

/* SIGSTOP to a node's daemon and trainer, SIGCONT `for_ms` later. */
typedef struct {
    int node;       /* from 0 */
    int64_t at_ms;  /* after the trainers' start, unless `text` is set */
    char text[64];  /* not "": when the node's trainer prints a line with this in it */
    int64_t for_ms;
    enum { FREEZE_WAITS, FREEZE_ON, FREEZE_OVER } state;
    int64_t until_ms;
} run_freeze;

typedef struct {
    int n;
    bool json;        /* print show_summary() lines at the end */
    const char *loss; /* fraction from 0 to 1, as given; NULL: none */
    const char *seed, *rate_mbit;
    bool sealed;      /* with keys of the run's own */
    const char *keep; /* directory that stays; NULL: a temporary one */
    char **command;   /* of the trainers, NULL-terminated, borrowed */
    run_freeze freeze[RUN_FREEZES_MAX];
    int freezes;
} run_options;

/* Read the words after "run" into zeroed `out`; CTL_OK or CTL_USAGE. */
int run_parse(run_options *out, int argc, char **argv);

/* Start the nodes, follow them to their end, leave nothing behind.  Returns
 * the exit code: the worst of the trainers, 130 after a signal. */
int run_nodes(const run_options *options);

/* Parts of a run that need no state of it. */

/* `n` free UDP ports of 127.0.0.1, all bound at once so that they differ. */
bool run_pick_ports(uint16_t *port, int n);
/* Make the directory `keep`, or a temporary one where that is NULL; its path into `dir`. */
bool run_make_dir(char *dir, size_t size, const char *keep);
/* DIR/job.key and DIR/nodeI.key, new ones, the nodes' ids ascending with I. */
bool run_make_keys(const char *dir, int n);
/* Remove `dir` and the files in it; "" is allowed. */
void run_remove_dir(const char *dir);
/* Path of sleetd; the programs beside sleetctl come first in PATH from here on. */
bool run_find_programs(char *daemon, size_t size);
/* `word` with {i} and {n} replaced, in memory of the caller's; NULL: out of memory. */
char *run_fill_in(const char *word, int i, int n);

#endif
