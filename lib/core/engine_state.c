/* State that members publish and fetch: what this node serves and tells, and what comes. */
#include "engine_internal.h"
#include <string.h>

#define SHARE 4  /* of the node's rate that state may take, one part in */
#define TELL_TIMES 3
#define TELL_GAP MS(300) /* then three times as long */
#define TELL_FEW 16      /* members told, one in count / this, where there are more than CROWD */
#define OUTBOX_SPARE 8   /* places that state leaves to the rest */

void state_init(engine *e, sleet_time now)
{
    struct transfer *t = &e->transfer;
    pacer_init(&t->share, e->config.rate_bps / SHARE + 1, PACE_BURST_BYTES, now);
    for (uint32_t i = 0; i < ENGINE_SETS_MAX; i++)
        t->sets[i].tell_at = TIME_NEVER;
}

void state_forget_set(engine *e, int handle)
{
    struct transfer_set *t = &e->transfer.sets[handle];
    published_fini(&t->published);
    fetch_free(t->fetch);
    *t = (struct transfer_set){.tell_at = TIME_NEVER};
}

void state_fini(engine *e)
{
    for (int i = 0; i < ENGINE_SETS_MAX; i++)
        state_forget_set(e, i);
    server_fini(&e->transfer.server);
    blobs_fini(&e->transfer.blobs);
}

static struct transfer_set *by_hash(engine *e, uint32_t hash)
{
    const struct set *s = engine_set_by_hash(e, hash);
    return s ? &e->transfer.sets[s->handle] : NULL;
}

/* ---- ways to members -------------------------------------------------------------- */

bool state_path_of(void *arg, uint64_t node_id, struct state_path *out)
{
    const engine *e = arg;
    const struct member *m = view_by_id(&e->view, node_id);
    if (!m || !m->session || !m->alive)
        return false;
    *out = (struct state_path){rtt_timeout(&m->rtt), reorder_grace(&m->reorder, &m->rtt)};
    return true;
}

static struct state_paths paths_of(engine *e) { return (struct state_paths){e, state_path_of}; }

static void put(engine *e, const struct member *m, const uint8_t *body, size_t len)
{
    outbox_put(e, &m->addr, view_slot(&e->view, m), m->peer_index, WIRE_STATE, body, len);
}

/* ---- what this node serves --------------------------------------------------------- */

static int serve_block(struct snapshot *s, const struct wire_state_ref *ref, uint32_t index,
                       uint64_t check, struct served *out)
{
    uint64_t at = (uint64_t)index * WIRE_STATE_BLOCK;
    uint64_t bytes = ref->object == STATE_BLOCK ? s->bytes : (uint64_t)state_blocks(s->bytes) * 16;
    if (at >= bytes)
        return STATE_DIFFERS;
    uint64_t have = ref->object == STATE_BLOCK ? manifest_at(s->manifest, index).low : s->digest.low;
    if (have != check)
        return STATE_DIFFERS;
    *out = (struct served){(ref->object == STATE_BLOCK ? s->data : s->manifest) + at,
                           state_block_bytes(bytes, index)};
    return 0;
}

static int serve_find(void *arg, const struct wire_state_ref *ref, uint32_t index, uint64_t check,
                      struct served *out)
{
    engine *e = arg;
    if (ref->object == STATE_BLOB) {
        const struct blob *b = blobs_find(&e->transfer.blobs, ref->set, ref->owner);
        if (!b || b->version != ref->version || b->digest.low != check || index || !b->bytes)
            return STATE_NOT_HELD;
        *out = (struct served){b->data, b->bytes};
        return 0;
    }
    struct transfer_set *t = by_hash(e, ref->set);
    struct snapshot *s = t ? published_version(&t->published, ref->version) : NULL;
    if (!s)
        return STATE_NOT_HELD;
    s->asked_at = e->now;
    return serve_block(s, ref, index, check, out);
}

static struct serve_source source_of(engine *e) { return (struct serve_source){e, serve_find}; }

size_t state_fill(engine *e, uint32_t slot, uint8_t *out, size_t cap)
{
    const struct serve_source from = source_of(e);
    return server_fill(&e->transfer.server, &from, slot, out, cap);
}

static bool served_now(const engine *e, uint32_t slot)
{
    const struct member *m = &e->members[slot];
    return slot < e->view.n && m->session && m->alive;
}

