/* The outer header, the tag, and the expansion of shortened round numbers. */
#include "wire/wire.h"
#include "base/bytes.h"
#include <xxhash.h>

static void tag_of(uint8_t tag[WIRE_TAG_BYTES], const uint8_t *p, size_t n)
{
    XXH128_hash_t h = XXH3_128bits(p, n);
    le_store(tag, h.low64, 8);
    le_store(tag + 8, h.high64, 8);
}

void datagram_header(uint8_t *dgram, const struct wire_header *h)
{
    dgram[0] = (uint8_t)(h->version << 4 | (h->type & 15));
    memset(dgram + 1, 0, 3);
    le_store(dgram + 4, h->index, 4);
    le_store(dgram + 8, h->counter, 8);
}

size_t datagram_seal(uint8_t *dgram, size_t body_len, const struct wire_header *h)
{
    if (body_len > WIRE_BODY_MAX)
        return 0;
    size_t n = WIRE_HEADER_BYTES + body_len;
    datagram_header(dgram, h);
    tag_of(dgram + n, dgram, n);
    return n + WIRE_TAG_BYTES;
}

/* HELLO has no receiver yet, and a CLOSE may answer one. */
static bool index_fits(uint8_t type, uint32_t index)
{
    if (type == WIRE_HELLO)
        return index == 0;
    return index != 0 || type == WIRE_CLOSE;
}

int datagram_peek(const uint8_t *dgram, size_t n, struct wire_header *h)
{
    if (n < WIRE_HEADER_BYTES + WIRE_TAG_BYTES || n > WIRE_DATAGRAM_MAX)
        return SLEET_EMALFORMED;
    *h = (struct wire_header){
        .version = dgram[0] >> 4,
        .type = dgram[0] & 15,
        .index = (uint32_t)le_load(dgram + 4, 4),
        .counter = le_load(dgram + 8, 8),
    };
    if (h->version != WIRE_VERSION)
        return SLEET_EPROTO;
    if (dgram[1] || dgram[2] || dgram[3] || h->counter == 0)
        return SLEET_EMALFORMED;
    if (h->type < WIRE_HELLO || h->type > WIRE_STATE || !index_fits(h->type, h->index))
        return SLEET_EMALFORMED;
    return SLEET_OK;
}

int datagram_open(const uint8_t *dgram, size_t n, struct wire_header *h, const uint8_t **body,
                  size_t *len)
{
    uint8_t tag[WIRE_TAG_BYTES];
    if (n < WIRE_HEADER_BYTES + WIRE_TAG_BYTES || n > WIRE_DATAGRAM_MAX)
        return SLEET_EMALFORMED;
    tag_of(tag, dgram, n - WIRE_TAG_BYTES);
    if (memcmp(tag, dgram + n - WIRE_TAG_BYTES, WIRE_TAG_BYTES) != 0)
        return SLEET_EMALFORMED;
    *body = dgram + WIRE_HEADER_BYTES;
    *len = n - WIRE_HEADER_BYTES - WIRE_TAG_BYTES;
    return datagram_peek(dgram, n, h);
}

uint64_t round_expand(uint64_t near, uint32_t low)
{
    uint32_t up = low - (uint32_t)near; /* steps upwards, modulo 2^32 */
    if (up <= UINT32_C(0x80000000))
        return up <= UINT64_MAX - near ? near + up : near + up - (UINT64_C(1) << 32);
    uint64_t down = (UINT64_C(1) << 32) - up;
    return down <= near ? near - down : near + up;
}
