/* lab-run.c - one scenario: start, events, end, verdict. */
#include "lab.h"
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define GRACE_S 5   /* between SIGTERM and SIGKILL at the end */
#define LOOK_S 0.02 /* between two looks at a starting daemon */

/* ---- events ------------------------------------------------------------------ */

static bool set_link(struct lab *lab, int i, const struct scenario_link *link)
{
    struct link_counts before = {0, 0};
    struct lab_node *n = &lab->node[i];
    if (lab->began > 0 && lab->backend->count(i + 1, &before)) {
        n->counted.passed += before.passed;
        n->counted.lost += before.lost;
    }
    return lab->backend->set(i + 1, link);
}

static bool play_on_node(struct lab *lab, const struct scenario_event *e, int i)
{
    struct lab_node *n = &lab->node[i];
    switch (e->action) {
    case SCENARIO_KILL:
        node_signal(n, SIGKILL, true);
        return true;
    case SCENARIO_START:
        n->done = false;
        n->excused = false;
        return node_start(lab, n);
    case SCENARIO_FREEZE:
    case SCENARIO_FREEZE_TRAINER:
        n->frozen = n->excused = true;
        node_signal(n, SIGSTOP, e->action == SCENARIO_FREEZE);
        return true;
    case SCENARIO_THAW:
        n->frozen = false;
        node_signal(n, SIGCONT, true);
        return true;
    case SCENARIO_LINK:
        return set_link(lab, i, &e->link);
    case SCENARIO_DOWN:
    case SCENARIO_UP:
        lab->down ^= 1u << i;
        return net_link(i + 1, e->action == SCENARIO_UP);
    case SCENARIO_REBIND:
        return nat_rebind(i + 1);
    default:
        return true;
    }
}

/* A guest's clock is its own. */
static bool move_clock(double seconds)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    t.tv_sec += (time_t)seconds;
    if (clock_settime(CLOCK_REALTIME, &t) == 0)
        return true;
    lab_say("cannot set the clock: %s", strerror(errno));
    return false;
}

static bool play(struct lab *lab, const struct scenario_event *e)
{
    static const uint8_t together[LAB_NODES];
    char nodes[64] = "";
    int count = (int)lab->s->nodes;
    bool ok = true;
    scenario_nodes_text(e->nodes, nodes, sizeof nodes);
    if (e->action == SCENARIO_CLOCK)
        snprintf(nodes, sizeof nodes, "%+g", e->seconds);
    printf("  %6.1f s, step %llu: %s, %s %s\n", lab_now() - lab->began,
           (unsigned long long)lab->top_step, e->name, scenario_action_names[e->action], nodes);
    fflush(stdout);
    if (e->action == SCENARIO_PARTITION || e->action == SCENARIO_HEAL)
        return net_partition(count, e->action == SCENARIO_HEAL ? together : e->group, lab->down);
    if (e->action == SCENARIO_CLOCK)
        return move_clock(e->seconds);
    for (int i = 0; i < count; i++)
        if (e->nodes & 1u << i)
            ok = play_on_node(lab, e, i) && ok;
    return ok;
}

/* Seconds until the next event can be due; 0: now; INFINITY: not by time. */
static double event_due(const struct lab *lab)
{
    const struct scenario_event *e = &lab->s->event[lab->next_event];
    if (lab->next_event == lab->s->events)
        return INFINITY;
    if (e->when == WHEN_AT_STEP)
        return (double)lab->top_step >= e->value ? 0 : INFINITY;
    double since = e->when == WHEN_AT_S ? lab->began : lab->event_at;
    return fmax(0, since + e->value - lab_now());
}

/* ---- the loop ------------------------------------------------------------------ */

static bool started(const struct lab_node *n)
{
    return n->daemon.pid != 0;
}

/* Start what is due; the seconds until something else is. */
static double turn_of_time(struct lab *lab)
{
    double next = 1;
    for (int i = 0; i < (int)lab->s->nodes; i++) {
        struct lab_node *n = &lab->node[i];
        double in = lab->began + lab->s->start_s[i] - lab_now();
        if (!started(n) && in <= 0)
            node_start(lab, n);
        else if (!started(n))
            next = fmin(next, in);
        node_follow(lab, n);
        if (n->waiting)
            next = fmin(next, LOOK_S);
    }
    while (event_due(lab) <= 0) {
        const struct scenario_event *e = &lab->s->event[lab->next_event++];
        lab->event_at = lab_now();
        if (!play(lab, e))
            lab->broken = true;
    }
    return fmin(next, event_due(lab));
}

