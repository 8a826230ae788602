#include "wire/parity.h"
#include "base/bytes.h"

#define PHASE_AT 16

bool wire_is_parity(const uint8_t *p, size_t n)
{
    return n > PHASE_AT && (p[PHASE_AT] == PHASE_GATHER_PARITY || p[PHASE_AT] == PHASE_SCATTER_PARITY);
}

static bool parity_fits(const struct wire_parity *p)
{
    return (p->phase == PHASE_GATHER_PARITY || p->phase == PHASE_SCATTER_PARITY) && p->rows &&
           wire_code_fits(p->rows, p->depth) && p->row < p->rows && p->blocks >= 1 &&
           p->blocks <= 64 && p->len >= 1 && p->len <= WIRE_BLOCK_MAX;
}

size_t wire_parity_encode(uint8_t *out, size_t cap, const struct wire_parity *p)
{
    byte_writer w = writer_of(out, cap);
    if (!parity_fits(p))
        return 0;
    put_u32(&w, p->group);
    put_u32(&w, p->set);
    put_u32(&w, p->round);
    put_u32(&w, p->index);
    put_u8(&w, p->phase);
    put_u8(&w, wire_code_byte(p->rows, p->depth));
    put_u8(&w, p->row);
    put_u8(&w, p->blocks);
    put_bytes(&w, p->bytes, p->len);
    return put_done(&w);
}

int wire_parity_decode(struct wire_parity *p, const uint8_t *data, size_t n)
{
    byte_reader r = reader_of(data, n);
    *p = (struct wire_parity){0};
    p->group = get_u32(&r);
    p->set = get_u32(&r);
    p->round = get_u32(&r);
    p->index = get_u32(&r);
    p->phase = get_u8(&r);
    wire_code_of(get_u8(&r), &p->rows, &p->depth);
    p->row = get_u8(&r);
    p->blocks = get_u8(&r);
    p->len = (uint32_t)r.left;
    p->bytes = r.p;
    return r.ok && r.left <= WIRE_BLOCK_MAX && parity_fits(p) ? SLEET_OK : SLEET_EMALFORMED;
}

size_t wire_block_encode(uint8_t out[static WIRE_BLOCK_MAX], uint32_t fragment, const struct wire_data *d,
                         const uint8_t *payload, size_t len)
{
    byte_writer w = writer_of(out, WIRE_BLOCK_MAX);
    put_u32(&w, fragment);
    put_u8(&w, d->codec);
    put_u8(&w, d->packed);
    put_u16(&w, (uint16_t)len);
    put_f32(&w, d->weight);
    put_u64(&w, d->mask);
    put_bytes(&w, payload, len);
    return put_done(&w);
}

int wire_block_decode(struct wire_data *d, uint8_t phase, const uint8_t *p, size_t n)
{
    byte_reader r = reader_of(p, n);
    *d = (struct wire_data){.phase = phase};
    d->fragment = get_u32(&r);
    d->codec = get_u8(&r);
    d->packed = get_u8(&r);
    d->payload_len = get_u16(&r);
    d->weight = get_f32(&r);
    d->mask = get_u64(&r);
    d->remaining = UINT32_MAX; /* not known */
    d->payload = get_bytes(&r, d->payload_len);
    bool whole = r.ok && d->payload_len && d->payload_len <= WIRE_PAYLOAD_MAX;
    return whole && wire_data_fits(d) ? SLEET_OK : SLEET_EMALFORMED;
}
