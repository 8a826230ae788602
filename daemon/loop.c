/* loop.c - wake up, read the clock once, feed the engine, send, sleep. */
#define _GNU_SOURCE 1
#include "loop.h"
#include "log.h"
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define RECEIVE_BATCHES 32  /* a wake-up, so that clients are not starved */
#define SEND_BURSTS 64      /* a wake-up */
#define GOODBYE_S 0.03      /* seconds for the last datagrams */

sleet_time loop_clock(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (sleet_time){(int64_t)t.tv_sec * 1000000000 + t.tv_nsec};
}

static uint64_t random_u64(void)
{
    uint64_t v = 0;
    if (getrandom(&v, sizeof v, 0) != sizeof v || v == 0)
        v = (uint64_t)loop_clock().ns ^ ((uint64_t)getpid() << 32) ^ 1;
    return v;
}

static void on_udp_in(struct ev_loop *loop, ev_io *w, int events)
{
    struct daemon *d = w->data;
    (void)loop;
    (void)events;
    for (int i = 0; i < RECEIVE_BATCHES; i++) {
        d->now = loop_clock();
        if (udp_receive(&d->udp, d->engine, d->now) == 0)
            break;
    }
}

static void on_udp_out(struct ev_loop *loop, ev_io *w, int events)
{
    struct daemon *d = w->data;
    (void)events;
    if (!d->burst_waits || udp_send(&d->udp, &d->burst)) {
        d->burst_waits = false;
        ev_io_stop(loop, w);
    }
}

static void on_timer(struct ev_loop *loop, ev_io *w, int events)
{
    struct daemon *d = w->data;
    uint64_t ticks;
    (void)loop;
    (void)events;
    if (read(d->timer_fd, &ticks, sizeof ticks) > 0)
        d->armed = TIME_NEVER;
}

/* False when more could leave at once. */
static bool send_bursts(struct daemon *d)
{
    for (int i = 0; i < SEND_BURSTS && !d->burst_waits; i++) {
        if (engine_send(d->engine, &d->burst, d->now) == 0)
            return true;
        if (!udp_send(&d->udp, &d->burst)) {
            d->burst_waits = true;
            ev_io_start(d->loop, &d->udp_out);
            return true;
        }
    }
    return d->burst_waits;
}

static void arm(struct daemon *d, sleet_time at)
{
    if (at.ns == d->armed.ns)
        return;
    struct itimerspec t = {{0, 0}, {0, 0}};
    if (!time_is_never(at)) {
        if (at.ns < 1)
            at.ns = 1;
        t.it_value = (struct timespec){at.ns / 1000000000, at.ns % 1000000000};
    }
    timerfd_settime(d->timer_fd, TFD_TIMER_ABSTIME, &t, NULL);
    d->armed = at;
}

/* Before each sleep: everything the engine wants now, then the alarm for later. */
static void on_prepare(struct ev_loop *loop, ev_prepare *w, int events)
{
    struct daemon *d = w->data;
    (void)loop;
    (void)events;
    d->now = loop_clock();
    if (!time_before(d->now, engine_deadline(d->engine)))
        engine_expire(d->engine, d->now);
    bool drained = send_bursts(d);
    command_events(&d->control);
    control_flush(&d->control);
    sleet_time at = drained ? engine_deadline(d->engine) : d->now;
    if (d->burst_waits) { /* wake up for the socket, not for what cannot leave */
        sleet_time soon = time_add(d->now, MS(1));
        at = time_before(at, soon) ? soon : at;
    }
    arm(d, at);
}

static void on_goodbye(struct ev_loop *loop, ev_timer *w, int events)
{
    (void)w;
    (void)events;
    ev_break(loop, EVBREAK_ALL);
}

void loop_leave(struct daemon *d, bool end)
{
    d->now = loop_clock();
    if (!d->left) {
        command_cancel_all(&d->control);
        engine_leave(d->engine, d->now);
        SAY(LOG_INFO, FAULT_NONE, "left", F_U("node", d->config->node_id));
    }
    d->left = true;
    if (end && !d->ending) {
        d->ending = true;
        ev_timer_init(&d->goodbye, on_goodbye, GOODBYE_S, 0.);
        ev_timer_start(d->loop, &d->goodbye);
    }
}

