#include "protect/stream.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

void parity_decoder_init(struct parity_decoder *d, struct parity_code code, uint32_t datagrams_max,
                         uint64_t *room)
{
    uint32_t window = PARITY_DATA_MAX * code.depth;
    *d = (struct parity_decoder){.code = code, .datagrams_max = datagrams_max, .room = room};
    d->max = (uint32_t)(((uint64_t)datagrams_max + window - 1) / window) * code.depth;
}

/* Rows that a group of this stream can have. */
static uint32_t rows_of(const struct parity_decoder *d, uint32_t group)
{
    return parity_rows(parity_group_size(group, d->code.depth, d->datagrams_max), d->code.rows);
}

static void close_group(struct parity_decoder *d, struct parity_group *g)
{
    if (g->sum)
        *d->room += (uint64_t)rows_of(d, (uint32_t)(g - d->groups)) * PARITY_BLOCK_MAX;
    g->closed = true;
    free(g->sum);
    g->sum = NULL;
}

void parity_decoder_fini(struct parity_decoder *d)
{
    for (uint32_t i = 0; i < d->n; i++)
        close_group(d, &d->groups[i]);
    free(d->groups);
    *d = (struct parity_decoder){0};
}

static bool make_sums(struct parity_decoder *d, struct parity_group *g, uint32_t rows)
{
    uint64_t bytes = (uint64_t)rows * PARITY_BLOCK_MAX;
    if (rows == 0 || bytes > *d->room || !(g->sum = calloc(rows, PARITY_BLOCK_MAX)))
        return false;
    *d->room -= bytes;
    return true;
}

/* NULL when the number is out of bounds or there is no memory. */
static struct parity_group *group_at(struct parity_decoder *d, uint32_t number)
{
    if (number >= d->max)
        return NULL;
    if (number >= d->n) {
        uint32_t n = number + d->code.depth < d->max ? number + d->code.depth : d->max;
        struct parity_group *grown = realloc(d->groups, n * sizeof *grown);
        if (!grown)
            return NULL;
        memset(grown + d->n, 0, (n - d->n) * sizeof *grown);
        d->groups = grown;
        d->n = n;
    }
    struct parity_group *g = &d->groups[number];
    bool made = g->sum || (!g->closed && make_sums(d, g, rows_of(d, number)));
    return made ? g : NULL;
}

static uint64_t all_of(uint32_t blocks)
{
    return blocks < 64 ? (UINT64_C(1) << blocks) - 1 : ~UINT64_C(0);
}

void parity_decoder_add(struct parity_decoder *d, uint32_t number, const uint8_t *block, size_t len)
{
    struct parity_place at = parity_place(number, d->code.depth);
    struct parity_group *g = group_at(d, at.group);
    uint8_t *rows[PARITY_ROWS_MAX];
    if (!g || number >= d->datagrams_max || (g->seen >> at.position & 1) || len > PARITY_BLOCK_MAX)
        return;
    if (g->blocks && at.position >= g->blocks) {
        close_group(d, g);
        return;
    }
    uint32_t n = rows_of(d, at.group);
    for (uint32_t j = 0; j < n; j++)
        rows[j] = g->sum + (size_t)j * PARITY_BLOCK_MAX;
    parity_add(rows, n, at.position, block, len);
    g->seen |= UINT64_C(1) << at.position;
    g->longest = len > g->longest ? len : g->longest;
    if (g->seen == all_of(g->blocks ? g->blocks : PARITY_DATA_MAX))
        close_group(d, g);
}

/* In GF(2^8) adding is exclusive or. */
static void add_bytes(uint8_t *to, const uint8_t *from, size_t len)
{
    for (size_t i = 0; i < len; i++)
        to[i] ^= from[i];
}

bool parity_decoder_row(struct parity_decoder *d, const struct parity_row *r)
{
    if (r->group >= d->max || r->blocks == 0 ||
        r->blocks > parity_group_size(r->group, d->code.depth, d->datagrams_max) || r->row >= parity_rows(r->blocks, d->code.rows) || r->len > PARITY_BLOCK_MAX)
        return false;
    struct parity_group *g = group_at(d, r->group);
    if (!g || (g->rows >> r->row & 1))
        return true;
    if ((g->blocks && g->blocks != r->blocks) || (g->seen & ~all_of(r->blocks))) {
        close_group(d, g);
        return true;
    }
    g->blocks = r->blocks;
    g->rows |= UINT32_C(1) << r->row;
    add_bytes(g->sum + (size_t)r->row * PARITY_BLOCK_MAX, r->bytes, r->len);
    g->longest = r->len > g->longest ? r->len : g->longest;
    if (g->seen == all_of(g->blocks))
        close_group(d, g);
    return true;
}

uint32_t parity_decoder_rebuild(struct parity_decoder *d, uint32_t group,
                                void (*take)(void *arg, const uint8_t *block, size_t len), void *arg)
{
    struct parity_group *g = group < d->n ? &d->groups[group] : NULL;
    uint8_t missing[PARITY_ROWS_MAX], row[PARITY_ROWS_MAX], *sum[PARITY_ROWS_MAX], *out[PARITY_ROWS_MAX];
    if (!g || g->closed || !g->blocks)
        return 0;
    uint64_t holes = all_of(g->blocks) & ~g->seen;
    uint32_t u = (uint32_t)__builtin_popcountll(holes), rows = g->rows;
    if (!u || u > (uint32_t)__builtin_popcount(rows))
        return 0;
    uint8_t *blocks = malloc((size_t)u * PARITY_BLOCK_MAX);
    if (!blocks)
        return 0;
    for (uint32_t i = 0; i < u; i++, holes &= holes - 1, rows &= rows - 1) {
        missing[i] = (uint8_t)__builtin_ctzll(holes);
        row[i] = (uint8_t)__builtin_ctz(rows);
        sum[i] = g->sum + (size_t)row[i] * PARITY_BLOCK_MAX;
        out[i] = blocks + (size_t)i * PARITY_BLOCK_MAX;
    }
    size_t len = g->longest;
    parity_solve(out, missing, sum, row, u, len);
    close_group(d, g);
    for (uint32_t i = 0; i < u; i++)
        take(arg, out[i], len);
    free(blocks);
    return u;
}
