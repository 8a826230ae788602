/* sleet-sim - averages random tensors among simulated nodes and prints what
 * loss cost.  Times are virtual; the same options give the same output.
 * Exit: 0 done, 1 a round failed or was late, 2 usage. */
#include "edges/edges.h"
#include "number.h"
#include "recipe/options.h"
#include "sim/cluster.h"
#include "sleet-sim-scenario.h"
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define JOIN_ROUNDS_MAX 20 /* of all nodes, before the rounds that are measured */

struct options {
    uint64_t nodes, rounds, elements, seed, rate_bps, membership;
    double loss, delay_ms, jitter_ms, deadline_ms;
    struct set_kind kind;
    struct edges_file edges;
    struct sim_node each[SIM_NODES_MAX];
    uint32_t uplinks; /* of them given */
    bool declare, repair_off, exact, sealed, json;
};

struct summary {
    double coverage, coverage_least;
    double *times; /* ms, one a report */
    size_t reports, missing;
    uint64_t repaired, lost;
};

static const char help[] =
    "Usage: sleet-sim [OPTION]...\n"
    "Average random tensors among simulated nodes in virtual time.\n\n"
    "  -n, --nodes N      nodes, 1 to 1024 (8)\n"
    "      --loss P       fraction of datagrams lost, 0 to 1 (0)\n"
    "      --delay MS     one-way delay (0.2)\n"
    "      --jitter MS    uniform on top of it (0)\n"
    "      --rounds R     rounds measured (20)\n"
    "      --elements E   f32 elements of the tensor (10000)\n"
    "      --deadline MS  of every round (2000)\n"
    "      --rate BPS     send rate of a node, bits per second (default of sleetd)\n"
    "      --uplinks BPS,...  send rates of the first nodes, where they are other ones\n"
    "      --declare      all nodes know them: who is slow owns less\n"
    "      --strategy S   who averages with whom, NAME[:A[,B]] or graph:FILE (rps)\n"
    "      --recipe NAME  options of a recipe; those given beside it win; list: what there is\n"
    "      --seed S       of every random choice (1)\n"
    "      --no-repair    missing results are not asked for again\n"
    "      --exact        lost contributions are, too: a round is of all or nothing\n"
    "      --sealed       sessions are sealed, as those of sleetd\n"
    "      --membership N instead: how N nodes find out who is alive, 2 to 1024; with --loss,\n"
    "                     --delay, --seed, --json\n"
    "      --scenario F   play a scenario of netem/scenarios instead; no other options\n"
    "      --json         one line of JSON\n"
    "  -h, --help         this text\n"
    "      --version      the version\n";

static const struct option long_options[] = {
    {"nodes", 1, NULL, 'n'},    {"loss", 1, NULL, 'l'},     {"delay", 1, NULL, 'd'},
    {"jitter", 1, NULL, 'j'},   {"rounds", 1, NULL, 'r'},   {"elements", 1, NULL, 'e'},
    {"deadline", 1, NULL, 't'}, {"rate", 1, NULL, 'b'},     {"seed", 1, NULL, 's'},
    {"membership", 1, NULL, 'm'}, {"no-repair", 0, NULL, 'x'}, {"exact", 0, NULL, 'E'}, {"sealed", 0, NULL, 'S'}, {"json", 0, NULL, 'J'},    {"help", 0, NULL, 'h'},
    {"uplinks", 1, NULL, 'u'},  {"declare", 0, NULL, 'D'},  {"strategy", 1, NULL, 'w'}, {"recipe", 1, NULL, 'R'},   {"version", 0, NULL, 'V'},
    {NULL, 0, NULL, 0}};

static bool take_uplinks(struct options *o, const char *text)
{
    char item[24];
    for (o->uplinks = 0; *text && o->uplinks < SIM_NODES_MAX; o->uplinks++) {
        size_t n = strcspn(text, ",");
        if (n >= sizeof item)
            return false;
        memcpy(item, text, n);
        item[n] = '\0';
        if (!number_whole(item, 1000, 1000000000000, &o->each[o->uplinks].rate_bps))
            return false;
        text += n + (text[n] == ',');
    }
    return o->uplinks && !*text;
}

/* They know what they can send; --rate is that of all others. */
static void declare(struct options *o)
{
    for (uint32_t i = 0; i < o->nodes; i++) {
        uint64_t bps = o->each[i].rate_bps ? o->each[i].rate_bps : o->rate_bps;
        o->each[i].declared.kbit = o->declare ? (uint32_t)(bps / 1000) : 0;
    }
}

