/* vector.c - a node's part in averaging vectors through a real daemon, for strategies.sh.
 *
 *   vector FILE STRATEGY FROM ROUNDS     a trainer, node SLEET_NODE of SLEET_NODES
 *   vector FILE NODES STRATEGY FROM ROUNDS [EDGES]     prints what came out, after all have ended
 *
 * FILE is shared by the nodes of one machine: the values of each after round FROM, when all take new ones, N(0, 1),
 * and after each of the ROUNDS that follow.  Nobody leaves before all have those: who is not there changes the others' plans.  Prints
 * a line a round: the variance among nodes over that at FROM (consensus), how far the mean has moved (drift), as
 * sleet-bench average does, and the consensus that the strategy's matrices of these very rounds have (EDGES: the list that
 * graph goes by); "missing" where a node has skipped FROM.  Strategies with differences of low rank have no such
 * matrices (-), and the values in matrices of 16 x 8, a tensor each.  A node that skips a round keeps its values in it, which is right
 * where it was to meet nobody, and else shows in the consensus.  FROM is a round that all come to: a few more than they need to meet. */
#include "edges/edges.h"
#include "mixing.h"
#include "sleet.h"
#include "strategy/strategy.h"
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define COUNT (32 * 288) /* elements: 32 fragments */
#define RUNS 4           /* of 8 fragments */
#define MATRIX 128       /* elements of one, in 16 rows */
#define NODES_MAX MIXING_NODES
#define ROUNDS_MAX 64
#define AFTER_MAX 500 /* rounds that a node goes on for those that are behind */

static float values[COUNT], before[COUNT];
static uint64_t state;

/* Box and Muller, of SplitMix64. */
static double uniform(void)
{
    uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (double)((z ^ z >> 31) >> 11) * 0x1p-53 + 0x1p-54;
}

static void draw(uint32_t node)
{
    state = node + 1;
    for (uint32_t i = 0; i < COUNT; i++)
        values[i] = (float)(sqrt(-2 * log(uniform())) * cos(6.283185307179586 * uniform()));
}

/* The place of a node's values in the file. */
static off_t place(uint32_t round, uint32_t node)
{
    return (off_t)(round * NODES_MAX + node) * (off_t)(sizeof values + sizeof(float));
}

/* With a 1 behind them: they are there. */
static bool put(int file, uint32_t round, uint32_t node, const float x[COUNT])
{
    const float there = 1;
    return pwrite(file, x, sizeof values, place(round, node)) == sizeof values &&
           pwrite(file, &there, sizeof there, place(round, node) + (off_t)sizeof values) == sizeof there;
}

/* It has put its values of that round. */
static bool is_there(int file, uint32_t round, uint32_t node)
{
    float there = 0;
    return pread(file, &there, sizeof there, place(round, node) + (off_t)sizeof values) == sizeof there && there == 1;
}

static bool all_there(int file, uint32_t round, uint32_t nodes)
{
    bool all = true;
    for (uint32_t i = 0; i < nodes; i++)
        all = all && is_there(file, round, i);
    return all;
}

static int fail(const char *doing, int error, sleet *ctx)
{
    const char *detail = sleet_detail(ctx);
    fprintf(stderr, "vector: %s: %s\n", doing, detail[0] ? detail : sleet_strerror(error));
    sleet_close(ctx);
    return EXIT_FAILURE;
}

/* The values, in one tensor or in matrices. */
static int add_tensors(sleet_set *set, bool matrices)
{
    const uint32_t each = matrices ? MATRIX : COUNT;
    int error = SLEET_OK;
    for (uint32_t i = 0; i < COUNT / each && !error; i++) {
        char name[16];
        snprintf(name, sizeof name, "vector %u", i);
        error = sleet_set_add(set, name, SLEET_F32, each, values + (size_t)i * each);
        if (!error && matrices)
            error = sleet_set_rows(set, i, 16);
    }
    return error;
}

static int take_part(int file, const char *strategy, uint64_t from, uint32_t rounds)
{
    struct set_kind kind = {.payload = SLEET_MODEL};
    sleet *ctx = NULL;
    sleet_set *set = NULL;
    sleet_report report = {0};
    const char *node_text = getenv("SLEET_NODE"), *nodes_text = getenv("SLEET_NODES");
    if (!node_text || !nodes_text || !kind_strategy_of(&kind, strategy))
        return 2;
    uint32_t node = (uint32_t)atoi(node_text), nodes = (uint32_t)atoi(nodes_text);
    const sleet_set_options options = {.size = sizeof options, .strategy = kind.strategy,
                                       .strategy_numbers = {kind.numbers[0], kind.numbers[1]}};
    bool drawn = false;
    uint32_t next = 0; /* round after FROM to be put */
    const sleet_round_options exact = {.size = sizeof exact, .exact = 1};
    int error = sleet_open(&ctx, NULL);
    if (!error)
        error = sleet_set_new(&set, ctx, "vector", SLEET_MODEL);
    if (!error)
        error = sleet_set_configure(set, &options);
    if (!error)
        error = add_tensors(set, kind_rank(&kind) > 0);
    if (!error)
        error = sleet_set_register(set);
    if (!error)
        error = sleet_wait_nodes(set, nodes, INT64_C(30000000000));
    while (!error && !all_there(file, rounds, nodes) && report.round < from + rounds + AFTER_MAX) {
        memcpy(before, values, sizeof before);
        error = sleet_start(set, &exact); /* a machine that is busy with other things cuts nobody off */
        if (!error)
            error = sleet_wait(set, &report);
        if (error)
            break;
        if (report.round == from)
            draw(node);
        drawn |= report.round == from;
        for (; drawn && next <= rounds && from + next <= report.round; next++)
            if (!put(file, next, node, from + next < report.round ? before : values))
                return fail("cannot write", SLEET_ENOMEM, ctx);
    }
    if (error)
        return fail("averaging", error, ctx);
    printf("node %u: round %" PRIu64 ", coverage %.3f\n", node, report.round, report.coverage);
    sleet_close(ctx);
    return EXIT_SUCCESS;
}

