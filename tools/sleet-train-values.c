/* sleet-train-values.c - the values of options: what they may be, and where they go. */
#include "sleet-train-options.h"
#include "number.h"
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

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
        if (!number_whole32(item, 1, 65536, &o->hidden[o->hidden_count++]))
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
    return number_whole32(text + len + 1, 1, 1000000, &o->shard_count) &&
           number_whole32(index, 0, o->shard_count - 1, &o->shard);
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
    return !text && number_whole32(part[0], 2, NODES_MAX, &s->n) && number_real(part[1], 0.001, 100, &s->mbit) &&
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

#define TEXT_X(name, value, text) [value] = text,
const char *average_text(enum average average)
{
    static const char *const texts[] = {AVERAGE_MAP(TEXT_X)};
    return texts[average];
}

const char *ef_text(enum ef ef)
{
    static const char *const texts[] = {EF_MAP(TEXT_X)};
    return texts[ef];
}

/* What an option's field is says what its value has to be: a number within bounds, a text as it is, or none. */
enum plain_type { PLAIN_FLAG = 1, PLAIN_TEXT, PLAIN_WHOLE32, PLAIN_WHOLE, PLAIN_REAL };
#define PLAIN_TYPE(field)                                                                   \
    _Generic(((struct train_options *)NULL)->field, bool: PLAIN_FLAG, const char *: PLAIN_TEXT, uint32_t: PLAIN_WHOLE32,  \
             uint64_t: PLAIN_WHOLE, double: PLAIN_REAL)
#define PLAIN(id, field, least, most) {id, PLAIN_TYPE(field), offsetof(struct train_options, field), least, most}

static const struct plain {
    enum option_id id;
    enum plain_type type;
    size_t field;
    double least, most;
} plain[] = {
    PLAIN(O_DATA, data, 0, 0),
    PLAIN(O_LIMIT, limit, 1, UINT32_MAX),
    PLAIN(O_EPOCHS, epochs, 1, 100000),
    PLAIN(O_PARTITION, partition, 0, 100000),
    PLAIN(O_ABSENT, absent, 0, NODES_MAX),
    PLAIN(O_STEPS, steps, 1, UINT32_MAX),
    PLAIN(O_BATCH, batch, 1, 65536),
    PLAIN(O_LR, optimizer.rate, 0, 1e30),
    PLAIN(O_MOMENTUM, optimizer.momentum, 0, 0.9999),
    PLAIN(O_BETA1, optimizer.beta1, 0, 0.9999),
    PLAIN(O_BETA2, optimizer.beta2, 0, 0.999999),
    PLAIN(O_CLIP_NORM, optimizer.clip_norm, 0, 1e30),
    PLAIN(O_REFRESH, refresh, 0, 0),
    PLAIN(O_LOCAL_MOMENTS, local_moments, 0, 0),
    PLAIN(O_DECAY, optimizer.weight_decay, 0, 1),
    PLAIN(O_LOSS_SCALE, loss_scale, 1e-6, 1e6),
    PLAIN(O_INIT_SCALE, init_scale, 1e-6, 1e6),
    PLAIN(O_WARMUP, optimizer.warm_up, 0, UINT32_MAX),
    PLAIN(O_EVALUATE, evaluate, 1, UINT32_MAX),
    PLAIN(O_DELTA, trigger.delta, 0, 1e30),
    PLAIN(O_WINDOW, trigger.window, 1, TRIGGER_WINDOW_MAX),
    PLAIN(O_MAX_LOCAL, trigger.most, 0, UINT32_MAX),
    PLAIN(O_SPREAD, spread, 1, SLEET_SPREAD_MAX),
    PLAIN(O_OUTER_LR, outer.rate, 0, 100),
    PLAIN(O_OUTER_MOMENTUM, outer.momentum, 0, 0.9999),
    PLAIN(O_SLICES, slices, 2, SLICES_MAX),
    PLAIN(O_SLICE_MEMBERS, slice_members, 1, NODES_MAX),
    PLAIN(O_BATCH_CONTROL, batches.on, 0, 0),
    PLAIN(O_GLOBAL_BATCH, batches.control.global, 1, NODES_MAX * BATCH_MAX),
    PLAIN(O_BATCH_MIN, batches.control.least, 1, BATCH_MAX),
    PLAIN(O_BATCH_MAX, batches.control.most, 1, BATCH_MAX),
    PLAIN(O_BATCH_EVERY, batches.every, 1, UINT32_MAX),
    PLAIN(O_DEADBAND, batches.control.deadband, 0, 1),
    PLAIN(O_TWICE, twice, 0, 1),
    PLAIN(O_EF_ALPHA, ef_alpha, 0, 1),
    PLAIN(O_EF_AVERAGE, ef_average, 0, UINT32_MAX),
    PLAIN(O_CONTROL, control, 0, 0),
    PLAIN(O_MIN_NODES, min_nodes, 1, NODES_MAX),
    PLAIN(O_MIN_WAIT, min_wait, 0, 86400),
    PLAIN(O_DEADLINE, deadline, 0.001, 3600),
    PLAIN(O_MAX_ASYNC, max_async, 1, UINT32_MAX),
    PLAIN(O_SIM, sim, 1, NODES_MAX),
    PLAIN(O_LOSS, loss, 0, 0.99),
    PLAIN(O_BURST, burst, 1, 1e6),
    PLAIN(O_NO_REPAIR, no_repair, 0, 0),
    PLAIN(O_CLIP, clip, 0, 1e6),
    PLAIN(O_BLOCKING, blocking, 0, 0),
    PLAIN(O_DIES, dies, 1, UINT32_MAX),
    PLAIN(O_LIE, lie, -1e6, 1e6),
    PLAIN(O_CHECKPOINT_EVERY, checkpoint_every, 1, UINT32_MAX),
    PLAIN(O_RESUME, resume, 0, 0),
    PLAIN(O_STOP_AT, stop_at, 1, UINT32_MAX),
    PLAIN(O_PUBLISH_EVERY, publish_every, 0, UINT32_MAX),
    PLAIN(O_STATE_WAIT, state_wait, 0, 86400),
    PLAIN(O_STEP_TIME, step_time, 0, 3600),
    PLAIN(O_JSON, json, 0, 0),
};

