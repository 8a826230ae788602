/* command.c - the commands of docs/control.md. */
#include "command.h"
#include "log.h"
#include "loop.h"
#include <errno.h>
#include <inttypes.h>
#include <math.h>

#define DEADLINE_MAX_NS INT64_C(3600000000000)
#define UNKNOWN_MAX 64 /* lines that are no command, then the connection ends */

void command_fail(struct client *c, int error, const char *text)
{
    control_say(c, "%d %s", control_code_of(error), text ? text : control_error_text(error));
}

bool command_number(const char *word, uint64_t max, uint64_t *out)
{
    char *end;
    errno = 0;
    *out = strtoull(word, &end, 10);
    return word[0] >= '0' && word[0] <= '9' && *end == '\0' && errno == 0 && *out <= max;
}

static bool real(const char *word, double *out)
{
    char *end;
    *out = strtod(word, &end);
    return end != word && *end == '\0' && isfinite(*out);
}

struct slot *command_slot(const struct call *a, int *handle)
{
    uint64_t h;
    if (command_number(a->argv[0], ENGINE_SETS_MAX - 1, &h) && a->k->slots[h].owner == a->c) {
        *handle = (int)h;
        return &a->k->slots[h];
    }
    control_say(a->c, "404 no set %s is registered on this connection", a->argv[0]);
    return NULL;
}

/* ---- rounds ------------------------------------------------------------------------ */

static void do_start(const struct call *a)
{
    int handle;
    uint64_t seq, deadline, quorum, exact, keep_auto = 0, max_async = 0;
    sleet_round_options o = {.size = sizeof o};
    struct slot *s = command_slot(a, &handle);
    if (!s)
        return;
    if (!command_number(a->argv[1], UINT64_MAX, &seq) ||
        !command_number(a->argv[2], (uint64_t)DEADLINE_MAX_NS, &deadline) || !real(a->argv[3], &o.weight) ||
        !real(a->argv[4], &o.least_coverage) || !command_number(a->argv[5], UINT32_MAX, &quorum) ||
        !command_number(a->argv[6], UINT32_MAX, &exact) || deadline == 0 || o.weight <= 0 ||
        o.least_coverage < 0 || o.least_coverage > 1 ||
        (a->argc > 7 && !(real(a->argv[7], &o.keep) && o.keep >= 0 && o.keep <= 1)) ||
        (a->argc > 8 && !command_number(a->argv[8], UINT32_MAX, &keep_auto)) ||
        (a->argc > 9 && !command_number(a->argv[9], UINT32_MAX, &max_async)) ||
        (a->argc > 10 && !(real(a->argv[10], &o.twice) && o.twice >= 0 && o.twice <= 1))) {
        command_fail(a->c, SLEET_EINVAL, "start: a value is malformed or out of range");
        return;
    }
    o.deadline_ns = (int64_t)deadline;
    o.quorum = (uint32_t)quorum;
    o.exact = exact != 0;
    o.keep_auto = keep_auto != 0;
    o.max_async = (uint32_t)max_async;
    engine_start_args args = {.send = (const void *const *)s->buffers,
                              .result = s->buffers + s->count, .residual = s->residual,
                              .owned = s->owned, .options = o};
    int error = a->k->d->left ? SLEET_ELEFT
                              : engine_start(a->k->d->engine, handle, &args, a->k->d->now);
    if (error) {
        const char *why = error == SLEET_EINVAL ? "the options do not go with the set: a quorum needs a strategy with owners, "
                                                  "an exact round another estimator than givers, "
                                                  "twice what is added to a model, another estimator than expected and no exact round" : NULL;
        command_fail(a->c, error, error == SLEET_ESCHEMA && s->schema[0] ? s->schema : why);
        return;
    }
    s->seq = seq;
    s->open = true;
    control_say(a->c, "200 started");
}

static void do_cancel(const struct call *a)
{
    int handle;
    if (!command_slot(a, &handle))
        return;
    engine_cancel(a->k->d->engine, handle, a->k->d->now);
    control_say(a->c, "200 cancelled");
}

