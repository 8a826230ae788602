/* The link model: rates are what was asked for, the same seed repeats. */
#include "sim/link.h"
#include "sim/nat.h"
#include "sleet_test.h"

#define DATAGRAMS 100000

static double lost_share(const struct sim_link *link, uint64_t seed)
{
    struct sim_path path = {.link = *link};
    sleet_rng rng = {seed};
    for (int i = 0; i < DATAGRAMS; i++)
        link_pass(&path, &rng, 100, (sleet_time){i});
    return (double)path.lost / DATAGRAMS;
}

static void loss_has_its_rate(void)
{
    struct sim_link bernoulli = {.loss = 0.3}, gilbert = {.ge_p = 0.01, .ge_r = 0.09};
    struct sim_link down = {.down = true}, perfect = {0};
    CHECK_NEAR(lost_share(&bernoulli, test_seed()), 0.3, 0.01);
    CHECK_NEAR(lost_share(&gilbert, test_seed()), 0.1, 0.02);
    CHECK(lost_share(&down, test_seed()) == 1.0);
    CHECK(lost_share(&perfect, test_seed()) == 0.0);
    CHECK(lost_share(&bernoulli, test_seed()) == lost_share(&bernoulli, test_seed()));
}

static void delay_and_jitter_bound_the_arrival(void)
{
    struct sim_path path = {.link = {.delay = MS(10), .jitter = MS(2)}};
    sleet_rng rng = {test_seed()};
    for (int i = 0; i < 1000; i++) {
        struct sim_fate fate = link_pass(&path, &rng, 100, (sleet_time){5});
        CHECK_EQ(fate.copies, 1);
        CHECK(fate.at[0].ns >= 5 + MS(10) && fate.at[0].ns <= 5 + MS(12));
    }
}

static void the_rate_limit_spaces_and_the_queue_drops(void)
{
    struct sim_path path = {.link = {.rate_bps = 8000000, .queue_bytes = 3000}};
    sleet_rng rng = {test_seed()};
    for (int i = 1; i <= 3; i++) {
        struct sim_fate fate = link_pass(&path, &rng, 1000, (sleet_time){0});
        CHECK_EQ(fate.copies, 1);
        CHECK_EQ(fate.at[0].ns, i * MS(1) + US(1));
    }
    CHECK_EQ(link_pass(&path, &rng, 1000, (sleet_time){0}).copies, 0);
    CHECK_EQ(path.tail_dropped, 1);
    CHECK_EQ(link_pass(&path, &rng, 1000, (sleet_time){MS(1)}).copies, 1);
}

/* Two paths into one queue: what one sends waits for the other's. */
static void paths_share_a_rate(void)
{
    sleet_time free_at = {0};
    struct sim_link link = {.rate_bps = 8000000, .queue_bytes = 3000, .free_at = &free_at};
    struct sim_path a = {.link = link}, b = {.link = link};
    sleet_rng rng = {test_seed()};
    CHECK_EQ(link_pass(&a, &rng, 1000, (sleet_time){0}).at[0].ns, MS(1) + US(1));
    CHECK_EQ(link_pass(&b, &rng, 1000, (sleet_time){0}).at[0].ns, MS(2) + US(1));
    CHECK_EQ(link_pass(&a, &rng, 1000, (sleet_time){0}).copies, 1);
    CHECK_EQ(link_pass(&b, &rng, 1000, (sleet_time){0}).copies, 0);
    CHECK_EQ(b.tail_dropped, 1);
}

static void copies_and_flips(void)
{
    struct sim_path path = {.link = {.duplicate = 1, .corrupt = 1, .mtu_bytes = 100}};
    sleet_rng rng = {test_seed()};
    struct sim_fate fate = link_pass(&path, &rng, 100, (sleet_time){0});
    CHECK_EQ(fate.copies, 2);
    CHECK(fate.flip >= 0 && fate.flip < 800);
    CHECK_EQ(link_pass(&path, &rng, 101, (sleet_time){0}).copies, 0);
}

/* Only answers come in, and none to a mapping that is gone. */
static void a_nat_lets_answers_in(void)
{
    struct sim_nat nat = {0};
    sleet_addr a = {.port = 1}, b = {.port = 2}, outside = {.port = 20000};
    nat_rebind(&nat, &outside);
    CHECK(!nat_lets_in(&nat, &a));
    for (uint16_t i = 0; i < 40; i++) {
        sleet_addr other = {.port = (uint16_t)(100 + i)};
        REQUIRE(nat_note_sent(&nat, &other));
    }
    REQUIRE(nat_note_sent(&nat, &a) && nat_note_sent(&nat, &a));
    CHECK_EQ(nat.n, 41);
    CHECK(nat_lets_in(&nat, &a) && !nat_lets_in(&nat, &b));
    outside.port++;
    nat_rebind(&nat, &outside);
    CHECK(!nat_lets_in(&nat, &a));
    CHECK_EQ(nat.outside.port, 20001);
    nat_fini(&nat);
}

TEST_SUITE(link) = {
    TEST(loss_has_its_rate),
    TEST(delay_and_jitter_bound_the_arrival),
    TEST(the_rate_limit_spaces_and_the_queue_drops),
    TEST(paths_share_a_rate),
    TEST(copies_and_flips),
    TEST(a_nat_lets_answers_in),
    TEST_END,
};
