/* A UDP address as the core sees it: opaque, comparable.  IPv4 is kept as an
 * IPv4-mapped IPv6 address.  Port in host order. */
#ifndef BASE_ADDR_H
#define BASE_ADDR_H
#include "base/rng.h"
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

typedef struct {
    uint8_t ip[16];
    uint32_t scope; /* IPv6 scope id, 0 if none */
    uint16_t port;
} sleet_addr;

static inline bool addr_equal(const sleet_addr *a, const sleet_addr *b)
{
    return a->port == b->port && a->scope == b->scope && memcmp(a->ip, b->ip, 16) == 0;
}

#define ADDR_TEXT_MAX 56

/* "10.0.0.2:7700" or "[fd00:0:0:0:0:0:0:1]:7700" in `out`, which it returns. */
const char *addr_text(char out[ADDR_TEXT_MAX], const sleet_addr *);

static inline uint64_t addr_hash(const sleet_addr *a)
{
    uint64_t half[2];
    memcpy(half, a->ip, sizeof half);
    return mix64(mix64(mix64(half[0]) ^ half[1]) ^ ((uint64_t)a->scope << 16 | a->port));
}
#endif
