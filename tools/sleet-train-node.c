/* sleet-train-node.c - what a node does of a step but for the round itself, which a daemon or the
 * simulation makes. */
#include "sleet-train.h"
#include <stdlib.h>

bool node_open(struct train_node *n, const struct train_options *o, struct learner *l,
               struct shard_split *split, uint32_t shard)
{
    *n = (struct train_node){.options = o, .learner = l, .walk = shard_walk_of(split, shard, o->seed)};
    n->values = malloc(l->elements * sizeof *n->values);
    if (!n->values || (o->average == AVERAGE_OWNER && !keeper_open(&n->keeper, l)))
        return false;
    learner_init(l, o->seed, n->values);
    return true;
}

void node_close(struct train_node *n)
{
    keeper_close(&n->keeper);
    free(n->values);
    n->values = NULL;
}

double node_step(struct train_node *n, uint64_t step, const float *residual, float *scratch)
{
    if (n->options->ef)
        return feedback_before(n->learner, n->options, &n->walk, step, residual, scratch, n->values);
    return learner_before(n->learner, &n->walk, n->options->average, step, n->values);
}

bool node_due(const struct train_node *n, uint64_t done)
{
    return n->options->average && trigger_due(&n->options->trigger, done);
}

bool node_take(struct train_node *n, uint64_t step, uint32_t flags, const float *tensors)
{
    if (n->options->average == AVERAGE_OWNER)
        return true; /* owners step, see keeper_step() */
    if (n->options->ef)
        return feedback_after(n->learner, step, flags, tensors, n->values);
    return learner_after(n->learner, n->options->average, step, flags, tensors, n->values);
}
