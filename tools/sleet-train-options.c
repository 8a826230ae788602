#include "sleet-train.h"
#include "number.h"
#include "recipe/options.h"
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#define STRATEGY_NAME(name, value, text, numbers) " " text
/* X(id, name, argument or NULL, help) */
#define OPTION_MAP(X)                                                                       \
    X(O_RECIPE, "recipe", "NAME", "options of a recipe; those given beside it win; list: what there is") \
    X(O_DATA, "data", "PATH", "images: folder of IDX files (/usr/share/datasets/fashion-mnist); charlm: text file (the program bible)") \
    X(O_LIMIT, "limit", "N", "use only the first N samples (all)")                          \
    X(O_SHARDS, "shards", "KIND", "iid, dirichlet:A or label (iid)")                        \
    X(O_SHARD, "shard", "I/N", "this node's shard, I from 0 (SLEET_NODE/SLEET_NODES)") \
    X(O_EPOCHS, "epochs", "N", "passes over the training samples, all nodes together (2)")  \
    X(O_PARTITION, "partition", "N", "mlp: the first N epochs in parts of the model, a node each, without a network (0)") \
    X(O_ABSENT, "absent", "N", "simulation: the last N nodes miss the merge of the parts (0)") \
    X(O_STEPS, "steps", "N", "a node's steps in all, instead of --epochs")                  \
    X(O_BATCH, "batch", "N", "samples of a node's step (64; charlm 16)")                    \
    X(O_MODEL, "model", "M", "mlp, mlp-si (scale-invariant), cnn, cnn-bn (with BatchNorm), or charlm, which learns a text (mlp)") \
    X(O_STATISTICS, "bn-stats", "S", "cnn-bn: running statistics are of all nodes (average) or each its own (local) (average)") \
    X(O_HIDDEN, "hidden", "N,...", "widths of the dense hidden layers, 0 for none (64; charlm: its width, 96)") \
    X(O_OPTIMIZER, "optimizer", "O", "sgd, nesterov, sgd-si (for mlp-si) or adamw (sgd; mlp-si sgd-si; charlm adamw)") \
    X(O_LR, "lr", "X", "peak learning rate (sgd 0.1, sgd-si 1000, adamw 0.001; charlm 0.003)") \
    X(O_MOMENTUM, "momentum", "X", "sgd, nesterov (0.9)")                                             \
    X(O_BETA1, "beta1", "X", "adamw: decay of the first moment (0.9)")                      \
    X(O_BETA2, "beta2", "X", "adamw: decay of the second moment (0.999)")                   \
    X(O_REFRESH, "refresh-momentum", NULL, "average a sixteenth of the moments each round, not all") \
    X(O_LOCAL_MOMENTS, "local-momentum", NULL, "model: the moments stay with their node")    \
    X(O_DECAY, "weight-decay", "X", "(0; sgd-si 0.000003)")                                \
    X(O_CLIP_NORM, "clip-norm", "X", "shorten gradients that are longer than X; 0: none (0; charlm 1)") \
    X(O_LOSS_SCALE, "loss-scale", "X", "multiply the loss that is learnt from by X (1)")    \
    X(O_INIT_SCALE, "init-scale", "X", "multiply the parameters at the start by X (1)")     \
    X(O_SCHEDULE, "schedule", "S", "cosine or linear, to 0 at the last step, or constant (cosine)")      \
    X(O_WARMUP, "warm-up", "N", "steps in which the rate rises (0; charlm 100)")            \
    X(O_SEED, "seed", "N", "of weights, shards and order (1)")                              \
    X(O_EVALUATE, "evaluate", "N", "test every N steps (once an epoch)")                    \
    X(O_AVERAGE, "average", "WHAT", "model, gradient, owner or none (model)")                      \
    X(O_EVERY, "every", "N", "model: average behind every N-th step, or auto: as often as takes a tenth of the time (1)") \
    X(O_TRIGGER, "trigger", "T", "model: average behind steps that --every says, or (selsync) whose gradient changes (every)") \
    X(O_DELTA, "delta", "X", "selsync: the relative change of the gradient's norm (0.3)")   \
    X(O_WINDOW, "window", "N", "selsync: over so many steps, 1 to 100 (25)")                \
    X(O_MAX_LOCAL, "max-local", "N", "selsync: local steps in a row at most; 0: any number (500)") \
    X(O_SPREAD, "spread", "K", "model: each round averages one part in K, in turn, 1 to 64 (1)") \
    X(O_OUTER, "outer", "O", "model: take the average as it is (none), or a step of nesterov towards it, as DiLoCo does (none)") \
    X(O_OUTER_LR, "outer-lr", "X", "(0.7; with --slices less may be better)")                                                 \
    X(O_OUTER_MOMENTUM, "outer-momentum", "X", "(0.9)")                                     \
    X(O_SLICES, "slices", "S", "outer: a node trains some of S slices of the model only (1)") \
    X(O_SLICE_MEMBERS, "slice-members", "M", "nodes that train a slice (2)")                \
    X(O_BATCH_CONTROL, "batch-control", NULL, "batches follow measured step times, their sum stays (OmniLearn)") \
    X(O_GLOBAL_BATCH, "global-batch", "N", "batch-control: samples of a step of all nodes (batch times nodes)") \
    X(O_BATCH_MIN, "batch-min", "N", "batch-control: of a node at least (1)")               \
    X(O_BATCH_MAX, "batch-max", "N", "batch-control: of a node at most (4 parts)")          \
    X(O_BATCH_EVERY, "batch-every", "N", "batch-control: steps from table to table (20)")   \
    X(O_DEADBAND, "deadband", "X", "batch-control: step times that near their mean stay (0.1)") \
    X(O_ON_RESIZE, "on-resize", "R", "batch-control, when nodes come or go: constant-batch, linear-lr or keep (constant-batch)") \
    X(O_SLOW, "slow", "F,...", "steps last F times longer, for each node; :F,... in the second half (1)") \
    X(O_ESTIMATOR, "estimator", "E", "gradient: ratio, expected, carry or nodes: what comes over their number (ratio)") \
    X(O_TWICE, "twice", "X", "gradient: send the share X of the fragments twice, those of most energy (0)") \
    X(O_STRATEGY, "strategy", "NAME[:A[,B]]", "who averages with whom, or graph:FILE, its edges (rps):" SLEET_STRATEGY_MAP(STRATEGY_NAME)) \
    X(O_CODEC, "codec", "C", "how gradient or model travels: f32, bf16, i8, rot1 ... (f32)") \
    X(O_KEEP, "keep", "P", "topk: share of the elements that travel, or auto[:P]: all over fast links, P at least (0.01)")                \
    X(O_EF, "ef", "E", "gradient: error feedback, none, plain or step-ahead (none)")        \
    X(O_EF_ALPHA, "ef-alpha", "A", "how far step-ahead goes, 0 to 1 (1)")                   \
    X(O_EF_AVERAGE, "ef-average", "Q", "average what was left out every Q steps; 0: never (0)") \
    X(O_CONTROL, "control", "PATH", "socket of the local sleetd (SLEET_CONTROL)")           \
    X(O_MIN_NODES, "min-nodes", "N", "wait for N trainers before the first step (SLEET_NODES, or 1)")       \
    X(O_MIN_WAIT, "min-wait", "S", "for at most S seconds (30)")                            \
    X(O_STEP_TIME, "step-time", "S", "let a step take S seconds at least, as on a slower machine (0)") \
    X(O_DEADLINE, "deadline", "S", "longest wait of a round in seconds (2)")                \
    X(O_QUORUM, "quorum", "Q", "rounds wait for: all, majority (one drawn node), solo (the first) or N nodes (all)") \
    X(O_MAX_ASYNC, "max-async", "N", "--quorum: after N rounds one waits for all (64)")      \
    X(O_SIM, "sim", "N", "simulate N nodes in this process instead")                        \
    X(O_LOSS, "loss", "P", "simulation: fraction of datagrams lost (0)")                    \
    X(O_BURST, "burst", "L", "simulation: lose in bursts of mean length L (independent)")   \
    X(O_SITES, "sites", "K[,M[,D]]", "simulation: K sites of nodes, 100 Mbit/s inside, links of M Mbit/s and D ms between them (M 2, D 40)") \
    X(O_NO_REPAIR, "no-repair", NULL, "simulation: do not repair lost results")             \
    X(O_CLIP, "clip", "C", "simulation: bound what lies C times further off than usual (0: no)") \
    X(O_STRAGGLE, "straggle", "F", "simulation: each node at its own pace, of each round's steps one takes F times --step-time (0.02); uniform: each 0 to 10 times") \
    X(O_KILL, "kill", "S[,D]", "simulation: every S seconds a node dies, and starts anew D seconds later (D 5)") \
    X(O_BLOCKING, "blocking", NULL, "simulation: a step waits until a round has all nodes, exactly (plain all-reduce)") \
    X(O_DIES, "dies", "N", "simulation: the last node is killed behind step N (never)")     \
    X(O_LIE, "lie", "X", "simulation: the last node sends its values times X (1)")          \
    X(O_CHECKPOINT, "checkpoint", "FILE", "keep the run's state in FILE, one a node")       \
    X(O_CHECKPOINT_EVERY, "checkpoint-every", "STEPS", "how often (once an epoch)")         \
    X(O_RESUME, "resume", NULL, "go on from the checkpoint")                                \
    X(O_STOP_AT, "stop-at", "STEP", "end behind that step, with a checkpoint to go on from") \
    X(O_PUBLISH_EVERY, "publish-every", "STEPS", "let nodes that join fetch the state of every so many steps; 0: no (20)") \
    X(O_STATE_WAIT, "state-wait", "S", "fetch the job's state at the start, in at most S seconds; 0: no (30)") \
    X(O_JSON, "json", NULL, "one JSON object a line: step, epoch, done")                    \
    X(O_HELP, "help", NULL, "show this")

