/* The arithmetic of PowerGossip: see power.h. */
#include "round/power.h"
#include "base/rng.h"
#include <math.h>
#include <stdlib.h>

#define NOTHING 1e-8 /* a shorter column has no direction */

/* Does the tensor go as a product?  Only where that costs less than the whole. */
static bool is_low(const struct tensor *t, uint32_t rank)
{
    uint64_t cols = t->rows ? t->count / t->rows : 0;
    return t->rows && cols <= UINT32_MAX && t->dtype == SLEET_F32 && (t->rows + cols) * rank < t->count;
}

static void add_whole(struct power_map *m, const struct tensor *t, uint32_t tensor, uint32_t fragment)
{
    uint64_t offset = (uint64_t)(fragment - t->first) * FRAGMENT_ELEMENTS, left = t->count - offset;
    uint64_t n = left < FRAGMENT_ELEMENTS ? left : FRAGMENT_ELEMENTS;
    struct power_piece *p = m->n ? &m->piece[m->n - 1] : NULL;
    if (!p || p->tensor != tensor || p->offset + p->count != offset) {
        p = &m->piece[m->n++];
        *p = (struct power_piece){.tensor = tensor, .offset = offset, .at = m->floats};
    }
    p->count += n;
    p->floats += n;
    m->floats += n;
}

static void add_low(struct power_map *m, const struct tensor *t, uint32_t tensor)
{
    struct power_piece *p = &m->piece[m->n++];
    *p = (struct power_piece){.tensor = tensor,
                              .rows = t->rows,
                              .cols = (uint32_t)(t->count / t->rows),
                              .count = t->count,
                              .at = m->floats,
                              .side = m->sides};
    p->floats = (uint64_t)(m->odd ? p->rows : p->cols) * m->rank;
    m->floats += p->floats;
    m->sides += ((uint64_t)p->rows + p->cols) * m->rank;
}

struct power_map *power_map_new(const struct layout *l, uint32_t rank, uint64_t round)
{
    struct power_map *m = calloc(1, sizeof *m);
    if (!m)
        return NULL;
    m->users = 1;
    m->rank = rank;
    m->odd = round % 2;
    m->tensors = l->n;
    m->piece = calloc((size_t)l->n + l->state / RUN_FRAGMENTS + 1, sizeof *m->piece);
    m->first = calloc((size_t)l->n + 1, sizeof *m->first);
    if (!m->piece || !m->first) {
        power_map_free(m);
        return NULL;
    }
    for (uint32_t i = 0; i < l->n; i++) {
        const struct tensor *t = &l->tensors[i];
        m->first[i] = m->n;
        if (is_low(t, rank))
            add_low(m, t, i);
        else
            for (uint32_t f = t->first; f < t->first + t->fragments; f++)
                if (layout_due(l, t, f, round))
                    add_whole(m, t, i, f);
    }
    m->first[l->n] = m->n;
    return m;
}

void power_map_free(struct power_map *m)
{
    if (!m || --m->users)
        return;
    free(m->piece);
    free(m->first);
    free(m);
}

uint64_t power_floats_max(const struct layout *l, uint32_t rank)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < l->n; i++) {
        const struct tensor *t = &l->tensors[i];
        uint64_t cols = t->rows ? t->count / t->rows : 0;
        n += is_low(t, rank) ? (t->rows > cols ? t->rows : cols) * rank : t->count;
    }
    return n;
}

uint64_t power_sides(const struct layout *l, uint32_t rank)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < l->n; i++) {
        const struct tensor *t = &l->tensors[i];
        n += is_low(t, rank) ? (t->rows + t->count / t->rows) * rank : 0;
    }
    return n;
}

/* Take the columns before `c` out of column c; its length then. */
static double clear_of(float *side, uint32_t n, uint32_t rank, uint32_t c)
{
    double square = 0;
    for (uint32_t d = 0; d < c; d++) {
        double dot = 0;
        for (size_t i = 0; i < n; i++)
            dot += (double)side[i * rank + d] * (double)side[i * rank + c];
        for (size_t i = 0; i < n; i++)
            side[i * rank + c] = (float)((double)side[i * rank + c] - dot * (double)side[i * rank + d]);
    }
    for (size_t i = 0; i < n; i++)
        square += (double)side[i * rank + c] * (double)side[i * rank + c];
    return sqrt(square);
}

/* Gram and Schmidt, column after column; twice, as what is left of a column may be mostly rounding. */
static void orthonormalise(float *side, uint32_t n, uint32_t rank, uint64_t seed)
{
    sleet_rng rng = {seed};
    for (uint32_t c = 0; c < rank; c++) {
        double length = clear_of(side, n, rank, c);
        for (int tries = 0; tries < 3 && !(length > NOTHING); tries++) {
            for (size_t i = 0; i < n; i++)
                side[i * rank + c] = (float)(2 * rng_double(&rng) - 1);
            length = clear_of(side, n, rank, c);
        }
        for (int again = 0; again < 2; again++) {
            for (size_t i = 0; i < n; i++)
                side[i * rank + c] = (float)((double)side[i * rank + c] / (length + NOTHING));
            length = again ? length : clear_of(side, n, rank, c);
        }
    }
}

