/* status.c - what an operator sees, as JSON. */
#include "loop.h"
#include <cjson/cJSON.h>
#include <inttypes.h>

#define STATE_HELD_MAX 72 /* nodes whose blobs can be held */
#define ROUNDS_MAX 64    /* rounds of a set in a reply */
#define SILENT_ROUNDS 3u /* rounds without a contribution until a peer is named */

static double num(uint64_t v) { return (double)v; }

static void add_id(cJSON *to, const char *key, uint64_t id)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, id);
    cJSON_AddStringToObject(to, key, text);
}

static void add_ms(cJSON *to, const char *key, sleet_duration d)
{
    if (d < 0)
        cJSON_AddNullToObject(to, key);
    else
        cJSON_AddNumberToObject(to, key, (double)d / 1e6);
}

static void add_side(cJSON *to, const char *key, const ledger_side *side)
{
    cJSON *o = cJSON_AddObjectToObject(to, key);
    cJSON_AddNumberToObject(o, "expected", num(side->expected));
#define LEDGER_X(field) cJSON_AddNumberToObject(o, #field, num(side->field));
    LEDGER_FATE_MAP(LEDGER_X)
#undef LEDGER_X
}

static void add_residual(cJSON *to, const engine_residual *r)
{
    cJSON *o = cJSON_AddObjectToObject(to, "residual");
    cJSON_AddNumberToObject(o, "norm", r->norm);
    cJSON_AddNumberToObject(o, "shed", r->shed_norm);
    cJSON_AddNumberToObject(o, "frozen", num(r->frozen));
    cJSON_AddNumberToObject(o, "returned", num(r->returned));
}

static void add_hex(cJSON *o, const char *key, uint64_t id)
{
    char text[24];
    snprintf(text, sizeof text, "%016" PRIx64, id);
    cJSON_AddStringToObject(o, key, id ? text : "");
}

static char *finish(cJSON *root)
{
    char *text = cJSON_PrintUnformatted(root);
    cJSON_Delete(root);
    return text;
}

static void add_known(cJSON *o, const char *key, double value) /* negative: not known */
{
    if (value < 0)
        cJSON_AddNullToObject(o, key);
    else
        cJSON_AddNumberToObject(o, key, value);
}

static void add_strategy(cJSON *o, const engine_set *e)
{
    cJSON_AddStringToObject(o, "strategy", e->strategy);
    cJSON_AddStringToObject(o, "strategy_next", e->next_strategy);
    cJSON_AddNumberToObject(o, "strategy_version", e->strategy_version);
    cJSON_AddNumberToObject(o, "strategy_from", num(e->strategy_from));
    add_id(o, "strategy_by", e->strategy_by);
}

static void add_late(cJSON *to, const engine_set *e)
{
    cJSON *o = cJSON_AddObjectToObject(to, "late");
    cJSON_AddNumberToObject(o, "waiting", e->late_waiting);
    cJSON_AddNumberToObject(o, "added", num(e->late_added));
    cJSON_AddNumberToObject(o, "dropped", num(e->late_dropped));
}

static void add_set(cJSON *list, const struct slot *s, int handle, const engine_set *e)
{
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "name", e->name);
    cJSON_AddNumberToObject(o, "handle", handle);
    cJSON_AddNumberToObject(o, "hash", e->hash);
    cJSON_AddNumberToObject(o, "tensors", e->tensors);
    cJSON_AddNumberToObject(o, "elements", num(e->elements));
    cJSON_AddBoolToObject(o, "attached", e->attached);
    cJSON_AddNumberToObject(o, "pid", s->owner ? s->owner->pid : 0);
    cJSON_AddBoolToObject(o, "joining", e->joining);
    cJSON_AddBoolToObject(o, "parked", e->parked);
    cJSON_AddBoolToObject(o, "paused", e->paused);
    cJSON_AddStringToObject(o, "idle", e->idle ? e->idle : "");
    cJSON_AddNumberToObject(o, "common", e->common);
    cJSON_AddNumberToObject(o, "missing", e->missing);
    add_hex(o, "lineage", e->lineage);
    add_hex(o, "parent", e->parent);
    cJSON_AddNumberToObject(o, "forked_at", num(e->forked_at));
    cJSON_AddBoolToObject(o, "schema_differs", e->schema_differs);
    cJSON_AddStringToObject(o, "schema", s->schema);
    cJSON_AddNumberToObject(o, "trainers", e->trainers);
    cJSON_AddNumberToObject(o, "round", num(e->round));
    cJSON_AddNumberToObject(o, "job_round", num(e->job_round));
    cJSON_AddNumberToObject(o, "rounds", num(e->rounds));
    cJSON_AddNumberToObject(o, "coverage", e->coverage);
    add_ms(o, "budget_ms", e->budget);
    add_ms(o, "longest_wait_ms", e->longest_wait);
    add_strategy(o, e);
    add_known(o, "consensus_distance", e->consensus_distance);
    add_known(o, "mixing", e->mixing);
    add_late(o, e);
    add_residual(o, &e->residual);
    add_side(o, "scatter", &e->scatter);
    add_side(o, "gather", &e->gather);
    cJSON_AddItemToArray(list, o);
}

