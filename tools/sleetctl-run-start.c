/* sleetctl-run-start.c - how `sleetctl run` starts a daemon and a trainer.
 *
 * Every child is the leader of its own process group and dies with sleetctl. */
#include "sleetctl-run.h"
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

void run_node_path(const run *r, int i, const char *ending, char *out, size_t len)
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
    run_node_path(r, i, "key", path, sizeof path);
    add_word(w, "--node.key=%s", path);
    add_word(w, "--job.key=%s/job.key", r->dir);
}

bool run_spawn_daemon(run *r, int i)
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
    run_node_path(r, i, "sock", path, sizeof path);
    add_word(&w, "--node.control=%s", path);
    if (r->o->loss)
        add_word(&w, "--emulate.loss=%s", r->o->loss);
    if (r->o->seed) /* each node its own, else all would lose in step */
        add_word(&w, "--emulate.seed=%llu",
                 strtoull(r->o->seed, NULL, 10) * RUN_NODES_MAX + (unsigned long long)i + 1);
    if (r->o->rate_mbit)
        add_word(&w, "--job.rate_mbit=%s", r->o->rate_mbit);
    run_node_path(r, i, "log", path, sizeof path);
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

void run_show_log(const run *r, int i)
{
    char path[128], line[1024];
    FILE *f;
    run_node_path(r, i, "log", path, sizeof path);
    f = fopen(path, "re");
    while (f && fgets(line, sizeof line, f))
        fprintf(stderr, "  sleetd: %s", line);
    if (f)
        fclose(f);
}

bool run_spawn_trainer(run *r, int i)
{
    char control[128], node[12], nodes[12];
    const char *env[] = {"SLEET_CONTROL", control, "SLEET_NODE", node, "SLEET_RANK", node,
                         "SLEET_NODES", nodes, NULL};
    char *argv[256] = {NULL};
    int pipe_fds[2], words = 0;
    bool ok = pipe(pipe_fds) == 0;
    run_node_path(r, i, "sock", control, sizeof control);
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
