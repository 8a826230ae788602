/* Slices of a model: which parameters they have, and who trains them. */
#include "sleet_test.h"
#include "train/slice.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FRAGMENT 32u

static model *charlm(uint32_t width)
{
    const struct model_shape s = {.rows = 1, .columns = 16, .hidden = {width}, .hidden_count = 1, .classes = 20, .batch = 2};
    const char *why;
    model *m = model_new(&model_charlm, &s, &why);
    if (!m)
        abort();
    return m;
}

/* Every parameter once, slice behind slice; each slice has its part of every matrix. */
static void slices_are_units_of_all_matrices(void)
{
    model *m = charlm(16);
    struct slices s;
    size_t n = model_params(m);
    uint8_t *seen = calloc(n, 1);
    CHECK(slices_open(&s, m, 4, FRAGMENT));
    CHECK_EQ(s.length % FRAGMENT, 0);
    CHECK(s.length < n + 5 * FRAGMENT);
    for (size_t k = 0; k < s.length; k++)
        if (s.order[k] != SLICES_GAP)
            seen[s.order[k]]++;
    for (size_t k = 0; k < n; k++)
        CHECK_EQ(seen[k], 1);
    CHECK_EQ(s.of[0], 4); /* what all train comes first */
    for (uint32_t f = 1; f < s.length / FRAGMENT; f++)
        CHECK(s.of[f] == s.of[f - 1] || s.of[f] == (s.of[f - 1] + 1) % 5);
    CHECK_EQ(s.of[s.length / FRAGMENT - 1], 3);
    const struct model_matrix *sliced = m->matrix;
    for (uint32_t i = 0; i < m->matrices; i++, sliced++) {
        size_t have[5] = {0}, count = (size_t)sliced->rows * sliced->cols;
        for (size_t k = 0; k < s.length; k++)
            have[s.of[k / FRAGMENT]] += s.order[k] >= sliced->at && s.order[k] < sliced->at + count;
        for (uint32_t j = 0; sliced->units && j < 4; j++)
            CHECK_EQ(have[j], count / 4);
    }
    slices_close(&s);
    model_free(m);
    free(seen);
}

/* A unit of a feed-forward layer is trained as a whole: its weights, and the weights behind it. */
static void a_unit_is_in_one_slice(void)
{
    model *m = charlm(16);
    struct slices s;
    size_t n = model_params(m);
    uint32_t *of = malloc(n * sizeof *of), wrong = 0, units = 0;
    CHECK(slices_open(&s, m, 4, 1));
    CHECK_EQ(s.length, n);
    for (size_t k = 0; k < n; k++)
        of[s.order[k]] = s.of[k];
    for (uint32_t i = 0; i + 1 < m->matrices; i++) {
        const struct model_matrix *in = &m->matrix[i], *out = in + 1;
        if (in->by_rows || !in->units || !out->by_rows || out->units != in->units)
            continue;
        units += in->units;
        for (uint32_t c = 0; c < in->cols; c++)
            for (uint32_t r = 0; r < in->rows; r++)
                wrong += of[in->at + (size_t)r * in->cols + c] != of[out->at + (size_t)(c % in->units) * out->cols];
    }
    CHECK_EQ(units, 2 * (16 + 64)); /* attention and feed-forward of both blocks */
    CHECK_EQ(wrong, 0);
    slices_close(&s);
    model_free(m);
    free(of);
}

/* The gradient of two slices of four is that of the whole there, and 0 in the others. */
static void only_what_is_wanted_has_a_gradient(void)
{
    static const uint8_t wanted[] = {0, 1, 0, 1};
    model *m = charlm(16);
    struct slices s;
    size_t n = model_params(m), apart = 0, not_zero = 0, moved = 0;
    float *params = malloc(n * sizeof *params), *whole = malloc(n * sizeof *whole), *part = malloc(n * sizeof *part);
    float x[2 * 16];
    uint8_t target[2 * 16];
    for (uint32_t i = 0; i < 2 * 16; i++) {
        x[i] = (float)(i * 7 % 20);
        target[i] = (uint8_t)(i * 3 % 20);
    }
    model_init(m, params, test_seed());
    CHECK(slices_open(&s, m, 4, FRAGMENT));
    model_loss(m, params, x, target, 2, whole, NULL);
    model_wants(m, (struct model_share){4, wanted});
    model_loss(m, params, x, target, 2, part, NULL);
    for (size_t k = 0; k < s.length; k++) {
        uint32_t slice = s.of[k / FRAGMENT], at = s.order[k];
        if (at == SLICES_GAP)
            continue;
        if (slice < 4 && !wanted[slice]) {
            not_zero += !(fabsf(part[at]) <= 0);
            continue;
        }
        apart += fabsf(part[at] - whole[at]) > 1e-6f;
        moved += fabsf(part[at]) > 0;
    }
    CHECK_EQ(apart, 0);
    CHECK_EQ(not_zero, 0);
    CHECK(moved > n / 3);
    slices_close(&s);
    model_free(m);
    free(params);
    free(whole);
    free(part);
}

static uint32_t ones(uint64_t bits)
{
    uint32_t n = 0;
    for (; bits; bits &= bits - 1)
        n++;
    return n;
}

static uint32_t load(const uint64_t *who, uint32_t slices, uint32_t node)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < slices; i++)
        n += (uint32_t)(who[i] >> node & 1);
    return n;
}

static void every_slice_has_its_nodes_and_every_node_its_slices(void)
{
    static const uint32_t slices[] = {2, 4, 7, 16, 64};
    uint64_t who[64];
    for (uint32_t i = 0; i < 5; i++)
        for (uint32_t members = 1; members <= 3; members++)
            for (uint32_t nodes = 1; nodes <= 16; nodes++) {
                uint32_t each = members < nodes ? members : nodes, all = slices[i] * each;
                uint64_t there = (UINT64_C(1) << nodes) - 1;
                CHECK(slices_assign(slices[i], members, there, who));
                for (uint32_t s = 0; s < slices[i]; s++)
                    CHECK(ones(who[s]) == each && !(who[s] & ~there));
                for (uint32_t k = 0; k < nodes && all >= nodes; k++)
                    CHECK(load(who, slices[i], k) >= 1);
            }
    CHECK(slices_assign(4, 2, 0, who));
    CHECK_EQ(who[0], 0);
}

/* Each of 8 nodes in turn: what it had is taken over, and few others change places. */
static void what_a_node_that_leaves_had_is_taken_over(void)
{
    uint64_t before[16], after[16];
    uint32_t moved = 0;
    CHECK(slices_assign(16, 2, 0xff, before));
    for (uint32_t gone = 0; gone < 8; gone++) {
        CHECK(slices_assign(16, 2, 0xff & ~(1u << gone), after));
        for (uint32_t s = 0; s < 16; s++) {
            CHECK_EQ(ones(after[s]), 2);
            CHECK_EQ(after[s] >> gone & 1, 0);
            moved += ones(after[s] & ~before[s]);
        }
    }
    CHECK(moved >= 8 * 4); /* 32 of 256 have to */
    CHECK(moved <= 8 * 8);
}

TEST_SUITE(slice) = {TEST(slices_are_units_of_all_matrices),
                     TEST(a_unit_is_in_one_slice),
                     TEST(only_what_is_wanted_has_a_gradient),
                     TEST(every_slice_has_its_nodes_and_every_node_its_slices),
                     TEST(what_a_node_that_leaves_had_is_taken_over),
                     TEST_END};
