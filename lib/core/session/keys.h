/* Keys as text, and the name that a node's key gives it.
 *
 * A key is 32 bytes; as text 64 lower-case hexadecimal digits.  A node's secret key
 * is an X25519 scalar (RFC 7748), its node id the first 8 bytes, little-endian, of
 * the BLAKE2b-256 (RFC 7693) of its public key.  A job's key is 32 random bytes. */
#ifndef SESSION_KEYS_H
#define SESSION_KEYS_H
#include <stdbool.h>
#include <stdint.h>

#define KEY_BYTES 32
#define KEY_DIGITS 64

/* Exactly KEY_DIGITS digits and the NUL, else false; key is written only when true. */
bool key_parse(uint8_t key[KEY_BYTES], const char *text);
void key_format(char text[KEY_DIGITS + 1], const uint8_t key[KEY_BYTES]);

void key_public(uint8_t public_key[KEY_BYTES], const uint8_t secret[KEY_BYTES]);
/* Never 0. */
uint64_t key_node_id(const uint8_t public_key[KEY_BYTES]);
#endif
