/* Parity of a round's data, see protect/stream.h: what an owner commits towards each member, and in exact
 * rounds what a member contributes towards each owner.  A block is what a DATA datagram says of its fragments
 * (wire/parity.h), so that codecs and packing are no affair of parity, and what is rebuilt is
 * judged as if the datagram had come: nobody's parity can bring more than its own data could. */
#ifndef ROUND_PARITY_H
#define ROUND_PARITY_H
#include "protect/stream.h"

enum parity_way { PARITY_GATHER, PARITY_SCATTER };

/* Towards and from one member; made when first used. */
struct parity_lane {
    bool decided[2]; /* by enum parity_way: whether to protect what goes to it */
    struct parity_encoder out[2]; /* code.rows 0: none */
    struct parity_decoder in[2];
    uint32_t window_at; /* low half of the packet counter of the first commit not covered yet */
    uint32_t sent_at;   /* of the last commits' parity, */
    bool sent;          /* which there is */
};
#endif
