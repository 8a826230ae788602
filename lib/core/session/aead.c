#include "session/aead.h"
#include "base/bytes.h"
#include "wire/wire.h"
#include <sodium.h>
#include <xxhash.h>

#define NONCE_BYTES 12
#define OVERHEAD (WIRE_HEADER_BYTES + WIRE_TAG_BYTES)

/* ---- none: a checksum ------------------------------------------------------- */

static void checksum(uint8_t tag[WIRE_TAG_BYTES], const struct aead_text *t)
{
    XXH128_hash_t h = XXH3_128bits(t->ad, t->ad_len + t->len);
    le_store(tag, h.low64, 8);
    le_store(tag + 8, h.high64, 8);
}

static int none_seal(const struct aead_text *t, uint8_t *out)
{
    checksum(out + t->len, t);
    return 0;
}

static int none_open(const struct aead_text *t, uint8_t *out)
{
    uint8_t tag[WIRE_TAG_BYTES];
    (void)out;
    checksum(tag, t);
    return memcmp(tag, t->in + t->len, sizeof tag);
}

static int always(void)
{
    return 1;
}

/* ---- libsodium's ------------------------------------------------------------ */

#define SODIUM_CIPHER(name, function)                                                        \
    static int name##_seal(const struct aead_text *t, uint8_t *out)                          \
    {                                                                                        \
        return crypto_aead_##function##_encrypt(out, NULL, t->in, t->len, t->ad, t->ad_len,  \
                                                NULL, t->nonce, t->key);                     \
    }                                                                                        \
    static int name##_open(const struct aead_text *t, uint8_t *out)                          \
    {                                                                                        \
        return crypto_aead_##function##_decrypt(out, NULL, NULL, t->in,                      \
                                                t->len + WIRE_TAG_BYTES, t->ad, t->ad_len,   \
                                                t->nonce, t->key);                           \
    }
SODIUM_CIPHER(chacha, chacha20poly1305_ietf)
SODIUM_CIPHER(aes, aes256gcm)

/* ---- the table ---------------------------------------------------------------- */

static const struct cipher {
    const char *name;
    bool hides;
    int (*available)(void);
    int (*seal)(const struct aead_text *, uint8_t *out); /* 0: done */
    int (*open)(const struct aead_text *, uint8_t *out);
} ciphers[AEAD_CIPHERS] = {
    [AEAD_NONE] = {"none", false, always, none_seal, none_open},
    [AEAD_CHACHA20POLY1305] = {"chacha20poly1305", true, always, chacha_seal, chacha_open},
    [AEAD_AES256GCM] = {"aes256gcm", true, crypto_aead_aes256gcm_is_available, aes_seal, aes_open},
};

const char *aead_name(enum aead_cipher c)
{
    return ciphers[c].name;
}

uint8_t aead_available(void)
{
    uint8_t bits = 0;
    for (unsigned c = 0; c < AEAD_CIPHERS; c++)
        if (ciphers[c].hides && ciphers[c].available())
            bits |= (uint8_t)(1u << c);
    return bits;
}

/* AES where both have it: it is the faster one there. */
enum aead_cipher aead_choose(uint8_t ours, uint8_t theirs)
{
    return ours & theirs & 1u << AEAD_AES256GCM ? AEAD_AES256GCM : AEAD_CHACHA20POLY1305;
}

bool aead_seal_text(enum aead_cipher c, const struct aead_text *t, uint8_t *out)
{
    return ciphers[c].seal(t, out) == 0;
}

bool aead_open_text(enum aead_cipher c, const struct aead_text *t, uint8_t *out)
{
    return ciphers[c].open(t, out) == 0;
}

/* ---- datagrams ------------------------------------------------------------------ */

static void nonce_of(uint8_t nonce[NONCE_BYTES], uint64_t counter)
{
    memset(nonce, 0, 4);
    le_store(nonce + 4, counter, 8);
}

size_t aead_seal(enum aead_cipher c, const uint8_t key[AEAD_KEY_BYTES], uint64_t counter,
                 uint8_t *dgram, size_t body_len)
{
    uint8_t nonce[NONCE_BYTES], *body = dgram + WIRE_HEADER_BYTES;
    struct aead_text t = {key, nonce, dgram, body, WIRE_HEADER_BYTES, body_len};
    nonce_of(nonce, counter);
    return aead_seal_text(c, &t, body) ? OVERHEAD + body_len : 0;
}

const uint8_t *aead_open(enum aead_cipher c, const uint8_t key[AEAD_KEY_BYTES], uint64_t counter,
                         const uint8_t *dgram, size_t n, uint8_t *room)
{
    uint8_t nonce[NONCE_BYTES];
    const uint8_t *body = dgram + WIRE_HEADER_BYTES;
    if (n < OVERHEAD || n > WIRE_DATAGRAM_MAX)
        return NULL;
    struct aead_text t = {key, nonce, dgram, body, WIRE_HEADER_BYTES, n - OVERHEAD};
    nonce_of(nonce, counter);
    if (!aead_open_text(c, &t, room))
        return NULL;
    return ciphers[c].hides ? room : body;
}
