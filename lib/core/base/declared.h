/* What a node says of itself, for as long as it lives.  All zero: nothing. */
#ifndef BASE_DECLARED_H
#define BASE_DECLARED_H
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* CLIENT: others may be unable to reach it first; it owns nothing and leads nothing where another can.
 * AUXILIARY: it has no trainer and gives nothing; it owns and reduces what others give. */
enum { ROLE_NODE, ROLE_CLIENT, ROLE_AUXILIARY, ROLES };

static inline const char *declared_role_text(uint8_t role)
{
    static const char *const texts[ROLES] = {"node", "client", "auxiliary"};
    return texts[role];
}

#define SITE_MAX 15

struct declared {
    uint32_t kbit; /* kbit/s that it can send; 0: not said */
    uint8_t role;  /* ROLE_... */
    char site[SITE_MAX + 1]; /* where it stands: visible ASCII, filled up with NUL; empty: not said */
};

static inline bool declared_any(const struct declared *d)
{
    return d->kbit || d->role || d->site[0];
}

static inline bool declared_fits(const struct declared *d)
{
    size_t n = strnlen(d->site, sizeof d->site), at = n;
    while (at < sizeof d->site && !d->site[at])
        at++;
    bool fits = n <= SITE_MAX && at == sizeof d->site && d->role < ROLES;
    for (size_t i = 0; i < n; i++)
        fits = fits && d->site[i] > ' ' && d->site[i] < 0x7f;
    return fits;
}
#endif
