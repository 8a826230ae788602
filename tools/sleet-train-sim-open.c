#include "sleet-train-sim.h"
#include <stdlib.h>
#include <string.h>

#define MEETING SEC(4) /* virtual, in which the nodes meet before the first step */

struct sim_config sim_network(const struct train_options *o)
{
    struct sim_config c = {.nodes = o->sim,
                           .seed = o->seed,
                           .link = {.delay = MS(1), .jitter = US(200)},
                           .clip = o->clip,
                           .kind = o->kind,
                           .codec = o->codec,
                           .repair_off = o->no_repair,
                           .go_on_isolated = true}; /* what loss does is the question */
    if (o->burst > 0) {
        c.link.ge_r = 1 / o->burst;
        c.link.ge_p = o->loss * c.link.ge_r / (1 - o->loss);
    } else {
        c.link.loss = o->loss;
    }
    return c;
}

/* A round of no gradient, or of the models as they are at the start, in which all take the founder's state and hear of each other: from the first
 * step on each has its say. */
static bool found(struct simulation *s)
{
    memset(s->learner.gradient, 0, s->learner.params * sizeof(float));
    for (uint32_t i = 0; i < s->o->sim; i++)
        learner_pack(&s->learner, s->node[i].values, cluster_values(s->cluster, i));
    bool ok = cluster_round(s->cluster, NULL);
    cluster_idle(s->cluster, MEETING);
    return ok;
}

/* In which nodes share what batches follow: all of a table, or nothing. */
static cluster *tables_new(struct sim_config *config)
{
    config->kind = (struct set_kind){.payload = SLEET_GRADIENT, .update = SLEET_NONLINEAR};
    config->codec = SLEET_CODEC_F32;
    config->state_tensors = 0;
    cluster *c = cluster_new(config, (uint64_t[]){TABLE_FLOATS}, 1);
    if (c)
        cluster_idle(c, MEETING);
    return c;
}

int sim_open(struct simulation *s, const struct dataset *data)
{
    const struct train_options *o = s->o;
    uint64_t counts[TENSORS_MAX];
    uint32_t rows[TENSORS_MAX];
    const char *why = learner_open(&s->learner, o, data, o->sim);
    if (why)
        return train_fail(&s->print, "%s", why);
    s->print = train_print_of(o, &s->learner);
    for (uint32_t i = 0; i < s->learner.tensors; i++) {
        counts[i] = s->learner.tensor[i].count;
        rows[i] = s->learner.tensor[i].rows;
    }
    size_t of_model = s->learner.params + s->learner.statistics;
    s->mean = malloc(of_model * sizeof(float));
    s->mixed = malloc(of_model * sizeof(float));
    struct sim_config config = sim_network(o);
    for (uint32_t i = 0; i < s->learner.tensors; i++)
        config.state_tensors += s->learner.tensor[i].state;
    config.rows = rows;
    s->cluster = cluster_new(&config, counts, s->learner.tensors);
    config.rows = NULL; /* of the set's tensors only */
    if (!s->mean || !s->mixed || !s->cluster ||
        !data_split(data, o->shards, o->sim, o->seed, &s->split))
        return train_fail(&s->print, "out of memory");
    if (average_owned(o->average)) {
        config.kind = (struct set_kind){.payload = SLEET_MODEL, .exchange = SLEET_ALL_GATHER};
        config.codec = o->codec <= SLEET_CODEC_I8 ? o->codec : 0; /* coarser ones are for gradients */
        s->handing = cluster_new(&config, (uint64_t[]){s->learner.params}, 1);
        if (!s->handing)
            return train_fail(&s->print, "out of memory");
        cluster_idle(s->handing, MEETING);
        cluster_round(s->handing, NULL); /* of nothing: then all are members */
        cluster_idle(s->handing, MEETING);
    }
    if (o->ef_average) {
        config.kind = (struct set_kind){.payload = SLEET_MODEL};
        config.codec = SLEET_CODEC_F32;
        config.state_tensors = 0;
        s->errors = cluster_new(&config, (uint64_t[]){s->learner.params}, 1);
        if (!s->errors)
            return train_fail(&s->print, "out of memory");
        cluster_idle(s->errors, MEETING);
        cluster_round(s->errors, NULL); /* of nothing: then all are members */
        cluster_idle(s->errors, MEETING);
    }
    if (o->batches.on && !(s->tables = tables_new(&config)))
        return train_fail(&s->print, "out of memory");
    for (uint32_t i = 0; i < o->sim; i++)
        if (!node_open(&s->node[i], o, &s->learner, &s->split, i, i ? &s->trigger[i] : &s->tally->trigger))
            return train_fail(&s->print, "out of memory");
    if (o->average)
        cluster_idle(s->cluster, MEETING);
    bool meet_first = o->average == AVERAGE_GRADIENT || (o->average == AVERAGE_MODEL && trigger_waits(&o->trigger));
    if (meet_first && !found(s))
        return train_fail(&s->print, "the first round failed");
    if (!sites_lay(&s->sites, o, &config.link, s->cluster))
        return train_fail(&s->print, "out of memory");
    return EXIT_OK;
}
