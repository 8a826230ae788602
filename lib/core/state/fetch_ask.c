/* Which blocks are asked of whom, and when again. */
#include "base/bitmap.h"
#include "state/state.h"

#define TIMEOUT_MIN MS(50)
#define TIMEOUTS_MAX 5      /* in a row until a donor counts as silent */
#define AWAY SEC(1)         /* that long others are asked */
#define TAKE_OVER_MIN MS(100) /* a block that takes longer may go to an idle donor */
#define LOOK_GAP MS(50)

/* It has the version; or, of the manifest, the very one. */
bool fetch_usable(const struct fetch *f, const struct fetch_donor *d)
{
    if (!d->answered || d->banned || d->dropped || d->info.version != f->version ||
        d->info.bytes != f->bytes)
        return false;
    return f->phase != FETCH_MANIFEST || digest_equal(d->info.digest, f->digest);
}

static sleet_duration timeout_of(const struct state_path *path, uint32_t times)
{
    sleet_duration t = path->timeout > TIMEOUT_MIN ? path->timeout : TIMEOUT_MIN;
    return t << (times < 5 ? times : 5);
}

void fetch_release(struct fetch *f, struct fetch_block *b)
{
    struct fetch_donor *d = &f->donors[b->donor];
    bitmap_clear(f->taken, b->index);
    b->used = b->ask = false;
    f->flight_n--;
    if (--d->in_flight == 0) {
        d->due = TIME_NEVER;
        d->timeouts = 0;
    }
}

void fetch_release_all(struct fetch *f, uint32_t donor)
{
    for (uint32_t i = 0; i < STATE_FLIGHT_MAX; i++)
        if (f->flight[i].used && f->flight[i].donor == donor)
            fetch_release(f, &f->flight[i]);
}

static uint64_t phase_bytes(const struct fetch *f)
{
    return f->phase == FETCH_MANIFEST ? (uint64_t)state_blocks(f->bytes) * 16 : f->bytes;
}

static void ask_for(struct fetch *f, struct fetch_block *b, uint32_t donor, sleet_time now)
{
    b->donor = donor;
    b->ask = true;
    b->asked_at = now;
    b->retry_at = TIME_NEVER;
    block_in_start(&b->in, state_block_bytes(phase_bytes(f), b->index));
    f->donors[donor].in_flight++;
}

static uint32_t next_block(const struct fetch *f, uint32_t donor)
{
    for (uint32_t w = 0; w < bitmap_words(f->blocks); w++) {
        uint64_t open = ~(f->done[w] | f->taken[w]);
        for (; open; open &= open - 1) {
            uint32_t i = w * 64 + (uint32_t)__builtin_ctzll(open);
            if (i >= f->blocks)
                return f->blocks;
            if (!(f->refused[i] >> donor & 1))
                return i;
        }
    }
    return f->blocks;
}

/* The donor has nothing to do and nothing is left but what others are at: the one with the
 * fewest pieces, if it takes long. */
static struct fetch_block *slow_block(struct fetch *f, uint32_t donor, sleet_duration patience,
                                      sleet_time now)
{
    struct fetch_block *slow = NULL;
    for (uint32_t i = 0; i < STATE_FLIGHT_MAX; i++) {
        struct fetch_block *b = &f->flight[i];
        uint32_t doublings = b->moves < 6 ? b->moves : 6;
        if (b->used && b->donor != donor && !(f->refused[b->index] >> donor & 1) &&
            time_since(now, b->asked_at) > patience << doublings &&
            (!slow || __builtin_popcountll(b->in.have) < __builtin_popcountll(slow->in.have)))
            slow = b;
    }
    return slow;
}

static bool take_over(struct fetch *f, uint32_t donor, const struct state_path *path, sleet_time now)
{
    sleet_duration patience = 4 * timeout_of(path, 0);
    struct fetch_block *b =
        slow_block(f, donor, patience > TAKE_OVER_MIN ? patience : TAKE_OVER_MIN, now);
    if (!b)
        return false;
    uint32_t index = b->index, moves = b->moves + 1;
    fetch_release(f, b);
    b->used = true;
    b->index = index;
    b->moves = moves;
    bitmap_set(f->taken, index);
    f->flight_n++;
    ask_for(f, b, donor, now);
    return true;
}

