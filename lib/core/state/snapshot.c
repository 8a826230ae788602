/* What a node publishes: versions in borrowed memory, and their manifests. */
#include "base/bytes.h"
#include "state/state.h"
#include <stdlib.h>

#define DIGEST_BYTES 16

static void put_digest_at(uint8_t *manifest, uint32_t index, struct wire_digest d)
{
    le_store(manifest + (size_t)index * DIGEST_BYTES, d.low, 8);
    le_store(manifest + (size_t)index * DIGEST_BYTES + 8, d.high, 8);
}

struct wire_digest manifest_at(const uint8_t *manifest, uint32_t index)
{
    const uint8_t *p = manifest + (size_t)index * DIGEST_BYTES;
    return (struct wire_digest){le_load(p, 8), le_load(p + 8, 8)};
}

static void forget(struct snapshot *s)
{
    free(s->manifest);
    *s = (struct snapshot){.replaced_at = TIME_NEVER};
}

void published_fini(struct published *p)
{
    forget(&p->snap[0]);
    forget(&p->snap[1]);
}

/* Somebody is fetching it, and has not taken all the time there is. */
static bool pinned(const struct snapshot *s, uint64_t rate_bps, sleet_time now)
{
    if (!s->data || time_since(now, s->asked_at) > STATE_PIN)
        return false;
    double seconds = 2.0 * 8.0 * (double)s->bytes / (double)rate_bps;
    sleet_duration most = STATE_PIN_MAX + (sleet_duration)(seconds * 1e9);
    return time_is_never(s->replaced_at) || time_since(now, s->replaced_at) < most;
}

bool published_reserve(struct published *p, uint64_t rate_bps, sleet_time now)
{
    if (pinned(&p->snap[1 - p->newest], rate_bps, now))
        return false;
    forget(&p->snap[1 - p->newest]);
    return true;
}

int published_put(struct published *p, const void *data, uint64_t bytes, uint64_t version,
                  uint64_t rate_bps, sleet_time now)
{
    if (!data || !bytes || !version || bytes > WIRE_STATE_BYTES_MAX)
        return SLEET_EINVAL;
    if (!published_reserve(p, rate_bps, now))
        return SLEET_EAGAIN;
    uint8_t *manifest = malloc((size_t)state_blocks(bytes) * DIGEST_BYTES);
    if (!manifest)
        return SLEET_ENOMEM;
    p->snap[p->newest].replaced_at = now;
    if (!snapshot_ready(&p->snap[p->newest]))
        forget(&p->snap[p->newest]); /* nobody has heard of it */
    p->newest = 1 - p->newest;
    struct snapshot *s = &p->snap[p->newest];
    forget(s);
    s->data = data;
    s->bytes = bytes;
    s->version = version;
    s->manifest = manifest;
    s->asked_at = (sleet_time){INT64_MIN / 2};
    published_hash(p);
    return SLEET_OK;
}

bool published_hash(struct published *p)
{
    struct snapshot *s = &p->snap[p->newest];
    if (!published_hashing(p))
        return false;
    uint32_t blocks = state_blocks(s->bytes);
    for (uint32_t n = STATE_HASH_SLICE / WIRE_STATE_BLOCK; n > 0 && s->hashed < blocks; n--) {
        const uint8_t *at = s->data + (uint64_t)s->hashed * WIRE_STATE_BLOCK;
        put_digest_at(s->manifest, s->hashed, state_digest(at, state_block_bytes(s->bytes, s->hashed)));
        s->hashed++;
    }
    if (s->hashed == blocks)
        s->digest = state_digest(s->manifest, (size_t)blocks * DIGEST_BYTES);
    return true;
}

const struct snapshot *published_newest(const struct published *p)
{
    for (uint32_t i = 0; i < 2; i++) {
        const struct snapshot *s = &p->snap[i ? 1 - p->newest : p->newest];
        if (snapshot_ready(s))
            return s;
    }
    return NULL;
}

struct snapshot *published_version(struct published *p, uint64_t version)
{
    for (uint32_t i = 0; i < 2; i++)
        if (snapshot_ready(&p->snap[i]) && p->snap[i].version == version)
            return &p->snap[i];
    return NULL;
}