static void do_job(const struct call *a)
{
    const struct daemon *d = a->k->d;
    engine_set info = {.trainers = 0};
    int handle = -1;
    if (a->argc > 0) {
        if (!command_slot(a, &handle))
            return;
        if (!engine_get_set(d->engine, handle, &info, d->now)) {
            command_fail(a->c, SLEET_EPROTO, "the engine does not know this set");
            return;
        }
    }
    control_say(a->c, "212 %" PRIu64 " %u %u %u %" PRIu64 " %d %d", d->config->node_id, d->nodes_known,
                engine_nodes_alive(d->engine, d->now), info.trainers, info.job_round,
                info.schema_differs, a->argc > 0 && engine_wanted(d->engine, handle));
}

void command_events(struct control *k)
{
    engine_event ev;
    while (engine_poll(k->d->engine, &ev)) {
        if (ev.type == EVENT_JOB_KEY || ev.type == EVENT_EVICTED) {
            orders_event(k, &ev);
            continue;
        }
        if (ev.set < 0 || ev.set >= ENGINE_SETS_MAX || !k->slots[ev.set].owner)
            continue;
        struct slot *s = &k->slots[ev.set];
        if (ev.type == EVENT_STATE || ev.type == EVENT_BLOB) {
            state_event(k, &ev);
            continue;
        }
        if (ev.type == EVENT_SCHEMA) {
            snprintf(s->schema, sizeof s->schema, "%s", ev.text);
            control_say(s->owner, "151 schema %d %s", ev.set, s->schema);
            SAY(LOG_ERROR, FAULT_LOCAL, "schema-differs", F_S("set", s->name), F_S("text", ev.text));
            continue;
        }
        const sleet_report *r = &ev.report;
        if (s->open)
            control_say(s->owner,
                        "150 round %d %" PRIu64 " %d %" PRIu64 " %" PRIu64 " %.17g %u %u %u %u %" PRId64
                        " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %u %" PRIu64,
                        ev.set, s->seq, ev.error, r->round, r->skipped, r->coverage, r->group_size,
                        r->expected, r->flags, r->low_in_a_row, r->elapsed_ns, r->fragments_expected,
                        r->fragments_direct, r->fragments_repaired, r->fragments_late,
                        r->fragments_lost, r->fragments_unsent, r->runs_moved, r->fragments_corrected);
        s->open = false;
    }
}

void command_cancel_all(struct control *k)
{
    for (int i = 0; i < ENGINE_SETS_MAX; i++)
        if (k->slots[i].owner)
            engine_cancel(k->d->engine, i, k->d->now);
}

/* ---- for everybody -------------------------------------------------------------------- */

/* Reports are what a client can keep the daemon busy with: all of them together get a tenth
 * of its time, which is plenty for people and their scripts.  Others wait. */
#define REPORT_SHARE 10
#define REPORT_BURST MS(200)

static bool may_report(struct control *k)
{
    sleet_time now = loop_clock();
    k->report_time += time_since(now, k->reported) / REPORT_SHARE;
    if (k->report_time > REPORT_BURST)
        k->report_time = REPORT_BURST;
    k->reported = now;
    return k->report_time > 0;
}

void command_say_json(const struct call *a, char *json)
{
    if (json)
        control_say_text(a->c, "211 ", json);
    else
        command_fail(a->c, SLEET_ENOMEM, NULL);
    free(json);
}

static void do_status(const struct call *a) { command_say_json(a, status_json(a->k)); }
static void do_peers(const struct call *a) { command_say_json(a, status_peers_json(a->k)); }
static void do_config(const struct call *a) { command_say_json(a, status_config_json(a->k)); }

static void do_rounds(const struct call *a)
{
    char name[SLEET_NAME_MAX + 1];
    if (a->argc > 0 && !control_decode(name, a->argv[0]))
        command_fail(a->c, SLEET_EINVAL, "rounds NAME: bad name");
    else
        command_say_json(a, status_rounds_json(a->k, a->argc > 0 ? name : NULL));
}

static void do_explain(const struct call *a)
{
    uint64_t round = 0;
    if (a->argc > 0 && !command_number(a->argv[0], UINT64_MAX, &round))
        command_fail(a->c, SLEET_EINVAL, "explain ROUND: ROUND is a whole number");
    else
        command_say_json(a, status_explain_json(a->k, round));
}

static void do_leave(const struct call *a)
{
    loop_leave(a->k->d, false);
    control_say(a->c, "200 left");
}

