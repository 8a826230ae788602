/* lab.h - plays scenarios on real daemons behind real links.
 *
 *   lab.c          options, backends, the lock
 *   lab-run.c      one scenario from its start to its verdict
 *   lab-node.c     the processes of a node and what its trainer prints
 *   lab-net.c      namespaces, bridge, partitions
 *   lab-nat.c      a NAT before a node
 *   lab-keys.c     the keys of a sealed job
 *   lab-link.c     netem, or loss and rate without it
 *   lab-measure.c  what came out: the counters of links and daemons
 *   lab-uml.c      the same in a guest that has netem
 *   lab-exec.c     running other programs
 *   lab-reproduce.h  the experiments of recipes
 */
#ifndef LAB_H
#define LAB_H
#include "scenario/scenario.h"
#include <cjson/cJSON.h>
#include <signal.h>
#include <sys/types.h>

#define LAB_NODES SCENARIO_NODES_MAX
#define LAB_PORT 7700
#define LAB_SUBNET "10.77.0"
#define LAB_INSIDE "10.78" /* behind NATs: 10.78.NODE.2 */
#define LAB_PREFIX "sleetlab" /* of namespaces and interfaces */

enum lab_exit { LAB_OK, LAB_FAILED, LAB_USAGE, LAB_NO_BACKEND, LAB_BUSY };

struct lab_options {
    const char *backend; /* auto, kernel, uml, loss */
    const char *json;    /* a file for one object a scenario, or NULL */
    const char *markdown; /* a file for the tables of reproduce, or NULL */
    const char *keep;    /* a folder for logs and the trainers' lines, or NULL */
    double wait_s;       /* for another lab to end */
    bool guest;          /* this process runs in a guest of its own */
};

/* ---- lab-exec.c ---- */

/* Run argv to its end with `input` (may be NULL) on its stdin.  Its exit status; what it
 * printed to both outputs in *output (may be NULL), to be freed. */
int lab_exec(const char *const *argv, const char *input, char **output);
/* Likewise; false after saying what failed and what the program printed. */
bool lab_must(const char *const *argv, const char *input);
/* Start argv as the leader of a process group that dies with the lab, in the network
 * namespace `ns` (-1: this one), stdout and stderr to `out`.  `env`: name, value, ...
 * NULL.  The pid, or -1. */
pid_t lab_spawn(const char *const *argv, const char *const *env, int ns, int out);
/* Run argv on this terminal to its end: its exit status. */
int lab_attach(const char *const *argv, const char *const *env);
bool lab_find(const char *program); /* in PATH, or where administrators' programs are */
void lab_exec_init(void);           /* remembers the signal mask for children */
double lab_now(void);               /* seconds, monotonic */
/* Text that grows. */
struct lab_text {
    char *text;
    size_t len, room;
};
void lab_add(struct lab_text *, const char *format, ...) __attribute__((format(printf, 2, 3)));
void lab_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- lab-net.c ---- */

/* Namespaces 1..n with an address each, joined by a bridge; those of `nat` behind a router. */
bool net_up(int nodes, uint32_t nat);
void net_down(void); /* also what an earlier lab has left, with its processes */
int net_namespace(int node); /* an open descriptor, or -1 */
/* group[i] of node i + 1: nothing passes between groups.  The links of `down` stay down. */
bool net_partition(int nodes, const uint8_t *group, uint32_t down);
bool net_link(int node, bool up);
void net_port(int node, char out[24]); /* the bridge's side of a node's link */
bool net_has_ipv6(void);
/* Feed lines to one of iproute2's programs; namespace NULL: this one. */
bool net_batch(const char *program, struct lab_text *lines, const char *namespace);

/* ---- lab-nat.c ---- */

bool nat_available(bool guest); /* false after saying why not */
bool nat_up(int node); /* behind the router's namespace, which has the public address */
void nat_down(void);
/* Forget the mapping: the next one has another port. */
bool nat_rebind(int node);
void nat_router(int node, char out[24]); /* its namespace */

