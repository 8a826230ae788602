/* sleet-bench.h - what the parts of sleet-bench share: how rows are printed and judged. */
#ifndef SLEET_BENCH_H
#define SLEET_BENCH_H
#include "base/rng.h"
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bench {
    bool json, brief; /* brief: the few rows that take seconds */
    double tolerance; /* measured may differ by that fraction of theory */
    uint64_t seed;
    const char *part; /* whose header was printed last */
    uint64_t rows, outside;
};

/* One column of a row: a text, or a number with so many digits behind the point, `tiny` with an
 * exponent.  The name is JSON's as well. */
struct bench_value {
    const char *name, *text;
    double number;
    int digits;
    bool tiny;
};
#define BENCH_TEXT(name_, text_) {.name = name_, .text = text_}
#define BENCH_NUMBER(name_, digits_, number_) {.name = name_, .digits = digits_, .number = number_}
#define BENCH_TINY(name_, digits_, number_)                                                 \
    {.name = name_, .digits = digits_, .number = number_, .tiny = true}

enum bench_verdict { BENCH_UNJUDGED, BENCH_WITHIN, BENCH_OUTSIDE };

/* A row of a part; all rows of a part have the same columns. */
void bench_row(struct bench *, const char *part, const struct bench_value *, size_t count,
               enum bench_verdict);

/* Outside: further from theory than the tolerance, and than four standard errors of the
 * measurement; 0 where it must be met whatever the measurement's own spread. */
enum bench_verdict bench_judge(const struct bench *, double measured, double theory,
                               double standard_error);

/* A mean and its standard error, from values that are added one by one (Welford). */
struct bench_mean {
    uint64_t n;
    double mean, squares;
};
static inline void bench_add(struct bench_mean *m, double x)
{
    double d = x - m->mean;
    m->mean += d / (double)++m->n;
    m->squares += d * (x - m->mean);
}
static inline double bench_error(const struct bench_mean *m)
{
    return m->n < 2 ? INFINITY : sqrt(m->squares / (double)(m->n - 1) / (double)m->n);
}

/* Normal, mean 0, variance 1 (Box and Muller). */
void bench_normal(sleet_rng *, float *out, size_t n);

/* The parts: 0, or -1 out of memory or failed, after a message. */
int bench_estimators(struct bench *);
int bench_parity(struct bench *);
int bench_codecs(struct bench *);
int bench_speed(struct bench *);

/* `sleet-bench average`, argv[0] being "average": the exit status. */
int bench_average(int argc, char **argv);
#endif
