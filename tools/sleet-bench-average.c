/* sleet-bench-average.c - how well a strategy averages, in rounds of the engine over the simulator.
 *
 * Every node draws every coordinate from N(0, 1).  After round r, with V0 the variance among nodes
 * of a coordinate before the first round and M0 its mean, both then averaged over coordinates:
 *
 *     consensus     variance among nodes / V0: 0 where all hold the same
 *     drift         n (mean - M0)^2 / V0: 0 where the mean of all nodes is what it was
 *     contributors  members whose values are in an owner's average, mean over fragments
 *     bytes         UDP payload that a node sends a round, the least and the most of all nodes
 *
 * A datagram carries one fragment, so fragments are lost independently, and each is a repetition of
 * its own.  With --out the trainer of a node is away for whole rounds and keeps its values.
 * With --matrix values are those of one, of which ring:R and pairs:R send differences of rank R.  A node's
 * is, with --alike, a multiple of one product of vectors but for a little.
 * With --steady values are not drawn anew: every node adds N(0, 1) before every round. */
#include "edges/edges.h"
#include "number.h"
#include "sim/cluster.h"
#include "sleet-bench.h"
#include "strategy/strategy.h"
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS_MOST 1000
#define MEETING SEC(5)
#define JOIN_ROUNDS_MOST 20
#define STEADY_WARM 50    /* rounds */
#define PAUSE MS(5)       /* between rounds: that the last one has closed has got around */
#define OUT_PAUSE SEC(2)  /* the same for those that were not in it: by pings */
#define OUT_BUDGET MS(50) /* owners wait so long for who is away, in virtual time */

struct options {
    const char *strategy;
    struct set_kind kind;
    struct edges_file edges;
    uint64_t nodes, rounds, repetitions, fragments, seed;
    uint64_t rows, cols; /* of a matrix; 0: none */
    double loss, out, delay_ms;
    bool repair, steady, alike, one_sided, json;
};

struct average {
    const struct options *o;
    cluster *c;
    uint32_t nodes;
    uint64_t elements;
    double *mean;    /* of each coordinate, before the first round */
    double variance; /* sums over coordinates and repetitions from here on */
    double consensus[ROUNDS_MOST], drift[ROUNDS_MOST];
    uint64_t *sent;  /* bytes, of each node */
    uint64_t rounds; /* measured */
    bool *absent;
    sleet_rng rng;
};

static const char help[] =
    "Usage: sleet-bench average STRATEGY [OPTION]...      STRATEGY: NAME[:A[,B]] or graph:FILE\n"
    "Average N(0, 1) among simulated nodes; prints the variance among nodes that is left after each\n"
    "round (consensus), how far the mean has moved (drift), and what was sent.\n\n"
    "  -n, --nodes N        nodes, 2 to 64 (8)\n"
    "      --loss P         fraction of datagrams lost, 0 to 1 (0)\n"
    "      --out P          a trainer is away for a whole round with this probability (0)\n"
    "      --rounds R       rounds that follow each other, 1 to 1000 (2)\n"
    "      --repetitions R  with new values each time (200)\n"
    "      --fragments F    of 288 elements, lost independently of each other (32)\n"
    "      --matrix RxC     values are a matrix, R rows by C columns, instead\n"
    "      --alike          the nodes' matrices differ by multiples of one product mostly\n"
    "      --one-sided      neighbours take what they have, whether or not the other can (a control)\n"
    "      --steady         values stay; every node adds N(0, 1) before every round, and consensus\n"
    "                       is the variance left after it, mean over all rounds but the first 50\n"
    "      --delay MS       one-way (0.2)\n"
    "      --repair         results that were lost are asked for again\n"
    "      --seed S         of every random choice (1)\n"
    "      --json           one line of JSON\n"
    "  -h, --help           this text\n"
    "\nExit: 0 done, 1 a round failed, 2 usage.\n";

/* ---- options ------------------------------------------------------------------- */

static const struct option long_options[] = {
    {"nodes", 1, NULL, 'n'},  {"loss", 1, NULL, 'l'},        {"out", 1, NULL, 'o'},
    {"rounds", 1, NULL, 'r'}, {"repetitions", 1, NULL, 'R'}, {"fragments", 1, NULL, 'f'},
    {"steady", 0, NULL, 'S'}, {"delay", 1, NULL, 'd'},       {"repair", 0, NULL, 'p'},
    {"matrix", 1, NULL, 'm'}, {"alike", 0, NULL, 'A'},       {"one-sided", 0, NULL, 'O'},
    {"seed", 1, NULL, 's'},   {"json", 0, NULL, 'J'},        {"help", 0, NULL, 'h'},
    {NULL, 0, NULL, 0}};

