/* optimizer.h - the optimizers behind one interface, and what they share: the schedule of
 * the rate, and the clipping of the gradient.
 *
 * A step is elementwise: whoever holds the parameters, moments and gradient of a run of elements
 * can make it there.  Only clipping looks at all elements, and comes before: optimizer_clip().
 *
 * The moments of an element lie side by side, so that they travel, arrive and are lost together:
 * Adam divides one by the root of the other, and a mean of other nodes' first moments over one's own
 * second moment of nearly 0 would be a step without bound. */
#ifndef TRAIN_OPTIMIZER_H
#define TRAIN_OPTIMIZER_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* X(name as users write it, the kind) */
#define OPTIMIZER_MAP(X)                                                                    \
    X("sgd", optimizer_sgd) X("nesterov", optimizer_nesterov) X("sgd-si", optimizer_sgd_si) \
    X("adamw", optimizer_adamw)

/* X(name, text): how the rate falls from its peak to 0 at the last step, or that it does not. */
#define SCHEDULE_MAP(X) \
    X(SCHEDULE_COSINE, "cosine") X(SCHEDULE_LINEAR, "linear") X(SCHEDULE_CONSTANT, "constant")

enum schedule {
#define SCHEDULE_X(name, text) name,
    SCHEDULE_MAP(SCHEDULE_X)
#undef SCHEDULE_X
};

struct optimizer_kind;

struct optimizer {
    const struct optimizer_kind *kind;
    double rate;         /* at its peak */
    double momentum;     /* sgd, nesterov: 0 to below 1 */
    double beta1, beta2; /* adamw: decay of the moments, 0 to below 1 */
    double weight_decay; /* sgd, nesterov: times the parameter, added to the gradient; others: decoupled */
    double clip_norm;    /* a gradient longer than this is shortened to it; 0: none is */
    enum schedule schedule;
    uint64_t begin;   /* step at which the schedule does; before it the rate is at its first */
    uint64_t warm_up; /* steps from there in which the rate rises linearly to its peak */
    uint64_t steps;   /* in all; from there on the rate is 0 */
};

struct optimizer_kind {
    const char *name;
    double rate, weight_decay; /* where the user gives none */
    /* The step is linear in the gradient: one that comes late, or is corrected, can still be
     * taken in, with the same result. */
    bool linear;
    uint32_t moments;         /* floats of state of each element, 0 at first */
    const char *moments_name; /* of all of them, as a tensor; NULL where there are none */
    /* The longest gradient that goes with parameters of this norm, with the rate of the step; NULL: any. */
    double (*longest)(const struct optimizer *, double rate, double params);
    /* optimizer_step() with the rate of the step. */
    void (*step)(const struct optimizer *, double rate, uint64_t age, float *params, float *moments,
                 const float *gradient, size_t n);
};

#define OPTIMIZER_X(name, kind) extern const struct optimizer_kind kind;
OPTIMIZER_MAP(OPTIMIZER_X)
#undef OPTIMIZER_X

/* The kind of that name; NULL when there is none. */
const struct optimizer_kind *optimizer_find(const char *name);

/* The kind is, and nothing is clipped. */
bool optimizer_linear(const struct optimizer *);
/* Gradients are clipped: optimizer_clip() comes before each step. */
bool optimizer_clips(const struct optimizer *);

/* The schedule's name, and the schedule of that name, false when there is none. */
const char *schedule_text(enum schedule);
bool schedule_find(const char *name, enum schedule *);

/* The learning rate of step `step`, from 0. */
double optimizer_rate(const struct optimizer *, uint64_t step);

/* Step `step` on `n` elements: any run of the parameters, their kind->moments x n moments and their
 * gradient.  `age`: steps that these moments have seen, `step` unless they began later. */
void optimizer_step(const struct optimizer *, uint64_t step, uint64_t age, float *params,
                    float *moments, const float *gradient, size_t n);

/* Sum of the squares of `n` elements.  Those of parts add up to that of the whole. */
double optimizer_energy(const float *gradient, size_t n);
/* By what the gradient of step `step` is to be multiplied: 1 unless it is longer than clip_norm, or than the kind
 * allows beside the parameters.  Both energies are of all elements. */
float optimizer_clip(const struct optimizer *, uint64_t step, double gradient_energy, double params_energy);
#endif
