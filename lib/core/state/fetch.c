/* A joiner's work: who has what, the manifest from one donor, then blocks from all that have
 * the version.  A donor whose block differs says so; one whose block is not what its manifest
 * or the chosen one says has lied and is not asked again. */
#include "base/bitmap.h"
#include "state/state.h"
#include <stdlib.h>
#include <string.h>

#define LOOK MS(500)       /* for answers, where some have come and some have not */
#define LOOK_NONE SEC(3)   /* for anybody who has it */
#define QUERIES_MAX 6      /* without an answer until a member is not waited for */
#define QUERY_GAP MS(50)
#define MANIFEST_ENTRY 16
#define CONTRADICTIONS_MAX 3 /* another form after a restart is no lie */

static uint64_t manifest_bytes(const struct fetch *f)
{
    return (uint64_t)state_blocks(f->bytes) * MANIFEST_ENTRY;
}

struct fetch *fetch_new(uint32_t set, void *into, uint64_t bytes, uint64_t own_version,
                        uint64_t least, sleet_duration limit, sleet_time now)
{
    if (!into || !bytes || bytes > WIRE_STATE_BYTES_MAX)
        return NULL;
    struct fetch *f = calloc(1, sizeof *f);
    if (!f)
        return NULL;
    f->set = set;
    f->into = into;
    f->bytes = bytes;
    f->own_version = own_version;
    f->least = least;
    f->deadline = time_add(now, limit);
    f->look_until = time_add(now, LOOK);
    f->look_at = now;
    size_t blocks = state_blocks(bytes), words = bitmap_words(blocks);
    f->done = calloc(words, sizeof *f->done);
    f->taken = calloc(words, sizeof *f->taken);
    f->old_done = calloc(words, sizeof *f->old_done);
    f->refused = calloc(blocks, sizeof *f->refused);
    f->manifest = malloc(blocks * MANIFEST_ENTRY);
    f->old_manifest = malloc(blocks * MANIFEST_ENTRY);
    if (f->done && f->taken && f->old_done && f->refused && f->manifest && f->old_manifest)
        return f;
    fetch_free(f);
    return NULL;
}

void fetch_free(struct fetch *f)
{
    if (!f)
        return;
    for (uint32_t i = 0; i < STATE_FLIGHT_MAX; i++)
        block_in_fini(&f->flight[i].in);
    free(f->done);
    free(f->taken);
    free(f->old_done);
    free(f->refused);
    free(f->manifest);
    free(f->old_manifest);
    free(f);
}

/* ---- phases -------------------------------------------------------------------- */

static void clear_flight(struct fetch *f)
{
    for (uint32_t i = 0; i < STATE_FLIGHT_MAX; i++)
        if (f->flight[i].used)
            fetch_release(f, &f->flight[i]);
}

static void begin_phase(struct fetch *f, enum fetch_phase phase, uint32_t blocks)
{
    size_t words = bitmap_words(state_blocks(f->bytes));
    clear_flight(f);
    f->phase = phase;
    f->blocks = blocks;
    f->done_n = 0;
    memset(f->done, 0, words * sizeof *f->done);
    memset(f->taken, 0, words * sizeof *f->taken);
    memset(f->refused, 0, state_blocks(f->bytes) * sizeof *f->refused);
}

/* Nobody is left for this version: look for another; right blocks are kept. */
static void look_again(struct fetch *f, sleet_time now)
{
    if (f->phase == FETCH_BLOCKS) {
        memcpy(f->old_manifest, f->manifest, manifest_bytes(f));
        memcpy(f->old_done, f->done, bitmap_words(f->blocks) * sizeof *f->done);
    }
    begin_phase(f, FETCH_LOOK, 0);
    f->look_until = time_add(now, LOOK);
    f->look_at = now;
    for (uint32_t i = 0; i < f->donors_n; i++) {
        struct fetch_donor *d = &f->donors[i];
        d->answered = d->dropped = false;
        d->queries = 0;
        d->ask_at = now;
    }
}

static void finish(struct fetch *f, int error)
{
    clear_flight(f);
    f->phase = FETCH_DONE;
    f->error = error;
}

/* The manifest is whole: blocks that were right under the one before and are the same now are done. */
static void begin_blocks(struct fetch *f)
{
    uint32_t blocks = state_blocks(f->bytes);
    begin_phase(f, FETCH_BLOCKS, blocks);
    for (uint32_t i = 0; i < blocks; i++)
        if (bitmap_test(f->old_done, i) &&
            digest_equal(manifest_at(f->manifest, i), manifest_at(f->old_manifest, i))) {
            bitmap_set(f->done, i);
            f->done_n++;
            f->kept++;
        }
    memset(f->old_done, 0, bitmap_words(blocks) * sizeof *f->old_done);
    if (f->done_n == blocks)
        finish(f, SLEET_OK);
}

static void lied(struct fetch *f, uint32_t donor)
{
    f->donors[donor].banned = true;
    f->lies++;
    f->liar = f->donors[donor].node_id;
    fetch_release_all(f, donor);
}

