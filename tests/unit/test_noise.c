#include "base/bytes.h"
#include "session/noise.h"
#include "sleet_test.h"
#include <sodium.h>
#include <stdio.h>
#include <string.h>

#define LINE_MAX_BYTES 1024

/* ---- the published vectors --------------------------------------------------- */

struct vector {
    char protocol[64];
    uint8_t prologue[64], psk[32], init_static[32], init_ephemeral[32], resp_static[32],
        resp_ephemeral[32];
    size_t prologue_len;
    struct noise side[2]; /* initiator, responder */
    unsigned messages, transport[2];
};

static size_t unhex(uint8_t *out, size_t cap, const char *hex)
{
    size_t n = 0;
    sodium_hex2bin(out, cap, hex, strlen(hex), NULL, &n, NULL);
    return n;
}

static enum noise_pattern pattern_of(const struct vector *v)
{
    return strncmp(v->protocol, "Noise_IK", 8) == 0 ? NOISE_IKPSK2 : NOISE_XXPSK3;
}

static void begin(struct vector *v)
{
    struct noise_keypair init, resp;
    enum noise_pattern p = pattern_of(v);
    noise_pair(&init, v->init_static);
    noise_pair(&resp, v->resp_static);
    noise_begin(&v->side[0], p, true, v->prologue, v->prologue_len, &init, v->init_ephemeral,
                p == NOISE_IKPSK2 ? resp.public_key : NULL, v->psk);
    noise_begin(&v->side[1], p, false, v->prologue, v->prologue_len, &resp, v->resp_ephemeral,
                NULL, v->psk);
}

static void handshake_message(struct vector *v, const uint8_t *payload, size_t n,
                              const uint8_t *cipher, size_t cipher_len)
{
    uint8_t out[256], in[64];
    size_t got = 0, from = v->messages % 2;
    CHECK_EQ(noise_overhead(pattern_of(v), v->messages) + n, cipher_len);
    CHECK_EQ(noise_write(&v->side[from], out, sizeof out, payload, n), cipher_len);
    CHECK_MEM(out, cipher, cipher_len);
    CHECK(noise_read(&v->side[1 - from], cipher, cipher_len, in, sizeof in, &got));
    CHECK_EQ(got, n);
    CHECK_MEM(in, payload, n);
}

static void transport_message(struct vector *v, const uint8_t *payload, size_t n,
                              const uint8_t *cipher, size_t cipher_len)
{
    uint8_t send[32], recv[32], other_send[32], other_recv[32], out[256], nonce[12] = {0};
    size_t from = v->messages % 2;
    noise_split(&v->side[from], send, recv);
    noise_split(&v->side[1 - from], other_send, other_recv);
    CHECK_MEM(send, other_recv, 32);
    CHECK_MEM(recv, other_send, 32);
    le_store(nonce + 4, v->transport[from]++, 8);
    crypto_aead_chacha20poly1305_ietf_encrypt(out, NULL, payload, n, NULL, 0, NULL, nonce, send);
    CHECK_EQ(n + 16, cipher_len);
    CHECK_MEM(out, cipher, cipher_len);
}

static void message(struct vector *v, const char *payload_hex, const char *cipher_hex)
{
    uint8_t payload[64], cipher[256];
    size_t n = unhex(payload, sizeof payload, payload_hex);
    size_t cipher_len = unhex(cipher, sizeof cipher, cipher_hex);
    if (v->messages == 0)
        begin(v);
    if (noise_done(&v->side[0]))
        transport_message(v, payload, n, cipher, cipher_len);
    else
        handshake_message(v, payload, n, cipher, cipher_len);
    v->messages++;
}

