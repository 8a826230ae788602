/* The frames of state transfer: QUERY, INFO, WANT, DATA and NONE, one wire type. */
#include "wire/state.h"
#include "base/bytes.h"

static int verdict_of(bool fine) { return fine ? SLEET_OK : SLEET_EMALFORMED; }

uint32_t wire_state_pieces(uint32_t bytes)
{
    return (bytes + WIRE_PAYLOAD_MAX - 1) / WIRE_PAYLOAD_MAX;
}

static uint32_t piece_bytes(uint32_t stored, uint32_t piece)
{
    uint32_t rest = stored - piece * WIRE_PAYLOAD_MAX;
    return rest < WIRE_PAYLOAD_MAX ? rest : WIRE_PAYLOAD_MAX;
}

int wire_state_kind(const uint8_t *p, size_t n)
{
    return n > 0 && p[0] >= STATE_QUERY && p[0] <= STATE_NONE ? p[0] : 0;
}

size_t wire_state_query_encode(uint8_t *out, size_t cap, const struct wire_state_query *q)
{
    byte_writer w = writer_of(out, cap);
    put_u8(&w, STATE_QUERY);
    put_zeros(&w, 3);
    put_u32(&w, q->set);
    put_u64(&w, q->owner);
    return put_done(&w);
}

int wire_state_query_decode(struct wire_state_query *q, const uint8_t *p, size_t n)
{
    byte_reader r = reader_of(p, n);
    bool kind = get_u8(&r) == STATE_QUERY;
    get_zeros(&r, 3);
    q->set = get_u32(&r);
    q->owner = get_u64(&r);
    return verdict_of(get_done(&r) && kind);
}

static bool no_digest(const struct wire_digest *d) { return d->low == 0 && d->high == 0; }

static void put_digest(byte_writer *w, const struct wire_digest *d)
{
    put_u64(w, d->low);
    put_u64(w, d->high);
}

static struct wire_digest get_digest(byte_reader *r)
{
    uint64_t low = get_u64(r);
    return (struct wire_digest){low, get_u64(r)};
}

/* What is not there has no size and no digest; a blob is of a version. */
static bool info_fits(const struct wire_state_info *i)
{
    return i->owner != 0 && i->bytes <= WIRE_STATE_BYTES_MAX && i->blob_bytes <= WIRE_STATE_BLOCK &&
           (i->bytes != 0 || no_digest(&i->digest)) && (i->bytes == 0 || i->version != 0) &&
           (i->blob_version != 0 || (i->blob_bytes == 0 && no_digest(&i->blob_digest)));
}

size_t wire_state_info_encode(uint8_t *out, size_t cap, const struct wire_state_info *i)
{
    byte_writer w = writer_of(out, cap);
    if (!info_fits(i))
        return 0;
    put_u8(&w, STATE_INFO);
    put_zeros(&w, 3);
    put_u32(&w, i->set);
    put_u64(&w, i->owner);
    put_u64(&w, i->version);
    put_u64(&w, i->bytes);
    put_digest(&w, &i->digest);
    put_u64(&w, i->blob_version);
    put_digest(&w, &i->blob_digest);
    put_u32(&w, i->blob_bytes);
    put_zeros(&w, 4);
    return put_done(&w);
}

int wire_state_info_decode(struct wire_state_info *i, const uint8_t *p, size_t n)
{
    byte_reader r = reader_of(p, n);
    bool kind = get_u8(&r) == STATE_INFO;
    get_zeros(&r, 3);
    i->set = get_u32(&r);
    i->owner = get_u64(&r);
    i->version = get_u64(&r);
    i->bytes = get_u64(&r);
    i->digest = get_digest(&r);
    i->blob_version = get_u64(&r);
    i->blob_digest = get_digest(&r);
    i->blob_bytes = get_u32(&r);
    get_zeros(&r, 4);
    return verdict_of(get_done(&r) && kind && info_fits(i));
}

static bool object_fits(const struct wire_state_ref *o)
{
    return o->object >= STATE_BLOCK && o->object <= STATE_BLOB && o->version != 0 &&
           (o->object == STATE_BLOB) == (o->owner != 0);
}

static void put_ref(byte_writer *w, uint8_t kind, const struct wire_state_ref *o, uint8_t a, uint8_t b)
{
    put_u8(w, kind);
    put_u8(w, o->object);
    put_u8(w, a);
    put_u8(w, b);
    put_u32(w, o->set);
    put_u64(w, o->version);
    put_u64(w, o->owner);
}

