#include "session/secret.h"
#include "base/bytes.h"
#include <assert.h>
#include <sodium.h>

void secret_init(struct secret_stream *s, const uint8_t seed[SECRET_SEED_BYTES])
{
    memcpy(s->key, seed, SECRET_SEED_BYTES);
}

void secret_draw(struct secret_stream *s, uint8_t *out, size_t n)
{
    static const uint8_t nonce[crypto_stream_chacha20_ietf_NONCEBYTES];
    uint8_t stream[SECRET_SEED_BYTES + SECRET_DRAW_MAX];
    assert(n <= SECRET_DRAW_MAX);
    crypto_stream_chacha20_ietf(stream, SECRET_SEED_BYTES + n, nonce, s->key);
    memcpy(s->key, stream, SECRET_SEED_BYTES);
    memcpy(out, stream + SECRET_SEED_BYTES, n);
    sodium_memzero(stream, sizeof stream);
}

uint32_t secret_u32(struct secret_stream *s)
{
    uint8_t bytes[4];
    secret_draw(s, bytes, sizeof bytes);
    return (uint32_t)le_load(bytes, sizeof bytes);
}
