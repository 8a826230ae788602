/* vector.c - a node's part in averaging vectors through a real daemon, for strategies.sh.
 *
 *   vector FILE STRATEGY FROM ROUNDS     a trainer, node SLEET_NODE of SLEET_NODES
 *   vector FILE NODES ROUNDS             prints what came out, after all have ended
 *
 * FILE is shared by the nodes of one machine: the values of each after round FROM, when all take new ones, N(0, 1),
 * and after each of the ROUNDS that follow.  Prints a line a round: the variance among nodes over that at FROM
 * (consensus), and how far the mean has moved (drift), as sleet-bench average does; "missing" where a node has
 * skipped a round.  Strategies with differences of low rank have the values in matrices of 16 x 8, a tensor each.  FROM is a round that all come to: a few more than they need to meet. */
#include "sleet.h"
#include "tensor/kind.h"
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define COUNT (32 * 288) /* elements: 32 fragments */
#define MATRIX 128       /* elements of one, in 16 rows */
#define NODES_MAX 64
#define ROUNDS_MAX 64

static float values[COUNT];
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
static bool put(int file, uint32_t round, uint32_t node)
{
    const float there = 1;
    return pwrite(file, values, sizeof values, place(round, node)) == sizeof values &&
           pwrite(file, &there, sizeof there, place(round, node) + (off_t)sizeof values) == sizeof there;
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
    /* A round more than is kept: a neighbour that leaves is not waited for. */
    while (!error && report.round <= from + rounds) {
        error = sleet_start(set, &exact); /* a machine that is busy with other things cuts nobody off */
        if (!error)
            error = sleet_wait(set, &report);
        if (error)
            break;
        if (report.round == from)
            draw(node);
        if (report.round >= from && report.round <= from + rounds && !put(file, (uint32_t)(report.round - from), node))
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

static int report(int file, uint32_t nodes, uint32_t rounds)
{
    static double mean[COUNT];
    double before = 0;
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
        before = r ? before : left;
        if (r)
            printf("%u %.3e %.3e\n", r, left / before, moved / before);
    }
    return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    int file = argc > 3 ? open(argv[1], O_RDWR | O_CREAT, 0600) : -1;
    uint32_t rounds = argc > 3 ? (uint32_t)atoi(argv[argc - 1]) : 0;
    if (file < 0 || rounds < 1 || rounds > ROUNDS_MAX) {
        fprintf(stderr, "usage: vector FILE STRATEGY FROM ROUNDS | vector FILE NODES ROUNDS\n");
        return 2;
    }
    if (argc > 4)
        return take_part(file, argv[2], (uint64_t)atoi(argv[3]), rounds);
    return report(file, (uint32_t)atoi(argv[2]), rounds);
}
