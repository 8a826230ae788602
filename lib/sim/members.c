#include "sim/members.h"
#include "sim/events.h"
#include <string.h>

#define PING_BYTES 52 /* of a node without sets: header 16, body 20, tag 16 */
#define CUTS_MAX 64

enum what { PING, PONG, FRAME };

struct sim_packet { /* what this network carries */
    struct sim_packet *next;
    uint32_t from, to, len;
    uint64_t from_boot, to_boot;
    enum what what;
    uint8_t body[];
};

struct node {
    struct swim swim;
    bool runs, starved;
    uint64_t starts;
    uint64_t generation; /* of its wake */
    sleet_time wake_at;
    struct sim_packet *in, **in_end, *out, **out_end; /* while starved */
};

struct members {
    struct members_config config;
    sleet_rng rng;
    sleet_time now;
    struct sim_events events;
    struct node *nodes;
    struct members_totals totals;
    members_watch *watch;
    void *watch_arg;
    struct {
        uint32_t from, to;
    } cuts[CUTS_MAX];
    uint32_t cuts_n;
    struct swim_out out;
    struct wire_members frame;
};

static uint64_t boot_of(const members *m, uint32_t node)
{
    return 1000 * ((uint64_t)node + 1) + m->nodes[node].starts;
}

/* ---- datagrams ------------------------------------------------------------------ */

static bool is_cut(const members *m, uint32_t from, uint32_t to)
{
    for (uint32_t i = 0; i < m->cuts_n; i++)
        if (m->cuts[i].from == from && m->cuts[i].to == to)
            return true;
    return false;
}

static void launch(members *m, struct sim_packet *p)
{
    struct sim_event e = {.kind = SIM_ARRIVAL, .node = p->to, .packet = p};
    m->totals.sent++;
    m->totals.bytes += p->len;
    e.at = time_add(m->now, m->config.delay);
    if (m->config.jitter)
        e.at.ns += (int64_t)(rng_double(&m->rng) * (double)m->config.jitter);
    if (is_cut(m, p->from, p->to) || rng_double(&m->rng) < m->config.loss ||
        !events_push(&m->events, e))
        free(p);
}

static void append(struct sim_packet ***end, struct sim_packet *p)
{
    p->next = NULL;
    **end = p;
    *end = &p->next;
}

static void post(members *m, uint32_t from, uint32_t to, enum what what, const uint8_t *body,
                 size_t n)
{
    struct node *node = &m->nodes[from];
    struct sim_packet *p = malloc(sizeof *p + n);
    if (!p)
        return;
    *p = (struct sim_packet){.from = from, .to = to, .what = what};
    p->from_boot = boot_of(m, from);
    p->to_boot = boot_of(m, to);
    p->len = what == FRAME ? (uint32_t)n + WIRE_HEADER_BYTES + WIRE_TAG_BYTES : PING_BYTES;
    if (n)
        memcpy(p->body, body, n);
    if (node->starved)
        append(&node->out_end, p);
    else
        launch(m, p);
}

static void post_frame(members *m, uint32_t from, uint32_t to, const struct wire_members *f)
{
    uint8_t body[WIRE_BODY_MAX];
    size_t n = wire_members_encode(body, sizeof body, f);
    if (n)
        post(m, from, to, FRAME, body, n);
}

static void ping(members *m, uint32_t from, uint32_t to, enum what what)
{
    struct swim *s = &m->nodes[from].swim;
    uint32_t number = swim_find(s, to + 1);
    post(m, from, to, what, NULL, 0);
    if (number != SWIM_NONE && swim_piggyback(s, number, &m->frame))
        post_frame(m, from, to, &m->frame);
}

/* ---- nodes ------------------------------------------------------------------------ */

static void pump(members *m, uint32_t i)
{
    struct node *node = &m->nodes[i];
    struct swim *s = &node->swim;
    if (!time_before(m->now, swim_deadline(s)))
        swim_expire(s, m->now);
    while (swim_send(s, &m->out)) {
        uint32_t to = (uint32_t)s->members[m->out.to].record.node_id - 1;
        if (m->out.ping)
            ping(m, i, to, PING);
        else
            post_frame(m, i, to, &m->out.frame);
    }
    for (uint32_t k = swim_changed(s); k != SWIM_NONE; k = swim_changed(s))
        if (m->watch)
            m->watch(m, i, &s->members[k], m->watch_arg);
    sleet_time at = swim_deadline(s);
    if (!time_before(m->now, at))
        at = time_add(m->now, US(1));
    if (!time_before(at, node->wake_at))
        return;
    node->wake_at = at;
    events_push(&m->events,
                (struct sim_event){
                    .at = at, .kind = SIM_WAKE, .node = i, .generation = ++node->generation});
}

/* A datagram is the first sign of a session; it would have begun with a greeting. */
static uint32_t met(members *m, struct swim *s, uint32_t from)
{
    uint32_t number = swim_find(s, from + 1);
    struct wire_update who = {.node_id = from + 1, .boot_id = boot_of(m, from)};
    if (number != SWIM_NONE && s->members[number].record.boot_id == who.boot_id)
        return number;
    return swim_meet(s, &who, m->now);
}

static void take(members *m, const struct sim_packet *p)
{
    struct swim *s = &m->nodes[p->to].swim;
    uint32_t number = met(m, s, p->from);
    if (number == SWIM_NONE)
        return;
    swim_heard(s, number, m->now);
    if (p->what == PING)
        ping(m, p->to, p->from, PONG);
    else if (p->what == FRAME &&
             wire_members_decode(&m->frame, p->body, p->len - WIRE_HEADER_BYTES - WIRE_TAG_BYTES) ==
                 SLEET_OK)
        swim_recv(s, number, &m->frame, m->now);
}

