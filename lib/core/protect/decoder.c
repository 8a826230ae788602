#include "protect/stream.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

void parity_decoder_init(struct parity_decoder *d, struct parity_code code, uint32_t datagrams_max)
{
    uint32_t window = PARITY_DATA_MAX * code.depth;
    *d = (struct parity_decoder){.code = code};
    d->max = (uint32_t)(((uint64_t)datagrams_max + window - 1) / window) * code.depth;
}

void parity_decoder_fini(struct parity_decoder *d)
{
    for (uint32_t i = 0; i < d->n; i++)
        free(d->groups[i].sum);
    free(d->groups);
    *d = (struct parity_decoder){0};
}

uint64_t parity_decoder_bytes_bound(struct parity_code code, uint32_t datagrams_max)
{
    struct parity_decoder d;
    parity_decoder_init(&d, code, datagrams_max);
    return (uint64_t)d.max *
           (sizeof(struct parity_group) + (uint64_t)code.rows * PARITY_BLOCK_MAX);
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
    if (!g->closed && !g->sum)
        g->sum = calloc(d->code.rows, PARITY_BLOCK_MAX);
    return g->sum ? g : NULL;
}

static void close_group(struct parity_group *g)
{
    g->closed = true;
    free(g->sum);
    g->sum = NULL;
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
    if (!g || (g->seen >> at.position & 1) || len > PARITY_BLOCK_MAX)
        return;
    if (g->blocks && at.position >= g->blocks) {
        close_group(g);
        return;
    }
    for (uint32_t j = 0; j < d->code.rows; j++)
        rows[j] = g->sum + (size_t)j * PARITY_BLOCK_MAX;
    parity_add(rows, d->code.rows, at.position, block, len);
    g->seen |= UINT64_C(1) << at.position;
    g->longest = len > g->longest ? len : g->longest;
    if (g->seen == all_of(g->blocks ? g->blocks : PARITY_DATA_MAX))
        close_group(g);
}

/* In GF(2^8) adding is exclusive or. */
static void add_bytes(uint8_t *to, const uint8_t *from, size_t len)
{
    for (size_t i = 0; i < len; i++)
        to[i] ^= from[i];
}

bool parity_decoder_row(struct parity_decoder *d, const struct parity_row *r)
{
    if (r->group >= d->max || r->blocks == 0 || r->blocks > PARITY_DATA_MAX ||
        r->row >= parity_rows(r->blocks, d->code.rows) || r->len > PARITY_BLOCK_MAX)
        return false;
    struct parity_group *g = group_at(d, r->group);
    if (!g || (g->rows >> r->row & 1))
        return true;
    if ((g->blocks && g->blocks != r->blocks) || (g->seen & ~all_of(r->blocks))) {
        close_group(g);
        return true;
    }
    g->blocks = r->blocks;
    g->rows |= UINT32_C(1) << r->row;
    add_bytes(g->sum + (size_t)r->row * PARITY_BLOCK_MAX, r->bytes, r->len);
    g->longest = r->len > g->longest ? r->len : g->longest;
    if (g->seen == all_of(g->blocks))
        close_group(g);
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
    close_group(g);
    for (uint32_t i = 0; i < u; i++)
        take(arg, out[i], len);
    free(blocks);
    return u;
}
