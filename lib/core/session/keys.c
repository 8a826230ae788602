#include "session/keys.h"
#include "base/bytes.h"
#include <sodium.h>

static int digit_of(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool key_parse(uint8_t key[KEY_BYTES], const char *text)
{
    uint8_t bytes[KEY_BYTES];
    for (unsigned i = 0; i < KEY_BYTES; i++) {
        int high = digit_of(text[2 * i]);
        int low = high < 0 ? -1 : digit_of(text[2 * i + 1]);
        if (low < 0)
            return false;
        bytes[i] = (uint8_t)(high << 4 | low);
    }
    if (text[KEY_DIGITS])
        return false;
    memcpy(key, bytes, KEY_BYTES);
    sodium_memzero(bytes, sizeof bytes);
    return true;
}

void key_format(char text[KEY_DIGITS + 1], const uint8_t key[KEY_BYTES])
{
    static const char digits[] = "0123456789abcdef";
    for (unsigned i = 0; i < KEY_BYTES; i++) {
        text[2 * i] = digits[key[i] >> 4];
        text[2 * i + 1] = digits[key[i] & 15];
    }
    text[KEY_DIGITS] = 0;
}

void key_public(uint8_t public_key[KEY_BYTES], const uint8_t secret[KEY_BYTES])
{
    crypto_scalarmult_curve25519_base(public_key, secret);
}

uint64_t key_node_id(const uint8_t public_key[KEY_BYTES])
{
    uint8_t hash[32];
    crypto_generichash_blake2b(hash, sizeof hash, public_key, KEY_BYTES, NULL, 0);
    uint64_t id = le_load(hash, 8);
    return id ? id : 1;
}
