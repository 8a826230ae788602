/* sleet-train-node.c - what a node does of a step but for the round itself, which a daemon or the
 * simulation makes. */
#include "sleet-train.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

bool node_open(struct train_node *n, const struct train_options *o, struct learner *l,
               struct shard_split *split, uint32_t shard, struct trigger *trigger)
{
    *n = (struct train_node){.options = o, .learner = l, .trigger = trigger, .walk = shard_walk_of(split, shard, o->seed)};
    n->place = shard;
    n->places = o->sim ? o->sim : o->shard_count;
    n->values = malloc(l->elements * sizeof *n->values);
    const struct optimizer *owners = o->average == AVERAGE_OUTER ? &o->outer : &o->optimizer;
    if (!n->values || (average_owned(o->average) && !keeper_open(&n->keeper, l->handed, owners->kind->moments)))
        return false;
    learner_init(l, o->seed, n->values);
    batch_open(&n->batch, o, shard);
    return slice_open(n);
}

void node_close(struct train_node *n)
{
    keeper_close(&n->keeper);
    slice_close(n);
    free(n->values);
    n->values = NULL;
}

static double take_step(struct train_node *n, uint64_t step, const float *residual, float *scratch)
{
    if (n->options->ef)
        return feedback_before(n->learner, n->options, &n->walk, step, residual, scratch, n->values);
    if (n->options->slices) {
        model_wants(n->learner->net, (struct model_share){n->options->slices, n->slices.mine});
        double loss = learner_gradient(n->learner, &n->walk, n->values);
        slice_apply(n, step);
        return loss;
    }
    if (n->options->trigger.kind != &trigger_selsync)
        return learner_before(n->learner, &n->walk, n->options->average, step, n->values);
    double loss = learner_gradient(n->learner, &n->walk, n->values);
    trigger_gradient(&n->options->trigger, n->trigger,
                     sqrt(optimizer_energy(n->learner->gradient, n->learner->params)));
    learner_apply(n->learner, step, n->values);
    return loss;
}

double node_step(struct train_node *n, uint64_t step, const float *residual, float *scratch)
{
    double began = train_clock();
    batch_use(&n->batch, &n->options->optimizer, n->learner);
    double loss = take_step(n, step, residual, scratch);
    batch_note(&n->batch, node_second_half(n, step), train_clock() - began);
    return loss;
}

bool node_second_half(const struct train_node *n, uint64_t step)
{
    return step >= n->learner->optimizer.steps / 2;
}

sleet_round_options node_round(const struct train_options *o, bool exact)
{
    return (sleet_round_options){.size = sizeof(sleet_round_options),
                                 .exact = exact,
                                 .keep = o->keep,
                                 .keep_auto = o->keep_auto,
                                 .quorum = o->quorum,
                                 .max_async = o->max_async,
                                 .twice = exact ? 0 : o->twice,
                                 .deadline_ns = exact ? 0 : (int64_t)(o->deadline * 1e9)};
}

bool node_due(const struct train_node *n, uint64_t done)
{
    bool last = n->options->average == AVERAGE_OUTER && done == n->learner->optimizer.steps;
    return last || (n->options->average && trigger_due(&n->options->trigger, n->trigger, done));
}

void node_give(struct train_node *n, float *tensors)
{
    const struct learner *l = n->learner;
    const float *anchor = n->values + l->anchor;
    if (l->anchor) {
        learner_to_handed(l, n->values, l->gradient);
        for (size_t k = 0; k < l->handed; k++)
            l->gradient[k] = anchor[k] - l->gradient[k];
    }
    if (l->wish)
        n->values[l->wish] = (float)trigger_wish(n->trigger);
    learner_pack(l, n->values, tensors);
}

float *node_hands(struct train_node *n)
{
    return n->values + n->learner->anchor;
}

bool node_own_step(struct train_node *n, uint64_t step, train_owns *owns, const void *arg, float *tensors)
{
    const struct optimizer *o = n->learner->anchor ? &n->options->outer : &n->learner->optimizer;
    return keeper_step(&n->keeper, o, step, owns, arg, tensors, node_hands(n));
}

void node_handed(struct train_node *n)
{
    const struct learner *l = n->learner;
    if (l->slices.n)
        slices_to_model(&l->slices, node_hands(n), n->values);
    else if (l->anchor)
        memcpy(n->values, node_hands(n), l->params * sizeof(float));
}

bool node_table_due(const struct train_node *n, uint64_t done)
{
    return batch_due(&n->batch, done) || (n->options->slices && node_due(n, done));
}

bool node_table(struct train_node *n, uint64_t step, uint32_t flags, const float table[TABLE_FLOATS])
{
    if (batch_due(&n->batch, step + 1))
        batch_take(&n->batch, node_second_half(n, step), flags, table);
    if (!n->options->slices || flags & (SLEET_PARKED | SLEET_BEHIND))
        return true;
    return slice_share(n, flags & SLEET_ALONE ? 0 : batch_there(table), step + 1);
}

bool node_take(struct train_node *n, uint64_t step, uint32_t flags, const float *tensors)
{
    batch_use(&n->batch, &n->options->optimizer, n->learner);
    if (average_owned(n->options->average))
        return true; /* owners step, see node_own_step() */
    if (n->options->ef)
        return feedback_after(n->learner, flags, tensors, n->values);
    bool taken = learner_after(n->learner, n->options->average, step, flags, tensors, n->values);
    if (n->learner->wish)
        trigger_choose(n->trigger, (double)n->values[n->learner->wish]);
    return taken;
}
