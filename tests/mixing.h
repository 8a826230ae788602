/* mixing.h - what averaging by matrices leaves of the variance among nodes. */
#ifndef TESTS_MIXING_H
#define TESTS_MIXING_H
#include <stdint.h>
#include <string.h>

#define MIXING_NODES 64

typedef double mixing_matrix[MIXING_NODES][MIXING_NODES]; /* [i][j]: what i takes of j */

static inline void mixing_begin(mixing_matrix product, uint32_t n)
{
    memset(product, 0, sizeof(mixing_matrix));
    for (uint32_t i = 0; i < n; i++)
        product[i][i] = 1;
}

/* One more round. */
static inline void mixing_round(mixing_matrix product, mixing_matrix w, uint32_t n)
{
    static mixing_matrix next;
    memset(next, 0, sizeof next);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < n; j++)
            for (uint32_t k = 0; k < n; k++)
                next[i][j] += w[i][k] * product[k][j];
    memcpy(product, next, sizeof next);
}

/* Of random values with variance 1 among n nodes: the squares of (product - mean). */
static inline double mixing_left(mixing_matrix product, uint32_t n)
{
    double sum = 0;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < n; j++) {
            double off = product[i][j] - 1.0 / n;
            sum += off * off;
        }
    return sum / (n - 1);
}
#endif
