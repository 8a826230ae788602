/* keys.h - the secrets of a sealed node: read once at the start, wiped at the end. */
#ifndef DAEMON_KEYS_H
#define DAEMON_KEYS_H
#include "config.h"
#include <sys/types.h>

struct keys {
    uint8_t node_secret[KEY_BYTES], job[KEY_BYTES];
    char job_fingerprint[17]; /* by which people compare job keys; "": none */
};

/* With job.security = sealed: read the two key files, set node.id from the node's key and put the
 * paths taken into the configuration.  `reader` is the user that the daemon will run as.  With
 * none: nothing.  False after printing the reason. */
bool keys_load(struct keys *, struct config *, uid_t reader);
void keys_wipe(struct keys *);
#endif
