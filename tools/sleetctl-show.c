/* sleetctl-show.c - the daemon's answers as tables for people.  Field names:
 * docs/control.md.  A missing field prints as 0 or "-", never as an error. */
#include "sleetctl.h"
#include "sleet.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The number at a dotted path; `none` where it is absent or null. */
static double num(const cJSON *o, const char *path, double none)
{
    const char *dot = strchr(path, '.');
    if (dot) {
        char head[64];
        snprintf(head, sizeof head, "%.*s", (int)(dot - path), path);
        return num(cJSON_GetObjectItemCaseSensitive(o, head), dot + 1, none);
    }
    o = cJSON_GetObjectItemCaseSensitive(o, path);
    if (cJSON_IsNumber(o))
        return o->valuedouble;
    return cJSON_IsString(o) ? strtod(o->valuestring, NULL) : none;
}

static const char *str(const cJSON *o, const char *key)
{
    o = cJSON_GetObjectItemCaseSensitive(o, key);
    return cJSON_IsString(o) ? o->valuestring : "-";
}

static bool yes(const cJSON *o, const char *key)
{
    return cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(o, key));
}

static const cJSON *list(const cJSON *o, const char *key)
{
    return cJSON_GetObjectItemCaseSensitive(o, key);
}

/* Milliseconds for people, "-" where unknown (negative). */
static const char *ms(double value, char out[24])
{
    if (value < 0)
        return "-";
    if (value < 10000)
        snprintf(out, 24, "%.1f ms", value);
    else
        snprintf(out, 24, "%.1f s", value / 1e3);
    return out;
}

static const char *flag_names(const cJSON *round, char *out, size_t size)
{
    const cJSON *flags = list(round, "flags"), *f;
    size_t len = 0;
    unsigned bits = cJSON_IsNumber(flags) ? (unsigned)flags->valuedouble : 0;
    out[0] = '\0';
    if (cJSON_IsString(flags))
        snprintf(out, size, "%s", flags->valuestring);
    cJSON_ArrayForEach(f, flags)
    {
        if (cJSON_IsString(f) && len + strlen(f->valuestring) + 2 < size)
            len += (size_t)snprintf(out + len, size - len, "%s ", f->valuestring);
    }
#define SLEET_X(name, bit, text)                                                            \
    if (bits & (1u << (bit)) && len + sizeof(text) + 1 < size)                              \
        len += (size_t)snprintf(out + len, size - len, "%s ", text);
    SLEET_REPORT_FLAG_MAP(SLEET_X)
#undef SLEET_X
    return out;
}

static void show_ledger(const cJSON *set, const char *side)
{
    const cJSON *l = list(set, side);
    printf("    %-8s %10.0f expected = %.0f direct + %.0f repaired + %.0f late + %.0f lost + "
           "%.0f unsent\n",
           side, num(l, "expected", 0), num(l, "direct", 0), num(l, "repaired", 0),
           num(l, "late", 0), num(l, "lost", 0), num(l, "unsent", 0));
}

static void show_set(const cJSON *set)
{
    char a[24], b[24];
    const char *schema = str(set, "schema");
    printf("\nset %s: %.0f tensors, %.0f elements, %s%s\n", str(set, "name"),
           num(set, "tensors", 0), num(set, "elements", 0),
           yes(set, "attached") ? "trainer attached" : "no trainer",
           yes(set, "parked")    ? ", PARKED"
           : yes(set, "paused")  ? ", PAUSED"
           : yes(set, "joining") ? ", joining"
                                 : "");
    printf("    round %.0f (job %.0f), %.0f rounds, %.0f trainers, coverage %.4f\n",
           num(set, "round", 0), num(set, "job_round", 0), num(set, "rounds", 0),
           num(set, "trainers", 0), num(set, "coverage", 0));
    printf("    last common view %.0f nodes, %.0f missing; lineage %s", num(set, "common", 0),
           num(set, "missing", 0), str(set, "lineage")[0] ? str(set, "lineage") : "none");
    if (str(set, "parent")[0])
        printf(", forked from %s after round %.0f", str(set, "parent"), num(set, "forked_at", 0));
    printf("\n");
    if (str(set, "idle")[0])
        printf("    %s\n", str(set, "idle"));
    printf("    strategy %s", str(set, "strategy"));
    if (num(set, "strategy_version", 0) > 0)
        printf(" (version %.0f: %s from round %.0f on, by node %s)", num(set, "strategy_version", 0),
               str(set, "strategy_next"), num(set, "strategy_from", 0), str(set, "strategy_by"));
    printf("\n");
    if (num(set, "consensus_distance", -1) >= 0)
        printf("    consensus distance %.3g, mixing %.3g\n", num(set, "consensus_distance", -1), num(set, "mixing", 0));
    printf("    budget %s, longest wait %s\n", ms(num(set, "budget_ms", -1), a),
           ms(num(set, "longest_wait_ms", -1), b));
    if (yes(set, "schema_differs"))
        printf("    the tensors differ from another node's: %s\n", schema);
    show_ledger(set, "scatter");
    show_ledger(set, "gather");
}

