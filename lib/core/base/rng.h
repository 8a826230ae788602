/* The one generator (SplitMix64).  Seeds are handed in; the core has no source of its own. */
#ifndef BASE_RNG_H
#define BASE_RNG_H
#include <stdint.h>

typedef struct { uint64_t state; } sleet_rng;

static inline uint64_t mix64(uint64_t z)
{
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}
static inline uint64_t rng_next(sleet_rng *r) { return mix64(r->state += 0x9e3779b97f4a7c15u); }
/* Uniform in [0, 1). */
static inline double rng_double(sleet_rng *r) { return (double)(rng_next(r) >> 11) * 0x1p-53; }
/* Uniform in [0, n); n > 0. */
static inline uint32_t rng_below(sleet_rng *r, uint32_t n)
{
    return (uint32_t)(((rng_next(r) >> 32) * (uint64_t)n) >> 32);
}
#endif
