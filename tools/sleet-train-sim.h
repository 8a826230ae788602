/* sleet-train-sim.h - the parts of a simulation of all nodes in one process. */
#ifndef SLEET_TRAIN_SIM_H
#define SLEET_TRAIN_SIM_H
#include "sleet-train-kills.h"
#include "sleet-train-pace.h"
#include "sleet-train-partition.h"
#include "sleet-train-sites.h"
#include "sim/cluster.h"

/* Of the first node's slices, behind each outer round. */
struct sim_watch {
    float *last;     /* what owners had handed out before */
    uint32_t *still; /* of each fragment: rounds in a row that left it as it was */
    uint32_t most_still, rounds_short; /* rounds in which some slice had too few nodes that train it */
};

struct simulation {
    const struct train_options *o;
    struct train_print print;
    struct learner learner;
    struct shard_split split;
    struct train_node node[SLEET_GROUP_MAX];
    uint32_t alive; /* the first so many */
    struct sim_watch watch;
    struct trigger trigger[SLEET_GROUP_MAX]; /* but of the first */
    cluster *cluster;
    struct sites sites; /* of the cluster's nodes */
    cluster *handing;   /* --average owner: of the parameters */
    cluster *errors;    /* --ef-average: of what was left out */
    cluster *tables;    /* --batch-control, --slices */
    float *mean;                    /* the averaged model with its statistics */
    float *mixed;                   /* a node's with the mean statistics */
    float *tested;                  /* the model last tested, if any was, and its score: equal models need one test */
    bool some_tested;
    double tested_score;
    struct pace pace;               /* --straggle: without lock step */
    struct kills kills;             /* --kill */
    struct train_done done;
    struct train_tally *tally; /* the one in `done` */
    double started;
    double bytes_before; /* sent by all before the first step */
};

/* ---- sleet-train-sim-open.c: the learner, the nodes, and clusters whose nodes have met; exit status */
/* The links between the nodes, and what the first set is. */
struct sim_config sim_network(const struct train_options *);
int sim_open(struct simulation *, const struct dataset *);

/* ---- sleet-train-sim-score.c: how well the nodes' models do on the test samples */
/* The nodes whose models count: a liar's own is its own affair. */
static inline uint32_t sim_honest(const struct simulation *s)
{
    return s->alive - (s->o->lie != 1);
}

/* Of the mean of all models, which is left in s->mean. */
double sim_averaged_score(struct simulation *);
/* Is `step` one after which the models are evaluated: 80 %, 85 % ... 100 %? */
bool sim_evaluation_due(uint64_t step, uint64_t steps);
/* Take the scores of all into the tally. */
void sim_evaluate(struct simulation *);
/* Where nodes keep statistics of their own, it is shown beside what their mean would give. */
bool sim_beside(const struct simulation *);
/* The worst node's mean of such sums of the tally. */
double sim_worst(const struct simulation *, const double *sum);

/* ---- sleet-train-sim-slices.c */
bool sim_watch_open(struct simulation *); /* false: out of memory; sim_watch_close() also then */
void sim_watch_close(struct simulation *);
/* Before the slices of a new table are in force. */
void sim_watch(struct simulation *);
#endif
