/* State transfer as the trainer sees it: calls, events, and what time brings. */
#include "engine_internal.h"
#include <assert.h>

#define BLOB_GAP MS(300) /* between questions for a blob */

static_assert(SLEET_BLOB_MAX == WIRE_STATE_BLOCK, "a blob is one block");

/* ---- calls ------------------------------------------------------------------------ */

int engine_state_publish(engine *e, int handle, const engine_state *a, sleet_time now)
{
    const struct set *s = engine_set_at(e, handle);
    if (!s || !a || (a->blob_bytes && !a->blob))
        return SLEET_EINVAL;
    if (a->blob_bytes > SLEET_BLOB_MAX)
        return SLEET_ELIMIT;
    struct transfer_set *t = &e->transfer.sets[handle];
    int error = published_put(&t->published, a->data, a->bytes, a->version, e->config.rate_bps, now);
    if (!error && a->blob)
        error = blobs_put(&e->transfer.blobs, e->config.node_id, s->layout.hash, a->version, a->blob,
                          a->blob_bytes);
    if (error)
        return error;
    t->hash = s->layout.hash;
    t->told = t->tell_slot = 0;
    t->tell_at = published_hashing(&t->published) ? TIME_NEVER : now;
    return SLEET_OK;
}

bool engine_state_reserve(engine *e, int handle, sleet_time now)
{
    return engine_set_at(e, handle) &&
           published_reserve(&e->transfer.sets[handle].published, e->config.rate_bps, now);
}

void engine_state_withdraw(engine *e, int handle)
{
    if (engine_set_at(e, handle))
        state_forget_set(e, handle);
}

void engine_state_cancel(engine *e, int handle)
{
    if (!engine_set_at(e, handle))
        return;
    fetch_free(e->transfer.sets[handle].fetch);
    e->transfer.sets[handle].fetch = NULL;
    e->transfer.sets[handle].blob_of = 0;
}

int engine_state_fetch(engine *e, int handle, const engine_fetch_args *a, sleet_time now)
{
    const struct set *s = engine_set_at(e, handle);
    if (!s || !a || !a->into || !a->bytes || a->bytes > WIRE_STATE_BYTES_MAX || a->limit <= 0)
        return SLEET_EINVAL;
    if (e->leaving)
        return SLEET_ELEFT;
    struct transfer_set *t = &e->transfer.sets[handle];
    if (t->fetch)
        return SLEET_EBUSY;
    const struct snapshot *own = published_newest(&t->published);
    t->fetch = fetch_new(s->layout.hash, a->into, a->bytes,
                         own && own->bytes == a->bytes ? own->version : 0, a->newer_than, a->limit, now);
    t->fetch_began = now;
    if (t->fetch)
        t->fetch->seed = rng_next(&e->rng);
    return t->fetch ? SLEET_OK : SLEET_ENOMEM;
}

int engine_blob_ask(engine *e, int handle, uint64_t node_id, sleet_duration limit, sleet_time now)
{
    if (!engine_set_at(e, handle) || !node_id || limit <= 0)
        return SLEET_EINVAL;
    if (e->leaving)
        return SLEET_ELEFT;
    struct transfer_set *t = &e->transfer.sets[handle];
    if (t->blob_of)
        return SLEET_EBUSY;
    t->blob_of = node_id;
    t->blob_asked = 0;
    t->blob_until = time_add(now, limit);
    t->blob_again = now;
    return SLEET_OK;
}

const void *engine_blob(const engine *e, int handle, uint64_t node_id, uint64_t *version,
                        uint32_t *bytes)
{
    engine *m = (engine *)(uintptr_t)e;
    const struct set *s = engine_set_at(m, handle);
    const struct blob *b = s ? blobs_find(&m->transfer.blobs, s->layout.hash, node_id) : NULL;
    if (!b || !b->version)
        return NULL;
    *version = b->version;
    *bytes = b->bytes;
    return b->data ? (const void *)b->data : "";
}

/* ---- time ---------------------------------------------------------------------------- */

static void ask_for_blob(engine *e, struct transfer_set *t, uint32_t hash)
{
    uint8_t body[32];
    struct wire_state_query q = {.set = hash, .owner = t->blob_of};
    size_t len = wire_state_query_encode(body, sizeof body, &q);
    t->blob_asked = t->blob_nones = 0;
    for (uint32_t i = 1; i < e->view.n; i++) {
        const struct member *m = &e->members[i];
        if (!m->session || !m->alive)
            continue;
        outbox_put(e, &m->addr, i, m->peer_index, WIRE_STATE, body, len);
        t->blob_asked++;
    }
    t->blob_again = time_add(e->now, BLOB_GAP);
}

