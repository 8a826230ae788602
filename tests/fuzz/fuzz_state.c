/* Any bytes as a frame of state transfer: accepted ones must encode to the bytes they came
 * from.  Then the same bytes as what a donor, a joiner and a keeper of blobs are sent, each
 * a part of its own: they stay within their bounds. */
#include "again.h"
#include "base/bytes.h"
#include "state/state.h"
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define SET 0x11223344u
#define STATE_BYTES (3 * 65536 + 50)

static void try_frame(const uint8_t *p, size_t n)
{
    static uint8_t out[WIRE_BODY_MAX];
    AGAIN(state_query);
    AGAIN(state_info);
    AGAIN(state_want);
    AGAIN(state_data);
    AGAIN(state_none);
}

static uint8_t *state_bytes(void)
{
    static uint8_t bytes[STATE_BYTES];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i * i >> 7);
    return bytes;
}

static int find_in(void *arg, const struct wire_state_ref *ref, uint32_t index, uint64_t check,
                   struct served *out)
{
    struct published *pub = arg;
    const struct snapshot *s = published_version(pub, ref->version);
    if (!s || ref->object == STATE_BLOB)
        return STATE_NOT_HELD;
    if (index >= state_blocks(s->bytes) || (check & 1))
        return STATE_DIFFERS;
    *out = (struct served){s->data + (uint64_t)index * 65536, state_block_bytes(s->bytes, index)};
    return 0;
}

static bool path_of(void *arg, uint64_t node_id, struct state_path *out)
{
    (void)arg;
    *out = (struct state_path){.timeout = MS(20), .grace = MS(1)};
    return node_id != 3;
}

/* Frames of a length byte each, handed to all three. */
static void try_session(const uint8_t *p, size_t n)
{
    static const struct state_paths paths = {NULL, path_of};
    static struct published pub;
    static struct server server;
    static struct blobs blobs;
    static uint8_t into[STATE_BYTES];
    const struct serve_source from = {&pub, find_in};
    sleet_time now = {SEC(1)};
    struct state_frame f;
    uint8_t body[1192];
    if (published_put(&pub, state_bytes(), STATE_BYTES, 1, 100000000, now) != SLEET_OK)
        return;
    struct fetch *fetch = fetch_new(SET, into, STATE_BYTES, 0, 0, SEC(9), now);
    for (uint64_t id = 1; fetch && id < 4; id++)
        fetch_candidate(fetch, id, now);
    for (size_t at = 0; fetch && at + 2 < n; now = time_add(now, MS(7))) {
        size_t len = (size_t)(p[at] | (p[at + 1] & 7) << 8);
        uint64_t who = 1 + (p[at + 1] >> 3) % 3;
        at += 2;
        len = len < n - at ? len : n - at;
        union {
            struct wire_state_info info;
            struct wire_state_want want;
            struct wire_state_data data;
            struct wire_state_none none;
        } m;
        if (wire_state_info_decode(&m.info, p + at, len) == SLEET_OK) {
            fetch_info(fetch, who, &m.info);
            blobs_learn(&blobs, 9, who, &m.info, now);
        } else if (wire_state_want_decode(&m.want, p + at, len) == SLEET_OK) {
            struct wire_state_none none;
            server_want(&server, &from, (uint32_t)who, &m.want, &none);
        } else if (wire_state_data_decode(&m.data, p + at, len) == SLEET_OK) {
            fetch_data(fetch, &paths, who, &m.data, now);
            blobs_data(&blobs, who, &m.data, now);
        } else if (wire_state_none_decode(&m.none, p + at, len) == SLEET_OK) {
            fetch_none(fetch, who, &m.none);
            blobs_none(&blobs, who, &m.none);
        }
        at += len;
        fetch_expire(fetch, &paths, now);
        while (fetch_next(fetch, &paths, &f, now) || blobs_next(&blobs, &paths, &f, now))
            if (f.len == 0 || f.len > sizeof f.body)
                abort();
        while (server_fill(&server, &from, (uint32_t)who, body, sizeof body))
            ;
        if (server.n > STATE_JOBS_MAX || fetch->flight_n > STATE_FLIGHT_MAX)
            abort();
    }
    fetch_free(fetch);
    published_fini(&pub);
    server_fini(&server);
    blobs_fini(&blobs);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    try_frame(data, size);
    try_session(data, size);
    return 0;
}