static bool take_plain(const struct plain *p, struct train_options *o, const char *v)
{
    void *field = (char *)o + p->field;
    switch (p->type) {
    case PLAIN_FLAG: return *(bool *)field = true;
    case PLAIN_TEXT: *(const char **)field = v; return true;
    case PLAIN_WHOLE32: return number_whole32(v, (uint32_t)p->least, (uint32_t)p->most, field);
    case PLAIN_WHOLE: return number_whole(v, (uint64_t)p->least, (uint64_t)p->most, field);
    case PLAIN_REAL: return number_real(v, p->least, p->most, field);
    }
    return false;
}

bool train_option_take(struct train_options *o, enum option_id id, const char *v)
{
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        if (plain[i].id == id)
            return take_plain(&plain[i], o, v);
    switch (id) {
    case O_RECIPE: return true; /* its options are taken already */
    case O_SHARDS: o->shards_text = v; return shard_parse(v, &o->shards);
    case O_SHARD: return shard_of(v, o);
    case O_MODEL: return (o->model = model_find(v)) != NULL;
    case O_HIDDEN: return hidden_list(v, o);
    case O_OPTIMIZER: return (o->optimizer.kind = optimizer_find(v)) != NULL;
    case O_STATISTICS: return pick(v, "local", "average", &o->local_statistics);
    case O_SCHEDULE: return schedule_find(v, &o->optimizer.schedule);
    case O_SEED: return number_whole(v, 0, UINT64_MAX, &o->seed);
    case O_AVERAGE: return average_of(v, &o->average) && o->average != AVERAGE_OUTER;
    case O_EVERY:
        if (strcmp(v, trigger_auto.name) != 0)
            return number_whole(v, 1, UINT32_MAX, &o->trigger.every);
        o->trigger.kind = &trigger_auto;
        return true;
    case O_TRIGGER: return (o->trigger.kind = trigger_find(v)) != NULL;
    case O_OUTER:
        o->outer.kind = strcmp(v, "nesterov") == 0 ? &optimizer_nesterov : NULL;
        return o->outer.kind || strcmp(v, "none") == 0;
    case O_ON_RESIZE: return on_resize_of(v, &o->batches.control.on_resize);
    case O_SLOW: return batch_parse_slow(v, &o->batches);
    case O_ESTIMATOR:
        o->forget = strcmp(v, "nodes") == 0;
        o->kind.estimator = o->forget ? SLEET_CARRY : (sleet_estimator)estimator_of(v);
        return o->kind.estimator != 0;
    case O_STRATEGY: return edges_strategy_of(&o->edges, &o->kind, v);
    case O_CODEC: return (o->codec = (sleet_codec)codec_of(v)) != 0;
    case O_KEEP: return keep_of(v, o);
    case O_EF: return ef_of(v, &o->ef);
    case O_QUORUM: return quorum_of(v, &o->quorum) || number_whole32(v, 1, NODES_MAX, &o->quorum);
    case O_STRAGGLE:
        o->uneven = strcmp(v, "uniform") == 0;
        o->straggle = 10;
        return o->uneven || number_real(v, 1, 1e6, &o->straggle);
    case O_SITES: return sites_of(v, &o->sites);
    case O_KILL: return kill_of(v, o);
    case O_CHECKPOINT: o->checkpoint = v; return *v != '\0';
    default: return false;
    }
}