/* Others than those that the fetch knows may have come. */
static void add_candidates(engine *e, struct fetch *f)
{
    uint32_t n = e->view.n, first = n > STATE_DONORS_MAX ? (uint32_t)(f->seed % n) : 0;
    for (uint32_t i = 0; i < n && f->donors_n < STATE_DONORS_MAX; i++) {
        const struct member *m = &e->members[(first + i) % n];
        if ((first + i) % n && m->session && m->alive)
            fetch_candidate(f, m->node_id, e->now);
    }
}

void state_expire(engine *e)
{
    const struct state_paths paths = {e, state_path_of};
    for (uint32_t i = 0; i < ENGINE_SETS_MAX; i++) {
        struct transfer_set *t = &e->transfer.sets[i];
        if (published_hash(&t->published) && !published_hashing(&t->published))
            t->tell_at = e->now;
        if (t->fetch && t->fetch->phase != FETCH_DONE) {
            add_candidates(e, t->fetch);
            fetch_expire(t->fetch, &paths, e->now);
        }
        if (t->blob_of && !time_before(e->now, t->blob_again))
            ask_for_blob(e, t, e->sets[i].layout.hash);
    }
}

sleet_time state_deadline(const engine *e)
{
    const struct transfer *t = &e->transfer;
    sleet_time at, due = blobs_deadline(&t->blobs);
    for (uint32_t i = 0; i < ENGINE_SETS_MAX; i++) {
        const struct transfer_set *s = &t->sets[i];
        due = time_min(due, s->tell_at);
        if (published_hashing(&s->published))
            due = e->now;
        if (s->fetch)
            due = time_min(due, fetch_deadline(s->fetch));
        if (s->blob_of)
            due = time_min(due, time_min(s->blob_again, s->blob_until));
    }
    if (state_turn((engine *)(uintptr_t)e, &at))
        due = time_min(due, at);
    return due;
}

/* ---- events ---------------------------------------------------------------------------- */

/* A node whose blob is of that version: the one whose state it is, or any other. */
static uint64_t blob_at(engine *e, uint32_t hash, uint64_t source, uint64_t version)
{
    const struct blob *b = blobs_find(&e->transfer.blobs, hash, source);
    if (b && b->version == version)
        return source;
    for (uint32_t i = 0; i < sizeof e->transfer.blobs.of / sizeof *e->transfer.blobs.of; i++) {
        b = &e->transfer.blobs.of[i];
        if (b->owner && b->set == hash && b->version == version)
            return b->owner;
    }
    return 0;
}

static uint64_t newest_heard(const engine *e, uint32_t hash, uint64_t least)
{
    for (uint32_t i = 0; i < sizeof e->transfer.blobs.of / sizeof *e->transfer.blobs.of; i++) {
        const struct blob *b = &e->transfer.blobs.of[i];
        uint64_t v = b->state_version > b->version ? b->state_version : b->version;
        if (b->owner && b->set == hash && v > least)
            least = v;
    }
    return least;
}

static void say_fetched(engine *e, const struct set *s, const struct fetch *f, const engine_fetched *r)
{
    if (f->error)
        LOG(&e->config.log, f->error == SLEET_ENOSTATE ? LOG_INFO : LOG_WARN, FAULT_NONE, "state-not-fetched", F_S("set", s->layout.name),
            F_S("why", f->error == SLEET_ENOSTATE ? "nobody has one, or a newer one" : "time is up"),
            F_U("version", f->version), F_F("coverage", r->coverage), F_U("other_size", f->wrong_size));
    else
        LOG(&e->config.log, LOG_INFO, FAULT_NONE, "state-fetched", F_S("set", s->layout.name),
            F_U("version", f->version), F_U("donors", r->donors), F_U("bytes", r->bytes),
            F_F("seconds", (double)r->elapsed / 1e9));
    if (!f->error && r->newest > r->version)
        LOG(&e->config.log, LOG_WARN, FAULT_NONE, "state-is-old", F_S("set", s->layout.name),
            F_U("version", r->version), F_U("newest_heard_of", r->newest));
}

