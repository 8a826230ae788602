/* sleet-bench-codecs.c - how far the values are off that a codec gives back, and its bytes.
 *
 * vNMSE is |x - decoded|^2 / |x|^2 of vectors of 64 fragments, each coded alone: of normal values,
 * and of the same with an energy a fragment that is log-normal (log-sd 1.5), as layers differ. */
#include "codec/codec.h"
#include "sleet-bench.h"
#include "sleet.h"
#include "tensor/layout.h"
#include "tensor/rotate.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GROUP 64 /* fragments of a vector */
#define ELEMENTS ((size_t)GROUP * FRAGMENT_ELEMENTS)
#define VECTORS 40
#define LOG_SD 1.5

/* ---- what theory expects for a vector: the squared error of its fragments ------------------ */

/* Rounding with so many bits behind the first: squared error of a step of 1 over `part`, which is 12 to the
 * nearest, 6 up or down at random, 3 towards zero. */
static double rounding(const float *x, size_t n, int bits, int exponent_least, double part)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        int exponent;
        frexpf(x[i], &exponent);
        exponent = exponent - 1 > exponent_least ? exponent - 1 : exponent_least;
        double step = ldexp(1, exponent - bits);
        sum += step * step / part;
    }
    return sum;
}

static double exact(const float *x, size_t n, uint32_t keep)
{
    (void)x, (void)n, (void)keep;
    return 0;
}

static double bf16(const float *x, size_t n, uint32_t keep)
{
    (void)keep;
    return rounding(x, n, 7, -126, 6);
}

static double f16(const float *x, size_t n, uint32_t keep)
{
    (void)keep;
    return rounding(x, n, 10, -14, 12);
}

/* A byte is the sign and seven bits of the exponent: down to an odd power of two. */
static double trunc1(const float *x, size_t n, uint32_t keep)
{
    (void)keep;
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        int exponent;
        frexpf(x[i], &exponent);
        double off = fabs((double)x[i]) - ldexp(1, exponent - (exponent % 2 == 0 ? 1 : 2));
        sum += off * off;
    }
    return sum;
}

static double trunc2(const float *x, size_t n, uint32_t keep)
{
    (void)keep;
    return rounding(x, n, 7, -126, 3);
}

static double trunc3(const float *x, size_t n, uint32_t keep)
{
    (void)keep;
    return rounding(x, n, 15, -126, 3);
}

/* Rounded up or down at random, 127 steps to the largest: the mean of f (1 - f) is 1/6. */
static double i8(const float *x, size_t n, uint32_t keep)
{
    (void)keep;
    double sum = 0;
    for (size_t at = 0; at < n; at += FRAGMENT_ELEMENTS) {
        double most = 0;
        for (size_t i = 0; i < FRAGMENT_ELEMENTS; i++)
            most = fmax(most, fabs((double)x[at + i]));
        sum += FRAGMENT_ELEMENTS * (most / 127) * (most / 127) / 6;
    }
    return sum;
}

static int by_magnitude(const void *a, const void *b)
{
    float x = fabsf(*(const float *)a), y = fabsf(*(const float *)b);
    return (x > y) - (x < y);
}

/* All but the largest of each fragment. */
static double topk(const float *x, size_t n, uint32_t keep)
{
    float sorted[FRAGMENT_ELEMENTS];
    double sum = 0;
    for (size_t at = 0; at < n; at += FRAGMENT_ELEMENTS) {
        memcpy(sorted, x + at, sizeof sorted);
        qsort(sorted, FRAGMENT_ELEMENTS, sizeof *sorted, by_magnitude);
        for (size_t i = 0; i + keep < FRAGMENT_ELEMENTS; i++)
            sum += (double)sorted[i] * sorted[i];
    }
    return sum;
}

/* Of the energy: 1 / (1 - D) - 1, D the distortion of the Lloyd-Max quantizer of so many bits
 * for normal values; unbiased, so more than D. */
static const double rotated[] = {0.5708, 0.1331, 0.03578, 0.009588};

static const struct row {
    const char *codec; /* as in SLEET_CODEC_MAP; what there is not is left out */
    double (*error)(const float *x, size_t n, uint32_t keep); /* NULL: bits of a rotated one */
    uint32_t keep, bits;
} rows[] = {
    {"f32", exact, 0, 0},     {"bf16", bf16, 0, 0},     {"f16", f16, 0, 0},
    {"i8", i8, 0, 0},         {"trunc1", trunc1, 0, 0}, {"trunc2", trunc2, 0, 0},
    {"trunc3", trunc3, 0, 0}, {"rot1", NULL, 0, 1},     {"rot2", NULL, 0, 2},
    {"rot3", NULL, 0, 3},     {"rot4", NULL, 0, 4},     {"topk", topk, 29, 0},
    {"topk", topk, 3, 0},
};

