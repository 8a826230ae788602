/* Every codec by the same properties, then what is peculiar to some. */
#include "base/rng.h"
#include "codec/adatopk.h"
#include "codec/codec.h"
#include "sleet_test.h"
#include "tensor/kind.h"
#include "tensor/reduce.h"
#include "tensor/rotate.h"
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define N CODEC_ELEMENTS_MAX
#define BYTES 1152 /* of a DATA payload */

/* The error of an element is at most `relative` of it plus `of_most` of the largest. */
static const struct {
    uint8_t id;
    const char *name;
    uint32_t bytes; /* of a full fragment without zeros, at most */
    double relative, of_most;
    bool tells; /* refuses what was encoded from NaN or infinity */
} table[] = {
    {SLEET_CODEC_F32, "f32", 1152, 0, 0, true},
    {SLEET_CODEC_BF16, "bf16", 576, 0x1p-7, 0, true},
    {SLEET_CODEC_F16, "f16", 576, 0x1p-11, 0x1p-24, true},
    {SLEET_CODEC_I8, "i8", 290, 0, 1.009 / 127, true},
    {SLEET_CODEC_TRUNC1, "trunc1", 288, 0.75, 0, false},
    {SLEET_CODEC_TRUNC2, "trunc2", 576, 0x1p-7, 0, true},
    {SLEET_CODEC_TRUNC3, "trunc3", 864, 0x1p-15, 0, true},
    {SLEET_CODEC_ROT1, "rot1", 38, 0, 1, true},
    {SLEET_CODEC_ROT2, "rot2", 74, 0, 0.9, true},
    {SLEET_CODEC_ROT3, "rot3", 110, 0, 0.7, true},
    {SLEET_CODEC_ROT4, "rot4", 146, 0, 0.5, true},
    {SLEET_CODEC_TOPK, "topk", 577, 0x1p-8, 0, true},
};
#define CODECS (sizeof table / sizeof table[0])

static double normal(sleet_rng *rng)
{
    double u = 1 - rng_double(rng), v = rng_double(rng);
    return sqrt(-2 * log(u)) * cos(6.283185307179586 * v);
}

static void fill(float *x, uint32_t n, sleet_rng *rng)
{
    for (uint32_t i = 0; i < n; i++)
        x[i] = (float)normal(rng);
}

/* Encodes n values and decodes them from an allocation of just the bytes that were written;
 * CODEC_NONFINITE if the decoder refuses what they stand for. */
static size_t through(const struct codec *c, float *out, const float *x, uint32_t n,
                      const struct codec_args *args)
{
    uint8_t payload[BYTES + 8], *exact;
    memset(payload, 0xa5, sizeof payload);
    size_t bytes = c->encode(payload, x, n, args), used;
    CHECK(bytes > 0 && bytes <= c->bytes_max && payload[bytes] == 0xa5);
    if (!(exact = malloc(bytes)))
        return 0;
    memcpy(exact, payload, bytes);
    used = c->decode(out, exact, bytes, n);
    free(exact);
    CHECK(used == CODEC_NONFINITE || used == bytes);
    return used;
}

static void ids_and_names_agree(void)
{
    for (size_t k = 0; k < CODECS; k++) {
        const struct codec *c = codec_by_id(table[k].id);
        REQUIRE(c);
        CHECK_EQ(c->id, table[k].id);
        CHECK_STR(codec_text(c->id), table[k].name);
        CHECK_EQ(c->bytes_max, table[k].bytes);
        CHECK_EQ(c->rotated, c->id >= SLEET_CODEC_ROT1 && c->id <= SLEET_CODEC_ROT4);
        CHECK_EQ(c->sparse, c->id == SLEET_CODEC_TOPK);
    }
    CHECK(codec_by_id(0) == NULL && codec_by_id(CODECS + 1) == NULL && !codec_text(CODECS + 1));
}

