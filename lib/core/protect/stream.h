/* Parity over a stream of datagrams from one node to another: the sender's and the receiver's half.
 * What a block holds is the caller's affair; it must say its own length where blocks differ in it,
 * since what is rebuilt has the length of the longest. */
#ifndef PROTECT_STREAM_H
#define PROTECT_STREAM_H
#include "protect/parity.h"

/* How a stream is protected; as in each of its datagrams. */
struct parity_code {
    uint8_t rows;  /* of a full group; 0: no parity */
    uint8_t depth; /* power of two, at most PARITY_DEPTH_MAX */
};

/* A block of parity. */
struct parity_row {
    uint32_t group; /* see parity_place() */
    uint8_t row, blocks; /* blocks of data in the group, from 1 */
    const uint8_t *bytes;
    size_t len;
};

/* ---- sender ------------------------------------------------------------------------------- */

struct parity_encoder {
    struct parity_code code;
    uint32_t rows; /* that a group of such a stream can have */
    uint32_t next; /* number of the next datagram */
    uint32_t sent; /* rows of the present window that have left */
    uint8_t *sum;  /* owned: of each group of the window its rows */
    size_t longest[PARITY_DEPTH_MAX];
};

/* Of a stream of at most so many datagrams.  False when out of memory. */
bool parity_encoder_init(struct parity_encoder *, struct parity_code, uint32_t datagrams_max);
void parity_encoder_fini(struct parity_encoder *);
/* A datagram with this block (at most PARITY_BLOCK_MAX bytes) leaves: its number.  Not while
 * parity is due, nor after the end. */
uint32_t parity_encoder_add(struct parity_encoder *, const uint8_t *block, size_t len);
/* Parity is due before anything else: the window is full, or, with `end`, nothing more will come. */
bool parity_encoder_due(const struct parity_encoder *, bool end);
/* The next row that is due; its bytes are good until the next call. */
struct parity_row parity_encoder_take(struct parity_encoder *);
/* There are datagrams that the parity that has left does not cover. */
bool parity_encoder_open(const struct parity_encoder *);
/* The last datagram added is the first of its window. */
static inline bool parity_encoder_began(const struct parity_encoder *e)
{
    return (e->next - 1) % (PARITY_DATA_MAX * e->code.depth) == 0;
}
uint64_t parity_encoder_bytes_bound(void);

/* ---- receiver ----------------------------------------------------------------------------- */

struct parity_group {
    uint64_t seen;  /* blocks that were added */
    uint32_t rows;  /* that have come */
    uint8_t blocks; /* in it; 0: not known yet */
    bool closed;    /* nothing is missing, or it contradicts itself */
    uint8_t *sum;   /* owned; NULL: nothing was added */
    size_t longest;
};

struct parity_decoder {
    struct parity_code code;
    uint32_t datagrams_max;
    uint32_t n, max; /* groups there is memory for, groups there may be */
    uint64_t *room;  /* borrowed: bytes that may still be allocated, shared with others */
    struct parity_group *groups; /* owned */
};

/* Of a stream of at most so many datagrams.  Sums are taken out of *room, and given back; where it does
 * not suffice a group is not protected. */
void parity_decoder_init(struct parity_decoder *, struct parity_code, uint32_t datagrams_max, uint64_t *room);
void parity_decoder_fini(struct parity_decoder *);
/* A datagram has come.  Nothing happens where the number came before or is out of bounds. */
void parity_decoder_add(struct parity_decoder *, uint32_t number, const uint8_t *block, size_t len);
/* A row has come.  False where it cannot be one of this stream. */
bool parity_decoder_row(struct parity_decoder *, const struct parity_row *);
/* What is missing of the group, if its rows suffice: `take` is called with each block, which has
 * `len` bytes; it may end the decoder.  Blocks rebuilt. */
uint32_t parity_decoder_rebuild(struct parity_decoder *, uint32_t group,
                                void (*take)(void *arg, const uint8_t *block, size_t len), void *arg);
/* The group of a number. */
static inline uint32_t parity_group_of(const struct parity_decoder *d, uint32_t number)
{
    return parity_place(number, d->code.depth).group;
}
#endif
