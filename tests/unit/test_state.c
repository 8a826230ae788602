/* State transfer without a network: blocks, versions, a donor's queue, blobs, and a joiner
 * whose donors are servers in the same process. */
#include "base/rng.h"
#include "sleet_test.h"
#include "state/state.h"
#include <stdlib.h>
#include <string.h>

#define SET 7u
#define RATE UINT64_C(100000000)

static const sleet_time t0 = {SEC(1)};

/* Floats of one size compress a little, a run of zeros well, noise not at all. */
static uint8_t *make_bytes(uint64_t n, uint64_t seed)
{
    uint8_t *p = malloc(n);
    sleet_rng rng = {seed};
    for (uint64_t i = 0; p && i < n; i++)
        p[i] = i / 65536 % 3 == 0 ? 0 : (uint8_t)rng_next(&rng);
    return p;
}

/* ---- blocks and versions ----------------------------------------------------------- */

static void blocks_cover_all_bytes(void)
{
    CHECK_EQ(state_blocks(1), 1);
    CHECK_EQ(state_blocks(65536), 1);
    CHECK_EQ(state_blocks(65537), 2);
    CHECK_EQ(state_block_bytes(65537, 0), 65536);
    CHECK_EQ(state_block_bytes(65537, 1), 1);
    CHECK_EQ(state_blocks(WIRE_STATE_BYTES_MAX), WIRE_STATE_BLOCKS_MAX);
    CHECK_EQ(wire_state_pieces(65536), WIRE_STATE_PIECES_MAX);
    CHECK_EQ(wire_state_pieces(1152), 1);
    CHECK_EQ(wire_state_pieces(1153), 2);
    CHECK_EQ(state_pieces_mask(1153), 3);
}

static void a_manifest_names_every_block(void)
{
    uint64_t n = 3 * 65536 + 100;
    uint8_t *p = make_bytes(n, 1);
    struct published pub = {0};
    REQUIRE(p != NULL);
    CHECK_EQ(published_put(&pub, p, n, 0, RATE, t0), SLEET_EINVAL);
    CHECK_EQ(published_put(&pub, p, 0, 1, RATE, t0), SLEET_EINVAL);
    CHECK_EQ(published_put(&pub, p, n, 5, RATE, t0), SLEET_OK);
    const struct snapshot *s = published_newest(&pub);
    REQUIRE(s != NULL);
    CHECK_EQ(s->version, 5);
    for (uint32_t i = 0; i < 4; i++)
        CHECK(digest_equal(manifest_at(s->manifest, i),
                           state_digest(p + i * 65536u, state_block_bytes(n, i))));
    CHECK(digest_equal(s->digest, state_digest(s->manifest, 64)));
    published_fini(&pub);
    free(p);
}

static void a_large_state_is_hashed_in_slices(void)
{
    uint64_t n = 2 * STATE_HASH_SLICE + 1;
    uint8_t *p = calloc(1, n);
    struct published pub = {0};
    REQUIRE(p != NULL);
    CHECK_EQ(published_put(&pub, p, n, 1, RATE, t0), SLEET_OK);
    CHECK(published_newest(&pub) == NULL);
    CHECK(published_hashing(&pub));
    CHECK(published_hash(&pub));
    CHECK(published_hash(&pub));
    CHECK(!published_hash(&pub));
    CHECK(published_newest(&pub) != NULL);
    published_fini(&pub);
    free(p);
}

/* The version before stays while it is asked for, but not for ever. */
static void what_is_fetched_stays(void)
{
    uint8_t a[100] = {1}, b[100] = {2}, c[100] = {3};
    struct published pub = {0};
    CHECK_EQ(published_put(&pub, a, sizeof a, 1, RATE, t0), SLEET_OK);
    published_version(&pub, 1)->asked_at = t0;
    CHECK_EQ(published_put(&pub, b, sizeof b, 2, RATE, t0), SLEET_OK);
    CHECK_EQ(published_newest(&pub)->version, 2);
    CHECK(published_version(&pub, 1) != NULL);
    CHECK(!published_reserve(&pub, RATE, t0));
    CHECK_EQ(published_put(&pub, c, sizeof c, 3, RATE, t0), SLEET_EAGAIN);
    CHECK(published_reserve(&pub, RATE, time_add(t0, STATE_PIN + 1)));
    CHECK(published_version(&pub, 1) == NULL);
    CHECK_EQ(published_put(&pub, c, sizeof c, 3, RATE, time_add(t0, STATE_PIN + 1)), SLEET_OK);
    sleet_time later = time_add(t0, STATE_PIN_MAX + SEC(9));
    published_version(&pub, 2)->asked_at = later;
    CHECK(published_reserve(&pub, RATE, later));
    published_fini(&pub);
}