/* ---- who has what ----------------------------------------------------------------- */

static struct fetch_donor *donor_of(struct fetch *f, uint64_t node_id)
{
    for (uint32_t i = 0; i < f->donors_n; i++)
        if (f->donors[i].node_id == node_id)
            return &f->donors[i];
    return NULL;
}

void fetch_candidate(struct fetch *f, uint64_t node_id, sleet_time now)
{
    if (f->donors_n == STATE_DONORS_MAX || donor_of(f, node_id))
        return;
    f->donors[f->donors_n++] = (struct fetch_donor){
        .node_id = node_id, .window = 2, .ask_at = now, .due = TIME_NEVER};
}

void fetch_info(struct fetch *f, uint64_t from, const struct wire_state_info *i)
{
    struct fetch_donor *d = donor_of(f, from);
    if (!d || i->owner != from)
        return;
    f->wrong_size += !d->answered && i->bytes && i->bytes != f->bytes;
    /* A newer one than is being fetched: it serves that as well while it is asked for. */
    if (f->phase == FETCH_LOOK || !d->answered || i->version == f->version) {
        d->info = *i;
        d->dropped = false;
    }
    d->answered = true;
}

static bool better(const struct fetch *f, const struct fetch_donor *a, const struct fetch_donor *b)
{
    uint32_t with[2] = {0, 0};
    if (!b || a->info.version != b->info.version)
        return !b || a->info.version > b->info.version;
    for (uint32_t i = 0; i < f->donors_n; i++)
        if (f->donors[i].answered && f->donors[i].info.version == a->info.version) {
            with[0] += digest_equal(f->donors[i].info.digest, a->info.digest);
            with[1] += digest_equal(f->donors[i].info.digest, b->info.digest);
        }
    return with[0] != with[1] ? with[0] > with[1] : a->node_id < b->node_id;
}

/* The newest version; of that the manifest that most have. */
static void decide(struct fetch *f, const struct state_paths *paths, sleet_time now)
{
    const struct fetch_donor *best = NULL;
    bool waiting = false;
    for (uint32_t i = 0; i < f->donors_n; i++) {
        const struct fetch_donor *d = &f->donors[i];
        struct state_path path;
        if (d->banned || !paths->find(paths->arg, d->node_id, &path))
            continue;
        waiting |= !d->answered && d->queries < QUERIES_MAX;
        if (d->answered && d->info.bytes == f->bytes && d->info.version > f->least && better(f, d, best))
            best = d;
    }
    bool none_yet = !best && (waiting || !f->donors_n) &&
                    time_before(now, time_add(f->look_until, LOOK_NONE - LOOK));
    f->look_at = time_before(now, f->look_until) ? f->look_until : time_add(now, LOOK / 5);
    if ((best && waiting && time_before(now, f->look_until)) || none_yet)
        return;
    if (f->own_version > f->least && (!best || best->info.version <= f->own_version)) {
        f->version = f->own_version;
        f->own = true;
        finish(f, SLEET_OK);
    } else if (!best) {
        finish(f, SLEET_ENOSTATE);
    } else {
        f->version = best->info.version;
        f->digest = best->info.digest;
        f->source = best->node_id;
        begin_phase(f, FETCH_MANIFEST, state_blocks(manifest_bytes(f)));
    }
}

/* ---- what comes --------------------------------------------------------------------- */

static struct fetch_block *block_of(struct fetch *f, uint32_t donor, uint32_t index)
{
    for (uint32_t i = 0; i < STATE_FLIGHT_MAX; i++)
        if (f->flight[i].used && f->flight[i].index == index && f->flight[i].donor == donor)
            return &f->flight[i];
    return NULL;
}

/* A donor works off what it is asked in order: what was asked before and lacks pieces is lost. */
static void note_overtaken(struct fetch *f, struct fetch_block *b, uint32_t piece, sleet_time retry)
{
    for (uint32_t i = 0; i < STATE_FLIGHT_MAX; i++) {
        struct fetch_block *o = &f->flight[i];
        bool passed = o == b ? block_in_lacks(&b->in) >> piece == 0 : o->seq < b->seq;
        if (o->used && !o->ask && o->donor == b->donor && passed && time_is_never(o->retry_at))
            o->retry_at = retry;
    }
}

static bool place(struct fetch *f, const struct fetch_block *b)
{
    uint64_t at = (uint64_t)b->index * WIRE_STATE_BLOCK;
    if (f->phase == FETCH_MANIFEST)
        return block_in_open(&b->in, NULL, f->manifest + at);
    struct wire_digest digest = manifest_at(f->manifest, b->index);
    return block_in_open(&b->in, &digest, f->into + at);
}

