/* again.h - what is accepted must encode to the bytes that it came from. */
#ifndef TESTS_FUZZ_AGAIN_H
#define TESTS_FUZZ_AGAIN_H
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static inline void same(const uint8_t *a, size_t n, const uint8_t *b, size_t m)
{
    if (n != m || memcmp(a, b, n) != 0)
        abort();
}

/* The frame NAME in the n bytes at p; `out` is an array with room for it. */
#define AGAIN(name)                                                                          \
    do {                                                                                     \
        struct wire_##name m;                                                                \
        if (wire_##name##_decode(&m, p, n) == SLEET_OK)                                      \
            same(p, n, out, wire_##name##_encode(out, sizeof out, &m));                      \
    } while (0)
#endif
