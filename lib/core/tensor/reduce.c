#include "tensor/reduce.h"
#include <string.h>

/* A fused multiply-add would round the two products of reduce_merge() differently. */
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__)
#pragma GCC optimize("fp-contract=off")
#endif

void reduce_add(double *restrict acc, const float *restrict x, double w, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        acc[i] += (double)x[i] * w;
}

void reduce_mean(float *restrict out, const double *restrict acc, double wsum, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        out[i] = (float)(acc[i] / wsum);
}

void reduce_merge(float *restrict a, double wa, const float *restrict b, double wb, uint32_t n)
{
    double sum = wa + wb;
    for (uint32_t i = 0; i < n; i++)
        a[i] = (float)(((double)a[i] * wa + (double)b[i] * wb) / sum);
}

bool reduce_finite(const float *x, uint32_t n)
{
    uint32_t bad = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &x[i], sizeof(bits));
        bad |= (bits & 0x7f800000u) == 0x7f800000u;
    }
    return bad == 0;
}

bool reduce_zero(const float *x, uint32_t n)
{
    uint32_t any = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &x[i], sizeof(bits));
        any |= bits & 0x7fffffffu;
    }
    return any == 0;
}
