/* The frame that says that a node is there, and what it knows of its sets: PING. */
#include "wire/wire.h"
#include "base/bytes.h"
#include <math.h>
#include <string.h>

#define PING_FLAGS                                                                           \
    (PING_ATTACHED | PING_ESTABLISHED | PING_CLOSED | PING_DIFFERS | PING_PARKED | PING_PAUSED |    \
     PING_MERGED | PING_SKETCH)

enum { ASKS = 1, DECLARES = 2 }; /* flags of the frame */

static int verdict_of(bool fine) { return fine ? SLEET_OK : SLEET_EMALFORMED; }

static bool ping_set_fits(const struct wire_ping_set *s)
{
    bool model = s->lineage || s->parent || s->forked_at || s->weight;
    return !(s->flags & ~PING_FLAGS) && (!model || (s->flags & PING_ESTABLISHED)) &&
           s->round <= INT64_MAX;
}

static void put_sketch(byte_writer *w, const struct wire_sketch *k)
{
    put_u32(w, k->round);
    put_u32(w, k->group);
    put_u64(w, k->digest);
    put_f32(w, k->norm);
    for (unsigned i = 0; i < WIRE_PROJECTIONS; i++)
        put_f32(w, k->projection[i]);
    for (unsigned i = 0; i < WIRE_PROJECTIONS; i++)
        put_f32(w, k->before[i]);
    put_zeros(w, 4);
}

static bool get_sketch(byte_reader *r, struct wire_sketch *k)
{
    k->round = get_u32(r);
    k->group = get_u32(r);
    k->digest = get_u64(r);
    k->norm = get_f32(r);
    bool finite = isfinite(k->norm) && k->norm >= 0;
    for (unsigned i = 0; i < WIRE_PROJECTIONS; i++) {
        k->projection[i] = get_f32(r);
        finite &= isfinite(k->projection[i]) != 0;
    }
    for (unsigned i = 0; i < WIRE_PROJECTIONS; i++) {
        k->before[i] = get_f32(r);
        finite &= isfinite(k->before[i]) != 0;
    }
    get_zeros(r, 4);
    return finite;
}

static void put_strategy(byte_writer *w, const struct wire_strategy *s)
{
    put_u8(w, s->id);
    put_u16(w, s->numbers[0]);
    put_u16(w, s->numbers[1]);
}

static void get_strategy(byte_reader *r, struct wire_strategy *s)
{
    s->id = get_u8(r);
    s->numbers[0] = get_u16(r);
    s->numbers[1] = get_u16(r);
}

static bool switch_fits(const struct wire_switch *s)
{
    return s->version && s->by && s->from <= INT64_MAX && s->to.id && s->before.id;
}

static void put_switch(byte_writer *w, const struct wire_switch *s)
{
    put_u64(w, s->from);
    put_u64(w, s->by);
    put_u32(w, s->version);
    put_strategy(w, &s->to);
    put_strategy(w, &s->before);
    put_zeros(w, 2);
}

static bool get_switch(byte_reader *r, struct wire_switch *s)
{
    s->from = get_u64(r);
    s->by = get_u64(r);
    s->version = get_u32(r);
    get_strategy(r, &s->to);
    get_strategy(r, &s->before);
    get_zeros(r, 2);
    return switch_fits(s);
}

static void put_declared(byte_writer *w, const struct declared *d)
{
    put_u32(w, d->kbit);
    put_u8(w, d->role);
    put_zeros(w, 3);
    put_bytes(w, d->site, sizeof d->site);
    w->ok &= declared_fits(d);
}

/* Only where there is something: there is one form of everything. */
static bool get_declared(byte_reader *r, struct declared *d)
{
    d->kbit = get_u32(r);
    d->role = get_u8(r);
    get_zeros(r, 3);
    const uint8_t *site = get_bytes(r, sizeof d->site);
    if (site)
        memcpy(d->site, site, sizeof d->site);
    return declared_fits(d) && declared_any(d);
}

size_t wire_ping_encode(uint8_t *out, size_t cap, const struct wire_ping *m)
{
    byte_writer w = writer_of(out, cap);
    if (m->n > WIRE_PING_SETS_MAX)
        return 0;
    put_u32(&w, m->time);
    put_u32(&w, m->echo);
    put_u32(&w, m->hold);
    put_u32(&w, m->overflow);
    put_u8(&w, (uint8_t)((m->request ? ASKS : 0) | (declared_any(&m->declared) ? DECLARES : 0)));
    put_u8(&w, m->n);
    put_zeros(&w, 2);
    if (declared_any(&m->declared))
        put_declared(&w, &m->declared);
    for (unsigned i = 0; i < m->n; i++) {
        const struct wire_ping_set *s = &m->sets[i];
        if (!ping_set_fits(s) || (s->change.version && !switch_fits(&s->change)))
            return 0;
        put_u32(&w, s->hash);
        put_u8(&w, s->flags);
        put_u8(&w, s->change.version != 0);
        put_zeros(&w, 2);
        put_u64(&w, s->round);
        put_u64(&w, s->lineage);
        put_u64(&w, s->parent);
        put_u64(&w, s->forked_at);
        put_u64(&w, s->weight);
        if (s->flags & PING_SKETCH)
            put_sketch(&w, &s->sketch);
        if (s->change.version)
            put_switch(&w, &s->change);
    }
    return put_done(&w);
}

int wire_ping_decode(struct wire_ping *m, const uint8_t *p, size_t n)
{
    byte_reader r = reader_of(p, n);
    memset(m, 0, sizeof(*m));
    m->time = get_u32(&r);
    m->echo = get_u32(&r);
    m->hold = get_u32(&r);
    m->overflow = get_u32(&r);
    uint8_t flags = get_u8(&r);
    m->request = flags & ASKS;
    m->n = get_u8(&r);
    get_zeros(&r, 2);
    bool fits = !(flags & ~(ASKS | DECLARES)) && (!(flags & DECLARES) || get_declared(&r, &m->declared));
    if (!r.ok || !fits || m->n > WIRE_PING_SETS_MAX)
        return SLEET_EMALFORMED;
    for (unsigned i = 0; i < m->n; i++) {
        struct wire_ping_set *s = &m->sets[i];
        s->hash = get_u32(&r);
        s->flags = get_u8(&r);
        uint8_t more = get_u8(&r);
        get_zeros(&r, 2);
        s->round = get_u64(&r);
        s->lineage = get_u64(&r);
        s->parent = get_u64(&r);
        s->forked_at = get_u64(&r);
        s->weight = get_u64(&r);
        if (more > 1 || !ping_set_fits(s) || ((s->flags & PING_SKETCH) && !get_sketch(&r, &s->sketch)) ||
            (more && !get_switch(&r, &s->change)))
            return SLEET_EMALFORMED;
    }
    return verdict_of(get_done(&r));
}
