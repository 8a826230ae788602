/* topk: the elements of largest magnitude, each a bf16 behind the number of elements since the
 * last; the others count as zero.
 *
 * Values are bf16 because what rounding costs (2^-18 of the energy that is sent) is nothing
 * beside what is left out, and at the same bytes more elements go along.  Where gaps would take
 * more than the zeros they save, all values follow one another. */
#include "codec/bits.h"
#include "codec/codec.h"

#define HEAD 1    /* the count */
#define DENSE 255 /* in its place: n values without gaps */
#define ENTRY 3   /* gap and value */
#define PLAIN 2   /* value alone */
#define FAR 255   /* a gap that a second byte is added to: 255 to 287 */

/* The keep-th largest of the magnitudes, found bit by bit; 1 if there are not so many but 0. */
static int32_t least_kept(const int32_t *magnitude, uint32_t keep)
{
    int32_t least = 0;
    for (int32_t bit = 1 << 30; bit; bit >>= 1) {
        uint32_t as_large = 0;
        for (uint32_t i = 0; i < CODEC_ELEMENTS_MAX; i++)
            as_large += magnitude[i] >= (least | bit);
        if (as_large >= keep)
            least |= bit;
    }
    return least ? least : 1;
}

static uint8_t *put_gap(uint8_t *out, uint32_t gap)
{
    *out++ = (uint8_t)(gap < FAR ? gap : FAR);
    if (gap >= FAR)
        *out++ = (uint8_t)(gap - FAR);
    return out;
}

static size_t topk_encode(uint8_t *restrict payload, const float *restrict x, uint32_t n,
                          const struct codec_args *args)
{
    int32_t magnitude[CODEC_ELEMENTS_MAX] = {0}, least = 1;
    uint32_t larger = 0, equal = 0;
    for (uint32_t i = 0; i < n; i++)
        magnitude[i] = (int32_t)(f32_bits(x[i]) & F32_MAGNITUDE);
    if (args->keep > 0 && args->keep < n)
        least = least_kept(magnitude, args->keep);
    for (uint32_t i = 0; i < n; i++) {
        larger += magnitude[i] > least;
        equal += magnitude[i] == least;
    }
    if (args->keep > 0 && larger + equal > args->keep)
        equal = args->keep - larger; /* the first of those that are alike */
    uint32_t count = larger + equal;
    bool dense = ENTRY * count > PLAIN * n;
    uint8_t *out = payload + HEAD;
    payload[0] = (uint8_t)(dense ? DENSE : count);
    for (uint32_t i = 0, next = 0; i < n; i++) {
        bool kept = magnitude[i] > least || (magnitude[i] == least && equal > 0);
        equal -= kept && magnitude[i] == least;
        if (!kept && !dense)
            continue;
        if (!dense)
            out = put_gap(out, i - next);
        put_le16(out, kept ? bf16_of(x[i]) : 0);
        out += PLAIN;
        next = i + 1;
    }
    return (size_t)(out - payload);
}

static size_t topk_decode(float *restrict x, const uint8_t *restrict payload, size_t bytes,
                          uint32_t n)
{
    const uint8_t *in = payload + HEAD, *end = payload + bytes;
    if (bytes < HEAD)
        return 0;
    bool dense = payload[0] == DENSE;
    uint32_t count = dense ? n : payload[0], bad = 0;
    memset(x, 0, n * sizeof *x);
    for (uint32_t k = 0, at = 0; k < count; k++, at++) {
        if (!dense && end - in >= ENTRY) {
            at += *in++;
            if (in[-1] == FAR)
                at += *in++;
        } else if (!dense) {
            return 0;
        }
        if (end - in < PLAIN || at >= n)
            return 0;
        uint32_t bits = (uint32_t)get_le16(in) << 16;
        in += PLAIN;
        bad |= f32_bad(bits);
        x[at] = f32_of(bits);
    }
    return bad ? CODEC_NONFINITE : (size_t)(in - payload);
}

const struct codec codec_topk = {
    .id = SLEET_CODEC_TOPK,
    .sparse = true,
    .bytes_max = HEAD + PLAIN * CODEC_ELEMENTS_MAX,
    .bytes_usual = HEAD + ENTRY * CODEC_ELEMENTS_MAX / 10,
    .encode = topk_encode,
    .decode = topk_decode,
};