enum option_id {
    O_FIRST = 256,
#define OPTION_X(id, name, argument, help) id,
    OPTION_MAP(OPTION_X)
#undef OPTION_X
};

static const struct option long_options[] = {
#define OPTION_X(id, name, argument, help)                                                  \
    {name, (argument) ? required_argument : no_argument, NULL, id},
    OPTION_MAP(OPTION_X)
#undef OPTION_X
    {NULL, 0, NULL, 0}};

static const struct {
    const char *name, *argument, *help;
} option_help[] = {
#define OPTION_X(id, name, argument, help) {name, argument, help},
    OPTION_MAP(OPTION_X)
#undef OPTION_X
};

static void print_help(void)
{
    printf("Usage: sleet-train [OPTION]...\n"
           "Train a small model, averaged with the trainers of other nodes.\n\n");
    for (size_t i = 0; i < sizeof option_help / sizeof *option_help; i++) {
        char left[64];
        const char *argument = option_help[i].argument;
        snprintf(left, sizeof left, "--%s%s%s", option_help[i].name, argument ? " " : "",
                 argument ? argument : "");
        printf("  %-26s %s\n", left, option_help[i].help);
    }
}

static bool whole32(const char *text, uint32_t low, uint32_t high, uint32_t *out)
{
    uint64_t v;
    if (!number_whole(text, low, high, &v))
        return false;
    *out = (uint32_t)v;
    return true;
}