static void do_shutdown(const struct call *a)
{
    loop_leave(a->k->d, true);
    control_say(a->c, "200 going down");
}

static void do_resume(const struct call *a)
{
    struct daemon *d = a->k->d;
    control_say(a->c, "200 resumed %u", engine_resume(d->engine, d->now));
}

static void do_quit(const struct call *a)
{
    control_say(a->c, "200 bye");
    a->c->closing = true;
}

static const struct {
    const char *name;
    int least, most; /* words after it */
    void (*run)(const struct call *);
    enum { PLAIN, REPORT, ADMIN } kind; /* REPORT: takes time; ADMIN: the daemon's user and root */
} commands[] = {
    {"status", 0, 0, do_status, REPORT},
    {"peers", 0, 0, do_peers, REPORT},
    {"rounds", 0, 1, do_rounds, REPORT},
    {"config", 0, 0, do_config, REPORT},
    {"explain", 0, 1, do_explain, REPORT},
    {"leave", 0, 0, do_leave, ADMIN},
    {"resume", 0, 0, do_resume, ADMIN},
    {"shutdown", 0, 0, do_shutdown, ADMIN},
    {"strategy", 2, 2, strategy_do, ADMIN},
    {"order", 1, 1, orders_do_order, PLAIN},
    {"orders", 0, 0, orders_do_show, REPORT},
    {"quit", 0, 0, do_quit, PLAIN},
    {"set", 2, 7, define_do_set, PLAIN},
    {"tensor", 3, 5, define_do_tensor, PLAIN},
    {"register", 0, 0, define_do_register, PLAIN},
    {"start", 7, 11, do_start, PLAIN},
    {"cancel", 1, 1, do_cancel, PLAIN},
    {"job", 0, 1, do_job, PLAIN},
    {"state", 0, 0, state_do_show, REPORT},
    {"attach", 1, 1, state_do_attach, PLAIN},
    {"reserve", 1, 1, state_do_reserve, PLAIN},
    {"publish", 3, 3, state_do_publish, PLAIN},
    {"fetch", 4, 4, state_do_fetch, PLAIN},
    {"blob", 4, 4, state_do_blob, PLAIN},
};

bool command_waits(struct control *k, const char *line)
{
    line += strspn(line, " ");
    size_t n = strcspn(line, " \r\n");
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (commands[i].kind == REPORT && strlen(commands[i].name) == n &&
            memcmp(commands[i].name, line, n) == 0)
            return !may_report(k);
    return false;
}

static void unknown(struct client *c)
{
    control_say(c, "400 unknown command; there are status peers rounds explain config orders order leave resume shutdown strategy quit "
                   "set tensor register start cancel job state attach reserve publish fetch blob");
    c->closing = ++c->unknown == UNKNOWN_MAX;
}

void command_run(struct control *k, struct client *c, char *line)
{
    struct call a = {.k = k, .c = c};
    char *rest = NULL;
    const char *name = strtok_r(line, " ", &rest);
    while (a.argc < COMMAND_WORDS_MAX && (a.argv[a.argc] = strtok_r(NULL, " ", &rest)))
        a.argc++;
    command_events(k); /* a round that has closed belongs to the start before this line */
    for (size_t i = 0; name && i < sizeof commands / sizeof *commands; i++) {
        if (strcmp(commands[i].name, name) != 0)
            continue;
        if (a.argc < commands[i].least || a.argc > commands[i].most)
            control_say(c, "400 %s takes %d to %d words, see docs/control.md", name,
                        commands[i].least, commands[i].most);
        else if (commands[i].kind == ADMIN && !c->admin)
            control_say(c, "403 %s is for the daemon's user and root", name);
        else
            commands[i].run(&a);
        if (commands[i].kind == REPORT)
            k->report_time -= time_since(loop_clock(), k->reported);
        return;
    }
    unknown(c);
}

void command_drop(struct control *k, struct client *c)
{
    for (int i = 0; i < ENGINE_SETS_MAX; i++)
        if (k->slots[i].owner == c) {
            SAY(LOG_INFO, FAULT_NONE, "trainer-gone", F_S("set", k->slots[i].name),
                F_U("pid", c->pid));
            state_detach(k, i);
            define_free_slot(k, i);
        }
    define_forget(&c->def);
}