static void wait_for(struct lab *lab, double seconds)
{
    struct pollfd fds[LAB_NODES + 1] = {{.fd = lab->signals, .events = POLLIN}};
    struct signalfd_siginfo info;
    int count = (int)lab->s->nodes;
    for (int i = 0; i < count; i++)
        fds[i + 1] = (struct pollfd){.fd = lab->node[i].out, .events = POLLIN};
    poll(fds, (nfds_t)count + 1, (int)(1000 * seconds) + 1);
    while (read(lab->signals, &info, sizeof info) == (ssize_t)sizeof info)
        lab->stop |= info.ssi_signo != SIGCHLD;
    for (int i = 0; i < count; i++) {
        while (lab->node[i].out >= 0 && node_read(lab, &lab->node[i]))
            ;
        node_reap(lab, &lab->node[i]);
    }
}

static bool over(const struct lab *lab)
{
    for (int i = 0; i < (int)lab->s->nodes; i++)
        if (!started(&lab->node[i]) || node_busy(&lab->node[i]))
            return false;
    /* all have ended: only what goes by time can start one again */
    return isinf(event_due(lab));
}

static void conduct(struct lab *lab)
{
    double limit = lab->began + lab->s->limit_s;
    while (!lab->stop && !over(lab)) {
        if (lab_now() > limit) {
            lab_say("%s: not over after %g s ([job] limit_s)", lab->s->name, lab->s->limit_s);
            lab->broken = true;
            break;
        }
        wait_for(lab, fmin(turn_of_time(lab), limit - lab_now() > 0 ? limit - lab_now() : 0));
    }
    if (!lab->stop && lab->next_event < lab->s->events) {
        lab_say("%s: [event %s] was never due", lab->s->name, lab->s->event[lab->next_event].name);
        lab->broken = true;
    }
}

/* ---- begin and end ---------------------------------------------------------------- */

static bool running(const struct lab *lab)
{
    for (int i = 0; i < LAB_NODES; i++) {
        const struct lab_node *n = &lab->node[i];
        if ((n->daemon.pid > 0 && !n->daemon.ended) || (n->trainer.pid > 0 && !n->trainer.ended))
            return true;
    }
    return false;
}

static void end_all(struct lab *lab)
{
    double limit = lab_now() + GRACE_S;
    for (int i = 0; i < LAB_NODES; i++) {
        node_signal(&lab->node[i], SIGTERM, true);
        node_signal(&lab->node[i], SIGCONT, true);
        lab->node[i].trainer.killed = lab->node[i].daemon.killed = true;
    }
    while (running(lab) && lab_now() < limit)
        wait_for(lab, LOOK_S);
    for (int i = 0; i < LAB_NODES; i++)
        node_signal(&lab->node[i], SIGKILL, true);
    while (running(lab))
        wait_for(lab, LOOK_S);
}

static void show_logs(const struct lab *lab)
{
    for (int i = 1; i <= (int)lab->s->nodes; i++) {
        char path[160], *text = NULL;
        node_path(lab, i, "log", path, sizeof path);
        const char *argv[] = {"tail", "-n", "12", path, NULL};
        if (lab_exec(argv, NULL, &text) == 0)
            fprintf(stderr, "the end of node %d's log:\n%s", i, text);
        free(text);
    }
}

static bool find_bin(struct lab *lab)
{
    ssize_t n = readlink("/proc/self/exe", lab->bin, sizeof lab->bin - 1);
    char *slash = n > 0 ? memrchr(lab->bin, '/', (size_t)n) : NULL;
    if (slash)
        *slash = '\0';
    return slash;
}

static bool prepare(struct lab *lab)
{
    bool ok = find_bin(lab);
    snprintf(lab->dir, sizeof lab->dir, "/run/" LAB_PREFIX "-%d", (int)getpid());
    const char *make[] = {"mkdir", "-m", "700", lab->dir, NULL};
    net_down();
    ok = ok && lab_must(make, NULL) && net_up((int)lab->s->nodes, lab->s->nat) &&
         (!lab->s->sealed || keys_make(lab));
    for (int i = 0; i < LAB_NODES; i++)
        lab->node[i] = (struct lab_node){.number = i + 1, .out = -1, .ns = -1};
    for (int i = 0; i < (int)lab->s->nodes && ok; i++) {
        lab->node[i].ns = net_namespace(i + 1);
        ok = lab->node[i].ns >= 0 && set_link(lab, i, &lab->s->link[i]);
    }
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    sigprocmask(SIG_BLOCK, &set, NULL);
    lab->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    lab->began = lab->event_at = lab_now();
    return ok && lab->signals >= 0;
}