void show_status(const cJSON *a)
{
    const cJSON *s, *emulated = list(a, "emulated"), *sent = list(a, "datagrams");
    printf("node %s of job %s, sleetd %s (pid %.0f), up %.0f s%s\n", str(a, "node_id"),
           str(a, "job"), str(a, "version"), num(a, "pid", 0), num(a, "uptime_s", 0),
           yes(a, "evicted") ? ", EVICTED from the job"
           : yes(a, "left")  ? ", LEFT the job"
                             : "");
    printf("listen %s, control %s, security %s\n", str(a, "listen"), str(a, "control"),
           str(a, "security"));
    printf("nodes  %.0f alive of %.0f known; rate %.4g Mbit/s; memory bound %.1f MiB\n",
           num(a, "nodes_alive", 0), num(a, "nodes_known", 0), num(a, "rate_mbit", 0),
           num(a, "memory_bound_bytes", 0) / 1048576);
    if (num(emulated, "loss", 0) > 0)
        printf("loss   %.3g emulated in this daemon: %.0f datagrams dropped on purpose\n",
               num(emulated, "loss", 0), num(emulated, "dropped", 0));
    printf("\ndatagrams\n");
    cJSON_ArrayForEach(s, sent)
    {
        printf("    %-10s %14.0f\n", s->string, s->valuedouble);
    }
    cJSON_ArrayForEach(s, list(a, "sets"))
    {
        show_set(s);
    }
    cJSON_ArrayForEach(s, list(a, "silent"))
    {
        if (cJSON_IsString(s))
            printf("\nnode %s contributed nothing for several rounds\n", s->valuestring);
        else
            printf("\nnode %.0f contributed nothing for several rounds\n", s->valuedouble);
    }
}

#define DRIFT_SHOWN 1e-2 /* as "replicas-drift" in the log */

/* What speaks against a node: its values lie far off the others'. */
static void show_evidence(const cJSON *nodes, const char *where)
{
    const cJSON *p;
    cJSON_ArrayForEach(p, nodes)
    {
        if (num(p, "clipped", 0) + num(p, "refused", 0) > 0)
            printf("node %s is far off%s: %.0f contributions cut down, %.0f results not taken, "
                   "up to %.3g times beyond what is allowed\n",
                   str(p, "node_id"), where, num(p, "clipped", 0), num(p, "refused", 0),
                   num(p, "excess", 0));
        if (num(p, "disputed", 0) > 0)
            printf("node %s told another node other results than this one in %.0f rounds, or that "
                   "node lies\n",
                   str(p, "node_id"), num(p, "disputed", 0));
        if (num(p, "drift", 0) > DRIFT_SHOWN)
            printf("node %s has values that differ from this node's by %.2g of their norm\n",
                   str(p, "node_id"), num(p, "drift", 0));
        if (num(p, "disputes", 0) > 0)
            printf("node %s said in %.0f rounds that a node told it other results than this one\n",
                   str(p, "node_id"), num(p, "disputes", 0));
    }
}

static void show_protection(const cJSON *peers)
{
    const cJSON *p;
    char a[24], b[24];
    cJSON_ArrayForEach(p, peers)
    {
        double rows = num(p, "parity_rows", 0);
        printf("to %s: lost %.2f %%, protected by ", str(p, "node_id"), 100 * num(p, "loss_to", 0));
        if (rows > 0)
            printf("parity 64+%.0f", rows);
        else
            printf("repair");
        printf(": %s", str(p, "protection_why"));
        if (num(p, "repair_ms", 0) > 0)
            printf(" (%s, parity %s)", ms(num(p, "repair_ms", 0), a), ms(num(p, "parity_ms", 0), b));
        if (num(p, "capacity", -1) > 0)
            printf("; capacity %s%.4g Mbit/s", yes(p, "capacity_at_least") ? "at least " : "",
                   num(p, "capacity", 0) / 1e6);
        if (num(p, "keep", 0) > 0)
            printf(", %.3g %% of a sparse gradient", 100 * num(p, "keep", 0));
        printf("\n");
    }
}

