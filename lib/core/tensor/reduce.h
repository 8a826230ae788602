/* Reduction kernels over f32 arrays; sums are kept in f64.  Nothing overlaps. */
#ifndef TENSOR_REDUCE_H
#define TENSOR_REDUCE_H
#include <stdbool.h>
#include <stdint.h>

/* acc[i] += w * x[i] */
void reduce_add(double *acc, const float *x, double w, uint32_t n);
/* out[i] = acc[i] / wsum; wsum > 0 */
void reduce_mean(float *out, const double *acc, double wsum, uint32_t n);
/* a[i] = (a[i] wa + b[i] wb) / (wa + wb), wa + wb > 0.  Exchanging a and b with
 * their weights gives the same bits. */
void reduce_merge(float *a, double wa, const float *b, double wb, uint32_t n);
/* Nothing but zeros. */
bool reduce_zero(const float *, uint32_t n);
/* No NaN and no infinity among n values. */
bool reduce_finite(const float *, uint32_t n);
#endif
