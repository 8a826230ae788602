/* The arithmetic of PowerGossip, without a wire. */
#include "base/rng.h"
#include "round/power.h"
#include "sleet_test.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ROWS 16
#define COLS 8
#define NODES 8
#define EXTRA 300 /* of a tensor that is no matrix */

static struct layout layout;

static void lay_out(uint32_t rows, uint64_t count, uint64_t extra)
{
    const struct tensor_spec specs[] = {{"bias", SLEET_F32, 0, extra, 0}, {"matrix", SLEET_F32, 0, count, rows},
                                        {"state", SLEET_F32_STATE, 0, 288 * 20, 0}};
    REQUIRE(layout_init(&layout, "set", (struct set_kind){.payload = SLEET_MODEL}, specs, 3) == SLEET_OK);
}

static void only_large_matrices_are_products(void)
{
    lay_out(ROWS, ROWS * COLS, EXTRA);
    struct power_map *odd = power_map_new(&layout, 1, 3), *even = power_map_new(&layout, 1, 4);
    REQUIRE(odd && even);
    CHECK_EQ(odd->piece[1].floats, ROWS);
    CHECK_EQ(even->piece[1].floats, COLS);
    CHECK_EQ(odd->piece[0].floats, EXTRA);
    CHECK_EQ(odd->floats, EXTRA + ROWS + (odd->n - 2) * 8 * 288); /* of state a run in 16 is due */
    CHECK(odd->floats <= power_floats_max(&layout, 1) && odd->sides == power_sides(&layout, 1));
    power_map_free(odd);
    power_map_free(even);
    odd = power_map_new(&layout, 6, 1); /* 6 (16 + 8) > 16 x 8: the whole is less */
    REQUIRE(odd);
    CHECK_EQ(odd->sides, 0);
    CHECK_EQ(odd->piece[1].floats, ROWS * COLS);
    CHECK_EQ(odd->floats, EXTRA + ROWS * COLS + 288 * 20); /* round 1 brings all of the state */
    power_map_free(odd);
    layout_fini(&layout);
}

static void columns_are_orthonormal(void)
{
    enum { RANK = 3 };
    static float sides[RANK * (40 + 30)], difference[RANK * 40];
    lay_out(40, 40 * 30, 0);
    struct power_map *m = power_map_new(&layout, RANK, 5);
    REQUIRE(m && m->sides == RANK * 70);
    power_begin(m, 9, sides);
    for (int turn = 0; turn < 2; turn++) {
        double worst = 0;
        for (int a = 0; a < RANK; a++)
            for (int b = 0; b < RANK; b++) {
                double dot = 0;
                for (int i = 0; i < 40; i++)
                    dot += (double)sides[i * RANK + a] * (double)sides[i * RANK + b];
                worst = fmax(worst, fabs(dot - (a == b)));
            }
        CHECK(worst < 1e-6);
        for (int i = 0; i < 40; i++) /* of one direction only, and the third column nothing at all */
            for (int c = 0; c < RANK; c++)
                difference[i * RANK + c] = c < 2 ? (float)((i + 1) * (c + 1)) : 0;
        power_turn(m, difference, 7, sides);
    }
    power_map_free(m);
    layout_fini(&layout);
}

/* A fragment at a time gives the same as all at once. */
static void a_vector_is_made_in_parts(void)
{
    enum { R = 300, C = 50, RANK = 2 };
    static float x[R * C], bias[EXTRA], state[288 * 20], sides[RANK * (R + C)], out[288];
    const void *values[] = {bias, x, state};
    sleet_rng rng = {test_seed()};
    lay_out(R, R * C, EXTRA);
    for (int i = 0; i < R * C; i++)
        x[i] = (float)rng_double(&rng);
    for (int i = 0; i < EXTRA; i++)
        bias[i] = (float)i;
    for (uint64_t round = 20; round < 22; round++) {
        struct power_map *m = power_map_new(&layout, RANK, round);
        double worst = 0;
        REQUIRE(m);
        power_begin(m, 1, sides);
        const float *p = sides, *q = sides + R * RANK;
        for (uint64_t from = 0; from < EXTRA + (m->odd ? R : C) * RANK; from += 100) {
            power_make(m, sides, values, from, 100, out);
            for (uint64_t k = from; k < from + 100; k++) {
                double expect = k < EXTRA ? (double)bias[k] : 0;
                uint64_t e = (k - EXTRA) / RANK, c = (k - EXTRA) % RANK;
                for (uint64_t j = 0; k >= EXTRA && j < (m->odd ? C : R); j++)
                    expect += m->odd ? (double)x[e * C + j] * (double)q[j * RANK + c]
                                     : (double)x[j * C + e] * (double)p[j * RANK + c];
                worst = fmax(worst, fabs(expect - (double)out[k - from]));
            }
        }
        CHECK(worst < 1e-4);
        power_map_free(m);
    }
    layout_fini(&layout);
}

/* ---- a ring, where all that is sent is there; the targets are those of a simulation of the paper's algorithm: the
 * variance between the nodes, of what it was, after 10, 30 and 100 rounds */

struct ring {
    float x[NODES][ROWS * COLS];
    float sides[NODES][ROWS + COLS]; /* of edge i, i + 1 */
};

static double centred(sleet_rng *rng)
{
    return rng_double(rng) - 0.5;
}

