/* attention.c - causal attention, a sample and head at a time: all products are of a context x width of
 * a head, whose rows lie 3 widths apart. */
#include "train/layer.h"
#include <cblas.h>
#include <math.h>

struct head {
    int context, width, row; /* row: floats from one to the next */
    float scale;
};

static struct head head_of(const struct attention *a)
{
    int width = (int)(a->width / a->heads);
    return (struct head){.context = (int)a->context,
                         .width = width,
                         .row = 3 * (int)a->width,
                         .scale = 1 / sqrtf((float)width)};
}

/* Each row of products becomes weights of sum 1; those of later rows are 0. */
static void weigh(const struct head *h, float *w)
{
    for (int i = 0; i < h->context; i++, w += h->context) {
        float top = w[0], sum = 0;
        for (int k = 1; k <= i; k++)
            top = w[k] > top ? w[k] : top;
        for (int k = 0; k <= i; k++)
            sum += w[k] = expf(w[k] - top);
        for (int k = 0; k <= i; k++)
            w[k] /= sum;
        for (int k = i + 1; k < h->context; k++)
            w[k] = 0;
    }
}

/* The gradient at the products, from that at the weights `w`; both in `delta`. */
static void weigh_backward(const struct head *h, const float *w, float *delta)
{
    for (int i = 0; i < h->context; i++, w += h->context, delta += h->context) {
        float along = 0;
        for (int k = 0; k <= i; k++)
            along += w[k] * delta[k];
        for (int k = 0; k < h->context; k++)
            delta[k] = w[k] * (delta[k] - along);
    }
}

void attention_forward(const struct attention *a, const float *qkv, uint32_t samples, float *weight,
                       float *y)
{
    struct head h = head_of(a);
    int t = h.context, wide = (int)a->width;
    for (uint32_t i = 0; i < samples * a->heads; i++, weight += t * t) {
        size_t sample = i / a->heads, column = (i % a->heads) * (size_t)h.width;
        const float *q = qkv + sample * a->context * 3 * a->width + column, *k = q + wide, *v = k + wide;
        float *out = y + sample * a->context * a->width + column;
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, t, t, h.width, h.scale, q, h.row, k,
                    h.row, 0.0f, weight, t);
        weigh(&h, weight);
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, t, h.width, t, 1.0f, weight, t, v,
                    h.row, 0.0f, out, wide);
    }
}

void attention_backward(const struct attention *a, const float *qkv, uint32_t samples,
                        const float *weight, const float *delta, float *room, float *qkv_delta)
{
    struct head h = head_of(a);
    int t = h.context, wide = (int)a->width;
    for (uint32_t i = 0; i < samples * a->heads; i++, weight += t * t) {
        size_t sample = i / a->heads, column = (i % a->heads) * (size_t)h.width;
        size_t at = sample * a->context * 3 * a->width + column;
        const float *q = qkv + at, *k = q + wide, *v = k + wide;
        float *q_delta = qkv_delta + at, *k_delta = q_delta + wide, *v_delta = k_delta + wide;
        const float *d = delta + sample * a->context * a->width + column;
        cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, t, h.width, t, 1.0f, weight, t, d, wide,
                    0.0f, v_delta, h.row);
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, t, t, h.width, 1.0f, d, wide, v, h.row,
                    0.0f, room, t);
        weigh_backward(&h, weight, room);
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, t, h.width, t, h.scale, room, t, k,
                    h.row, 0.0f, q_delta, h.row);
        cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, t, h.width, t, h.scale, room, t, q,
                    h.row, 0.0f, k_delta, h.row);
    }
}
