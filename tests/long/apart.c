/* apart.c - what a cut of the network does to the trained model.
 *
 * Six simulated nodes learn Fashion-MNIST, a round a step.  After some steps together they are cut into
 * halves for 1,000 steps, then healed.  Printed: the test accuracy of either side when the cut
 * ends, and of the worst node at the first evaluation after it, once a round has had all nodes.
 *
 *   apart park|continue|merge|strangers [SEED [TOGETHER [APART [HIDDEN [LR [iid|label]]]]]]
 *
 * park: the smaller side waits.  continue: both learn, the lighter takes the other's model.
 * merge: both learn and are averaged.  strangers: the sides have never met and begin with weights of
 * their own; the lighter takes the other's model.  The control is printed with each: the accuracy of the
 * plain mean of the two sides.  The exit status says nothing of the figures. */
#include "sim/cluster.h"
#include "sleet-train.h"
#include <cblas.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NODES 6
#define SIDE 3                  /* nodes 0 .. 2 are one of them */
#define AFTER 200               /* steps after the cut at most: the schedule ends with them, so that
                                   two evaluations in a row differ by little */
#define LINK ((struct sim_link){.delay = MS(1), .jitter = US(200)})

struct apart {
    struct train_options o;
    struct dataset data;
    struct learner learner;
    struct shard_split split;
    struct shard_walk walk[NODES];
    cluster *c;
    size_t params;
    float *undo[NODES]; /* values before the step */
    float *mean;        /* of the two sides */
};

static bool open_all(struct apart *a, const char *policy, uint64_t seed)
{
    char error[DATA_ERROR_MAX];
    bool merge = strcmp(policy, "merge") == 0;
    struct sim_config config = {.nodes = NODES,
                                .seed = seed,
                                .link = LINK,
                                .part_continue = strcmp(policy, "continue") == 0 || merge,
                                .merge_rounds = merge ? 1000000000 : 1};
    if (!data_load(&a->data, &data_images, NULL, 0, error)) {
        fprintf(stderr, "apart: %s\n", error);
        return false;
    }
    if (learner_open(&a->learner, &a->o, &a->data, NODES) ||
        !data_split(&a->data, a->o.shards, NODES, seed, &a->split))
        return false;
    a->params = model_params(a->learner.net);
    a->c = cluster_new(&config, (uint64_t[]){a->params, a->params}, a->learner.tensors);
    a->mean = malloc(a->params * sizeof(float));
    bool strangers = strcmp(policy, "strangers") == 0;
    for (uint32_t i = 0; a->c && i < NODES; i++) {
        float *values = cluster_values(a->c, i);
        a->walk[i] = shard_walk_of(&a->split, i, seed);
        a->undo[i] = malloc(a->learner.elements * sizeof(float));
        learner_init(&a->learner, strangers && i >= SIDE ? seed + 1000 : seed, values);
    }
    return a->c != NULL;
}

/* A local step of each node and a round; a node that is parked has its step undone.  True when
 * all nodes were in the round. */
static bool step(struct apart *a, uint64_t number)
{
    bool all = true;
    for (uint32_t i = 0; i < NODES; i++) {
        float *values = cluster_values(a->c, i);
        memcpy(a->undo[i], values, a->learner.elements * sizeof(float));
        learner_step(&a->learner, &a->walk[i], number, values);
    }
    if (!cluster_round(a->c, NULL))
        exit(EXIT_FAILED);
    for (uint32_t i = 0; i < NODES; i++) {
        const sleet_report *r = &cluster_report(a->c, i)->report;
        if (r->flags & SLEET_PARKED)
            memcpy(cluster_values(a->c, i), a->undo[i], a->learner.elements * sizeof(float));
        all &= r->expected == NODES && r->coverage > 0.99;
    }
    return all;
}

static double worst(struct apart *a, uint32_t from, uint32_t to)
{
    double least = 1;
    for (uint32_t i = from; i < to; i++) {
        double x = learner_score(&a->learner, cluster_values(a->c, i));
        least = x < least ? x : least;
    }
    return 100 * least;
}

/* What averaging the sides, three nodes each, would give. */
static double of_the_mean(struct apart *a)
{
    for (size_t k = 0; k < a->params; k++)
        a->mean[k] = (cluster_values(a->c, 0)[k] + cluster_values(a->c, SIDE)[k]) / 2;
    return 100 * learner_score(&a->learner, a->mean);
}

static void cut(struct apart *a, bool down)
{
    struct sim_link link = LINK;
    link.down = down;
    for (uint32_t i = 0; i < SIDE; i++)
        for (uint32_t k = SIDE; k < NODES; k++) {
            sim_set_link(cluster_sim(a->c), i, k, &link);
            sim_set_link(cluster_sim(a->c), k, i, &link);
        }
}

static const char *word(int argc, char **argv, int i, const char *none)
{
    return i < argc ? argv[i] : none;
}

int main(int argc, char **argv)
{
    static struct apart a;
    const char *policy = word(argc, argv, 1, "park"), *shards = word(argc, argv, 7, "iid");
    uint64_t seed = strtoull(word(argc, argv, 2, "1"), NULL, 10), at = 0;
    uint64_t together = strtoull(word(argc, argv, 3, "100"), NULL, 10);
    uint64_t length = strtoull(word(argc, argv, 4, "1000"), NULL, 10);
    int after = 0;
    openblas_set_num_threads(1);
    a.o = (struct train_options){.model = &model_mlp,
                                 .hidden = {(uint32_t)atoi(word(argc, argv, 5, "64"))},
                                 .hidden_count = 1,
                                 .batch = 64,
                                 .shards_text = shards,
                                 .optimizer = {.kind = &optimizer_sgd,
                                               .rate = atof(word(argc, argv, 6, "0.1")),
                                               .momentum = 0.9},
                                 .steps = together + length + AFTER};
    if (!shard_parse(shards, &a.o.shards) || !open_all(&a, policy, seed))
        return EXIT_FAILED;
    if (strcmp(policy, "strangers") == 0) {
        cut(&a, true);
        together = 0;
    }
    cluster_idle(a.c, SEC(4));
    for (; at < together; at++)
        step(&a, at);
    double whole = worst(&a, 0, NODES);
    cut(&a, true);
    for (; at < together + length; at++)
        step(&a, at);
    double one = worst(&a, 0, SIDE), other = worst(&a, SIDE, NODES), mean = of_the_mean(&a);
    cut(&a, false);
    cluster_idle(a.c, SEC(3)); /* they hear each other */
    while (after++ < AFTER && !step(&a, at++))
        ;
    double healed = worst(&a, 0, NODES), better = one > other ? one : other;
    printf("%s: seed %llu, %llu steps together %.2f %%, %llu apart: %.2f %% and %.2f %%; healed, after "
           "%d steps: %.2f %%, %+.2f points; their mean: %.2f %%, %+.2f points\n",
           policy, (unsigned long long)seed, (unsigned long long)together, whole,
           (unsigned long long)length, one, other, after, healed, healed - better,
           mean, mean - better);
    return EXIT_OK;
}
