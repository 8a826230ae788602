/* forge.h - a relay on the way that reads and rewrites datagrams (`security = none`). */
#ifndef TESTS_SIM_FORGE_H
#define TESTS_SIM_FORGE_H
#include "helpers.h"
#include "wire/wire.h"
#include <xxhash.h>

/* A datagram taken apart; change what you like and put it together again. */
struct opened {
    struct wire_header head;
    size_t len; /* bytes of the body */
    uint8_t body[WIRE_BODY_MAX];
};

static inline bool forge_open(const struct sim_datagram *d, struct opened *o)
{
    const uint8_t *body;
    if (datagram_open(d->data, d->len, &o->head, &body, &o->len) != SLEET_OK)
        return false;
    memcpy(o->body, body, o->len);
    return true;
}

/* With a right tag. */
static inline void forge_seal(struct sim_datagram *d, const struct opened *o)
{
    memcpy(d->data + WIRE_HEADER_BYTES, o->body, o->len);
    d->len = (uint32_t)datagram_seal(d->data, o->len, &o->head);
}

/* A right tag for whatever stands before it. */
static inline void forge_retag(struct sim_datagram *d)
{
    if (d->len < WIRE_TAG_BYTES)
        return;
    XXH128_hash_t tag = XXH3_128bits(d->data, d->len - WIRE_TAG_BYTES);
    memcpy(d->data + d->len - WIRE_TAG_BYTES, &tag, sizeof tag); /* low half first */
}

/* ---- a small cluster, whose rounds are exact ---- */

static const uint64_t forge_counts[] = {5000, 17};
#define FORGE_NODES 3

static inline cluster *forged_cluster(bool sealed)
{
    struct sim_config config = {
        .nodes = FORGE_NODES, .seed = test_seed(), .link = CLEAN_LINK, .sealed = sealed};
    return ready_cluster(&config, forge_counts, 2);
}

/* A round on new values; the mean of all in exactly these bits. */
static inline bool exact_round(cluster *c, sleet_rng *rng)
{
    static float mean[5017];
    sleet_round_options options = {.deadline_ns = MS(500)};
    fill_grid(c, rng);
    for (uint64_t k = 0; k < cluster_elements(c); k++) {
        double sum = 0;
        for (uint32_t i = 0; i < FORGE_NODES; i++)
            sum += (double)cluster_values(c, i)[k];
        mean[k] = (float)(sum / FORGE_NODES);
    }
    bool ok = cluster_round(c, &options) && all_complete(c) && identical(c) &&
              memcmp(mean, cluster_values(c, 0), cluster_elements(c) * sizeof(float)) == 0;
    cluster_idle(c, MS(5));
    return ok;
}

static inline engine_counters all_counters(cluster *c)
{
    engine_counters sum = {0};
    for (uint32_t i = 0; i < nodes_of(c); i++) {
        engine_counters k;
        engine_get_counters(sim_engine(cluster_sim(c), i), &k);
#define ADD(field, help) sum.field += k.field;
        ENGINE_COUNTER_MAP(ADD)
#undef ADD
    }
    return sum;
}

static inline void finish(cluster *c)
{
    CHECK_EQ(cluster_overdue(c), 0);
    CHECK(ledger_balances(c));
    cluster_free(c);
}

/* ---- what was heard on the way, to be sent again ---- */

#define KEPT 4096

struct tape {
    struct sim_datagram *kept;
    uint32_t n;
};

static inline void record(sim *s, const struct sim_datagram *d, void *arg)
{
    struct tape *t = arg;
    t->kept[t->n++ % KEPT] = *d;
    sim_relay(s, d, 0);
}

static inline void play(cluster *c, const struct tape *t)
{
    uint32_t n = t->n < KEPT ? t->n : KEPT;
    for (uint32_t i = 0; i < n; i++)
        sim_relay(cluster_sim(c), &t->kept[i], US(i));
}
#endif
