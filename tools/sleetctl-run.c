/* sleetctl-run.c - N daemons and N trainers on this machine, one command.
 *
 * Every child is the leader of its own process group and dies with sleetctl.
 * One poll() loop serves output, signals and timers; nothing is orphaned and
 * the run's directory is removed unless --keep names it. */
#include "sleetctl.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define START_LIMIT_MS 10000 /* for all daemons to answer */
#define GRACE_MS 3000        /* between SIGTERM and SIGKILL */
#define PROBE_MS 20          /* between two looks at a starting daemon */

typedef struct {
    pid_t pid; /* also of its process group */
    bool running;
    int code; /* exit status, 128 + signal */
    int out;  /* read end of its output, -1: none */
    char line[8192];
    size_t len;
} run_proc;

typedef struct {
    int n, freezes;
    const run_options *o;
    run_freeze freeze[RUN_FREEZES_MAX];
    run_proc daemons[RUN_NODES_MAX], trainers[RUN_NODES_MAX];
    uint16_t port[RUN_NODES_MAX];
    char dir[64];
    char daemon_path[512];
    int signals; /* signalfd */
    int signals_taken;
    bool stop, interrupted;
    bool ending; /* what ends now was told to */
    int64_t began_ms; /* trainers' start, 0 before */
    sigset_t mask;    /* the one sleetctl was started with */
} run;

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

/* ---- start -------------------------------------------------------------- */

static void node_path(const run *r, int i, const char *ending, char *out, size_t len)
{
    snprintf(out, len, "%s/node%d.%s", r->dir, i, ending);
}

/* In the child between fork and exec; does not return. */
static void child(const run *r, pid_t parent, int out, char **argv)
{
    int null = open("/dev/null", O_RDONLY);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent || null < 0 || dup2(null, 0) < 0 || dup2(out, 1) < 0 ||
        dup2(out, 2) < 0)
        _exit(126);
    signal(SIGPIPE, SIG_DFL);
    sigprocmask(SIG_SETMASK, &r->mask, NULL);
    execvp(argv[0], argv);
    dprintf(2, "sleetctl: cannot run %s: %s\n", argv[0], strerror(errno));
    _exit(127);
}

/* Start argv with its output to `out`, which stays the caller's.  `env` holds
 * name, value, ... NULL for the child only. */
static bool spawn(const run *r, run_proc *p, int out, char **argv, const char *const *env)
{
    pid_t self = getpid();
    p->pid = fork();
    if (p->pid == 0) {
        for (; env && *env; env += 2)
            setenv(env[0], env[1], 1);
        child(r, self, out, argv);
    }
    if (p->pid < 0) {
        fprintf(stderr, "sleetctl: cannot start %s: %s\n", argv[0], strerror(errno));
        return false;
    }
    setpgid(p->pid, p->pid);
    p->running = true;
    return true;
}

/* One option of a daemon, in memory of the list's. */
struct words {
    char *word[16];
    int n;
    bool ok;
};

