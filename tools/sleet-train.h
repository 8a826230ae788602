/* sleet-train.h - the parts of sleet-train: options, one learner, a node, and the two ways to
 * run: a real node, or a simulation of all nodes. */
#ifndef SLEET_TRAIN_H
#define SLEET_TRAIN_H
#include "train/batch.h"
#include "train/data.h"
#include "train/model.h"
#include "train/optimizer.h"
#include "train/shard.h"
#include "train/slice.h"
#include "train/trigger.h"
#include "tensor/kind.h"
#include "edges/edges.h"
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define NODES_MAX 64 /* as SLEET_GROUP_MAX */

/* What nodes average: nothing, their models after local steps, the gradients of a step that all take,
 * gradients of which each node steps with its share, to hand out the parameters, or in place of the
 * gradients the way back of local steps.
 * X(name, value, text) */
#define AVERAGE_MAP(X)                                                                      \
    X(AVERAGE_NONE, 0, "none") X(AVERAGE_MODEL, 1, "model") X(AVERAGE_GRADIENT, 2, "gradient")  \
    X(AVERAGE_OWNER, 3, "owner") X(AVERAGE_OUTER, 4, "model by outer steps")

enum average {
#define AVERAGE_X(name, value, text) name = value,
    AVERAGE_MAP(AVERAGE_X)
#undef AVERAGE_X
};

const char *average_text(enum average);

/* Each owner steps with its share and hands it out. */
static inline bool average_owned(enum average a)
{
    return a == AVERAGE_OWNER || a == AVERAGE_OUTER;
}

/* A step is of the node's own, whatever the round brings. */
static inline bool average_local(enum average a)
{
    return a != AVERAGE_GRADIENT && a != AVERAGE_OWNER;
}

/* What becomes of what a codec leaves out of a gradient.  X(name, value, text) */
#define EF_MAP(X) X(EF_NONE, 0, "none") X(EF_PLAIN, 1, "plain") X(EF_AHEAD, 2, "step-ahead")

enum ef {
#define EF_X(name, value, text) name = value,
    EF_MAP(EF_X)
#undef EF_X
};

const char *ef_text(enum ef);