static void arrive(members *m, struct sim_packet *p)
{
    struct node *node = &m->nodes[p->to];
    if (node->starved) {
        append(&node->in_end, p);
        return;
    }
    /* of another life, of the sender or of this node: the session is not known */
    if (node->runs && p->from_boot == boot_of(m, p->from) && p->to_boot == boot_of(m, p->to)) {
        take(m, p);
        pump(m, p->to);
    }
    free(p);
}

void members_starve(members *m, uint32_t i, bool starved)
{
    struct node *node = &m->nodes[i];
    struct sim_packet *in = node->in, *out = node->out, *next;
    if (node->starved == starved)
        return;
    node->starved = starved;
    node->in = node->out = NULL;
    node->in_end = &node->in;
    node->out_end = &node->out;
    for (; out; out = next) {
        next = out->next;
        launch(m, out);
    }
    for (; in; in = next) {
        next = in->next;
        arrive(m, in);
    }
}

struct swim *members_node(members *m, uint32_t node)
{
    return m->nodes[node].runs ? &m->nodes[node].swim : NULL;
}

static bool start(members *m, uint32_t i)
{
    struct node *node = &m->nodes[i];
    node->starts++;
    struct swim_config c = {.node_id = i + 1,
                            .boot_id = boot_of(m, i),
                            .seed = mix64(m->config.seed ^ mix64(i)),
                            .lifeguard_off = m->config.lifeguard_off};
    node->runs = swim_init(&node->swim, &c, m->now);
    node->wake_at = TIME_NEVER;
    return node->runs;
}

void members_kill(members *m, uint32_t i)
{
    members_starve(m, i, false);
    if (m->nodes[i].runs)
        swim_fini(&m->nodes[i].swim);
    m->nodes[i].runs = false;
    m->nodes[i].generation++;
}

bool members_restart(members *m, uint32_t i, uint32_t seed)
{
    members_kill(m, i);
    if (!start(m, i))
        return false;
    met(m, &m->nodes[i].swim, seed);
    post(m, i, seed, PING, NULL, 0);
    pump(m, i);
    return true;
}

void members_cut(members *m, uint32_t from, uint32_t to, bool cut)
{
    for (uint32_t i = 0; i < m->cuts_n; i++)
        if (m->cuts[i].from == from && m->cuts[i].to == to)
            m->cuts[i--] = m->cuts[--m->cuts_n];
    if (!cut || m->cuts_n == CUTS_MAX)
        return;
    m->cuts[m->cuts_n].from = from;
    m->cuts[m->cuts_n++].to = to;
}

void members_on_change(members *m, members_watch *watch, void *arg)
{
    m->watch = watch;
    m->watch_arg = arg;
}

/* ---- life --------------------------------------------------------------------------- */

/* All have met long ago: nothing is news. */
static void introduce_all(members *m)
{
    for (uint32_t i = 0; i < m->config.nodes; i++) {
        struct swim *s = &m->nodes[i].swim;
        for (uint32_t k = 0; k < m->config.nodes; k++) {
            struct wire_update u = {.node_id = k + 1, .boot_id = boot_of(m, k)};
            if (k != i)
                swim_accept(s, &u, false);
        }
        gossip_remove(&s->news, SWIM_SELF);
        s->sync.first = false;
        s->sync_at = time_add(m->now, rng_below(&m->rng, 10000) * (s->config.period / 1000));
        while (swim_changed(s) != SWIM_NONE)
            ;
    }
}

members *members_new(const struct members_config *c)
{
    members *m = calloc(1, sizeof *m);
    if (!m)
        return NULL;
    m->config = *c;
    m->config.delay = c->delay ? c->delay : MS(1);
    m->rng.state = mix64(c->seed);
    m->nodes = calloc(c->nodes, sizeof *m->nodes);
    for (uint32_t i = 0; m->nodes && i < c->nodes; i++) {
        m->nodes[i].in_end = &m->nodes[i].in;
        m->nodes[i].out_end = &m->nodes[i].out;
        if (!start(m, i)) {
            members_free(m);
            return NULL;
        }
    }
    if (!m->nodes) {
        members_free(m);
        return NULL;
    }
    if (!c->strangers)
        introduce_all(m);
    for (uint32_t i = 0; i < c->nodes; i++) {
        if (c->strangers && i > 0) {
            met(m, &m->nodes[i].swim, 0);
            post(m, i, 0, PING, NULL, 0);
        }
        pump(m, i);
    }
    return m;
}

void members_free(members *m)
{
    if (!m)
        return;
    for (uint32_t i = 0; m->nodes && i < m->config.nodes; i++)
        members_kill(m, i);
    while (events_first(&m->events)) {
        struct sim_event e = events_pop(&m->events);
        if (e.kind == SIM_ARRIVAL)
            free(e.packet);
    }
    events_free(&m->events);
    free(m->nodes);
    free(m);
}

sleet_time members_now(const members *m)
{
    return m->now;
}

struct members_totals members_totals(const members *m)
{
    return m->totals;
}

void members_run(members *m, sleet_duration d)
{
    sleet_time end = time_add(m->now, d);
    while (events_first(&m->events) && !time_before(end, events_first(&m->events)->at)) {
        struct sim_event e = events_pop(&m->events);
        m->now = e.at;
        if (e.kind == SIM_ARRIVAL) {
            arrive(m, e.packet);
        } else if (e.generation == m->nodes[e.node].generation && m->nodes[e.node].runs) {
            m->nodes[e.node].wake_at = TIME_NEVER;
            pump(m, e.node);
        }
    }
    m->now = end;
}
