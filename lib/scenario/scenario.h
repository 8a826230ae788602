/* scenario.h - a run described in an INI file: nodes, links, events, workload and
 * what is expected.  The lab plays it on real links, sleet-sim on simulated ones.
 *
 * Nodes are numbered from 1; a set of nodes is a mask with node 1 in bit 0.
 * A link is the way towards a node. */
#ifndef SCENARIO_H
#define SCENARIO_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define SCENARIO_NODES_MAX 16
#define SCENARIO_EVENTS_MAX 32
#define SCENARIO_EXPECTS_MAX 32
#define SCENARIO_NAME_MAX 40
#define SCENARIO_TEXT_MAX 160
#define SCENARIO_COVERED 0.5 /* coverage of a round that counts as one with others */

/* X(field, lowest, highest, whole): all are numbers; 0: off. */
#define SCENARIO_LINK_MAP(X)                                                                \
    X(delay_ms, 0, 10000, false)   /* one way */                                            \
    X(jitter_ms, 0, 10000, false)  /* the delay varies by so much to either side */         \
    X(loss, 0, 1, false)           /* independent, share of datagrams */                    \
    X(gemodel_p, 0, 1, false)      /* Gilbert: good to bad, for each datagram */            \
    X(gemodel_r, 0, 1, false)      /* bad to good; in bad all are lost */                   \
    X(duplicate, 0, 1, false)                                                               \
    X(corrupt, 0, 1, false)        /* one bit inverted */                                   \
    X(reorder, 0, 1, false)        /* share that overtakes the delayed ones */              \
    X(rate_mbit, 0, 10000, false)  /* bits a second; what waits fills queue_kb */           \
    X(queue_kb, 0, 100000, false)  /* before it is dropped; 0: 256 */

#define SCENARIO_WORKLOAD_MAP(X)                                                            \
    X(samples, 64, 60000, true)    /* of the training set */                                \
    X(epochs, 1, 1000, true)                                                                \
    X(batch, 1, 4096, true)                                                                 \
    X(hidden, 1, 4096, true)       /* width of the one hidden layer */                      \
    X(lr, 0, 100, false)                                                                    \
    X(step_ms, 0, 60000, false)    /* a step takes so long at least */                      \
    X(evaluate, 0, 1e6, true)      /* test every so many steps; 0: once an epoch */         \
    X(deadline_s, 0.01, 60, false) /* of a round */                                         \
    X(min_nodes, 1, SCENARIO_NODES_MAX, true)  /* the trainers wait for so many, */         \
    X(min_wait_s, 0, 3600, false)  /* at most so long */

/* What follows the name of an action. */
enum scenario_takes { TAKES_NOTHING, TAKES_NODES, TAKES_GROUPS, TAKES_SECONDS };

/* X(id, text, takes, what it does) */
#define SCENARIO_ACTION_MAP(X)                                                              \
    X(KILL, "kill", TAKES_NODES, "SIGKILL to daemon and trainer of these nodes")            \
    X(START, "start", TAKES_NODES, "start them, again or for the first time")               \
    X(FREEZE, "freeze", TAKES_NODES, "SIGSTOP to all their processes")                      \
    X(FREEZE_TRAINER, "freeze-trainer", TAKES_NODES, "SIGSTOP to their trainers only")      \
    X(THAW, "thaw", TAKES_NODES, "SIGCONT")                                                 \
    X(PARTITION, "partition", TAKES_GROUPS, "groups divided by |: nothing passes between them") \
    X(HEAL, "heal", TAKES_NOTHING, "ends the partition")                                    \
    X(LINK, "link", TAKES_NODES, "the links towards them become those given in this section") \
    X(DOWN, "down", TAKES_NODES, "their links go down: nothing passes, and no packet tells") \
    X(UP, "up", TAKES_NODES, "and up again")                                                \
    X(REBIND, "rebind", TAKES_NODES, "their NAT forgets its mapping; the next has another port") \
    X(CLOCK, "clock", TAKES_SECONDS, "the wall clock of all nodes is moved, e.g. clock -3600")

/* What can be expected; a value for each node, NAN where there is none. */
#define SCENARIO_METRIC_MAP(X)                                                              \
    X(DONE, "done", "1: the trainer came to its end")                                       \
    X(STEPS, "steps", "steps it made")                                                      \
    X(ACCURACY, "accuracy", "of the averaged model at the end")                             \
    X(ACCURACY_GAP, "accuracy_gap", "between it and the best node's")                       \
    X(COVERAGE, "coverage", "mean of the rounds")                                           \
    X(LEAST_COVERAGE, "least_coverage", "of a round")                                       \
    X(LONGEST_WAIT, "longest_wait_s", "of a step, rounds in which the node was frozen aside") \
    X(WAIT_P50, "wait_p50_ms", "median wait of a step")                                     \
    X(WAIT_P95, "wait_p95_ms", "its 95th percentile")                                       \
    X(JOINED, "joined_s", "from a start to its first step with the job, coverage 0.9 or more; the worst start") \
    X(GAP, "gap_s", "longest time between two rounds with others, of a node's life and to its end") \
    X(RETURNED, "returned", "rounds after the last event with a coverage of 0.5 or more")   \
    X(LOSS_LINK, "loss_link", "share of datagrams lost towards the node, by the link's counters") \
    X(LOSS_LEDGER, "loss_ledger", "the same, by sleetd's counters")                         \
    X(LOSS_GAP, "loss_gap", "between the two")                                              \
    X(LOSS_RUN, "loss_run", "datagrams of one sender that are missing at a time, mean")     \
    X(RTT, "rtt_ms", "median of the smoothed round trips to the other nodes")               \
    X(DUPLICATES, "duplicates", "datagrams that came again")                                \
    X(CORRUPT, "corrupt", "damaged datagrams that reached sleetd")                          \
    X(CORRUPT_KERNEL, "corrupt_kernel", "those the kernel's UDP checksum kept out")

