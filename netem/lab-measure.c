/* lab-measure.c - what came out, by the links' counters and by the daemons' own. */
#include "lab.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static cJSON *ask(const struct lab *lab, const struct lab_node *n, const char *command)
{
    char program[600], path[160], *text = NULL;
    snprintf(program, sizeof program, "%s/sleetctl", lab->bin);
    node_path(lab, n->number, "sock", path, sizeof path);
    const char *argv[] = {program, "-s", path, "--json", command, NULL};
    cJSON *answer = lab_exec(argv, NULL, &text) == 0 ? cJSON_Parse(text) : NULL;
    free(text);
    return answer;
}

void measure_collect(struct lab *lab)
{
    for (int i = 0; i < (int)lab->s->nodes; i++) {
        struct lab_node *n = &lab->node[i];
        struct link_counts now = {0, 0};
        if (n->daemon.pid > 0 && !n->daemon.ended && !n->frozen) {
            n->status = ask(lab, n, "status");
            n->peers = ask(lab, n, "peers");
        }
        lab->backend->count(i + 1, &now);
        n->counted.passed += now.passed;
        n->counted.lost += now.lost;
    }
}

static double number(const cJSON *in, const char *group, const char *name)
{
    const cJSON *item = cJSON_GetObjectItem(cJSON_GetObjectItem(in, group), name);
    return cJSON_IsNumber(item) ? item->valuedouble : NAN;
}

/* Loss on the way here, its mean run, and round trips, over all peers. */
static void peers_values(const struct lab_node *n, double *loss, double *run, double *rtt)
{
    const cJSON *peer, *list = cJSON_GetObjectItem(n->peers, "peers");
    double lost = 0, received = 0, gaps = 0, rtts[LAB_NODES];
    size_t known = 0;
    cJSON_ArrayForEach(peer, list)
    {
        const cJSON *l = cJSON_GetObjectItem(peer, "lost"),
                    *r = cJSON_GetObjectItem(peer, "received"),
                    *g = cJSON_GetObjectItem(peer, "gaps");
        const cJSON *t = cJSON_GetObjectItem(peer, "rtt_ms");
        lost += cJSON_IsNumber(l) ? l->valuedouble : 0;
        received += cJSON_IsNumber(r) ? r->valuedouble : 0;
        gaps += cJSON_IsNumber(g) ? g->valuedouble : 0;
        if (cJSON_IsNumber(t) && known < LAB_NODES)
            rtts[known++] = t->valuedouble;
    }
    *loss = lost + received > 0 ? lost / (lost + received) : NAN;
    *run = gaps > 0 ? lost / gaps : NAN;
    *rtt = scenario_quantile(rtts, known, 0.5);
}

/* Datagrams that failed the UDP checksum in the namespace of this process. */
static double kernel_checksum_errors(pid_t pid)
{
    char path[64], line[1024], *save;
    int column = -1;
    double found = NAN;
    snprintf(path, sizeof path, "/proc/%d/net/snmp", (int)pid);
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof line, f)) {
        if (strncmp(line, "Udp: ", 5) != 0)
            continue;
        int i = 0;
        for (char *w = strtok_r(line, " \n", &save); w; w = strtok_r(NULL, " \n", &save), i++) {
            if (strcmp(w, "InCsumErrors") == 0)
                column = i;
            else if (i == column && column > 0)
                found = strtod(w, NULL);
        }
    }
    if (f)
        fclose(f);
    return found;
}

void measure_values(const struct lab *lab, scenario_values v)
{
    double best = 0;
    for (int m = 0; m < METRIC_COUNT; m++)
        for (int i = 0; i < LAB_NODES; i++)
            v[m][i] = NAN;
    for (int i = 0; i < (int)lab->s->nodes; i++)
        if (lab->node[i].done)
            best = fmax(best, lab->node[i].accuracy);
    for (int i = 0; i < (int)lab->s->nodes; i++) {
        const struct lab_node *n = &lab->node[i];
        double all = (double)(n->counted.passed + n->counted.lost);
        v[METRIC_DONE][i] = n->done && n->trainer.ended && n->trainer.code == 0;
        v[METRIC_STEPS][i] = (double)n->steps;
        v[METRIC_RETURNED][i] = (double)n->returned;
        scenario_course_values(&n->course, &v[METRIC_JOINED][i], &v[METRIC_GAP][i]);
        v[METRIC_LONGEST_WAIT][i] = n->wait_count ? n->longest_wait : NAN;
        v[METRIC_WAIT_P50][i] = 1000 * scenario_quantile(n->waits, n->wait_count, 0.5);
        v[METRIC_WAIT_P95][i] = 1000 * scenario_quantile(n->waits, n->wait_count, 0.95);
        if (n->done) {
            v[METRIC_ACCURACY][i] = n->accuracy;
            v[METRIC_ACCURACY_GAP][i] = best - n->accuracy;
            v[METRIC_COVERAGE][i] = n->coverage;
            v[METRIC_LEAST_COVERAGE][i] = n->least_coverage;
        }
        v[METRIC_DUPLICATES][i] = number(n->status, "datagrams", "duplicate");
        v[METRIC_CORRUPT][i] = number(n->status, "datagrams", "corrupt");
        v[METRIC_CORRUPT_KERNEL][i] =
            n->daemon.pid > 0 ? kernel_checksum_errors(n->daemon.pid) : NAN;
        peers_values(n, &v[METRIC_LOSS_LEDGER][i], &v[METRIC_LOSS_RUN][i], &v[METRIC_RTT][i]);
        v[METRIC_LOSS_LINK][i] = all > 0 ? (double)n->counted.lost / all : NAN;
        v[METRIC_LOSS_GAP][i] = fabs(v[METRIC_LOSS_LINK][i] - v[METRIC_LOSS_LEDGER][i]);
    }
}