static void add_counters(cJSON *root, const struct daemon *d)
{
    engine_counters n;
    engine_get_counters(d->engine, &n);
    cJSON *o = cJSON_AddObjectToObject(root, "datagrams");
#define ENGINE_X(field, help) cJSON_AddNumberToObject(o, #field, num(n.field));
    ENGINE_COUNTER_MAP(ENGINE_X)
#undef ENGINE_X
    cJSON_AddNumberToObject(o, "refused", num(d->udp.send_errors));
    o = cJSON_AddObjectToObject(root, "emulated");
    cJSON_AddStringToObject(o, "label", "emulated");
    cJSON_AddNumberToObject(o, "loss", d->config->loss);
    add_id(o, "seed", d->config->seed);
    cJSON_AddNumberToObject(o, "dropped", num(d->udp.emulated_drops));
}

static void add_memory(cJSON *root, const struct control *k)
{
    uint64_t shared = 0;
    for (int i = 0; i < ENGINE_SETS_MAX; i++)
        shared += k->slots[i].shm.bytes + k->states[i].shm.bytes;
    uint64_t shell = sizeof(struct daemon) + (uint64_t)UDP_BATCH * UDP_MESSAGE_MAX;
    for (int i = 0; i < CONTROL_CLIENTS_MAX; i++)
        shell += k->clients[i].out_cap + k->clients[i].def.cap * sizeof(engine_tensor);
    cJSON_AddNumberToObject(root, "memory_bound_bytes",
                            num(engine_memory_bound_bytes(k->d->engine) + shell + shared));
    cJSON_AddNumberToObject(root, "shared_bytes", num(shared));
}

static void add_silent(cJSON *root, const struct daemon *d)
{
    static engine_peer peers[ENGINE_PEERS_MAX];
    cJSON *list = cJSON_AddArrayToObject(root, "silent");
    uint32_t n = engine_get_peers(d->engine, peers, ENGINE_PEERS_MAX, d->now);
    for (uint32_t i = 0; i < n; i++) {
        char id[24];
        snprintf(id, sizeof id, "%" PRIu64, peers[i].node_id);
        if (peers[i].silent_rounds >= SILENT_ROUNDS && peers[i].node_id)
            cJSON_AddItemToArray(list, cJSON_CreateString(id));
    }
}

static void add_advertised(cJSON *root, const struct address_choice *a)
{
    cJSON *list = cJSON_AddArrayToObject(root, "advertised");
    for (unsigned f = 0; f < ADDRESS_FAMILIES; f++) {
        char text[80];
        address_format(&a->at[f], text);
        if (a->at[f].port)
            cJSON_AddItemToArray(list, cJSON_CreateString(text));
    }
}

