/* i8: a scale for the fragment, then a byte an element, rounded up or down at random so that the
 * mean over seeds is the value.
 *
 * One element is the largest and most are a third of it or less, so the codes are not worth 8 bits:
 * 7.6 if they are normal, fewer the larger the largest stands out.  They go as Rice's code, whose
 * parameter is the fragment's best, and four fragments into one datagram.  The sign of the scale says
 * that it was used. */
#include "base/rng.h"
#include "codec/bits.h"
#include "codec/codec.h"
#include <float.h>

#define HEAD 2 /* the scale, a bf16 */
#define STEPS 127
#define SCALE_MAX 0x7c01 /* bf16: times STEPS it is finite */
#define BLOCK 32         /* elements rounded at a time */
#define LOW_MAX 6        /* of Rice's code: the bits of a magnitude that are sent as they are, at most, */
#define HIGH_MAX 15      /* and the most that the others may stand for */

/* 16 random bits for each of BLOCK elements. */
static void draw(uint16_t *out, sleet_rng *rng)
{
    for (uint32_t i = 0; i < BLOCK; i += 4) {
        uint64_t v = rng_next(rng);
        for (uint32_t k = 0; k < 4; k++)
            out[i + k] = (uint16_t)(v >> (16 * k));
    }
}

/* A block's codes: floor(y / scale + u), u uniform in [0, 1), which is y / scale on average. */
static void round_block(int8_t *out, const float *y, const uint16_t *random, float inverse)
{
    for (uint32_t i = 0; i < BLOCK; i++) {
        float u = ((float)random[i] + 0.5f) * 0x1p-16f;
        int32_t up = (int32_t)(y[i] * inverse + u + (STEPS + 1)); /* positive: cut off is floor */
        up = up < 2 * STEPS + 1 ? up : 2 * STEPS + 1;
        up = up > 1 ? up : 1;
        out[i] = (int8_t)(up - (STEPS + 1));
    }
}

/* The parameter of the fewest bits for n magnitudes. */
static uint32_t best_low(const uint8_t *magnitude, uint32_t n, size_t *bits)
{
    uint32_t best = LOW_MAX, most = 0;
    *bits = SIZE_MAX;
    for (uint32_t i = 0; i < n; i++)
        most |= magnitude[i]; /* above HIGH_MAX, which is all ones, where one of them is */
    for (uint32_t low = 0; low <= LOW_MAX; low++) {
        uint16_t sum = 0; /* at most 127 each */
        for (uint32_t i = 0; i < n; i++)
            sum = (uint16_t)(sum + (magnitude[i] >> low));
        size_t all = sum + (size_t)n * (2 + low);
        if (most >> low <= HIGH_MAX && all < *bits) {
            *bits = all;
            best = low;
        }
    }
    return best;
}

/* The parameter, then of each code its sign, the high bits of its magnitude as so many ones and a zero, and the low
 * ones.  The bytes, 0: not fewer than n. */
static size_t put_rice(uint8_t *out, const int8_t *code, uint32_t n)
{
    uint8_t magnitude[CODEC_ELEMENTS_MAX];
    size_t bits;
    for (uint32_t i = 0; i < n; i++)
        magnitude[i] = (uint8_t)(code[i] < 0 ? -code[i] : code[i]);
    uint32_t low = best_low(magnitude, n, &bits);
    size_t bytes = 1 + (bits + 7) / 8;
    if (bytes >= n)
        return 0;
    *out++ = (uint8_t)low;
    struct bits_out o = {.at = out};
    for (uint32_t i = 0; i < n; i++) {
        uint32_t high = (uint32_t)magnitude[i] >> low, rest = magnitude[i] & ((1u << low) - 1);
        bits_put(&o, (code[i] < 0) | ((1u << high) - 1) << 1 | rest << (high + 2), high + 2 + low);
    }
    bits_end(&o);
    return bytes;
}

static size_t get_rice(int8_t *code, const uint8_t *from, size_t bytes, uint32_t n)
{
    if (!bytes || *from > LOW_MAX)
        return 0;
    uint32_t low = *from;
    struct bits_in in = {from + 1, from + bytes, 0, 0};
    for (uint32_t i = 0; i < n; i++) {
        if (in.fill < 2 + HIGH_MAX + LOW_MAX)
            bits_fetch(&in);
        uint32_t word = (uint32_t)in.held, high = (uint32_t)__builtin_ctz(~(word >> 1));
        if (high > HIGH_MAX || !bits_take(&in, high + 2 + low))
            return 0;
        uint32_t magnitude = high << low | (word >> (high + 2) & ((1u << low) - 1));
        if (magnitude > STEPS)
            return 0;
        code[i] = (int8_t)(word & 1 ? -(int32_t)magnitude : (int32_t)magnitude);
    }
    size_t used = bits_used(&in, from);
    return used < n ? used : 0;
}

static size_t i8_encode(uint8_t *restrict payload, const float *restrict x, uint32_t n,
                        const struct codec_args *args)
{
    sleet_rng rng = {mix64(args->seed)};
    int8_t code[CODEC_ELEMENTS_MAX + BLOCK] = {0};
    uint32_t most = largest_bits(x, n);
    float step = f32_of(most) / STEPS;
    bool finite = most < F32_INFINITY; /* else the scale is not, and the decoder refuses it */
    uint32_t scale = (finite ? f32_bits(step) + 0xffff : F32_INFINITY) >> 16; /* up: it has to reach the largest */
    if (step < FLT_MIN)
        scale = 0; /* all are below 1.5e-36: it would have no reciprocal */
    else if (finite && scale > SCALE_MAX)
        scale = SCALE_MAX;
    for (uint32_t at = 0; finite && scale && at < n; at += BLOCK) {
        uint32_t here = n - at < BLOCK ? n - at : BLOCK;
        float y[BLOCK] = {0};
        uint16_t random[BLOCK];
        memcpy(y, x + at, here * sizeof *y);
        draw(random, &rng);
        round_block(code + at, y, random, 1 / bf16_value((uint16_t)scale));
    }
    size_t bytes = put_rice(payload + HEAD, code, n);
    if (!bytes)
        memcpy(payload + HEAD, code, n);
    put_le16(payload, (uint16_t)(scale | (bytes ? BF16_SIGN : 0)));
    return HEAD + (bytes ? bytes : n);
}

static size_t i8_decode(float *restrict x, const uint8_t *restrict payload, size_t bytes,
                        uint32_t n)
{
    if (bytes < HEAD)
        return 0;
    int8_t code[CODEC_ELEMENTS_MAX];
    uint32_t head = get_le16(payload), bad = 0;
    size_t used = bytes - HEAD >= n ? n : 0;
    if (head & BF16_SIGN)
        used = get_rice(code, payload + HEAD, bytes - HEAD, n);
    else
        memcpy(code, payload + HEAD, used);
    if (!used)
        return 0;
    float scale = bf16_value((uint16_t)(head & ~BF16_SIGN));
    for (uint32_t i = 0; i < n; i++) {
        x[i] = scale * (float)code[i];
        bad |= f32_bad(f32_bits(x[i]));
    }
    return bad ? CODEC_NONFINITE : HEAD + used;
}

const struct codec codec_i8 = {
    .id = SLEET_CODEC_I8,
    .bytes_max = HEAD + CODEC_ELEMENTS_MAX,
    .bytes_usual = HEAD + 1 + CODEC_ELEMENTS_MAX * 38 / 40, /* 7.6 bits an element */
    .encode = i8_encode,
    .decode = i8_decode,
};