/* One more block for the donor. */
static bool give(struct fetch *f, uint32_t donor, const struct state_path *path, sleet_time now)
{
    uint32_t index = f->flight_n < STATE_FLIGHT_MAX ? next_block(f, donor) : f->blocks;
    if (index == f->blocks)
        return f->donors[donor].in_flight == 0 && take_over(f, donor, path, now);
    for (uint32_t i = 0; i < STATE_FLIGHT_MAX; i++) {
        struct fetch_block *b = &f->flight[i];
        if (b->used)
            continue;
        b->used = true;
        b->index = index;
        b->moves = 0;
        bitmap_set(f->taken, index);
        f->flight_n++;
        ask_for(f, b, donor, now);
        return true;
    }
    return false;
}

bool fetch_plan(struct fetch *f, const struct state_paths *paths, sleet_time now)
{
    bool more = true, hope = false;
    f->look_at = time_add(now, LOOK_GAP);
    while (more) {
        more = false;
        for (uint32_t i = 0; i < f->donors_n; i++) {
            uint32_t donor = (f->turn + i) % f->donors_n;
            struct fetch_donor *d = &f->donors[donor];
            struct state_path path;
            if (!fetch_usable(f, d) || !paths->find(paths->arg, d->node_id, &path))
                continue;
            hope |= time_before(now, d->away_until);
            if (time_before(now, d->away_until) || d->in_flight >= d->window)
                continue;
            more |= give(f, donor, &path, now);
            if (f->phase == FETCH_MANIFEST && f->flight_n)
                return true; /* from one donor: a wrong manifest is then known to be its */
        }
        f->turn++;
    }
    return f->flight_n > 0 || hope;
}

/* ---- when again ------------------------------------------------------------------------ */

static void time_out_donor(struct fetch *f, uint32_t donor, const struct state_paths *paths, sleet_time now)
{
    struct fetch_donor *d = &f->donors[donor];
    struct state_path path;
    if (!paths->find(paths->arg, d->node_id, &path)) {
        fetch_release_all(f, donor);
        return;
    }
    if (time_before(now, d->due))
        return;
    if (++d->timeouts >= TIMEOUTS_MAX) {
        d->away_until = time_add(now, AWAY);
        d->window = 2;
        fetch_release_all(f, donor);
        return;
    }
    d->window = d->window > 2 ? d->window / 2 : 1;
    d->due = time_add(now, timeout_of(&path, d->timeouts));
    for (uint32_t i = 0; i < STATE_FLIGHT_MAX; i++)
        if (f->flight[i].used && f->flight[i].donor == donor)
            f->flight[i].ask = true;
}

void fetch_time_out(struct fetch *f, const struct state_paths *paths, sleet_time now)
{
    for (uint32_t i = 0; i < f->donors_n; i++)
        if (f->donors[i].in_flight)
            time_out_donor(f, i, paths, now);
    for (uint32_t i = 0; i < STATE_FLIGHT_MAX; i++) {
        struct fetch_block *b = &f->flight[i];
        if (b->used && !time_before(now, b->retry_at)) {
            b->ask = true;
            b->retry_at = TIME_NEVER;
        }
    }
}

static bool want_from(struct fetch *f, uint32_t donor, struct wire_state_want *w)
{
    bool manifest = f->phase == FETCH_MANIFEST;
    *w = (struct wire_state_want){
        .ref = {manifest ? STATE_MANIFEST : STATE_BLOCK, f->set, f->version, 0}};
    for (uint32_t i = 0; i < STATE_FLIGHT_MAX && w->n < WIRE_STATE_WANTS_MAX; i++) {
        struct fetch_block *b = &f->flight[i];
        if (!b->used || !b->ask || b->donor != donor)
            continue;
        f->asked_again += b->in.have != 0;
        b->ask = false;
        b->retry_at = TIME_NEVER;
        b->seq = ++f->seq;
        w->entries[w->n++] = (struct wire_state_entry){
            b->index, manifest ? f->digest.low : manifest_at(f->manifest, b->index).low,
            block_in_lacks(&b->in)};
    }
    return w->n > 0;
}

bool fetch_want(struct fetch *f, const struct state_paths *paths, struct state_frame *out, sleet_time now)
{
    for (uint32_t i = 0; i < f->donors_n; i++) {
        struct fetch_donor *d = &f->donors[i];
        struct wire_state_want w;
        struct state_path path;
        if (!d->in_flight || !want_from(f, i, &w))
            continue;
        if (time_is_never(d->due) && paths->find(paths->arg, d->node_id, &path))
            d->due = time_add(now, timeout_of(&path, d->timeouts));
        out->to = d->node_id;
        out->len = wire_state_want_encode(out->body, sizeof out->body, &w);
        return out->len > 0;
    }
    return false;
}
