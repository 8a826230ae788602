/* sleet-bench-speed.c - how fast the parts work through f32 values, beside memcpy.
 *
 * One thread, each over the same MiBs as a set is worked through, fragment by fragment; the best of
 * several runs.  GB/s count the bytes of the f32 values. */
#include "codec/codec.h"
#include "protect/parity.h"
#include "session/aead.h"
#include "sleet-bench.h"
#include "sleet.h"
#include "tensor/layout.h"
#include "tensor/reduce.h"
#include "tensor/rotate.h"
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define FRAGMENTS 4096 /* 4.5 MiB of f32, more than the cache of a core */
#define ELEMENTS ((size_t)FRAGMENTS * FRAGMENT_ELEMENTS)
#define FRAGMENT_BYTES (4 * FRAGMENT_ELEMENTS)
#define DATAGRAM_BODY (40 + FRAGMENT_BYTES)
#define DATAGRAM (16 + DATAGRAM_BODY + 16)
#define SPARSE_KEPT 29 /* of 288, a tenth */
#define RUNS 60
#define BRIEF_RUNS 3

struct arena {
    float *x, *y;                   /* ELEMENTS */
    double *acc;                    /* FRAGMENT_ELEMENTS, as an owner keeps a fragment's */
    uint8_t *datagram;              /* FRAGMENTS * DATAGRAM */
    size_t *bytes;                  /* FRAGMENTS, of each encoded one */
    uint8_t *rows[PARITY_ROWS_MAX]; /* of parity, FRAGMENT_BYTES each */
    uint32_t parity;                /* of them in use */
    const struct codec *codec;
    enum aead_cipher cipher;
    bool failed;
};

static double clock_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void copy(struct arena *a)
{
    memcpy(a->y, a->x, ELEMENTS * sizeof *a->x);
}

static void add(struct arena *a)
{
    for (size_t i = 0; i < ELEMENTS; i += FRAGMENT_ELEMENTS)
        reduce_add(a->acc, a->x + i, 1, FRAGMENT_ELEMENTS);
}

static void mean(struct arena *a)
{
    for (size_t i = 0; i < ELEMENTS; i += FRAGMENT_ELEMENTS)
        reduce_mean(a->y + i, a->acc, 8, FRAGMENT_ELEMENTS);
}

static void rotate(struct arena *a)
{
    rotate_forward(a->x, ELEMENTS, 1);
}

static void encode(struct arena *a)
{
    const struct codec_args args = {.seed = 1, .keep = SPARSE_KEPT};
    for (size_t i = 0; i < FRAGMENTS; i++)
        a->bytes[i] = a->codec->encode(a->datagram + i * DATAGRAM, a->x + i * FRAGMENT_ELEMENTS,
                                       FRAGMENT_ELEMENTS, &args);
}

static void decode(struct arena *a)
{
    for (size_t i = 0; i < FRAGMENTS; i++)
        a->failed |= a->codec->decode(a->y + i * FRAGMENT_ELEMENTS, a->datagram + i * DATAGRAM,
                                      a->bytes[i], FRAGMENT_ELEMENTS) != a->bytes[i];
}

/* What a sender does with all blocks, and a receiver with those that came. */
static void add_parity(struct arena *a)
{
    for (size_t i = 0; i < FRAGMENTS; i++)
        parity_add(a->rows, a->parity, i % PARITY_DATA_MAX,
                   (const uint8_t *)(a->x + i * FRAGMENT_ELEMENTS), FRAGMENT_BYTES);
}

/* Of each group as many blocks as there are rows. */
static void solve_parity(struct arena *a)
{
    uint8_t number[PARITY_ROWS_MAX], *out[PARITY_ROWS_MAX];
    for (size_t at = 0; at < FRAGMENTS; at += a->parity) {
        for (uint32_t i = 0; i < a->parity; i++) {
            number[i] = (uint8_t)i;
            out[i] = (uint8_t *)(a->y + (at + i) * FRAGMENT_ELEMENTS);
        }
        parity_solve(out, number, a->rows, number, a->parity, FRAGMENT_BYTES);
    }
}

static const uint8_t key[AEAD_KEY_BYTES] = {1};

static void seal(struct arena *a)
{
    for (size_t i = 0; i < FRAGMENTS; i++)
        aead_seal(a->cipher, key, i, a->datagram + i * DATAGRAM, DATAGRAM_BODY);
}