uint32_t state_turn(engine *e, sleet_time *at)
{
    struct transfer *t = &e->transfer;
    uint32_t best = 0;
    *at = TIME_NEVER;
    if (!t->server.n)
        return 0;
    pacer_ready(&e->pacer, e->now);
    pacer_ready(&t->share, e->now);
    sleet_time node = pacer_next(&e->pacer), share = pacer_next(&t->share);
    node = time_before(node, share) ? share : node;
    for (uint32_t i = 0; i < STATE_JOBS_MAX; i++) {
        uint32_t slot = t->server.jobs[i].slot;
        if (!slot)
            continue;
        struct member *m = &e->members[slot];
        if (!served_now(e, slot)) {
            server_forget(&t->server, slot);
            continue;
        }
        if (flow_stopped(&m->flow))
            continue;
        pacer_ready(&m->flow.pacer, e->now);
        sleet_time peer = pacer_next(&m->flow.pacer);
        peer = time_before(peer, node) ? node : peer;
        if (time_before(peer, e->now))
            peer = e->now;
        bool after = slot > t->turn, best_after = best > t->turn; /* in turn, from the last one on */
        bool sooner = time_before(peer, *at);
        if (!best || sooner ||
            (peer.ns == at->ns && (after != best_after ? after : slot < best))) {
            best = slot;
            *at = peer;
        }
    }
    if (best && !time_before(e->now, *at))
        t->turn = best;
    return best;
}

/* ---- telling -------------------------------------------------------------------------- */

static struct wire_state_info own_info(engine *e, const struct transfer_set *t, uint32_t hash)
{
    struct wire_state_info i = {.set = hash, .owner = e->config.node_id};
    const struct snapshot *s = t ? published_newest(&t->published) : NULL;
    const struct blob *b = blobs_find(&e->transfer.blobs, hash, e->config.node_id);
    if (s) {
        i.version = s->version;
        i.bytes = s->bytes;
        i.digest = s->digest;
    }
    if (b && b->version) {
        i.blob_version = b->version;
        i.blob_digest = b->digest;
        i.blob_bytes = b->bytes;
    }
    return i;
}

static void send_info(engine *e, const struct member *m, const struct wire_state_info *i)
{
    uint8_t body[128];
    put(e, m, body, wire_state_info_encode(body, sizeof body, i));
}

static bool is_told(const engine *e, const struct member *m)
{
    return e->view.count <= CROWD ||
           mix64(e->config.node_id ^ mix64(m->node_id)) % e->view.count < TELL_FEW;
}

/* To as many members as the outbox takes; the rest with the next. */
static void tell(engine *e, struct transfer_set *t)
{
    struct wire_state_info i = own_info(e, t, t->hash);
    for (; t->tell_slot < e->view.n; t->tell_slot++) {
        const struct member *m = &e->members[t->tell_slot];
        if (e->outbox_n + OUTBOX_SPARE >= OUTBOX_MAX)
            return;
        if (t->tell_slot && m->session && m->alive && is_told(e, m))
            send_info(e, m, &i);
    }
    t->tell_slot = 0;
    t->tell_at = ++t->told < TELL_TIMES ? time_add(e->now, TELL_GAP << 2 * (t->told - 1)) : TIME_NEVER;
}

static void to_member(engine *e, const struct state_frame *f)
{
    const struct member *m = view_by_id(&e->view, f->to);
    if (m)
        put(e, m, f->body, f->len);
}

void state_queue(engine *e)
{
    const struct state_paths paths = paths_of(e);
    struct transfer *t = &e->transfer;
    struct state_frame f;
#define ROOM (e->outbox_n + OUTBOX_SPARE < OUTBOX_MAX)
    for (int i = 0; i < ENGINE_SETS_MAX && !e->leaving; i++) {
        struct transfer_set *s = &t->sets[i];
        if (ROOM && !time_before(e->now, s->tell_at))
            tell(e, s);
        while (s->fetch && ROOM && fetch_next(s->fetch, &paths, &f, e->now))
            to_member(e, &f);
    }
    while (!e->leaving && ROOM && blobs_next(&t->blobs, &paths, &f, e->now))
        to_member(e, &f);
#undef ROOM
}

/* ---- what comes -------------------------------------------------------------------------- */