static bool set_option(struct options *o, int option, const char *text)
{
    switch (option) {
    case 'x': return o->repair_off = true;
    case 'E': return o->exact = true;
    case 'S': return o->sealed = true;
    case 'J': return o->json = true;
    case 'D': return o->declare = true;
    case 'u': return take_uplinks(o, text);
    case 'R': return true; /* taken before */
    case 'w': return edges_strategy_of(&o->edges, &o->kind, text);
    case 'n':
        return number_whole(text, 1, SIM_NODES_MAX, &o->nodes);
    case 'r':
        return number_whole(text, 1, 1000000, &o->rounds);
    case 'e':
        return number_whole(text, 1, 1u << 26, &o->elements);
    case 'b':
        return number_whole(text, 1000, 1000000000000, &o->rate_bps);
    case 's':
        return number_whole(text, 0, UINT64_MAX, &o->seed);
    case 'm':
        return number_whole(text, 2, SIM_NODES_MAX, &o->membership);
    case 'l':
        return number_real(text, 0, 1, &o->loss);
    case 'd':
        return number_real(text, 0, 60000, &o->delay_ms);
    case 'j':
        return number_real(text, 0, 60000, &o->jitter_ms);
    case 't':
        return number_real(text, 0.001, 3600000, &o->deadline_ms);
    default:
        return false;
    }
}

static bool take_of_recipe(void *o, int option, const char *text)
{
    return set_option(o, option, text);
}

/* The exit status, or -1 to go on. */
static int parse(struct options *o, int argc, char **argv)
{
    int option, index = -1, status = recipe_options(RECIPE_SIM, argc, argv, "n:h", long_options, take_of_recipe, o);
    if (status >= 0)
        return status;
    while ((option = getopt_long(argc, argv, "n:h", long_options, &index)) != -1) {
        if (option == 'h') {
            fputs(help, stdout);
            return 0;
        } else if (option == 'V') {
            printf("sleet-sim %d.%d.%d\n", SLEET_VERSION_MAJOR, SLEET_VERSION_MINOR,
                   SLEET_VERSION_PATCH);
            return 0;
        } else if (option == '?') {
            return 2;
        } else if (!set_option(o, option, optarg)) {
            fprintf(stderr, "sleet-sim: '%s' is out of range for %s%s\n", optarg,
                    index < 0 ? "-n" : "--", index < 0 ? "" : long_options[index].name);
            return 2;
        }
        index = -1;
    }
    if (optind < argc) {
        fprintf(stderr, "sleet-sim: unexpected argument '%s'; see --help\n", argv[optind]);
        return 2;
    }
    if (o->uplinks > o->nodes || (o->declare && !o->uplinks)) {
        fputs(o->declare && !o->uplinks ? "sleet-sim: --declare goes with --uplinks\n"
                                        : "sleet-sim: --uplinks has more nodes than --nodes\n", stderr);
        return 2;
    }
    declare(o);
    o->kind = kind_resolved(o->kind);
    const char *wrong = kind_refuse(&o->kind);
    if (!wrong && o->exact && o->repair_off)
        wrong = "--exact is repair, which --no-repair takes away";
    if (!wrong && o->sealed && o->kind.strategy == SLEET_GRAPH)
        wrong = "strategy graph names nodes by number, and --sealed ones have the ids of keys";
    if (!wrong)
        wrong = edges_settle(&o->edges, &o->kind, (uint32_t)o->nodes);
    if (wrong)
        fprintf(stderr, "sleet-sim: %s\n", wrong);
    return wrong ? 2 : -1;
}

static void randomize(cluster *c, sleet_rng *rng)
{
    for (uint32_t i = 0; i < sim_nodes(cluster_sim(c)); i++)
        for (uint64_t k = 0; k < cluster_elements(c); k++)
            cluster_values(c, i)[k] = (float)(rng_double(rng) - 0.5);
}

