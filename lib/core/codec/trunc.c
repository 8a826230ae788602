/* trunc1, trunc2, trunc3: the leading bytes of each f32, the others zero (arXiv 2004.02297,
 * whose fourth size is f32 itself).  One byte is sign and the exponent but its last bit. */
#include "codec/bits.h"
#include "codec/codec.h"

static inline size_t encode(uint8_t *restrict payload, const float *restrict x, uint32_t n,
                            uint32_t kept)
{
    for (uint32_t i = 0; i < n; i++) {
        uint32_t bits = f32_bits(x[i]) >> (32 - 8 * kept);
        for (uint32_t k = 0; k < kept; k++)
            payload[(size_t)kept * i + k] = (uint8_t)(bits >> (8 * k));
    }
    return (size_t)kept * n;
}

static inline size_t decode(float *restrict x, const uint8_t *restrict payload, size_t bytes,
                            uint32_t n, uint32_t kept)
{
    uint32_t bad = 0;
    if (bytes < (size_t)kept * n)
        return 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t bits = 0;
        for (uint32_t k = 0; k < kept; k++)
            bits |= (uint32_t)payload[(size_t)kept * i + k] << (32 - 8 * kept + 8 * k);
        bad |= f32_bad(bits);
        x[i] = f32_of(bits);
    }
    return bad ? CODEC_NONFINITE : (size_t)kept * n;
}

#define TRUNC(kept)                                                                                \
    static size_t encode##kept(uint8_t *payload, const float *x, uint32_t n,                       \
                               const struct codec_args *args)                                      \
    {                                                                                              \
        (void)args;                                                                                \
        return encode(payload, x, n, kept);                                                        \
    }                                                                                              \
    static size_t decode##kept(float *x, const uint8_t *payload, size_t bytes, uint32_t n)         \
    {                                                                                              \
        return decode(x, payload, bytes, n, kept);                                                 \
    }                                                                                              \
    const struct codec codec_trunc##kept = {                                                       \
        .id = SLEET_CODEC_TRUNC##kept,                                                             \
        .bytes_max = kept * CODEC_ELEMENTS_MAX,                                                    \
        .encode = encode##kept,                                                                    \
        .decode = decode##kept,                                                                    \
    };

TRUNC(1)
TRUNC(2)
TRUNC(3)