enum { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

#define STEP_TIME 0.02 /* s, virtual, where --step-time is not given */

/* Batches that follow step times. */
struct batch_options {
    bool on;
    struct batch_control control;
    uint32_t every;            /* steps from table to table */
    double slow[2][NODES_MAX]; /* that many times longer steps, in the first and the second half */
    uint32_t slows;            /* 0: nobody is slowed down; 1: all nodes alike */
};

struct train_options {
    const char *data;    /* folder; NULL: the usual one */
    const struct data_kind *data_kind;
    const char *control; /* socket of sleetd; NULL: libsleet's default */
    const struct model_kind *model;
    uint32_t hidden[MODEL_HIDDEN_MAX], hidden_count;
    uint32_t batch, epochs, limit; /* epochs 0: `steps` of them */
    uint32_t partition; /* of the epochs: the first so many in parts; 0: none */
    uint32_t absent;    /* the last so many simulated nodes miss the merge */
    uint64_t steps;
    struct optimizer optimizer; /* `steps` is set once the data is known */
    double loss_scale, init_scale; /* of the loss that is learnt from, and of the first parameters; 0: 1 */
    uint64_t seed;
    struct shard_kind shards;
    const char *shards_text;
    uint32_t shard, shard_count; /* this node's, from 0 */
    enum average average;
    struct trigger_options trigger;
    uint32_t slices, slice_members; /* of the model, and nodes that train each; 0: no slices */
    uint32_t spread; /* rounds in which a fragment is averaged once; 0: 1 */
    struct optimizer outer; /* AVERAGE_OUTER; kind NULL: none */
    struct batch_options batches;
    struct set_kind kind; /* of the set, as `average` and the optimizer have it */
    struct edges_file edges; /* of strategy graph */
    sleet_codec codec;    /* of what is not state; 0: the default */
    double keep;          /* of each node's gradient, with a sparse codec; 0: the default */
    double twice;         /* share of the fragments that are sent twice */
    bool forget;          /* --estimator nodes: carry, of which nothing is carried */
    bool keep_auto;       /* that at least; all over fast links */
    enum ef ef;
    double ef_alpha;      /* how far the step ahead goes, 0 to 1 */
    uint32_t ef_average;  /* steps between averages of what was left out; 0: never */
    bool refresh; /* of the moments: SLEET_F32_STATE */
    bool local_moments; /* they stay with their node */
    bool local_statistics; /* the model's statistics stay with their node */
    uint32_t min_nodes;
    double min_wait, deadline; /* seconds; deadline 0: the library's default */
    uint32_t quorum, max_async; /* of each round but exact ones */
    uint32_t evaluate;         /* test every so many steps; 0: once an epoch */
    bool json;
    double step_time;  /* s, at least */
    uint32_t sim;      /* nodes to simulate; 0: a real run */
    double loss;       /* of datagrams, fraction */
    struct train_sites {
        uint32_t n;           /* of equal size; 0: all links are alike */
        double mbit, delay_ms; /* of the one link between each two, each way */
    } sites;
    double burst;      /* mean length of a burst of losses; 0: independent */
    bool no_repair;    /* the simulation's engines do not repair */
    double clip;       /* likewise, see engine_config */
    double straggle;   /* nodes go at their own pace, and one's step takes so many times as long; 0: in lock step */
    bool uneven;       /* with it: all steps take up to so many times as long, evenly spread */
    double kill, down; /* s: a simulated node dies so often, for so long; 0: none does */
    bool blocking;     /* a step waits for a round of all nodes */
    uint64_t dies;     /* behind that step the last simulated node does; 0: none */
    double lie;        /* the last simulated node sends so many times its values; 1: honest */
    const char *checkpoint;    /* file; NULL: none */
    uint32_t checkpoint_every; /* steps; 0: once an epoch */
    bool resume;
    uint64_t stop_at; /* step; 0: go on to the end */
    uint32_t publish_every; /* steps; 0: never */
    double state_wait;      /* s, for the job's state at the start; 0: not asked for */
};

/* Fill *out from the command line.  Returns -1 to go on, otherwise the exit status. */
int train_options_parse(struct train_options *out, int argc, char **argv);
/* Fill in what was not given.  NULL, or in one sentence what does not go together. */
const char *train_options_settle(struct train_options *);

/* ---- one learner (sleet-train-learn.c) ---------------------------------- */

/* A tensor that nodes average, made of parts of a node's values that are laced together: of each element
 * in turn `each` floats of every part. */
#define TENSORS_MAX (2 * MODEL_MATRICES_MAX + 4)
#define PARTS_MAX 2
struct train_tensor {
    char name[24];
    size_t elements, count; /* count: floats in all */
    uint32_t rows;          /* of a matrix; 0: it is none */
    struct {
        size_t at, each;
    } part[PARTS_MAX];
    uint32_t parts; /* 0: it is learner.gradient */
    bool state;     /* SLEET_F32_STATE; only the last tensors are */
};

/* Working memory for steps and tests, shared by learners that take turns.  What each learner has of
 * its own is one vector, its values: parameters, statistics (both as the model wants them), moments. */
struct learner {
    const struct dataset *data; /* borrowed */
    model *net;
    char title[MODEL_TITLE_MAX]; /* kind and layers */
    uint32_t batch;              /* samples of a step */
    float *input;                /* of a batch */
    uint8_t *target;             /* of a batch */
    float *gradient;             /* model_params(), and to give learner.handed */
    struct optimizer optimizer;
    double loss_scale, init_scale; /* of the options */
    double hidden_rate; /* by which the gradient of all but the last layer, `hidden` parameters, is multiplied; 0: 1 */
    size_t hidden;
    uint64_t steps_per_epoch; /* at least 1 */
    struct train_tensor tensor[TENSORS_MAX];
    uint32_t tensors;
    size_t params, statistics, elements; /* of a node's values; elements: in all */
    size_t wish;   /* of --every auto, where in the values; 0: none */
    size_t anchor; /* where in the values what an outer step begins from is; 0: none */
    struct slices slices; /* in whose order that is */
    size_t handed;        /* floats of it, which owners hand out; without it, of the parameters */
};

/* For one of `nodes` that share the samples.  NULL, or what is wrong: out of memory, or inputs that the
 * model does not take. */
const char *learner_open(struct learner *, const struct train_options *, const struct dataset *,
                         uint32_t nodes);
void learner_close(struct learner *);
/* The values at the start. */
void learner_init(const struct learner *, uint64_t seed, float *values);
/* The loss on the walk's next batch; its gradient, times loss_scale, is in learner.gradient, its statistics
 * in `values`. */
double learner_gradient(struct learner *, struct shard_walk *, float *values);
/* The optimizer's step with learner.gradient, which it clips. */
void learner_apply(struct learner *, uint64_t step, float *values);
/* Both: a local step; the loss before it. */
double learner_step(struct learner *, struct shard_walk *, uint64_t step, float *values);
/* The data's metric on the test samples. */
double learner_score(struct learner *, const float *values);
/* The mean loss on the first training samples, at most as many as there are to test. */
double learner_loss(struct learner *, const float *values);
/* Copy the tensors from a node's values and learner.gradient, one after another; and the values back. */
void learner_pack(const struct learner *, const float *values, float *tensors);
void learner_unpack(const struct learner *, const float *tensors, float *values);
size_t learner_packed(const struct learner *); /* floats of all tensors */
/* A node's parameters as owners hand them out, learner.handed floats. */
void learner_to_handed(const struct learner *, const float *values, float *handed);
/* What a node does before a round: a local step, or the gradient of one; the loss. */
double learner_before(struct learner *, struct shard_walk *, enum average, uint64_t step, float *values);
/* And with a round's result: the step where gradients were averaged.  `flags` of the report: where others
 * took a step that is not here there is none.  Whether it was taken. */
bool learner_after(struct learner *, enum average, uint64_t step, uint32_t flags, const float *tensors,
                   float *values);

/* ---- error feedback (sleet-train-feedback.c) ------------------------------ */

/* As learner_before() and learner_after() where o->ef is on.  `residual`: what was left out so far;
 * `scratch`: learner.params floats. */
double feedback_before(struct learner *, const struct train_options *, struct shard_walk *, uint64_t step,
                       const float *residual, float *scratch, float *values);
/* Where o->forget, before a round: what was left out of earlier ones is lost, and the sum of what comes is
 * divided by all nodes. */
void feedback_forget(const struct learner *, const struct train_options *, float *residual);
bool feedback_after(struct learner *, uint32_t flags, const float *tensors, float *values);

/* ---- batches that follow step times (sleet-train-batch.c) ---------------- */

#define TABLE_COLUMNS 3
#define TABLE_FLOATS (TABLE_COLUMNS * NODES_MAX) /* one fragment */

struct train_batch {
    const struct batch_options *options;
    bool virtual_time; /* a sample takes 0.1 ms */
    uint32_t index;    /* of the node */
    uint32_t now;      /* samples of its step */
    double rate;       /* what the learning rate is multiplied by */
    double step_s;     /* of the last step, without waiting */
    double busy_s;     /* of `steps` of them, since the last table */
    uint64_t steps, tables, missed;
    double spread[2];             /* longest over shortest step in the last table of each half */
    uint32_t sum_least, sum_most; /* samples of a step of all, of the tables */
    uint32_t nodes, global;       /* in the last table, and what their batches are since; 0: there was none */
};

/* "2" for all nodes or "1,1,2,4", with ":4,2,1,1" for the second half. */
bool batch_parse_slow(const char *text, struct batch_options *);
/* Fill in what was not given; NULL, or what does not go together. */
const char *batch_settle(struct train_options *);
void batch_open(struct train_batch *, const struct train_options *, uint32_t index);
/* Let the learner take this node's next step. */
void batch_use(const struct train_batch *, const struct optimizer *whole, struct learner *);
/* A step took so long; where the node is slowed down this waits. */
void batch_note(struct train_batch *, bool second_half, double seconds);
/* Is a table due behind the first `done` steps? */
bool batch_due(const struct train_batch *, uint64_t done);
/* What a checkpoint keeps, and back. */
#define BATCH_NUMBERS 10
void batch_save(const struct train_batch *, double out[BATCH_NUMBERS]);
void batch_load(struct train_batch *, const double in[BATCH_NUMBERS]);
double batch_weight(const struct train_batch *); /* in the average; 0: as usual */
void batch_give(const struct train_batch *, float table[TABLE_FLOATS]);
/* The nodes of which the table has a row, as bits. */
uint64_t batch_there(const float table[TABLE_FLOATS]);
/* The mean of what nodes gave, with the flags of the round's report. */
void batch_take(struct train_batch *, bool second_half, uint32_t flags, const float table[TABLE_FLOATS]);

/* ---- parameters whose owners stay (sleet-train-owner.c) ------------------ */

/* A node's share of `params` elements, by runs of the set. */
struct kept_run {
    float *moments; /* NULL: another's */
    uint64_t age;   /* steps that they have seen */
};
struct train_keeper {
    size_t params;
    uint32_t each; /* moments of an element */
    struct kept_run *run;
};
typedef bool train_owns(const void *, uint32_t run);

bool keeper_open(struct train_keeper *, size_t params, uint32_t moments); /* false: out of memory */
void keeper_close(struct train_keeper *);
/* The step where the node owns, with the mean gradient there, which is clipped.  Moments of runs that were another's
 * begin at 0, those of runs that now are go.  False: out of memory. */
bool keeper_step(struct train_keeper *, const struct optimizer *, uint64_t step, train_owns *, const void *,
                 float *gradient, float *params);
size_t keeper_bytes(const struct train_keeper *); /* of moments */
/* What a checkpoint keeps, from malloc(), NULL when out of memory; and back into a keeper that has none: false where
 * it is not this one's. */
void *keeper_save(const struct train_keeper *, size_t *bytes);
bool keeper_load(struct train_keeper *, const void *, size_t bytes);

/* Who trains which slice, and since when this node does: 1 + the step from which its moments count; 0: it does
 * not.  Behind the slices, what all train. */
struct train_slices {
    uint64_t *who, *since; /* one block, which a checkpoint keeps */
    uint8_t *mine; /* by slice: this node trains it */
};

/* ---- what both ways to run have of a node (sleet-train-node.c) ------------- */

struct train_node {
    const struct train_options *options;
    struct learner *learner; /* borrowed; nodes that take turns share it */
    struct shard_walk walk;
    float *values;
    struct train_batch batch;
    struct train_keeper keeper; /* average_owned() */
    uint32_t place, places;     /* its shard, of so many */
    struct train_slices slices; /* --slices */
    struct trigger *trigger;    /* borrowed */
};

/* As at the start, with the shard's data; node_close() also where it fails, out of memory. */
bool node_open(struct train_node *, const struct train_options *, struct learner *,
               struct shard_split *, uint32_t shard, struct trigger *);
void node_close(struct train_node *);
/* A local step, or what goes into a round of one; the loss.  With --ef `residual` is what was left out so far,
 * `scratch` learner.params floats. */
double node_step(struct train_node *, uint64_t step, const float *residual, float *scratch);
bool node_second_half(const struct train_node *, uint64_t step);
/* How a round is made, but for the weight of the node's part in it. */
sleet_round_options node_round(const struct train_options *, bool exact);
/* Is a round due behind the first `done` steps? */
bool node_due(const struct train_node *, uint64_t done);
/* What goes into a round, packed; see learner_pack(). */
void node_give(struct train_node *, float *tensors);
/* Where average_owned(): what owners hand out, learner.handed floats in the node's values; the node's share of the
 * step, with the mean in `tensors`; and when the parameters of all owners are there.  False: out of memory. */
float *node_hands(struct train_node *);
bool node_own_step(struct train_node *, uint64_t step, train_owns *, const void *, float *tensors);
void node_handed(struct train_node *);
/* Is a table of nodes due behind the first `done` steps, and the mean of what they gave, with the flags of the report;
 * false: out of memory. */
bool node_table_due(const struct train_node *, uint64_t done);
bool node_table(struct train_node *, uint64_t step, uint32_t flags, const float table[TABLE_FLOATS]);
/* Take a round's result; whether its step was taken. */
bool node_take(struct train_node *, uint64_t step, uint32_t flags, const float *tensors);

/* ---- memory (sleet-train-memory.c) ------------------------------------------- */

struct train_memory { /* bytes */
    double parameters;  /* the model */
    double moments;     /* of all optimizers, here */
    double own, shared; /* resident in this process: its own, and what it shares with its daemon */
};
struct train_memory memory_of(const struct train_node *);

/* ---- slices of the model (sleet-train-slice.c) ------------------------------ */

/* Without --slices these do nothing; false: out of memory. */
bool slice_open(struct train_node *);
void slice_close(struct train_node *);
/* From step `step` on the slices are of these nodes, by the bits of their places. */
bool slice_share(struct train_node *, uint64_t nodes, uint64_t step);
/* `who` and `since` are of a checkpoint, of this node's place among as many nodes if `same`. */
#define SLICE_NUMBERS(slices) (2 * (size_t)(slices) + 1)
bool slice_restored(struct train_node *, bool same, uint64_t step);
/* The optimizer's step where the node trains, with the gradient in the learner. */
void slice_apply(const struct train_node *, uint64_t step);

/* ---- the two ways to run; exit status ----------------------------------- */

double train_clock(void); /* monotonic seconds */
int train_run(const struct train_options *, const struct dataset *);
int train_sim(const struct train_options *, const struct dataset *);
#endif
