/* What a set is to its rounds, and which choices go together: one table for libsleet, the daemon
 * and the engine.  Header only, so that libsleet needs nothing else of the core. */
#ifndef TENSOR_KIND_H
#define TENSOR_KIND_H
#include "sleet.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define FRAGMENT_ELEMENTS 288 /* but in a tensor's last fragment */
#define RUN_FRAGMENTS 8       /* the unit of ownership */

/* Fragments of a tensor of so many elements. */
static inline uint64_t kind_fragments(uint64_t count)
{
    return count / FRAGMENT_ELEMENTS + (count % FRAGMENT_ELEMENTS != 0);
}

struct set_kind {
    sleet_payload payload;
    sleet_estimator estimator; /* in this and what follows 0 stands for the default */
    sleet_update update;
    sleet_exchange exchange;
    sleet_strategy strategy;
    uint16_t numbers[2]; /* the strategy's; 0: its usual ones */
    uint8_t spread; /* rounds in which a fragment is averaged once; resolved 1: in each */
};

/* The result is added to something; what is missing of it is 0. */
static inline bool kind_additive(const struct set_kind *k)
{
    return k->payload != SLEET_MODEL;
}

/* Is a tensor of so many elements, but of state, spread over rounds?  It is where each round has a run. */
static inline bool kind_spreads(const struct set_kind *k, uint64_t count)
{
    return k->spread > 1 && kind_fragments(count) > (k->spread - 1u) * RUN_FRAGMENTS;
}

#define KIND_RANK_MAX 32 /* the work on an edge's sides, in one go, is of its square */

/* The rank of what neighbours send of the differences of their matrices; 0: they send all of their values. */
static inline uint32_t kind_rank(const struct set_kind *k)
{
    return k->strategy == SLEET_RING || k->strategy == SLEET_PAIRS ? k->numbers[0] : 0;
}

static inline struct set_kind kind_resolved(struct set_kind k)
{
    k.exchange = k.exchange ? k.exchange : SLEET_ALL_REDUCE;
    k.strategy = k.strategy ? k.strategy : SLEET_RPS;
    k.update = k.update ? k.update : SLEET_LINEAR;
    k.spread = k.spread ? k.spread : 1;
    if (!k.estimator)
        k.estimator = k.exchange == SLEET_REDUCE_SCATTER ? SLEET_EXPECTED : SLEET_RATIO;
    return k;
}

/* Text and number of the choices; NULL and 0 where there is none. */
#define KIND_WORDS(what, MAP)                                                               \
    static inline const char *what##_text(int value)                                        \
    {                                                                                       \
        return MAP(KIND_TEXT) NULL;                                                         \
    }                                                                                       \
    static inline int what##_of(const char *word)                                           \
    {                                                                                       \
        return MAP(KIND_VALUE) 0;                                                           \
    }
#define KIND_TEXT(name, number, text, ...) value == (number) ? (text) :
#define KIND_VALUE(name, number, text, ...) kind_same(word, text) ? (number) :

static inline bool kind_same(const char *a, const char *b)
{
    for (; *a && *a == *b; a++)
        b++;
    return *a == *b;
}

KIND_WORDS(payload, SLEET_PAYLOAD_MAP)
KIND_WORDS(estimator, SLEET_ESTIMATOR_MAP)
KIND_WORDS(update, SLEET_UPDATE_MAP)
KIND_WORDS(exchange, SLEET_EXCHANGE_MAP)
KIND_WORDS(codec, SLEET_CODEC_MAP)
KIND_WORDS(strategy, SLEET_STRATEGY_MAP)

#define STRATEGY_WORD 48 /* bytes of "NAME:A,B" with its NUL, at most */

