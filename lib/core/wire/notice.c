/* The frame of the operator's orders: NOTICE. */
#include "wire/notice.h"
#include "base/bytes.h"

static const uint8_t label[16] = "sleet notice 1";
static const uint8_t no_value[WIRE_RECORD_VALUE];

static bool named(const struct wire_record *r)
{
    bool evict = r->kind == RECORD_EVICT;
    return (evict || r->kind == RECORD_REKEY) && r->serial && evict == (r->subject != 0);
}

static bool record_fits(const struct wire_record *r)
{
    bool empty = memcmp(r->value, no_value, sizeof no_value) == 0;
    return named(r) && empty == (r->kind == RECORD_EVICT);
}

static void put_name(byte_writer *w, const struct wire_record *r)
{
    put_u8(w, r->kind);
    put_zeros(w, 7);
    put_u64(w, r->serial);
    put_u64(w, r->subject);
}

static void get_name(byte_reader *p, struct wire_record *r)
{
    r->kind = get_u8(p);
    get_zeros(p, 7);
    r->serial = get_u64(p);
    r->subject = get_u64(p);
}

static void put_record(byte_writer *w, const struct wire_record *r)
{
    put_name(w, r);
    put_u64(w, r->job);
    put_bytes(w, r->value, sizeof r->value);
    put_bytes(w, r->signature, sizeof r->signature);
}

static void get_record(byte_reader *p, struct wire_record *r)
{
    get_name(p, r);
    r->job = get_u64(p);
    const uint8_t *value = get_bytes(p, sizeof r->value);
    const uint8_t *signature = get_bytes(p, sizeof r->signature);
    if (!p->ok)
        return;
    memcpy(r->value, value, sizeof r->value);
    memcpy(r->signature, signature, sizeof r->signature);
}

size_t wire_record_encode(uint8_t *out, size_t cap, const struct wire_record *r)
{
    byte_writer w = writer_of(out, cap);
    if (!record_fits(r))
        return 0;
    put_record(&w, r);
    return put_done(&w);
}

int wire_record_decode(struct wire_record *r, const uint8_t *bytes, size_t n)
{
    byte_reader p = reader_of(bytes, n);
    memset(r, 0, sizeof *r);
    get_record(&p, r);
    return get_done(&p) && record_fits(r) ? SLEET_OK : SLEET_EMALFORMED;
}

bool wire_record_signed(uint8_t out[WIRE_SIGNED_BYTES], const struct wire_record *r)
{
    uint8_t whole[WIRE_RECORD_BYTES];
    if (wire_record_encode(whole, sizeof whole, r) != sizeof whole)
        return false;
    memcpy(out, label, sizeof label);
    memcpy(out + sizeof label, whole, WIRE_RECORD_SIGNED);
    return true;
}

size_t wire_notice_encode(uint8_t *out, size_t cap, const struct wire_notice *n)
{
    byte_writer w = writer_of(out, cap);
    bool whole = n->kind == NOTICE_RECORD;
    if (n->kind < NOTICE_RECORD || n->kind > NOTICE_REFUSED ||
        !(whole ? record_fits(&n->record) : named(&n->record)))
        return 0;
    put_u8(&w, n->kind);
    put_zeros(&w, 7);
    if (whole)
        put_record(&w, &n->record);
    else
        put_name(&w, &n->record);
    return put_done(&w);
}

int wire_notice_decode(struct wire_notice *n, const uint8_t *bytes, size_t len)
{
    byte_reader p = reader_of(bytes, len);
    memset(n, 0, sizeof *n);
    n->kind = get_u8(&p);
    get_zeros(&p, 7);
    if (n->kind == NOTICE_RECORD) {
        get_record(&p, &n->record);
        return get_done(&p) && record_fits(&n->record) ? SLEET_OK : SLEET_EMALFORMED;
    }
    get_name(&p, &n->record);
    bool kind = n->kind == NOTICE_TAKEN || n->kind == NOTICE_REFUSED;
    return kind && get_done(&p) && named(&n->record) ? SLEET_OK : SLEET_EMALFORMED;
}
