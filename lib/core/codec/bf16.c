/* bf16: the upper half of an f32, rounded to nearest, ties to even. */
#include "codec/bits.h"
#include "codec/codec.h"

static size_t bf16_encode(uint8_t *restrict payload, const float *restrict x, uint32_t n,
                          const struct codec_args *args)
{
    (void)args;
    for (uint32_t i = 0; i < n; i++)
        put_le16(payload + (size_t)2 * i, bf16_of(x[i]));
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
    return bad ? 0 : (size_t)2 * n;
}

const struct codec codec_bf16 = {
    .id = SLEET_CODEC_BF16,
    .bytes_max = 2 * CODEC_ELEMENTS_MAX,
    .encode = bf16_encode,
    .decode = bf16_decode,
};
