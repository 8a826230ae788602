/* f16: IEEE 754 binary16, rounded to nearest, ties to even.  What is beyond its range
 * becomes its largest value, 65504; what is below 2^-14 is subnormal. */
#include "codec/bits.h"
#include "codec/codec.h"

#define F16_MAX 0x7bff
#define F16_INFINITY 0x7c00
#define REBIAS (112 << 23)       /* 127 - 15, where an f32 has its exponent */
#define LEAST_NORMAL (113 << 23) /* the bits of 2^-14 */
#define LIMIT 0x477ff000         /* the bits of 65520 */

static uint16_t f16_of(float v)
{
    uint32_t bits = f32_bits(v);
    int32_t magnitude = (int32_t)(bits & F32_MAGNITUDE);
    int32_t near = (magnitude - REBIAS + 0xfff + (magnitude >> 13 & 1)) >> 13;
    /* The unit of the last place of 0.5f is the step of a subnormal. */
    int32_t small = (int32_t)(f32_bits(f32_of((uint32_t)magnitude) + 0.5f) - f32_bits(0.5f));
    near = magnitude < LEAST_NORMAL ? small : near;
    near = magnitude < LIMIT ? near : F16_MAX;
    near = magnitude < (int32_t)F32_INFINITY ? near : F16_INFINITY; /* for the decoder to refuse */
    return (uint16_t)((bits & F32_SIGN) >> 16 | (uint32_t)near);
}

static float f16_value(uint32_t half)
{
    uint32_t magnitude = (half & 0x7fff) << 13;
    uint32_t small = f32_bits(f32_of(magnitude + LEAST_NORMAL) - f32_of(LEAST_NORMAL));
    return f32_of((half & 0x8000) << 16 | (half & F16_INFINITY ? magnitude + REBIAS : small));
}

static size_t f16_encode(uint8_t *restrict payload, const float *restrict x, uint32_t n,
                         const struct codec_args *args)
{
    (void)args;
    for (uint32_t i = 0; i < n; i++)
        put_le16(payload + (size_t)2 * i, f16_of(x[i]));
    return (size_t)2 * n;
}

static size_t f16_decode(float *restrict x, const uint8_t *restrict payload, size_t bytes,
                         uint32_t n)
{
    uint32_t bad = 0;
    if (bytes < (size_t)2 * n)
        return 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t half = get_le16(payload + (size_t)2 * i);
        bad |= (half & F16_INFINITY) == F16_INFINITY;
        x[i] = f16_value(half);
    }
    return bad ? CODEC_NONFINITE : (size_t)2 * n;
}

const struct codec codec_f16 = {
    .id = SLEET_CODEC_F16,
    .bytes_max = 2 * CODEC_ELEMENTS_MAX,
    .encode = f16_encode,
    .decode = f16_decode,
};