static bool fetch_event(engine *e, const struct set *s, struct transfer_set *t, engine_event *ev)
{
    struct fetch *f = t->fetch;
    if (!f || f->phase != FETCH_DONE)
        return false;
    if (!f->error && !f->own && blobs_pending(&e->transfer.blobs, f->set, f->source) &&
        time_before(e->now, f->deadline))
        return false;
    const struct snapshot *own = published_newest(&t->published);
    engine_fetched *r = &ev->fetched;
    ev->type = EVENT_STATE;
    ev->error = f->error;
    r->data = f->own && own ? own->data : f->into;
    r->version = f->version;
    r->bytes = f->bytes;
    r->donors = fetch_donors(f);
    r->lies = (uint32_t)f->lies;
    r->coverage = !f->error ? 1 : f->blocks ? (double)f->done_n / state_blocks(f->bytes) : 0;
    r->blob_of = f->error ? 0 : blob_at(e, f->set, f->own ? e->config.node_id : f->source, f->version);
    r->newest = newest_heard(e, f->set, f->version);
    r->elapsed = time_since(e->now, t->fetch_began);
    say_fetched(e, s, f, r);
    fetch_free(f);
    t->fetch = NULL;
    return true;
}

static bool blob_event(engine *e, const struct set *s, struct transfer_set *t, engine_event *ev)
{
    if (!t->blob_of)
        return false;
    const struct blob *b = blobs_find(&e->transfer.blobs, s->layout.hash, t->blob_of);
    bool over = !time_before(e->now, t->blob_until) ||
                (t->blob_asked && t->blob_nones >= t->blob_asked);
    if ((!b || !b->version || blobs_pending(&e->transfer.blobs, s->layout.hash, t->blob_of)) && !over)
        return false;
    ev->type = EVENT_BLOB;
    ev->error = b && b->version ? SLEET_OK : SLEET_ENOSTATE;
    ev->node_id = t->blob_of;
    t->blob_of = 0;
    return true;
}

bool state_poll(engine *e, int handle, engine_event *ev)
{
    const struct set *s = &e->sets[handle];
    struct transfer_set *t = &e->transfer.sets[handle];
    return fetch_event(e, s, t, ev) || blob_event(e, s, t, ev);
}

/* ---- what an operator sees ---------------------------------------------------------------- */

bool engine_get_state(const engine *e, int handle, engine_state_info *out)
{
    if (!engine_set_at((engine *)(uintptr_t)e, handle))
        return false;
    const struct transfer_set *t = &e->transfer.sets[handle];
    const struct snapshot *s = published_newest(&t->published);
    *out = (engine_state_info){.version = s ? s->version : 0,
                               .bytes = s ? s->bytes : 0,
                               .hashing = published_hashing(&t->published),
                               .waiting = e->transfer.server.n,
                               .served_bytes = e->transfer.server.bytes,
                               .fetching = t->fetch != NULL};
    if (t->fetch) {
        const struct fetch *f = t->fetch;
        out->fetch_version = f->version;
        out->fetch_donors = fetch_donors(f);
        if (f->phase == FETCH_BLOCKS)
            out->fetch_coverage = (double)f->done_n / f->blocks;
    }
    return true;
}

uint32_t engine_get_holdings(const engine *e, int handle, engine_holding *out, uint32_t max)
{
    uint32_t n = 0;
    if (!engine_set_at((engine *)(uintptr_t)e, handle))
        return 0;
    const struct snapshot *newest = published_newest(&e->transfer.sets[handle].published);
    uint64_t own = newest ? newest->version : 0;
    for (uint32_t i = 0; i < sizeof e->transfer.blobs.of / sizeof *e->transfer.blobs.of && n < max; i++) {
        const struct blob *b = &e->transfer.blobs.of[i];
        if (b->owner && b->set == e->sets[handle].layout.hash)
            out[n++] = (engine_holding){b->owner, b->owner == e->config.node_id ? own : b->state_version,
                                        b->version, b->bytes};
    }
    return n;
}

/* What can be held at most, of others' blobs and on the way. */
uint64_t state_memory_bound(const engine *e)
{
    const struct transfer *t = &e->transfer;
    uint64_t bytes = (uint64_t)(STATE_CACHE + 2 * (STATE_BLOBS_MAX + ENGINE_SETS_MAX)) * WIRE_STATE_BLOCK;
    for (uint32_t i = 0; i < ENGINE_SETS_MAX; i++) {
        const struct fetch *f = t->sets[i].fetch;
        for (uint32_t k = 0; k < 2; k++)
            bytes += (uint64_t)state_blocks(t->sets[i].published.snap[k].bytes) * 16;
        if (f)
            bytes += sizeof *f + STATE_FLIGHT_MAX * WIRE_STATE_BLOCK + (uint64_t)state_blocks(f->bytes) * 41;
    }
    return bytes;
}