/* What they say of themselves. */
static void show_declared(const cJSON *peers)
{
    const cJSON *p;
    cJSON_ArrayForEach(p, peers)
    {
        const char *site = str(p, "site"), *role = str(p, "role");
        double bandwidth = num(p, "bandwidth", 0);
        if (!*site && bandwidth == 0 && strcmp(role, "node") == 0)
            continue;
        printf("%s is %s %s", str(p, "node_id"), *role == 'a' ? "an" : "a", role);
        if (*site)
            printf(" at site %s", site);
        if (bandwidth > 0)
            printf(", can send %.4g Mbit/s", bandwidth / 1e6);
        printf("\n");
    }
}

void show_peers(const cJSON *answer)
{
    const cJSON *p;
    char a[24], b[24];
    printf("%-20s %-24s %-7s %10s %10s %10s %10s %10s %8s %8s %8s\n", "node", "address", "state",
           "silent", "rtt", "Mbit/s", "sent", "received", "lost", "round", "coverage");
    cJSON_ArrayForEach(p, list(answer, "peers"))
    {
        const char *state = yes(p, "left")      ? "left"
                            : yes(p, "stopped") ? "stopped"
                            : yes(p, "alive")   ? "alive"
                                                : "silent";
        printf("%-20s %-24s %-7s %10s %10s %10.4g %10.0f %10.0f %8.0f %8.0f %8.4f\n",
               str(p, "node_id"), str(p, "address"), state, ms(num(p, "silent_ms", -1), a),
               ms(num(p, "rtt_ms", -1), b), num(p, "rate_mbit", 0), num(p, "sent", 0),
               num(p, "received", 0), num(p, "lost", 0), num(p, "round", 0), num(p, "coverage", 0));
    }
    show_declared(list(answer, "peers"));
    show_protection(list(answer, "peers"));
    show_evidence(list(answer, "peers"), "");
}

void show_rounds(const cJSON *answer)
{
    const cJSON *s, *r;
    char flags[128], a[24];
    cJSON_ArrayForEach(s, list(answer, "sets"))
    {
        printf("set %s\n%8s %6s %9s %10s %9s %9s %9s %6s %6s %7s  %s\n", str(s, "name"), "round",
               "group", "coverage", "elapsed", "expected", "direct", "repaired", "late", "lost",
               "unsent", "flags");
        cJSON_ArrayForEach(r, list(s, "rounds"))
        {
            double f[6];
            static const char *const fate[] = {"expected", "direct", "repaired",
                                               "late",     "lost",   "unsent"};
            for (int k = 0; k < 6; k++)
                f[k] = num(list(r, "scatter"), fate[k], 0) + num(list(r, "gather"), fate[k], 0);
            printf("%8.0f %6.0f %9.4f %10s %9.0f %9.0f %9.0f %6.0f %6.0f %7.0f  %s%s\n",
                   num(r, "round", 0), num(r, "group_size", 0), num(r, "coverage", 0),
                   ms(num(r, "elapsed_ms", -1), a), f[0], f[1], f[2], f[3], f[4], f[5],
                   flag_names(r, flags, sizeof flags), yes(r, "final") ? "" : "open");
        }
    }
}

static void show_classes(const cJSON *set)
{
    const cJSON *c, *who;
    double all = num(set, "other_elements", 0);
    cJSON_ArrayForEach(c, list(set, "classes")) all += num(c, "elements", 0);
    printf("%9s %14s  %s\n", "elements", "first at", "contributors");
    cJSON_ArrayForEach(c, list(set, "classes"))
    {
        char at[48];
        snprintf(at, sizeof at, "%.0f:%.0f", num(c, "tensor", 0), num(c, "first", 0));
        printf("%8.2f%% %14s ", 100 * num(c, "elements", 0) / (all > 0 ? all : 1), at);
        cJSON_ArrayForEach(who, list(c, "contributors")) printf(" %s", who->valuestring);
        printf("\n");
    }
    if (num(set, "other_elements", 0) > 0)
        printf("%8.2f%% %14s  others\n", 100 * num(set, "other_elements", 0) / all, "");
}

