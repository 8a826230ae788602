/* big.c - a trainer with one tensor of 2^29 + 1 elements, so that counts,
 * offsets and sizes pass 2^31 bytes.
 *
 *   big RANK [ELEMENTS [ROUNDS]]        RANK 0 or 1; 2^29 + 1 elements; at most 12 rounds
 *
 * Two of them, each beside its own sleetd ($SLEET_CONTROL), do rounds over the
 * zero-copy buffers; in the first one joins.  After a later one some hundred
 * elements, the first and the last among them, must be the mean of both, or,
 * where nothing arrived in time, the value of one; at least half must be means.
 * Exit 0 when so, 1 when not, 2 usage. */
#include <inttypes.h>
#include <sleet.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#define SAMPLES 512u
#define STALLS_MAX 12
#define WAIT_NS INT64_C(120000000000)

/* What node `rank` sends as element k: exact in f32, as is the mean. */
static float value_of(uint64_t k, unsigned rank)
{
    return (float)((k * UINT64_C(0x9e3779b97f4a7c15)) >> 48) + (rank ? 0.5f : 0.0f);
}

static void fill(float *send, uint64_t count, unsigned rank)
{
    for (uint64_t k = 0; k < count; k++)
        send[k] = value_of(k, rank);
}

/* Have the pages of the result made here, not by the daemon in mid-round. */
static float touch(const float *result, uint64_t count)
{
    float sum = 0;
    for (uint64_t k = 0; k < count; k += 1024)
        sum += *(const volatile float *)&result[k];
    return sum;
}

/* Sample i of a vector: evenly spread, with the first and the last. */
static uint64_t place(unsigned i, uint64_t count)
{
    uint64_t last = count - 1;
    return last / (SAMPLES - 1) * i + (last % (SAMPLES - 1)) * i / (SAMPLES - 1);
}

static bool check(const float *result, uint64_t count, unsigned rank)
{
    unsigned means = 0, single = 0, wrong = 0;
    bool last_is_mean = false;
    for (unsigned i = 0; i < SAMPLES; i++) {
        uint64_t k = place(i, count);
        float v = result[k], a = value_of(k, 0), b = value_of(k, 1);
        last_is_mean = v == (a + b) / 2;
        if (last_is_mean)
            means++;
        else if (v == a || v == b)
            single++;
        else if (wrong++ < 5)
            printf("big %u: element %" PRIu64 " is %.9g, not of %.9g and %.9g\n", rank, k,
                   (double)v, (double)a, (double)b);
    }
    printf("big %u: %u of %u samples are means of both, %u of one node, %u wrong; the last is %s\n",
           rank, means, SAMPLES, single, wrong, last_is_mean ? "a mean" : "no mean");
    return wrong == 0 && means * 2 >= SAMPLES;
}

static int join(sleet **ctx, sleet_set **set, uint64_t count)
{
    int error = sleet_open(ctx, NULL);
    if (!error)
        error = sleet_set_new(set, *ctx, "big", SLEET_MODEL);
    if (!error)
        error = sleet_set_add(*set, "vector", SLEET_F32, count, NULL);
    if (!error)
        error = sleet_set_register(*set);
    return error ? error : sleet_wait_nodes(*set, 2, WAIT_NS);
}

/* Start the round; a daemon busy with so much for longer than libsleet waits is asked
 * again, at most STALLS_MAX times. */
static int start(sleet *ctx, sleet_set *set, const sleet_round_options *options, unsigned rank)
{
    int error = sleet_start(set, options);
    for (int i = 1; error == SLEET_ESTALLED && i <= STALLS_MAX; i++) {
        sleet_job_info info;
        printf("big %u: the daemon answered start too late, try %d\n", rank, i);
        fflush(stdout);
        for (int k = 0; k < STALLS_MAX && sleet_job(ctx, NULL, &info) == SLEET_ESTALLED; k++)
            ;
        error = sleet_start(set, options);
    }
    return error;
}

/* One round; *both when this node and the other were to contribute. */
static int one_round(sleet *ctx, sleet_set *set, unsigned rank, bool *both)
{
    sleet_round_options options = {.size = sizeof(options), .deadline_ns = WAIT_NS, .exact = 1};
    sleet_report report;
    int error = start(ctx, set, &options, rank);
    if (!error)
        error = sleet_wait(set, &report);
    if (error)
        return error;
    printf("big %u: round %" PRIu64 ": coverage %.3f of %u nodes, flags 0x%x, %.1f s; fragments: "
           "%" PRIu64 " expected, %" PRIu64 " direct, %" PRIu64 " repaired, %" PRIu64 " lost, %" PRIu64
           " unsent\n",
           rank, report.round, report.coverage, report.expected, report.flags,
           (double)report.elapsed_ns / 1e9, report.fragments_expected, report.fragments_direct,
           report.fragments_repaired, report.fragments_lost, report.fragments_unsent);
    fflush(stdout);
    *both = report.expected == 2 && !(report.flags & (SLEET_JOINING | SLEET_ALONE));
    return SLEET_OK;
}

int main(int argc, char **argv)
{
    unsigned rank = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 2;
    uint64_t count = argc > 2 ? strtoull(argv[2], NULL, 10) : (UINT64_C(1) << 29) + 1;
    int rounds = argc > 3 ? atoi(argv[3]) : 12;
    if (argc > 4 || rank > 1 || count < SAMPLES || rounds < 1) {
        fprintf(stderr, "usage: big RANK [ELEMENTS [ROUNDS]]\n");
        return 2;
    }
    sleet *ctx = NULL;
    sleet_set *set = NULL;
    bool both = false, ok = false;
    int error = join(&ctx, &set, count);
    if (!error) {
        fill(sleet_send_buffer(set, 0), count, rank);
        if (touch(sleet_result_buffer(set, 0), count) != 0)
            printf("big %u: a new result buffer is not zero\n", rank);
    }
    for (int i = 0, more = rounds; !error && i < more; i++) {
        int seen = sleet_wait_nodes(set, 2, WAIT_NS); /* not when one of us was just busy */
        if (seen == SLEET_EAGAIN)
            break; /* the other is done */
        error = one_round(ctx, set, rank, &both);
        if (!error && both && !ok)
            ok = check(sleet_result_buffer(set, 0), count, rank);
        if (ok && more > i + 2)
            more = i + 2; /* one more, for the other */
    }
    if (error)
        printf("big %u: %s: %s\n", rank, sleet_strerror(error), sleet_detail(ctx));
    else if (!ok)
        printf("big %u: no round of %d with good results of both\n", rank, rounds);
    sleet_close(ctx);
    return ok && !error ? 0 : 1;
}
