/* The Noise Protocol Framework, revision 34, for the two handshakes of Sleet:
 * IKpsk2 where the peer's static key is known and XXpsk3 where only its address is,
 * with 25519, ChaChaPoly and BLAKE2b.  Messages are written and read in turn; what
 * each is made of is a table of tokens.  No state is allocated. */
#ifndef SESSION_NOISE_H
#define SESSION_NOISE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NOISE_KEY_BYTES 32
#define NOISE_HASH_BYTES 64
#define NOISE_TAG_BYTES 16

enum noise_pattern { NOISE_IKPSK2 = 1, NOISE_XXPSK3 = 2 };

struct noise_keypair {
    uint8_t secret[NOISE_KEY_BYTES], public_key[NOISE_KEY_BYTES];
};

/* One side of one handshake.  ->rs is the peer's static key once it is known. */
struct noise {
    enum noise_pattern pattern;
    bool initiator, has_key;
    uint8_t message; /* to be written or read next, from 0 */
    uint64_t nonce;
    uint8_t ck[NOISE_HASH_BYTES], h[NOISE_HASH_BYTES], k[NOISE_KEY_BYTES];
    struct noise_keypair s, e;
    uint8_t rs[NOISE_KEY_BYTES], re[NOISE_KEY_BYTES], psk[NOISE_KEY_BYTES];
};

void noise_pair(struct noise_keypair *, const uint8_t secret[NOISE_KEY_BYTES]);

/* `e_secret` is 32 fresh random bytes; `rs` is needed by the initiator of IKpsk2, else NULL. */
void noise_begin(struct noise *, enum noise_pattern, bool initiator, const uint8_t *prologue,
                 size_t prologue_len, const struct noise_keypair *s,
                 const uint8_t e_secret[NOISE_KEY_BYTES], const uint8_t *rs,
                 const uint8_t psk[NOISE_KEY_BYTES]);

/* Bytes of message `message` (from 0) beyond its payload. */
size_t noise_overhead(enum noise_pattern, unsigned message);

/* The next message with its payload; 0 when it does not fit `cap` or a key is no good. */
size_t noise_write(struct noise *, uint8_t *out, size_t cap, const uint8_t *payload, size_t len);

/* Reads the next message and its payload of *len bytes, at most `cap`.  When false, the
 * message was not of this handshake and the state is void: read into a copy. */
bool noise_read(struct noise *, const uint8_t *message, size_t n, uint8_t *payload, size_t cap,
                size_t *len);

/* All messages have passed. */
bool noise_done(const struct noise *);

/* After noise_done(): this side's two keys. */
void noise_split(const struct noise *, uint8_t send[NOISE_KEY_BYTES], uint8_t recv[NOISE_KEY_BYTES]);
#endif