static bool hidden_list(const char *text, struct train_options *o)
{
    o->hidden_count = 0;
    if (strcmp(text, "0") == 0)
        return true;
    for (;;) {
        char item[16];
        size_t len = strcspn(text, ",");
        if (len >= sizeof item || o->hidden_count == MODEL_HIDDEN_MAX)
            return false;
        memcpy(item, text, len);
        item[len] = 0;
        if (!whole32(item, 1, 65536, &o->hidden[o->hidden_count++]))
            return false;
        if (!text[len])
            return true;
        text += len + 1;
    }
}

static bool shard_of(const char *text, struct train_options *o)
{
    char index[16];
    size_t len = strcspn(text, "/");
    if (len >= sizeof index || text[len] != '/')
        return false;
    memcpy(index, text, len);
    index[len] = 0;
    return whole32(text + len + 1, 1, 1000000, &o->shard_count) &&
           whole32(index, 0, o->shard_count - 1, &o->shard);
}

static bool keep_of(const char *text, struct train_options *o)
{
    o->keep_auto = strncmp(text, "auto", 4) == 0;
    o->keep = 0;
    if (o->keep_auto && !text[4])
        return true;
    return (!o->keep_auto || text[4] == ':') && number_real(text + (o->keep_auto ? 5 : 0), 1e-6, 1, &o->keep);
}

