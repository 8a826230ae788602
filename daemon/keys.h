/* keys.h - the secrets of a sealed node: read once at the start, wiped at the end. */
#ifndef DAEMON_KEYS_H
#define DAEMON_KEYS_H
#include "config.h"
#include "keyfile/keyfile.h"
#include <sys/types.h>

struct keys {
    uint8_t node_secret[KEY_BYTES], job[KEY_BYTES];
    char job_fingerprint[17]; /* by which people compare job keys; "": none */
    bool unsaved;             /* the file has a former job key */
};

/* With job.security = sealed: read the two key files, set node.id from the node's key and put the
 * paths taken into the configuration.  `reader` is the user that the daemon will run as.  With
 * none: nothing.  False after printing the reason. */
bool keys_load(struct keys *, struct config *, uid_t reader);
/* The job's key has changed: keep it, and put it into the file in one step.  False with a
 * sentence in `why` when the file has the former one still. */
bool keys_new_job(struct keys *, const struct config *, const uint8_t key[KEY_BYTES],
                  char why[KEYFILE_WHY]);
void keys_wipe(struct keys *);
#endif
