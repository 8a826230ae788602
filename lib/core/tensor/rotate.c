#include "tensor/rotate.h"
#include "base/rng.h"
#include "tensor/layout.h"
#include <math.h>
#include <string.h>

#define N FRAGMENT_ELEMENTS
#define TILE 16 /* columns transformed at a time: a cache line */
#define LANES 4 /* rows transformed at a time */

_Static_assert(N == 2 * 12 * 12 && N % TILE == 0, "the matrix along the rows is of order 288");

typedef float quad __attribute__((vector_size(16)));

/* A group: `rows` fragments of N, or one fragment of `elements`. */
struct group {
    float *x;
    uint32_t rows, elements;
    uint64_t seed;
};

static struct group group_at(float *x, uint64_t count, uint64_t seed, uint64_t at)
{
    uint64_t whole = count / N, rows = ROTATE_FRAGMENTS;
    struct group g = {x, 1, N, mix64(seed ^ mix64(at + 1))};
    while (whole > at && whole - at < rows)
        rows /= 2;
    if (at < whole)
        g.rows = (uint32_t)rows;
    else
        g.elements = at == whole ? (uint32_t)(count % N) : 0;
    if (g.elements)
        g.x += at * N;
    return g;
}

/* Bit 31 - r of word c is the sign of row r (below 32) and column c. */
struct signs {
    uint32_t word[N];
};

static void draw(struct signs *s, sleet_rng *rng)
{
    for (uint32_t c = 0; c < N; c += 2) {
        uint64_t v = rng_next(rng);
        s->word[c] = (uint32_t)v;
        s->word[c + 1] = (uint32_t)(v >> 32);
    }
}

/* x[c] = scale x[c], with the signs of row r. */
static void flip(float *x, const struct signs *s, uint32_t r, uint32_t n, float scale)
{
    uint32_t magnitude;
    memcpy(&magnitude, &scale, sizeof magnitude);
    for (uint32_t c = 0; c < n; c++) {
        uint32_t bits = magnitude | (s->word[c] << r & 0x80000000u);
        float factor;
        memcpy(&factor, &bits, sizeof factor);
        x[c] *= factor;
    }
}

static void flip_group(const struct group *g, float scale)
{
    sleet_rng rng = {g->seed};
    struct signs s;
    for (uint32_t r = 0; r < g->rows; r++) {
        if (r % 32 == 0)
            draw(&s, &rng);
        flip(g->x + (uint64_t)r * N, &s, r % 32, g->elements, scale);
    }
}

/* Down the columns, a tile at a time so that its passes stay in the cache. */
static void columns(float *x, uint32_t rows)
{
    quad t[ROTATE_FRAGMENTS][TILE / 4];
    for (uint32_t c = 0; c < N; c += TILE) {
        for (uint32_t r = 0; r < rows; r++)
            memcpy(t[r], x + (size_t)r * N + c, sizeof t[r]);
        for (uint32_t step = 1; step < rows; step *= 2)
            for (uint32_t r = 0; r < rows; r++)
                for (uint32_t k = 0; !(r & step) && k < TILE / 4; k++) {
                    quad a = t[r][k], b = t[r + step][k];
                    t[r][k] = a + b;
                    t[r + step][k] = a - b;
                }
        for (uint32_t r = 0; r < rows; r++)
            memcpy(x + (size_t)r * N + c, t[r], sizeof t[r]);
    }
}

/* c = C a, C the symmetric conference matrix of order 6 (Paley, over the field of 5). */
static inline __attribute__((always_inline)) void conference(quad c[6], const quad a[6])
{
    c[0] = a[1] + a[2] + a[3] + a[4] + a[5];
    c[1] = a[0] + a[2] - a[3] - a[4] + a[5];
    c[2] = a[0] + a[1] + a[3] - a[4] - a[5];
    c[3] = a[0] - a[1] + a[2] + a[4] - a[5];
    c[4] = a[0] - a[1] - a[2] + a[3] + a[5];
    c[5] = a[0] + a[1] - a[2] - a[3] + a[4];
}