/* The strategy of "NAME", "NAME:A" or "NAME:A,B", A and B from 1 to 65535; false: it is none. */
static inline bool kind_strategy_of(struct set_kind *k, const char *word)
{
    char name[STRATEGY_WORD];
    size_t n = 0;
    while (word[n] && word[n] != ':')
        n++;
    if (n >= sizeof name)
        return false;
    memcpy(name, word, n);
    name[n] = 0;
    k->strategy = (sleet_strategy)strategy_of(name);
    memset(k->numbers, 0, sizeof k->numbers);
    const char *p = word + n;
    for (int i = 0; *p; i++) {
        uint32_t v = 0;
        if (i == 2 || *p++ != (i ? ',' : ':') || *p < '1' || *p > '9')
            return false;
        for (; *p >= '0' && *p <= '9' && v <= UINT16_MAX; p++)
            v = v * 10 + (uint32_t)(*p - '0');
        if (v > UINT16_MAX)
            return false;
        k->numbers[i] = (uint16_t)v;
    }
    return k->strategy != 0;
}

/* The reverse, into `out`. */
static inline const char *kind_strategy_word(const struct set_kind *k, char out[static STRATEGY_WORD])
{
    const char *name = strategy_text((int)k->strategy);
    char *p = out + strlen(strcpy(out, name ? name : "unknown"));
    for (int i = 0; i < 2 && k->numbers[i]; i++) {
        char digits[8], *d = digits + sizeof digits;
        for (uint32_t v = k->numbers[i]; v; v /= 10)
            *--d = (char)('0' + v % 10);
        *p++ = i ? ',' : ':';
        memcpy(p, d, (size_t)(digits + sizeof digits - d));
        p += digits + sizeof digits - d;
    }
    *p = 0;
    return out;
}

/* How many numbers it takes. */
static inline int kind_strategy_numbers(sleet_strategy strategy)
{
#define SLEET_X(name, value, text, numbers) strategy == (name) ? (int)sizeof numbers / 2: /* a letter each */
    return SLEET_STRATEGY_MAP(SLEET_X) 0;
#undef SLEET_X
}

#define KIND_BYTES 10

/* A resolved kind as it is hashed, and travels. */
static inline void kind_put(uint8_t out[static KIND_BYTES], const struct set_kind *k)
{
    out[0] = (uint8_t)k->payload;
    out[1] = (uint8_t)k->estimator;
    out[2] = (uint8_t)k->update;
    out[3] = (uint8_t)k->exchange;
    out[4] = (uint8_t)k->strategy;
    for (int i = 0; i < 2; i++) {
        out[5 + 2 * i] = (uint8_t)k->numbers[i];
        out[6 + 2 * i] = (uint8_t)(k->numbers[i] >> 8);
    }
    out[9] = k->spread;
}

/* The reverse; it may be none that is known. */
static inline struct set_kind kind_get(const uint8_t in[static KIND_BYTES])
{
    return (struct set_kind){.payload = (sleet_payload)in[0],
                             .estimator = (sleet_estimator)in[1],
                             .update = (sleet_update)in[2],
                             .exchange = (sleet_exchange)in[3],
                             .strategy = (sleet_strategy)in[4],
                             .numbers = {(uint16_t)(in[5] | in[6] << 8), (uint16_t)(in[7] | in[8] << 8)},
                             .spread = in[9]};
}

