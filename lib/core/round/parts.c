#include "round/parts.h"
#include "codec/codec.h"

/* Codecs of one domain can stand for each other: a sender may choose for the link. */
static const struct codec *codec_of_part(const struct tensor *t, uint8_t id)
{
    const struct codec *c = codec_by_id(id), *agreed = codec_by_id((uint8_t)t->codec);
    return c && c->rotated == agreed->rotated ? c : NULL;
}

int parts_decode(const struct layout *l, uint32_t tensor, const struct wire_data *d,
                 struct part out[static RUN_FRAGMENTS])
{
    const struct tensor *t = &l->tensors[tensor];
    const struct codec *c = codec_of_part(t, d->codec);
    const uint8_t *p = d->payload;
    size_t left = d->payload_len;
    if (!c || d->packed > RUN_FRAGMENTS || d->fragment >= t->fragments ||
        d->packed > t->fragments - d->fragment)
        return SLEET_EMALFORMED;
    uint32_t first = t->first + d->fragment;
    if (first / RUN_FRAGMENTS != (first + d->packed - 1) / RUN_FRAGMENTS)
        return SLEET_EMALFORMED;
    for (uint32_t i = 0; i < d->packed; i++) {
        struct part *q = &out[i];
        uint32_t at;
        uint64_t offset;
        q->fragment = first + i;
        layout_locate(l, q->fragment, &at, &offset, &q->n);
        q->payload = p;
        size_t used = c->decode(q->x, p, left, q->n);
        if (!used || used == CODEC_NONFINITE)
            return used ? SLEET_ENONFINITE : SLEET_EMALFORMED;
        q->bytes = (uint32_t)used;
        p += q->bytes;
        left -= q->bytes;
    }
    return left ? SLEET_EMALFORMED : SLEET_OK;
}

int parts_decode_low(const struct wire_data *d, struct part *out)
{
    uint32_t n = d->payload_len / 4;
    if (d->codec != SLEET_CODEC_F32 || d->packed != 1 || d->payload_len % 4 || n > FRAGMENT_ELEMENTS)
        return SLEET_EMALFORMED;
    *out = (struct part){.fragment = d->fragment, .n = n, .payload = d->payload, .bytes = d->payload_len};
    return codec_by_id(SLEET_CODEC_F32)->decode(out->x, d->payload, d->payload_len, n) ? SLEET_OK : SLEET_ENONFINITE;
}

uint32_t parts_fit(const struct tensor *t)
{
    const struct codec *c = codec_by_id((uint8_t)t->codec);
    uint32_t n = WIRE_PAYLOAD_MAX / (c->bytes_usual ? c->bytes_usual : c->bytes_max);
    return n < RUN_FRAGMENTS ? n : RUN_FRAGMENTS;
}
