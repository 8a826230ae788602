/* parts.h - the fragments that one DATA datagram brings, and those that one can take. */
#ifndef ROUND_PARTS_H
#define ROUND_PARTS_H
#include "tensor/layout.h"
#include "wire/wire.h"

struct part {
    uint32_t fragment, n;   /* number in the set, elements */
    const uint8_t *payload; /* its bytes; borrows from the datagram */
    uint32_t bytes;
    float x[FRAGMENT_ELEMENTS];
};

/* Decode the parts of a datagram for a tensor of the layout, ->packed of them.  SLEET_OK;
 * EMALFORMED: fragments that the tensor or one run does not have, another codec, other bytes;
 * ENONFINITE: a value is NaN or infinite. */
int parts_decode(const struct layout *, uint32_t tensor, const struct wire_data *,
                 struct part out[static RUN_FRAGMENTS]);

/* The same of a vector that goes over an edge of low rank: one part, of its number there. */
int parts_decode_low(const struct wire_data *, struct part *out);

/* Fragments of the tensor's codec that fit a datagram at their largest, of a sparse one at their
 * smallest: 1 to RUN_FRAGMENTS. */
uint32_t parts_fit(const struct tensor *);
#endif
