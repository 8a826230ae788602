/* Strided walks: i -> (start + i * stride) mod n visits each of n items once,
 * and neighbours in the walk lie far apart, so a lost burst hits no neighbours. */
#ifndef TENSOR_ORDER_H
#define TENSOR_ORDER_H
#include <stdint.h>

static inline uint32_t order_gcd(uint32_t a, uint32_t b)
{
    while (b) {
        uint32_t t = a % b;
        a = b;
        b = t;
    }
    return a;
}

/* A stride coprime to n near 0.382 n (golden section); the two low bits of `seed`
 * choose among the nearest four.  1 for n < 3. */
static inline uint32_t order_stride(uint32_t n, uint64_t seed)
{
    if (n < 3)
        return 1;
    uint32_t skip = (uint32_t)(seed & 3), s = (uint32_t)((double)n * 0.3819660112501051);
    for (uint32_t tries = 0; tries < n; tries++, s++) {
        if (s >= n)
            s = 1;
        if (s > 0 && order_gcd(n, s) == 1 && skip-- == 0)
            return s;
    }
    return 1;
}

/* Item number i (< n) of the walk; `start` is any number. */
static inline uint32_t order_at(uint32_t i, uint32_t n, uint32_t stride, uint32_t start)
{
    return (uint32_t)(((uint64_t)i * stride + start) % n);
}
#endif