static void a_block_is_whole_or_refused(void)
{
    uint8_t bytes[3000], out[3000];
    struct block_in in = {0};
    memset(bytes, 9, sizeof bytes);
    struct wire_digest right = state_digest(bytes, sizeof bytes), wrong = {1, 2};
    struct wire_state_data d = {.stored = 3000, .payload = bytes, .payload_len = 1152};
    block_in_start(&in, 3000);
    CHECK_EQ(block_in_lacks(&in), 7);
    CHECK_EQ(block_in_put(&in, &d), BLOCK_PIECE);
    CHECK_EQ(block_in_put(&in, &d), BLOCK_STALE);
    d.piece = 2;
    d.payload_len = 696;
    CHECK_EQ(block_in_put(&in, &d), BLOCK_PIECE);
    CHECK_EQ(block_in_lacks(&in), 2);
    d.piece = 1;
    d.payload_len = 1152;
    d.stored = 2999;
    CHECK_EQ(block_in_put(&in, &d), BLOCK_BAD); /* another form than before */
    d.stored = 3000;
    CHECK_EQ(block_in_put(&in, &d), BLOCK_WHOLE);
    CHECK(!block_in_open(&in, &wrong, out));
    CHECK(block_in_open(&in, &right, out));
    CHECK_MEM(out, bytes, sizeof out);
    block_in_start(&in, 3000);
    d.stored = 3001; /* longer than the block */
    CHECK_EQ(block_in_put(&in, &d), BLOCK_BAD);
    d.stored = 3000; /* compressed, and yet no shorter */
    d.codec = STATE_ZSTD;
    CHECK_EQ(block_in_put(&in, &d), BLOCK_BAD);
    d.stored = 700; /* compressed, but not by zstd */
    d.piece = 0;
    d.payload_len = 700;
    CHECK_EQ(block_in_put(&in, &d), BLOCK_WHOLE);
    CHECK(!block_in_open(&in, &right, out));
    block_in_fini(&in);
}

/* ---- frames ---------------------------------------------------------------------------- */

static void frames_keep_their_bounds(void)
{
    uint8_t f[1192], payload[1152] = {0};
    struct wire_state_want w = {.ref = {STATE_BLOCK, SET, 1, 0}, .n = 1, .entries = {{0, 1, 1}}}, w2;
    size_t n = wire_state_want_encode(f, sizeof f, &w);
    CHECK_EQ(n, 24 + 20);
    CHECK_EQ(wire_state_want_decode(&w2, f, n), SLEET_OK);
    CHECK_EQ(wire_state_want_decode(&w2, f, n - 1), SLEET_EMALFORMED);
    w.entries[0].pieces = UINT64_C(1) << 57;
    CHECK_EQ(wire_state_want_encode(f, sizeof f, &w), 0);
    w.entries[0].pieces = 0;
    CHECK_EQ(wire_state_want_encode(f, sizeof f, &w), 0);
    w.entries[0] = (struct wire_state_entry){WIRE_STATE_BLOCKS_MAX, 0, 1};
    CHECK_EQ(wire_state_want_encode(f, sizeof f, &w), 0);
    w.entries[0] = (struct wire_state_entry){0, 0, 1};
    w.n = 33;
    CHECK_EQ(wire_state_want_encode(f, sizeof f, &w), 0);
    w.n = 1;
    w.ref.owner = 4; /* only a blob has an owner */
    CHECK_EQ(wire_state_want_encode(f, sizeof f, &w), 0);
    w.ref = (struct wire_state_ref){STATE_BLOB, SET, 0, 4}; /* no version */
    CHECK_EQ(wire_state_want_encode(f, sizeof f, &w), 0);

    struct wire_state_data d = {.ref = {STATE_BLOCK, SET, 1, 0}, .piece = 56, .stored = 65536,
                                .payload = payload, .payload_len = 1024}, d2;
    n = wire_state_data_encode(f, sizeof f, &d);
    CHECK_EQ(n, 32 + 1024);
    CHECK_EQ(wire_state_data_decode(&d2, f, n), SLEET_OK);
    CHECK_EQ(wire_state_data_decode(&d2, f, n - 1), SLEET_EMALFORMED);
    d.piece = 57;
    CHECK_EQ(wire_state_data_encode(f, sizeof f, &d), 0);
    d = (struct wire_state_data){.ref = {STATE_BLOCK, SET, 1, 0}, .stored = 65537,
                                 .payload = payload, .payload_len = 1152};
    CHECK_EQ(wire_state_data_encode(f, sizeof f, &d), 0);

    struct wire_state_info i = {.set = SET, .owner = 1, .version = 3, .bytes = 10, .digest = {1, 2}}, i2;
    n = wire_state_info_encode(f, sizeof f, &i);
    CHECK_EQ(n, 80);
    CHECK_EQ(wire_state_info_decode(&i2, f, n), SLEET_OK);
    CHECK_EQ(i2.digest.high, 2);
    i.blob_bytes = 5; /* of no version */
    CHECK_EQ(wire_state_info_encode(f, sizeof f, &i), 0);
    i.blob_version = 3;
    i.blob_bytes = 65537;
    CHECK_EQ(wire_state_info_encode(f, sizeof f, &i), 0);
    i.blob_bytes = 0;
    i.owner = 0;
    CHECK_EQ(wire_state_info_encode(f, sizeof f, &i), 0);
}

