/* Codecs: how the elements of a fragment become bytes of a DATA payload.
 *
 * Each fragment, of 1 to 288 elements, can be decoded alone; scales and counts are in its own
 * bytes. A new codec is one file that defines a struct codec, one line of SLEET_CODEC_MAP (sleet.h)
 * and one of the table in codec.c; docs/protocol.md, "Codecs", has the bytes. */
#ifndef CODEC_H
#define CODEC_H
#include "sleet.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CODEC_ELEMENTS_MAX 288 /* of a fragment */
#define CODEC_NONFINITE SIZE_MAX

struct codec_args {
    uint64_t seed; /* of stochastic rounding; equal arguments give equal bytes */
    uint32_t keep; /* sparse codecs: elements kept of the fragment; 0: all that are not zero */
};

struct codec {
    uint8_t id;           /* on the wire; SLEET_CODEC_... */
    bool rotated;         /* its values have been rotated, see tensor/rotate.h */
    bool sparse;          /* takes `keep` */
    uint32_t bytes_max;   /* of a full fragment; fewer elements take less */
    uint32_t bytes_usual; /* of most full fragments, where those are fewer; 0: all take bytes_max */
    /* Bytes written, at most bytes_max; n finite values. */
    size_t (*encode)(uint8_t *payload, const float *values, uint32_t n, const struct codec_args *);
    /* Bytes used of `bytes`; 0 when they are malformed, CODEC_NONFINITE when they stand for a value
     * that is not finite: `values` is then unspecified.  The payload need not be aligned. */
    size_t (*decode)(float *values, const uint8_t *payload, size_t bytes, uint32_t n);
};

/* NULL for an unknown id. */
const struct codec *codec_by_id(uint8_t id);

extern const struct codec codec_f32, codec_bf16, codec_f16, codec_i8, codec_trunc1, codec_trunc2,
    codec_trunc3, codec_rot1, codec_rot2, codec_rot3, codec_rot4, codec_topk;
#endif