void show_explain(const cJSON *answer)
{
    const cJSON *s, *m;
    char flags[128];
    if (cJSON_GetArraySize(list(answer, "sets")) == 0)
        printf("no such round: the last few are kept, see sleetctl rounds\n");
    cJSON_ArrayForEach(s, list(answer, "sets"))
    {
        printf("set %s, round %.0f%s, %.0f nodes expected  %s\n", str(s, "name"), num(s, "round", 0),
               yes(s, "closed") ? "" : yes(s, "joined") ? " (open)" : " (not joined here)",
               num(s, "expected", 0), flag_names(s, flags, sizeof flags));
        show_classes(s);
        printf("%-20s %-24s %37s %37s\n%-20s %-24s", "", "", "its contributions to this node's share",
               "its results to this node", "node", "state");
        for (int side = 0; side < 2; side++)
            printf("  %8s %6s %6s %6s %6s", "direct", "repair", "late", "lost", "unsent");
        printf("\n");
        cJSON_ArrayForEach(m, list(s, "members"))
        {
            printf("%-20s %-24s", str(m, "node_id"), str(m, "state"));
            for (int side = 0; side < 2; side++) {
                const cJSON *l = list(m, side ? "gather" : "scatter");
                printf("  %8.0f %6.0f %6.0f %6.0f %6.0f", num(l, "direct", 0), num(l, "repaired", 0),
                       num(l, "late", 0), num(l, "lost", 0), num(l, "unsent", 0));
            }
            printf("\n");
        }
        show_evidence(list(s, "members"), " in this round");
    }
}

void show_state(const cJSON *a)
{
    const cJSON *set, *m;
    cJSON_ArrayForEach(set, list(a, "sets"))
    {
        printf("set %s: ", str(set, "name"));
        if (num(set, "version", 0) > 0)
            printf("version %.0f published, %.0f bytes%s\n", num(set, "version", 0), num(set, "bytes", 0),
                   yes(set, "hashing") ? ", a newer one is being hashed" : "");
        else
            printf("nothing published here\n");
        printf("    %.0f bytes served, %.0f blocks waiting\n", num(set, "served_bytes", 0),
               num(set, "waiting_blocks", 0));
        if (yes(set, "fetching"))
            printf("    fetching version %.0f: %.1f %% from %.0f nodes\n", num(set, "fetch_version", 0),
                   100 * num(set, "fetch_coverage", 0), num(set, "fetch_donors", 0));
        if (cJSON_GetArraySize(list(set, "members")))
            printf("    %-20s %12s %12s %10s\n", "node", "publishes", "blob here", "bytes");
        cJSON_ArrayForEach(m, list(set, "members"))
        {
            printf("    %-20s %12.0f %12.0f %10.0f\n", str(m, "node_id"), num(m, "version", 0),
                   num(m, "blob_version", 0), num(m, "blob_bytes", 0));
        }
    }
}

void show_config(const cJSON *answer)
{
    fputs(str(answer, "file"), stdout);
}

void show_summary(int i, const cJSON *status, const cJSON *peers)
{
    const cJSON *item;
    double lost = 0, late = 0, wait = 0, weighted = 0, rounds = 0;
    cJSON_ArrayForEach(item, list(peers, "peers"))
    {
        lost += num(item, "lost", 0);
    }
    cJSON_ArrayForEach(item, list(status, "sets"))
    {
        double n = num(item, "rounds", 0), w = num(item, "longest_wait_ms", 0);
        late += num(item, "scatter.late", 0) + num(item, "gather.late", 0);
        weighted += n * num(item, "coverage", 0);
        rounds += n;
        wait = w > wait ? w : wait;
    }
    printf("[%d] {\"type\":\"daemon\",\"node\":%d,\"rounds\":%.0f,\"coverage\":%.5f,"
           "\"datagrams_sent\":%.0f,\"datagrams_received\":%.0f,\"datagrams_lost\":%.0f,"
           "\"fragments_late\":%.0f,\"dropped_emulated\":%.0f,\"longest_wait_s\":%.3f}\n",
           i, i, rounds, rounds > 0 ? weighted / rounds : 0, num(status, "datagrams.out", 0),
           num(status, "datagrams.in", 0), lost, late, num(status, "emulated.dropped", 0),
           wait / 1e3);
    fflush(stdout);
}