static void round_trips_stay_in_their_bounds(void)
{
    sleet_rng rng = {test_seed()};
    for (size_t k = 0; k < CODECS; k++) {
        const struct codec *c = codec_by_id(table[k].id);
        uint32_t wrong = 0;
        for (uint32_t n = 1; n <= N; n++) {
            float x[N], out[N + 1];
            double most = 0;
            fill(x, n, &rng);
            out[n] = 7;
            size_t bytes = through(c, out, x, n, &(struct codec_args){.seed = n});
            wrong += bytes == 0 || out[n] != 7 || bytes > table[k].bytes;
            wrong += n == N && bytes != table[k].bytes && !c->bytes_usual;
            for (uint32_t i = 0; i < n; i++)
                most = fmax(most, fabs((double)x[i]));
            for (uint32_t i = 0; i < n; i++)
                wrong += fabs((double)out[i] - (double)x[i]) >
                         table[k].relative * fabs((double)x[i]) + table[k].of_most * most;
        }
        if (!CHECK_EQ(wrong, 0))
            printf("codec %s\n", table[k].name);
    }
}

/* Followed by others in a payload, at any alignment, and cut off at any length. */
static void a_fragment_ends_where_it_says(void)
{
    sleet_rng rng = {test_seed()};
    for (size_t k = 0; k < CODECS; k++) {
        const struct codec *c = codec_by_id(table[k].id);
        const struct codec_args args = {.seed = rng_next(&rng), .keep = 20};
        uint32_t wrong = 0;
        for (uint32_t n = 1; n <= N; n += 1 + n / 8) {
            uint8_t one[BYTES], two[BYTES + 100];
            float x[N], out[N];
            fill(x, n, &rng);
            size_t bytes = c->encode(one, x, n, &args);
            memset(two, 0xff, sizeof two);
            wrong += c->encode(two + 1, x, n, &args) != bytes || memcmp(one, two + 1, bytes) != 0;
            wrong += c->decode(out, two + 1, bytes + 99, n) != bytes;
            for (size_t cut = 0; cut < bytes; cut++) {
                uint8_t *exact = malloc(cut ? cut : 1);
                if (!exact)
                    return;
                memcpy(exact, one, cut);
                wrong += c->decode(out, exact, cut, n) != 0;
                free(exact);
            }
        }
        if (!CHECK_EQ(wrong, 0))
            printf("codec %s\n", table[k].name);
    }
}

static void garbage_is_refused_or_finite(void)
{
    sleet_rng rng = {test_seed()};
    for (size_t k = 0; k < CODECS; k++) {
        const struct codec *c = codec_by_id(table[k].id);
        uint32_t wrong = 0;
        for (size_t bytes = 0; bytes <= BYTES; bytes += 1 + bytes / 200) {
            uint8_t *payload = malloc(bytes ? bytes : 1);
            if (!payload)
                return;
            uint64_t mask = rng_below(&rng, 2) ? ~(uint64_t)0 : 0x0fdf0fdf3fdf0fdf;
            for (size_t i = 0; i < bytes; i++)
                payload[i] = (uint8_t)(rng_next(&rng) & mask >> (8 * (i % 8)));
            for (uint32_t n = 1; n <= N; n += 1 + rng_below(&rng, 9)) {
                float x[N + 1];
                x[n] = 7;
                size_t used = c->decode(x, payload, bytes, n);
                bool taken = used && used != CODEC_NONFINITE;
                wrong += x[n] != 7 || (taken && (used > bytes || !reduce_finite(x, n)));
            }
            free(payload);
        }
        if (!CHECK_EQ(wrong, 0))
            printf("codec %s\n", table[k].name);
    }
}