static float all[NODES_MAX][COUNT + 1];

static double moments(uint32_t nodes, uint32_t k, double *mean)
{
    double sum = 0, squares = 0;
    for (uint32_t i = 0; i < nodes; i++)
        sum += (double)all[i][k];
    *mean = sum / nodes;
    for (uint32_t i = 0; i < nodes; i++)
        squares += pow((double)all[i][k] - *mean, 2);
    return squares;
}

/* ---- what the strategy says */

static mixing_matrix w, product;

/* What node i takes of each in a segment. */
static void row(const struct plan *p, uint32_t i, uint32_t segment)
{
    uint32_t givers = 0;
    memset(w[i], 0, sizeof w[i]);
    for (uint32_t k = 0; k < p->group.n; k++)
        givers += p->group.members[k].contributes;
    w[i][i] = p->edges;
    for (uint32_t k = 0; k < p->group.n; k++) {
        double take = p->edges ? (p->edge[k].in >> segment & 1 ? p->edge[k].weight : 0) : 1.0 / givers;
        w[i][p->group.members[k].node_id - 1] += take;
        w[i][i] -= p->edges ? take : 0;
    }
}

/* Of one segment: the squares of (product of the matrices of so many rounds - mean); `segments`: how many there are. */
static double squares(const struct set_kind *k, const struct edge_list *edges, uint32_t nodes, uint64_t from, uint32_t rounds,
                      uint32_t segment, uint32_t *segments)
{
    static struct group_member view[NODES_MAX];
    static struct plan plan;
    mixing_begin(product, nodes);
    for (uint32_t i = 0; i < nodes; i++)
        view[i] = (struct group_member){.node_id = i + 1, .contributes = 1};
    for (uint64_t r = from + 1; r <= from + rounds; r++) {
        for (uint32_t i = 0; i < nodes; i++) {
            strategy_plan(strategy_by_id((int)k->strategy), k->numbers, edges, view, nodes, i + 1, r, &plan);
            row(&plan, i, segment);
        }
        mixing_round(product, w, nodes);
        *segments = plan.segments;
    }
    return mixing_left(product, nodes);
}

/* Mean over the runs of the values, each of which is in a segment. */
static double in_theory(const struct set_kind *k, const struct edge_list *edges, uint32_t nodes, uint64_t from, uint32_t rounds)
{
    double sum = 0, one = 0;
    uint32_t segments = 1;
    for (uint32_t run = 0; run < RUNS; run++) {
        if (run == 0 || segments > 1)
            one = squares(k, edges, nodes, from, rounds, run * segments / RUNS, &segments);
        sum += one;
    }
    return sum / RUNS;
}

static int report(int file, uint32_t nodes, const char *strategy, uint64_t from, uint32_t rounds, const char *edges)
{
    static double mean[COUNT];
    struct set_kind kind = {.payload = SLEET_MODEL};
    struct edges_file list = {.path = edges};
    double first = 0;
    if (nodes < 1 || nodes > NODES_MAX || !kind_strategy_of(&kind, strategy) || (edges && edges_read(&list)))
        return 2;
    for (uint32_t r = 0; r <= rounds; r++) {
        double left = 0, moved = 0, now;
        bool there = true;
        for (uint32_t i = 0; i < nodes; i++)
            there &= pread(file, all[i], sizeof all[i], place(r, i)) == sizeof all[i] && all[i][COUNT] == 1;
        if (!there) {
            printf("%u missing\n", r);
            continue;
        }
        for (uint32_t k = 0; k < COUNT; k++) {
            left += moments(nodes, k, &now);
            if (r == 0)
                mean[k] = now;
            moved += nodes * nodes * (now - mean[k]) * (now - mean[k]);
        }
        first = r ? first : left;
        if (r && kind_rank(&kind))
            printf("%u %.3e %.3e -\n", r, left / first, moved / first);
        else if (r)
            printf("%u %.3e %.3e %.3e\n", r, left / first, moved / first, in_theory(&kind, edges_in_force(&list), nodes, from, r));
    }
    edges_free(&list);
    return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    bool part = argc == 5, told = argc == 6 || argc == 7;
    int file = part || told ? open(argv[1], O_RDWR | O_CREAT, 0600) : -1;
    uint32_t rounds = part || told ? (uint32_t)atoi(argv[part ? 4 : 5]) : 0;
    if (file < 0 || rounds < 1 || rounds > ROUNDS_MAX) {
        fprintf(stderr, "usage: vector FILE STRATEGY FROM ROUNDS | vector FILE NODES STRATEGY FROM ROUNDS [EDGES]\n");
        return 2;
    }
    if (part)
        return take_part(file, argv[2], (uint64_t)atoi(argv[3]), rounds);
    return report(file, (uint32_t)atoi(argv[2]), argv[3], (uint64_t)atoi(argv[4]), rounds, argc > 6 ? argv[6] : NULL);
}