/* "16x8" */
static bool matrix(const char *text, struct options *o)
{
    char rows[8] = "";
    size_t n = strcspn(text, "x");
    if (n >= sizeof rows || text[n] != 'x')
        return false;
    memcpy(rows, text, n);
    return number_whole(rows, 1, 4096, &o->rows) && number_whole(text + n + 1, 1, 4096, &o->cols);
}

static bool set_option(struct options *o, int option, const char *text)
{
    switch (option) {
    case 'n':
        return number_whole(text, 2, SLEET_GROUP_MAX, &o->nodes);
    case 'r':
        return number_whole(text, 1, ROUNDS_MOST, &o->rounds);
    case 'R':
        return number_whole(text, 1, 1000000, &o->repetitions);
    case 'f':
        return number_whole(text, 1, 65536, &o->fragments);
    case 'm':
        return matrix(text, o);
    case 's':
        return number_whole(text, 0, UINT64_MAX, &o->seed);
    case 'l':
        return number_real(text, 0, 1, &o->loss);
    case 'o':
        return number_real(text, 0, 0.5, &o->out);
    case 'd':
        return number_real(text, 0, 1000, &o->delay_ms);
    default:
        o->steady |= option == 'S';
        o->repair |= option == 'p';
        o->alike |= option == 'A';
        o->one_sided |= option == 'O';
        o->json |= option == 'J';
        return true;
    }
}

/* The exit status, or -1 to go on. */
static int parse(struct options *o, int argc, char **argv)
{
    int option, index = -1;
    while ((option = getopt_long(argc, argv, "n:h", long_options, &index)) != -1) {
        if (option == 'h') {
            fputs(help, stdout);
            return 0;
        }
        if (option == '?')
            return 2;
        if (!set_option(o, option, optarg)) {
            fprintf(stderr, "sleet-bench: '%s' is out of range for --%s\n", optarg,
                    index < 0 ? "nodes" : long_options[index].name);
            return 2;
        }
        index = -1;
    }
    if (optind + 1 != argc) {
        fprintf(stderr,
                "sleet-bench: average takes one strategy, e.g. average rps; see average --help\n");
        return 2;
    }
    o->strategy = argv[optind];
    const char *wrong = NULL;
    o->kind.payload = SLEET_MODEL;
    if (edges_strategy_of(&o->edges, &o->kind, o->strategy)) {
        struct set_kind resolved = kind_resolved(o->kind);
        wrong = kind_refuse(&resolved);
        wrong = wrong ? wrong : edges_settle(&o->edges, &o->kind, (uint32_t)o->nodes);
    } else {
        wrong = "there is no such strategy";
    }
    if (o->alike && !o->rows)
        wrong = "--alike is of a --matrix";
    if (o->rows && o->fragments)
        wrong = "--matrix and --fragments both say how many elements there are: give one";
    if (o->steady && o->rounds)
        wrong = "--steady has as many rounds as --repetitions: not --rounds";
    if (!wrong && o->one_sided && !strategy_by_id((int)o->kind.strategy)->edges)
        wrong = "--one-sided is of neighbours, and this strategy has owners";
    o->fragments = o->fragments ? o->fragments : 32;
    o->rounds = o->rounds ? o->rounds : 2;
    if (wrong) {
        fprintf(stderr, "sleet-bench: average %s: %s\n", o->strategy, wrong);
        return 2;
    }
    return -1;
}

/* ---- values -------------------------------------------------------------------- */

static double moments(struct average *a, uint64_t k, double *mean)
{
    double sum = 0, squares = 0;
    for (uint32_t i = 0; i < a->nodes; i++)
        sum += (double)cluster_values(a->c, i)[k];
    *mean = sum / a->nodes;
    for (uint32_t i = 0; i < a->nodes; i++) {
        double d = (double)cluster_values(a->c, i)[k] - *mean;
        squares += d * d;
    }
    return squares / a->nodes;
}

/* Of each value a little stays, and a node's multiple of a product comes to it. */
static void make_alike(struct average *a)
{
    float side[2][4096], much;
    bench_normal(&a->rng, side[0], a->o->rows);
    bench_normal(&a->rng, side[1], a->o->cols);
    for (uint32_t i = 0; i < a->nodes; i++) {
        float *x = cluster_values(a->c, i);
        bench_normal(&a->rng, &much, 1);
        for (uint64_t k = 0; k < a->elements; k++)
            x[k] = 0.15F * x[k] + much * side[0][k / a->o->cols] * side[1][k % a->o->cols];
    }
}