static void extremes_come_back_finite(void)
{
    const float extremes[][2] = {
        {0, 0},       {-0.0f, -0.0f},    {FLT_MAX, FLT_MAX}, {-FLT_MAX, FLT_MAX},
        {FLT_MAX, 0}, {FLT_MAX, 1e-45f}, {1e-45f, -1e-45f},  {FLT_MIN, FLT_MIN / 2},
        {3e38f, -1},  {65520, 65504},
    };
    for (size_t k = 0; k < CODECS; k++)
        for (size_t e = 0; e < sizeof extremes / sizeof extremes[0]; e++)
            for (uint32_t n = 1; n <= N; n += 41) {
                float x[N], out[N];
                for (uint32_t i = 0; i < n; i++)
                    x[i] = extremes[e][i % 7 != 0];
                if (!CHECK(
                        through(codec_by_id(table[k].id), out, x, n, &(struct codec_args){e, 0}) <= BYTES &&
                        reduce_finite(out, n)))
                    printf("codec %s, extreme %zu, n %u\n", table[k].name, e, n);
                for (uint32_t i = 0; e < 2 && i < n; i++)
                    CHECK(out[i] == 0);
            }
}

static void what_is_not_finite_is_refused(void)
{
    const float bad[] = {NAN, -NAN, INFINITY, -INFINITY};
    sleet_rng rng = {test_seed()};
    for (size_t k = 0; k < CODECS; k++)
        for (int b = 0; b < 4 && table[k].tells; b++) {
            float x[N], out[N];
            fill(x, N, &rng);
            x[rng_below(&rng, N)] = bad[b];
            if (!CHECK_EQ(through(codec_by_id(table[k].id), out, x, N, &(struct codec_args){0}), CODEC_NONFINITE))
                printf("codec %s\n", table[k].name);
        }
}

static void bf16_is_right_on_average(void)
{
    const struct codec *c = codec_by_id(SLEET_CODEC_BF16);
    const float x[] = {1 + 0x1p-9f, -3 - 0x1p-8f, 1e-3f, FLT_MAX, 1.5f};
    double sum[5] = {0};
    float out[5];
    for (uint64_t seed = 0; seed < 20000; seed++) {
        CHECK_EQ(through(c, out, x, 5, &(struct codec_args){.seed = seed}), 10);
        for (int i = 0; i < 5; i++)
            sum[i] += (double)out[i] / 20000;
    }
    for (int i = 0; i < 3; i++)
        CHECK(fabs(sum[i] / (double)x[i] - 1) < 2e-4);
    CHECK(out[3] == 0x1.fep127f && out[4] == 1.5f);
}

/* All values there are, those halfway between two, and what is beyond them. */
static void f16_is_the_nearest(void)
{
    const struct codec *c = codec_by_id(SLEET_CODEC_F16);
    uint32_t wrong = 0;
    float before = 0;
    for (uint32_t half = 0; half < 0x7c00; half++) {
        uint8_t bytes[4] = {(uint8_t)half, (uint8_t)(half >> 8), (uint8_t)half,
                            (uint8_t)(half >> 8 | 0x80)};
        float x[2], middle, want = 0;
        wrong += c->decode(x, bytes, 4, 2) != 4 || x[0] != -x[1];
        uint32_t exponent = half >> 10, fraction = half & 1023;
        wrong += (double)x[0] !=
                 (exponent ? ldexp(1024 + fraction, (int)exponent - 25) : ldexp(fraction, -24));
        uint8_t again[4];
        wrong += c->encode(again, x, 2, NULL) != 4 || memcmp(again, bytes, 4) != 0;
        if (half) {
            middle = (before + x[0]) / 2;
            c->encode(again, &middle, 1, NULL);
            c->decode(&want, again, 2, 1);
            wrong += want != (half & 1 ? before : x[0]); /* the even one */
        }
        before = x[0];
    }
    CHECK_EQ(wrong, 0);
    const float beyond[] = {65504, 65519.9f, 65520, 1e30f, -1e5f};
    float out[5];
    CHECK_EQ(through(c, out, beyond, 5, NULL), 10);
    for (int i = 0; i < 5; i++)
        CHECK(out[i] == (i == 4 ? -65504.0f : 65504.0f));
}

