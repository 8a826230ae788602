/* forge.h - a relay on the way that reads and rewrites datagrams (`security = none`). */
#ifndef TESTS_SIM_FORGE_H
#define TESTS_SIM_FORGE_H
#include "helpers.h"
#include "wire/wire.h"
#include <xxhash.h>

/* A datagram taken apart; change what you like and put it together again. */
struct opened {
    struct wire_header head;
    size_t len; /* bytes of the body */
    uint8_t body[WIRE_BODY_MAX];
};

static inline bool forge_open(const struct sim_datagram *d, struct opened *o)
{
    const uint8_t *body;
    if (datagram_open(d->data, d->len, &o->head, &body, &o->len) != SLEET_OK)
        return false;
    memcpy(o->body, body, o->len);
    return true;
}

/* With a right tag. */
static inline void forge_seal(struct sim_datagram *d, const struct opened *o)
{
    memcpy(d->data + WIRE_HEADER_BYTES, o->body, o->len);
    d->len = (uint32_t)datagram_seal(d->data, o->len, &o->head);
}

/* A right tag for whatever stands before it. */
static inline void forge_retag(struct sim_datagram *d)
{
    if (d->len < WIRE_TAG_BYTES)
        return;
    XXH128_hash_t tag = XXH3_128bits(d->data, d->len - WIRE_TAG_BYTES);
    memcpy(d->data + d->len - WIRE_TAG_BYTES, &tag, sizeof tag); /* low half first */
}
#endif