/* K[,M[,D]] */
static bool sites_of(const char *text, struct train_sites *s)
{
    char part[3][16] = {"", "2", "40"};
    for (uint32_t i = 0; i < 3 && text; i++) {
        size_t len = strcspn(text, ",");
        if (len >= sizeof part[i])
            return false;
        memcpy(part[i], text, len);
        part[i][len] = '\0';
        text = text[len] ? text + len + 1 : NULL;
    }
    return !text && whole32(part[0], 2, NODES_MAX, &s->n) && number_real(part[1], 0.001, 100, &s->mbit) &&
           number_real(part[2], 0.001, 10000, &s->delay_ms);
}

/* S[,D] */
static bool kill_of(const char *text, struct train_options *o)
{
    char every[16];
    size_t len = strcspn(text, ",");
    if (len >= sizeof every)
        return false;
    memcpy(every, text, len);
    every[len] = '\0';
    o->down = 5;
    return number_real(every, 0.1, 86400, &o->kill) && (!text[len] || number_real(text + len + 1, 0.001, 86400, &o->down));
}

static bool pick(const char *text, const char *first, const char *second, bool *is_first)
{
    *is_first = strcmp(text, first) == 0;
    return *is_first || strcmp(text, second) == 0;
}

/* FUNCTION(text, &out): the value of a word of such a map. */
#define WORD_X(name, value, text) {text, name},
#define WORDS(function, type, MAP)                                                          \
    static bool function(const char *text, type *out)                                       \
    {                                                                                       \
        static const struct {                                                               \
            const char *text;                                                               \
            type value;                                                                     \
        } words[] = {MAP(WORD_X)};                                                          \
        for (size_t i = 0; i < sizeof words / sizeof *words; i++)                           \
            if (strcmp(text, words[i].text) == 0) {                                         \
                *out = words[i].value;                                                      \
                return true;                                                                \
            }                                                                               \
        return false;                                                                       \
    }
#define QUORUM_MAP(X)                                                                       \
    X(SLEET_QUORUM_ALL, , "all") X(SLEET_QUORUM_MAJORITY, , "majority") X(SLEET_QUORUM_SOLO, , "solo")

WORDS(average_of, enum average, AVERAGE_MAP)
WORDS(on_resize_of, enum on_resize, ON_RESIZE_MAP)
WORDS(ef_of, enum ef, EF_MAP)
WORDS(quorum_of, uint32_t, QUORUM_MAP)

