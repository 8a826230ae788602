#include "session/cookie.h"
#include "base/bytes.h"
#include <sodium.h>

void mac_key(uint8_t key[MAC_KEY_BYTES], const uint8_t job_key[MAC_KEY_BYTES], const char *label)
{
    crypto_generichash_blake2b(key, MAC_KEY_BYTES, (const uint8_t *)label, strlen(label), job_key,
                               MAC_KEY_BYTES);
}

void mac_of(uint8_t mac[MAC_BYTES], const uint8_t *key, size_t key_len, const uint8_t *p, size_t n)
{
    crypto_generichash_blake2b(mac, MAC_BYTES, p, n, key, key_len);
}

bool mac_right(const uint8_t mac[MAC_BYTES], const uint8_t *key, size_t key_len, const uint8_t *p,
               size_t n)
{
    uint8_t want[MAC_BYTES];
    mac_of(want, key, key_len, p, n);
    return sodium_memcmp(want, mac, MAC_BYTES) == 0;
}

/* ---- cookies ------------------------------------------------------------------ */

static void renew(struct cookie_jar *j, sleet_time now)
{
    if (j->filled[0] && time_since(now, j->changed) < COOKIE_LIFE)
        return;
    j->filled[1] = j->filled[0] && time_since(now, j->changed) < 2 * COOKIE_LIFE;
    memcpy(j->secret[1], j->secret[0], MAC_KEY_BYTES);
    secret_draw(j->stream, j->secret[0], MAC_KEY_BYTES);
    j->filled[0] = true;
    j->changed = now;
}

void cookie_init(struct cookie_jar *j, struct secret_stream *stream, sleet_time now)
{
    *j = (struct cookie_jar){.stream = stream};
    renew(j, now);
}

static void cookie_of(uint8_t cookie[COOKIE_BYTES], const uint8_t secret[MAC_KEY_BYTES],
                      const sleet_addr *a)
{
    uint8_t bytes[16 + 4 + 2];
    memcpy(bytes, a->ip, 16);
    le_store(bytes + 16, a->scope, 4);
    le_store(bytes + 20, a->port, 2);
    mac_of(cookie, secret, MAC_KEY_BYTES, bytes, sizeof bytes);
}

void cookie_make(struct cookie_jar *j, uint8_t cookie[COOKIE_BYTES], const sleet_addr *a,
                 sleet_time now)
{
    renew(j, now);
    cookie_of(cookie, j->secret[0], a);
}

bool cookie_right(struct cookie_jar *j, const uint8_t mac[MAC_BYTES], const uint8_t *p, size_t n,
                  const sleet_addr *a, sleet_time now)
{
    uint8_t cookie[COOKIE_BYTES];
    renew(j, now);
    for (unsigned i = 0; i < 2; i++) {
        if (!j->filled[i])
            continue;
        cookie_of(cookie, j->secret[i], a);
        if (mac_right(mac, cookie, COOKIE_BYTES, p, n))
            return true;
    }
    return false;
}

/* ---- load ---------------------------------------------------------------------- */

void admission_init(struct admission *a, double burst, double a_second, sleet_time now)
{
    *a = (struct admission){.tokens = burst, .burst = burst, .a_second = a_second, .last = now};
}

bool admission_take(struct admission *a, sleet_time now)
{
    if (time_before(a->last, now)) {
        a->tokens += (double)time_since(now, a->last) / 1e9 * a->a_second;
        a->last = now;
    }
    if (a->tokens > a->burst)
        a->tokens = a->burst;
    if (a->tokens < 1)
        return false;
    a->tokens--;
    return true;
}