static void on_signal(struct ev_loop *loop, ev_signal *w, int events)
{
    struct daemon *d = w->data;
    (void)events;
    if (d->ending)
        ev_break(loop, EVBREAK_ALL);
    else
        loop_leave(d, true);
}

/* Resolve job.peers into `out`, which takes ENGINE_PEERS_MAX + 1; false after printing the reason. */
static bool read_peers(const struct daemon *d, sleet_addr *out, uint32_t *count)
{
    const struct config *c = d->config;
    char item[512];
    *count = 0;
    for (const char *p = c->text[CONFIG_PEERS]; (p = config_next_item(p, item, sizeof item));) {
        const char *why = udp_resolve(&d->udp, item, &out[*count]);
        if (why) {
            fprintf(stderr, "sleetd: %s: job.peers: %s: %s%s\n", c->origin[CONFIG_PEERS], item, why,
                    d->udp.inet6 ? "" : " (this node listens on IPv4; listen on [::] for both)");
            return false;
        }
        why = address_unreachable(&d->udp.bound, &out[*count]);
        if (why) {
            fprintf(stderr, "sleetd: %s: job.peers: %s: %s\n", c->origin[CONFIG_PEERS], item, why);
            return false;
        }
        char text[80];
        address_format(&out[*count], text);
        if (strcmp(text, d->udp.address) == 0) /* this node itself */
            continue;
        if (++*count > ENGINE_PEERS_MAX) {
            fprintf(stderr, "sleetd: %s: job.peers names more than %d other nodes\n",
                    c->origin[CONFIG_PEERS], ENGINE_PEERS_MAX);
            return false;
        }
    }
    return true;
}

/* What a sealed engine needs beyond; its secrets never come from emulate.seed. */
static bool give_keys(const struct daemon *d, engine_config *ec)
{
    const struct config *c = d->config;
    ec->security = c->sealed ? ENGINE_SEALED : ENGINE_PLAIN;
    if (!c->sealed)
        return true;
    memcpy(ec->job_key, d->keys->job, sizeof ec->job_key);
    memcpy(ec->node_secret, d->keys->node_secret, sizeof ec->node_secret);
    ec->allow = c->allow;
    ec->allow_count = c->allow_count;
    ec->has_operator = c->has_operator;
    memcpy(ec->operator_key, c->operator_key, sizeof ec->operator_key);
    bool ok = getrandom(ec->secret_seed, sizeof ec->secret_seed, 0) == sizeof ec->secret_seed;
    if (!ok)
        fprintf(stderr, "sleetd: the kernel gives no random numbers: %s\n", strerror(errno));
    return ok;
}

static bool make_engine(struct daemon *d, uint64_t seed)
{
    sleet_addr peers[ENGINE_PEERS_MAX + 1];
    engine_config ec = {.node_id = d->config->node_id, .boot_id = random_u64(), .seed = seed,
                        .peers = peers, .rate_bps = (uint64_t)(d->config->rate_mbit * 1e6),
                        .keep_bytes = (uint64_t)(d->config->keep_mib * 1048576),
                        .clip = d->config->clip,
                        .edges = d->config->edges,
                        .on_partition = d->config->part_continue ? PARTITION_CONTINUE : PARTITION_PARK,
                        .merge_rounds = (uint32_t)d->config->merge_rounds,
                        .parity_off = d->config->parity_off,
                        .go_on_isolated = d->config->go_on_isolated,
                        .log = logger_current()};
    if (!read_peers(d, peers, &ec.peer_count) ||
        !address_advertise(&d->advertised, d->config, &d->udp, peers, ec.peer_count))
        return false;
    if (!give_keys(d, &ec))
        return false;
    ec.declared = d->config->declared;
    memcpy(ec.advertised, d->advertised.at, sizeof ec.advertised);
    snprintf(ec.job, sizeof ec.job, "%s", d->config->text[CONFIG_NAME]);
    d->nodes_known = ec.peer_count + 1;
    d->started = d->now = loop_clock();
    d->engine = engine_new(&ec, d->now);
    explicit_bzero(&ec, sizeof ec);
    if (!d->engine)
        fprintf(stderr, "sleetd: the engine does not start: out of memory\n");
    return d->engine != NULL;
}

