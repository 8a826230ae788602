/* Batches that follow step times: what the table of all nodes becomes. */
#include "base/rng.h"
#include "sleet_test.h"
#include "train/batch.h"

#define CONTROL                                                                                    \
    ((struct batch_control){.global = 256, .nodes = 4, .least = 4, .most = 256, .deadband = 0.1})

/* Step times in microseconds, if a sample takes `cost` of them. */
static void run_steps(struct batch_row *row, const uint32_t *cost, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        row[i].time_us = row[i].batch * cost[i];
}

static uint64_t sum_of(const struct batch_row *row, uint32_t n)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < n; i++)
        sum += row[i].batch;
    return sum;
}

static double spread(const struct batch_row *row, uint32_t n)
{
    uint32_t least = UINT32_MAX, most = 0;
    for (uint32_t i = 0; i < n; i++) {
        least = row[i].time_us < least ? row[i].time_us : least;
        most = row[i].time_us > most ? row[i].time_us : most;
    }
    return (double)most / least;
}

/* Quotas of 60, 60, 30 and 15 % of a core, turned round at half time. */
static void steps_become_equally_long(void)
{
    const struct batch_control c = CONTROL;
    static const uint32_t cost[2][4] = {{100, 100, 200, 400}, {400, 200, 100, 100}};
    struct batch_row row[4] = {{64, 0}, {64, 0}, {64, 0}, {64, 0}};
    for (int half = 0; half < 2; half++) {
        run_steps(row, cost[half], 4);
        CHECK(spread(row, 4) > 3);
        for (int k = 0; k < 3; k++) {
            batch_balance(&c, row, 4);
            CHECK_EQ(sum_of(row, 4), 256);
            run_steps(row, cost[half], 4);
        }
        CHECK(spread(row, 4) <= 1.25);
        CHECK(!batch_balance(&c, row, 4)); /* and stay */
    }
}

static void deadband_leaves_alone(void)
{
    struct batch_control c = CONTROL;
    struct batch_row row[4] = {{64, 1050}, {64, 1000}, {64, 1000}, {64, 950}};
    CHECK(!batch_balance(&c, row, 4));
    c.deadband = 0.01;
    CHECK(batch_balance(&c, row, 4));
    CHECK_EQ(sum_of(row, 4), 256);
    CHECK(row[0].batch < row[1].batch && row[1].batch < row[3].batch);
}

static void bounds_are_made_up_for_by_others(void)
{
    const struct batch_control c = {.global = 256, .nodes = 4, .least = 16, .most = 96};
    struct batch_row row[4] = {{64, 100}, {64, 1000}, {64, 1000}, {64, 100000}};
    CHECK(batch_balance(&c, row, 4));
    CHECK_EQ(row[0].batch, 96);
    CHECK_EQ(row[3].batch, 16);
    CHECK_EQ(row[1].batch, 72);
    CHECK_EQ(row[2].batch, 72);
    const struct batch_control tight = {.global = 256, .nodes = 4, .least = 1, .most = 50};
    CHECK(batch_balance(&tight, row, 4)); /* it cannot be had */
    CHECK_EQ(sum_of(row, 4), 200);
}

static void who_is_not_there_gets_none(void)
{
    struct batch_control c = CONTROL;
    struct batch_row row[4] = {{64, 100}, {64, 100}, {0, 100}, {64, 100}};
    CHECK(batch_balance(&c, row, 4)); /* the others share its part at once */
    CHECK_EQ(sum_of(row, 4), 256);
    CHECK_EQ(row[2].batch, 0);
    CHECK_EQ(batch_rate(&c, 3), 1);
    struct batch_row kept[4] = {{64, 100}, {64, 100}, {0, 100}, {64, 100}};
    c.on_resize = RESIZE_LINEAR;
    CHECK(!batch_balance(&c, kept, 4));
    CHECK_NEAR(batch_rate(&c, 3), 0.75, 0);
    c.on_resize = RESIZE_KEEP;
    CHECK(!batch_balance(&c, kept, 4));
    CHECK_EQ(batch_rate(&c, 3), 1);
    kept[2] = (struct batch_row){64, 0}; /* one that comes, not measured yet */
    CHECK(!batch_balance(&c, kept, 4));
    CHECK_EQ(sum_of(kept, 4), 256);
}

/* Whatever the table: bounds hold, and the sum is exact, or all are at one bound. */
static void any_table(void)
{
    sleet_rng rng = {test_seed()};
    for (int k = 0; k < 2000; k++) {
        struct batch_row row[BATCH_NODES_MAX];
        uint32_t n = 1 + rng_below(&rng, BATCH_NODES_MAX), count = 0, lows = 0, highs = 0;
        struct batch_control c = {
            .nodes = n, .least = 1 + rng_below(&rng, 20), .global = 1 + rng_below(&rng, 20000)};
        c.most = c.least + rng_below(&rng, 1000);
        for (uint32_t i = 0; i < n; i++)
            row[i] = (struct batch_row){
                rng_below(&rng, 4) ? 1 + rng_below(&rng, 500) : 0,
                rng_below(&rng, 8) ? 1 + rng_below(&rng, 1u << rng_below(&rng, 31)) : 0};
        batch_balance(&c, row, n);
        for (uint32_t i = 0; i < n; i++) {
            count += row[i].batch > 0;
            lows += row[i].batch == c.least;
            highs += row[i].batch == c.most;
            CHECK(row[i].batch == 0 || (row[i].batch >= c.least && row[i].batch <= c.most));
        }
        CHECK(sum_of(row, n) == c.global || lows == count || highs == count);
    }
}

TEST_SUITE(batch) = {
    TEST(steps_become_equally_long),
    TEST(deadband_leaves_alone),
    TEST(bounds_are_made_up_for_by_others),
    TEST(who_is_not_there_gets_none),
    TEST(any_table),
    TEST_END,
};
