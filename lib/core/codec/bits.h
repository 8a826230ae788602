/* What codecs share: the bits of values, little-endian, bf16, and streams of bits. */
#ifndef CODEC_BITS_H
#define CODEC_BITS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define F32_MAGNITUDE 0x7fffffffu
#define F32_SIGN 0x80000000u
#define F32_INFINITY 0x7f800000u /* magnitudes from here on are not finite */
#define BF16_LIMIT 0x7f7f8000    /* and from here on are beyond bf16 */
#define BF16_SIGN 0x8000u

static inline uint32_t f32_bits(float v)
{
    uint32_t bits;
    memcpy(&bits, &v, 4);
    return bits;
}
static inline float f32_of(uint32_t bits)
{
    float v;
    memcpy(&v, &bits, 4);
    return v;
}
/* 1 for NaN and infinities, else 0. */
static inline uint32_t f32_bad(uint32_t bits)
{
    return (bits & F32_INFINITY) == F32_INFINITY;
}

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define LITTLE16(v) (v)
#define LITTLE32(v) (v)
#else
#define LITTLE16(v) __builtin_bswap16(v)
#define LITTLE32(v) __builtin_bswap32(v)
#endif

static inline void put_le16(uint8_t *p, uint16_t v)
{
    v = LITTLE16(v);
    memcpy(p, &v, 2);
}
static inline uint16_t get_le16(const uint8_t *p)
{
    uint16_t v;
    memcpy(&v, p, 2);
    return LITTLE16(v);
}
static inline void put_le32(uint8_t *p, uint32_t v)
{
    v = LITTLE32(v);
    memcpy(p, &v, 4);
}
static inline uint32_t get_le32(const uint8_t *p)
{
    uint32_t v;
    memcpy(&v, p, 4);
    return LITTLE32(v);
}

/* The bits of the largest magnitude of n values. */
static inline uint32_t largest_bits(const float *x, uint32_t n)
{
    int32_t most = 0; /* signed: what vectors of every machine compare */
    for (uint32_t i = 0; i < n; i++) {
        int32_t magnitude = (int32_t)(f32_bits(x[i]) & F32_MAGNITUDE);
        most = magnitude > most ? magnitude : most;
    }
    return (uint32_t)most;
}

/* The nearest bf16, to even; finite values beyond its range become its largest. */
static inline uint16_t bf16_of(float v)
{
    uint32_t bits = f32_bits(v);
    int32_t magnitude = (int32_t)(bits & F32_MAGNITUDE);
    int32_t near = (int32_t)((uint32_t)magnitude + 0x7fff + (bits >> 16 & 1)) >> 16;
    near = magnitude < BF16_LIMIT ? near : 0x7f7f;
    near = magnitude < (int32_t)F32_INFINITY ? near : 0x7f80; /* for the decoder to refuse */
    return (uint16_t)((bits & F32_SIGN) >> 16 | (uint32_t)near);
}
static inline float bf16_value(uint16_t v)
{
    return f32_of((uint32_t)v << 16);
}

/* Bits one after the other, the first in the lowest of a byte. */
struct bits_out {
    uint8_t *at;
    uint64_t held;
    uint32_t fill;
};

/* The `len` lowest of `bits`, at most 32; the others are 0. */
static inline void bits_put(struct bits_out *o, uint32_t bits, uint32_t len)
{
    o->held |= (uint64_t)bits << o->fill;
    o->fill += len;
    if (o->fill >= 32) {
        put_le32(o->at, (uint32_t)o->held);
        o->at += 4;
        o->held >>= 32;
        o->fill -= 32;
    }
}
/* Bits of the last byte that are left are 0. */
static inline void bits_end(struct bits_out *o)
{
    for (; o->fill; o->fill -= o->fill < 8 ? o->fill : 8, o->held >>= 8)
        *o->at++ = (uint8_t)o->held;
}

struct bits_in {
    const uint8_t *at, *end;
    uint64_t held; /* the next bits; 0 behind the last */
    uint32_t fill;
};

/* So that `held` has 32 bits, or all that are left. */
static inline void bits_fetch(struct bits_in *in)
{
    if (in->fill < 32 && in->end - in->at >= 4) {
        in->held |= (uint64_t)get_le32(in->at) << in->fill;
        in->at += 4;
        in->fill += 32;
    }
    for (; in->fill < 32 && in->at < in->end; in->fill += 8)
        in->held |= (uint64_t)*in->at++ << in->fill;
}
/* False: there are not so many. */
static inline bool bits_take(struct bits_in *in, uint32_t len)
{
    bool there = len <= in->fill;
    in->held >>= len;
    in->fill -= there ? len : in->fill;
    return there;
}
/* The bytes since `begin` of which bits were taken; 0: bits that are left in the last are not all 0. */
static inline size_t bits_used(const struct bits_in *in, const uint8_t *begin)
{
    uint32_t left = in->fill % 8;
    return in->held & ((1u << left) - 1) ? 0 : (size_t)(in->at - begin) - in->fill / 8;
}
#endif