/* The symmetric Hadamard matrix of order 12, [C + I, C - I; C - I, -C - I], on v[0], v[step] ..
 * v[11 step]. */
static inline void paley12(quad *v, uint32_t step)
{
    quad sum[6], difference[6], c[6];
    for (uint32_t i = 0; i < 6; i++) {
        sum[i] = v[i * step] + v[(i + 6) * step];
        difference[i] = v[i * step] - v[(i + 6) * step];
    }
    conference(c, sum);
    for (uint32_t i = 0; i < 6; i++)
        v[i * step] = c[i] + difference[i];
    conference(c, difference);
    for (uint32_t i = 0; i < 6; i++)
        v[(i + 6) * step] = c[i] - sum[i];
}

/* Along LANES rows, which lie beside one another in t. */
static void rows288(quad t[N])
{
    for (uint32_t i = 0; i < N; i += 12)
        paley12(t + i, 1);
    for (uint32_t half = 0; half < N; half += N / 2)
        for (uint32_t i = 0; i < 12; i++)
            paley12(t + half + i, 12);
    for (uint32_t i = 0; i < N / 2; i++) {
        quad a = t[i], b = t[i + N / 2];
        t[i] = a + b;
        t[i + N / 2] = a - b;
    }
}

static void along(float *x, uint32_t rows)
{
    quad t[N] = {{0}};
    for (uint32_t r = 0; r < rows; r += LANES) {
        uint32_t here = rows - r < LANES ? rows - r : LANES;
        for (uint32_t k = 0; k < here; k++)
            for (uint32_t c = 0; c < N; c++)
                t[c][k] = x[(size_t)(r + k) * N + c];
        rows288(t);
        for (uint32_t k = 0; k < here; k++)
            for (uint32_t c = 0; c < N; c++)
                x[(size_t)(r + k) * N + c] = t[c][k];
    }
}

/* A fragment of fewer elements: blocks of powers of two, largest first. */
static void blocks(float *x, uint32_t n)
{
    for (uint32_t size = 256; size; size /= 2) {
        if (!(n & size))
            continue;
        for (uint32_t step = 1; step < size; step *= 2)
            for (uint32_t i = 0; i < size; i++)
                if (!(i & step)) {
                    float a = x[i], b = x[i + step];
                    x[i] = a + b;
                    x[i + step] = a - b;
                }
        float scale = (float)(1 / sqrt(size));
        for (uint32_t i = 0; i < size; i++)
            x[i] *= scale;
        x += size;
    }
}

/* The matrices are symmetric, so forwards and backwards differ in where the signs are. */
static uint32_t transform(float *x, uint64_t count, uint64_t seed, uint64_t at, bool back)
{
    struct group g = group_at(x, count, seed, at);
    bool whole = g.elements == N;
    float scale = whole ? (float)(1 / sqrt((double)g.rows * N)) : 1;
    if (!g.elements)
        return 0;
    if (!back)
        flip_group(&g, scale);
    if (whole) {
        columns(g.x, g.rows);
        along(g.x, g.rows);
    } else {
        blocks(g.x, g.elements);
    }
    if (back)
        flip_group(&g, scale);
    return g.rows;
}

uint32_t rotate_group(float *x, uint64_t count, uint64_t seed, uint64_t at)
{
    return transform(x, count, seed, at, false);
}

uint32_t rotate_group_back(float *x, uint64_t count, uint64_t seed, uint64_t at)
{
    return transform(x, count, seed, at, true);
}

void rotate_forward(float *x, uint64_t count, uint64_t seed)
{
    for (uint64_t at = 0, done; (done = rotate_group(x, count, seed, at)); at += done)
        ;
}

void rotate_inverse(float *x, uint64_t count, uint64_t seed)
{
    for (uint64_t at = 0, done; (done = rotate_group_back(x, count, seed, at)); at += done)
        ;
}