/* ---- a joiner and its donors --------------------------------------------------------------- */

#define NODES 5
static struct node {
    struct published pub;
    struct server server;
    bool dead, liar;
    uint64_t sent; /* payload bytes */
} nodes[NODES];
static sleet_rng dice;
static double loss;

static int find_in(void *arg, const struct wire_state_ref *ref, uint32_t index, uint64_t check,
                   struct served *out)
{
    struct node *n = arg;
    static uint8_t wrong[65536];
    struct snapshot *s = published_version(&n->pub, ref->version);
    uint32_t blocks = s ? state_blocks(s->bytes) : 0;
    if (!s || ref->object == STATE_BLOB)
        return STATE_NOT_HELD;
    s->asked_at = t0;
    if (ref->object == STATE_MANIFEST) {
        *out = (struct served){s->manifest + index * 65536u, state_block_bytes(16u * blocks, index)};
        return 0;
    }
    if (index >= blocks || manifest_at(s->manifest, index).low != check)
        return STATE_DIFFERS;
    *out = (struct served){s->data + (uint64_t)index * 65536, state_block_bytes(s->bytes, index)};
    if (n->liar)
        out->data = wrong;
    return 0;
}

static bool path_of(void *arg, uint64_t node_id, struct state_path *out)
{
    (void)arg;
    *out = (struct state_path){.timeout = MS(20), .grace = MS(1)};
    return !nodes[node_id - 1].dead;
}

static const struct state_paths paths = {NULL, path_of};

static bool lost(void) { return rng_double(&dice) < loss; }

static void answer(struct fetch *f, const struct state_frame *q, sleet_time now)
{
    struct node *n = &nodes[q->to - 1];
    struct serve_source from = {n, find_in};
    struct wire_state_query query;
    struct wire_state_want want;
    struct wire_state_none none;
    if (n->dead || lost())
        return;
    if (wire_state_query_decode(&query, q->body, q->len) == SLEET_OK) {
        const struct snapshot *s = published_newest(&n->pub);
        struct wire_state_info i = {.set = SET, .owner = q->to};
        if (s) {
            i.version = s->version;
            i.bytes = s->bytes;
            i.digest = s->digest;
        }
        if (!lost())
            fetch_info(f, q->to, &i);
    } else if (wire_state_want_decode(&want, q->body, q->len) == SLEET_OK) {
        if (server_want(&n->server, &from, 1, &want, &none) && !lost())
            fetch_none(f, q->to, &none);
    }
    (void)now;
}

/* Each donor sends some datagrams a millisecond. */
static void donors_send(struct fetch *f, sleet_time now, bool *more)
{
    for (uint64_t id = 1; id <= NODES; id++) {
        struct node *n = &nodes[id - 1];
        struct serve_source from = {n, find_in};
        for (int k = 0; k < 8 && !n->dead; k++) {
            uint8_t body[1192];
            struct wire_state_data d;
            size_t len = server_fill(&n->server, &from, 1, body, sizeof body);
            if (!len)
                break;
            *more = true;
            CHECK_EQ(wire_state_data_decode(&d, body, len), SLEET_OK);
            n->sent += d.payload_len;
            if (!lost())
                fetch_data(f, &paths, id, &d, now);
        }
    }
}