char *status_json(const struct control *k)
{
    const struct daemon *d = k->d;
    const struct config *c = d->config;
    char version[32];
    cJSON *root = cJSON_CreateObject();
    snprintf(version, sizeof version, "%d.%d.%d", SLEET_VERSION_MAJOR, SLEET_VERSION_MINOR,
             SLEET_VERSION_PATCH);
    cJSON_AddStringToObject(root, "version", version);
    add_id(root, "node_id", c->node_id);
    cJSON_AddNumberToObject(root, "pid", getpid());
    cJSON_AddStringToObject(root, "job", c->text[CONFIG_NAME]);
    cJSON_AddStringToObject(root, "security", c->text[CONFIG_SECURITY]);
    cJSON_AddStringToObject(root, "job_key", d->keys ? d->keys->job_fingerprint : "");
    cJSON_AddStringToObject(root, "listen", d->udp.address);
    add_advertised(root, &d->advertised);
    cJSON_AddStringToObject(root, "control", k->path);
    cJSON_AddNumberToObject(root, "uptime_s", (double)time_since(d->now, d->started) / 1e9);
    cJSON_AddBoolToObject(root, "left", d->left);
    cJSON_AddBoolToObject(root, "evicted", d->evicted);
    cJSON_AddNumberToObject(root, "nodes_known", d->nodes_known);
    cJSON_AddNumberToObject(root, "nodes_alive", engine_nodes_alive(d->engine, d->now));
    cJSON_AddNumberToObject(root, "rate_mbit", c->rate_mbit);
    add_memory(root, k);
    cJSON_AddNumberToObject(root, "rcvbuf_bytes", d->udp.rcvbuf);
    cJSON_AddBoolToObject(root, "gso", d->udp.gso);
    cJSON_AddBoolToObject(root, "gro", d->udp.gro);
    add_counters(root, d);
    cJSON *sets = cJSON_AddArrayToObject(root, "sets");
    engine_set e;
    for (int i = 0; i < ENGINE_SETS_MAX; i++)
        if (engine_get_set(d->engine, i, &e, d->now))
            add_set(sets, &k->slots[i], i, &e);
    add_silent(root, d);
    return finish(root);
}

static void add_protection(cJSON *o, const engine_peer *p)
{
    cJSON_AddNumberToObject(o, "loss", p->loss);
    cJSON_AddNumberToObject(o, "loss_to", p->loss_told);
    cJSON_AddNumberToObject(o, "parity_rows", p->protection.rows);
    cJSON_AddStringToObject(o, "protection_why", protect_reason_text(p->protection.reason));
    add_ms(o, "repair_ms", p->protection.repair);
    add_ms(o, "parity_ms", p->protection.parity);
}

char *status_peers_json(const struct control *k)
{
    static engine_peer peers[ENGINE_PEERS_MAX];
    cJSON *root = cJSON_CreateObject(), *list = cJSON_AddArrayToObject(root, "peers");
    uint32_t n = engine_get_peers(k->d->engine, peers, ENGINE_PEERS_MAX, k->d->now);
    for (uint32_t i = 0; i < n; i++) {
        const engine_peer *p = &peers[i];
        char address[80];
        cJSON *o = cJSON_CreateObject();
        address_format(&p->addr, address);
        add_id(o, "node_id", p->node_id);
        cJSON_AddStringToObject(o, "address", address);
        cJSON_AddBoolToObject(o, "alive", p->alive);
        cJSON_AddBoolToObject(o, "left", p->left);
        cJSON_AddBoolToObject(o, "stopped", p->stopped);
        cJSON_AddStringToObject(o, "role", declared_role_text(p->declared.role));
        cJSON_AddStringToObject(o, "site", p->declared.site);
        cJSON_AddNumberToObject(o, "bandwidth", 1e3 * p->declared.kbit);
        cJSON_AddNumberToObject(o, "rate_mbit", (double)p->rate_bps / 1e6);
        cJSON_AddNumberToObject(o, "capacity", (double)p->capacity);
        cJSON_AddBoolToObject(o, "capacity_at_least", p->capacity_least);
        cJSON_AddNumberToObject(o, "keep", p->keep);
        add_ms(o, "silent_ms", p->silent);
        add_ms(o, "rtt_ms", p->rtt);
        cJSON_AddNumberToObject(o, "sent", num(p->sent));
        cJSON_AddNumberToObject(o, "received", num(p->received));
        cJSON_AddNumberToObject(o, "lost", num(p->lost));
        cJSON_AddNumberToObject(o, "round", num(p->round));
        cJSON_AddBoolToObject(o, "contributing", p->contributing);
        cJSON_AddNumberToObject(o, "gaps", num(p->gaps));
        add_protection(o, p);
        cJSON_AddNumberToObject(o, "silent_rounds", p->silent_rounds);
        cJSON_AddNumberToObject(o, "coverage", p->coverage);
        cJSON_AddNumberToObject(o, "clipped", num(p->clipped));
        cJSON_AddNumberToObject(o, "refused", num(p->refused));
        cJSON_AddNumberToObject(o, "far_rounds", num(p->far_rounds));
        cJSON_AddNumberToObject(o, "excess", p->excess);
        cJSON_AddNumberToObject(o, "disputed", num(p->disputed));
        cJSON_AddNumberToObject(o, "disputes", num(p->disputes));
        add_known(o, "drift", p->drift);
        cJSON_AddItemToArray(list, o);
    }
    return finish(root);
}

