/* lab-link.c - what a link does to datagrams: netem where the kernel has it; else
 * loss by nftables and rate by tbf.  Both on the bridge's side of a node's veth,
 * behind the sender's segmentation, so the direction is towards the node. */
#include "lab.h"
#include <math.h>
#include <sched.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define LIMIT_PACKETS 100000 /* nothing is dropped by the queue's length */
#define QUEUE_KB 256
#define PACKET_BYTES 1266 /* a datagram of 1224 bytes and its headers */
#define TABLE LAB_PREFIX

static bool add_qdisc(const char *port, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static bool add_qdisc(const char *port, const char *format, ...)
{
    char words[512];
    const char *argv[64] = {"tc", "qdisc", "add", "dev", port, "root"};
    size_t n = 6;
    va_list args;
    va_start(args, format);
    vsnprintf(words, sizeof words, format, args);
    va_end(args);
    for (char *save, *w = strtok_r(words, " ", &save); w && n < 63; w = strtok_r(NULL, " ", &save))
        argv[n++] = w;
    return lab_must(argv, NULL);
}

/* tc's "change" would keep options that are not mentioned. */
static void delete_qdisc(const char *port)
{
    const char *argv[] = {"tc", "qdisc", "del", "dev", port, "root", NULL};
    lab_exec(argv, NULL, NULL); /* fails where there is none yet */
}

static double queue_kb(const struct scenario_link *l)
{
    return l->queue_kb > 0 ? l->queue_kb : QUEUE_KB;
}

/* In a namespace that nobody else sees. */
static bool works_aside(const char *const *argv)
{
    int status = 1;
    pid_t pid = fork();
    if (pid == 0)
        _exit(unshare(CLONE_NEWNET) != 0 || lab_exec(argv, NULL, NULL) != 0);
    return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

static bool is_root(char *why, size_t len)
{
    if (geteuid() == 0)
        return true;
    snprintf(why, len, "it needs root");
    return false;
}

/* ---- netem ---------------------------------------------------------------- */

static bool netem_available(char *why, size_t len)
{
    const char *argv[] = {"tc", "qdisc", "add", "dev", "lo", "root", "netem", "limit", "9", NULL};
    if (!is_root(why, len))
        return false;
    snprintf(why, len, "this kernel has no netem (module sch_netem)");
    return works_aside(argv);
}

static bool netem_suits(const struct scenario *s)
{
    (void)s;
    return true;
}

static bool netem_set(int node, const struct scenario_link *l)
{
    char port[24];
    struct lab_text t = {0};
    double packets = LIMIT_PACKETS;
    net_port(node, port);
    if (l->rate_mbit > 0) /* what is on its way, and the queue */
        packets = (l->rate_mbit * 125 * (l->delay_ms + l->jitter_ms) + queue_kb(l) * 1024) /
                      PACKET_BYTES +
                  1;
    lab_add(&t, "netem limit %.0f", ceil(packets));
    if (l->delay_ms > 0)
        lab_add(&t, " delay %gms %gms", l->delay_ms, l->jitter_ms);
    if (l->loss > 0)
        lab_add(&t, " loss random %g%%", 100 * l->loss);
    if (l->gemodel_p > 0)
        lab_add(&t, " loss gemodel %g%% %g%%", 100 * l->gemodel_p, 100 * l->gemodel_r);
    if (l->duplicate > 0)
        lab_add(&t, " duplicate %g%%", 100 * l->duplicate);
    if (l->corrupt > 0)
        lab_add(&t, " corrupt %g%%", 100 * l->corrupt);
    if (l->reorder > 0)
        lab_add(&t, " reorder %g%%", 100 * l->reorder);
    if (l->rate_mbit > 0)
        lab_add(&t, " rate %gmbit", l->rate_mbit);
    delete_qdisc(port);
    bool ok = add_qdisc(port, "%s", t.text);
    free(t.text);
    return ok;
}

static bool netem_count(int node, struct link_counts *out)
{
    char port[24], *json = NULL;
    net_port(node, port);
    const char *argv[] = {"tc", "-s", "-j", "qdisc", "show", "dev", port, NULL};
    bool ok = false;
    if (lab_exec(argv, NULL, &json) == 0) {
        cJSON *list = cJSON_Parse(json);
        const cJSON *passed = cJSON_GetObjectItem(cJSON_GetArrayItem(list, 0), "packets");
        const cJSON *lost = cJSON_GetObjectItem(cJSON_GetArrayItem(list, 0), "drops");
        ok = cJSON_IsNumber(passed) && cJSON_IsNumber(lost);
        if (ok)
            *out = (struct link_counts){(uint64_t)passed->valuedouble, (uint64_t)lost->valuedouble};
        cJSON_Delete(list);
    }
    free(json);
    return ok;
}

const struct lab_backend backend_kernel = {
    "kernel", "netem of this kernel", netem_available, netem_suits, netem_set, netem_count, 0, false};
const struct lab_backend backend_guest = {
    "uml", "netem of User-Mode Linux", netem_available, netem_suits, netem_set, netem_count, 0, true};

/* ---- loss and rate without netem ---------------------------------------------- */

static bool loss_available(char *why, size_t len)
{
    const char *argv[] = {"nft", "add", "table", "netdev", TABLE, NULL};
    if (!is_root(why, len))
        return false;
    snprintf(why, len, "this kernel has no nftables, or nft is missing (package nftables)");
    return lab_find("nft") && works_aside(argv);
}

static bool loss_can(const struct scenario *s, const struct scenario_link *l)
{
    const char *lacking = l->gemodel_p > 0   ? "gemodel_p"
                          : l->duplicate > 0 ? "duplicate"
                          : l->corrupt > 0   ? "corrupt"
                          : l->reorder > 0   ? "reorder"
                                             : NULL;
    if (lacking)
        lab_say("%s needs %s, which the backend loss cannot do; use --backend kernel or uml",
                s->name, lacking);
    return !lacking;
}

static bool loss_suits(const struct scenario *s)
{
    bool delay = false;
    for (int i = 0; i < (int)s->nodes; i++) {
        if (!loss_can(s, &s->link[i]))
            return false;
        delay |= s->link[i].delay_ms > 0;
    }
    for (int i = 0; i < s->events; i++)
        if (s->event[i].action == SCENARIO_LINK && !loss_can(s, &s->event[i].link))
            return false;
    if (delay)
        lab_say("%s: the backend loss leaves out the delay", s->name);
    return true;
}

/* A chain of its own for each port: "add" of what exists is no error, so clear first. */
static bool loss_set(int node, const struct scenario_link *l)
{
    char port[24];
    struct lab_text t = {0};
    const char *argv[] = {"nft", "-f", "-", NULL};
    net_port(node, port);
    lab_add(&t, "reset counter netdev " TABLE " seen%d\nreset counter netdev " TABLE " lost%d\n",
            node, node);
    lab_exec(argv, t.text, NULL); /* fails where there are none yet */
    t.len = 0;
    lab_add(&t,
            "add table netdev " TABLE "\n"
            "add chain netdev " TABLE " c%d { type filter hook egress device \"%s\" priority 0; }\n"
            "flush chain netdev " TABLE " c%d\n"
            "add counter netdev " TABLE " seen%d\nadd counter netdev " TABLE " lost%d\n",
            node, port, node, node, node);
    lab_add(&t, "add rule netdev " TABLE " c%d counter name seen%d\n", node, node);
    if (l->loss > 0)
        lab_add(&t,
                "add rule netdev " TABLE " c%d numgen random mod 1000000 < %.0f "
                "counter name lost%d drop\n",
                node, l->loss * 1e6, node);
    bool ok = lab_must(argv, t.text);
    free(t.text);
    delete_qdisc(port);
    if (ok && l->rate_mbit > 0)
        ok = add_qdisc(port, "tbf rate %gmbit burst 16kb limit %.0f", l->rate_mbit,
                       queue_kb(l) * 1024);
    return ok;
}

void link_clear(void)
{
    const char *argv[] = {"nft", "delete", "table", "netdev", TABLE, NULL};
    if (lab_find("nft"))
        lab_exec(argv, NULL, NULL); /* fails where there is none */
}

static uint64_t nft_counter(const char *kind, int node)
{
    char name[24], *json = NULL;
    uint64_t packets = 0;
    snprintf(name, sizeof name, "%s%d", kind, node);
    const char *argv[] = {"nft", "-j", "list", "counter", "netdev", TABLE, name, NULL};
    if (lab_exec(argv, NULL, &json) == 0) {
        cJSON *root = cJSON_Parse(json);
        const cJSON *item = cJSON_GetArrayItem(cJSON_GetObjectItem(root, "nftables"), 1);
        const cJSON *n = cJSON_GetObjectItem(cJSON_GetObjectItem(item, "counter"), "packets");
        packets = cJSON_IsNumber(n) ? (uint64_t)n->valuedouble : 0;
        cJSON_Delete(root);
    }
    free(json);
    return packets;
}

static bool loss_count(int node, struct link_counts *out)
{
    struct link_counts queue = {0, 0};
    uint64_t seen = nft_counter("seen", node), lost = nft_counter("lost", node);
    netem_count(node, &queue); /* what tbf's queue dropped */
    out->lost = lost + queue.lost;
    out->passed = seen > out->lost ? seen - out->lost : 0;
    return true;
}

const struct lab_backend backend_loss = {
    "loss",          "loss by nftables and rate by tbf, no delay",
    loss_available,  loss_suits,
    loss_set,        loss_count,
    1u << METRIC_RTT, false};