static struct fetch *start_fetch(uint8_t *into, uint64_t bytes, uint32_t donors)
{
    struct fetch *f = fetch_new(SET, into, bytes, 0, 0, SEC(20), t0);
    for (uint64_t id = 1; f && id <= donors; id++)
        fetch_candidate(f, id, t0);
    return f;
}

static sleet_time run_fetch(struct fetch *f, sleet_time now, void (*each)(sleet_time))
{
    bool more = false;
    struct state_frame q;
    for (; f->phase != FETCH_DONE && time_before(now, time_add(t0, SEC(30))); now = time_add(now, MS(1))) {
        fetch_expire(f, &paths, now);
        while (fetch_next(f, &paths, &q, now))
            answer(f, &q, now);
        donors_send(f, now, &more);
        if (each)
            each(now);
    }
    return now;
}

static void clear_nodes(void)
{
    for (uint32_t i = 0; i < NODES; i++) {
        published_fini(&nodes[i].pub);
        server_fini(&nodes[i].server);
        nodes[i] = (struct node){0};
    }
    dice.state = test_seed();
}

static void publish(uint32_t node, const uint8_t *p, uint64_t n, uint64_t version)
{
    CHECK_EQ(published_put(&nodes[node].pub, p, n, version, RATE, t0), SLEET_OK);
    while (published_hash(&nodes[node].pub))
        ;
}

static void give_all(const uint8_t *p, uint64_t n, uint64_t version, uint32_t donors)
{
    for (uint32_t i = 0; i < donors; i++)
        publish(i, p, n, version);
}

static void a_state_arrives_whole(void)
{
    static const double losses[] = {0, 0.1, 0.3};
    uint64_t n = 40 * 65536 + 777;
    uint8_t *p = make_bytes(n, 3), *q = calloc(1, n);
    REQUIRE(p && q);
    for (uint32_t k = 0; k < 3; k++) {
        clear_nodes();
        loss = losses[k];
        give_all(p, n, 9, NODES);
        struct fetch *f = start_fetch(q, n, NODES);
        REQUIRE(f != NULL);
        memset(q, 1, n);
        run_fetch(f, t0, NULL);
        CHECK_EQ(f->error, SLEET_OK);
        CHECK_EQ(f->version, 9);
        CHECK_MEM(q, p, n);
        CHECK(fetch_donors(f) >= (k < 2 ? NODES - 1 : 2)); /* some have not heard the question */
        uint64_t sent = 0;
        for (uint32_t i = 0; i < NODES; i++) {
            sent += nodes[i].sent;
            CHECK(k == 2 || nodes[i].sent < n / 2); /* the load is shared */
        }
        CHECK(sent < (uint64_t)(0.9 / (1 - losses[k]) * (double)n)); /* zeros travel compressed, little twice */
        fetch_free(f);
    }
    free(p);
    free(q);
}

static void kill_one(sleet_time now)
{
    (void)now;
    nodes[0].dead |= nodes[0].sent > 100000;
}

static void a_dead_donor_is_replaced(void)
{
    uint64_t n = 60 * 65536;
    uint8_t *p = make_bytes(n, 4), *q = calloc(1, n);
    clear_nodes();
    loss = 0.1;
    give_all(p, n, 9, 2);
    struct fetch *f = start_fetch(q, n, 2);
    REQUIRE(p && q && f);
    run_fetch(f, t0, kill_one);
    CHECK(nodes[0].dead);
    CHECK_EQ(f->error, SLEET_OK);
    CHECK_MEM(q, p, n);
    fetch_free(f);
    free(p);
    free(q);
}

static void a_liar_is_found_out(void)
{
    uint64_t n = 20 * 65536;
    uint8_t *p = make_bytes(n, 5), *q = calloc(1, n);
    clear_nodes();
    loss = 0;
    give_all(p, n, 9, 3);
    nodes[1].liar = true;
    struct fetch *f = start_fetch(q, n, 3);
    REQUIRE(p && q && f);
    run_fetch(f, t0, NULL);
    CHECK_EQ(f->error, SLEET_OK);
    CHECK_EQ(f->liar, 2);
    CHECK_EQ(f->lies, 1);
    CHECK_MEM(q, p, n);
    fetch_free(f);
    f = start_fetch(q, n, 3); /* nobody else is left: an error, no wrong bytes */
    nodes[0].dead = nodes[2].dead = true;
    run_fetch(f, t0, NULL);
    CHECK(f->error != SLEET_OK);
    CHECK_EQ(f->liar, 2);
    fetch_free(f);
    free(p);
    free(q);
}

