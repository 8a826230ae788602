/* sleetctl-run.h - the parts of `sleetctl run`: its children and how they are started. */
#ifndef SLEETCTL_RUN_H
#define SLEETCTL_RUN_H
#include "sleetctl.h"
#include <signal.h>
#include <sys/types.h>

typedef struct {
    pid_t pid; /* also of its process group */
    bool running;
    int code; /* exit status, 128 + signal */
    int out;  /* read end of its output, -1: none */
    char line[8192];
    size_t len;
} run_proc;

typedef struct {
    int n, freezes;
    const run_options *o;
    run_freeze freeze[RUN_FREEZES_MAX];
    run_proc daemons[RUN_NODES_MAX], trainers[RUN_NODES_MAX];
    uint16_t port[RUN_NODES_MAX];
    char dir[64];
    char daemon_path[512];
    int signals; /* signalfd */
    int signals_taken;
    bool stop, interrupted;
    bool ending; /* what ends now was told to */
    int64_t began_ms; /* trainers' start, 0 before */
    sigset_t mask;    /* the one sleetctl was started with */
} run;

/* ---- start (sleetctl-run-start.c); what is wrong is said on stderr ---------------- */

/* The file of node `i` in the run's directory that ends so. */
void run_node_path(const run *, int i, const char *ending, char *out, size_t len);
bool run_spawn_daemon(run *, int i);
/* Its output comes out of trainers[i].out. */
bool run_spawn_trainer(run *, int i);
/* Everything the daemon of node `i` said, to stderr. */
void run_show_log(const run *, int i);
#endif
