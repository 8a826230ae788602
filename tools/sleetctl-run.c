/* sleetctl-run.c - N daemons and N trainers on this machine, one command.
 *
 * One poll() loop serves output, signals and timers; nothing is orphaned and
 * the run's directory is removed unless --keep names it. */
#include "sleetctl-run.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define START_LIMIT_MS 10000 /* for all daemons to answer */
#define GRACE_MS 3000        /* between SIGTERM and SIGKILL */
#define PROBE_MS 20          /* between two looks at a starting daemon */

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* ---- children ---------------------------------------------------------- */

static void proc_signal(const run_proc *p, int sig)
{
    if (p->running)
        kill(-p->pid, sig);
}

/* Take the exit status; what is left of the child's group goes with it. */
static void proc_reap(run_proc *p, const char *what, int node, bool quiet)
{
    siginfo_t info = {0};
    int status;
    if (!p->running || waitid(P_PID, (id_t)p->pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
        info.si_pid != p->pid)
        return;
    kill(-p->pid, SIGKILL); /* the zombie still holds the number: no other group can have it */
    while (waitpid(p->pid, &status, 0) < 0 && errno == EINTR)
        ;
    p->running = false;
    p->code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    if (p->code != 0 && !quiet)
        fprintf(stderr, "sleetctl: the %s of node %d ended with %d\n", what, node, p->code);
}

static int running(const run_proc *p, int n)
{
    int count = 0;
    for (int i = 0; i < n; i++)
        count += p[i].running;
    return count;
}

/* ---- output and freezes ------------------------------------------------- */

static void freeze_begin(run *r, run_freeze *f)
{
    f->state = FREEZE_ON;
    f->until_ms = now_ms() + f->for_ms;
    proc_signal(&r->trainers[f->node], SIGSTOP);
    proc_signal(&r->daemons[f->node], SIGSTOP);
    fprintf(stderr, "sleetctl: node %d is frozen for %.1f s\n", f->node, (double)f->for_ms / 1e3);
}

static void freeze_end(run *r, run_freeze *f)
{
    f->state = FREEZE_OVER;
    proc_signal(&r->daemons[f->node], SIGCONT);
    proc_signal(&r->trainers[f->node], SIGCONT);
    fprintf(stderr, "sleetctl: node %d is thawed\n", f->node);
}

static void line_out(run *r, int i)
{
    run_proc *p = &r->trainers[i];
    p->line[p->len] = '\0';
    printf("[%d] %s\n", i, p->line);
    if (fflush(stdout) != 0)
        r->stop = true;
    for (int k = 0; k < r->freezes; k++) {
        run_freeze *f = &r->freeze[k];
        if (f->state == FREEZE_WAITS && f->node == i && f->text[0] && strstr(p->line, f->text))
            freeze_begin(r, f);
    }
    p->len = 0;
}

/* False when there is nothing more to read now. */
static bool read_output(run *r, int i)
{
    run_proc *p = &r->trainers[i];
    char buf[4096];
    ssize_t got = read(p->out, buf, sizeof buf);
    if (got < 0 && (errno == EINTR || errno == EAGAIN))
        return false;
    for (ssize_t k = 0; k < got; k++) {
        if (buf[k] == '\n' || p->len == sizeof p->line - 1)
            line_out(r, i);
        if (buf[k] != '\n' && buf[k] != '\r')
            p->line[p->len++] = buf[k];
    }
    if (got <= 0) {
        if (p->len)
            line_out(r, i);
        close(p->out);
        p->out = -1;
    }
    return got > 0;
}

/* Once a trainer is gone nobody writes its output: take the rest. */
static void finish_output(run *r, int i)
{
    run_proc *p = &r->trainers[i];
    while (p->out >= 0 && read_output(r, i))
        ;
    if (p->out >= 0) {
        if (p->len)
            line_out(r, i);
        close(p->out);
        p->out = -1;
    }
}

/* Milliseconds until the next timer, at most `most`. */
static int until_timer(const run *r, int64_t most)
{
    int64_t now = now_ms();
    for (int k = 0; k < r->freezes; k++) {
        const run_freeze *f = &r->freeze[k];
        int64_t at = f->state == FREEZE_ON ? f->until_ms : r->began_ms + f->at_ms;
        bool due = f->state == FREEZE_ON || (f->state == FREEZE_WAITS && !f->text[0] && r->began_ms);
        if (due && at - now < most)
            most = at - now;
    }
    return most < 0 ? 0 : (int)most;
}

static void run_timers(run *r)
{
    for (int k = 0; k < r->freezes; k++) {
        run_freeze *f = &r->freeze[k];
        if (f->state == FREEZE_WAITS && !f->text[0] && r->began_ms &&
            now_ms() >= r->began_ms + f->at_ms)
            freeze_begin(r, f);
        else if (f->state == FREEZE_ON && now_ms() >= f->until_ms)
            freeze_end(r, f);
    }
}

/* One turn of the loop: wait for output, a signal or a timer, at most `most` ms. */
static void turn(run *r, int64_t most)
{
    struct pollfd fds[RUN_NODES_MAX + 1] = {{.fd = r->signals, .events = POLLIN}};
    struct signalfd_siginfo info;
    for (int i = 0; i < r->n; i++)
        fds[i + 1] = (struct pollfd){.fd = r->trainers[i].out, .events = POLLIN};
    if (poll(fds, (nfds_t)r->n + 1, until_timer(r, most)) < 0)
        return;
    while (read(r->signals, &info, sizeof info) == (ssize_t)sizeof info) {
        if (info.ssi_signo == SIGCHLD)
            continue;
        r->stop = r->interrupted = true;
        r->signals_taken++;
    }
    for (int i = 0; i < r->n; i++) {
        if (r->trainers[i].out >= 0 && fds[i + 1].revents)
            read_output(r, i);
        proc_reap(&r->trainers[i], "trainer", i, r->ending);
        proc_reap(&r->daemons[i], "daemon", i, r->ending);
        if (!r->trainers[i].running)
            finish_output(r, i);
    }
    run_timers(r);
}

/* End what still runs: SIGTERM, then SIGKILL after GRACE_MS or a further signal. */
static void end_all(run *r, run_proc *p)
{
    int64_t limit = now_ms() + GRACE_MS;
    int taken = r->signals_taken;
    r->ending = true;
    for (int i = 0; i < r->n; i++) {
        proc_signal(&p[i], SIGTERM);
        proc_signal(&p[i], SIGCONT);
    }
    while (running(p, r->n) && now_ms() < limit && r->signals_taken == taken)
        turn(r, limit - now_ms());
    for (int i = 0; i < r->n; i++)
        proc_signal(&p[i], SIGKILL);
    while (running(p, r->n))
        turn(r, 1000);
}

/* ---- the run --------------------------------------------------------------- */

static bool daemons_ready(run *r)
{
    int64_t limit = now_ms() + START_LIMIT_MS;
    char path[128], why[256] = "";
    for (int i = 0; i < r->n && !r->stop;) {
        cJSON *answer;
        run_node_path(r, i, "sock", path, sizeof path);
        answer = ctl_request(path, "status", 500, why, sizeof why);
        cJSON_Delete(answer);
        if (answer) {
            i++;
            continue;
        }
        if (!r->daemons[i].running || now_ms() > limit) {
            fprintf(stderr, "sleetctl: the daemon of node %d %s: %s\n", i,
                    r->daemons[i].running ? "does not answer" : "ended at its start", why);
            run_show_log(r, i);
            return false;
        }
        turn(r, PROBE_MS);
    }
    return !r->stop;
}

static void summaries(run *r)
{
    char path[128], why[256];
    for (int i = 0; i < r->n; i++) {
        cJSON *status, *peers;
        run_node_path(r, i, "sock", path, sizeof path);
        status = ctl_request(path, "status", 2000, why, sizeof why);
        peers = status ? ctl_request(path, "peers", 2000, why, sizeof why) : NULL;
        if (status)
            show_summary(i, status, peers);
        else
            fprintf(stderr, "sleetctl: no figures from the daemon of node %d: %s\n", i, why);
        cJSON_Delete(status);
        cJSON_Delete(peers);
    }
}

static int conduct(run *r)
{
    int worst = 0;
    for (int i = 0; i < r->n; i++)
        if (!run_spawn_daemon(r, i))
            return CTL_FAILED;
    if (!daemons_ready(r))
        return r->interrupted ? 130 : CTL_FAILED;
    for (int i = 0; i < r->n; i++)
        if (!run_spawn_trainer(r, i))
            return CTL_FAILED;
    r->began_ms = now_ms();
    while (running(r->trainers, r->n) && !r->stop)
        turn(r, 60000);
    for (int k = 0; k < r->freezes; k++)
        if (r->freeze[k].state == FREEZE_ON)
            freeze_end(r, &r->freeze[k]);
    if (r->o->json && !r->stop)
        summaries(r);
    end_all(r, r->trainers);
    for (int i = 0; i < r->n; i++)
        worst = r->trainers[i].code > worst ? r->trainers[i].code : worst;
    return r->interrupted ? 130 : worst;
}

int run_nodes(const run_options *options)
{
    static run r; /* too large for the stack; one run a process */
    sigset_t set;
    int code = CTL_FAILED;
    r.n = options->n;
    r.freezes = options->freezes;
    r.o = options;
    memcpy(r.freeze, options->freeze, sizeof r.freeze);
    for (int i = 0; i < RUN_NODES_MAX; i++)
        r.daemons[i].out = r.trainers[i].out = -1;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    sigprocmask(SIG_BLOCK, &set, &r.mask);
    signal(SIGPIPE, SIG_IGN);
    r.signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (r.signals >= 0 && run_find_programs(r.daemon_path, sizeof r.daemon_path) &&
        run_pick_ports(r.port, r.n) && run_make_dir(r.dir, sizeof r.dir, options->keep) &&
        (!options->sealed || run_make_keys(r.dir, r.n)))
        code = conduct(&r);
    end_all(&r, r.trainers);
    end_all(&r, r.daemons);
    if (!options->keep)
        run_remove_dir(r.dir);
    if (r.signals >= 0)
        close(r.signals);
    return code;
}
