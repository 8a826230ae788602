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
                           .edges = edges_in_force(&o->edges),
                           .codec = o->codec,
                           .repair_off = o->no_repair,
                           .go_on_isolated = !(o->kill > 0)}; /* what loss does is the question */
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

/* Another set of the same nodes, one tensor; NULL when out of memory. */
static cluster *beside(const struct train_options *o, struct set_kind kind, sleet_codec codec, uint64_t count)
{
    struct sim_config config = sim_network(o);
    config.kind = kind;
    config.codec = codec;
    cluster *c = cluster_new(&config, &count, 1);
    if (c)
        cluster_idle(c, MEETING);
    return c;
}

/* A round of nothing, after which all are members. */
static void join(cluster *c)
{
    cluster_round(c, NULL);
    cluster_idle(c, MEETING);
}

/* The sets beside the model's; false when out of memory. */
static bool open_beside(struct simulation *s)
{
    const struct train_options *o = s->o;
    if (average_owned(o->average)) {
        sleet_codec codec = o->codec <= SLEET_CODEC_I8 ? o->codec : 0; /* coarser ones are for gradients */
        s->handing = beside(o, (struct set_kind){.payload = SLEET_MODEL, .exchange = SLEET_ALL_GATHER}, codec, s->learner.handed);
        if (!s->handing)
            return false;
        join(s->handing);
    }
    if (o->ef_average) {
        s->errors = beside(o, (struct set_kind){.payload = SLEET_MODEL}, SLEET_CODEC_F32, s->learner.params);
        if (!s->errors)
            return false;
        join(s->errors);
    }
    bool tables = o->batches.on || o->slices;
    if (tables) /* of which nodes have all or nothing */
        s->tables = beside(o, (struct set_kind){.payload = SLEET_GRADIENT, .update = SLEET_NONLINEAR}, SLEET_CODEC_F32, TABLE_FLOATS);
    return !tables || s->tables;
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
    s->tested = malloc(of_model * sizeof(float));
    struct sim_config config = sim_network(o);
    for (uint32_t i = 0; i < s->learner.tensors; i++)
        config.state_tensors += s->learner.tensor[i].state;
    config.rows = rows;
    s->cluster = cluster_new(&config, counts, s->learner.tensors);
    if (!s->mean || !s->mixed || !s->tested || !s->cluster || !data_split(data, o->shards, o->sim, o->seed, &s->split) || !open_beside(s) ||
        !sim_watch_open(s))
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