static void unseal(struct arena *a)
{
    static uint8_t room[DATAGRAM_BODY];
    for (size_t i = 0; i < FRAGMENTS; i++)
        a->failed |= !aead_open(a->cipher, key, i, a->datagram + i * DATAGRAM, DATAGRAM, room);
}

/* The best of several runs, in GB of f32 a second. */
static double speed(const struct bench *b, struct arena *a, void (*work)(struct arena *))
{
    double best = INFINITY;
    work(a);
    for (int i = 0; i < (b->brief ? BRIEF_RUNS : RUNS); i++) {
        double from = clock_s();
        work(a);
        best = fmin(best, clock_s() - from);
    }
    return (double)(ELEMENTS * sizeof(float)) / best * 1e-9;
}

static void row(struct bench *b, struct arena *a, const char *step, const char *how,
                void (*work)(struct arena *), double *memcpy_speed)
{
    double v = speed(b, a, work);
    if (*memcpy_speed == 0)
        *memcpy_speed = v;
    const struct bench_value values[] = {
        BENCH_TEXT("step", step),
        BENCH_TEXT("how", how),
        BENCH_NUMBER("gb_s", 2, v),
        BENCH_NUMBER("of_memcpy", 3, v / *memcpy_speed),
    };
    bench_row(b, "speed", values, sizeof values / sizeof *values, BENCH_UNJUDGED);
}

static void coded(struct bench *b, struct arena *a, uint8_t id, const char *name,
                  double *memcpy_speed)
{
    a->codec = codec_by_id(id);
    if (!a->codec)
        return;
    row(b, a, "encode", name, encode, memcpy_speed);
    row(b, a, "decode", name, decode, memcpy_speed);
}

static void rows(struct bench *b, struct arena *a)
{
    double base = 0;
    row(b, a, "memcpy", "", copy, &base);
    row(b, a, "reduce_add", "", add, &base);
    row(b, a, "reduce_mean", "", mean, &base);
    row(b, a, "rotate", "", rotate, &base);
#define SLEET_X(id, value, text) coded(b, a, value, text, &base);
    SLEET_CODEC_MAP(SLEET_X)
#undef SLEET_X
    for (a->parity = 4; a->parity <= PARITY_ROWS_MAX; a->parity *= 2) {
        char code[16];
        snprintf(code, sizeof code, "%d+%u", PARITY_DATA_MAX, a->parity);
        row(b, a, "parity", code, add_parity, &base);
        row(b, a, "restore", code, solve_parity, &base);
    }
    uint8_t ciphers = aead_available();
    for (int c = AEAD_NONE; c < AEAD_CIPHERS; c++) {
        if (c != AEAD_NONE && !(ciphers >> c & 1))
            continue;
        a->cipher = (enum aead_cipher)c;
        row(b, a, "seal", aead_name(a->cipher), seal, &base); /* the last time's is opened */
        row(b, a, "open", aead_name(a->cipher), unseal, &base);
    }
}

int bench_speed(struct bench *b)
{
    static uint8_t rows_bytes[PARITY_ROWS_MAX][FRAGMENT_BYTES];
    struct arena a = {.x = malloc(ELEMENTS * sizeof(float)),
                      .y = malloc(ELEMENTS * sizeof(float)),
                      .acc = calloc(FRAGMENT_ELEMENTS, sizeof(double)),
                      .bytes = calloc(FRAGMENTS, sizeof(size_t)),
                      .datagram = calloc(FRAGMENTS, DATAGRAM)};
    bool ok = a.x && a.y && a.acc && a.bytes && a.datagram && sodium_init() >= 0;
    if (ok) {
        for (uint32_t i = 0; i < PARITY_ROWS_MAX; i++)
            a.rows[i] = rows_bytes[i];
        sleet_rng rng = {mix64(b->seed)};
        bench_normal(&rng, a.x, ELEMENTS);
        rows(b, &a);
    } else {
        fputs("sleet-bench: out of memory, or no random numbers\n", stderr);
    }
    if (a.failed)
        fputs("sleet-bench: what was encoded or sealed does not come back\n", stderr);
    free(a.x);
    free(a.y);
    free(a.acc);
    free(a.bytes);
    free(a.datagram);
    return ok && !a.failed ? 0 : -1;
}
