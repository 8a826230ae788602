#include "sim/sim.h"
#include "sim/events.h"
#include "sim/nat.h"
#include "session/keys.h"
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#define SIM_PORT 7000
#define FROZEN_MAX 400
#define PUMP_TURNS_MAX 8
#define STUCK_STEP US(1) /* an engine that is still due after being pumped comes again then */

struct sim_packet {
    struct sim_packet *next; /* in a frozen node's queue */
    sleet_addr from;         /* as the receiver sees it */
    uint32_t len;
    uint8_t data[];
};

struct node {
    engine *engine; /* NULL: killed */
    sleet_addr addr; /* its own idea of it */
    uint64_t id;
    uint8_t secret[32], job_key[32]; /* keys of a sealed node; the job's as it saved it */
    struct sim_nat nat;
    uint32_t rebinds;
    uint64_t boots, halts;
    bool frozen;
    sleet_time wake_at; /* of the one live wake; never: none */
    uint64_t wake_generation;
    struct sim_packet *held, **held_end; /* while frozen */
    uint32_t held_count, held_dropped;
};

struct sim {
    struct sim_config config;
    sleet_rng rng;
    sleet_time now;
    struct sim_events events;
    struct node *nodes;
    sleet_addr *peers;       /* room for one engine's */
    struct sim_path common;  /* of all pairs that have no path of their own */
    struct sim_path **paths; /* nodes x nodes, [from * nodes + to], or NULL */
    void (*on_event)(sim *, uint32_t, const engine_event *, void *);
    void *on_event_arg;
    void (*relay)(sim *, const struct sim_datagram *, void *);
    void *relay_arg;
    struct sim_datagram passing;
    struct sim_totals totals;
    engine_burst burst;
};

/* ---- paths -------------------------------------------------------------- */

/* A path of its own for the pair, NULL when out of memory. */
static struct sim_path *own_path(sim *s, size_t pair)
{
    if (!s->paths[pair] && (s->paths[pair] = calloc(1, sizeof **s->paths)))
        s->paths[pair]->link = s->common.link;
    return s->paths[pair];
}

/* A link that remembers something between datagrams is one for each pair. */
static struct sim_path *path_of(sim *s, uint32_t from, uint32_t to)
{
    size_t pair = (size_t)from * s->config.nodes + to;
    bool remembers = s->common.link.rate_bps || s->common.link.ge_p > 0;
    if (!s->paths[pair] && !remembers)
        return &s->common;
    return own_path(s, pair);
}

void sim_set_link(sim *s, uint32_t from, uint32_t to, const struct sim_link *link)
{
    uint32_t n = s->config.nodes;
    bool all = from == SIM_ALL && to == SIM_ALL;
    if (all)
        s->common.link = *link;
    for (uint32_t i = from == SIM_ALL ? 0 : from; i < (from == SIM_ALL ? n : from + 1); i++)
        for (uint32_t j = to == SIM_ALL ? 0 : to; j < (to == SIM_ALL ? n : to + 1); j++) {
            size_t pair = (size_t)i * n + j;
            struct sim_path *path = all ? s->paths[pair] : own_path(s, pair);
            if (path)
                path->link = *link;
        }
}

/* ---- packets ------------------------------------------------------------ */

static void packets_free(struct sim_packet *p)
{
    while (p) {
        struct sim_packet *next = p->next;
        free(p);
        p = next;
    }
}

static void launch(sim *s, uint32_t from, uint32_t to, const sleet_addr *seen, const uint8_t *data,
                   uint32_t len, sleet_duration later)
{
    struct sim_path *path = path_of(s, from, to);
    if (!path)
        return;
    struct sim_fate fate = link_pass(path, &s->rng, len, s->now);
    for (uint32_t i = 0; i < fate.copies; i++) {
        struct sim_packet *p = malloc(sizeof *p + len);
        if (!p)
            return;
        p->from = *seen;
        p->len = len;
        memcpy(p->data, data, len);
        if (i == 0 && fate.flip >= 0)
            p->data[fate.flip / 8] ^= (uint8_t)(1u << (fate.flip % 8));
        struct sim_event e = {
            .at = time_add(fate.at[i], later), .kind = SIM_ARRIVAL, .node = to, .packet = p};
        if (!events_push(&s->events, e))
            free(p);
    }
}

