#include "base/addr.h"

static char *put_number(char *p, unsigned v, unsigned base)
{
    char digits[8];
    int n = 0;
    do
        digits[n++] = "0123456789abcdef"[v % base];
    while (v /= base);
    while (n)
        *p++ = digits[--n];
    return p;
}

const char *addr_text(char out[ADDR_TEXT_MAX], const sleet_addr *a)
{
    static const uint8_t v4[12] = {[10] = 0xff, [11] = 0xff};
    char *p = out;
    if (memcmp(a->ip, v4, sizeof v4) == 0) {
        for (int i = 12; i < 16; i++) {
            p = put_number(p, a->ip[i], 10);
            *p++ = i < 15 ? '.' : ':';
        }
    } else {
        *p++ = '[';
        for (int i = 0; i < 16; i += 2) {
            p = put_number(p, (unsigned)a->ip[i] << 8 | a->ip[i + 1], 16);
            *p++ = i < 14 ? ':' : ']';
        }
        *p++ = ':';
    }
    *put_number(p, a->port, 10) = 0;
    return out;
}
