/* rot1 .. rot4: 1 to 4 bits an element, for fragments whose elements look Gaussian, as those of
 * tensor/rotate.h do.  Each element becomes the nearest level of the Lloyd-Max quantizer of the
 * normal distribution, and one scale makes the whole unbiased over rotations (EDEN, arXiv
 * 2108.08842; with one bit it is DRIVE, arXiv 2105.08339): |x|^2 over the product of x with its
 * levels.  Expected squared error over |x|^2: 0.571, 0.133, 0.0358, 0.0096.
 *
 * Of 4 bits the levels are not equally frequent, and a prefix code (Huffman's, of the normal distribution) takes 3.82 bits of
 * them: eight fragments then go into one datagram.  The sign of the scale says that it was used. */
#include "codec/bits.h"
#include "codec/codec.h"
#include <float.h>
#include <math.h>

#define HEAD 2   /* the scale */
#define BLOCK 32 /* elements quantized at a time */
#define PACK 8   /* elements packed at a time: so many make whole bytes, of any width */

/* Positive levels, ascending; the thresholds are halfway between. */
static const float levels[5][8] = {
    [1] = {1}, /* 0.798, but one level can be any: the scale follows it */
    [2] = {0.452780035f, 1.510417608f},
    [3] = {0.245094179f, 0.756005281f, 1.343909279f, 2.151945705f},
    [4] = {0.128395030f, 0.388048299f, 0.656759119f, 0.942340456f, 1.256231197f, 1.618046386f,
           2.069017227f, 2.732589571f},
};

/* The prefix code: of a code of 4 bits, its sign first, lowest bits first. */
#define WORD_WIDTH 4
#define WORD_BITS 6 /* of the longest */
static const struct word {
    uint8_t bits, len;
} words[16] = {
    {0, 3}, {2, 3}, {4, 4}, {12, 4}, {6, 4}, {14, 5}, {30, 6}, {62, 6},
    {1, 3}, {3, 3}, {5, 4}, {13, 4}, {7, 4}, {15, 5}, {31, 6}, {63, 6},
};
/* By the next bits without the sign: 16 times the length of the word, plus its level. */
static const uint8_t word_at[1 << (WORD_BITS - 1)] = {
    0x30, 0x31, 0x42, 0x44, 0x30, 0x31, 0x43, 0x55, 0x30, 0x31, 0x42, 0x44, 0x30, 0x31, 0x43, 0x66,
    0x30, 0x31, 0x42, 0x44, 0x30, 0x31, 0x43, 0x55, 0x30, 0x31, 0x42, 0x44, 0x30, 0x31, 0x43, 0x67,
};

static inline size_t bytes_of(uint32_t n, uint32_t width)
{
    return HEAD + ((size_t)n * width + 7) / 8;
}

/* Sums have a lane for each element of a block: an order that vectors can keep. */
static inline float total(const float *lane)
{
    float sum = 0;
    for (uint32_t i = 0; i < BLOCK; i++)
        sum += lane[i];
    return sum;
}

/* y = scale x in blocks filled up with zeros; the sum of squares. */
static float scaled(float *y, const float *x, uint32_t n, float scale)
{
    float square[BLOCK] = {0};
    memset(y, 0, CODEC_ELEMENTS_MAX * sizeof *y);
    for (uint32_t i = 0; i < n; i++)
        y[i] = scale * x[i];
    for (uint32_t at = 0; at < n; at += BLOCK)
        for (uint32_t i = 0; i < BLOCK; i++)
            square[i] += y[at + i] * y[at + i];
    return total(square);
}

/* Codes of a block: the highest bit is the sign, the others number the levels.  The products of
 * magnitudes and levels are added to `product`.  Magnitudes are compared by their bits. */
static inline __attribute__((always_inline)) void
quantize(int32_t *code, float *product, const float *y, const int32_t *threshold, uint32_t width)
{
    const float *level = levels[width];
    int32_t magnitude[BLOCK];
    float nearest[BLOCK];
    for (uint32_t i = 0; i < BLOCK; i++) {
        magnitude[i] = (int32_t)(f32_bits(y[i]) & F32_MAGNITUDE);
        code[i] = (int32_t)(f32_bits(y[i]) >> 31) << (width - 1);
        nearest[i] = level[0];
    }
    for (uint32_t k = 0; k + 1 < 1u << (width - 1); k++) {
        uint32_t rise = f32_bits(level[k + 1] - level[k]);
        for (uint32_t i = 0; i < BLOCK; i++) {
            int32_t above = magnitude[i] > threshold[k];
            code[i] += above;
            nearest[i] += f32_of((uint32_t)-above & rise);
        }
    }
    for (uint32_t i = 0; i < BLOCK; i++)
        product[i] += f32_of((uint32_t)magnitude[i]) * nearest[i];
}

/* Each code in `width` bits. */
static inline __attribute__((always_inline)) void pack(uint8_t *out, const int32_t *code, uint32_t n, uint32_t width)
{
    for (uint32_t at = 0; at < n; at += PACK) {
        uint32_t bits = 0, used = n - at < PACK ? (width * (n - at) + 7) / 8 : width;
        for (uint32_t i = 0; i < PACK; i++)
            bits |= (uint32_t)code[at + i] << (width * i);
        for (uint32_t k = 0; k < used; k++)
            *out++ = (uint8_t)(bits >> (8 * k));
    }
}

