/* rounds.c - a trainer that only averages: one tensor, many rounds.
 *
 *   rounds N [ELEMENTS]        ELEMENTS 20000
 *
 * Runs beside a sleetd ($SLEET_CONTROL).  Every fifth round fails: its deadline is too
 * short for the data.  Exit 0 when all N ended by themselves, 1 when not, 2 usage. */
#include <inttypes.h>
#include <sleet.h>
#include <stdio.h>
#include <stdlib.h>

#define SHORT_NS INT64_C(300000)
#define USUAL_NS INT64_C(1000000000)

int main(int argc, char **argv)
{
    uint64_t rounds = argc > 1 ? strtoull(argv[1], NULL, 10) : 0, cut = 0;
    uint64_t count = argc > 2 ? strtoull(argv[2], NULL, 10) : 20000;
    if (argc > 3 || rounds == 0 || count == 0) {
        fprintf(stderr, "usage: rounds N [ELEMENTS]\n");
        return 2;
    }
    sleet *ctx = NULL;
    sleet_set *set = NULL;
    int error = sleet_open(&ctx, NULL);
    if (!error)
        error = sleet_set_new(&set, ctx, "rounds", SLEET_MODEL);
    if (!error)
        error = sleet_set_add(set, "vector", SLEET_F32, count, NULL);
    if (!error)
        error = sleet_set_register(set);
    if (!error)
        error = sleet_wait_nodes(set, 3, INT64_C(20000000000));
    for (uint64_t i = 0; !error && i < rounds; i++) {
        sleet_round_options options = {.size = sizeof options,
                                       .deadline_ns = i % 5 == 4 ? SHORT_NS : USUAL_NS};
        sleet_report report;
        ((float *)sleet_send_buffer(set, 0))[i % count] = (float)i;
        error = sleet_start(set, &options);
        if (!error)
            error = sleet_wait(set, &report);
        if (error == SLEET_ESTALLED) /* the machine was busy */
            error = SLEET_OK;
        else if (!error)
            cut += (report.flags & SLEET_DEADLINE) != 0;
    }
    if (error)
        fprintf(stderr, "rounds: %s: %s\n", sleet_strerror(error), sleet_detail(ctx));
    printf("rounds: %" PRIu64 " of %" PRIu64 " rounds ended by their deadline\n", cut, rounds);
    sleet_close(ctx);
    return error != SLEET_OK;
}
