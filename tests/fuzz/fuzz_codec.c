/* Any bytes as fragments in a codec: id u8, elements u16, then payloads that follow one another.
 * What is accepted is finite and within its bytes; what was decoded, encodes within the codec's
 * size, and decodes again. */
#include "codec/codec.h"
#include "tensor/reduce.h"
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Codecs whose payload is the only one of its values. */
static bool exact(const struct codec *c)
{
    return c->id <= SLEET_CODEC_TRUNC3 && c->id != SLEET_CODEC_I8;
}

/* Allocations of just the size, so that AddressSanitizer sees what passes their ends. */
static void encode_again(const struct codec *c, const float *x, uint32_t n, const uint8_t *payload,
                         size_t bytes)
{
    const struct codec_args args = {.seed = bytes, .keep = payload[0] % 8 * 40u};
    uint8_t *out = malloc(c->bytes_max), *part;
    float *y = malloc(n * sizeof *y);
    if (!out || !y)
        abort();
    size_t len = c->encode(out, x, n, &args);
    if (len == 0 || len > c->bytes_max || (exact(c) && (len != bytes || memcmp(out, payload, len))))
        abort();
    if (!(part = malloc(len)))
        abort();
    memcpy(part, out, len);
    if (c->decode(y, part, len, n) != len || !reduce_finite(y, n))
        abort();
    free(part);
    free(out);
    free(y);
}

/* Bytes as values, which need not be finite: refused or finite after decoding. */
static void encode_any(const struct codec *c, const uint8_t *data, size_t size)
{
    uint8_t payload[4 * CODEC_ELEMENTS_MAX];
    float x[CODEC_ELEMENTS_MAX];
    uint32_t n = (uint32_t)(size / 4 < CODEC_ELEMENTS_MAX ? size / 4 : CODEC_ELEMENTS_MAX);
    if (n == 0)
        return;
    memcpy(x, data, n * sizeof *x);
    bool finite = reduce_finite(x, n);
    size_t bytes = c->encode(payload, x, n, &(struct codec_args){.seed = size});
    size_t used = c->decode(x, payload, bytes, n);
    bool refused = used == CODEC_NONFINITE;
    if (bytes > c->bytes_max || (refused ? finite : used != bytes || !reduce_finite(x, n)))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct codec *c = size > 3 ? codec_by_id(data[0]) : NULL;
    if (!c)
        return 0;
    uint32_t n = 1 + (uint32_t)(data[1] | data[2] << 8) % CODEC_ELEMENTS_MAX;
    float *x = malloc(n * sizeof *x);
    if (!x)
        abort();
    data += 3;
    size -= 3;
    encode_any(c, data, size);
    for (size_t used; size && (used = c->decode(x, data, size, n)); data += used, size -= used) {
        if (used == CODEC_NONFINITE)
            break;
        if (used > size || !reduce_finite(x, n))
            abort();
        encode_again(c, x, n, data, used);
    }
    free(x);
    return 0;
}