/* Take one option; false when its value is out of range. */
static bool take(struct train_options *o, enum option_id id, const char *v)
{
    switch (id) {
    case O_RECIPE: return true; /* its options are taken already */
    case O_DATA: o->data = v; return true;
    case O_LIMIT: return whole32(v, 1, UINT32_MAX, &o->limit);
    case O_SHARDS: o->shards_text = v; return shard_parse(v, &o->shards);
    case O_SHARD: return shard_of(v, o);
    case O_EPOCHS: return whole32(v, 1, 100000, &o->epochs);
    case O_PARTITION: return whole32(v, 0, 100000, &o->partition);
    case O_ABSENT: return whole32(v, 0, NODES_MAX, &o->absent);
    case O_STEPS: return number_whole(v, 1, UINT32_MAX, &o->steps);
    case O_BATCH: return whole32(v, 1, 65536, &o->batch);
    case O_MODEL: return (o->model = model_find(v)) != NULL;
    case O_HIDDEN: return hidden_list(v, o);
    case O_OPTIMIZER: return (o->optimizer.kind = optimizer_find(v)) != NULL;
    case O_LR: return number_real(v, 0, 1e30, &o->optimizer.rate);
    case O_MOMENTUM: return number_real(v, 0, 0.9999, &o->optimizer.momentum);
    case O_BETA1: return number_real(v, 0, 0.9999, &o->optimizer.beta1);
    case O_BETA2: return number_real(v, 0, 0.999999, &o->optimizer.beta2);
    case O_CLIP_NORM: return number_real(v, 0, 1e30, &o->optimizer.clip_norm);
    case O_REFRESH: o->refresh = true; return true;
    case O_LOCAL_MOMENTS: o->local_moments = true; return true;
    case O_STATISTICS: return pick(v, "local", "average", &o->local_statistics);
    case O_DECAY: return number_real(v, 0, 1, &o->optimizer.weight_decay);
    case O_LOSS_SCALE: return number_real(v, 1e-6, 1e6, &o->loss_scale);
    case O_INIT_SCALE: return number_real(v, 1e-6, 1e6, &o->init_scale);
    case O_SCHEDULE: return schedule_find(v, &o->optimizer.schedule);
    case O_WARMUP: return number_whole(v, 0, UINT32_MAX, &o->optimizer.warm_up);
    case O_SEED: return number_whole(v, 0, UINT64_MAX, &o->seed);
    case O_EVALUATE: return whole32(v, 1, UINT32_MAX, &o->evaluate);
    case O_AVERAGE: return average_of(v, &o->average) && o->average != AVERAGE_OUTER;
    case O_EVERY:
        if (strcmp(v, trigger_auto.name) != 0)
            return number_whole(v, 1, UINT32_MAX, &o->trigger.every);
        o->trigger.kind = &trigger_auto;
        return true;
    case O_TRIGGER: return (o->trigger.kind = trigger_find(v)) != NULL;
    case O_DELTA: return number_real(v, 0, 1e30, &o->trigger.delta);
    case O_WINDOW: return whole32(v, 1, TRIGGER_WINDOW_MAX, &o->trigger.window);
    case O_MAX_LOCAL: return number_whole(v, 0, UINT32_MAX, &o->trigger.most);
    case O_SPREAD: return whole32(v, 1, SLEET_SPREAD_MAX, &o->spread);
    case O_OUTER:
        o->outer.kind = strcmp(v, "nesterov") == 0 ? &optimizer_nesterov : NULL;
        return o->outer.kind || strcmp(v, "none") == 0;
    case O_OUTER_LR: return number_real(v, 0, 100, &o->outer.rate);
    case O_OUTER_MOMENTUM: return number_real(v, 0, 0.9999, &o->outer.momentum);
    case O_SLICES: return whole32(v, 2, SLICES_MAX, &o->slices);
    case O_SLICE_MEMBERS: return whole32(v, 1, NODES_MAX, &o->slice_members);
    case O_BATCH_CONTROL: o->batches.on = true; return true;
    case O_GLOBAL_BATCH: return whole32(v, 1, NODES_MAX * BATCH_MAX, &o->batches.control.global);
    case O_BATCH_MIN: return whole32(v, 1, BATCH_MAX, &o->batches.control.least);
    case O_BATCH_MAX: return whole32(v, 1, BATCH_MAX, &o->batches.control.most);
    case O_BATCH_EVERY: return whole32(v, 1, UINT32_MAX, &o->batches.every);
    case O_DEADBAND: return number_real(v, 0, 1, &o->batches.control.deadband);
    case O_ON_RESIZE: return on_resize_of(v, &o->batches.control.on_resize);
    case O_SLOW: return batch_parse_slow(v, &o->batches);
    case O_ESTIMATOR:
        o->forget = strcmp(v, "nodes") == 0;
        o->kind.estimator = o->forget ? SLEET_CARRY : (sleet_estimator)estimator_of(v);
        return o->kind.estimator != 0;
    case O_TWICE: return number_real(v, 0, 1, &o->twice);
    case O_STRATEGY: return edges_strategy_of(&o->edges, &o->kind, v);
    case O_CODEC: return (o->codec = (sleet_codec)codec_of(v)) != 0;
    case O_KEEP: return keep_of(v, o);
    case O_EF: return ef_of(v, &o->ef);
    case O_EF_ALPHA: return number_real(v, 0, 1, &o->ef_alpha);
    case O_EF_AVERAGE: return whole32(v, 0, UINT32_MAX, &o->ef_average);
    case O_CONTROL: o->control = v; return true;
    case O_MIN_NODES: return whole32(v, 1, NODES_MAX, &o->min_nodes);
    case O_MIN_WAIT: return number_real(v, 0, 86400, &o->min_wait);
    case O_DEADLINE: return number_real(v, 0.001, 3600, &o->deadline);
    case O_QUORUM: return quorum_of(v, &o->quorum) || whole32(v, 1, NODES_MAX, &o->quorum);
    case O_MAX_ASYNC: return whole32(v, 1, UINT32_MAX, &o->max_async);
    case O_STRAGGLE:
        o->uneven = strcmp(v, "uniform") == 0;
        o->straggle = 10;
        return o->uneven || number_real(v, 1, 1e6, &o->straggle);
    case O_SIM: return whole32(v, 1, NODES_MAX, &o->sim);
    case O_LOSS: return number_real(v, 0, 0.99, &o->loss);
    case O_BURST: return number_real(v, 1, 1e6, &o->burst);
    case O_SITES: return sites_of(v, &o->sites);
    case O_NO_REPAIR: o->no_repair = true; return true;
    case O_CLIP: return number_real(v, 0, 1e6, &o->clip);
    case O_KILL: return kill_of(v, o);
    case O_BLOCKING: o->blocking = true; return true;
    case O_DIES: return number_whole(v, 1, UINT32_MAX, &o->dies);
    case O_LIE: return number_real(v, -1e6, 1e6, &o->lie);
    case O_CHECKPOINT: o->checkpoint = v; return *v != '\0';
    case O_CHECKPOINT_EVERY: return whole32(v, 1, UINT32_MAX, &o->checkpoint_every);
    case O_RESUME: o->resume = true; return true;
    case O_STOP_AT: return number_whole(v, 1, UINT32_MAX, &o->stop_at);
    case O_PUBLISH_EVERY: return whole32(v, 0, UINT32_MAX, &o->publish_every);
    case O_STATE_WAIT: return number_real(v, 0, 86400, &o->state_wait);
    case O_STEP_TIME: return number_real(v, 0, 3600, &o->step_time);
    case O_JSON: o->json = true; return true;
    default: return false;
    }
}

