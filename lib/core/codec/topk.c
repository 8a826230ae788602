/* topk: the elements of largest magnitude, each its index in the fragment and a bf16; the
 * others count as zero.
 *
 * Values are bf16 because what rounding costs (2^-18 of the energy that is sent) is nothing
 * beside what is left out, and at the same bytes half as many elements again go along.  Where
 * indices would take more than the zeros they save, all values follow one another. */
#include "codec/bits.h"
#include "codec/codec.h"

#define HEAD 2        /* the count */
#define DENSE 0xffffu /* in its place: n values without indices */
#define ENTRY 4       /* index and value */
#define PLAIN 2       /* value alone */

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
    put_le16(payload, (uint16_t)(dense ? DENSE : count));
    for (uint32_t i = 0; i < n; i++) {
        bool kept = magnitude[i] > least || (magnitude[i] == least && equal > 0);
        equal -= kept && magnitude[i] == least;
        if (!kept && !dense)
            continue;
        if (!dense) {
            put_le16(out, (uint16_t)i);
            out += 2;
        }
        put_le16(out, kept ? bf16_of(x[i]) : 0);
        out += PLAIN;
    }
    return (size_t)(out - payload);
}

static size_t topk_decode(float *restrict x, const uint8_t *restrict payload, size_t bytes,
                          uint32_t n)
{
    if (bytes < HEAD)
        return 0;
    uint32_t count = get_le16(payload), bad = 0, next = 0;
    bool dense = count == DENSE;
    if (dense)
        count = n;
    size_t used = HEAD + (size_t)count * (dense ? PLAIN : ENTRY);
    if (bytes < used)
        return 0;
    memset(x, 0, n * sizeof *x);
    payload += HEAD;
    for (uint32_t k = 0; k < count; k++) {
        uint32_t at = k;
        if (!dense) {
            at = get_le16(payload);
            payload += 2;
        }
        if (at < next || at >= n)
            return 0;
        next = at + 1;
        uint32_t bits = (uint32_t)get_le16(payload) << 16;
        payload += PLAIN;
        bad |= f32_bad(bits);
        x[at] = f32_of(bits);
    }
    return bad ? 0 : used;
}

const struct codec codec_topk = {
    .id = SLEET_CODEC_TOPK,
    .sparse = true,
    .bytes_max = HEAD + PLAIN * CODEC_ELEMENTS_MAX,
    .encode = topk_encode,
    .decode = topk_decode,
};