static void trunc_keeps_leading_bytes(void)
{
    const float x = -1.9999999f; /* 0xbfffffff */
    const uint8_t want[4][3] = {{0}, {0xbf}, {0xff, 0xbf}, {0xff, 0xff, 0xbf}};
    for (uint8_t kept = 1; kept <= 3; kept++) {
        const struct codec *c = codec_by_id((uint8_t)(SLEET_CODEC_TRUNC1 + kept - 1));
        uint8_t payload[3];
        float out;
        CHECK_EQ(c->encode(payload, &x, 1, NULL), kept);
        CHECK_MEM(payload, want[kept], kept);
        CHECK_EQ(c->decode(&out, payload, kept, 1), kept);
        CHECK(out == (kept == 1 ? -0.5f : kept == 2 ? -1.9921875f : -1.999969482421875f));
    }
}

static void i8_is_right_on_average(void)
{
    const struct codec *c = codec_by_id(SLEET_CODEC_I8);
    sleet_rng rng = {test_seed()};
    unsigned seeds = 4000;
    float x[N], out[N];
    double sum[N] = {0}, most = 0;
    bool differ = false;
    fill(x, N, &rng);
    for (unsigned s = 0; s < seeds; s++) {
        float before = out[0];
        through(c, out, x, N, &(struct codec_args){.seed = rng_next(&rng)});
        differ |= s && out[0] != before;
        for (uint32_t i = 0; i < N; i++)
            sum[i] += (double)out[i];
    }
    CHECK(differ);
    for (uint32_t i = 0; i < N; i++)
        most = fmax(most, fabs((double)x[i]));
    double error = 0, step = most / 127;
    for (uint32_t i = 0; i < N; i++)
        error = fmax(error, fabs(sum[i] / seeds - (double)x[i]));
    CHECK(error < 5 * 0.5 * step / sqrt(seeds));
}

/* Mean bytes of fragments of normal values, which is what the codec says it takes. */
static double usual_bytes(const struct codec *c)
{
    enum { EACH = 1000 };
    sleet_rng rng = {test_seed()};
    float x[N], out[N];
    size_t bytes = 0;
    for (uint32_t k = 0; k < EACH; k++) {
        fill(x, N, &rng);
        bytes += through(c, out, x, N, &(struct codec_args){.seed = k});
    }
    CHECK_NEAR((double)bytes / EACH, c->bytes_usual, 1);
    return (double)bytes / EACH;
}

/* Of normal values 7.56 bits, fewer where one stands out, never more than 8. */
static void i8_takes_what_its_codes_are_worth(void)
{
    const struct codec *c = codec_by_id(SLEET_CODEC_I8);
    sleet_rng rng = {test_seed()};
    float x[N], out[N];
    CHECK_NEAR(usual_bytes(c), 7.56 * N / 8 + 3.5, 1); /* a scale, the parameter, half of a last byte */
    fill(x, N, &rng);
    x[7] = 20;
    CHECK(through(c, out, x, N, &(struct codec_args){.seed = 1}) < 6 * N / 8);
    for (uint32_t i = 0; i < N; i++)
        x[i] = i % 2 ? 1 : -1; /* the largest all */
    CHECK_EQ(through(c, out, x, N, &(struct codec_args){.seed = 1}), 290);
}