static void draw(struct average *a)
{
    double sum = 0;
    for (uint32_t i = 0; i < a->nodes; i++)
        bench_normal(&a->rng, cluster_values(a->c, i), a->elements);
    if (a->o->alike)
        make_alike(a);
    for (uint64_t k = 0; k < a->elements; k++)
        sum += moments(a, k, &a->mean[k]);
    a->variance += sum;
}

static void note(struct average *a, uint64_t round)
{
    for (uint64_t k = 0; k < a->elements; k++) {
        double mean;
        a->consensus[round] += moments(a, k, &mean);
        a->drift[round] += a->nodes * (mean - a->mean[k]) * (mean - a->mean[k]);
    }
}

/* ---- rounds ------------------------------------------------------------------------ */

static void relay(sim *s, const struct sim_datagram *d, void *arg)
{
    ((struct average *)arg)->sent[d->from] += d->len;
    sim_relay(s, d, 0);
}

static bool next_round(struct average *a)
{
    for (uint32_t i = 0; i < a->nodes; i++) {
        a->absent[i] = rng_double(&a->rng) < a->o->out;
        cluster_set_active(a->c, i, !a->absent[i]);
    }
    cluster_idle(a->c,
                 a->o->out > 0 ? OUT_PAUSE : PAUSE + 2 * (sleet_duration)(a->o->delay_ms * 1e6));
    sim_on_datagram(cluster_sim(a->c), relay, a);
    bool ok = cluster_round(a->c, NULL);
    sim_on_datagram(cluster_sim(a->c), NULL, NULL);
    a->rounds++;
    for (uint32_t i = 0; i < a->nodes; i++)
        ok &= a->absent[i] || cluster_report(a->c, i)->error == SLEET_OK;
    return ok;
}

static bool steady(struct average *a)
{
    float *noise = malloc(a->elements * sizeof *noise);
    bool ok = noise != NULL;
    for (uint64_t r = 0; ok && r < STEADY_WARM + a->o->repetitions; r++) {
        for (uint32_t i = 0; i < a->nodes; i++) {
            bench_normal(&a->rng, noise, a->elements);
            for (uint64_t k = 0; k < a->elements; k++)
                cluster_values(a->c, i)[k] += noise[k];
        }
        ok = next_round(a);
        if (r < STEADY_WARM)
            continue;
        a->variance += (double)a->elements; /* of the noise */
        note(a, 0);
    }
    free(noise);
    return ok;
}

static bool measure(struct average *a)
{
    if (a->o->steady)
        return steady(a);
    for (uint64_t i = 0; i < a->o->repetitions; i++) {
        draw(a);
        for (uint64_t r = 0; r < a->o->rounds; r++) {
            if (!next_round(a))
                return false;
            note(a, r);
        }
    }
    return true;
}

static bool joining(struct average *a)
{
    for (uint32_t i = 0; i < a->nodes; i++) {
        const struct cluster_report *r = cluster_report(a->c, i);
        if (!r->reported || r->report.flags & SLEET_JOINING || r->report.coverage < 1)
            return true;
    }
    return false;
}

/* Until all contribute, on a link that loses nothing. */
static bool open_job(struct average *a)
{
    const struct options *o = a->o;
    struct sim_link link = {.delay = (sleet_duration)(o->delay_ms * 1e6)};
    const uint32_t rows = (uint32_t)o->rows;
    struct sim_config config = {.nodes = a->nodes,
                                .rows = rows ? &rows : NULL,
                                .edges_one_sided = o->one_sided,
                                .seed = o->seed,
                                .kind = o->kind,
                                .edges = edges_in_force(&o->edges),
                                .repair_off = !o->repair,
                                .parity_off = !o->repair,
                                .go_on_isolated = true,
                                .budget_max = o->out > 0 ? OUT_BUDGET : 0,
                                .link = link};
    a->elements = rows ? o->rows * o->cols : o->fragments * FRAGMENT_ELEMENTS;
    a->c = cluster_new(&config, &a->elements, 1);
    a->mean = calloc(a->elements, sizeof *a->mean);
    a->sent = calloc(a->nodes, sizeof *a->sent);
    a->absent = calloc(a->nodes, sizeof *a->absent);
    if (!a->c || !a->mean || !a->sent || !a->absent)
        return false;
    cluster_idle(a->c, MEETING);
    for (int i = 0; i < JOIN_ROUNDS_MOST && (i == 0 || joining(a)); i++) {
        cluster_round(a->c, NULL);
        cluster_idle(a->c, MS(100));
    }
    link.loss = o->loss;
    sim_set_link(cluster_sim(a->c), SIM_ALL, SIM_ALL, &link);
    return !joining(a);
}

