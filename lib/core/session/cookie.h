/* Who may make this node work.  Each handshake datagram ends with a MAC under a key that
 * comes from the job's: without it there is no answer, no memory and no curve operation.
 * Under load a HELLO must also show that its source address is its own: it is answered
 * with a cookie, a MAC of that address under a secret that changes, and repeated with a
 * second MAC under the cookie. */
#ifndef SESSION_COOKIE_H
#define SESSION_COOKIE_H
#include "base/addr.h"
#include "base/time.h"
#include "session/secret.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MAC_BYTES 16
#define MAC_KEY_BYTES 32
#define COOKIE_BYTES 16
#define COOKIE_LIFE SEC(120) /* of a secret; the one before it is still good */

/* A key for one use, named by `label` of at most 16 bytes, from the job's. */
void mac_key(uint8_t key[MAC_KEY_BYTES], const uint8_t job_key[MAC_KEY_BYTES], const char *label);
/* BLAKE2b-128 (RFC 7693) under a key of `key_len` bytes. */
void mac_of(uint8_t mac[MAC_BYTES], const uint8_t *key, size_t key_len, const uint8_t *p, size_t n);
bool mac_right(const uint8_t mac[MAC_BYTES], const uint8_t *key, size_t key_len, const uint8_t *p,
               size_t n);

struct cookie_jar {
    struct secret_stream *stream; /* borrowed */
    uint8_t secret[2][MAC_KEY_BYTES]; /* now, before */
    bool filled[2];
    sleet_time changed;
};

void cookie_init(struct cookie_jar *, struct secret_stream *, sleet_time now);
void cookie_make(struct cookie_jar *, uint8_t cookie[COOKIE_BYTES], const sleet_addr *, sleet_time now);
/* `mac` is that of the n bytes under a cookie which this address was given lately. */
bool cookie_right(struct cookie_jar *, const uint8_t mac[MAC_BYTES], const uint8_t *p, size_t n,
                  const sleet_addr *, sleet_time now);

/* Handshakes begun by others that are let in: so many at once, then so many a second. */
struct admission {
    double tokens, burst, a_second;
    sleet_time last;
};
void admission_init(struct admission *, double burst, double a_second, sleet_time now);
bool admission_take(struct admission *, sleet_time now);
#endif