/* Donors of a version whose bytes differ in places: the blocks that are equal come from all. */
static void a_block_that_differs_is_asked_elsewhere(void)
{
    uint64_t n = 32 * 65536;
    uint8_t *p = make_bytes(n, 6), *other = make_bytes(n, 6), *q = calloc(1, n);
    clear_nodes();
    loss = 0.1;
    REQUIRE(p && other && q);
    other[5 * 65536] ^= 1;
    give_all(p, n, 9, 2);
    CHECK_EQ(published_put(&nodes[2].pub, other, n, 9, RATE, t0), SLEET_OK);
    struct fetch *f = start_fetch(q, n, 3);
    REQUIRE(f != NULL);
    run_fetch(f, t0, NULL);
    CHECK_EQ(f->error, SLEET_OK);
    CHECK_EQ(f->lies, 0);
    CHECK(fetch_donors(f) >= 2);
    CHECK_MEM(q, p, n);
    fetch_free(f);
    free(p);
    free(other);
    free(q);
}

static uint8_t *newer_bytes;
static void publish_newer(sleet_time now)
{
    for (uint32_t i = 0; now.ns == t0.ns + MS(12) && i < 3; i++) {
        published_fini(&nodes[i].pub); /* the old one is gone altogether */
        publish(i, newer_bytes, 80 * 65536, 10);
    }
}

static void a_newer_version_takes_over_what_is_equal(void)
{
    uint64_t n = 80 * 65536;
    uint8_t *p = make_bytes(n, 7), *q = calloc(1, n);
    newer_bytes = make_bytes(n, 7);
    clear_nodes();
    loss = 0;
    REQUIRE(p && q && newer_bytes);
    newer_bytes[0] ^= 1;
    newer_bytes[70 * 65536] ^= 1;
    give_all(p, n, 9, 3);
    struct fetch *f = start_fetch(q, n, 3);
    REQUIRE(f != NULL);
    run_fetch(f, t0, publish_newer);
    CHECK_EQ(f->error, SLEET_OK);
    CHECK_EQ(f->version, 10);
    CHECK(f->kept > 0);
    CHECK_MEM(q, newer_bytes, n);
    fetch_free(f);
    free(p);
    free(q);
    free(newer_bytes);
}

static void nothing_to_fetch_is_said_at_once(void)
{
    uint8_t q[100], p[100] = {0};
    clear_nodes();
    loss = 0;
    struct fetch *f = start_fetch(q, sizeof q, 3);
    REQUIRE(f != NULL);
    sleet_time end = run_fetch(f, t0, NULL);
    CHECK_EQ(f->error, SLEET_ENOSTATE);
    CHECK(time_since(end, t0) < MS(100));
    fetch_free(f);
    give_all(p, 100, 4, 2); /* no newer one than is known already */
    f = fetch_new(SET, q, sizeof q, 0, 4, SEC(20), t0);
    fetch_candidate(f, 1, t0);
    run_fetch(f, t0, NULL);
    CHECK_EQ(f->error, SLEET_ENOSTATE);
    fetch_free(f);
    f = fetch_new(SET, q, sizeof q, 4, 0, SEC(20), t0); /* its own is as new */
    fetch_candidate(f, 1, t0);
    run_fetch(f, t0, NULL);
    CHECK_EQ(f->error, SLEET_OK);
    CHECK(f->own);
    fetch_free(f);
    f = start_fetch(q, 101, 2); /* of another size */
    run_fetch(f, t0, NULL);
    CHECK_EQ(f->error, SLEET_ENOSTATE);
    CHECK_EQ(f->wrong_size, 2);
    fetch_free(f);
    nodes[0].dead = nodes[1].dead = true;
    f = start_fetch(q, sizeof q, 2);
    end = run_fetch(f, t0, NULL);
    CHECK_EQ(f->error, SLEET_ENOSTATE);
    CHECK(time_since(end, t0) <= SEC(4));
    fetch_free(f);
}