/* Logs and lines of the nodes into KEEP/SCENARIO. */
static void keep_files(const struct lab *lab, const char *keep)
{
    char to[512];
    snprintf(to, sizeof to, "%s/%s", keep, lab->s->name);
    const char *make[] = {"mkdir", "-p", to, NULL};
    const char *move[] = {"find", lab->dir, "-type", "f", "-exec", "cp", "-t", to, "{}", "+", NULL};
    if (lab_must(make, NULL))
        lab_must(move, NULL);
}

static void tidy(struct lab *lab, const char *keep)
{
    const char *argv[] = {"rm", "-rf", lab->dir, NULL};
    end_all(lab);
    for (int i = 0; i < LAB_NODES; i++)
        if (lab->node[i].lines)
            fclose(lab->node[i].lines);
    if (keep)
        keep_files(lab, keep);
    net_down();
    lab_exec(argv, NULL, NULL);
    close(lab->signals);
    for (int i = 0; i < LAB_NODES; i++) {
        struct lab_node *n = &lab->node[i];
        if (n->ns >= 0)
            close(n->ns);
        free(n->waits);
        cJSON_Delete(n->status);
        cJSON_Delete(n->peers);
    }
}

static void write_json(cJSON *root, const char *path)
{
    char *text = cJSON_PrintUnformatted(root);
    FILE *f = fopen(path, "ae");
    if (!f || fprintf(f, "%s\n", text) < 0)
        lab_say("cannot write %s: %s", path, strerror(errno));
    if (f)
        fclose(f);
    free(text);
    cJSON_Delete(root);
}

static void judge(struct lab *lab, const struct lab_options *o, struct lab_tally *tally)
{
    static scenario_values values;
    double seconds = lab_now() - lab->began;
    measure_collect(lab);
    measure_values(lab, values);
    measure_print(lab, values, seconds);
    struct scenario_verdict verdict =
        scenario_check(lab->s, values, lab->backend->left_out, stdout);
    if (lab->broken)
        printf("  FAILED: the run went as written (see the sentences above)\n");
    verdict.failed += lab->broken;
    fflush(stdout);
    if (verdict.failed)
        show_logs(lab);
    tally->passed += verdict.passed;
    tally->failed += verdict.failed;
    if (o->json)
        write_json(measure_json(lab, values, seconds), o->json);
}

/* What only some places have. */
static bool suits(const struct lab *lab)
{
    const struct scenario *s = lab->s;
    if (scenario_has(s, SCENARIO_CLOCK) && !lab->backend->guest) {
        lab_say("%s moves the wall clock, which only a guest has for itself; use --backend uml",
                s->name);
        return false;
    }
    return lab->backend->suits(s) && (!s->nat || nat_available(lab->backend->guest));
}

void lab_play(const struct scenario *s, const struct lab_backend *backend,
              const struct lab_options *o, struct lab_tally *tally)
{
    static struct lab lab;
    lab = (struct lab){.s = s, .backend = backend, .signals = -1};
    printf("%s: %g nodes, %s%s%s\n", s->name, s->nodes, backend->what, s->about[0] ? "; " : "",
           s->about);
    fflush(stdout);
    if (!suits(&lab) || !prepare(&lab)) {
        tally->failed++;
    } else {
        conduct(&lab);
        if (!lab.stop)
            judge(&lab, o, tally);
    }
    tally->stopped = lab.stop;
    tidy(&lab, o->keep);
}

/* ---- a prompt ------------------------------------------------------------------------- */

int lab_shell(const struct scenario *s, const struct lab_backend *backend)
{
    static struct lab lab;
    char path[4096];
    int status = -1;
    lab = (struct lab){.s = s, .backend = backend, .signals = -1};
    bool ok = suits(&lab) && prepare(&lab);
    for (int i = 0; i < (int)s->nodes && ok; i++)
        ok = node_start(&lab, &lab.node[i]);
    if (ok) {
        setenv("LAB", lab.dir, 1);
        setenv("PS1", "lab> ", 1);
        snprintf(path, sizeof path, "%s:%s", lab.bin, getenv("PATH"));
        setenv("PATH", path, 1);
        printf("%s: %g daemons run on %s.  $LAB/nodeN.sock are their control sockets, e.g.\n"
               "  sleetctl -s $LAB/node1.sock peers\n"
               "  sleet-train --control $LAB/node1.sock --shard 0/%g &\n"
               "  tc -s qdisc show dev " LAB_PREFIX "-1       the link towards node 1\n"
               "  ip netns exec " LAB_PREFIX "1 COMMAND        inside node 1\n"
               "exit ends the lab.\n",
               s->name, s->nodes, backend->what, s->nodes);
        fflush(stdout);
        const char *bash[] = {"bash", "--norc", "-i", NULL};
        status = lab_attach(bash, NULL);
    }
    tidy(&lab, NULL);
    return ok && status >= 0 ? LAB_OK : LAB_FAILED;
}
