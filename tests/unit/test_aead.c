#include "base/bytes.h"
#include "session/aead.h"
#include "sleet_test.h"
#include "wire/wire.h"
#include <sodium.h>
#include <string.h>

/* ---- published vectors ----------------------------------------------------------- */

static const struct vector {
    const char *what;
    enum aead_cipher cipher;
    const char *key, *nonce, *ad, *plain, *sealed;
} vectors[] = {
    {"RFC 8439, 2.8.2", AEAD_CHACHA20POLY1305,
     "808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9f", "070000004041424344454647",
     "50515253c0c1c2c3c4c5c6c7",
     "4c616469657320616e642047656e746c656d656e206f662074686520636c6173"
     "73206f66202739393a204966204920636f756c64206f6666657220796f75206f"
     "6e6c79206f6e652074697020666f7220746865206675747572652c2073756e73"
     "637265656e20776f756c642062652069742e",
     "d31a8d34648e60db7b86afbc53ef7ec2a4aded51296e08fea9e2b5a736ee62d6"
     "3dbea45e8ca9671282fafb69da92728b1a71de0a9e060b2905d6a5b67ecd3b36"
     "92ddbd7f2d778b8c9803aee328091b58fab324e4fad675945585808b4831d7bc"
     "3ff4def08e4b7a9de576d26586cec64b61161ae10b594f09e26a7e902ecbd0600691"},
    {"McGrew and Viega, GCM, test case 16", AEAD_AES256GCM,
     "feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308", "cafebabefacedbaddecaf888",
     "feedfacedeadbeeffeedfacedeadbeefabaddad2",
     "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72"
     "1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39",
     "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa"
     "8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662"
     "76fc6ece0f4e1768cddf8853bb2d551b"},
};

static size_t unhex(uint8_t *out, size_t cap, const char *hex)
{
    size_t n = 0;
    sodium_hex2bin(out, cap, hex, strlen(hex), NULL, &n, NULL);
    return n;
}

static bool available(enum aead_cipher c)
{
    return c == AEAD_NONE || (aead_available() >> c & 1);
}

static void agrees_with_published_vectors(void)
{
    unsigned tried = 0;
    CHECK(sodium_init() >= 0); /* looks at what the CPU has */
    for (unsigned i = 0; i < sizeof vectors / sizeof vectors[0]; i++) {
        const struct vector *v = &vectors[i];
        uint8_t key[32], nonce[12], ad[32], plain[128], sealed[160], out[160];
        struct aead_text t = {key, nonce, ad, plain, 0, 0};
        if (!available(v->cipher))
            continue;
        tried++;
        unhex(key, sizeof key, v->key);
        unhex(nonce, sizeof nonce, v->nonce);
        t.ad_len = unhex(ad, sizeof ad, v->ad);
        t.len = unhex(plain, sizeof plain, v->plain);
        CHECK_EQ(unhex(sealed, sizeof sealed, v->sealed), t.len + 16);
        CHECK(aead_seal_text(v->cipher, &t, out));
        CHECK_MEM(out, sealed, t.len + 16);
        t.in = sealed;
        CHECK(aead_open_text(v->cipher, &t, out));
        CHECK_MEM(out, plain, t.len);
    }
    CHECK(tried >= 1);
}

/* ---- datagrams ---------------------------------------------------------------------- */

static size_t make(uint8_t *dgram, enum aead_cipher c, const uint8_t *key, uint64_t counter,
                   size_t body_len)
{
    memset(dgram, 0, WIRE_DATAGRAM_MAX);
    dgram[0] = 0x15;
    le_store(dgram + 8, counter, 8);
    for (size_t i = 0; i < body_len; i++)
        dgram[WIRE_HEADER_BYTES + i] = (uint8_t)i;
    return aead_seal(c, key, counter, dgram, body_len);
}

static void seals_and_opens(void)
{
    static const size_t lengths[] = {0, 1, 20, 1192};
    uint8_t key[32] = {3}, dgram[WIRE_DATAGRAM_MAX], room[WIRE_BODY_MAX];
    for (enum aead_cipher c = AEAD_NONE; c < AEAD_CIPHERS; c++)
        for (unsigned i = 0; i < 4 && available(c); i++) {
            size_t n = make(dgram, c, key, 9, lengths[i]);
            CHECK_EQ(n, lengths[i] + 32);
            const uint8_t *body = aead_open(c, key, 9, dgram, n, room);
            if (!CHECK(body != NULL))
                continue;
            for (size_t k = 0; k < lengths[i]; k++)
                if (body[k] != (uint8_t)k)
                    CHECK(false);
            CHECK_EQ(dgram[0], 0x15); /* the header stays in the clear */
        }
}

static void refuses_what_was_changed(void)
{
    uint8_t key[32] = {3}, other[32] = {4}, dgram[WIRE_DATAGRAM_MAX], room[WIRE_BODY_MAX];
    for (enum aead_cipher c = AEAD_NONE; c < AEAD_CIPHERS; c++) {
        size_t n = available(c) ? make(dgram, c, key, 9, 40) : 0;
        unsigned taken = 0;
        for (size_t bit = 0; bit < n * 8; bit++) {
            dgram[bit / 8] ^= (uint8_t)(1 << bit % 8);
            taken += aead_open(c, key, 9, dgram, n, room) != NULL;
            dgram[bit / 8] ^= (uint8_t)(1 << bit % 8);
        }
        for (size_t cut = 0; cut < n; cut++)
            taken += aead_open(c, key, 9, dgram, cut, room) != NULL;
        CHECK_EQ(taken, 0);
        if (c == AEAD_NONE || !n)
            continue;
        CHECK(!aead_open(c, key, 10, dgram, n, room));
        CHECK(!aead_open(c, other, 9, dgram, n, room));
        CHECK(aead_open(c, key, 9, dgram, n, room));
    }
}

static void nonce_is_the_counter(void)
{
    uint8_t key[32] = {3}, dgram[WIRE_DATAGRAM_MAX], out[64];
    uint8_t nonce[12] = {0, 0, 0, 0, 8, 7, 6, 5, 4, 3, 2, 1};
    size_t n = make(dgram, AEAD_CHACHA20POLY1305, key, UINT64_C(0x0102030405060708), 4);
    struct aead_text t = {key, nonce, dgram, dgram + WIRE_HEADER_BYTES, WIRE_HEADER_BYTES, 4};
    CHECK_EQ(n, 36);
    CHECK(aead_open_text(AEAD_CHACHA20POLY1305, &t, out));
    CHECK_MEM(out, ((uint8_t[]){0, 1, 2, 3}), 4);
}

static void chooses_what_both_have(void)
{
    uint8_t both = 1 << AEAD_CHACHA20POLY1305 | 1 << AEAD_AES256GCM, one = 1 << AEAD_CHACHA20POLY1305;
    CHECK_EQ(aead_choose(both, both), AEAD_AES256GCM);
    CHECK_EQ(aead_choose(both, one), AEAD_CHACHA20POLY1305);
    CHECK_EQ(aead_choose(one, both), AEAD_CHACHA20POLY1305);
    CHECK_EQ(aead_choose(both, 0), AEAD_CHACHA20POLY1305);
    CHECK(aead_available() & one);
    CHECK(!(aead_available() & 1 << AEAD_NONE));
}

TEST_SUITE(aead) = {
    TEST(agrees_with_published_vectors),
    TEST(seals_and_opens),
    TEST(refuses_what_was_changed),
    TEST(nonce_is_the_counter),
    TEST(chooses_what_both_have),
    TEST_END,
};
