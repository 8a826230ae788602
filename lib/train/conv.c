#include "train/conv.h"
#include "train/layer.h"
#include <cblas.h>
#include <math.h>
#include <string.h>

size_t conv_in(const struct conv *c)
{
    return (size_t)c->rows * c->columns * c->in;
}
size_t conv_out(const struct conv *c)
{
    return (size_t)c->rows * c->columns * c->out;
}
size_t conv_pooled(const struct conv *c)
{
    return (size_t)(c->rows / CONV_POOL) * (c->columns / CONV_POOL) * c->out;
}
static size_t patch_size(const struct conv *c)
{
    return (size_t)CONV_KERNEL * CONV_KERNEL * c->in;
}
size_t conv_room(const struct conv *c)
{
    return (size_t)c->rows * c->columns * patch_size(c);
}

struct conv conv_at(size_t *params, uint32_t rows, uint32_t columns, uint32_t in, uint32_t out,
                    bool biased)
{
    struct conv c = {.rows = rows, .columns = columns, .in = in, .out = out, .biased = biased};
    c.weight = *params;
    c.bias = c.weight + patch_size(&c) * out;
    *params = c.bias + (biased ? out : 0);
    return c;
}

void conv_init(const struct conv *c, float *params, sleet_rng *rng)
{
    double bound = sqrt(6.0 / (double)patch_size(c));
    for (size_t k = c->weight; k < c->bias; k++)
        params[k] = (float)((2 * rng_double(rng) - 1) * bound);
    if (c->biased)
        memset(params + c->bias, 0, c->out * sizeof *params);
}

/* One row a pixel: the values under the kernel around it, 0 outside the image.  A row of the kernel lies
 * together in the image. */
static void unfold(const struct conv *c, const float *x, float *columns)
{
    size_t in = c->in, line = CONV_KERNEL * in;
    for (uint32_t r = 0; r < c->rows; r++)
        for (uint32_t s = 0; s < c->columns; s++)
            for (uint32_t k = 0; k < CONV_KERNEL; k++, columns += line) {
                uint32_t y = r + k - 1; /* 0 - 1 wraps: outside */
                size_t left = s == 0 ? in : 0, right = s + 1 == c->columns ? in : 0; /* of the row: outside */
                if (y >= c->rows) {
                    memset(columns, 0, line * sizeof *columns);
                    continue;
                }
                const float *from = x + ((size_t)y * c->columns + s) * in;
                for (size_t i = 0; i < left; i++)
                    columns[i] = 0;
                memcpy(columns + left, from + left - in, (line - left - right) * sizeof *columns);
                for (size_t i = line - right; i < line; i++)
                    columns[i] = 0;
            }
}

/* The gradient at the image from that at the columns. */
static void fold(const struct conv *c, const float *columns, float *x_delta)
{
    memset(x_delta, 0, conv_in(c) * sizeof *x_delta);
    for (uint32_t r = 0; r < c->rows; r++)
        for (uint32_t s = 0; s < c->columns; s++)
            for (uint32_t k = 0; k < CONV_KERNEL * CONV_KERNEL; k++, columns += c->in) {
                uint32_t y = r + k / CONV_KERNEL - 1, z = s + k % CONV_KERNEL - 1;
                if (y >= c->rows || z >= c->columns)
                    continue;
                float *to = x_delta + ((size_t)y * c->columns + z) * c->in;
                for (uint32_t i = 0; i < c->in; i++)
                    to[i] += columns[i];
            }
}

void conv_forward(const struct conv *c, const float *params, const float *x, float *room, float *y)
{
    int pixels = (int)(c->rows * c->columns), patch = (int)patch_size(c), out = (int)c->out;
    unfold(c, x, room);
    for (int i = 0; c->biased && i < pixels; i++)
        memcpy(y + (size_t)i * c->out, params + c->bias, c->out * sizeof(float));
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, pixels, out, patch, 1.0f, room, patch,
                params + c->weight, out, c->biased ? 1.0f : 0.0f, y, out);
}

void conv_backward(const struct conv *c, const float *params, const float *x, const float *delta,
                   float *room, float *gradient, float *x_delta)
{
    int pixels = (int)(c->rows * c->columns), patch = (int)patch_size(c), out = (int)c->out;
    for (size_t i = 0; c->biased && i < conv_out(c); i += c->out)
        for (uint32_t o = 0; o < c->out; o++)
            gradient[c->bias + o] += delta[i + o];
    unfold(c, x, room);
    cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, patch, out, pixels, 1.0f, room, patch, delta,
                out, 1.0f, gradient + c->weight, out);
    if (!x_delta)
        return;
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, pixels, patch, out, 1.0f, delta, out,
                params + c->weight, out, 0.0f, room, patch);
    fold(c, room, x_delta);
}

/* ---- pool ---------------------------------------------------------------------------- */

/* The greater of what is at `place` and the best so far; a NaN stays one. */
static void pool_keep(const float *y, uint32_t place, float *restrict best, uint32_t *restrict from)
{
    for (uint32_t o = 0; o < LAYER_RUN; o++) {
        float other = y[place + o], was = best[o];
        uint32_t there = from[o];
        int more = !(other <= was) & (was == was);
        best[o] = more ? other : was;
        from[o] = more ? place + o : there;
    }
}

/* Of LAYER_RUN channels the maximum of four places. */
static void pool_channels(const float *y, const uint32_t place[4], float *restrict pooled, uint32_t *restrict from)
{
    for (uint32_t o = 0; o < LAYER_RUN; o++) {
        pooled[o] = y[place[0] + o];
        from[o] = place[0] + o;
    }
    for (int k = 1; k < 4; k++)
        pool_keep(y, place[k], pooled, from);
    for (uint32_t o = 0; o < LAYER_RUN; o++)
        pooled[o] = pooled[o] < 0 ? 0 : pooled[o];
}

void pool_forward(const struct conv *c, const float *y, float *pooled, uint32_t *from)
{
    for (uint32_t r = 0; r + CONV_POOL <= c->rows; r += CONV_POOL)
        for (uint32_t s = 0; s + CONV_POOL <= c->columns; s += CONV_POOL)
            for (uint32_t o = 0; o < c->out; o += LAYER_RUN, pooled += LAYER_RUN, from += LAYER_RUN) {
                uint32_t first = (r * c->columns + s) * c->out + o, below = first + c->columns * c->out;
                pool_channels(y, (const uint32_t[]){first, first + c->out, below, below + c->out}, pooled, from);
            }
}

void pool_backward(const struct conv *c, const float *pooled, const uint32_t *from,
                   const float *delta, float *y_delta)
{
    memset(y_delta, 0, conv_out(c) * sizeof *y_delta);
    for (size_t i = 0; i < conv_pooled(c); i++)
        if (pooled[i] > 0)
            y_delta[from[i]] = delta[i];
}
