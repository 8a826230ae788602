/* Bitmaps of 64-bit words in memory, and of bytes as on the wire.  The caller
 * owns the storage and keeps indices within it.  Bit i is bit i % 64 of word
 * i / 64, respectively bit i % 8 of byte i / 8. */
#ifndef BASE_BITMAP_H
#define BASE_BITMAP_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Words for `bits` bits. */
static inline size_t bitmap_words(size_t bits) { return bits / 64 + (bits % 64 != 0); }
static inline bool bitmap_test(const uint64_t *map, size_t i) { return map[i / 64] >> (i % 64) & 1; }
static inline void bitmap_set(uint64_t *map, size_t i) { map[i / 64] |= UINT64_C(1) << (i % 64); }
static inline void bitmap_clear(uint64_t *map, size_t i)
{
    map[i / 64] &= ~(UINT64_C(1) << (i % 64));
}
/* The first set bit at or after `from` among `bits`; `bits` when there is none. */
static inline size_t bitmap_next(const uint64_t *map, size_t from, size_t bits)
{
    while (from < bits) {
        uint64_t rest = map[from / 64] >> (from % 64);
        if (rest) {
            from += (size_t)__builtin_ctzll(rest);
            return from < bits ? from : bits;
        }
        from = (from / 64 + 1) * 64;
    }
    return bits;
}
/* Set bits among the first `bits`. */
static inline size_t bitmap_count(const uint64_t *map, size_t bits)
{
    size_t n = 0;
    for (size_t w = 0; w < bits / 64; w++)
        n += (size_t)__builtin_popcountll(map[w]);
    if (bits % 64)
        n += (size_t)__builtin_popcountll(map[bits / 64] & ((UINT64_C(1) << (bits % 64)) - 1));
    return n;
}

static inline bool bytemap_test(const uint8_t *map, size_t i) { return map[i / 8] >> (i % 8) & 1; }
static inline void bytemap_set(uint8_t *map, size_t i) { map[i / 8] |= (uint8_t)(1u << (i % 8)); }
#endif
