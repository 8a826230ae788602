#include "base/bytes.h"
#include "session/cookie.h"
#include "sleet_test.h"
#include <string.h>

static const uint8_t seed[32] = {1, 2, 3};
static struct secret_stream stream;
static const sleet_addr here = {.ip = {0xfd}, .port = 7000};

static sleet_time at(double seconds)
{
    return (sleet_time){(int64_t)(seconds * 1e9)};
}

/* What the owner of `cookie` puts behind a message. */
static void second_mac(uint8_t mac[MAC_BYTES], const uint8_t cookie[COOKIE_BYTES])
{
    mac_of(mac, cookie, COOKIE_BYTES, (const uint8_t *)"hello", 5);
}

static bool right(struct cookie_jar *j, const uint8_t mac[MAC_BYTES], const sleet_addr *a, double t)
{
    return cookie_right(j, mac, (const uint8_t *)"hello", 5, a, at(t));
}

static void cookie_is_of_an_address(void)
{
    struct cookie_jar jar;
    uint8_t cookie[COOKIE_BYTES], mac[MAC_BYTES], no_mac[MAC_BYTES] = {0};
    sleet_addr port = here, ip = here, scope = here;
    port.port++;
    ip.ip[15] ^= 1;
    scope.scope = 1;
    secret_init(&stream, seed);
    cookie_init(&jar, &stream, at(0));
    cookie_make(&jar, cookie, &here, at(1));
    second_mac(mac, cookie);
    CHECK(right(&jar, mac, &here, 2));
    CHECK(!right(&jar, mac, &port, 2));
    CHECK(!right(&jar, mac, &ip, 2));
    CHECK(!right(&jar, mac, &scope, 2));
    CHECK(!right(&jar, no_mac, &here, 2));
    CHECK(!cookie_right(&jar, mac, (const uint8_t *)"hallo", 5, &here, at(2)));
}

static void cookie_grows_old(void)
{
    struct cookie_jar jar;
    uint8_t cookie[COOKIE_BYTES], mac[MAC_BYTES];
    secret_init(&stream, seed);
    cookie_init(&jar, &stream, at(0));
    cookie_make(&jar, cookie, &here, at(119));
    second_mac(mac, cookie);
    CHECK(right(&jar, mac, &here, 121));
    CHECK(right(&jar, mac, &here, 240));
    CHECK(!right(&jar, mac, &here, 242));
    cookie_make(&jar, cookie, &here, at(300)); /* the secret is that of second 242 */
    second_mac(mac, cookie);
    CHECK(right(&jar, mac, &here, 301));
    CHECK(!right(&jar, mac, &here, 1000)); /* nobody asked in between: both are too old */
}

static void mac_needs_the_key_of_its_use(void)
{
    uint8_t job[32] = {9}, key[32], other[32], mac[MAC_BYTES];
    mac_key(key, job, "one use");
    mac_key(other, job, "other use");
    CHECK(memcmp(key, other, 32) != 0);
    mac_of(mac, key, 32, (const uint8_t *)"text", 4);
    CHECK(mac_right(mac, key, 32, (const uint8_t *)"text", 4));
    CHECK(!mac_right(mac, other, 32, (const uint8_t *)"text", 4));
    CHECK(!mac_right(mac, key, 32, (const uint8_t *)"test", 4));
}

static void admits_a_burst_then_a_rate(void)
{
    struct admission a;
    unsigned let_in = 0;
    admission_init(&a, 10, 100, at(0));
    for (unsigned i = 0; i < 1000; i++)
        let_in += admission_take(&a, at(0));
    CHECK_EQ(let_in, 10);
    for (unsigned i = 1; i <= 10000; i++)
        let_in += admission_take(&a, at(i / 10000.0));
    CHECK(let_in >= 109 && let_in <= 110);
    CHECK(admission_take(&a, at(9)));
}

/* The stream's own words are published; what is checked is that a draw cannot be had again. */
static void secrets_do_not_come_again(void)
{
    struct secret_stream a, b;
    uint8_t first[32], second[32], same[32];
    secret_init(&a, seed);
    secret_draw(&a, first, 32);
    secret_draw(&a, second, 32);
    CHECK(memcmp(first, second, 32) != 0);
    CHECK(memcmp(a.key, seed, 32) != 0);
    secret_init(&b, seed);
    secret_draw(&b, same, 32);
    CHECK_MEM(first, same, 32);
    secret_init(&b, a.key);
    secret_draw(&b, same, 32);
    CHECK(memcmp(first, same, 32) != 0 && memcmp(second, same, 32) != 0);
}

TEST_SUITE(cookie) = {
    TEST(cookie_is_of_an_address),
    TEST(cookie_grows_old),
    TEST(mac_needs_the_key_of_its_use),
    TEST(admits_a_burst_then_a_rate),
    TEST(secrets_do_not_come_again),
    TEST_END,
};
