/* The bytes that must not be guessed: ephemeral keys, session indices, cookie secrets.
 * A ChaCha20 stream (RFC 8439) from 32 bytes that are handed in; each draw replaces the
 * key with the stream's first bytes, so that what was drawn cannot be drawn again. */
#ifndef SESSION_SECRET_H
#define SESSION_SECRET_H
#include <stddef.h>
#include <stdint.h>

#define SECRET_SEED_BYTES 32
#define SECRET_DRAW_MAX 64 /* bytes at once */

struct secret_stream {
    uint8_t key[SECRET_SEED_BYTES];
};

void secret_init(struct secret_stream *, const uint8_t seed[SECRET_SEED_BYTES]);
/* n <= SECRET_DRAW_MAX */
void secret_draw(struct secret_stream *, uint8_t *out, size_t n);
uint32_t secret_u32(struct secret_stream *);
#endif
