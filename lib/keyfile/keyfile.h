/* keyfile.h - key files: one line, a keyword and 64 lower-case hexadecimal digits.
 *
 * Shared by sleetd and sleetctl.  A secret is read only from a regular file that nobody but
 * its owner and root can read or write, and written only where nobody else can exchange it:
 * files are 0600 and appear whole or not at all.  Secrets are the caller's to wipe (sodium_memzero). */
#ifndef KEYFILE_KEYFILE_H
#define KEYFILE_KEYFILE_H
#include "session/keys.h"
#include <sys/types.h>

#define KEYFILE_WHY 1024                    /* room for a sentence with a path in it */
#define KEYFILE_PATH 512                    /* bytes of a default path */

/* X(kind, keyword, name): what is in the file, and the default name NAME.key. */
#define KEYFILE_MAP(X)                                                                      \
    X(NODE, "sleet-node-key", "node")             /* X25519 secret */                       \
    X(JOB, "sleet-job-key", "job")                /* shared by all nodes */                 \
    X(OPERATOR, "sleet-operator-key", "operator") /* ed25519 seed */

enum keyfile_kind {
#define X(kind, ...) KEYFILE_##kind,
    KEYFILE_MAP(X)
#undef X
        KEYFILE_KINDS
};

/* "node", "job" or "operator". */
const char *keyfile_name(enum keyfile_kind);

/* A new secret from the kernel's random numbers. */
void keyfile_generate(uint8_t key[KEY_BYTES]);

/* Read a secret from a file of root's or of `reader`'s.  False with one sentence in `why`: no
 * such file, open to others, a folder, another kind of key, not 64 digits. */
bool keyfile_read(enum keyfile_kind, const char *path, uid_t reader, uint8_t key[KEY_BYTES],
                  char why[KEYFILE_WHY]);

/* Write a new file, which must not exist.  False with one sentence. */
bool keyfile_create(enum keyfile_kind, const char *path, const uint8_t key[KEY_BYTES],
                    char why[KEYFILE_WHY]);

/* Write the file or put it in an old one's place in one step: a crash leaves the old or the
 * new.  False with one sentence, the old file is then untouched. */
bool keyfile_replace(enum keyfile_kind, const char *path, const uint8_t key[KEY_BYTES],
                     char why[KEYFILE_WHY]);

/* Where the kind's file is looked for when none is named: /var/lib/sleet for root, else
 * $XDG_CONFIG_HOME/sleet or ~/.config/sleet.  False when there is no home. */
bool keyfile_default_path(enum keyfile_kind, char out[KEYFILE_PATH]);
/* Make the folder of a default path (0700) with those above it; false with one sentence. */
bool keyfile_make_folder(const char *path, char why[KEYFILE_WHY]);

/* The public half of a NODE (X25519) or OPERATOR (ed25519) secret. */
void keyfile_public(enum keyfile_kind, const uint8_t key[KEY_BYTES],
                    uint8_t out[KEY_BYTES]);
/* 16 digits by which people compare job keys without seeing them. */
void keyfile_fingerprint(char out[17], const uint8_t key[KEY_BYTES]);
#endif
