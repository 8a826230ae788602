#include "session/noise.h"
#include "base/bytes.h"
#include <sodium.h>

#define HMAC_BLOCK 128 /* of BLAKE2b */
#define MESSAGES_MAX 3
#define TOKENS_MAX 5

enum token { END, E, S, EE, ES, SE, SS, PSK };

/* "->" and "<-" alternate from the initiator's first; `known` is the pre-message "<- s". */
static const struct pattern {
    char name[40];
    bool known;
    uint8_t messages;
    uint8_t tokens[MESSAGES_MAX][TOKENS_MAX];
} patterns[] = {
    [NOISE_IKPSK2] = {"Noise_IKpsk2_25519_ChaChaPoly_BLAKE2b", true, 2,
                      {{E, ES, S, SS}, {E, EE, SE, PSK}}},
    [NOISE_XXPSK3] = {"Noise_XXpsk3_25519_ChaChaPoly_BLAKE2b", false, 3,
                      {{E}, {E, EE, S, ES}, {S, SE, PSK}}},
};

/* ---- hashing (sections 4.3, 5.2) ------------------------------------------ */

/* HMAC (RFC 2104) over a part and one byte more, the latter unless `last` is 0. */
static void hmac(uint8_t out[NOISE_HASH_BYTES], const uint8_t key[NOISE_HASH_BYTES],
                 const uint8_t *part, size_t n, uint8_t last)
{
    crypto_generichash_blake2b_state st;
    uint8_t pad[HMAC_BLOCK] = {0}, inner[NOISE_HASH_BYTES];
    memcpy(pad, key, NOISE_HASH_BYTES);
    for (unsigned i = 0; i < HMAC_BLOCK; i++)
        pad[i] ^= 0x36;
    crypto_generichash_blake2b_init(&st, NULL, 0, NOISE_HASH_BYTES);
    crypto_generichash_blake2b_update(&st, pad, HMAC_BLOCK);
    crypto_generichash_blake2b_update(&st, part, n);
    crypto_generichash_blake2b_update(&st, &last, last != 0);
    crypto_generichash_blake2b_final(&st, inner, NOISE_HASH_BYTES);
    for (unsigned i = 0; i < HMAC_BLOCK; i++)
        pad[i] ^= 0x36 ^ 0x5c;
    crypto_generichash_blake2b_init(&st, NULL, 0, NOISE_HASH_BYTES);
    crypto_generichash_blake2b_update(&st, pad, HMAC_BLOCK);
    crypto_generichash_blake2b_update(&st, inner, NOISE_HASH_BYTES);
    crypto_generichash_blake2b_final(&st, out, NOISE_HASH_BYTES);
    sodium_memzero(pad, sizeof pad);
}

/* The first `count` outputs of HKDF, at most 3. */
static void hkdf(uint8_t out[][NOISE_HASH_BYTES], unsigned count,
                 const uint8_t ck[NOISE_HASH_BYTES], const uint8_t *input, size_t n)
{
    uint8_t temp[NOISE_HASH_BYTES], chain[NOISE_HASH_BYTES];
    hmac(temp, ck, input, n, 0);
    for (unsigned i = 0; i < count; i++) {
        hmac(out[i], temp, chain, i ? NOISE_HASH_BYTES : 0, (uint8_t)(i + 1));
        memcpy(chain, out[i], NOISE_HASH_BYTES);
    }
    sodium_memzero(temp, sizeof temp);
    sodium_memzero(chain, sizeof chain);
}

static void mix_hash(struct noise *s, const uint8_t *p, size_t n)
{
    crypto_generichash_blake2b_state st;
    crypto_generichash_blake2b_init(&st, NULL, 0, NOISE_HASH_BYTES);
    crypto_generichash_blake2b_update(&st, s->h, NOISE_HASH_BYTES);
    crypto_generichash_blake2b_update(&st, p, n);
    crypto_generichash_blake2b_final(&st, s->h, NOISE_HASH_BYTES);
}

static void key_from(struct noise *s, const uint8_t output[NOISE_HASH_BYTES])
{
    memcpy(s->k, output, NOISE_KEY_BYTES);
    s->has_key = true;
    s->nonce = 0;
}

