/* sleet-train-partition.c - the first epochs in thin parts, each a node's own affair: no set, no round, no
 * packet.  Then an exact round in which all give their parts, and training goes on with the whole. */
#include "sleet-train-partition.h"
#include "train/partition.h"
#include "sim/cluster.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define APART SEC(1) /* virtual, with the links down */
#define MEETING SEC(4)
#define TRIES 3 /* exact rounds, until all parts are there */
#define MEET_WAIT 10 /* seconds in which rounds without the others, who are there, do not count */

static struct model_shape shape_of(const struct train_node *n)
{
    const struct train_options *o = n->options;
    const struct dataset *data = n->learner->data;
    struct model_shape s = {.rows = data->rows, .columns = data->columns, .hidden_count = o->hidden_count,
                            .classes = data->classes, .batch = o->batch};
    memcpy(s.hidden, o->hidden, sizeof s.hidden);
    return s;
}

static uint32_t parts_of(const struct train_options *o)
{
    return o->sim ? o->sim : o->shard_count;
}

/* The part's steps from the whole's start; its mean loss in the last epoch, no number where it diverged. */
static double learn(struct learner *l, struct train_node *n, uint64_t steps, float *values)
{
    double sum = 0;
    for (uint64_t step = 0; step < steps; step++) {
        double loss = learner_step(l, &n->walk, step, values);
        if (!isfinite(loss))
            return loss;
        sum += step + l->steps_per_epoch >= steps ? loss : 0;
    }
    return sum / (double)l->steps_per_epoch;
}

float *parts_learn(struct train_node *n, uint32_t shard, struct train_parts *out, const char **why)
{
    struct train_options o = *n->options;
    const struct model_shape whole = shape_of(n), part = partition_shape(&whole, parts_of(&o), shard);
    struct learner l;
    float *values = NULL, *given = NULL;
    *out = (struct train_parts){.all = parts_of(&o), .steps = o.partition * n->learner->steps_per_epoch};
    *why = partition_refuse(&whole, out->all);
    if (*why)
        return NULL;
    memcpy(o.hidden, part.hidden, sizeof o.hidden);
    o.average = AVERAGE_NONE;
    o.partition = 0;
    *why = learner_open(&l, &o, n->learner->data, out->all);
    if (*why)
        return NULL;
    *why = "out of memory";
    values = calloc(l.elements, sizeof *values);
    given = malloc(partition_merged(&whole, out->all) * sizeof *given);
    l.optimizer.begin = 0;
    l.optimizer.steps = out->steps;
    if (values && given) {
        partition_cut(&whole, out->all, shard, n->values, values);
        out->loss = learn(&l, n, out->steps, values);
        partition_give(&whole, out->all, shard, values, given);
        *why = isfinite(out->loss) ? NULL : "the loss of a part is no longer a number; try a smaller --lr";
    }
    learner_close(&l);
    free(values);
    if (*why) {
        free(given);
        return NULL;
    }
    return given;
}

static uint32_t merge(struct train_node *n, const float *mean)
{
    const struct model_shape whole = shape_of(n);
    return partition_merge(&whole, parts_of(n->options), mean, n->values);
}

/* ---- a real node ---------------------------------------------------------------------- */

static int make_set(struct train_sets *s, sleet_set **set, size_t count, float *mean)
{
    int error = sleet_set_new(set, s->ctx, "parts", SLEET_MODEL);
    if (!error)
        error = sleet_set_add(*set, "parts", SLEET_F32, count, mean);
    if (!error)
        error = sleet_set_codec(*set, 0, SLEET_CODEC_F32);
    return error ? error : sleet_set_register(*set);
}

/* One round; whose nodes are no members yet have them become so. */
static int one_round(sleet_set *set, bool exact, const float *given, float *mean, size_t count, sleet_report *report)
{
    const sleet_round_options options = {.size = sizeof options, .exact = exact};
    memcpy(mean, given, count * sizeof *mean);
    int error = sleet_start(set, &options);
    return error ? error : sleet_wait(set, report);
}

