/* lab-node.c - the processes of a node, and what its trainer prints. */
#include "lab.h"
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define DAEMON_WAIT_S 15 /* until a daemon that does not answer is given up */

void node_path(const struct lab *lab, int node, const char *ending, char *out, size_t len)
{
    snprintf(out, len, "%s/node%d.%s", lab->dir, node, ending);
}

static bool fail(struct lab *lab)
{
    lab->broken = true;
    return false;
}

/* ---- start -------------------------------------------------------------- */

bool node_start(struct lab *lab, struct lab_node *n)
{
    char log[128], id[40], listen[64], control[160], rate[48], seed[48], program[600];
    char job_key[200], own_key[200];
    const struct scenario *s = lab->s;
    struct lab_text peers = {0};
    int i = n->number;
    bool inside = s->nat & 1u << (i - 1);
    node_path(lab, i, "log", log, sizeof log);
    snprintf(program, sizeof program, "%s/sleetd", lab->bin);
    snprintf(id, sizeof id, "--node.id=%d", i);
    snprintf(listen, sizeof listen,
             inside ? "--node.listen=" LAB_INSIDE ".%d.2:%d" : "--node.listen=" LAB_SUBNET ".%d:%d",
             i, LAB_PORT);
    node_path(lab, i, "sock", control + 15, sizeof control - 15);
    memcpy(control, "--node.control=", 15);
    snprintf(rate, sizeof rate, "--job.rate_mbit=%g", lab->s->rate_mbit);
    snprintf(seed, sizeof seed, "--emulate.seed=%.0f", lab->s->seed * 1000 + i);
    lab_add(&peers, "--job.peers=");
    for (int k = 1; k <= (int)(s->seeds > 0 ? s->seeds : s->nodes); k++)
        lab_add(&peers, k > 1 ? ",%s.%d:%d" : "%s.%d:%d", LAB_SUBNET, k, LAB_PORT);
    keys_options(lab, i, job_key, own_key);
    const char *argv[] = {program, listen, control, rate, seed, peers.text,
                          s->sealed ? own_key : id, s->sealed ? "--job.security=sealed" : "--job.security=none",
                          s->go_on ? "--job.on_partition=continue" : "--job.on_partition=park",
                          s->sealed ? job_key : NULL, NULL};
    int out = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    n->daemon = (struct lab_proc){.pid = out < 0 ? -1 : lab_spawn(argv, NULL, n->ns, out)};
    if (out >= 0)
        close(out);
    else
        lab_say("cannot write %s: %s", log, strerror(errno));
    free(peers.text);
    n->trainer = (struct lab_proc){0};
    n->waiting = n->daemon.pid > 0;
    n->waits_since = lab_now();
    scenario_course_start(&n->course, lab_now());
    return n->waiting || fail(lab);
}

static bool answers(const struct lab *lab, int node)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    node_path(lab, node, "sock", to.sun_path, sizeof to.sun_path);
    bool ok = fd >= 0 && connect(fd, (const struct sockaddr *)&to, sizeof to) == 0;
    if (fd >= 0)
        close(fd);
    return ok;
}

/* sleet-train's options, name and value, from the workload. */
static size_t trainer_words(const struct lab *lab, const char **argv, char values[][32])
{
    const struct scenario_workload *w = &lab->s->workload;
    const struct {
        const char *name;
        double value;
        bool or_none; /* 0 is no value of sleet-train's */
    } options[] = {{"--limit", w->samples, false},
                   {"--epochs", w->epochs, false},
                   {"--batch", w->batch, false},
                   {"--hidden", w->hidden, false},
                   {"--lr", w->lr, false},
                   {"--deadline", w->deadline_s, false},
                   {"--min-nodes", w->min_nodes, false},
                   {"--min-wait", w->min_wait_s, false},
                   {"--seed", lab->s->seed, false},
                   {"--step-time", w->step_ms / 1000, false},
                   {"--evaluate", w->evaluate, true}};
    size_t words = 1;
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        if (options[i].or_none && options[i].value <= 0)
            continue;
        snprintf(values[i], sizeof values[i], "%.10g", options[i].value);
        argv[words++] = options[i].name;
        argv[words++] = values[i];
    }
    argv[words++] = "--shards";
    argv[words++] = w->shards;
    argv[words++] = "--json";
    return words;
}

static bool start_trainer(struct lab *lab, struct lab_node *n)
{
    char control[160], node[12], nodes[12], program[600], values[16][32];
    const char *argv[40] = {program};
    const char *env[] = {"SLEET_CONTROL",        control, "SLEET_NODE", node, "SLEET_NODES", nodes,
                         "OPENBLAS_NUM_THREADS", "1",     NULL};
    int fds[2];
    snprintf(program, sizeof program, "%s/sleet-train", lab->bin);
    node_path(lab, n->number, "sock", control, sizeof control);
    snprintf(node, sizeof node, "%d", n->number - 1);
    snprintf(nodes, sizeof nodes, "%d", (int)lab->s->nodes);
    argv[trainer_words(lab, argv, values)] = NULL;
    if (pipe2(fds, O_CLOEXEC) != 0)
        return fail(lab);
    fcntl(fds[0], F_SETFL, O_NONBLOCK);
    n->trainer = (struct lab_proc){.pid = lab_spawn(argv, env, n->ns, fds[1])};
    n->out = fds[0];
    n->len = 0;
    if (!n->lines) {
        node_path(lab, n->number, "jsonl", control, sizeof control);
        n->lines = fopen(control, "we");
    }
    close(fds[1]);
    return n->trainer.pid > 0 || fail(lab);
}

