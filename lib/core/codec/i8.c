/* i8: a scale for the fragment, then a byte an element, rounded up or down at random so
 * that the mean over seeds is the value. */
#include "base/rng.h"
#include "codec/bits.h"
#include "codec/codec.h"
#include <float.h>

#define HEAD 4 /* the scale */
#define STEPS 127
#define SCALE_MAX 0x1.0204p121f /* times STEPS it is finite */
#define BLOCK 32                /* elements rounded at a time */

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
static void round_block(uint8_t *out, const float *y, const uint16_t *random, float inverse)
{
    for (uint32_t i = 0; i < BLOCK; i++) {
        float u = ((float)random[i] + 0.5f) * 0x1p-16f;
        int32_t up = (int32_t)(y[i] * inverse + u + (STEPS + 1)); /* positive: cut off is floor */
        up = up < 2 * STEPS + 1 ? up : 2 * STEPS + 1;
        out[i] = (uint8_t)(up - (STEPS + 1));
    }
}

static size_t i8_encode(uint8_t *restrict payload, const float *restrict x, uint32_t n,
                        const struct codec_args *args)
{
    sleet_rng rng = {mix64(args->seed)};
    uint32_t most = largest_bits(x, n);
    float scale = f32_of(most) / STEPS;
    bool finite = most < F32_INFINITY; /* else the scale is not, and the decoder refuses it */
    if (scale < FLT_MIN)
        scale = 0; /* all are below 1.5e-36: it would have no reciprocal */
    else if (finite && scale > SCALE_MAX)
        scale = SCALE_MAX;
    put_le32(payload, f32_bits(scale));
    memset(payload + HEAD, 0, n);
    for (uint32_t at = 0; finite && scale > 0 && at < n; at += BLOCK) {
        uint32_t here = n - at < BLOCK ? n - at : BLOCK;
        float y[BLOCK] = {0};
        uint16_t random[BLOCK];
        uint8_t code[BLOCK];
        memcpy(y, x + at, here * sizeof *y);
        draw(random, &rng);
        round_block(code, y, random, 1 / scale);
        memcpy(payload + HEAD + at, code, here);
    }
    return HEAD + (size_t)n;
}

static size_t i8_decode(float *restrict x, const uint8_t *restrict payload, size_t bytes,
                        uint32_t n)
{
    if (bytes < HEAD + (size_t)n)
        return 0;
    uint32_t bad = 0;
    float scale = f32_of(get_le32(payload));
    for (uint32_t i = 0; i < n; i++) {
        x[i] = scale * (float)(int8_t)payload[HEAD + i];
        bad |= f32_bad(f32_bits(x[i]));
    }
    return bad ? CODEC_NONFINITE : HEAD + (size_t)n;
}

const struct codec codec_i8 = {
    .id = SLEET_CODEC_I8,
    .bytes_max = HEAD + CODEC_ELEMENTS_MAX,
    .encode = i8_encode,
    .decode = i8_decode,
};
