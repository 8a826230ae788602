/* DATA and SUMMARY: the frames of a round. */
#include "wire/wire.h"
#include "base/bytes.h"
#include "wire/parity.h"
#include <math.h>

#define DATA_FLAGS (DATA_YOURS | DATA_LAST | DATA_CLOSED | DATA_EXACT)

bool wire_is_low(uint8_t phase)
{
    return phase == PHASE_LOW || phase == PHASE_LOW_REPAIR;
}

static bool is_edge(uint8_t phase)
{
    return phase == PHASE_EDGE || phase == PHASE_EDGE_REPAIR || wire_is_low(phase);
}

/* The sender's own values. */
static bool is_own(uint8_t phase)
{
    return phase == PHASE_SCATTER || phase == PHASE_SCATTER_REPAIR || is_edge(phase);
}

/* Parity is of what is sent for the first time; a history always has a tag. */
static bool place_fits(const struct wire_data *d)
{
    if ((d->tag != 0) != wire_is_low(d->phase))
        return false;
    if (d->rows == 0)
        return d->depth == 0 && d->number == 0;
    return (d->phase == PHASE_SCATTER || d->phase == PHASE_GATHER) && d->number < WIRE_NUMBER_MAX &&
           wire_code_fits(d->rows, d->depth);
}

bool wire_data_fits(const struct wire_data *d)
{
    return ((d->phase >= PHASE_SCATTER && d->phase <= PHASE_SCATTER_REPAIR) || is_edge(d->phase) ||
            d->phase == PHASE_BACKUP) &&
           d->codec >= 1 && d->codec <= WIRE_CODEC_MAX && d->packed >= 1 &&
           d->packed <= WIRE_PACKED_MAX && !(d->flags & ~DATA_FLAGS) &&
           place_fits(d) && isfinite(d->weight) && d->weight > 0 &&
           (is_own(d->phase) || d->mask != 0);
}

size_t wire_data_encode(uint8_t *out, size_t cap, const struct wire_data *d)
{
    byte_writer w = writer_of(out, cap);
    if (!wire_data_fits(d))
        return 0;
    put_u32(&w, d->group);
    put_u32(&w, d->tensor);
    put_u32(&w, d->round);
    put_u32(&w, d->fragment);
    put_u8(&w, d->phase);
    put_u8(&w, d->codec);
    put_u8(&w, d->packed);
    put_u8(&w, d->flags);
    put_u32(&w, wire_is_low(d->phase) ? d->tag : d->number | (uint32_t)wire_code_byte(d->rows, d->depth) << 24);
    put_f32(&w, d->weight);
    if (is_own(d->phase)) {
        put_u32(&w, d->time);
        put_u32(&w, d->remaining);
    } else {
        put_u64(&w, d->mask);
    }
    put_u32(&w, d->sender_round);
    return put_done(&w);
}

int wire_data_decode(struct wire_data *d, const uint8_t *p, size_t n)
{
    byte_reader r = reader_of(p, n);
    *d = (struct wire_data){0};
    d->group = get_u32(&r);
    d->tensor = get_u32(&r);
    d->round = get_u32(&r);
    d->fragment = get_u32(&r);
    d->phase = get_u8(&r);
    d->codec = get_u8(&r);
    d->packed = get_u8(&r);
    d->flags = get_u8(&r);
    uint32_t place = get_u32(&r);
    d->tag = wire_is_low(d->phase) ? place : 0;
    place -= d->tag;
    d->number = place & (WIRE_NUMBER_MAX - 1);
    wire_code_of((uint8_t)(place >> 24), &d->rows, &d->depth);
    d->weight = get_f32(&r);
    if (is_own(d->phase)) {
        d->time = get_u32(&r);
        d->remaining = get_u32(&r);
    } else {
        d->mask = get_u64(&r);
    }
    d->sender_round = get_u32(&r);
    if (!r.ok || !wire_data_fits(d))
        return SLEET_EMALFORMED;
    if (r.left == 0 || r.left > WIRE_PAYLOAD_MAX)
        return SLEET_EMALFORMED;
    d->payload = r.p;
    d->payload_len = (uint32_t)r.left;
    return SLEET_OK;
}

/* What is said of another owner is said of its commits, and alone; only a receipt numbers the fragments of the set. */
static bool summary_fits(const struct wire_summary *s)
{
    int receipt = SUMMARY_SCATTER_HOLES | SUMMARY_COMMITS_FINAL;
    return s->of <= SLEET_GROUP_MAX && (!s->of || !(s->flags & ~SUMMARY_CLOSED)) &&
           (!(s->flags & SUMMARY_ALL) || (s->flags & receipt) == receipt);
}

size_t wire_summary_encode(uint8_t *out, size_t cap, const struct wire_summary *s)
{
    byte_writer w = writer_of(out, cap);
    if (s->bits > WIRE_SUMMARY_BITS_MAX || (s->bits && !s->bitmap) || s->owner >= SLEET_GROUP_MAX ||
        !summary_fits(s))
        return 0;
    put_u32(&w, s->set);
    put_u32(&w, s->group);
    put_u32(&w, s->round);
    put_u32(&w, s->sender_round);
    put_u64(&w, s->counter_seen);
    put_u32(&w, s->scatter_sent);
    put_u32(&w, s->committed);
    put_u32(&w, s->overflow);
    put_u32(&w, s->echo);
    put_u32(&w, s->hold);
    put_u32(&w, s->first);
    put_u16(&w, s->bits);
    put_u8(&w, s->flags);
    put_u8(&w, s->of);
    put_u16(&w, s->loss);
    put_u16(&w, s->capacity);
    if (s->flags & SUMMARY_WITNESS) {
        put_u8(&w, s->owner);
        put_zeros(&w, 3);
        put_u64(&w, s->digest);
    }
    put_bytes(&w, s->bitmap, (s->bits + 7u) / 8);
    if (w.ok && s->bits % 8)
        out[w.len - 1] &= (uint8_t)((1u << (s->bits % 8)) - 1);
    return put_done(&w);
}

int wire_summary_decode(struct wire_summary *s, const uint8_t *p, size_t n)
{
    byte_reader r = reader_of(p, n);
    *s = (struct wire_summary){0};
    s->set = get_u32(&r);
    s->group = get_u32(&r);
    s->round = get_u32(&r);
    s->sender_round = get_u32(&r);
    s->counter_seen = get_u64(&r);
    s->scatter_sent = get_u32(&r);
    s->committed = get_u32(&r);
    s->overflow = get_u32(&r);
    s->echo = get_u32(&r);
    s->hold = get_u32(&r);
    s->first = get_u32(&r);
    s->bits = get_u16(&r);
    s->flags = get_u8(&r);
    s->of = get_u8(&r);
    s->loss = get_u16(&r);
    s->capacity = get_u16(&r);
    if (s->flags & SUMMARY_WITNESS) {
        s->owner = get_u8(&r);
        get_zeros(&r, 3);
        s->digest = get_u64(&r);
    }
    size_t bytes = (s->bits + 7u) / 8;
    s->bitmap = get_bytes(&r, bytes);
    if (!get_done(&r) || s->bits > WIRE_SUMMARY_BITS_MAX || s->owner >= SLEET_GROUP_MAX || !summary_fits(s))
        return SLEET_EMALFORMED;
    if (s->bits % 8 && s->bitmap[bytes - 1] >> (s->bits % 8))
        return SLEET_EMALFORMED;
    return SLEET_OK;
}