/* One line for each kind of link that the file names. */
static void print_links(const struct scenario *s)
{
    uint32_t told = 0;
    for (int i = 0; i < (int)s->nodes; i++) {
        char link[160], nodes[64];
        uint32_t same = 0;
        for (int k = i; k < (int)s->nodes; k++)
            if (memcmp(&s->link[i], &s->link[k], sizeof s->link[i]) == 0)
                same |= 1u << k;
        if (told & 1u << i)
            continue;
        told |= same;
        scenario_link_text(&s->link[i], link, sizeof link);
        scenario_nodes_text(same, nodes, sizeof nodes);
        printf("  links towards %s: %s\n", nodes, link);
    }
}

void measure_print(const struct lab *lab, scenario_values v, double seconds)
{
    double packets = 0;
    print_links(lab->s);
    printf("  %-4s  %9s  %9s  %9s  %4s  %8s  %8s  %8s  %9s  %9s  %8s\n", "node", "datagrams",
           "link lost", "sleetd", "run", "rtt", "coverage", "accuracy", "wait p50", "wait p95", "longest");
    for (int i = 0; i < (int)lab->s->nodes; i++) {
        const struct link_counts *c = &lab->node[i].counted;
        char run[16];
        packets += (double)(c->passed + c->lost);
        printf("  %-4d  %9llu  %7.2f %%  %7.2f %%  %4s  %5.1f ms  %8.4f  %6.2f %%  %6.1f ms  %6.1f ms  "
               "%6.2f s\n",
               i + 1, (unsigned long long)(c->passed + c->lost), 100 * v[METRIC_LOSS_LINK][i],
               100 * v[METRIC_LOSS_LEDGER][i], scenario_figure(v[METRIC_LOSS_RUN][i], run), v[METRIC_RTT][i], v[METRIC_COVERAGE][i],
               100 * v[METRIC_ACCURACY][i], v[METRIC_WAIT_P50][i], v[METRIC_WAIT_P95][i],
               v[METRIC_LONGEST_WAIT][i]);
    }
    printf("  %.0f datagrams in %.1f s, %.0f a second\n", packets, seconds, packets / seconds);
}

cJSON *measure_json(const struct lab *lab, scenario_values v, double seconds)
{
    cJSON *root = cJSON_CreateObject(), *nodes = cJSON_AddArrayToObject(root, "nodes");
    cJSON *expect = cJSON_AddArrayToObject(root, "expect");
    cJSON_AddStringToObject(root, "scenario", lab->s->name);
    cJSON_AddStringToObject(root, "backend", lab->backend->name);
    cJSON_AddNumberToObject(root, "seconds", seconds);
    for (int i = 0; i < (int)lab->s->nodes; i++) {
        const struct lab_node *n = &lab->node[i];
        cJSON *o = cJSON_CreateObject();
        cJSON_AddNumberToObject(o, "node", i + 1);
        for (int m = 0; m < METRIC_COUNT; m++)
            if (!isnan(v[m][i]))
                cJSON_AddNumberToObject(o, scenario_metric_names[m], v[m][i]);
        cJSON_AddNumberToObject(o, "link_passed", (double)n->counted.passed);
        cJSON_AddNumberToObject(o, "link_lost", (double)n->counted.lost);
        if (n->status)
            cJSON_AddItemReferenceToObject(o, "status", n->status);
        if (n->peers)
            cJSON_AddItemReferenceToObject(o, "peers", cJSON_GetObjectItem(n->peers, "peers"));
        cJSON_AddItemToArray(nodes, o);
    }
    for (int i = 0; i < lab->s->expects; i++) {
        const struct scenario_expect *e = &lab->s->expect[i];
        cJSON *o = cJSON_CreateObject();
        char text[128];
        double worst = scenario_worst(lab->s, e, v);
        scenario_expect_text(e, text, sizeof text);
        cJSON_AddStringToObject(o, "expect", text);
        if (!isnan(worst))
            cJSON_AddNumberToObject(o, "found", worst);
        cJSON_AddBoolToObject(o, "ok", !isnan(worst) && scenario_holds(e, worst));
        cJSON_AddItemToArray(expect, o);
    }
    return root;
}