static const struct codec *named(const char *name)
{
#define SLEET_X(id, value, text)                                                                   \
    if (strcmp(name, text) == 0)                                                                   \
        return codec_by_id(value);
    SLEET_CODEC_MAP(SLEET_X)
#undef SLEET_X
    return NULL;
}

/* ---- what is measured -------------------------------------------------------------------------
 */

struct vector {
    const char *name;
    double log_sd;
};

static void draw(float *x, const struct vector *v, sleet_rng *rng)
{
    float energy[GROUP];
    bench_normal(rng, x, ELEMENTS);
    bench_normal(rng, energy, GROUP);
    for (size_t i = 0; i < ELEMENTS; i++)
        x[i] *= expf((float)(v->log_sd / 2) * energy[i / FRAGMENT_ELEMENTS]);
}

/* The vector through the codec: bytes, 0 where it does not come back. */
static size_t through(const struct codec *c, const struct row *row, float *out, const float *x)
{
    static uint8_t payload[4 * FRAGMENT_ELEMENTS];
    size_t sum = 0;
    for (size_t at = 0; at < ELEMENTS; at += FRAGMENT_ELEMENTS) {
        const struct codec_args args = {.seed = at, .keep = row->keep};
        size_t n = c->encode(payload, x + at, FRAGMENT_ELEMENTS, &args);
        if (n == 0 || c->decode(out + at, payload, n, FRAGMENT_ELEMENTS) != n)
            return 0;
        sum += n;
    }
    return sum;
}

static double energy(const float *x)
{
    double sum = 0;
    for (size_t i = 0; i < ELEMENTS; i++)
        sum += (double)x[i] * x[i];
    return sum;
}

static double vnmse(const float *x, const float *decoded)
{
    double off = 0;
    for (size_t i = 0; i < ELEMENTS; i++) {
        double d = (double)x[i] - decoded[i];
        off += d * d;
    }
    return off / energy(x);
}

static int run(struct bench *b, const struct codec *c, const struct row *row,
               const struct vector *v)
{
    static float x[ELEMENTS], sent[ELEMENTS], decoded[ELEMENTS];
    struct bench_mean error = {0}, theory = {0}, bytes = {0};
    sleet_rng rng = {mix64(b->seed)};
    for (int i = 0; i < (b->brief ? VECTORS / 10 : VECTORS); i++) {
        draw(x, v, &rng);
        memcpy(sent, x, sizeof sent);
        if (c->rotated)
            rotate_forward(sent, ELEMENTS, (uint64_t)i);
        size_t n = through(c, row, decoded, sent);
        if (n == 0) {
            fprintf(stderr, "sleet-bench: codec %s does not decode what it encoded\n", row->codec);
            return -1;
        }
        if (c->rotated)
            rotate_inverse(decoded, ELEMENTS, (uint64_t)i);
        bench_add(&bytes, (double)n / GROUP);
        bench_add(&error, vnmse(x, decoded));
        bench_add(&theory, row->error ? row->error(x, ELEMENTS, row->keep) / energy(x)
                                      : rotated[row->bits - 1]);
    }
    char name[32];
    snprintf(name, sizeof name, row->keep ? "%s %u" : "%s", row->codec, row->keep);
    const struct bench_value values[] = {
        BENCH_TEXT("codec", name),
        BENCH_TEXT("vectors", v->name),
        BENCH_NUMBER("bytes", 1, bytes.mean),
        BENCH_NUMBER("of_f32", 4, bytes.mean / (4 * FRAGMENT_ELEMENTS)),
        BENCH_TINY("vnmse", 3, error.mean),
        BENCH_TINY("theory", 3, theory.mean),
    };
    bench_row(b, "codecs", values, sizeof values / sizeof *values,
              bench_judge(b, error.mean, theory.mean, 0));
    return 0;
}

int bench_codecs(struct bench *b)
{
    static const struct vector vectors[] = {{"normal", 0}, {"log-normal", LOG_SD}};
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        const struct codec *c = named(rows[r].codec);
        for (size_t v = 0; c && v < 2; v++)
            if (run(b, c, &rows[r], &vectors[v]) < 0)
                return -1;
    }
    return 0;
}
