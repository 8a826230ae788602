#include "session/keys.h"
#include "sleet_test.h"
#include <string.h>

/* RFC 7748, 6.1: Alice's keys. */
#define SECRET "77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a"
#define PUBLIC "8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a"

/* hashlib.blake2b(bytes.fromhex(PUBLIC), digest_size=32).digest()[:8], little-endian */
#define NODE_ID UINT64_C(0x6449114c9e86917a)

static void text_and_back(void)
{
    uint8_t key[KEY_BYTES];
    char text[KEY_DIGITS + 1];
    CHECK(key_parse(key, SECRET));
    CHECK_EQ(key[0], 0x77);
    CHECK_EQ(key[31], 0x2a);
    key_format(text, key);
    CHECK_STR(text, SECRET);
}

static void only_64_lower_case_digits(void)
{
    static const char *const wrong[] = {"", "7", (SECRET "0"), (SECRET "\n"), (" " SECRET),
        "7G076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a",
        "77076D0A7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a"};
    uint8_t key[KEY_BYTES] = {1}, before[KEY_BYTES] = {1};
    for (unsigned i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        CHECK(!key_parse(key, wrong[i]));
    for (unsigned n = 0; n < KEY_DIGITS; n++) {
        char text[KEY_DIGITS + 1] = SECRET;
        text[n] = 0;
        CHECK(!key_parse(key, text));
    }
    CHECK_MEM(key, before, KEY_BYTES);
}

static void public_and_id(void)
{
    uint8_t secret[KEY_BYTES], public_key[KEY_BYTES], want[KEY_BYTES];
    CHECK(key_parse(secret, SECRET) && key_parse(want, PUBLIC));
    key_public(public_key, secret);
    CHECK_MEM(public_key, want, KEY_BYTES);
    CHECK_EQ(key_node_id(public_key), NODE_ID);
}

TEST_SUITE(keys) = {
    TEST(text_and_back),
    TEST(only_64_lower_case_digits),
    TEST(public_and_id),
    TEST_END,
};
