/* A donor's work: what was asked of it, in turn, piece by piece.  Bounded: STATE_JOBS_MAX
 * blocks wait, STATE_CACHE compressed ones are kept; what finds no room is asked again. */
#include "state/state.h"
#include <stdlib.h>
#include <zstd.h>

#define ZSTD_LEVEL 1

void server_fini(struct server *s)
{
    for (uint32_t i = 0; i < STATE_CACHE; i++)
        free(s->cache[i].data);
    ZSTD_freeCCtx(s->zstd);
    *s = (struct server){0};
}

static bool same_ref(const struct wire_state_ref *a, const struct wire_state_ref *b)
{
    return a->object == b->object && a->set == b->set && a->version == b->version && a->owner == b->owner;
}

/* ---- the queue -------------------------------------------------------------- */

static struct serve_job *job_of(struct server *s, uint32_t slot, const struct wire_state_ref *ref,
                                uint32_t index)
{
    for (uint32_t i = 0; i < STATE_JOBS_MAX; i++)
        if (s->jobs[i].slot == slot && s->jobs[i].index == index && same_ref(&s->jobs[i].ref, ref))
            return &s->jobs[i];
    return NULL;
}

/* NULL when the receiver, or all together, wait for as much as is allowed. */
static struct serve_job *new_job(struct server *s, uint32_t slot)
{
    struct serve_job *room = NULL;
    uint32_t mine = 0;
    for (uint32_t i = 0; i < STATE_JOBS_MAX; i++) {
        mine += s->jobs[i].slot == slot;
        if (!s->jobs[i].slot)
            room = &s->jobs[i];
    }
    if (!room || mine >= STATE_JOBS_EACH)
        return NULL;
    s->n++;
    s->blocks++;
    return room;
}

static void end_job(struct server *s, struct serve_job *j)
{
    *j = (struct serve_job){0};
    s->n--;
}

bool server_want(struct server *s, const struct serve_source *from, uint32_t slot,
                 const struct wire_state_want *w, struct wire_state_none *none)
{
    bool lacks = false;
    for (uint32_t i = 0; i < w->n; i++) {
        const struct wire_state_entry *e = &w->entries[i];
        struct served bytes;
        int why = from->find(from->arg, &w->ref, e->index, e->check, &bytes);
        if (why) {
            *none = (struct wire_state_none){w->ref, (uint8_t)why, e->index};
            lacks = true;
            continue;
        }
        struct serve_job *j = job_of(s, slot, &w->ref, e->index);
        if (!j && !(j = new_job(s, slot))) {
            s->refused++;
            continue;
        }
        uint64_t order = j->slot ? j->order : ++s->order;
        *j = (struct serve_job){(uint16_t)slot, w->ref, e->index, e->check, e->pieces, order};
    }
    return lacks;
}

/* The receiver's oldest. */
static struct serve_job *first_job(struct server *s, uint32_t slot)
{
    struct serve_job *first = NULL;
    for (uint32_t i = 0; s->n && i < STATE_JOBS_MAX; i++)
        if (s->jobs[i].slot == slot && (!first || s->jobs[i].order < first->order))
            first = &s->jobs[i];
    return first;
}

bool server_has(const struct server *s, uint32_t slot)
{
    return first_job((struct server *)(uintptr_t)s, slot) != NULL;
}

void server_forget(struct server *s, uint32_t slot)
{
    for (uint32_t i = 0; i < STATE_JOBS_MAX; i++)
        if (s->jobs[i].slot == slot)
            end_job(s, &s->jobs[i]);
}

/* ---- compression ------------------------------------------------------------- */

static struct serve_cached *cache_place(struct server *s, const struct serve_job *j)
{
    struct serve_cached *oldest = &s->cache[0];
    for (uint32_t i = 0; i < STATE_CACHE; i++) {
        struct serve_cached *c = &s->cache[i];
        if (c->used && c->index == j->index && c->check == j->check && same_ref(&c->ref, &j->ref))
            return c;
        if (!c->used || (oldest->used && c->turn < oldest->turn))
            oldest = c;
    }
    oldest->used = false;
    return oldest;
}

/* The form in which the block travels: compressed where that is fewer datagrams. */
static struct serve_cached *form_of(struct server *s, const struct serve_job *j, const struct served *b)
{
    struct serve_cached *c = cache_place(s, j);
    c->turn = ++s->turn;
    if (c->used)
        return c;
    if (!c->data)
        c->data = malloc(WIRE_STATE_BLOCK);
    if (!s->zstd)
        s->zstd = ZSTD_createCCtx();
    if (!c->data || !s->zstd)
        return NULL;
    size_t room = b->bytes > 1 ? b->bytes - 1 : 0;
    size_t n = ZSTD_compressCCtx(s->zstd, c->data, room, b->data, b->bytes, ZSTD_LEVEL);
    bool helps = !ZSTD_isError(n) && wire_state_pieces((uint32_t)n) < wire_state_pieces(b->bytes);
    c->used = true;
    c->ref = j->ref;
    c->index = j->index;
    c->check = j->check;
    c->stored = helps ? (uint32_t)n : 0;
    return c;
}

size_t server_fill(struct server *s, const struct serve_source *from, uint32_t slot, uint8_t *out,
                   size_t cap)
{
    struct serve_job *j;
    while ((j = first_job(s, slot))) {
        struct served b;
        if (from->find(from->arg, &j->ref, j->index, j->check, &b)) {
            end_job(s, j); /* replaced since; the receiver asks again and is told */
            continue;
        }
        const struct serve_cached *c = form_of(s, j, &b);
        bool zstd = c && c->stored;
        uint32_t stored = zstd ? c->stored : b.bytes;
        uint64_t pieces = j->pieces & state_pieces_mask(stored);
        if (!pieces) {
            end_job(s, j);
            continue;
        }
        uint32_t piece = (uint32_t)__builtin_ctzll(pieces);
        uint32_t at = piece * WIRE_PAYLOAD_MAX;
        struct wire_state_data d = {.ref = j->ref,
                                    .codec = zstd ? STATE_ZSTD : STATE_RAW,
                                    .piece = (uint8_t)piece,
                                    .index = j->index,
                                    .stored = stored,
                                    .payload = (zstd ? c->data : b.data) + at,
                                    .payload_len = stored - at};
        if (d.payload_len > WIRE_PAYLOAD_MAX)
            d.payload_len = WIRE_PAYLOAD_MAX;
        size_t n = wire_state_data_encode(out, cap, &d);
        s->bytes += d.payload_len;
        j->pieces = pieces & (pieces - 1);
        if (!j->pieces || !n)
            end_job(s, j);
        return n;
    }
    return 0;
}