static void whole(struct fetch *f, struct fetch_block *b, sleet_time now)
{
    uint32_t donor = b->donor, index = b->index;
    struct fetch_donor *d = &f->donors[donor];
    if (!place(f, b)) {
        lied(f, donor);
        return;
    }
    if (d->window < STATE_FLIGHT_EACH)
        d->window++;
    d->blocks++;
    fetch_release(f, b);
    bitmap_set(f->done, index);
    if (++f->done_n < f->blocks)
        return;
    if (f->phase == FETCH_BLOCKS) {
        finish(f, SLEET_OK);
    } else if (digest_equal(state_digest(f->manifest, manifest_bytes(f)), f->digest)) {
        begin_blocks(f);
    } else {
        lied(f, donor);
        look_again(f, now);
    }
}

enum block_fate fetch_data(struct fetch *f, const struct state_paths *paths, uint64_t from,
                           const struct wire_state_data *data, sleet_time now)
{
    struct fetch_donor *d = donor_of(f, from);
    uint8_t object = f->phase == FETCH_MANIFEST ? STATE_MANIFEST : STATE_BLOCK;
    struct state_path path = {0};
    if (!d || f->phase == FETCH_DONE || data->ref.version != f->version || data->ref.object != object)
        return BLOCK_STALE;
    struct fetch_block *b = block_of(f, (uint32_t)(d - f->donors), data->index);
    if (!b)
        return BLOCK_STALE;
    if (paths->find(paths->arg, from, &path)) {
        d->timeouts = 0;
        d->due = time_add(now, path.timeout > MS(50) ? path.timeout : MS(50));
    }
    enum block_fate fate = block_in_put(&b->in, data);
    if (fate == BLOCK_BAD && ++d->contradictions >= CONTRADICTIONS_MAX)
        lied(f, b->donor);
    else if (fate == BLOCK_BAD)
        fetch_release(f, b);
    if (fate == BLOCK_PIECE || fate == BLOCK_WHOLE)
        note_overtaken(f, b, data->piece, time_add(now, path.grace));
    if (fate == BLOCK_WHOLE)
        whole(f, b, now);
    return fate;
}

void fetch_none(struct fetch *f, uint64_t from, const struct wire_state_none *m)
{
    struct fetch_donor *d = donor_of(f, from);
    if (!d || f->phase == FETCH_DONE || m->ref.version != f->version || m->index >= f->blocks)
        return;
    uint32_t donor = (uint32_t)(d - f->donors);
    struct fetch_block *b = block_of(f, donor, m->index);
    if (m->reason == STATE_NOT_HELD) {
        d->dropped = true;
        fetch_release_all(f, donor);
    } else if (b) {
        f->refused[m->index] |= UINT64_C(1) << donor;
        fetch_release(f, b);
    }
}

/* ---- time ------------------------------------------------------------------------------ */

void fetch_expire(struct fetch *f, const struct state_paths *paths, sleet_time now)
{
    if (f->phase == FETCH_DONE)
        return;
    if (f->phase == FETCH_LOOK)
        decide(f, paths, now);
    if (f->phase == FETCH_MANIFEST || f->phase == FETCH_BLOCKS) {
        fetch_time_out(f, paths, now);
        if (!fetch_plan(f, paths, now))
            look_again(f, now);
    }
    if (f->phase != FETCH_DONE && !time_before(now, f->deadline))
        finish(f, f->version ? SLEET_EAGAIN : SLEET_ENOSTATE);
}

bool fetch_next(struct fetch *f, const struct state_paths *paths, struct state_frame *out, sleet_time now)
{
    struct state_path path;
    if (f->phase == FETCH_DONE)
        return false;
    for (uint32_t i = 0; i < f->donors_n; i++) {
        struct fetch_donor *d = &f->donors[i];
        if (d->answered || d->banned || time_before(now, d->ask_at))
            continue;
        bool there = paths->find(paths->arg, d->node_id, &path);
        sleet_duration gap = there && path.timeout > QUERY_GAP ? path.timeout : QUERY_GAP;
        d->ask_at = time_add(now, gap << (d->queries < 4 ? d->queries : 4));
        if (!there)
            continue;
        d->queries++;
        struct wire_state_query q = {.set = f->set};
        out->to = d->node_id;
        out->len = wire_state_query_encode(out->body, sizeof out->body, &q);
        return true;
    }
    return f->phase != FETCH_LOOK && fetch_want(f, paths, out, now);
}

sleet_time fetch_deadline(const struct fetch *f)
{
    sleet_time t = time_min(f->deadline, f->look_at);
    if (f->phase == FETCH_DONE)
        return TIME_NEVER;
    for (uint32_t i = 0; i < f->donors_n; i++) {
        const struct fetch_donor *d = &f->donors[i];
        if (!d->answered && !d->banned)
            t = time_min(t, d->ask_at);
        t = time_min(t, d->due);
    }
    for (uint32_t i = 0; i < STATE_FLIGHT_MAX; i++)
        if (f->flight[i].used)
            t = time_min(t, f->flight[i].retry_at);
    return t;
}

uint32_t fetch_donors(const struct fetch *f)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < f->donors_n; i++)
        n += f->donors[i].blocks > 0;
    return n;
}