static void add_rounds(cJSON *to, const struct daemon *d, int handle)
{
    static engine_round rounds[ROUNDS_MAX];
    cJSON *list = cJSON_AddArrayToObject(to, "rounds");
    uint32_t n = engine_get_rounds(d->engine, handle, rounds, ROUNDS_MAX);
    for (uint32_t i = 0; i < n; i++) {
        const engine_round *r = &rounds[i];
        cJSON *o = cJSON_CreateObject();
        cJSON_AddNumberToObject(o, "round", num(r->round));
        cJSON_AddBoolToObject(o, "final", r->final);
        cJSON_AddBoolToObject(o, "joined", r->joined);
        cJSON_AddNumberToObject(o, "group_size", r->group_size);
        cJSON_AddNumberToObject(o, "flags", r->flags);
        cJSON_AddNumberToObject(o, "coverage", r->coverage);
        add_ms(o, "elapsed_ms", r->elapsed);
        cJSON_AddNumberToObject(o, "residual", r->residual);
        add_side(o, "scatter", &r->scatter);
        add_side(o, "gather", &r->gather);
        cJSON_AddItemToArray(list, o);
    }
}

char *status_strategy_json(const struct control *k, int handle)
{
    engine_set e;
    cJSON *root = cJSON_CreateObject();
    if (engine_get_set(k->d->engine, handle, &e, k->d->now)) {
        cJSON_AddStringToObject(root, "name", e.name);
        add_strategy(root, &e);
    }
    return finish(root);
}

char *status_rounds_json(const struct control *k, const char *name)
{
    cJSON *root = cJSON_CreateObject(), *sets = cJSON_AddArrayToObject(root, "sets");
    engine_set e;
    for (int i = 0; i < ENGINE_SETS_MAX; i++) {
        if (!engine_get_set(k->d->engine, i, &e, k->d->now) || (name && strcmp(name, e.name) != 0))
            continue;
        cJSON *o = cJSON_CreateObject();
        cJSON_AddStringToObject(o, "name", e.name);
        add_rounds(o, k->d, i);
        cJSON_AddItemToArray(sets, o);
    }
    return finish(root);
}

char *status_config_json(const struct control *k)
{
    static const struct {
        const char *section, *key;
    } keys[CONFIG_COUNT] = {
#define X(id, section, key, ...) {section, key},
        CONFIG_MAP(X)
#undef X
    };
    const struct config *c = k->d->config;
    char *file = NULL;
    size_t bytes;
    FILE *out = open_memstream(&file, &bytes);
    if (!out)
        return NULL;
    config_print(c, out);
    if (fclose(out) != 0) {
        free(file);
        return NULL;
    }
    cJSON *root = cJSON_CreateObject(), *list = cJSON_AddArrayToObject(root, "keys");
    for (int i = 0; i < CONFIG_COUNT; i++) {
        cJSON *o = cJSON_CreateObject();
        cJSON_AddStringToObject(o, "section", keys[i].section);
        cJSON_AddStringToObject(o, "key", keys[i].key);
        cJSON_AddStringToObject(o, "value", c->text[i]);
        cJSON_AddStringToObject(o, "from", c->origin[i]);
        cJSON_AddItemToArray(list, o);
    }
    cJSON_AddStringToObject(root, "file", file);
    free(file);
    return finish(root);
}

static void add_contributors(cJSON *to, const engine_explanation *x, uint64_t who)
{
    cJSON *list = cJSON_AddArrayToObject(to, "contributors");
    char text[24];
    for (uint32_t i = 0; i < x->people_n; i++) {
        snprintf(text, sizeof text, "%" PRIu64, x->people[i]);
        if (who >> i & 1)
            cJSON_AddItemToArray(list, cJSON_CreateString(text));
    }
}