static void line_of(struct vector *v, const char *key, const char *value, const char *second,
                    unsigned *checked)
{
    const struct {
        const char *key;
        uint8_t *at;
    } keys[] = {{"psk", v->psk},
                {"init_static", v->init_static},
                {"init_ephemeral", v->init_ephemeral},
                {"resp_static", v->resp_static},
                {"resp_ephemeral", v->resp_ephemeral}};
    for (unsigned i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (strcmp(key, keys[i].key) == 0)
            CHECK_EQ(unhex(keys[i].at, 32, value), 32);
    if (strcmp(key, "protocol") == 0) {
        *v = (struct vector){0};
        snprintf(v->protocol, sizeof v->protocol, "%s", value);
    } else if (strcmp(key, "prologue") == 0) {
        v->prologue_len = unhex(v->prologue, sizeof v->prologue, value);
    } else if (strcmp(key, "message") == 0) {
        message(v, value, second);
    } else if (strcmp(key, "handshake_hash") == 0) {
        uint8_t hash[NOISE_HASH_BYTES];
        unhex(hash, sizeof hash, value);
        CHECK_MEM(v->side[0].h, hash, sizeof hash);
        CHECK_MEM(v->side[1].h, hash, sizeof hash);
        *checked += v->messages;
    }
}

static void agrees_with_published_vectors(void)
{
    static char line[LINE_MAX_BYTES], key[32], value[512], second[512];
    struct vector v = {0};
    unsigned checked = 0;
    FILE *f = fopen(TEST_VECTORS "/noise.txt", "r");
    if (!CHECK(f != NULL))
        return;
    while (fgets(line, sizeof line, f))
        if (line[0] != '#' && sscanf(line, "%31s %511s %511s", key, value, second) >= 2)
            line_of(&v, key, value, second, &checked);
    fclose(f);
    CHECK_EQ(checked, 12); /* messages of both vectors */
}

/* ---- what does not belong to the handshake ------------------------------------- */

static void fresh(struct noise side[2], enum noise_pattern p, const char *prologue, uint8_t psk_byte)
{
    uint8_t secret[2][32], e[2][32], psk[32] = {1};
    struct noise_keypair own[2];
    for (unsigned i = 0; i < 2; i++) {
        memset(secret[i], 7 + (int)i, 32);
        memset(e[i], 40 + (int)i, 32);
        noise_pair(&own[i], secret[i]);
    }
    noise_begin(&side[0], p, true, (const uint8_t *)"same", 4, &own[0], e[0], own[1].public_key, psk);
    psk[0] = psk_byte;
    noise_begin(&side[1], p, false, (const uint8_t *)prologue, strlen(prologue), &own[1], e[1],
                NULL, psk);
}

/* Messages that pass before one is refused. */
static unsigned passes(struct noise side[2])
{
    uint8_t out[256], in[64];
    size_t n, len;
    unsigned i = 0;
    for (; !noise_done(&side[0]) || !noise_done(&side[1]); i++) {
        n = noise_write(&side[i % 2], out, sizeof out, (const uint8_t *)"x", 1);
        if (!n || !noise_read(&side[1 - i % 2], out, n, in, sizeof in, &len))
            break;
    }
    return i;
}

static void needs_the_same_prologue_and_key(void)
{
    static const struct {
        enum noise_pattern p;
        const char *prologue;
        uint8_t psk;
        unsigned passes;
    } cases[] = {{NOISE_IKPSK2, "same", 1, 2}, {NOISE_XXPSK3, "same", 1, 3},
                 {NOISE_IKPSK2, "other", 1, 0}, {NOISE_XXPSK3, "other", 1, 0},
                 {NOISE_IKPSK2, "same", 2, 1}, {NOISE_XXPSK3, "same", 2, 2}};
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct noise side[2];
        fresh(side, cases[i].p, cases[i].prologue, cases[i].psk);
        CHECK_EQ(passes(side), cases[i].passes);
    }
}

static void refuses_every_flipped_bit(void)
{
    for (enum noise_pattern p = NOISE_IKPSK2; p <= NOISE_XXPSK3; p++) {
        struct noise side[2];
        uint8_t out[256], in[64];
        size_t len;
        fresh(side, p, "same", 1);
        for (unsigned m = 0; !noise_done(&side[0]) || !noise_done(&side[1]); m++) {
            size_t n = noise_write(&side[m % 2], out, sizeof out, (const uint8_t *)"load", 4);
            unsigned taken = 0;
            for (size_t bit = 0; bit < n * 8; bit++) {
                struct noise copy = side[1 - m % 2];
                out[bit / 8] ^= (uint8_t)(1 << bit % 8);
                /* X25519 ignores the highest bit of a public key, the hash does not */
                taken += noise_read(&copy, out, n, in, sizeof in, &len);
                out[bit / 8] ^= (uint8_t)(1 << bit % 8);
            }
            CHECK_EQ(taken, 0);
            for (size_t cut = 0; cut < n; cut++) {
                struct noise copy = side[1 - m % 2];
                taken += noise_read(&copy, out, cut, in, sizeof in, &len);
            }
            CHECK_EQ(taken, 0);
            CHECK(noise_read(&side[1 - m % 2], out, n, in, sizeof in, &len));
        }
    }
}

static void refuses_a_key_of_small_order(void)
{
    struct noise side[2];
    uint8_t out[256], in[64];
    size_t len;
    fresh(side, NOISE_IKPSK2, "same", 1);
    memset(side[0].e.public_key, 0, 32);
    size_t n = noise_write(&side[0], out, sizeof out, NULL, 0);
    CHECK(n > 0);
    CHECK(!noise_read(&side[1], out, n, in, sizeof in, &len));
}

static void only_in_turn(void)
{
    struct noise side[2];
    uint8_t out[256], in[64];
    size_t len, n;
    fresh(side, NOISE_IKPSK2, "same", 1);
    CHECK_EQ(noise_write(&side[1], out, sizeof out, NULL, 0), 0);
    n = noise_write(&side[0], out, sizeof out, NULL, 0);
    CHECK_EQ(n, 96);
    CHECK_EQ(noise_write(&side[0], out, sizeof out, NULL, 0), 0);
    CHECK(!noise_read(&side[0], out, n, in, sizeof in, &len));
    CHECK(noise_read(&side[1], out, n, in, sizeof in, &len));
    CHECK(!noise_read(&side[1], out, n, in, sizeof in, &len));
}

TEST_SUITE(noise) = {
    TEST(agrees_with_published_vectors),
    TEST(needs_the_same_prologue_and_key),
    TEST(refuses_every_flipped_bit),
    TEST(refuses_a_key_of_small_order),
    TEST(only_in_turn),
    TEST_END,
};
