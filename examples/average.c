/* average.c - the smallest program that links libsleet.
 *
 *   average VALUE [NODES [ROUNDS]]
 *
 * Start one beside each sleetd, each with another VALUE: every node holds a
 * vector of it, and all end with (nearly) the same numbers, whatever the network drops.
 * $SLEET_CONTROL names the daemon's socket.  A node that comes to a running job
 * takes the others' vector first, so different starts are never mixed in silence. */
#include <inttypes.h>
#include <sleet.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define COUNT 10000u

static int fail(const char *what, int error, const sleet *ctx)
{
    fprintf(stderr, "average: %s: %s: %s\n", what, sleet_strerror(error), sleet_detail(ctx));
    return EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    static float vector[COUNT];
    sleet *ctx = NULL;
    sleet_set *set = NULL;
    if (argc < 2) {
        fprintf(stderr, "usage: average VALUE [NODES [ROUNDS]]\n");
        return 2;
    }
    float value = strtof(argv[1], NULL);
    uint32_t nodes = argc > 2 ? (uint32_t)atoi(argv[2]) : 1;
    int rounds = argc > 3 ? atoi(argv[3]) : 10;
    for (uint32_t i = 0; i < COUNT; i++)
        vector[i] = value;

    int error = sleet_open(&ctx, NULL);
    if (!error)
        error = sleet_set_new(&set, ctx, "example", SLEET_MODEL);
    if (!error)
        error = sleet_set_add(set, "vector", SLEET_F32, COUNT, vector);
    if (!error)
        error = sleet_set_register(set);
    if (!error)
        error = sleet_wait_nodes(set, nodes, INT64_C(10000000000));
    if (error) {
        int status = fail("no set", error, ctx);
        sleet_close(ctx);
        return status;
    }
    sleet_report report;
    bool member = false;
    for (int i = 0; i < rounds; i++) {
        error = sleet_start(set, NULL); /* does not block: compute here */
        if (!error)
            error = sleet_wait(set, &report); /* at most 2 s, the default deadline */
        if (error)
            break;
        if (!member && !(report.flags & SLEET_JOINING)) { /* now this node's own values count */
            member = true;
            for (uint32_t k = 0; k < COUNT; k++)
                vector[k] = value;
        }
        printf("round %" PRIu64 ": first %g last %g, coverage %.3f of %u nodes, %.1f ms\n",
               report.round, (double)vector[0], (double)vector[COUNT - 1], report.coverage,
               report.expected, (double)report.elapsed_ns / 1e6);
        nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL); /* a step's work */
    }
    int status = error ? fail("round", error, ctx) : EXIT_SUCCESS;
    sleet_close(ctx);
    return status;
}