static void mix_key(struct noise *s, const uint8_t input[NOISE_KEY_BYTES])
{
    uint8_t out[2][NOISE_HASH_BYTES];
    hkdf(out, 2, s->ck, input, NOISE_KEY_BYTES);
    memcpy(s->ck, out[0], NOISE_HASH_BYTES);
    key_from(s, out[1]);
    sodium_memzero(out, sizeof out);
}

static void mix_key_and_hash(struct noise *s, const uint8_t input[NOISE_KEY_BYTES])
{
    uint8_t out[3][NOISE_HASH_BYTES];
    hkdf(out, 3, s->ck, input, NOISE_KEY_BYTES);
    memcpy(s->ck, out[0], NOISE_HASH_BYTES);
    mix_hash(s, out[1], NOISE_HASH_BYTES);
    key_from(s, out[2]);
    sodium_memzero(out, sizeof out);
}

/* ---- enciphering (sections 5.1, 12.3) --------------------------------------- */

static void next_nonce(struct noise *s, uint8_t nonce[12])
{
    memset(nonce, 0, 4);
    le_store(nonce + 4, s->nonce++, 8);
}

/* `in` and `out` may be the same. */
static void put_encrypted(struct noise *s, byte_writer *w, const uint8_t *in, size_t n)
{
    uint8_t nonce[12];
    size_t tag = s->has_key ? NOISE_TAG_BYTES : 0;
    uint8_t *out = put_space(w, n + tag);
    if (!out)
        return;
    if (s->has_key) {
        next_nonce(s, nonce);
        crypto_aead_chacha20poly1305_ietf_encrypt(out, NULL, in, n, s->h, NOISE_HASH_BYTES, NULL,
                                                  nonce, s->k);
    } else if (n) {
        memcpy(out, in, n);
    }
    mix_hash(s, out, n + tag);
}

/* n bytes of plain text. */
static bool get_encrypted(struct noise *s, byte_reader *r, uint8_t *out, size_t n)
{
    uint8_t nonce[12];
    size_t tag = s->has_key ? NOISE_TAG_BYTES : 0;
    const uint8_t *in = get_bytes(r, n + tag);
    if (!in)
        return false;
    if (s->has_key) {
        next_nonce(s, nonce);
        if (crypto_aead_chacha20poly1305_ietf_decrypt(out, NULL, NULL, in, n + tag, s->h,
                                                      NOISE_HASH_BYTES, nonce, s->k) != 0)
            return false;
    } else if (n) {
        memcpy(out, in, n);
    }
    mix_hash(s, in, n + tag);
    return true;
}

/* ---- tokens (section 5.3) ---------------------------------------------------- */

/* False for a key of the other side that is of small order. */
static bool mix_dh(struct noise *s, const struct noise_keypair *own, const uint8_t *theirs)
{
    uint8_t shared[NOISE_KEY_BYTES];
    if (crypto_scalarmult_curve25519(shared, own->secret, theirs) != 0)
        return false;
    mix_key(s, shared);
    sodium_memzero(shared, sizeof shared);
    return true;
}

/* The tokens that both sides do alike. */
static bool mix_token(struct noise *s, uint8_t token)
{
    switch (token) {
    case EE:
        return mix_dh(s, &s->e, s->re);
    case ES:
        return s->initiator ? mix_dh(s, &s->e, s->rs) : mix_dh(s, &s->s, s->re);
    case SE:
        return s->initiator ? mix_dh(s, &s->s, s->re) : mix_dh(s, &s->e, s->rs);
    case SS:
        return mix_dh(s, &s->s, s->rs);
    case PSK:
        mix_key_and_hash(s, s->psk);
        return true;
    default:
        return false;
    }
}

/* With a pre-shared key the ephemeral keys are mixed in as well (section 9.2). */
static void mix_ephemeral(struct noise *s, const uint8_t e[NOISE_KEY_BYTES])
{
    mix_hash(s, e, NOISE_KEY_BYTES);
    mix_key(s, e);
}

