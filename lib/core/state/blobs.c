/* The newest blob of each node, so that a dead one's can still be read.  Told of by INFO,
 * fetched from whoever told, verified, and only then put in the place of the older one. */
#include "state/state.h"
#include <stdlib.h>
#include <string.h>

#define TRIES_MAX 20
#define DOUBLINGS 2 /* of the patience: it is a datagram or a few */
#define OWN_MAX (sizeof ((struct blobs *)0)->of / sizeof(struct blob) - STATE_BLOBS_MAX)

#define EACH(b, all) \
    (struct blob *b = (all)->of; b < (all)->of + sizeof (all)->of / sizeof *(all)->of; b++)

static void stop(struct blob *b)
{
    block_in_fini(&b->in);
    b->next_version = b->holder = 0;
    b->ask_at = TIME_NEVER;
    b->tries = 0;
}

static void release(struct blob *b)
{
    stop(b);
    free(b->data);
    *b = (struct blob){0};
}

void blobs_fini(struct blobs *all)
{
    for EACH (b, all)
        release(b);
}

struct blob *blobs_find(struct blobs *all, uint32_t set, uint64_t owner)
{
    for EACH (b, all)
        if (b->owner == owner && b->set == set && owner)
            return b;
    return NULL;
}

/* A place; of others at most STATE_BLOBS_MAX, the one longest unchanged gives way. */
static struct blob *place_for(struct blobs *all, uint64_t self, uint32_t set, uint64_t owner)
{
    struct blob *b = blobs_find(all, set, owner), *room = NULL, *oldest = NULL;
    uint32_t own = 0, others = 0;
    if (b)
        return b;
    for EACH (c, all) {
        own += c->owner == self;
        others += c->owner && c->owner != self;
        if (!c->owner)
            room = c;
        else if (c->owner != self && (!oldest || c->turn < oldest->turn))
            oldest = c;
    }
    if (owner == self ? own >= OWN_MAX : others >= STATE_BLOBS_MAX)
        room = owner == self ? NULL : oldest;
    if (!room)
        return NULL;
    if (room->owner)
        release(room);
    *room = (struct blob){.set = set, .owner = owner, .ask_at = TIME_NEVER, .turn = ++all->turn};
    return room;
}

static void take(struct blobs *all, struct blob *b, uint64_t version, struct wire_digest digest,
                 uint8_t *data, uint32_t bytes)
{
    free(b->data);
    b->data = data;
    b->bytes = bytes;
    b->version = version;
    b->digest = digest;
    b->turn = ++all->turn;
}

int blobs_put(struct blobs *all, uint64_t self, uint32_t set, uint64_t version, const void *p,
              uint32_t bytes)
{
    if (bytes > WIRE_STATE_BLOCK || !version)
        return SLEET_ELIMIT;
    struct blob *b = place_for(all, self, set, self);
    uint8_t *copy = b ? malloc(bytes ? bytes : 1) : NULL;
    if (!copy)
        return b ? SLEET_ENOMEM : SLEET_ELIMIT;
    if (bytes)
        memcpy(copy, p, bytes);
    stop(b);
    take(all, b, version, state_digest(copy, bytes), copy, bytes);
    return SLEET_OK;
}

static bool newer(const struct blob *b, const struct wire_state_info *i, bool by_owner)
{
    uint64_t known = b->next_version ? b->next_version : b->version;
    struct wire_digest digest = b->next_version ? b->next_digest : b->digest;
    if (i->blob_version == known && digest_equal(i->blob_digest, digest))
        return false;
    return by_owner || i->blob_version > known;
}

void blobs_learn(struct blobs *all, uint64_t self, uint64_t holder, const struct wire_state_info *i,
                 sleet_time now)
{
    struct blob *b = blobs_find(all, i->set, i->owner);
    if ((!i->blob_version && !i->version) || (i->owner == self && b && b->version))
        return; /* of itself a node only learns what it had in an earlier life */
    b = place_for(all, self, i->set, i->owner);
    if (b && holder == i->owner)
        b->state_version = i->version;
    if (!b || !i->blob_version || !newer(b, i, holder == i->owner))
        return;
    stop(b);
    if (i->blob_bytes == 0) {
        if (digest_equal(state_digest("", 0), i->blob_digest))
            take(all, b, i->blob_version, i->blob_digest, NULL, 0);
        return;
    }
    b->next_version = i->blob_version;
    b->next_digest = i->blob_digest;
    b->holder = holder;
    b->ask_at = now;
    block_in_start(&b->in, i->blob_bytes);
}

bool blobs_data(struct blobs *all, uint64_t from, const struct wire_state_data *d, sleet_time now)
{
    struct blob *b = blobs_find(all, d->ref.set, d->ref.owner);
    if (!b || b->next_version != d->ref.version || b->holder != from || d->index)
        return false;
    enum block_fate fate = block_in_put(&b->in, d);
    if (fate == BLOCK_PIECE) {
        b->tries = 0;
        uint64_t lacks = block_in_lacks(&b->in);
        if (lacks >> d->piece == 0) /* the last one wanted: what lacks is lost */
            b->ask_at = now;
    }
    if (fate == BLOCK_BAD)
        stop(b);
    if (fate != BLOCK_WHOLE)
        return false;
    uint8_t *data = malloc(b->in.bytes);
    bool right = data && block_in_open(&b->in, &b->next_digest, data);
    if (right)
        take(all, b, b->next_version, b->next_digest, data, b->in.bytes);
    else
        free(data);
    stop(b);
    return right;
}

void blobs_none(struct blobs *all, uint64_t from, const struct wire_state_none *m)
{
    struct blob *b = blobs_find(all, m->ref.set, m->ref.owner);
    if (b && b->holder == from && b->next_version == m->ref.version)
        stop(b);
}

bool blobs_pending(const struct blobs *all, uint32_t set, uint64_t owner)
{
    const struct blob *b = blobs_find((struct blobs *)(uintptr_t)all, set, owner);
    return b && b->next_version;
}

static bool ask(struct blob *b, const struct state_path *path, struct state_frame *f, sleet_time now)
{
    struct wire_state_want w = {
        .ref = {STATE_BLOB, b->set, b->next_version, b->owner},
        .n = 1,
        .entries = {{0, b->next_digest.low, block_in_lacks(&b->in)}}};
    f->to = b->holder;
    f->len = wire_state_want_encode(f->body, sizeof f->body, &w);
    sleet_duration wait = path->timeout > MS(50) ? path->timeout : MS(50);
    b->ask_at = time_add(now, wait << (b->tries < DOUBLINGS ? b->tries : DOUBLINGS));
    b->tries++;
    return f->len > 0;
}

bool blobs_next(struct blobs *all, const struct state_paths *paths, struct state_frame *f, sleet_time now)
{
    for EACH (b, all) {
        struct state_path path;
        if (!b->next_version || time_before(now, b->ask_at))
            continue;
        if (b->tries >= TRIES_MAX || !paths->find(paths->arg, b->holder, &path))
            stop(b);
        else if (ask(b, &path, f, now))
            return true;
    }
    return false;
}

sleet_time blobs_deadline(const struct blobs *all)
{
    sleet_time t = TIME_NEVER;
    for EACH (b, (struct blobs *)(uintptr_t)all)
        if (b->next_version)
            t = time_min(t, b->ask_at);
    return t;
}
