#include "member/orders.h"
#include "base/bytes.h"
#include <assert.h>
#include <sodium.h>

static_assert(WIRE_SIGNATURE_BYTES == crypto_sign_BYTES, "ed25519");
static_assert(KEY_BYTES == crypto_sign_PUBLICKEYBYTES && KEY_BYTES == crypto_sign_SEEDBYTES, "ed25519");

uint64_t job_tag(const char *job)
{
    static const char label[] = "sleet job";
    uint8_t hash[32];
    crypto_generichash_blake2b_state s;
    crypto_generichash_blake2b_init(&s, NULL, 0, sizeof hash);
    crypto_generichash_blake2b_update(&s, (const uint8_t *)label, sizeof label);
    crypto_generichash_blake2b_update(&s, (const uint8_t *)job, strlen(job) + 1);
    crypto_generichash_blake2b_final(&s, hash, sizeof hash);
    return le_load(hash, 8);
}

void orders_init(struct orders *o, const char *job, const uint8_t *operator_key)
{
    *o = (struct orders){.job = job_tag(job), .has_operator = operator_key != NULL};
    if (operator_key)
        memcpy(o->operator_key, operator_key, KEY_BYTES);
}

static bool right(const struct orders *o, const struct wire_record *r)
{
    uint8_t bytes[WIRE_SIGNED_BYTES];
    return o->has_operator && r->job == o->job && wire_record_signed(bytes, r) &&
           crypto_sign_verify_detached(r->signature, bytes, sizeof bytes, o->operator_key) == 0;
}

static bool same(const struct wire_record *a, const struct wire_record *b)
{
    return a->kind == b->kind && a->serial == b->serial && a->subject == b->subject &&
           a->job == b->job && memcmp(a->value, b->value, sizeof a->value) == 0;
}

/* Whoever was evicted before the newest change of the key has not got the new key. */
static uint32_t settled(const struct orders *o)
{
    const struct wire_record *rekey = orders_rekey(o);
    uint32_t oldest = ORDERS_MAX;
    for (uint32_t i = 0; rekey && i < o->n; i++)
        if (o->list[i].kind == RECORD_EVICT && o->list[i].serial < rekey->serial &&
            (oldest == ORDERS_MAX || o->list[i].serial < o->list[oldest].serial))
            oldest = i;
    return oldest;
}

enum orders_verdict orders_take(struct orders *o, const struct wire_record *r, uint32_t *index)
{
    uint32_t at = 0;
    while (at < o->n && (o->list[at].kind != r->kind || o->list[at].subject != r->subject))
        at++;
    *index = at;
    if (at < o->n && same(&o->list[at], r))
        return ORDERS_KNOWN;
    if (!right(o, r))
        return ORDERS_FOREIGN;
    if (at < o->n && o->list[at].serial >= r->serial)
        return ORDERS_OLD; /* of two with one serial the first stays: no operator's tool makes them */
    if (at == ORDERS_MAX)
        *index = at = settled(o);
    if (at == ORDERS_MAX)
        return ORDERS_FULL;
    o->list[at] = *r;
    if (at == o->n)
        o->n++;
    return ORDERS_NEW;
}

uint32_t orders_find(const struct orders *o, const struct wire_record *r)
{
    for (uint32_t i = 0; i < o->n; i++)
        if (o->list[i].kind == r->kind && o->list[i].serial == r->serial &&
            o->list[i].subject == r->subject)
            return i;
    return ORDERS_MAX;
}

bool orders_evicted(const struct orders *o, uint64_t node_id)
{
    for (uint32_t i = 0; i < o->n; i++)
        if (o->list[i].kind == RECORD_EVICT && o->list[i].subject == node_id)
            return true;
    return false;
}

const struct wire_record *orders_rekey(const struct orders *o)
{
    for (uint32_t i = 0; i < o->n; i++)
        if (o->list[i].kind == RECORD_REKEY)
            return &o->list[i];
    return NULL;
}

uint64_t orders_serial(const struct orders *o)
{
    uint64_t highest = 0;
    for (uint32_t i = 0; i < o->n; i++)
        if (o->list[i].serial > highest)
            highest = o->list[i].serial;
    return highest;
}

bool record_sign(struct wire_record *r, const uint8_t seed[KEY_BYTES])
{
    uint8_t bytes[WIRE_SIGNED_BYTES], public_key[KEY_BYTES], secret[crypto_sign_SECRETKEYBYTES];
    if (!wire_record_signed(bytes, r))
        return false;
    crypto_sign_seed_keypair(public_key, secret, seed);
    crypto_sign_detached(r->signature, NULL, bytes, sizeof bytes, secret);
    sodium_memzero(secret, sizeof secret);
    return true;
}
