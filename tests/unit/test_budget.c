#include "base/rng.h"
#include "round/budget.h"
#include "sleet_test.h"

static struct budget b;

static void first_holds_until_eight_samples(void)
{
    budget_init(&b, MS(500), MS(20), SEC(10));
    for (int i = 0; i < 7; i++) {
        CHECK_EQ(budget_now(&b), MS(500));
        budget_add(&b, MS(100), false);
    }
    CHECK_EQ(budget_now(&b), MS(500));
    budget_add(&b, MS(100), false);
    CHECK_EQ(budget_now(&b), MS(125));
}

static void fill(sleet_duration sample)
{
    budget_init(&b, MS(500), MS(20), SEC(10));
    for (int i = 0; i < 64; i++)
        budget_add(&b, sample, false);
}

/* One in 32 is within the percentile of 95: it counts while it is recent. */
static void outliers_beyond_the_percentile_count_for_eight_rounds(void)
{
    budget_init(&b, MS(500), MS(20), SEC(10));
    for (int i = 0; i < 64; i++) {
        budget_add(&b, i % 32 == 7 ? SEC(4) : MS(100), false);
        if (i > 32)
            CHECK_EQ(budget_now(&b), i % 32 >= 7 && i % 32 < 15 ? SEC(5) : MS(125));
    }
    for (int i = 0; i < 4; i++)
        budget_add(&b, SEC(4), false);
    for (int i = 0; i < 50; i++)
        budget_add(&b, MS(100), false);
    CHECK_EQ(budget_now(&b), SEC(5));
}

static void who_comes_late_tells_how_long_it_takes(void)
{
    fill(MS(8));
    CHECK_EQ(budget_now(&b), MS(20));
    budget_late(&b, MS(200));
    CHECK_EQ(budget_now(&b), MS(250));
    fill(MS(8));
    budget_late(&b, SEC(9)); /* a trainer that slept */
    CHECK_EQ(budget_now(&b), MS(625));
    fill(MS(800));
    budget_late(&b, SEC(9));
    CHECK_EQ(budget_now(&b), SEC(5));
}

static void the_floor_holds_at_once(void)
{
    fill(MS(8));
    budget_floor(&b, MS(226));
    CHECK_EQ(budget_now(&b), MS(226));
    budget_floor(&b, SEC(60));
    CHECK_EQ(budget_now(&b), SEC(10));
    budget_floor(&b, MS(2));
    CHECK_EQ(budget_now(&b), MS(20));
}

static void stays_in_its_bounds(void)
{
    sleet_rng rng = {test_seed()};
    budget_init(&b, SEC(100), MS(20), SEC(10));
    CHECK_EQ(budget_now(&b), SEC(10));
    for (int i = 0; i < 70; i++)
        budget_add(&b, 0, false);
    CHECK_EQ(budget_now(&b), MS(20));
    for (int i = 0; i < 1000; i++) {
        budget_add(&b, (sleet_duration)rng_next(&rng), rng_below(&rng, 2));
        CHECK(budget_now(&b) >= MS(20) && budget_now(&b) <= SEC(10));
    }
}

static void cut_off_waits_make_it_grow(void)
{
    budget_init(&b, MS(500), MS(20), SEC(10));
    for (int i = 0; i < 64; i++)
        budget_add(&b, MS(40), false);
    CHECK_EQ(budget_now(&b), MS(50));
    for (int i = 0; i < 200; i++)
        budget_add(&b, MS(50), true);
    CHECK_EQ(budget_now(&b), SEC(10));
    for (int i = 0; i < 64; i++)
        budget_add(&b, MS(40), false);
    CHECK_EQ(budget_now(&b), MS(50));
}

TEST_SUITE(budget) = {
    TEST(first_holds_until_eight_samples),
    TEST(outliers_beyond_the_percentile_count_for_eight_rounds),
    TEST(who_comes_late_tells_how_long_it_takes),
    TEST(the_floor_holds_at_once),
    TEST(stays_in_its_bounds),
    TEST(cut_off_waits_make_it_grow),
    TEST_END,
};