static void collect(cluster *c, struct summary *s)
{
    for (uint32_t i = 0; i < sim_nodes(cluster_sim(c)); i++) {
        const struct cluster_report *r = cluster_report(c, i);
        if (!r->reported || r->error != SLEET_OK) {
            s->missing++;
            continue;
        }
        s->coverage += r->report.coverage;
        if (s->reports == 0 || r->report.coverage < s->coverage_least)
            s->coverage_least = r->report.coverage;
        s->repaired += r->report.fragments_repaired;
        s->lost += r->report.fragments_lost;
        s->times[s->reports++] = (double)time_since(r->reported_at, r->started_at) / 1e6;
    }
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double quantile(const struct summary *s, double q)
{
    return s->reports ? s->times[(size_t)(q * (double)(s->reports - 1))] : 0;
}

static void print(const struct options *o, const struct summary *s, const struct sim_totals *t,
                  uint64_t overdue)
{
    double mean = s->reports ? s->coverage / (double)s->reports : 0;
    printf(o->json ? "{\"nodes\":%llu,\"loss\":%g,\"rounds\":%llu,\"elements\":%llu,\"seed\":%llu,"
                   : "%llu nodes, loss %g, %llu rounds of %llu elements, seed %llu\n",
           (unsigned long long)o->nodes, o->loss, (unsigned long long)o->rounds,
           (unsigned long long)o->elements, (unsigned long long)o->seed);
    printf(o->json ? "\"coverage\":%.6f,\"coverage_least\":%.6f," : "coverage   mean %.4f, least %.4f\n",
           mean, s->coverage_least);
    printf(o->json ? "\"time_ms_p50\":%.3f,\"time_ms_p95\":%.3f,\"time_ms_p99\":%.3f,\"time_ms_max\":%.3f,"
                   : "round time p50 %.3f ms, p95 %.3f ms, p99 %.3f ms, most %.3f ms\n",
           quantile(s, 0.5), quantile(s, 0.95), quantile(s, 0.99), quantile(s, 1));
    printf(o->json ? "\"fragments_repaired\":%llu,\"fragments_lost\":%llu,"
                   : "fragments  %llu repaired, %llu lost\n",
           (unsigned long long)s->repaired, (unsigned long long)s->lost);
    printf(o->json ? "\"datagrams_sent\":%llu,\"datagrams_lost\":%llu,\"bytes_sent\":%llu,"
                   : "datagrams  %llu sent, %llu lost, %llu bytes\n",
           (unsigned long long)t->sent, (unsigned long long)t->lost, (unsigned long long)t->bytes);
    printf(o->json ? "\"reports\":%zu,\"reports_missing\":%zu,\"reports_overdue\":%llu}\n"
                   : "reports    %zu, missing %zu, overdue %llu\n",
           s->reports, s->missing, (unsigned long long)overdue);
}

static struct sim_totals difference(struct sim_totals after, struct sim_totals before)
{
    after.sent -= before.sent;
    after.lost -= before.lost;
    after.bytes -= before.bytes;
    return after;
}

static bool joining(cluster *c)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < sim_nodes(cluster_sim(c)); i++)
        n += (cluster_report(c, i)->report.flags & SLEET_JOINING) != 0;
    return n > 0;
}

static int simulate(const struct options *o, cluster *c, const struct sim_link *link,
                    struct summary *s)
{
    sleet_round_options round = {.exact = o->exact, .deadline_ns = (int64_t)(o->deadline_ms * 1e6)};
    sleet_rng rng = {mix64(o->seed)};
    struct sim_totals before, after;
    bool ok = true;
    struct sim_link clean = {.delay = link->delay};
    sim_set_link(cluster_sim(c), SIM_ALL, SIM_ALL, &clean);
    cluster_idle(c, SEC(5)); /* the nodes meet and found the job */
    for (int i = 0; i < 3 || (i < JOIN_ROUNDS_MAX && joining(c)); i++) {
        cluster_round(c, NULL);
        cluster_idle(c, SEC(1));
    }
    sim_set_link(cluster_sim(c), SIM_ALL, SIM_ALL, link);
    sim_get_totals(cluster_sim(c), &before);
    for (uint64_t i = 0; i < o->rounds; i++) {
        randomize(c, &rng);
        ok &= cluster_round(c, &round);
        collect(c, s);
    }
    sim_get_totals(cluster_sim(c), &after);
    after = difference(after, before);
    qsort(s->times, s->reports, sizeof *s->times, by_value);
    print(o, s, &after, cluster_overdue(c));
    return ok && cluster_overdue(c) == 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--scenario") == 0)
        return sim_scenario(argv[2]);
    static struct options o = {.kind = {.payload = SLEET_MODEL},
                        .nodes = 8,
                        .rounds = 20,
                        .elements = 10000,
                        .seed = 1,
                        .delay_ms = 0.2,
                        .deadline_ms = 2000};
    int status = parse(&o, argc, argv);
    if (status >= 0) {
        edges_free(&o.edges);
        return status;
    }
    if (o.membership)
        return sim_membership((uint32_t)o.membership, o.loss, o.delay_ms, o.seed, o.json);
    struct sim_config config = {.nodes = (uint32_t)o.nodes,
                                .seed = o.seed,
                                .kind = o.kind,
                                .edges = edges_in_force(&o.edges),
                                .rate_bps = o.rate_bps,
                                .each = o.each,
                                .repair_off = o.repair_off,
                                .sealed = o.sealed,
                                .go_on_isolated = true,
                                .link = {.delay = (sleet_duration)(o.delay_ms * 1e6),
                                         .jitter = (sleet_duration)(o.jitter_ms * 1e6),
                                         .loss = o.loss}};
    struct summary s = {.times = calloc(o.nodes * o.rounds, sizeof(double))};
    cluster *c = s.times ? cluster_new(&config, &o.elements, 1) : NULL;
    if (!c) {
        fputs("sleet-sim: out of memory\n", stderr);
        free(s.times);
        edges_free(&o.edges);
        return 1;
    }
    status = simulate(&o, c, &config.link, &s);
    cluster_free(c);
    free(s.times);
    edges_free(&o.edges);
    return status;
}
