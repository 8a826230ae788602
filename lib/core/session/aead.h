/* The ciphers of datagrams, as a table.  The header is authenticated with the body, which
 * is in the clear with AEAD_NONE only; the nonce is 4 zero bytes and the packet counter,
 * little-endian (RFC 8439, RFC 5116; a counter is never used twice with a key). */
#ifndef SESSION_AEAD_H
#define SESSION_AEAD_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define AEAD_KEY_BYTES 32

enum aead_cipher { AEAD_NONE, AEAD_CHACHA20POLY1305, AEAD_AES256GCM, AEAD_CIPHERS };

const char *aead_name(enum aead_cipher);
/* Bit c is set when this machine has cipher c in a form that is safe to use, of those that
 * hide anything: always AEAD_CHACHA20POLY1305.  AES only after sodium_init(). */
uint8_t aead_available(void);
/* The best of those that two sides have in common. */
enum aead_cipher aead_choose(uint8_t ours, uint8_t theirs);

/* Seal the datagram whose header and body of `body_len` bytes lie at `dgram`, in place, and
 * put the tag behind them.  Bytes in all. */
size_t aead_seal(enum aead_cipher, const uint8_t key[AEAD_KEY_BYTES], uint64_t counter,
                 uint8_t *dgram, size_t body_len);

/* The body of the datagram of n bytes, NULL when the tag is wrong.  It lies in the datagram
 * itself or in `room`, which takes a whole body, and is n - 32 bytes long. */
const uint8_t *aead_open(enum aead_cipher, const uint8_t key[AEAD_KEY_BYTES], uint64_t counter,
                         const uint8_t *dgram, size_t n, uint8_t *room);

/* The same with any associated data and nonce of 12 bytes.  With AEAD_NONE `in` must lie
 * behind `ad`.  False when the cipher is not available, or the tag is wrong. */
struct aead_text {
    const uint8_t *key, *nonce, *ad, *in;
    size_t ad_len, len; /* bytes of plain text */
};
bool aead_seal_text(enum aead_cipher, const struct aead_text *, uint8_t *out);
bool aead_open_text(enum aead_cipher, const struct aead_text *, uint8_t *out);
#endif