static void add_word(struct words *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add_word(struct words *w, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    w->ok = w->ok && w->n < 15 && vasprintf(&w->word[w->n], format, args) >= 0;
    w->n += w->ok;
    va_end(args);
}

static void add_identity(const run *r, struct words *w, int i)
{
    char path[128];
    add_word(w, "--job.security=%s", r->o->sealed ? "sealed" : "none");
    if (!r->o->sealed) {
        add_word(w, "--node.id=%d", i + 1);
        return;
    }
    node_path(r, i, "key", path, sizeof path);
    add_word(w, "--node.key=%s", path);
    add_word(w, "--job.key=%s/job.key", r->dir);
}

static bool spawn_daemon(run *r, int i)
{
    struct words w = {.ok = true};
    char path[128], peers[RUN_NODES_MAX * 24];
    int len = 0;
    for (int k = 0; k < r->n; k++)
        len += snprintf(peers + len, sizeof peers - (size_t)len, "%s127.0.0.1:%d", k ? "," : "",
                        r->port[k]);
    add_word(&w, "%s", r->daemon_path);
    add_word(&w, "--job.peers=%s", peers);
    add_identity(r, &w, i);
    add_word(&w, "--node.listen=127.0.0.1:%d", r->port[i]);
    node_path(r, i, "sock", path, sizeof path);
    add_word(&w, "--node.control=%s", path);
    if (r->o->loss)
        add_word(&w, "--emulate.loss=%s", r->o->loss);
    if (r->o->seed) /* each node its own, else all would lose in step */
        add_word(&w, "--emulate.seed=%llu",
                 strtoull(r->o->seed, NULL, 10) * RUN_NODES_MAX + (unsigned long long)i + 1);
    if (r->o->rate_mbit)
        add_word(&w, "--job.rate_mbit=%s", r->o->rate_mbit);
    node_path(r, i, "log", path, sizeof path);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    bool ok = fd >= 0 && w.ok && spawn(r, &r->daemons[i], fd, w.word, NULL);
    if (fd >= 0)
        close(fd);
    else
        fprintf(stderr, "sleetctl: cannot write %s: %s\n", path, strerror(errno));
    for (int k = 0; k < w.n; k++)
        free(w.word[k]);
    return ok;
}

/* Everything the daemon of node `i` said, to stderr. */
static void show_log(const run *r, int i)
{
    char path[128], line[1024];
    FILE *f;
    node_path(r, i, "log", path, sizeof path);
    f = fopen(path, "re");
    while (f && fgets(line, sizeof line, f))
        fprintf(stderr, "  sleetd: %s", line);
    if (f)
        fclose(f);
}

static bool spawn_trainer(run *r, int i)
{
    char control[128], node[12], nodes[12];
    const char *env[] = {"SLEET_CONTROL", control, "SLEET_NODE", node, "SLEET_RANK", node,
                         "SLEET_NODES", nodes, NULL};
    char *argv[256] = {NULL};
    int pipe_fds[2], words = 0;
    bool ok = pipe(pipe_fds) == 0;
    node_path(r, i, "sock", control, sizeof control);
    snprintf(node, sizeof node, "%d", i);
    snprintf(nodes, sizeof nodes, "%d", r->n);
    for (int k = 0; ok && k < 2; k++) /* not for the other children */
        fcntl(pipe_fds[k], F_SETFD, FD_CLOEXEC);
    for (; ok && r->o->command[words] && words < 255; words++)
        ok = (argv[words] = run_fill_in(r->o->command[words], i, r->n)) != NULL;
    if (ok) {
        fcntl(pipe_fds[0], F_SETFL, O_NONBLOCK);
        ok = spawn(r, &r->trainers[i], pipe_fds[1], argv, env);
        r->trainers[i].out = pipe_fds[0];
        close(pipe_fds[1]);
    } else {
        fprintf(stderr, "sleetctl: cannot start a trainer: %s\n", strerror(errno));
    }
    for (int k = 0; k < words; k++)
        free(argv[k]);
    return ok;
}

static bool daemons_ready(run *r)
{
    int64_t limit = now_ms() + START_LIMIT_MS;
    char path[128], why[256] = "";
    for (int i = 0; i < r->n && !r->stop;) {
        cJSON *answer;
        node_path(r, i, "sock", path, sizeof path);
        answer = ctl_request(path, "status", 500, why, sizeof why);
        cJSON_Delete(answer);
        if (answer) {
            i++;
            continue;
        }
        if (!r->daemons[i].running || now_ms() > limit) {
            fprintf(stderr, "sleetctl: the daemon of node %d %s: %s\n", i,
                    r->daemons[i].running ? "does not answer" : "ended at its start", why);
            show_log(r, i);
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
        node_path(r, i, "sock", path, sizeof path);
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
        if (!spawn_daemon(r, i))
            return CTL_FAILED;
    if (!daemons_ready(r))
        return r->interrupted ? 130 : CTL_FAILED;
    for (int i = 0; i < r->n; i++)
        if (!spawn_trainer(r, i))
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