/* fd00:: is a node's own network, fd01:: the outside of its box, if it has one. */
static sleet_addr address_of(uint32_t node, bool outside, uint16_t port)
{
    sleet_addr a = {.ip = {0xfd, outside}, .port = port};
    a.ip[14] = (uint8_t)((node + 1) >> 8);
    a.ip[15] = (uint8_t)(node + 1);
    return a;
}

static const sleet_addr *outside_of(const struct node *n)
{
    return n->nat.on ? &n->nat.outside : &n->addr;
}

/* The node that a datagram from that address reaches there; SIM_ALL: none. */
static uint32_t route(const sim *s, const sleet_addr *from, const sleet_addr *to)
{
    uint32_t i = (uint32_t)(to->ip[14] << 8 | to->ip[15]) - 1; /* see address_of() */
    if (i >= s->config.nodes || !addr_equal(outside_of(&s->nodes[i]), to))
        return SIM_ALL;
    return !s->nodes[i].nat.on || nat_lets_in(&s->nodes[i].nat, from) ? i : SIM_ALL;
}

void sim_on_datagram(sim *s, void (*fn)(sim *, const struct sim_datagram *, void *), void *arg)
{
    s->relay = fn;
    s->relay_arg = arg;
}

void sim_relay(sim *s, const struct sim_datagram *d, sleet_duration later)
{
    if (d->len > 0 && d->len <= sizeof d->data)
        launch(s, d->from, d->to, &d->seen, d->data, d->len, later);
}

static void give(sim *s, uint32_t from, uint32_t to, const uint8_t *data, uint32_t len)
{
    const sleet_addr *seen = outside_of(&s->nodes[from]);
    if (!s->relay) {
        launch(s, from, to, seen, data, len, 0);
        return;
    }
    s->passing = (struct sim_datagram){.from = from, .to = to, .seen = *seen, .len = len};
    memcpy(s->passing.data, data, len);
    s->relay(s, &s->passing, s->relay_arg);
}

static void transmit(sim *s, uint32_t from, const engine_burst *b)
{
    struct node *n = &s->nodes[from];
    if (n->nat.on && !nat_note_sent(&n->nat, &b->to))
        return;
    uint32_t to = route(s, outside_of(n), &b->to);
    for (uint32_t i = 0, off = 0; i < b->count && off < b->len; i++, off += b->segment) {
        uint32_t len = b->len - off < b->segment ? b->len - off : b->segment;
        s->totals.sent++;
        s->totals.bytes += len;
        s->totals.unrouted += to == SIM_ALL;
        if (to != SIM_ALL && len > 0 && len <= ENGINE_DATAGRAM_MAX)
            give(s, from, to, b->data + off, len);
    }
}

/* ---- nodes -------------------------------------------------------------- */

static void schedule_wake(sim *s, uint32_t node)
{
    struct node *n = &s->nodes[node];
    sleet_time due = engine_deadline(n->engine);
    if (time_is_never(due))
        return;
    if (!time_before(s->now, due))
        due = time_add(s->now, STUCK_STEP);
    if (!time_before(due, n->wake_at))
        return; /* the live one comes first and looks again */
    struct sim_event e = {
        .at = due, .kind = SIM_WAKE, .node = node, .generation = ++n->wake_generation};
    if (events_push(&s->events, e))
        n->wake_at = due;
}