static void i8_reads_low_bits_first(void)
{
    const struct codec *c = codec_by_id(SLEET_CODEC_I8);
    uint8_t payload[8] = {0, 0xc0, 1}; /* -2: as words, of each magnitude a bit as it is */
    float out[8];
    /* 0, -1, 3, -4, 0, 0, 0, -2: bits and how many */
    const uint32_t words[8][2] = {{0, 3}, {5, 3}, {10, 4}, {7, 5}, {0, 3}, {0, 3}, {0, 3}, {3, 4}};
    uint64_t bits = 0;
    for (uint32_t i = 0, at = 0; i < 8; at += words[i++][1])
        bits |= (uint64_t)words[i][0] << at;
    for (uint32_t i = 0; i < 5; i++)
        payload[3 + i] = (uint8_t)(bits >> (8 * i));
    CHECK_EQ(c->decode(out, payload, 7, 8), 7);
    CHECK(out[0] == 0 && out[1] == -2 && out[2] == 6 && out[3] == -8 && out[4] == 0 && out[7] == -4);
    CHECK_EQ(c->decode(out, payload, 6, 8), 0);
    payload[6] |= 0x80; /* a bit behind the last word */
    CHECK_EQ(c->decode(out, payload, 7, 8), 0);
    payload[2] = 7;
    CHECK_EQ(c->decode(out, payload, 8, 8), 0);
    const uint8_t beyond[] = {0, 0xc0, 6, 0x80, 0x3f, 0, 0, 0}; /* 6 bits as they are, and more ones than two */
    CHECK_EQ(c->decode(out, beyond, 8, 7), 0);
}

/* Squared error over squared norm of the mean of `each` codings, each with a new rotation; for
 * `means` groups of normal values in fragments whose energies are alike or log-normal. */
static double rotated_error(const struct codec *c, bool unlike, unsigned means, unsigned each)
{
    enum { GROUP = ROTATE_FRAGMENTS * N };
    static float x[GROUP], y[GROUP];
    static double mean[GROUP];
    sleet_rng rng = {test_seed()};
    double error = 0, norm = 0;
    for (unsigned m = 0; m < means; m++) {
        memset(mean, 0, sizeof mean);
        for (uint32_t f = 0; f < ROTATE_FRAGMENTS; f++) {
            double size = unlike ? exp(0.75 * normal(&rng)) : 1;
            for (uint32_t i = 0; i < N; i++)
                x[f * N + i] = (float)(size * normal(&rng));
        }
        for (unsigned k = 0; k < each; k++) {
            uint64_t seed = rng_next(&rng);
            memcpy(y, x, sizeof y);
            rotate_forward(y, GROUP, seed);
            for (uint32_t f = 0; f < ROTATE_FRAGMENTS; f++)
                through(c, y + f * N, y + f * N, N, NULL);
            rotate_inverse(y, GROUP, seed);
            for (uint32_t i = 0; i < GROUP; i++)
                mean[i] += (double)y[i] / each;
        }
        for (uint32_t i = 0; i < GROUP; i++) {
            error += (mean[i] - (double)x[i]) * (mean[i] - (double)x[i]);
            norm += (double)x[i] * (double)x[i];
        }
    }
    return error / norm;
}

/* 1 / (1 - D) - 1, D the distortion of the Lloyd-Max quantizer of a normal distribution. */
static const double theory[] = {0.5708, 0.13312, 0.035784, 0.0095921};

static void rot_errs_as_theory_says(void)
{
    for (int b = 0; b < 4; b++)
        for (int unlike = 0; unlike < 2; unlike++)
            CHECK_NEAR(rotated_error(codec_by_id((uint8_t)(SLEET_CODEC_ROT1 + b)), unlike, 16, 1),
                       theory[b], 0.05 * theory[b]);
}

/* What is unbiased has 1 / 32 of the error in the mean of 32. */
static void rot_is_right_on_average(void)
{
    for (int b = 0; b < 4; b++)
        CHECK_NEAR(rotated_error(codec_by_id((uint8_t)(SLEET_CODEC_ROT1 + b)), true, 1, 32),
                   theory[b] / 32, 0.1 * theory[b] / 32);
}