enum scenario_action {
#define X(id, ...) SCENARIO_##id,
    SCENARIO_ACTION_MAP(X)
#undef X
        SCENARIO_ACTIONS
};

enum scenario_metric {
#define X(id, ...) METRIC_##id,
    SCENARIO_METRIC_MAP(X)
#undef X
        METRIC_COUNT
};

extern const char *const scenario_action_names[SCENARIO_ACTIONS];
extern const char *const scenario_metric_names[METRIC_COUNT];

struct scenario_link {
#define X(field, ...) double field;
    SCENARIO_LINK_MAP(X)
#undef X
};

struct scenario_workload {
#define X(field, ...) double field;
    SCENARIO_WORKLOAD_MAP(X)
#undef X
    char shards[32]; /* as sleet-train --shards */
};

/* When an event is due.  Events are played in the file's order: one also waits for
 * the one before it. */
enum scenario_when {
    WHEN_MISSING,
    WHEN_AT_S,    /* seconds since the first node was started */
    WHEN_AT_STEP, /* some node has ended this step */
    WHEN_AFTER_S  /* seconds since the event before, or the start */
};

struct scenario_event {
    char name[SCENARIO_NAME_MAX];
    int line;
    enum scenario_when when;
    double value; /* of `when` */
    enum scenario_action action; /* SCENARIO_ACTIONS: missing */
    uint32_t nodes;
    uint8_t group[SCENARIO_NODES_MAX]; /* PARTITION: of each node; a node not named is in 0 */
    struct scenario_link link;         /* LINK */
    double seconds;                    /* CLOCK */
};

struct scenario_expect {
    int line;
    enum scenario_metric metric;
    uint32_t nodes; /* 0: all */
    char op;        /* '>' at least, '<' at most, '=' */
    double value;
};

struct scenario {
    char name[SCENARIO_NAME_MAX]; /* the file's, without folder and .ini */
    char about[SCENARIO_TEXT_MAX];
    double seed, limit_s; /* a run that takes longer has failed */
    double nodes, rate_mbit; /* rate_mbit: most a node sends */
    double seeds; /* each node's list of peers is the first so many; 0: all */
    bool sealed;  /* sessions are encrypted */
    bool go_on;   /* on_partition = continue: also the smaller side of a cut */
    uint32_t nat; /* nodes behind a NAT, each behind its own */
    double start_s[SCENARIO_NODES_MAX]; /* when each node is started */
    struct scenario_link link[SCENARIO_NODES_MAX];
    struct scenario_workload workload;
    struct scenario_event event[SCENARIO_EVENTS_MAX];
    int events;
    struct scenario_expect expect[SCENARIO_EXPECTS_MAX];
    int expects;
};

/* Read a scenario from `in`; `path` is its name in messages.  False after saying on
 * `errors` what is wrong, where and how to mend it. */
bool scenario_read(struct scenario *, FILE *in, const char *path, FILE *errors);
bool scenario_load(struct scenario *, const char *path, FILE *errors);

/* Whether an event of this action is in the file. */
bool scenario_has(const struct scenario *, enum scenario_action);

/* Steps of a trainer and parameters of its model: what a simulation has to repeat. */
uint32_t scenario_steps(const struct scenario *);
uint32_t scenario_parameters(const struct scenario *);

/* How a node fares among the others, step by step; all times in s on one clock.  Zero-filled at
 * first. */
struct scenario_course {
    bool joined, met;
    double started_at, met_at;
    double joined_s, gap_s; /* METRIC_JOINED, METRIC_GAP; see scenario_course_values() */
    bool measured;          /* gap_s */
};
void scenario_course_start(struct scenario_course *, double now); /* of a life of the node */
/* A round of it has closed; alone: coverage 0.  in_step: it is where the job is. */
void scenario_course_round(struct scenario_course *, double now, double coverage, bool in_step);
void scenario_course_end(struct scenario_course *, double now); /* its trainer is done */
/* NAN where there is no value: a node whose last life has not joined has no joined_s. */
void scenario_course_values(const struct scenario_course *, double *joined_s, double *gap_s);

/* Print one line for each expectation, "  ok: ..." or "  FAILED: ...", and count.  Metrics in
 * the mask `left_out` are said to be left out, and not counted. */
struct scenario_verdict {
    int passed, failed;
};
typedef double scenario_values[METRIC_COUNT][SCENARIO_NODES_MAX];
struct scenario_verdict scenario_check(const struct scenario *, scenario_values, uint32_t left_out,
                                       FILE *out);
/* The value of the node that is furthest from what is expected; NAN if one has none. */
double scenario_worst(const struct scenario *, const struct scenario_expect *, scenario_values);
/* Of a number of values, in any order; NAN of none. */
double scenario_quantile(const double *values, size_t count, double q);
/* One decimal, "-" where there is no value; returns `out`. */
const char *scenario_figure(double value, char out[16]);
bool scenario_holds(const struct scenario_expect *, double worst);
/* "loss_gap 1 2 <= 0.02" as in the file. */
void scenario_expect_text(const struct scenario_expect *, char *out, size_t len);
/* "1 2 4" */
void scenario_nodes_text(uint32_t nodes, char *out, size_t len);
/* "5 ms, loss 10 %", "perfect" */
void scenario_link_text(const struct scenario_link *, char *out, size_t len);
#endif