static void pump(sim *s, uint32_t node)
{
    struct node *n = &s->nodes[node];
    for (int turn = 0; turn < PUMP_TURNS_MAX && n->engine && !n->frozen; turn++) {
        if (!time_before(s->now, engine_deadline(n->engine)))
            engine_expire(n->engine, s->now);
        while (engine_send(n->engine, &s->burst, s->now) > 0)
            transmit(s, node, &s->burst);
        engine_event event;
        while (n->engine && engine_poll(n->engine, &event)) {
            if (event.type == EVENT_JOB_KEY)
                memcpy(n->job_key, event.job_key, sizeof n->job_key);
            if (s->on_event)
                s->on_event(s, node, &event, s->on_event_arg);
        }
        if (n->engine && time_before(s->now, engine_deadline(n->engine)))
            break;
    }
    if (n->engine && !n->frozen)
        schedule_wake(s, node);
}

static void fill_secret(uint8_t out[32], uint64_t seed)
{
    sleet_rng rng = {mix64(seed)};
    for (uint32_t i = 0; i < 4; i++) {
        uint64_t word = rng_next(&rng);
        memcpy(out + 8 * i, &word, sizeof word);
    }
}

static int by_id(const void *a, const void *b)
{
    const struct node *x = a, *y = b;
    return (x->id > y->id) - (x->id < y->id);
}

/* Without keys node i has the id i + 1; with them ids ascend with the nodes all the same. */
static void name_nodes(sim *s)
{
    uint32_t n = s->config.nodes;
    for (uint32_t i = 0; i < n; i++) {
        uint8_t public_key[KEY_BYTES];
        s->nodes[i].id = i + 1;
        if (!s->config.sealed)
            continue;
        fill_secret(s->nodes[i].job_key, s->config.seed);
        fill_secret(s->nodes[i].secret, s->config.seed + 0x10000 + i);
        key_public(public_key, s->nodes[i].secret);
        s->nodes[i].id = key_node_id(public_key);
    }
    qsort(s->nodes, n, sizeof *s->nodes, by_id);
}

static engine *node_engine(sim *s, uint32_t node)
{
    const struct sim_config *c = &s->config;
    engine_config config = {.node_id = s->nodes[node].id,
                            .boot_id = ((uint64_t)(node + 1) << 32) + ++s->nodes[node].boots,
                            .seed = mix64(c->seed ^ mix64(node + 1)),
                            .job = "sim",
                            .window = c->window,
                            .absent_rounds = c->absent_rounds,
                            .rate_bps = c->rate_bps,
                            .ping = c->ping,
                            .budget_min = c->budget_min,
                            .budget_max = c->budget_max,
                            .budget_first = c->budget_first,
                            .join_wait = c->join_wait,
                            .keep_bytes = c->keep_bytes,
                            .repair_off = c->repair_off,
                            .backup_off = c->backup_off,
                            .edges_one_sided = c->edges_one_sided,
                            .parity_off = c->parity_off,
                            .repair_late = c->repair_late,
                            .on_partition = c->part_continue ? PARTITION_CONTINUE : PARTITION_PARK,
                            .merge_rounds = c->merge_rounds,
                            .go_on_isolated = c->go_on_isolated,
                            .clip = c->clip,
                            .edges = c->edges,
                            .open_join = c->open_join,
                            .log = c->log};
    if (c->each) {
        config.declared = c->each[node].declared;
        config.rate_bps = c->each[node].rate_bps ? c->each[node].rate_bps : c->rate_bps;
    }
    if (c->sealed) {
        config.security = ENGINE_SEALED;
        memcpy(config.job_key, s->nodes[node].job_key, sizeof config.job_key);
        config.has_operator = c->operator_key != NULL;
        if (c->operator_key)
            memcpy(config.operator_key, c->operator_key, sizeof config.operator_key);
        fill_secret(config.secret_seed, c->seed ^ config.boot_id);
        memcpy(config.node_secret, s->nodes[node].secret, sizeof config.node_secret);
    }
    for (uint32_t i = 0; i < (c->seeds ? c->seeds : c->nodes); i++)
        if (i != node)
            s->peers[config.peer_count++] = s->nodes[i].addr;
    config.peers = s->peers;
    config.members_max = c->nodes + 8;
    if (config.members_max > ENGINE_PEERS_MAX + 1)
        config.members_max = ENGINE_PEERS_MAX + 1;
    return engine_new(&config, s->now);
}