/* Codes as words; the bytes, 0: not fewer than `most`. */
static size_t put_words(uint8_t *out, const int32_t *code, uint32_t n, size_t most)
{
    struct bits_out o = {.at = out};
    size_t bits = 0;
    for (uint32_t i = 0; i < n; i++)
        bits += words[code[i]].len;
    if ((bits + 7) / 8 >= most)
        return 0;
    for (uint32_t i = 0; i < n; i++)
        bits_put(&o, words[code[i]].bits, words[code[i]].len);
    bits_end(&o);
    return (bits + 7) / 8;
}

/* Values of n words; the bytes, 0: there are not so many, or not fewer than `most`. */
static size_t get_words(float *x, const uint8_t *from, size_t bytes, uint32_t n, const float *value, size_t most)
{
    struct bits_in in = {from, from + bytes, 0, 0};
    for (uint32_t i = 0; i < n; i++) {
        if (in.fill < WORD_BITS)
            bits_fetch(&in);
        uint32_t sign = in.held & 1, word = word_at[in.held >> 1 & (sizeof word_at - 1)];
        x[i] = value[(word & 7) | sign << (WORD_WIDTH - 1)];
        if (!bits_take(&in, word >> 4))
            return 0;
    }
    size_t used = bits_used(&in, from);
    return used < most ? used : 0;
}

static inline __attribute__((always_inline)) size_t
encode(uint8_t *restrict payload, const float *restrict x, uint32_t n, uint32_t width)
{
    const uint32_t half = 1u << (width - 1);
    const float *level = levels[width], most = f32_of(largest_bits(x, n));
    const size_t plain = bytes_of(n, width);
    size_t bytes = 0;
    float y[CODEC_ELEMENTS_MAX], product[BLOCK] = {0}, scale = most;
    int32_t code[CODEC_ELEMENTS_MAX], threshold[8];
    if (most >= FLT_MIN && most <= FLT_MAX) { /* else zeros, or for the decoder to refuse */
        float energy = scaled(y, x, n, 1 / most), rms = sqrtf(energy / (float)n);
        for (uint32_t k = 0; k + 1 < half; k++)
            threshold[k] = (int32_t)f32_bits(rms * 0.5f * (level[k] + level[k + 1]));
        for (uint32_t at = 0; at < n; at += BLOCK)
            quantize(code + at, product, y + at, threshold, width);
        scale = energy / total(product);
        float limit = FLT_MAX / most / level[half - 1] * (1 - 0x1p-7f); /* it is rounded */
        scale = most * (scale < limit ? scale : limit);
        if (width == WORD_WIDTH)
            bytes = put_words(payload + HEAD, code, n, plain - HEAD);
        if (!bytes)
            pack(payload + HEAD, code, n, width);
    } else {
        scale = most < FLT_MIN ? 0 : most;
        memset(payload + HEAD, 0, plain - HEAD);
    }
    put_le16(payload, (uint16_t)(bf16_of(scale) | (bytes ? BF16_SIGN : 0)));
    return bytes ? HEAD + bytes : plain;
}

static inline __attribute__((always_inline)) size_t
decode(float *restrict x, const uint8_t *restrict payload, size_t bytes, uint32_t n, uint32_t width)
{
    const uint32_t half = 1u << (width - 1);
    const size_t plain = bytes_of(n, width);
    float value[16];
    if (bytes < HEAD)
        return 0;
    float scale = bf16_value(get_le16(payload));
    bool coded = width == WORD_WIDTH && f32_bits(scale) & F32_SIGN;
    if (!coded && bytes < plain)
        return 0;
    for (uint32_t k = 0; k < half; k++) {
        value[k] = (coded ? -scale : scale) * levels[width][k];
        value[half + k] = -value[k];
    }
    if (f32_bad(f32_bits(value[half - 1])))
        return CODEC_NONFINITE;
    const uint8_t *in = payload + HEAD;
    if (coded) {
        size_t used = get_words(x, in, bytes - HEAD, n, value, plain - HEAD);
        return used ? HEAD + used : 0;
    }
    for (uint32_t at = 0; at < n; at += PACK) {
        uint32_t here = n - at < PACK ? n - at : PACK, packed = 0;
        uint32_t used = (width * here + 7) / 8;
        for (uint32_t k = 0; k < used; k++)
            packed |= (uint32_t)*in++ << (8 * k);
        for (uint32_t i = 0; i < here; i++)
            x[at + i] = value[packed >> (width * i) & (2 * half - 1)];
        if (here < PACK && packed >> (width * here))
            return 0; /* bits of elements that there are not */
    }
    return plain;
}

#define ROT(width)                                                                                 \
    static size_t encode##width(uint8_t *payload, const float *x, uint32_t n,                      \
                                const struct codec_args *args)                                     \
    {                                                                                              \
        (void)args;                                                                                \
        return encode(payload, x, n, width);                                                       \
    }                                                                                              \
    static size_t decode##width(float *x, const uint8_t *payload, size_t bytes, uint32_t n)        \
    {                                                                                              \
        return decode(x, payload, bytes, n, width);                                                \
    }                                                                                              \
    const struct codec codec_rot##width = {                                                        \
        .id = SLEET_CODEC_ROT##width,                                                              \
        .rotated = true,                                                                           \
        .bytes_max = HEAD + width * CODEC_ELEMENTS_MAX / 8,                                        \
        .bytes_usual = width == WORD_WIDTH ? HEAD + CODEC_ELEMENTS_MAX * 382 / 800 : 0,            \
        .encode = encode##width,                                                                   \
        .decode = decode##width,                                                                   \
    };

ROT(1)
ROT(2)
ROT(3)
ROT(4)
