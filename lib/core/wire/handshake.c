/* The frames that make a sealed session. */
#include "wire/handshake.h"
#include "base/bytes.h"

#define PATTERNS 2

static int verdict_of(bool fine) { return fine ? SLEET_OK : SLEET_EMALFORMED; }

static bool is_pattern(uint8_t p) { return p >= 1 && p <= PATTERNS; }

size_t wire_offer_noise(uint8_t pattern)
{
    return pattern == 1 ? WIRE_OFFER_NOISE : 48;
}

size_t wire_answer_noise(uint8_t pattern)
{
    return pattern == 1 ? 72 : 120;
}

size_t wire_ident_encode(uint8_t *out, size_t cap, const struct wire_ident *m)
{
    byte_writer w = writer_of(out, cap);
    if (!m->index || !m->boot_id || !(m->ciphers & 2))
        return 0;
    put_u32(&w, m->index);
    put_u8(&w, m->ciphers);
    put_zeros(&w, 3);
    put_u64(&w, m->boot_id);
    put_u64(&w, m->stamp);
    return put_done(&w);
}

int wire_ident_decode(struct wire_ident *m, const uint8_t *p, size_t n)
{
    byte_reader r = reader_of(p, n);
    m->index = get_u32(&r);
    m->ciphers = get_u8(&r);
    get_zeros(&r, 3);
    m->boot_id = get_u64(&r);
    m->stamp = get_u64(&r);
    return verdict_of(get_done(&r) && m->index && m->boot_id && (m->ciphers & 2));
}

void wire_offer_head(uint8_t *out, const struct wire_offer *m)
{
    byte_writer w = writer_of(out, WIRE_OFFER_HEAD);
    put_u8(&w, m->pattern);
    put_zeros(&w, 1);
    put_u16(&w, m->elements);
    put_u32(&w, m->index);
    put_u64(&w, m->job);
}

size_t wire_offer_encode(uint8_t *out, size_t cap, const struct wire_offer *m)
{
    byte_writer w = writer_of(out, cap);
    size_t n = wire_offer_noise(m->pattern);
    uint8_t *head = put_space(&w, WIRE_OFFER_HEAD);
    if (!head || !is_pattern(m->pattern) || !m->index)
        return 0;
    wire_offer_head(head, m);
    put_bytes(&w, m->noise, n);
    put_zeros(&w, WIRE_OFFER_NOISE - n);
    put_bytes(&w, m->mac, sizeof m->mac);
    return put_done(&w);
}

int wire_offer_decode(struct wire_offer *m, const uint8_t *p, size_t n)
{
    byte_reader r = reader_of(p, n);
    memset(m, 0, sizeof *m);
    m->pattern = get_u8(&r);
    get_zeros(&r, 1);
    m->elements = get_u16(&r);
    m->index = get_u32(&r);
    m->job = get_u64(&r);
    if (!r.ok || !is_pattern(m->pattern) || !m->index)
        return SLEET_EMALFORMED;
    size_t len = wire_offer_noise(m->pattern);
    m->noise = get_bytes(&r, len);
    get_zeros(&r, WIRE_OFFER_NOISE - len);
    const uint8_t *mac = get_bytes(&r, sizeof m->mac);
    if (!get_done(&r))
        return SLEET_EMALFORMED;
    memcpy(m->mac, mac, sizeof m->mac);
    return SLEET_OK;
}

size_t wire_answer_encode(uint8_t *out, size_t cap, const struct wire_answer *m)
{
    byte_writer w = writer_of(out, cap);
    if (!is_pattern(m->pattern))
        return 0;
    put_u8(&w, m->pattern);
    put_zeros(&w, 3);
    put_bytes(&w, m->noise, wire_answer_noise(m->pattern));
    return put_done(&w);
}

int wire_answer_decode(struct wire_answer *m, const uint8_t *p, size_t n)
{
    byte_reader r = reader_of(p, n);
    m->pattern = get_u8(&r);
    get_zeros(&r, 3);
    if (!r.ok || !is_pattern(m->pattern))
        return SLEET_EMALFORMED;
    m->noise = get_bytes(&r, wire_answer_noise(m->pattern));
    return verdict_of(get_done(&r));
}
