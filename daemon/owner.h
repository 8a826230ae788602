/* owner.h - who holds a UDP address of this machine, as far as /proc tells. */
#ifndef DAEMON_OWNER_H
#define DAEMON_OWNER_H
#include "base/addr.h"
#include <stddef.h>

/* Write " (held by pid P, NAME; ...)" or, where /proc hides it, a hint. */
void owner_of_address(const sleet_addr *, char *out, size_t cap);
#endif