/* ---- what came out --------------------------------------------------------------------- */

/* Below 0: no owner has counted anything. */
static double contributors(struct average *a)
{
    ledger_side sum = {0};
    for (uint32_t i = 0; i < a->nodes; i++) {
        engine_set set;
        sim *s = cluster_sim(a->c);
        if (!engine_get_set(sim_engine(s, i), cluster_set(a->c, i), &set, sim_now(s)))
            continue;
        sum.expected += set.scatter.expected;
        sum.direct += set.scatter.direct + set.scatter.repaired;
    }
    if (!sum.expected)
        return -1;
    return 1 + (a->nodes - 1) * (double)sum.direct / (double)sum.expected;
}

/* Bytes a node and round: the node that sent least, and most. */
static void extremes(const struct average *a, uint64_t *least, uint64_t *most)
{
    *least = UINT64_MAX;
    *most = 0;
    for (uint32_t i = 0; i < a->nodes; i++) {
        uint64_t bytes = a->sent[i] / a->rounds;
        *least = bytes < *least ? bytes : *least;
        *most = bytes > *most ? bytes : *most;
    }
}

static void print_text(struct average *a)
{
    const struct options *o = a->o;
    printf("%s, %u nodes, loss %g, out %g, %llu repetitions of %llu elements, seed %llu\n\n",
           o->strategy, a->nodes, o->loss, o->out, (unsigned long long)o->repetitions,
           (unsigned long long)a->elements, (unsigned long long)o->seed);
    if (o->steady)
        printf("consensus in the steady state  %.3e\n", a->consensus[0] / a->variance);
    else
        printf("round   consensus       drift\n");
    for (uint64_t r = 0; !o->steady && r < o->rounds; r++)
        printf("%5llu  %10.3e  %10.3e\n", (unsigned long long)r + 1, a->consensus[r] / a->variance,
               a->drift[r] / a->variance);
    uint64_t least, most;
    extremes(a, &least, &most);
    double in = contributors(a);
    if (in >= 0)
        printf("contributors  %.3f\n", in);
    printf("bytes a node and round  %llu to %llu\n", (unsigned long long)least,
           (unsigned long long)most);
}

static void print_json(struct average *a)
{
    const struct options *o = a->o;
    printf("{\"strategy\":\"%s\",\"nodes\":%u,\"loss\":%g,\"out\":%g,\"repetitions\":%llu,"
           "\"elements\":%llu,"
           "\"seed\":%llu",
           o->strategy, a->nodes, o->loss, o->out, (unsigned long long)o->repetitions,
           (unsigned long long)a->elements, (unsigned long long)o->seed);
    if (o->steady)
        printf(",\"consensus_steady\":%.6g", a->consensus[0] / a->variance);
    for (uint64_t r = 0; !o->steady && r < o->rounds; r++)
        printf(",\"consensus_%llu\":%.6g,\"drift_%llu\":%.6g", (unsigned long long)r + 1,
               a->consensus[r] / a->variance, (unsigned long long)r + 1, a->drift[r] / a->variance);
    uint64_t least, most;
    extremes(a, &least, &most);
    double in = contributors(a);
    if (in >= 0)
        printf(",\"contributors\":%.6g", in);
    printf(",\"bytes_least\":%llu,\"bytes_most\":%llu}\n", (unsigned long long)least,
           (unsigned long long)most);
}

int bench_average(int argc, char **argv)
{
    struct options o = {.nodes = 8, .repetitions = 200, .seed = 1, .delay_ms = 0.2};
    int status = parse(&o, argc, argv);
    if (status >= 0) {
        edges_free(&o.edges);
        return status;
    }
    struct average a = {.o = &o, .nodes = (uint32_t)o.nodes, .rng = {mix64(o.seed)}};
    bool ok = open_job(&a) && measure(&a);
    if (ok)
        (o.json ? print_json : print_text)(&a);
    else
        fprintf(stderr, "sleet-bench: out of memory, or a round of %s without a result\n",
                o.strategy);
    cluster_free(a.c);
    free(a.mean);
    free(a.sent);
    free(a.absent);
    edges_free(&o.edges);
    return ok ? 0 : 1;
}