/* ---- lab-link.c ---- */

struct link_counts {
    uint64_t passed, lost; /* datagrams, towards the node */
};

struct lab_backend {
    const char *name, *what;
    bool (*available)(char *why, size_t len); /* false: why not */
    bool (*suits)(const struct scenario *);   /* false after saying why not */
    bool (*set)(int node, const struct scenario_link *); /* counters begin at 0 */
    bool (*count)(int node, struct link_counts *);
    uint32_t left_out; /* metrics that mean nothing here */
    bool guest;        /* nobody else lives here */
};
extern const struct lab_backend backend_kernel, backend_guest, backend_loss;
void link_clear(void); /* what is not removed with the interfaces */

/* ---- lab-node.c ---- */

struct lab_proc {
    pid_t pid; /* 0: none */
    int code;  /* exit status, 128 + signal; once it has ended */
    bool ended, killed; /* killed: by an event */
};

struct lab_node {
    int number, ns;
    struct lab_proc daemon, trainer;
    int out; /* of the trainer, -1: none */
    FILE *lines; /* a copy of its output */
    char line[8192];
    size_t len;
    bool waiting;   /* the trainer starts as soon as the daemon answers */
    double waits_since;
    bool frozen, excused; /* excused: the next step was under way in a freeze */
    /* what the trainer said */
    uint64_t steps, step, returned; /* step: of the job */
    struct scenario_course course;
    bool done;
    double coverage, least_coverage, accuracy, longest_wait;
    double *waits;
    size_t wait_count, wait_room;
    struct link_counts counted; /* by links that were replaced */
    cJSON *status, *peers;
};

struct lab {
    const struct scenario *s;
    const struct lab_backend *backend;
    char dir[64], bin[512]; /* bin: the folder of sleetd and the others */
    struct lab_node node[LAB_NODES];
    int signals; /* signalfd */
    bool stop;   /* a signal came */
    double began;
    int next_event;
    double event_at; /* when the one before was played */
    uint64_t top_step;
    uint32_t down; /* nodes whose links are */
    bool broken; /* something beyond the expectations went wrong */
};

bool node_start(struct lab *, struct lab_node *); /* the daemon; the trainer follows */
bool node_follow(struct lab *, struct lab_node *); /* start the trainer if it is time */
void node_signal(struct lab_node *, int sig, bool daemon_too);
bool node_read(struct lab *, struct lab_node *); /* false: nothing more now */
void node_reap(struct lab *, struct lab_node *);
bool node_busy(const struct lab_node *); /* its trainer runs or will */
void node_path(const struct lab *, int node, const char *ending, char *out, size_t len);

/* ---- lab-keys.c ---- */

/* A job key, and a key for each node, as files in the lab's folder. */
bool keys_make(const struct lab *);
/* sleetd's options that name them. */
void keys_options(const struct lab *, int node, char job[200], char own[200]);

/* ---- lab-measure.c ---- */

void measure_collect(struct lab *); /* while the daemons still run */
void measure_values(const struct lab *, scenario_values);
void measure_print(const struct lab *, scenario_values, double seconds);
cJSON *measure_json(const struct lab *, scenario_values, double seconds);

/* ---- lab-run.c, lab-uml.c ---- */

struct lab_tally {
    int passed, failed;
    bool stopped; /* by a signal */
};
void lab_play(const struct scenario *, const struct lab_backend *, const struct lab_options *,
              struct lab_tally *);
int lab_shell(const struct scenario *, const struct lab_backend *);

bool uml_available(char *why, size_t len);
/* Boot a guest that runs this program with these arguments: its exit code. */
int uml_run(int argc, char **argv, const struct lab_options *, double limit_s, bool shell);
/* The first process of a guest; does not return. */
void uml_init(const char *job, int (*program)(int argc, char **argv));
bool uml_module(const char *name); /* load one into the guest's kernel */
const char *uml_folder(void); /* $TMPDIR, or /tmp */
void uml_reap(void); /* guests and folders of labs that were killed */
#endif
