#include "protect/stream.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

static uint32_t window_of(const struct parity_encoder *e)
{
    return PARITY_DATA_MAX * e->code.depth;
}

static uint8_t *row_of(const struct parity_encoder *e, uint32_t group, uint32_t row)
{
    return e->sum + ((size_t)(group % e->code.depth) * e->rows + row) * PARITY_BLOCK_MAX;
}

bool parity_encoder_init(struct parity_encoder *e, struct parity_code code, uint32_t datagrams_max)
{
    assert(code.rows && code.rows <= PARITY_ROWS_MAX && code.depth && code.depth <= PARITY_DEPTH_MAX);
    *e = (struct parity_encoder){.code = code};
    e->rows = parity_rows(parity_group_size(0, code.depth, datagrams_max), code.rows);
    e->sum = malloc((size_t)code.depth * e->rows * PARITY_BLOCK_MAX + 1);
    return e->sum != NULL;
}

void parity_encoder_fini(struct parity_encoder *e)
{
    free(e->sum);
    *e = (struct parity_encoder){0};
}

uint64_t parity_encoder_bytes_bound(void)
{
    return (uint64_t)PARITY_DEPTH_MAX * PARITY_ROWS_MAX * PARITY_BLOCK_MAX;
}

uint32_t parity_encoder_add(struct parity_encoder *e, const uint8_t *block, size_t len)
{
    struct parity_place at = parity_place(e->next, e->code.depth);
    uint32_t slot = at.group % e->code.depth;
    uint8_t *rows[PARITY_ROWS_MAX];
    if (at.position == 0) { /* the first of its group: of a new window */
        memset(row_of(e, at.group, 0), 0, (size_t)e->rows * PARITY_BLOCK_MAX);
        e->longest[slot] = 0;
        e->sent = 0;
    }
    for (uint32_t j = 0; j < e->rows; j++)
        rows[j] = row_of(e, at.group, j);
    parity_add(rows, e->rows, at.position, block, len);
    if (len > e->longest[slot])
        e->longest[slot] = len;
    return e->next++;
}

/* The last window with datagrams in it: its first group. */
static uint32_t last_window(const struct parity_encoder *e)
{
    return (e->next - 1) / window_of(e) * e->code.depth;
}

/* Row number `sent` of the window, one of each group in turn; false when all have left. */
static bool find(const struct parity_encoder *e, struct parity_row *out)
{
    uint32_t first = last_window(e), left = e->sent;
    for (uint8_t row = 0; row < e->code.rows; row++) {
        for (uint32_t g = first; g < first + e->code.depth; g++) {
            uint32_t blocks = parity_group_size(g, e->code.depth, e->next);
            if (row >= parity_rows(blocks, e->code.rows) || left-- > 0)
                continue;
            *out = (struct parity_row){.group = g,
                                       .row = row,
                                       .blocks = (uint8_t)blocks,
                                       .bytes = row_of(e, g, row),
                                       .len = e->longest[g % e->code.depth]};
            return true;
        }
    }
    return false;
}

bool parity_encoder_open(const struct parity_encoder *e)
{
    uint32_t rows = 0;
    if (!e->next)
        return false;
    for (uint32_t g = last_window(e); g < last_window(e) + e->code.depth; g++)
        rows += parity_rows(parity_group_size(g, e->code.depth, e->next), e->code.rows);
    return e->sent < rows;
}

bool parity_encoder_due(const struct parity_encoder *e, bool end)
{
    return (end || e->next % window_of(e) == 0) && parity_encoder_open(e);
}

struct parity_row parity_encoder_take(struct parity_encoder *e)
{
    struct parity_row row = {0};
    bool found = find(e, &row);
    assert(found);
    e->sent += found;
    return row;
}
