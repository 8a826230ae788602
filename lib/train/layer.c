#include "train/layer.h"
#include <cblas.h>
#include <math.h>
#include <string.h>

#define NORM_EPSILON 1e-5f

/* ---- dense ------------------------------------------------------------------------- */

struct dense dense_at(size_t *params, uint32_t in, uint32_t out)
{
    struct dense d = {.in = in, .out = out, .weight = *params};
    d.bias = d.weight + (size_t)in * out;
    *params = d.bias + out;
    return d;
}

void dense_init(const struct dense *d, float *params, double gain, sleet_rng *rng)
{
    double bound = sqrt(3 * gain / d->in);
    for (size_t i = d->weight; i < d->bias; i++)
        params[i] = (float)((2 * rng_double(rng) - 1) * bound);
    memset(params + d->bias, 0, d->out * sizeof *params);
}

void dense_forward(const struct dense *d, const float *params, const float *x, uint32_t n, float *y)
{
    int in = (int)d->in, out = (int)d->out;
    for (uint32_t i = 0; i < n; i++)
        memcpy(y + (size_t)i * d->out, params + d->bias, d->out * sizeof(float));
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)n, out, in, 1.0f, x, in,
                params + d->weight, out, 1.0f, y, out);
}

struct span {
    uint32_t first, count;
};

/* The gradient of a rectangle of the weights. */
static void weights_backward(const struct dense *d, const float *x, uint32_t n, const float *delta, float *gradient,
                             struct span rows, struct span columns)
{
    int in = (int)d->in, out = (int)d->out;
    cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (int)rows.count, (int)columns.count, (int)n, 1.0f, x + rows.first, in,
                delta + columns.first, out, 0.0f, gradient + d->weight + (size_t)rows.first * d->out + columns.first, out);
}

/* What both bring beside it. */
static void rest_backward(const struct dense *d, const float *params, uint32_t n, const float *delta, float *gradient,
                          float *x_delta)
{
    int in = (int)d->in, out = (int)d->out;
    float *bias = gradient + d->bias;
    memset(bias, 0, d->out * sizeof *bias);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < d->out; k++)
            bias[k] += delta[(size_t)i * d->out + k];
    if (x_delta)
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)n, in, out, 1.0f, delta, out,
                    params + d->weight, out, 0.0f, x_delta, in);
}

void dense_backward(const struct dense *d, const float *params, const float *x, uint32_t n,
                    const float *delta, float *gradient, float *x_delta)
{
    weights_backward(d, x, n, delta, gradient, (struct span){0, d->in}, (struct span){0, d->out});
    rest_backward(d, params, n, delta, gradient, x_delta);
}

void dense_backward_of(const struct dense *d, const struct dense_units *u, const float *params, const float *x, uint32_t n,
                       const float *delta, float *gradient, float *x_delta)
{
    const struct span rows = {0, d->in}, columns = {0, d->out};
    if (!u->share.wanted) {
        dense_backward(d, params, x, n, delta, gradient, x_delta);
        return;
    }
    memset(gradient + d->weight, 0, (size_t)d->in * d->out * sizeof *gradient);
    for (uint32_t slice = 0, first, end; slice < u->share.slices; slice++) {
        model_units(u->units, u->share.slices, slice, &first, &end);
        if (!u->share.wanted[slice] || first == end)
            continue;
        for (uint32_t at = first; at < (u->by_rows ? d->in : d->out); at += u->units) {
            const struct span some = {at, end - first};
            weights_backward(d, x, n, delta, gradient, u->by_rows ? some : rows, u->by_rows ? columns : some);
        }
    }
    rest_backward(d, params, n, delta, gradient, x_delta);
}

void relu(float *x, size_t count)
{
    size_t i = 0;
    for (; i + LAYER_RUN <= count; i += LAYER_RUN)
        for (size_t k = i; k < i + LAYER_RUN; k++)
            x[k] = x[k] < 0 ? 0 : x[k];
    for (; i < count; i++)
        x[i] = x[i] < 0 ? 0 : x[i];
}

void relu_backward(const float *y, float *restrict delta, size_t count)
{
    size_t i = 0;
    for (; i + LAYER_RUN <= count; i += LAYER_RUN)
        for (size_t k = i; k < i + LAYER_RUN; k++)
            delta[k] = y[k] <= 0 ? 0 : delta[k];
    for (; i < count; i++)
        delta[i] = y[i] <= 0 ? 0 : delta[i];
}

/* ---- layer normalisation --------------------------------------------------------------- */

struct norm norm_at(size_t *params, uint32_t width)
{
    struct norm l = {.width = width, .gain = *params, .bias = *params + width};
    *params += 2 * (size_t)width;
    return l;
}

void norm_init(const struct norm *l, float *params)
{
    for (uint32_t k = 0; k < l->width; k++) {
        params[l->gain + k] = 1;
        params[l->bias + k] = 0;
    }
}

void norm_forward(const struct norm *l, const float *params, const float *x, uint32_t n,
                  float *moment, float *y)
{
    const float *gain = params + l->gain, *bias = params + l->bias;
    for (uint32_t i = 0; i < n; i++, x += l->width, y += l->width, moment += 2) {
        float mean = 0, square = 0;
        for (uint32_t k = 0; k < l->width; k++)
            mean += x[k];
        mean /= (float)l->width;
        for (uint32_t k = 0; k < l->width; k++)
            square += (x[k] - mean) * (x[k] - mean);
        moment[0] = mean;
        moment[1] = 1 / sqrtf(square / (float)l->width + NORM_EPSILON);
        for (uint32_t k = 0; k < l->width; k++)
            y[k] = (x[k] - mean) * moment[1] * gain[k] + bias[k];
    }
}

void norm_backward(const struct norm *l, const float *params, const float *x, uint32_t n,
                   const float *moment, const float *delta, float *gradient, float *x_delta)
{
    const float *gain = params + l->gain;
    float *gain_delta = gradient + l->gain, *bias_delta = gradient + l->bias;
    memset(gain_delta, 0, l->width * sizeof *gain_delta);
    memset(bias_delta, 0, l->width * sizeof *bias_delta);
    for (uint32_t i = 0; i < n; i++, x += l->width, delta += l->width, x_delta += l->width, moment += 2) {
        float mean = 0, along = 0; /* of the gradient at the normalised row, and along that row */
        for (uint32_t k = 0; k < l->width; k++) {
            float unit = (x[k] - moment[0]) * moment[1], d = delta[k] * gain[k];
            gain_delta[k] += delta[k] * unit;
            bias_delta[k] += delta[k];
            mean += d;
            along += d * unit;
        }
        mean /= (float)l->width;
        along /= (float)l->width;
        for (uint32_t k = 0; k < l->width; k++) {
            float unit = (x[k] - moment[0]) * moment[1];
            x_delta[k] += moment[1] * (delta[k] * gain[k] - mean - unit * along);
        }
    }
}