static bool get_ref(byte_reader *r, uint8_t kind, struct wire_state_ref *o, uint8_t *a, uint8_t *b)
{
    bool fine = get_u8(r) == kind;
    o->object = get_u8(r);
    *a = get_u8(r);
    *b = get_u8(r);
    o->set = get_u32(r);
    o->version = get_u64(r);
    o->owner = get_u64(r);
    return fine && object_fits(o);
}

static bool want_fits(const struct wire_state_want *m)
{
    return m->n >= 1 && m->n <= WIRE_STATE_WANTS_MAX;
}

static bool entry_fits(const struct wire_state_entry *e)
{
    return e->pieces != 0 && e->pieces >> WIRE_STATE_PIECES_MAX == 0 && e->index < WIRE_STATE_BLOCKS_MAX;
}

size_t wire_state_want_encode(uint8_t *out, size_t cap, const struct wire_state_want *m)
{
    byte_writer w = writer_of(out, cap);
    if (!object_fits(&m->ref) || !want_fits(m))
        return 0;
    put_ref(&w, STATE_WANT, &m->ref, m->n, 0);
    for (unsigned i = 0; i < m->n; i++) {
        if (!entry_fits(&m->entries[i]))
            return 0;
        put_u32(&w, m->entries[i].index);
        put_u64(&w, m->entries[i].check);
        put_u64(&w, m->entries[i].pieces);
    }
    return put_done(&w);
}

int wire_state_want_decode(struct wire_state_want *m, const uint8_t *p, size_t n)
{
    byte_reader r = reader_of(p, n);
    uint8_t zero;
    if (!get_ref(&r, STATE_WANT, &m->ref, &m->n, &zero) || !r.ok || zero || !want_fits(m))
        return SLEET_EMALFORMED;
    for (unsigned i = 0; i < m->n; i++) {
        struct wire_state_entry *e = &m->entries[i];
        e->index = get_u32(&r);
        e->check = get_u64(&r);
        e->pieces = get_u64(&r);
        if (!entry_fits(e))
            return SLEET_EMALFORMED;
    }
    return verdict_of(get_done(&r));
}

static bool data_fits(const struct wire_state_data *d)
{
    return d->codec <= STATE_ZSTD && d->stored >= 1 && d->stored <= WIRE_STATE_BLOCK &&
           d->index < WIRE_STATE_BLOCKS_MAX && d->piece < wire_state_pieces(d->stored);
}

size_t wire_state_data_encode(uint8_t *out, size_t cap, const struct wire_state_data *d)
{
    byte_writer w = writer_of(out, cap);
    if (!object_fits(&d->ref) || !data_fits(d) || d->payload_len != piece_bytes(d->stored, d->piece))
        return 0;
    put_ref(&w, STATE_DATA, &d->ref, d->codec, d->piece);
    put_u32(&w, d->index);
    put_u32(&w, d->stored);
    put_bytes(&w, d->payload, d->payload_len);
    return put_done(&w);
}

int wire_state_data_decode(struct wire_state_data *d, const uint8_t *p, size_t n)
{
    byte_reader r = reader_of(p, n);
    bool fine = get_ref(&r, STATE_DATA, &d->ref, &d->codec, &d->piece);
    d->index = get_u32(&r);
    d->stored = get_u32(&r);
    if (!fine || !r.ok || !data_fits(d))
        return SLEET_EMALFORMED;
    d->payload_len = piece_bytes(d->stored, d->piece);
    d->payload = get_bytes(&r, d->payload_len);
    return verdict_of(get_done(&r));
}

static bool none_fits(const struct wire_state_none *m)
{
    return m->reason >= STATE_NOT_HELD && m->reason <= STATE_DIFFERS &&
           m->index < WIRE_STATE_BLOCKS_MAX;
}

size_t wire_state_none_encode(uint8_t *out, size_t cap, const struct wire_state_none *m)
{
    byte_writer w = writer_of(out, cap);
    if (!object_fits(&m->ref) || !none_fits(m))
        return 0;
    put_ref(&w, STATE_NONE, &m->ref, m->reason, 0);
    put_u32(&w, m->index);
    put_zeros(&w, 4);
    return put_done(&w);
}

int wire_state_none_decode(struct wire_state_none *m, const uint8_t *p, size_t n)
{
    byte_reader r = reader_of(p, n);
    uint8_t zero;
    bool fine = get_ref(&r, STATE_NONE, &m->ref, &m->reason, &zero);
    m->index = get_u32(&r);
    get_zeros(&r, 4);
    return verdict_of(get_done(&r) && fine && zero == 0 && none_fits(m));
}
