#include "base/rng.h"
#include "sleet_test.h"
#include "tensor/layout.h"
#include "tensor/rotate.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define N FRAGMENT_ELEMENTS
#define MOST (N * 200 + 100)

static const uint64_t counts[] = {
    0, 1, 2, 7, 255, 287, N, N + 1, 2 * N + 96, 3 * N + 287, 64 * N, 65 * N, 127 * N + 5, MOST};
#define COUNTS (sizeof counts / sizeof counts[0])

static void fill(float *x, uint64_t count, sleet_rng *rng)
{
    for (uint64_t i = 0; i < count; i++)
        x[i] = (float)(rng_double(rng) - 0.5) * (i / N % 5 == 0 ? 20.0f : 1.0f);
}

static double distance(const float *a, const float *b, uint64_t count)
{
    double sum = 0;
    for (uint64_t i = 0; i < count; i++) {
        double d = (double)a[i] - (b ? (double)b[i] : 0);
        sum += d * d;
    }
    return sqrt(sum);
}

static void turns_back(void)
{
    static float x[MOST + 1], y[MOST + 1];
    sleet_rng rng = {test_seed()};
    for (size_t k = 0; k < COUNTS; k++) {
        uint64_t count = counts[k], seed = rng_next(&rng);
        fill(x, count, &rng);
        x[count] = 7; /* beyond the tensor */
        memcpy(y, x, (count + 1) * sizeof *x);
        double norm = distance(x, NULL, count);
        rotate_forward(y, count, seed);
        CHECK(count < 7 || distance(x, y, count) > 0.1 * norm);
        CHECK_NEAR(distance(y, NULL, count), norm, 1e-6 * norm);
        rotate_inverse(y, count, seed);
        CHECK(distance(x, y, count) <= 1e-6 * norm && y[count] == 7);
    }
}

static void groups_make_up_the_tensor(void)
{
    static float x[MOST], y[MOST], z[MOST];
    sleet_rng rng = {test_seed()};
    for (size_t k = 0; k < COUNTS; k++) {
        uint64_t count = counts[k], at = 0, done, before = 64;
        fill(x, count, &rng);
        memcpy(y, x, count * sizeof *x);
        memcpy(z, x, count * sizeof *x);
        rotate_forward(y, count, 5);
        for (; (done = rotate_group(x, count, 5, at)); at += done, before = done)
            CHECK(done <= before && (done & (done - 1)) == 0);
        CHECK_EQ(at, count / N + (count % N != 0));
        CHECK_MEM(x, y, count * sizeof *x);
        for (at = 0; (done = rotate_group_back(x, count, 5, at)); at += done)
            ;
        CHECK(distance(x, z, count) <= 1e-6 * distance(z, NULL, count));
    }
}

/* Owners add what was rotated. */
static void sums_stay_sums(void)
{
    static float a[MOST], b[MOST], sum[MOST];
    sleet_rng rng = {test_seed()};
    for (size_t k = 0; k < COUNTS; k++) {
        uint64_t count = counts[k];
        fill(a, count, &rng);
        fill(b, count, &rng);
        for (uint64_t i = 0; i < count; i++)
            sum[i] = a[i] + b[i];
        rotate_forward(a, count, 9);
        rotate_forward(b, count, 9);
        rotate_forward(sum, count, 9);
        for (uint64_t i = 0; i < count; i++)
            a[i] += b[i];
        CHECK(distance(a, sum, count) <= 1e-6 * distance(sum, NULL, count));
    }
}

/* One element becomes equal parts of all elements of its group: the matrices are Hadamard. */
static void one_element_spreads_evenly(void)
{
    static float x[64 * N];
    for (uint32_t rows = 1; rows <= 64; rows *= 2) {
        uint32_t plus = 0, n = rows * N;
        double part = 1 / sqrt(n), worst = 0;
        memset(x, 0, sizeof x);
        x[(rows - 1) * N + 17] = 1;
        rotate_forward(x, n, test_seed());
        for (uint32_t i = 0; i < n; i++) {
            worst = fmax(worst, fabs(fabs((double)x[i]) - part));
            plus += x[i] > 0;
        }
        CHECK(worst < 1e-6 * part);
        CHECK(rows == 1 || plus > n / 3);
    }
}

/* So does what is alike everywhere, because the signs are not. */
static void a_constant_spreads_over_the_fragments(void)
{
    static float x[64 * N];
    for (uint32_t i = 0; i < 64 * N; i++)
        x[i] = 1;
    rotate_forward(x, 64 * N, test_seed());
    for (uint32_t r = 0; r < 64; r++)
        CHECK_NEAR(distance(x + r * N, NULL, N), sqrt(N), 0.25 * sqrt(N));
}

static void signs_follow_the_seed(void)
{
    float x[2][2 * N];
    for (int k = 0; k < 2; k++) {
        for (uint32_t i = 0; i < 2 * N; i++)
            x[k][i] = (float)i;
        rotate_forward(x[k], 2 * N, (uint64_t)k);
    }
    CHECK(distance(x[0], x[1], 2 * N) > distance(x[0], NULL, 2 * N));
}

TEST_SUITE(rotate) = {
    TEST(turns_back),
    TEST(groups_make_up_the_tensor),
    TEST(sums_stay_sums),
    TEST(one_element_spreads_evenly),
    TEST(a_constant_spreads_over_the_fragments),
    TEST(signs_follow_the_seed),
    TEST_END,
};