int parts_merge(struct train_sets *s, struct train_node *n, const float *given, struct train_parts *out)
{
    const struct model_shape whole = shape_of(n);
    size_t count = partition_merged(&whole, out->all);
    float *mean = malloc(count * sizeof *mean);
    sleet_set *set;
    sleet_report report;
    int error = mean ? make_set(s, &set, count, mean) : SLEET_ENOMEM;
    if (!error)
        error = sleet_wait_nodes(set, n->options->min_nodes, (int64_t)(n->options->min_wait * 1e9));
    if (!error || error == SLEET_EAGAIN) /* without the rest */
        error = one_round(set, false, given, mean, count, &report);
    double until = train_clock() + MEET_WAIT;
    for (int i = 0; !error && i < TRIES && out->present < out->all;) {
        error = one_round(set, true, given, mean, count, &report);
        if (error)
            break;
        uint32_t present = partition_present(&whole, out->all, mean);
        bool apart = report.flags & (SLEET_ALONE | SLEET_PARKED | SLEET_JOINING);
        if ((apart || (present < 2 && report.group_size > 1)) && train_clock() < until) {
            usleep(10000); /* the others are ahead, or behind: only who comes to a round gives in it */
            continue;
        }
        if (apart)
            present = partition_present(&whole, out->all, memcpy(mean, given, count * sizeof *mean));
        if (present >= out->present) /* the others may be done, and this round one without them */
            out->present = merge(n, mean);
        i++;
    }
    /* The set stays until sleet_close(), and with it `mean`. */
    s->parts = mean;
    return error;
}

/* ---- simulated nodes -------------------------------------------------------------------- */

/* Of all nodes but those that are away; false when a report is overdue. */
static bool simulated_round(cluster *c, struct train_node *n, float *const *given, size_t count, bool exact)
{
    const sleet_round_options options = {.size = sizeof options, .exact = exact};
    for (uint32_t i = 0; i < n->options->sim; i++)
        memcpy(cluster_values(c, i), given[i], count * sizeof(float));
    bool ok = cluster_round(c, &options);
    cluster_idle(c, MEETING);
    return ok;
}

static const char *meet_and_merge(struct train_node *n, const struct sim_config *network, float *const *given,
                                  struct train_parts *out, double *bytes)
{
    const struct model_shape whole = shape_of(n);
    struct sim_config config = *network;
    struct sim_totals totals;
    size_t count = partition_merged(&whole, out->all);
    uint32_t nodes = n->options->sim;
    config.kind = (struct set_kind){.payload = SLEET_MODEL};
    config.codec = SLEET_CODEC_F32;
    config.link.loss = 1; /* nobody hears of anybody */
    cluster *c = cluster_new(&config, (uint64_t[]){count}, 1);
    if (!c)
        return "out of memory";
    for (uint32_t i = 0; i < n->options->absent; i++)
        cluster_set_active(c, nodes - 1 - i, false);
    cluster_idle(c, APART);
    sim_set_link(cluster_sim(c), SIM_ALL, SIM_ALL, &network->link);
    cluster_idle(c, MEETING);
    const char *why = simulated_round(c, n, given, count, false) && simulated_round(c, n, given, count, true)
                          ? NULL
                          : "the merge of the parts failed";
    for (uint32_t i = 0; !why && i < nodes; i++)
        if (cluster_report(c, i)->reported) {
            uint32_t present = merge(&n[i], cluster_values(c, i));
            out->present = i == 0 || present < out->present ? present : out->present;
        }
    sim_get_totals(cluster_sim(c), &totals);
    *bytes -= (double)totals.bytes;
    cluster_free(c);
    return why;
}

int parts_simulate(struct train_node *n, const struct sim_config *network, struct train_print *print,
                   struct train_tally *tally, double *bytes)
{
    uint32_t nodes = n->options->sim;
    struct train_parts parts;
    float *given[NODES_MAX] = {0};
    const char *why = NULL;
    double loss = 0;
    for (uint32_t i = 0; !why && i < nodes; i++) {
        given[i] = parts_learn(&n[i], i, &parts, &why);
        loss += parts.loss / nodes;
    }
    if (!why)
        why = meet_and_merge(n, network, given, &parts, bytes);
    for (uint32_t i = 0; i < nodes; i++)
        free(given[i]);
    if (why)
        return train_fail(print, "%s", why);
    parts.loss = loss;
    tally->steps = (double)parts.steps;
    parts_print(print, &parts);
    return EXIT_OK;
}

void parts_print(struct train_print *p, const struct train_parts *parts)
{
    if (p->json)
        printf("{\"event\":\"merged\",\"step\":%llu,\"parts\":%u,\"of\":%u,\"loss\":%.6g}\n",
               (unsigned long long)parts->steps, parts->present, parts->all, parts->loss);
    else
        printf("merged at step %llu: %u of %u parts, loss of a part %.4f\n", (unsigned long long)parts->steps,
               parts->present, parts->all, parts->loss);
    fflush(stdout);
}