static bool take_of_recipe(void *o, int id, const char *v)
{
    return take(o, (enum option_id)id, v);
}

/* Shard and number of nodes as the launcher gave them, unless --shard did. */
static bool from_launcher(struct train_options *o)
{
    const char *node = getenv("SLEET_NODE"), *nodes = getenv("SLEET_NODES");
    uint32_t count = 1, index = 0;
    if (node && nodes &&
        (!whole32(nodes, 1, NODES_MAX, &count) || !whole32(node, 0, count - 1, &index)))
        return false;
    if (!o->min_nodes && o->average)
        o->min_nodes = count;
    if (!o->shard_count) {
        o->shard = index;
        o->shard_count = count;
    }
    return true;
}

static int usage_error(const char *problem, const char *value)
{
    fprintf(stderr, "sleet-train: %s%s; sleet-train --help shows the options\n", problem, value);
    return EXIT_USAGE;
}

int train_options_parse(struct train_options *o, int argc, char **argv)
{
    *o = (struct train_options){.model = &model_mlp,
                                .hidden_count = UINT32_MAX,
                                .optimizer = {.rate = -1,
                                              .clip_norm = -1,
                                              .weight_decay = -1,
                                              .warm_up = UINT64_MAX,
                                              .momentum = -1,
                                              .beta1 = -1,
                                              .beta2 = -1},
                                .loss_scale = 1,
                                .init_scale = 1,
                                .seed = 1,
                                .shards_text = "iid",
                                .average = AVERAGE_MODEL,
                                .batches = {.control = {.deadband = -1}},
                                .trigger = {.delta = -1, .most = UINT64_MAX},
                                .outer = {.rate = -1, .momentum = -1},
                                .lie = 1,
                                .ef_alpha = -1,
                                .min_wait = -1,
                                .publish_every = UINT32_MAX,
                                .state_wait = -1};
    int id, status = recipe_options(RECIPE_TRAIN, argc, argv, "h", long_options, take_of_recipe, o);
    if (status >= 0)
        return status;
    const struct train_options recipe = *o;
    o->epochs = 0; /* how long to train is one thing: one of the two here takes the place of both there */
    o->steps = 0;
    while ((id = getopt_long(argc, argv, "h", long_options, NULL)) != -1) {
        if (id == O_HELP || id == 'h') {
            print_help();
            return EXIT_OK;
        }
        if (id == '?')
            return EXIT_USAGE;
        if (!take(o, (enum option_id)id, optarg)) {
            fprintf(stderr, "sleet-train: --%s does not take the value %s\n",
                    option_help[id - O_FIRST - 1].name, optarg);
            return EXIT_USAGE;
        }
    }
    if (!o->epochs && !o->steps) {
        o->epochs = recipe.epochs;
        o->steps = recipe.steps;
    }
    if (optind < argc)
        return usage_error("unexpected argument ", argv[optind]);
    if (!o->sim && !from_launcher(o))
        return usage_error("SLEET_NODE and SLEET_NODES do not name a shard", "");
    const char *wrong = train_options_settle(o);
    return wrong ? usage_error(wrong, "") : -1;
}