static cJSON *explanation_json(const engine_explanation *x)
{
    static const char *const states[] = {
#define LANE_X(name, text) text,
        LANE_STATE_MAP(LANE_X)
#undef LANE_X
    };
    cJSON *o = cJSON_CreateObject();
    cJSON_AddNumberToObject(o, "round", num(x->round));
    cJSON_AddBoolToObject(o, "joined", x->joined);
    cJSON_AddBoolToObject(o, "closed", x->closed);
    cJSON_AddNumberToObject(o, "expected", x->expected);
    cJSON_AddNumberToObject(o, "flags", x->flags);
    cJSON *classes = cJSON_AddArrayToObject(o, "classes");
    for (uint32_t i = 0; i < x->classes; i++) {
        cJSON *c = cJSON_CreateObject();
        add_contributors(c, x, x->class[i].contributors);
        cJSON_AddNumberToObject(c, "elements", num(x->class[i].elements));
        cJSON_AddNumberToObject(c, "tensor", x->class[i].tensor);
        cJSON_AddNumberToObject(c, "first", num(x->class[i].first));
        cJSON_AddItemToArray(classes, c);
    }
    cJSON_AddNumberToObject(o, "other_elements", num(x->other_elements));
    cJSON *members = cJSON_AddArrayToObject(o, "members");
    for (uint32_t i = 0; i < x->lanes; i++) {
        cJSON *m = cJSON_CreateObject();
        add_id(m, "node_id", x->people[i]);
        cJSON_AddStringToObject(m, "state", states[x->lane[i].state]);
        add_side(m, "scatter", &x->lane[i].scatter);
        add_side(m, "gather", &x->lane[i].gather);
        cJSON_AddNumberToObject(m, "clipped", x->lane[i].clipped);
        cJSON_AddNumberToObject(m, "refused", x->lane[i].refused);
        cJSON_AddNumberToObject(m, "excess", x->lane[i].excess);
        cJSON_AddItemToArray(members, m);
    }
    return o;
}

char *status_explain_json(const struct control *k, uint64_t round)
{
    static engine_explanation x;
    cJSON *root = cJSON_CreateObject(), *sets = cJSON_AddArrayToObject(root, "sets");
    engine_set e;
    for (int i = 0; i < ENGINE_SETS_MAX; i++) {
        if (!engine_get_set(k->d->engine, i, &e, k->d->now) ||
            !engine_explain(k->d->engine, i, round ? round : e.round, &x))
            continue;
        cJSON *o = explanation_json(&x);
        cJSON_AddStringToObject(o, "name", e.name);
        cJSON_AddItemToArray(sets, o);
    }
    return finish(root);
}

static void add_holdings(cJSON *to, const struct daemon *d, int handle)
{
    static engine_holding held[STATE_HELD_MAX];
    cJSON *list = cJSON_AddArrayToObject(to, "members");
    uint32_t n = engine_get_holdings(d->engine, handle, held, STATE_HELD_MAX);
    for (uint32_t i = 0; i < n; i++) {
        cJSON *o = cJSON_CreateObject();
        add_id(o, "node_id", held[i].node_id);
        cJSON_AddNumberToObject(o, "version", num(held[i].state_version));
        cJSON_AddNumberToObject(o, "blob_version", num(held[i].blob_version));
        cJSON_AddNumberToObject(o, "blob_bytes", held[i].blob_bytes);
        cJSON_AddItemToArray(list, o);
    }
}

char *status_state_json(const struct control *k)
{
    cJSON *root = cJSON_CreateObject(), *sets = cJSON_AddArrayToObject(root, "sets");
    engine_state_info s;
    engine_set e;
    for (int i = 0; i < ENGINE_SETS_MAX; i++) {
        if (!engine_get_set(k->d->engine, i, &e, k->d->now) || !engine_get_state(k->d->engine, i, &s))
            continue;
        cJSON *o = cJSON_CreateObject();
        cJSON_AddStringToObject(o, "name", e.name);
        cJSON_AddNumberToObject(o, "version", num(s.version));
        cJSON_AddNumberToObject(o, "bytes", num(s.bytes));
        cJSON_AddBoolToObject(o, "hashing", s.hashing);
        cJSON_AddNumberToObject(o, "waiting_blocks", s.waiting);
        cJSON_AddNumberToObject(o, "served_bytes", num(s.served_bytes));
        cJSON_AddBoolToObject(o, "fetching", s.fetching);
        cJSON_AddNumberToObject(o, "fetch_version", num(s.fetch_version));
        cJSON_AddNumberToObject(o, "fetch_donors", s.fetch_donors);
        cJSON_AddNumberToObject(o, "fetch_coverage", s.fetch_coverage);
        add_holdings(o, k->d, i);
        cJSON_AddItemToArray(sets, o);
    }
    return finish(root);
}