/* Uniform; `low`: so is a multiple of one product, and with little of that. */
static void fill(struct ring *r, bool low, uint64_t seed)
{
    sleet_rng rng = {seed};
    double left[ROWS], right[COLS];
    for (int i = 0; i < ROWS; i++)
        left[i] = rng_below(&rng, 2) ? 1 : -1;
    for (int j = 0; j < COLS; j++)
        right[j] = rng_below(&rng, 2) ? 1 : -1;
    for (int n = 0; n < NODES; n++) {
        double much = 3.5 * centred(&rng);
        for (int k = 0; k < ROWS * COLS; k++)
            r->x[n][k] = (float)(low ? much * left[k / COLS] * right[k % COLS] + 0.4 * centred(&rng) : 3.5 * centred(&rng));
    }
}

static double mean_of(const struct ring *r, int k)
{
    double sum = 0;
    for (int n = 0; n < NODES; n++)
        sum += (double)r->x[n][k];
    return sum / NODES;
}

static double distance(const struct ring *r)
{
    double sum = 0;
    for (int k = 0; k < ROWS * COLS; k++)
        for (int n = 0; n < NODES; n++)
            sum += pow((double)r->x[n][k] - mean_of(r, k), 2);
    return sum;
}

/* One round of all edges; `one_sided`: one end of the first leaves it out. */
static void gossip(struct ring *r, uint64_t round, bool one_sided)
{
    static double change[NODES][ROWS * COLS];
    struct power_map *m = power_map_new(&layout, 1, round);
    REQUIRE(m);
    memset(change, 0, sizeof change);
    for (int n = 0; n < NODES; n++) {
        int a = n, b = (n + 1) % NODES;
        float small[ROWS], large[ROWS];
        const void *xa[] = {NULL, r->x[a], NULL}, *xb[] = {NULL, r->x[b], NULL};
        uint32_t floats = (uint32_t)m->piece[0].floats;
        power_make(m, r->sides[n], xa, 0, floats, small);
        power_make(m, r->sides[n], xb, 0, floats, large);
        for (uint32_t i = 0; i < floats; i++)
            large[i] -= small[i];
        power_apply(m, r->sides[n], large, 1.0 / 3, 1, 0, ROWS * COLS, change[a]);
        if (n || !one_sided)
            power_apply(m, r->sides[n], large, -1.0 / 3, 1, 0, ROWS * COLS, change[b]);
        power_turn(m, large, round, r->sides[n]);
    }
    for (int n = 0; n < NODES; n++)
        for (int k = 0; k < ROWS * COLS; k++)
            r->x[n][k] = (float)((double)r->x[n][k] + change[n][k]);
    power_map_free(m);
}

/* One run of 300 rounds: adds the consensus after 10, 30 and 100; the largest change of an element's mean. */
static double run(bool low, bool one_sided, uint64_t seed, double sum[3])
{
    static struct ring r;
    static double before[ROWS * COLS];
    double drift = 0;
    struct power_map *m = power_map_new(&layout, 1, 1);
    CHECK(m != NULL);
    for (int n = 0; m && n < NODES; n++)
        power_begin(m, mix64(seed + (uint64_t)n), r.sides[n]);
    power_map_free(m);
    fill(&r, low, seed);
    double first = distance(&r);
    for (int k = 0; k < ROWS * COLS; k++)
        before[k] = mean_of(&r, k);
    for (uint64_t round = 1; round <= 300; round++) {
        gossip(&r, round, one_sided && round % 20 == 0);
        if (round == 10 || round == 30 || round == 100)
            sum[round == 10 ? 0 : round == 30 ? 1 : 2] += distance(&r) / first;
    }
    for (int k = 0; k < ROWS * COLS; k++)
        drift = fmax(drift, fabs(mean_of(&r, k) - before[k]));
    return drift;
}

/* The mean of several; the worst of the three in proportion to its target. */
static double runs(bool low, bool one_sided, const double target[3], double *drift)
{
    enum { RUNS = 20 };
    double sum[3] = {0}, worst = 0;
    lay_out(ROWS, ROWS * COLS, 0);
    *drift = 0;
    for (uint64_t i = 0; i < RUNS; i++)
        *drift = fmax(*drift, run(low, one_sided, mix64(test_seed() * RUNS + i), sum));
    for (int i = 0; i < 3; i++)
        worst = fmax(worst, sum[i] / RUNS / target[i]);
    layout_fini(&layout);
    return worst;
}

static void a_ring_comes_together(void)
{
    static const double any[] = {0.34, 7.4e-2, 2.0e-3}, low[] = {3.5e-2, 4.8e-3, 7.8e-5};
    double drift;
    CHECK(runs(false, false, any, &drift) < 1.5);
    CHECK(drift < 1e-6);
    CHECK(runs(true, false, low, &drift) < 1.5);
    CHECK(drift < 1e-6);
}

/* The control: where one end leaves out what the other takes the mean goes astray. */
static void one_sided_steps_drift(void)
{
    static const double any[] = {0.34, 7.4e-2, 2.0e-3};
    double drift;
    runs(false, true, any, &drift);
    CHECK(drift > 1e-3);
}

TEST_SUITE(power) = {
    TEST(only_large_matrices_are_products),
    TEST(columns_are_orthonormal),
    TEST(a_vector_is_made_in_parts),
    TEST(a_ring_comes_together),
    TEST(one_sided_steps_drift),
    TEST_END,
};