static float *side_of(const struct power_map *m, const struct power_piece *p, float *sides, bool q)
{
    return sides + p->side + (q ? (uint64_t)p->rows * m->rank : 0);
}

void power_begin(const struct power_map *m, uint64_t seed, float *sides)
{
    for (uint64_t i = 0; i < m->sides; i++)
        sides[i] = 0;
    for (const struct power_piece *p = m->piece; p < m->piece + m->n; p++)
        for (uint32_t q = 0; p->rows && q < 2; q++)
            orthonormalise(side_of(m, p, sides, q), q ? p->cols : p->rows, m->rank,
                           mix64(seed ^ mix64(2 * (uint64_t)p->tensor + q)));
}

/* Elements of X Q, from element `e` on. */
static void times_q(const struct power_piece *p, uint32_t rank, const float *x, const float *q, uint64_t e,
                    uint32_t n, float *out)
{
    for (uint32_t k = 0; k < n; k++, e++) {
        const float *row = x + e / rank * p->cols, *col = q + e % rank;
        double sum = 0;
        for (uint32_t j = 0; j < p->cols; j++)
            sum += (double)row[j] * (double)col[(size_t)j * rank];
        out[k] = (float)sum;
    }
}

/* Elements of X^T P. */
static void times_p(const struct power_piece *p, uint32_t rank, const float *x, const float *side, uint64_t e,
                    uint32_t n, float *out)
{
    double sum[FRAGMENT_ELEMENTS] = {0};
    uint32_t col[FRAGMENT_ELEMENTS], c[FRAGMENT_ELEMENTS];
    for (uint32_t k = 0; k < n; k++) {
        col[k] = (uint32_t)((e + k) / rank);
        c[k] = (uint32_t)((e + k) % rank);
    }
    for (size_t i = 0; i < p->rows; i++)
        for (uint32_t k = 0; k < n; k++)
            sum[k] += (double)x[i * p->cols + col[k]] * (double)side[i * rank + c[k]];
    for (uint32_t k = 0; k < n; k++)
        out[k] = (float)sum[k];
}

void power_make(const struct power_map *m, const float *sides, const void *const *values, uint64_t from, uint32_t n,
                float *out)
{
    for (const struct power_piece *p = m->piece; n && p < m->piece + m->n; p++) {
        if (from >= p->at + p->floats)
            continue;
        uint64_t e = from - p->at, left = p->floats - e;
        uint32_t k = n < left ? n : (uint32_t)left;
        const float *x = (const float *)values[p->tensor] + p->offset;
        const float *side = sides + p->side;
        if (!p->rows)
            for (uint32_t i = 0; i < k; i++)
                out[i] = x[e + i];
        else if (m->odd)
            times_q(p, m->rank, x, side + (uint64_t)p->rows * m->rank, e, k, out);
        else
            times_p(p, m->rank, x, side, e, k, out);
        out += k;
        from += k;
        n -= k;
    }
}

void power_turn(const struct power_map *m, const float *difference, uint64_t seed, float *sides)
{
    for (const struct power_piece *p = m->piece; p < m->piece + m->n; p++) {
        float *side = side_of(m, p, sides, !m->odd);
        for (uint64_t i = 0; p->rows && i < p->floats; i++)
            side[i] = difference[p->at + i];
        if (p->rows)
            orthonormalise(side, m->odd ? p->rows : p->cols, m->rank, mix64(seed ^ mix64(p->tensor)));
    }
}

void power_apply(const struct power_map *m, const float *sides, const float *difference, double weight,
                 uint32_t tensor, uint64_t offset, uint32_t n, double *sum)
{
    for (uint32_t k = m->first[tensor]; k < m->first[tensor + 1]; k++) {
        const struct power_piece *p = &m->piece[k];
        const float *d = difference + p->at, *side = sides + p->side;
        if (!p->rows) {
            for (uint32_t i = 0; i < n; i++)
                if (offset + i >= p->offset && offset + i < p->offset + p->count)
                    sum[i] += weight * (double)d[offset + i - p->offset];
            continue;
        }
        const float *left = m->odd ? d : side, *right = m->odd ? side + (uint64_t)p->rows * m->rank : d;
        uint64_t row = offset / p->cols, col = offset % p->cols;
        for (uint32_t i = 0; i < n; i++) {
            double step = 0;
            for (uint32_t c = 0; c < m->rank; c++)
                step += (double)left[row * m->rank + c] * (double)right[col * m->rank + c];
            sum[i] += weight * step;
            row += ++col == p->cols;
            col = col == p->cols ? 0 : col;
        }
    }
}
