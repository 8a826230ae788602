#include "base/rng.h"
#include "sleet_test.h"
#include "train/partition.h"
#include <stdlib.h>
#include <string.h>

#define PARTS 3u

/* Widths that three parts do not share evenly. */
static const struct model_shape whole = {.rows = 2, .columns = 3, .hidden = {8, 7, 10}, .hidden_count = 3, .classes = 4, .batch = 5};

static model *open_model(const struct model_shape *s)
{
    const char *why;
    model *m = model_new(&model_mlp, s, &why);
    if (!m)
        abort();
    return m;
}

static float *random_floats(size_t n, uint64_t seed)
{
    float *v = malloc(n * sizeof *v);
    sleet_rng rng = {seed};
    for (size_t i = 0; i < n; i++)
        v[i] = (float)(2 * rng_double(&rng) - 1);
    return v;
}

/* What part j says of x; its parameters, biases and all, are random and the caller's. */
static float *say(uint32_t j, const float *x, float *logits)
{
    const struct model_shape s = partition_shape(&whole, PARTS, j);
    model *m = open_model(&s);
    float *part = random_floats(model_params(m), test_seed() + j);
    CHECK_EQ(partition_params(&s), model_params(m));
    memcpy(logits, m->kind->forward(m, part, x, whole.batch, false), whole.batch * whole.classes * sizeof *logits);
    model_free(m);
    return part;
}

/* The mean of what nodes with the parts of `present` give, one or several of them with part 1, as an exact round
 * brings it; and the mean of what the parts say. */
static uint32_t merge(uint32_t present, uint32_t twins, const float *x, float *params, float *mean_logits)
{
    size_t n = partition_merged(&whole, PARTS), outputs = whole.batch * whole.classes;
    double *sum = calloc(n, sizeof *sum), givers = 0, parts = 0;
    float *given = malloc(n * sizeof *given), *mean = malloc(n * sizeof *mean), *logits = malloc(outputs * sizeof *logits);
    for (size_t k = 0; k < outputs; k++)
        mean_logits[k] = 0;
    for (uint32_t j = 0; j < PARTS; j++) {
        if (!(present >> j & 1))
            continue;
        double times = j == 1 ? twins : 1;
        float *part = say(j, x, logits);
        partition_give(&whole, PARTS, j, part, given);
        for (size_t i = 0; i < n; i++)
            sum[i] += times * (double)given[i];
        for (size_t k = 0; k < outputs; k++)
            mean_logits[k] += logits[k];
        givers += times;
        parts++;
        free(part);
    }
    for (size_t i = 0; i < n; i++)
        mean[i] = (float)(givers > 0 ? sum[i] / givers : 0);
    for (size_t k = 0; k < outputs && parts > 0; k++)
        mean_logits[k] /= (float)parts;
    uint32_t there = partition_merge(&whole, PARTS, mean, params);
    free(sum);
    free(given);
    free(mean);
    free(logits);
    return there;
}

static void merged_parts_say_the_mean_of_the_parts(void)
{
    model *m = open_model(&whole);
    float *x = random_floats(whole.batch * 6, test_seed() + 9), mean[5 * 4];
    CHECK_EQ(partition_params(&whole), model_params(m));
    for (uint32_t trial = 0; trial < 2 << PARTS; trial++) {
        uint32_t present = trial >> 1, twins = 1 + trial % 2;
        if (!present)
            continue;
        float *params = random_floats(model_params(m), 1);
        CHECK_EQ(merge(present, twins, x, params, mean), __builtin_popcount(present));
        const float *logits = m->kind->forward(m, params, x, whole.batch, false);
        for (size_t k = 0; k < 5 * 4; k++)
            CHECK_NEAR(logits[k], mean[k], 1e-5);
        free(params);
    }
    free(x);
    model_free(m);
}

/* Where a part is missing its units keep the weights that they started from; with none all is left alone. */
static void units_of_a_missing_part_stay(void)
{
    size_t n = partition_params(&whole);
    float *x = random_floats(whole.batch * 6, 2), *before = random_floats(n, 1), mean[5 * 4];
    float *params = malloc(n * sizeof *params), *part = malloc(n * sizeof *part), *kept = malloc(n * sizeof *kept);
    memcpy(params, before, n * sizeof *params);
    CHECK_EQ(merge(0, 1, x, params, mean), 0);
    CHECK_MEM(params, before, n * sizeof *params);
    merge(5, 1, x, params, mean);
    const struct model_shape s = partition_shape(&whole, PARTS, 1);
    size_t hidden = partition_params(&s) - (s.hidden[2] + 1) * s.classes;
    partition_cut(&whole, PARTS, 1, before, part);
    partition_cut(&whole, PARTS, 1, params, kept);
    CHECK_MEM(kept, part, hidden * sizeof *kept);
    for (size_t i = hidden; i < hidden + s.hidden[2] * s.classes; i++)
        CHECK(kept[i] == 0);
    /* From part 0's first unit of the first layer to part 1's first of the second: 8 units, 0 and 1, belong to part 0. */
    CHECK(before[6 * 8 + 8 + 2] != 0 && params[6 * 8 + 8 + 2] == 0);
    free(x);
    free(before);
    free(params);
    free(part);
    free(kept);
}

static void a_part_is_cut_where_it_is_given(void)
{
    size_t n = partition_params(&whole);
    float *given = malloc(partition_merged(&whole, PARTS) * sizeof *given), *part = malloc(n * sizeof *part);
    size_t params = 0;
    for (uint32_t j = 0; j < PARTS; j++) {
        const struct model_shape s = partition_shape(&whole, PARTS, j);
        float *own = random_floats(partition_params(&s), j);
        partition_give(&whole, PARTS, j, own, given);
        partition_cut(&whole, PARTS, j, given, part); /* but for the output biases, which are behind */
        CHECK_MEM(part, own, (partition_params(&s) - s.classes) * sizeof *own);
        for (uint32_t i = 0; i < PARTS; i++)
            CHECK((given[n + i] > 0) == (i == j));
        params += partition_params(&s);
        free(own);
    }
    CHECK(params < n);
    free(given);
    free(part);
}

static void shapes_without_such_parts_are_refused(void)
{
    struct model_shape s = whole;
    CHECK(partition_refuse(&s, 7) == NULL);
    CHECK(strstr(partition_refuse(&s, 8), "fewer units") != NULL);
    s.hidden_count = 0;
    CHECK(strstr(partition_refuse(&s, 2), "without hidden layers") != NULL);
}

TEST_SUITE(partition) = {TEST(merged_parts_say_the_mean_of_the_parts),
                         TEST(units_of_a_missing_part_stay),
                         TEST(a_part_is_cut_where_it_is_given),
                         TEST(shapes_without_such_parts_are_refused),
                         TEST_END};
