/* rounds.c - a trainer that only averages: one tensor, many rounds.
 *
 *   rounds N [ELEMENTS]        ELEMENTS 20000
 *
 * Runs beside a sleetd ($SLEET_CONTROL).  Every fifth round fails: its deadline is too
 * short for the data.  Prints a line that begins with "tenth" after a tenth of the
 * rounds and one with "end" after all, and waits for a byte on stdin each time.  Exit 0 when all N ended by themselves, 1 when not, 2 usage. */
#include <inttypes.h>
#include <sleet.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define SHORT_NS INT64_C(300000)
#define USUAL_NS INT64_C(1000000000)

/* Say how far it is, and let the other side look before going on. */
static int pause_at(const char *where, uint64_t cut, uint64_t of)
{
    char byte;
    printf("%s %" PRIu64 " of %" PRIu64 " rounds ended by their deadline\n", where, cut, of);
    fflush(stdout);
    return read(STDIN_FILENO, &byte, 1) == 1 ? SLEET_OK : SLEET_ECANCELED;
}

int main(int argc, char **argv)
{
    uint64_t rounds = argc > 1 ? strtoull(argv[1], NULL, 10) : 0, cut = 0;
    uint64_t count = argc > 2 ? strtoull(argv[2], NULL, 10) : 20000;
    if (argc > 3 || rounds < 10 || count == 0) {
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
        /* A step's work: who has none is ahead of the others and mostly averages alone. */
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        error = sleet_start(set, &options);
        if (!error)
            error = sleet_wait(set, &report);
        if (error == SLEET_ESTALLED) /* the machine was busy */
            error = SLEET_OK;
        else if (!error)
            cut += (report.flags & SLEET_DEADLINE) != 0;
        if (!error && i + 1 == rounds / 10)
            error = pause_at("tenth", cut, i + 1);
    }
    if (!error)
        error = pause_at("end", cut, rounds);
    if (error)
        fprintf(stderr, "rounds: %s: %s\n", sleet_strerror(error), sleet_detail(ctx));
    if (!error && cut * 8 < rounds)
        fprintf(stderr, "rounds: too few rounds failed to tell anything\n");
    sleet_close(ctx);
    return error != SLEET_OK || cut * 8 < rounds;
}