static void recv_query(engine *e, struct member *m, const uint8_t *body, size_t len)
{
    struct wire_state_query q;
    if (wire_state_query_decode(&q, body, len) != SLEET_OK) {
        e->counters.corrupt++;
        return;
    }
    e->counters.accepted++;
    struct wire_state_info i = {.set = q.set, .owner = q.owner};
    if (q.owner == 0 || q.owner == e->config.node_id) {
        i = own_info(e, by_hash(e, q.set), q.set);
    } else {
        const struct blob *b = blobs_find(&e->transfer.blobs, q.set, q.owner);
        if (b && b->version) {
            i.blob_version = b->version;
            i.blob_digest = b->digest;
            i.blob_bytes = b->bytes;
        }
    }
    send_info(e, m, &i);
}

static void recv_info(engine *e, struct member *m, const uint8_t *body, size_t len)
{
    const struct state_paths paths = paths_of(e);
    struct wire_state_info i;
    if (wire_state_info_decode(&i, body, len) != SLEET_OK) {
        e->counters.corrupt++;
        return;
    }
    e->counters.accepted++;
    blobs_learn(&e->transfer.blobs, e->config.node_id, m->node_id, &i, e->now);
    struct transfer_set *t = by_hash(e, i.set);
    if (t && t->blob_of == i.owner && !i.blob_version)
        t->blob_nones++;
    if (t && t->fetch) {
        fetch_info(t->fetch, m->node_id, &i);
        fetch_expire(t->fetch, &paths, e->now);
    }
}

static void recv_want(engine *e, struct member *m, const uint8_t *body, size_t len)
{
    const struct serve_source from = source_of(e);
    struct wire_state_want w;
    struct wire_state_none none;
    uint8_t answer[64];
    if (wire_state_want_decode(&w, body, len) != SLEET_OK) {
        e->counters.corrupt++;
        return;
    }
    e->counters.accepted++;
    if (server_want(&e->transfer.server, &from, view_slot(&e->view, m), &w, &none))
        put(e, m, answer, wire_state_none_encode(answer, sizeof answer, &none));
}

static void tell_liar(engine *e, struct fetch *f)
{
    if (f->liar)
        LOG(&e->config.log, LOG_WARN, FAULT_REMOTE, "state-block-wrong", F_X("node", f->liar),
            F_U("version", f->version));
    f->liar = 0;
}

static void recv_data(engine *e, struct member *m, const uint8_t *body, size_t len)
{
    const struct state_paths paths = paths_of(e);
    struct wire_state_data d;
    if (wire_state_data_decode(&d, body, len) != SLEET_OK) {
        e->counters.corrupt++;
        return;
    }
    struct transfer_set *t = by_hash(e, d.ref.set);
    enum block_fate fate = BLOCK_STALE;
    if (d.ref.object == STATE_BLOB) {
        blobs_data(&e->transfer.blobs, m->node_id, &d, e->now);
        fate = BLOCK_PIECE;
    } else if (t && t->fetch) {
        fate = fetch_data(t->fetch, &paths, m->node_id, &d, e->now);
        tell_liar(e, t->fetch);
    }
    e->counters.accepted += fate == BLOCK_PIECE || fate == BLOCK_WHOLE;
    e->counters.stale += fate == BLOCK_STALE;
    e->counters.corrupt += fate == BLOCK_BAD;
    if (fate == BLOCK_WHOLE)
        fetch_expire(t->fetch, &paths, e->now); /* there is room for another */
}

static void recv_none(engine *e, struct member *m, const uint8_t *body, size_t len)
{
    const struct state_paths paths = paths_of(e);
    struct wire_state_none none;
    if (wire_state_none_decode(&none, body, len) != SLEET_OK) {
        e->counters.corrupt++;
        return;
    }
    e->counters.accepted++;
    blobs_none(&e->transfer.blobs, m->node_id, &none);
    struct transfer_set *t = by_hash(e, none.ref.set);
    if (t && t->fetch && none.ref.object != STATE_BLOB) {
        fetch_none(t->fetch, m->node_id, &none);
        fetch_expire(t->fetch, &paths, e->now);
    }
}

void state_recv(engine *e, struct member *m, const uint8_t *body, size_t len)
{
    static void (*const kinds[])(engine *, struct member *, const uint8_t *, size_t) = {
        [STATE_QUERY] = recv_query, [STATE_INFO] = recv_info, [STATE_WANT] = recv_want,
        [STATE_DATA] = recv_data,   [STATE_NONE] = recv_none};
    int kind = wire_state_kind(body, len);
    if (kind)
        kinds[kind](e, m, body, len);
    else
        e->counters.corrupt++;
}