static void rot_packs_low_bits_first(void)
{
    const struct codec *c = codec_by_id(SLEET_CODEC_ROT3);
    const float x[3] = {1, -1, 0};
    uint8_t payload[4];
    float out[3];
    CHECK_EQ(c->encode(payload, x, 3, NULL), 4);
    CHECK_EQ(payload[2] | payload[3] << 8, 2 | 6 << 3 | 0 << 6); /* 1 is 1.22 times the rms */
    CHECK_EQ(c->decode(out, payload, 4, 3), 4);
    CHECK_NEAR(out[0], 1, 0x1p-8); /* the scale is a bf16 */
    CHECK(out[1] == -out[0] && out[2] > 0);
    payload[3] |= 2;
    CHECK_EQ(c->decode(out, payload, 4, 3), 0);
}

/* Of normal values 3.818 bits, the length of the code weighted by the frequencies of its levels; never more than four. */
static void rot4_takes_what_its_levels_are_worth(void)
{
    const struct codec *c = codec_by_id(SLEET_CODEC_ROT4);
    float x[N], out[N];
    CHECK_NEAR(8 * (usual_bytes(c) - 2), 3.818 * N + 3.5, 0.01 * N); /* a scale; 3.5 bits of a last byte are free */
    for (uint32_t i = 0; i < N; i++)
        x[i] = i % 2 ? 1 : -1; /* of the fourth level all */
    CHECK_EQ(through(c, out, x, N, NULL), 146);
    CHECK_NEAR(out[1], 1, 0x1p-8);
}

static void rot4_reads_words_low_bits_first(void)
{
    const struct codec *c = codec_by_id(SLEET_CODEC_ROT4);
    uint8_t payload[] = {0, 0xc0, 0x88, 0x06, 0, 0, 0xff, 0xff}; /* -2: as words; 000 001 010 011 000 ... */
    float out[9];
    CHECK_EQ(c->decode(out, payload, 5, 8), 5);
    CHECK_NEAR(out[0], 2 * 0.128395030, 1e-6);
    CHECK_NEAR(out[2], 2 * 0.388048299, 1e-6);
    CHECK(out[1] == -out[0] && out[3] == -out[2] && out[7] == out[0]);
    CHECK_EQ(c->decode(out, payload, 4, 8), 0);
    CHECK_EQ(c->decode(out, payload, 6, 9), 6);
    payload[5] = 8; /* a bit behind the last word */
    CHECK_EQ(c->decode(out, payload, 6, 9), 0);
    memset(payload + 2, 0xff, 6); /* eight of six bits: more than four each */
    CHECK_EQ(c->decode(out, payload, 8, 8), 0);
}

static void topk_keeps_the_largest(void)
{
    const struct codec *c = codec_by_id(SLEET_CODEC_TOPK);
    const float x[10] = {0, -3, 1, 2, -2, 2, 0, 0.5f, -0.0f, 2};
    const float first[10] = {0, -3, 0, 2, -2, 0, 0, 0, 0, 0};
    const uint8_t bytes[] = {3, 1, 0x40, 0xc0, 1, 0, 0x40, 0, 0, 0xc0};
    uint8_t payload[64];
    float out[10];
    CHECK_EQ(c->encode(payload, x, 10, &(struct codec_args){.keep = 3}), sizeof bytes);
    CHECK_MEM(payload, bytes, sizeof bytes);
    CHECK_EQ(c->decode(out, payload, sizeof bytes, 10), sizeof bytes);
    CHECK_MEM(out, first, sizeof out);
    for (uint32_t keep = 0; keep < 12; keep++) { /* 7 are not zero, and take more than all 10 */
        size_t want = keep == 0 || keep > 6 ? 21 : 1 + 3 * keep;
        CHECK_EQ(through(c, out, x, 10, &(struct codec_args){.keep = keep}), want);
        if (keep == 0 || keep >= 7)
            CHECK(memcmp(out, x, 8 * sizeof *x) == 0 && out[8] == 0 && out[9] == 2);
    }
    CHECK_EQ(c->decode(out, payload, sizeof bytes, 4), 0); /* the third is element 4 */
}

