/* Reed-Solomon parity over blocks of bytes, by ISA-L.
 *
 * A group is up to PARITY_DATA_MAX blocks of data and up to PARITY_ROWS_MAX blocks of parity,
 * its rows.  Row j is the sum over the data, in GF(2^8), of block i times 1 / (x_j + y_i): a
 * Cauchy matrix (Blömer et al., ICSI TR-95-048), of which each square part can be inverted.  So
 * any u blocks come back from any u rows.  The factor depends on i and j alone: of one code
 * fewer blocks or fewer rows are a code as well.
 *
 * Who receives keeps sums instead of blocks: rows to which it has added what came, of data and
 * of parity alike (in GF(2^8) adding is subtracting), hold but what is missing.  That takes
 * rows / blocks of the memory, and a matrix as large as what is missing instead of the data.
 *
 * Blocks of one group may differ in length: shorter ones count as filled up with zeros. */
#ifndef PROTECT_PARITY_H
#define PROTECT_PARITY_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PARITY_DATA_MAX 64
#define PARITY_ROWS_MAX 32
#define PARITY_BLOCK_MAX 1172 /* bytes: what a datagram leaves beside its parity header */

/* Add the block (len bytes) at `position` to the rows 0..n-1; each of them holds at least len
 * bytes.  What is added twice is gone again. */
void parity_add(uint8_t *const *rows, uint32_t n, uint32_t position, const uint8_t *block, size_t len);

/* Blocks at the u positions `missing` from the sums of the u rows `row` (their numbers), each of
 * len bytes: sum[i], of row[i], into out[i].  Positions differ, and so do rows. */
void parity_solve(uint8_t *const *out, const uint8_t *missing, uint8_t *const *sum,
                  const uint8_t *row, uint32_t u, size_t len);

/* ---- interleaving ---------------------------------------------------------------------------
 *
 * Datagrams towards one member are numbered as they leave.  Windows of PARITY_DATA_MAX * depth
 * are dealt out to `depth` groups in turn, so that a burst takes little of each. */

#define PARITY_DEPTH_MAX 8 /* powers of two up to it */

struct parity_place {
    uint32_t group;   /* numbered through the windows */
    uint8_t position; /* in the group */
};

struct parity_place parity_place(uint32_t sequence, uint32_t depth);
/* The least depth for so many datagrams; more of them take several windows. */
uint32_t parity_depth(uint32_t datagrams);
/* Blocks of group number `group` where `datagrams` left in all. */
uint32_t parity_group_size(uint32_t group, uint32_t depth, uint32_t datagrams);
/* Rows of a group of `blocks` where a full one has `rows`: no smaller a share of it. */
static inline uint32_t parity_rows(uint32_t blocks, uint32_t rows)
{
    return (blocks * rows + PARITY_DATA_MAX - 1) / PARITY_DATA_MAX;
}
#endif
