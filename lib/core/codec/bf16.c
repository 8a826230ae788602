/* bf16: the upper half of an f32, rounded up or down at random so that the mean over seeds is the
 * value.  To the nearest would be more exact, and wrong for models: a step that is less than half the
 * distance between two values would be rounded away each time. */
#include "base/rng.h"
#include "codec/bits.h"
#include "codec/codec.h"

static uint16_t rounded(float v, uint16_t random)
{
    uint32_t bits = f32_bits(v), up = bits + random;
    bool beyond = f32_bad(bits) || f32_bad(up); /* what is not finite stays so, nothing else becomes so */
    return (uint16_t)((beyond ? bits : up) >> 16);
}

static size_t bf16_encode(uint8_t *restrict payload, const float *restrict x, uint32_t n,
                          const struct codec_args *args)
{
    sleet_rng rng = {mix64(args->seed)};
    uint64_t random = 0;
    for (uint32_t i = 0; i < n; i++) {
        random = i % 4 ? random >> 16 : rng_next(&rng);
        uint16_t half = rounded(x[i], (uint16_t)random);
        put_le16(payload + (size_t)2 * i, half);
    }
    return (size_t)2 * n;
}

static size_t bf16_decode(float *restrict x, const uint8_t *restrict payload, size_t bytes,
                          uint32_t n)
{
    uint32_t bad = 0;
    if (bytes < (size_t)2 * n)
        return 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t bits = (uint32_t)get_le16(payload + (size_t)2 * i) << 16;
        bad |= f32_bad(bits);
        x[i] = f32_of(bits);
    }
    return bad ? CODEC_NONFINITE : (size_t)2 * n;
}

const struct codec codec_bf16 = {
    .id = SLEET_CODEC_BF16,
    .bytes_max = 2 * CODEC_ELEMENTS_MAX,
    .encode = bf16_encode,
    .decode = bf16_decode,
};