void noise_pair(struct noise_keypair *p, const uint8_t secret[NOISE_KEY_BYTES])
{
    memcpy(p->secret, secret, NOISE_KEY_BYTES);
    crypto_scalarmult_curve25519_base(p->public_key, secret);
}

void noise_begin(struct noise *s, enum noise_pattern pattern, bool initiator,
                 const uint8_t *prologue, size_t prologue_len, const struct noise_keypair *own,
                 const uint8_t e_secret[NOISE_KEY_BYTES], const uint8_t *rs,
                 const uint8_t psk[NOISE_KEY_BYTES])
{
    const struct pattern *p = &patterns[pattern];
    *s = (struct noise){.pattern = pattern, .initiator = initiator, .s = *own};
    memcpy(s->psk, psk, NOISE_KEY_BYTES);
    noise_pair(&s->e, e_secret);
    memcpy(s->h, p->name, strlen(p->name)); /* shorter than a hash: padded with zeros */
    memcpy(s->ck, s->h, NOISE_HASH_BYTES);
    mix_hash(s, prologue, prologue_len);
    if (rs)
        memcpy(s->rs, rs, NOISE_KEY_BYTES);
    if (p->known)
        mix_hash(s, initiator ? s->rs : s->s.public_key, NOISE_KEY_BYTES);
}

size_t noise_overhead(enum noise_pattern pattern, unsigned message)
{
    const uint8_t *token = patterns[pattern].tokens[message];
    size_t n = NOISE_TAG_BYTES; /* of the payload: the first token, "e", makes a key */
    for (; *token; token++)
        n += *token == E ? NOISE_KEY_BYTES : *token == S ? NOISE_KEY_BYTES + NOISE_TAG_BYTES : 0;
    return n;
}

static bool my_turn(const struct noise *s, bool writing)
{
    return !noise_done(s) && (s->message % 2 == (s->initiator ? 0 : 1)) == writing;
}

size_t noise_write(struct noise *s, uint8_t *out, size_t cap, const uint8_t *payload, size_t len)
{
    byte_writer w = writer_of(out, cap);
    if (!my_turn(s, true))
        return 0;
    for (const uint8_t *t = patterns[s->pattern].tokens[s->message]; *t; t++) {
        if (*t == E) {
            put_bytes(&w, s->e.public_key, NOISE_KEY_BYTES);
            mix_ephemeral(s, s->e.public_key);
        } else if (*t == S) {
            put_encrypted(s, &w, s->s.public_key, NOISE_KEY_BYTES);
        } else if (!mix_token(s, *t)) {
            return 0;
        }
    }
    put_encrypted(s, &w, payload, len);
    s->message++;
    return put_done(&w);
}

bool noise_read(struct noise *s, const uint8_t *message, size_t n, uint8_t *payload, size_t cap,
                size_t *len)
{
    byte_reader r = reader_of(message, n);
    if (!my_turn(s, false) || n < noise_overhead(s->pattern, s->message))
        return false;
    *len = n - noise_overhead(s->pattern, s->message);
    if (*len > cap)
        return false;
    for (const uint8_t *t = patterns[s->pattern].tokens[s->message]; *t; t++) {
        if (*t == E) {
            memcpy(s->re, get_bytes(&r, NOISE_KEY_BYTES), NOISE_KEY_BYTES);
            mix_ephemeral(s, s->re);
        } else if (*t == S ? !get_encrypted(s, &r, s->rs, NOISE_KEY_BYTES) : !mix_token(s, *t)) {
            return false;
        }
    }
    s->message++;
    return get_encrypted(s, &r, payload, *len);
}

bool noise_done(const struct noise *s)
{
    return s->message == patterns[s->pattern].messages;
}

void noise_split(const struct noise *s, uint8_t send[NOISE_KEY_BYTES],
                 uint8_t recv[NOISE_KEY_BYTES])
{
    uint8_t out[2][NOISE_HASH_BYTES];
    hkdf(out, 2, s->ck, NULL, 0);
    memcpy(send, out[s->initiator ? 0 : 1], NOISE_KEY_BYTES);
    memcpy(recv, out[s->initiator ? 1 : 0], NOISE_KEY_BYTES);
    sodium_memzero(out, sizeof out);
}
