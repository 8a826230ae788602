#include "protect/parity.h"
#include <assert.h>
#include <isa-l/erasure_code.h>

#define TABLE 32 /* bytes that ISA-L makes of a factor */

/* y_i = i, x_j = PARITY_DATA_MAX + j: all differ, so no sum is 0. */
static uint8_t factor(uint32_t row, uint32_t position)
{
    return gf_inv((uint8_t)((PARITY_DATA_MAX + row) ^ position));
}

static_assert(PARITY_DATA_MAX + PARITY_ROWS_MAX <= 256, "elements of GF(2^8)");
static_assert((PARITY_DATA_MAX & (PARITY_DATA_MAX - 1)) == 0, "rows and positions have no bit in common");

/* ISA-L takes what it only reads as writable. */
static uint8_t *mutable(const uint8_t *p) { return (uint8_t *)(uintptr_t)p; }

void parity_add(uint8_t *const *rows, uint32_t n, uint32_t position, const uint8_t *block, size_t len)
{
    uint8_t factors[PARITY_ROWS_MAX], tables[PARITY_ROWS_MAX * TABLE];
    unsigned char *out[PARITY_ROWS_MAX];
    assert(n <= PARITY_ROWS_MAX && position < PARITY_DATA_MAX);
    for (uint32_t j = 0; j < n; j++) {
        factors[j] = factor(j, position);
        out[j] = rows[j];
    }
    ec_init_tables(1, (int)n, factors, tables);
    ec_encode_data_update((int)len, 1, (int)n, 0, tables, mutable(block), out);
}

void parity_solve(uint8_t *const *out, const uint8_t *missing, uint8_t *const *sum,
                  const uint8_t *row, uint32_t u, size_t len)
{
    uint8_t matrix[PARITY_ROWS_MAX * PARITY_ROWS_MAX], inverse[PARITY_ROWS_MAX * PARITY_ROWS_MAX];
    uint8_t tables[PARITY_ROWS_MAX * PARITY_ROWS_MAX * TABLE];
    unsigned char *from[PARITY_ROWS_MAX], *to[PARITY_ROWS_MAX];
    assert(u <= PARITY_ROWS_MAX);
    for (uint32_t i = 0; i < u; i++) {
        from[i] = sum[i];
        to[i] = out[i];
        for (uint32_t k = 0; k < u; k++)
            matrix[i * u + k] = factor(row[i], missing[k]);
    }
    int singular = gf_invert_matrix(matrix, inverse, (int)u);
    assert(!singular);
    (void)singular;
    ec_init_tables((int)u, (int)u, inverse, tables);
    ec_encode_data((int)len, (int)u, (int)u, tables, from, to);
}

struct parity_place parity_place(uint32_t sequence, uint32_t depth)
{
    uint32_t window = PARITY_DATA_MAX * depth;
    return (struct parity_place){.group = sequence / window * depth + sequence % depth,
                                 .position = (uint8_t)(sequence % window / depth)};
}

uint32_t parity_depth(uint32_t datagrams)
{
    uint32_t depth = 1;
    while (depth < PARITY_DEPTH_MAX && depth * PARITY_DATA_MAX < datagrams)
        depth *= 2;
    return depth;
}

uint32_t parity_group_size(uint32_t group, uint32_t depth, uint32_t datagrams)
{
    uint32_t first = group / depth * depth * PARITY_DATA_MAX + group % depth;
    uint32_t blocks = datagrams > first ? (datagrams - first + depth - 1) / depth : 0;
    return blocks < PARITY_DATA_MAX ? blocks : PARITY_DATA_MAX;
}