static void start_watchers(struct daemon *d)
{
    ev_io_init(&d->udp_in, on_udp_in, d->udp.fd, EV_READ);
    ev_io_init(&d->udp_out, on_udp_out, d->udp.fd, EV_WRITE);
    ev_io_init(&d->timer_io, on_timer, d->timer_fd, EV_READ);
    ev_prepare_init(&d->prepare, on_prepare);
    ev_signal_init(&d->term, on_signal, SIGTERM);
    ev_signal_init(&d->intr, on_signal, SIGINT);
    d->udp_in.data = d->udp_out.data = d->timer_io.data = d->prepare.data = d;
    d->term.data = d->intr.data = d;
    ev_io_start(d->loop, &d->udp_in);
    ev_io_start(d->loop, &d->timer_io);
    ev_prepare_start(d->loop, &d->prepare);
    ev_signal_start(d->loop, &d->term);
    ev_signal_start(d->loop, &d->intr);
    control_start(&d->control, d->loop);
}

/* What to start sleetd with on another machine, to be copied from the log. */
static void say_how_to_join(const struct daemon *d)
{
    const struct address_choice *a = &d->advertised;
    const sleet_addr *at = &a->at[a->at[ADDRESS_V4].port ? ADDRESS_V4 : ADDRESS_V6];
    char address[80], options[256];
    if (!at->port || strchr(d->config->text[CONFIG_NAME], '\''))
        return; /* nowhere to join, or a name that a shell would not take so */
    address_format(at, address);
    snprintf(options, sizeof options, "--job.name='%s' --job.peers=%s", d->config->text[CONFIG_NAME], address);
    SAY(LOG_INFO, FAULT_NONE, "join-with", F_S("options", options),
        F_S("job_key", d->config->sealed ? d->keys->job_fingerprint : "none"));
}

bool loop_open(struct daemon *d, const struct config *c, struct keys *keys,
               const struct privilege *who)
{
    char path[256];
    d->config = c;
    d->keys = keys;
    d->timer_fd = d->udp.fd = d->control.fd = -1;
    d->armed = TIME_NEVER;
    uint64_t seed = c->seed ? mix64(c->seed + c->node_id) : random_u64();
    snprintf(path, sizeof path, "%s", c->text[CONFIG_CONTROL]);
    if (!path[0])
        control_default_path(path, sizeof path, who->uid);
    if (!udp_open(&d->udp, c, seed) || !make_engine(d, seed) ||
        !control_open(&d->control, d, path, who))
        return false;
    d->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    d->loop = ev_default_loop(EVFLAG_AUTO | EVFLAG_NOENV);
    if (d->timer_fd < 0 || !d->loop) {
        fprintf(stderr, "sleetd: no event loop: %s\n", strerror(errno));
        return false;
    }
    start_watchers(d);
    say_how_to_join(d);
    if (!c->sealed)
        SAY(LOG_WARN, FAULT_NONE, "security-none", F_S("text", "datagrams are neither encrypted nor authenticated"));
    if (c->loss > 0)
        SAY(LOG_WARN, FAULT_NONE, "emulated-loss", F_F("loss", c->loss));
    return true;
}

void loop_run(struct daemon *d)
{
    ev_run(d->loop, 0);
    SAY(LOG_INFO, FAULT_NONE, "exit", F_U("node", d->config->node_id));
}

void loop_close(struct daemon *d)
{
    if (d->engine)
        control_close(&d->control);
    engine_free(d->engine);
    udp_close(&d->udp);
    if (d->timer_fd >= 0)
        close(d->timer_fd);
    if (d->loop)
        ev_loop_destroy(d->loop);
}