static void deliver(sim *s, uint32_t node, struct sim_packet *p)
{
    s->totals.delivered++;
    engine_recv(s->nodes[node].engine, &p->from, p->data, p->len, s->now);
    free(p);
}

static void arrive(sim *s, uint32_t node, struct sim_packet *p)
{
    struct node *n = &s->nodes[node];
    if (!n->engine) {
        s->totals.lost++;
        free(p);
    } else if (!n->frozen) {
        deliver(s, node, p);
        pump(s, node);
    } else if (n->held_count == FROZEN_MAX) {
        n->held_dropped++;
        s->totals.frozen_dropped++;
        free(p);
    } else {
        p->next = NULL;
        *n->held_end = p;
        n->held_end = &p->next;
        n->held_count++;
    }
}

static struct sim_packet *take_held(struct node *n)
{
    struct sim_packet *p = n->held;
    n->held = NULL;
    n->held_end = &n->held;
    n->held_count = n->held_dropped = 0;
    return p;
}

/* ---- life --------------------------------------------------------------- */

sim *sim_new(const struct sim_config *config)
{
    if (config->nodes == 0 || config->nodes > SIM_NODES_MAX)
        return NULL;
    sim *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->config = *config;
    s->rng.state = mix64(config->seed);
    s->common.link = config->link;
    s->paths = calloc((size_t)config->nodes * config->nodes, sizeof *s->paths);
    s->nodes = calloc(config->nodes, sizeof *s->nodes);
    s->peers = calloc(config->nodes, sizeof *s->peers);
    if (!s->paths || !s->nodes || !s->peers) {
        sim_free(s);
        return NULL;
    }
    if (config->sealed && sodium_init() < 0) { /* looks at the CPU: faster ciphers */
        sim_free(s);
        return NULL;
    }
    name_nodes(s);
    for (uint32_t i = 0; i < config->nodes; i++) {
        s->nodes[i].addr = address_of(i, false, SIM_PORT);
        s->nodes[i].held_end = &s->nodes[i].held;
    }
    for (uint32_t i = 0; i < config->nodes; i++) {
        if (!sim_restart(s, i)) {
            sim_free(s);
            return NULL;
        }
    }
    return s;
}

void sim_free(sim *s)
{
    if (!s)
        return;
    while (events_first(&s->events)) {
        struct sim_event e = events_pop(&s->events);
        if (e.kind == SIM_ARRIVAL)
            free(e.packet);
    }
    events_free(&s->events);
    for (uint32_t i = 0; s->nodes && i < s->config.nodes; i++) {
        packets_free(s->nodes[i].held);
        nat_fini(&s->nodes[i].nat);
        engine_free(s->nodes[i].engine);
    }
    for (size_t i = 0; s->paths && i < (size_t)s->config.nodes * s->config.nodes; i++)
        free(s->paths[i]);
    free(s->nodes);
    free(s->peers);
    free(s->paths);
    free(s);
}

engine *sim_engine(sim *s, uint32_t node)
{
    return s->nodes[node].engine;
}

uint64_t sim_node_id(const sim *s, uint32_t node)
{
    return s->nodes[node].id;
}

uint32_t sim_nodes(const sim *s)
{
    return s->config.nodes;
}

sleet_time sim_now(const sim *s)
{
    return s->now;
}

void sim_freeze(sim *s, uint32_t node, bool frozen)
{
    struct node *n = &s->nodes[node];
    if (n->frozen == frozen)
        return;
    n->frozen = frozen;
    n->halts += frozen;
    if (frozen)
        return;
    uint32_t dropped = n->held_dropped;
    struct sim_packet *p = take_held(n);
    if (dropped && n->engine)
        engine_overflow(n->engine, dropped, s->now);
    while (p) {
        struct sim_packet *next = p->next;
        if (n->engine)
            deliver(s, node, p);
        else
            free(p);
        p = next;
    }
    sim_kick(s, node);
}