static void a_donor_holds_no_more_than_its_bound(void)
{
    uint64_t n = 600 * 65536;
    uint8_t *p = calloc(1, n), body[1192];
    struct wire_state_none none;
    clear_nodes();
    REQUIRE(p != NULL);
    CHECK_EQ(published_put(&nodes[0].pub, p, n, 1, RATE, t0), SLEET_OK);
    while (published_hash(&nodes[0].pub))
        ;
    struct serve_source from = {&nodes[0], find_in};
    const struct snapshot *s = published_newest(&nodes[0].pub);
    for (uint32_t slot = 1; slot <= 16; slot++)
        for (uint32_t i = 0; i < 64; i += 32) {
            struct wire_state_want w = {.ref = {STATE_BLOCK, SET, 1, 0}, .n = 32};
            for (uint32_t k = 0; k < 32; k++)
                w.entries[k] = (struct wire_state_entry){i + k, manifest_at(s->manifest, i + k).low, 1};
            CHECK(!server_want(&nodes[0].server, &from, slot, &w, &none));
        }
    CHECK_EQ(nodes[0].server.n, STATE_JOBS_MAX);
    uint32_t sent = 0;
    while (server_fill(&nodes[0].server, &from, 1, body, sizeof body))
        sent++;
    CHECK_EQ(sent, STATE_JOBS_EACH);
    server_forget(&nodes[0].server, 2);
    CHECK(!server_has(&nodes[0].server, 2));
    CHECK_EQ(nodes[0].server.n, STATE_JOBS_MAX - 2 * STATE_JOBS_EACH);
    clear_nodes();
    free(p);
}

/* ---- blobs ------------------------------------------------------------------------------- */

static void the_newest_blob_of_each_node_is_kept(void)
{
    static struct blobs mine, theirs;
    uint8_t text[3000];
    struct state_frame f;
    memset(text, 5, sizeof text);
    clear_nodes();
    CHECK_EQ(blobs_put(&theirs, 2, SET, 8, text, sizeof text), SLEET_OK);
    CHECK_EQ(blobs_put(&theirs, 2, SET, 8, text, 65537), SLEET_ELIMIT);
    const struct blob *b = blobs_find(&theirs, SET, 2);
    struct wire_state_info i = {.set = SET, .owner = 2, .blob_version = 8, .blob_digest = b->digest,
                                .blob_bytes = sizeof text};
    blobs_learn(&mine, 1, 2, &i, t0);
    CHECK(blobs_pending(&mine, SET, 2));
    CHECK(blobs_next(&mine, &paths, &f, t0));
    CHECK(!blobs_next(&mine, &paths, &f, t0));
    struct wire_state_want w;
    CHECK_EQ(wire_state_want_decode(&w, f.body, f.len), SLEET_OK);
    CHECK_EQ(w.entries[0].pieces, 7);
    for (uint8_t piece = 0; piece < 3; piece++) {
        struct wire_state_data d = {.ref = w.ref, .piece = piece, .stored = 3000, .payload = text,
                                    .payload_len = piece < 2 ? 1152 : 696};
        CHECK(!blobs_data(&mine, 3, &d, t0)); /* from another than was asked */
        CHECK_EQ(blobs_data(&mine, 2, &d, t0), piece == 2);
    }
    CHECK_EQ(blobs_find(&mine, SET, 2)->version, 8);
    CHECK_MEM(blobs_find(&mine, SET, 2)->data, text, sizeof text);
    i.blob_version = 7;
    i.blob_digest.low++;
    blobs_learn(&mine, 1, 3, &i, t0); /* older, by hearsay */
    CHECK(!blobs_pending(&mine, SET, 2));
    blobs_learn(&mine, 1, 2, &i, t0); /* its owner began anew */
    CHECK(blobs_pending(&mine, SET, 2));
    for (uint64_t owner = 10; owner < 200; owner++) {
        i.owner = owner;
        blobs_learn(&mine, 1, owner, &i, t0);
    }
    uint32_t held = 0;
    for (uint32_t k = 0; k < STATE_BLOBS_MAX + 8; k++)
        held += mine.of[k].owner != 0;
    CHECK_EQ(held, STATE_BLOBS_MAX);
    blobs_fini(&mine);
    blobs_fini(&theirs);
}

TEST_SUITE(state) = {
    TEST(blocks_cover_all_bytes),
    TEST(a_manifest_names_every_block),
    TEST(a_large_state_is_hashed_in_slices),
    TEST(what_is_fetched_stays),
    TEST(a_block_is_whole_or_refused),
    TEST(frames_keep_their_bounds),
    TEST(a_state_arrives_whole),
    TEST(a_dead_donor_is_replaced),
    TEST(a_liar_is_found_out),
    TEST(a_block_that_differs_is_asked_elsewhere),
    TEST(a_newer_version_takes_over_what_is_equal),
    TEST(nothing_to_fetch_is_said_at_once),
    TEST(a_donor_holds_no_more_than_its_bound),
    TEST(the_newest_blob_of_each_node_is_kept),
    TEST_END,
};
