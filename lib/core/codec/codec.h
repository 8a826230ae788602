/* Codecs: how the elements of a fragment are laid out in a DATA payload. */
#ifndef CODEC_H
#define CODEC_H
#include <stdbool.h>
#include <stdint.h>

#define CODEC_F32 1

struct codec {
    uint8_t id; /* on the wire */
    const char *name;
    uint32_t bytes_per_fragment; /* of a full fragment */
    /* n elements; the payload need not be aligned. */
    void (*encode)(uint8_t *payload, const float *values, uint32_t n);
    /* False if a value is NaN or infinite; `values` is then unspecified. */
    bool (*decode)(float *values, const uint8_t *payload, uint32_t n);
};

/* NULL for an unknown id. */
const struct codec *codec_by_id(uint8_t id);

extern const struct codec codec_f32; /* 4 bytes an element, little-endian */
#endif