/* NULL, or in one sentence what does not go together in a resolved kind. */
static inline const char *kind_refuse(const struct set_kind *k)
{
    const struct {
        bool wrong;
        const char *why;
    } rules[] = {
        {!payload_text((int)k->payload), "unknown payload"},
        {!estimator_text((int)k->estimator), "unknown estimator"},
        {!update_text((int)k->update), "unknown update"},
        {!exchange_text((int)k->exchange), "unknown exchange"},
        {!strategy_text((int)k->strategy), "unknown strategy"},
        {(k->numbers[0] && kind_strategy_numbers(k->strategy) < 1) ||
             (k->numbers[1] && kind_strategy_numbers(k->strategy) < 2),
         "the strategy does not take so many numbers"},
        {(k->strategy == SLEET_MOSHPIT || k->strategy == SLEET_RANDOM || k->strategy == SLEET_HIERARCHICAL) &&
             (k->numbers[0] == 1 || k->numbers[0] > 32),
         "strategies moshpit, random and hierarchical have groups of 2 to 32 members: moshpit:4"},
        {kind_rank(k) > KIND_RANK_MAX,
         "strategies ring and pairs send differences of rank 1 to 32: ring:4"},
        {k->strategy == SLEET_CROSSOVER && (k->numbers[0] > 64 || k->numbers[1] == 1 || k->numbers[1] > 32),
         "strategy crossover has 64 segments at most, in groups of 2 to 32 members if any: crossover:16"},
        {k->strategy == SLEET_GRAPH && !k->numbers[0] != !k->numbers[1],
         "strategy graph has no numbers, or two, which its list of edges gives: graph:A,B"},
        {k->strategy != SLEET_RPS && kind_additive(k),
         "only strategy rps averages among all nodes in each round: what is added to replicas needs it, the "
         "others go with payload model"},
        {k->strategy != SLEET_RPS && k->exchange != SLEET_ALL_REDUCE,
         "owners stay only among all nodes: exchange reduce-scatter and all-gather go with strategy rps"},
        {k->spread > SLEET_SPREAD_MAX, "spread is 1 to 64 rounds"},
        {k->spread > 1 && (kind_additive(k) || k->exchange != SLEET_ALL_REDUCE),
         "spread needs payload model and exchange all-reduce: of what is added each round needs all"},
        {k->spread > 1 && k->strategy != SLEET_RPS,
         "spread goes with strategy rps: where neighbours change with the round, a fragment would meet the same few"},
        {!kind_additive(k) && k->estimator != SLEET_RATIO,
         "payload model goes with estimator ratio: a model is averaged over what arrived, never scaled"},
        {k->estimator == SLEET_CARRY && k->update == SLEET_NONLINEAR,
         "estimator carry needs update linear: what it carries over comes rounds late"},
        {!kind_additive(k) && k->exchange == SLEET_REDUCE_SCATTER,
         "exchange reduce-scatter needs a payload that is added: gradient, delta or pseudo-gradient"},
        {kind_additive(k) && k->exchange == SLEET_ALL_GATHER,
         "exchange all-gather needs payload model: owners hand out absolute values"},
    };
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        if (rules[i].wrong)
            return rules[i].why;
    return NULL;
}

/* The same of a tensor's codec in a set of that kind. */
static inline const char *kind_refuse_codec(const struct set_kind *k, sleet_dtype dtype, int codec)
{
    bool rotated = codec >= SLEET_CODEC_ROT1 && codec <= SLEET_CODEC_ROT4;
    bool coarse = rotated || codec == SLEET_CODEC_TRUNC1 || codec == SLEET_CODEC_TOPK;
    if (!codec_text(codec))
        return "unknown codec";
    if (coarse && !kind_additive(k))
        return "codecs coarser than i8 (trunc1, rot1 to rot4, topk) need a payload that is added: "
               "gradient, delta or pseudo-gradient";
    if (rotated && k->exchange != SLEET_ALL_REDUCE)
        return "codecs rot1 to rot4 are turned back in groups of 64 fragments, of which an owner that keeps its "
               "share has some: use exchange all-reduce, or i8";
    if (rotated && k->estimator == SLEET_CARRY)
        return "estimator carry keeps what was not averaged as it is, codecs rot1 to rot4 rotate it: "
               "use expected or ratio";
    if (kind_rank(k) && codec != SLEET_CODEC_F32)
        return "differences of low rank travel as f32: use that codec, or the strategy without a rank";
    if (dtype == SLEET_F32_STATE && codec != SLEET_CODEC_F32)
        return "state (f32-state) travels as f32, so that all nodes come to have equal bits";
    return NULL;
}
#endif
