#include "codec/codec.h"
#include <string.h>

#define FRAGMENT_BYTES 1152 /* 288 elements of 4 bytes */

static inline uint32_t little(uint32_t v)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    return v;
#else
    return __builtin_bswap32(v);
#endif
}

static size_t f32_encode(uint8_t *restrict payload, const float *restrict values, uint32_t n,
                         const struct codec_args *args)
{
    (void)args;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &values[i], 4);
        bits = little(bits);
        memcpy(payload + (size_t)4 * i, &bits, 4);
    }
    return (size_t)4 * n;
}

static size_t f32_decode(float *restrict values, const uint8_t *restrict payload, size_t bytes,
                         uint32_t n)
{
    uint32_t bad = 0;
    if (bytes < (size_t)4 * n)
        return 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, payload + (size_t)4 * i, 4);
        bits = little(bits);
        bad |= (bits & 0x7f800000u) == 0x7f800000u;
        memcpy(&values[i], &bits, 4);
    }
    return bad ? CODEC_NONFINITE : (size_t)4 * n;
}

const struct codec codec_f32 = {
    .id = 1,
    .bytes_max = FRAGMENT_BYTES,
    .encode = f32_encode,
    .decode = f32_decode,
};
