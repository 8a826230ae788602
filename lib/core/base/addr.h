/* A UDP address as the core sees it: opaque, comparable.  IPv4 is kept as an
 * IPv4-mapped IPv6 address.  Port in host order. */
#ifndef BASE_ADDR_H
#define BASE_ADDR_H
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
#endif
