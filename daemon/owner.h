/* owner.h - who holds a UDP port of this machine, as far as /proc tells. */
#ifndef DAEMON_OWNER_H
#define DAEMON_OWNER_H
#include <stddef.h>
#include <stdint.h>

/* Write " (held by pid P, NAME; ...)" or, where /proc hides it, a hint. */
void owner_of_port(uint16_t port, char *out, size_t cap);
#endif