void sim_rebind(sim *s, uint32_t node)
{
    struct node *n = &s->nodes[node];
    sleet_addr outside = address_of(node, true, (uint16_t)(20000 + n->rebinds++));
    nat_rebind(&n->nat, &outside);
}

bool sim_frozen(const sim *s, uint32_t node)
{
    return s->nodes[node].frozen;
}

uint64_t sim_halts(const sim *s, uint32_t node)
{
    return s->nodes[node].halts;
}

void sim_kill(sim *s, uint32_t node)
{
    struct node *n = &s->nodes[node];
    n->halts += n->engine != NULL;
    engine_free(n->engine);
    n->engine = NULL;
    n->frozen = false;
    n->wake_at = TIME_NEVER;
    n->wake_generation++;
    for (struct sim_packet *p = take_held(n); p;) {
        struct sim_packet *next = p->next;
        free(p);
        s->totals.lost++;
        p = next;
    }
}

bool sim_restart(sim *s, uint32_t node)
{
    sim_kill(s, node);
    s->nodes[node].engine = node_engine(s, node);
    if (!s->nodes[node].engine)
        return false;
    sim_kick(s, node);
    return true;
}

void sim_at(sim *s, sleet_time at, void (*fn)(sim *, void *), void *arg)
{
    struct sim_event e = {.at = time_before(at, s->now) ? s->now : at, .kind = SIM_CALL};
    e.call.fn = fn;
    e.call.arg = arg;
    events_push(&s->events, e);
}

void sim_on_event(sim *s, void (*fn)(sim *, uint32_t, const engine_event *, void *), void *arg)
{
    s->on_event = fn;
    s->on_event_arg = arg;
}

void sim_kick(sim *s, uint32_t node)
{
    events_push(&s->events, (struct sim_event){.at = s->now, .kind = SIM_KICK, .node = node});
}

/* ---- time --------------------------------------------------------------- */

static void wake(sim *s, uint32_t node, uint64_t generation)
{
    struct node *n = &s->nodes[node];
    if (generation != n->wake_generation)
        return;
    n->wake_at = TIME_NEVER;
    if (n->engine && !n->frozen)
        pump(s, node);
}

bool sim_step(sim *s)
{
    if (!events_first(&s->events))
        return false;
    struct sim_event e = events_pop(&s->events);
    s->now = e.at;
    switch (e.kind) {
    case SIM_ARRIVAL:
        arrive(s, e.node, e.packet);
        break;
    case SIM_WAKE:
        wake(s, e.node, e.generation);
        break;
    case SIM_KICK:
        pump(s, e.node);
        break;
    case SIM_CALL:
        e.call.fn(s, e.call.arg);
        break;
    }
    return true;
}

static bool due_by(const sim *s, sleet_time limit)
{
    const struct sim_event *e = events_first(&s->events);
    return e && !time_before(limit, e->at);
}

void sim_run_until(sim *s, sleet_time t)
{
    while (due_by(s, t))
        sim_step(s);
    if (time_before(s->now, t))
        s->now = t;
}

bool sim_run_while(sim *s, bool (*more)(void *), void *arg, sleet_time limit)
{
    while (more(arg)) {
        if (!due_by(s, limit))
            return false;
        sim_step(s);
    }
    return true;
}

static void add_path(struct sim_totals *t, const struct sim_path *path)
{
    t->lost += path->lost;
    t->duplicated += path->duplicated;
    t->corrupted += path->corrupted;
    t->reordered += path->reordered;
}

void sim_get_totals(const sim *s, struct sim_totals *out)
{
    *out = s->totals;
    add_path(out, &s->common);
    for (size_t i = 0; i < (size_t)s->config.nodes * s->config.nodes; i++)
        if (s->paths[i])
            add_path(out, s->paths[i]);
}