bool node_follow(struct lab *lab, struct lab_node *n)
{
    if (!n->waiting)
        return true;
    if (answers(lab, n->number)) {
        n->waiting = false;
        return start_trainer(lab, n);
    }
    if (!n->daemon.ended && lab_now() - n->waits_since < DAEMON_WAIT_S)
        return true;
    n->waiting = false;
    lab_say("the daemon of node %d %s", n->number,
            n->daemon.ended ? "ended at its start" : "does not answer");
    return fail(lab);
}

/* ---- signals and ends ---------------------------------------------------------- */

void node_signal(struct lab_node *n, int sig, bool daemon_too)
{
    if (n->trainer.pid > 0 && !n->trainer.ended)
        kill(-n->trainer.pid, sig);
    if (daemon_too && n->daemon.pid > 0 && !n->daemon.ended)
        kill(-n->daemon.pid, sig);
    if (sig == SIGKILL)
        n->trainer.killed = n->daemon.killed = daemon_too;
}

static void reap(struct lab *lab, struct lab_proc *p, const char *what, int node)
{
    int status;
    if (p->pid <= 0 || p->ended || waitpid(p->pid, &status, WNOHANG) != p->pid)
        return;
    p->ended = true;
    p->code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    if (p->code != 0 && !p->killed) {
        lab_say("the %s of node %d ended with %d", what, node, p->code);
        lab->broken = true;
    }
}

void node_reap(struct lab *lab, struct lab_node *n)
{
    reap(lab, &n->trainer, "trainer", n->number);
    reap(lab, &n->daemon, "daemon", n->number);
    while (n->trainer.ended && n->out >= 0 && node_read(lab, n))
        ;
    if (n->trainer.ended && n->out >= 0) {
        close(n->out);
        n->out = -1;
    }
}

bool node_busy(const struct lab_node *n)
{
    return n->waiting || (n->trainer.pid > 0 && !n->trainer.ended);
}

/* ---- what the trainer prints ------------------------------------------------------ */

static double field(const cJSON *line, const char *name)
{
    const cJSON *item = cJSON_GetObjectItem(line, name);
    return cJSON_IsNumber(item) ? item->valuedouble : NAN;
}

static void add_wait(struct lab_node *n, double wait)
{
    if (n->wait_count == n->wait_room) {
        n->wait_room = n->wait_room ? 2 * n->wait_room : 256;
        n->waits = realloc(n->waits, n->wait_room * sizeof *n->waits);
        if (!n->waits)
            abort();
    }
    n->waits[n->wait_count++] = wait;
}

/* A line each tenth of the way. */
static void progress(const struct lab *lab, uint64_t before, const cJSON *line)
{
    uint64_t steps = scenario_steps(lab->s), now = lab->top_step;
    if (now * 10 / steps == before * 10 / steps)
        return;
    printf("  %6.1f s, step %llu of %llu: loss %.3f, coverage %.3f\n", lab_now() - lab->began,
           (unsigned long long)now, (unsigned long long)steps, field(line, "loss"),
           field(line, "coverage"));
    fflush(stdout);
}

static void on_step(struct lab *lab, struct lab_node *n, const cJSON *line)
{
    double wait = field(line, "wait_s"), step = field(line, "step");
    double coverage = field(line, "group") > 1 ? field(line, "coverage") : 0;
    uint64_t before = lab->top_step;
    n->steps++;
    if (step > (double)n->step)
        n->step = (uint64_t)step;
    if (n->step > lab->top_step)
        lab->top_step = n->step;
    progress(lab, before, line);
    if (lab->next_event == lab->s->events && coverage >= SCENARIO_COVERED)
        n->returned++;
    scenario_course_round(&n->course, lab_now(), coverage, step + 2 >= (double)lab->top_step);
    if (isnan(wait))
        return;
    if (!n->excused) {
        add_wait(n, wait);
        n->longest_wait = fmax(n->longest_wait, wait);
    }
    n->excused = n->frozen;
}

static void on_line(struct lab *lab, struct lab_node *n)
{
    cJSON *line;
    n->line[n->len] = '\0';
    n->len = 0;
    line = n->line[0] == '{' ? cJSON_Parse(n->line) : NULL;
    const cJSON *event = cJSON_GetObjectItem(line, "event");
    if (n->lines)
        fprintf(n->lines, "%s\n", n->line);
    if (!line && strstr(n->line, "sleet-train: ") == n->line && !strstr(n->line, "MLP"))
        lab_say("node %d: %s", n->number, n->line); /* a sentence of the trainer */
    if (cJSON_IsString(event) && strcmp(event->valuestring, "step") == 0)
        on_step(lab, n, line);
    if (cJSON_IsString(event) && strcmp(event->valuestring, "done") == 0) {
        n->done = true;
        scenario_course_end(&n->course, lab_now());
        n->coverage = field(line, "coverage");
        n->least_coverage = field(line, "least_coverage");
        n->accuracy = field(line, "averaged_accuracy");
    }
    cJSON_Delete(line);
}

bool node_read(struct lab *lab, struct lab_node *n)
{
    char buf[4096];
    ssize_t got = read(n->out, buf, sizeof buf);
    for (ssize_t i = 0; i < got; i++) {
        if (buf[i] == '\n' || n->len == sizeof n->line - 1)
            on_line(lab, n);
        if (buf[i] != '\n')
            n->line[n->len++] = buf[i];
    }
    if (got == 0) {
        close(n->out);
        n->out = -1;
    }
    return got > 0;
}