/* Gaps beyond a byte take a second. */
static void topk_reaches_the_last_element(void)
{
    const struct codec *c = codec_by_id(SLEET_CODEC_TOPK);
    for (uint32_t at = 250; at < N; at++) {
        float x[N] = {0}, out[N];
        x[at] = 1;
        CHECK_EQ(through(c, out, x, N, &(struct codec_args){0}), at < 255 ? 4 : 5);
        CHECK_MEM(out, x, sizeof x);
    }
}

static void topk_of_a_sparse_fragment_is_all_of_it(void)
{
    const struct codec *c = codec_by_id(SLEET_CODEC_TOPK);
    sleet_rng rng = {test_seed()};
    for (uint32_t count = 12; count <= 192; count += 12) {
        float x[N] = {0}, out[N];
        for (uint32_t left = count; left;) {
            uint32_t at = rng_below(&rng, N);
            left -= x[at] == 0;
            x[at] = 0.25f * (float)(1 + rng_below(&rng, 100));
        }
        CHECK_EQ(through(c, out, x, N, &(struct codec_args){0}), 1 + 3 * count);
        CHECK_MEM(out, x, sizeof x);
    }
}

/* Two sites of three nodes: all inside, a part across; then the link becomes ten times as fast. */
static void adatopk_follows_the_link(void)
{
    struct adatopk inside = {0}, across = {0};
    CHECK(adatopk_ratio(&across, 0, 100) == 1 && adatopk_rate(&across) == 0);
    for (int round = 0; round < 3; round++) {
        adatopk_measured(&inside, 12.5e6);
        adatopk_measured(&across, 0.25e6);
        adatopk_measured(&across, 0); /* nothing came */
    }
    double fastest = adatopk_rate(&inside);
    CHECK_NEAR(fastest, 12.5e6, 1);
    CHECK(adatopk_ratio(&inside, fastest, 100) == 1 && adatopk_keep(1, N) == 0);
    CHECK_NEAR(adatopk_ratio(&across, fastest, 100), 37.5, 1e-6);
    CHECK(adatopk_ratio(&across, fastest, 20) == 20 && adatopk_keep(20, N) == 15);
    CHECK_EQ(adatopk_keep(37.5, N), 8);
    CHECK_EQ(adatopk_keep(37.5, 1), 1);
    for (int round = 0; round < 10; round++)
        adatopk_measured(&across, 2.5e6);
    CHECK_NEAR(adatopk_ratio(&across, fastest, 100), 3.75, 0.05 * 3.75);
    for (int round = 0; round < 10; round++)
        adatopk_measured(&across, 8e6);
    CHECK(adatopk_ratio(&across, fastest, 100) == 1);
    for (int round = 0; round < 10; round++)
        adatopk_measured(&across, 0.25e6);
    CHECK_NEAR(adatopk_ratio(&across, fastest, 100), 37.5, 0.1 * 37.5);
}

TEST_SUITE(codec) = {
    TEST(ids_and_names_agree),
    TEST(round_trips_stay_in_their_bounds),
    TEST(a_fragment_ends_where_it_says),
    TEST(garbage_is_refused_or_finite),
    TEST(extremes_come_back_finite),
    TEST(what_is_not_finite_is_refused),
    TEST(bf16_is_right_on_average),
    TEST(f16_is_the_nearest),
    TEST(trunc_keeps_leading_bytes),
    TEST(i8_is_right_on_average),
    TEST(i8_takes_what_its_codes_are_worth),
    TEST(i8_reads_low_bits_first),
    TEST(rot_errs_as_theory_says),
    TEST(rot_is_right_on_average),
    TEST(rot_packs_low_bits_first),
    TEST(rot4_takes_what_its_levels_are_worth),
    TEST(rot4_reads_words_low_bits_first),
    TEST(topk_keeps_the_largest),
    TEST(topk_reaches_the_last_element),
    TEST(topk_of_a_sparse_fragment_is_all_of_it),
    TEST(adatopk_follows_the_link),
    TEST_END,
};
