/* trigger.h - when a node averages.
 *
 * A node is asked behind each local step whether a round is due.  `every`: behind each step of the schedule that
 * N divides, alike on all nodes.  The others look at what a node sees itself: any of them may begin a
 * round, and who learns of one that has begun takes part in it (sleet_wanted()).
 *
 * `auto`: local SGD with the smallest number of steps between rounds for which rounds take at most a tenth of
 * the time of the steps.  Each node averages its wish along with the model, so that all choose alike.
 *
 * `selsync` (SelSync, arXiv 2307.07950): a node begins a round when its gradient changes.  With the mean of the norms
 * of the last `window` gradients, weighted 0.99^age, a change is the relative change of that mean from a step
 * to the next; where the mean of the last changes, weighted likewise, is `delta` or more, and during the first `window`
 * steps, a round is due.  0 is a round behind each step.  The paper sums the norms of the layers; here it
 * is the norm of the whole gradient. */
#ifndef TRAIN_TRIGGER_H
#define TRAIN_TRIGGER_H
#include <stdbool.h>
#include <stdint.h>

#define TRIGGER_WINDOW_MAX 100
#define TRIGGER_AUTO_MAX 500   /* steps between rounds */
#define TRIGGER_AUTO_SHARE 0.1 /* of the time of steps, that rounds may take */

/* X(name as users write it, the kind) */
#define TRIGGER_MAP(X) X("every", trigger_every) X("auto", trigger_auto) X("selsync", trigger_selsync)

struct trigger_kind;

struct trigger_options {
    const struct trigger_kind *kind;
    uint64_t every;  /* every: steps from round to round; 1: a round behind each */
    double delta;    /* selsync */
    uint32_t window; /* selsync: 1 to TRIGGER_WINDOW_MAX */
    uint64_t most;   /* selsync: local steps in a row, then a round is due all the same; 0: any number */
};

/* What a node knows, 0 at first; all doubles, as a checkpoint keeps them. */
struct trigger {
    double local;           /* steps since its last round */
    double every;           /* auto: steps between rounds now; 0: not chosen yet */
    double step_s, round_s; /* auto: what they take, means that forget */
    double gradients;       /* selsync: seen */
    double mean, flag;      /* selsync: of the last norms; a round is due */
    double norm[TRIGGER_WINDOW_MAX], change[TRIGGER_WINDOW_MAX]; /* selsync: rings */
};

struct trigger_kind {
    const char *name;
    bool (*due)(const struct trigger_options *, const struct trigger *, uint64_t done);
    bool joins; /* a round that others begin */
};

#define TRIGGER_X(name, kind) extern const struct trigger_kind kind;
TRIGGER_MAP(TRIGGER_X)
#undef TRIGGER_X

/* The kind of that name; NULL when there is none. */
const struct trigger_kind *trigger_find(const char *name);

/* A local step was made, which took so long. */
void trigger_step(struct trigger *, double seconds);
/* A round has ended, which took so long. */
void trigger_round(struct trigger *, double seconds);
/* Is a round due behind the first `done` steps of the schedule? */
bool trigger_due(const struct trigger_options *, const struct trigger *, uint64_t done);
/* Does each step have its round, whatever comes? */
bool trigger_always(const struct trigger_options *);
/* Do local steps come before the first round? */
bool trigger_waits(const struct trigger_options *);

/* ---- auto: the binary logarithm of the steps between rounds that this node would have, at most twice what it
 * has; and with the mean of all wishes, what it has from now on, 1 to TRIGGER_AUTO_MAX. */
double trigger_wish(const struct trigger *);
uint64_t trigger_choose(struct trigger *, double mean_wish);

/* ---- selsync: the step's gradient had this norm. */
void trigger_gradient(const struct trigger_options *, struct trigger *, double norm);
#endif
