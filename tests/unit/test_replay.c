#include "base/rng.h"
#include "session/replay.h"
#include "sleet_test.h"
#include <string.h>

static struct replay window;

static void each_counter_once(void)
{
    replay_fini(&window);
    CHECK(!replay_check_and_set(&window, 0));
    CHECK(replay_check_and_set(&window, 1));
    CHECK(!replay_check_and_set(&window, 1));
    CHECK(replay_check_and_set(&window, 5000));
    CHECK(replay_check_and_set(&window, 2));
    CHECK(!replay_check_and_set(&window, 2));
    CHECK_EQ(window.highest, 5000);
}

static void too_old_is_refused(void)
{
    replay_fini(&window);
    CHECK(replay_check_and_set(&window, 100000));
    CHECK(!replay_check_and_set(&window, 100000 - REPLAY_WINDOW));
    CHECK(replay_check_and_set(&window, 100001 - REPLAY_WINDOW));
    CHECK(!replay_check_and_set(&window, 1));
    CHECK(replay_check_and_set(&window, 100000 + REPLAY_JUMP_MAX));
    CHECK(!replay_check_and_set(&window, 100001));
}

/* One forged or faulty counter must not shut out the rest of the session. */
static void a_leap_moves_nothing(void)
{
    replay_fini(&window);
    CHECK(!replay_check_and_set(&window, (uint64_t)1 << 63));
    CHECK(replay_check_and_set(&window, 7));
    CHECK(!replay_check_and_set(&window, UINT64_MAX));
    CHECK(!replay_check_and_set(&window, (uint64_t)1 << 63));
    CHECK(!replay_check_and_set(&window, 8 + REPLAY_JUMP_MAX));
    CHECK_EQ(window.highest, 7);
    CHECK(replay_check_and_set(&window, 6));
    CHECK(replay_check_and_set(&window, 7 + REPLAY_JUMP_MAX));
}

/* Against a plain table of what was accepted. */
static void agrees_with_a_table(void)
{
    static uint8_t seen[400000];
    sleet_rng rng = {test_seed()};
    uint64_t highest = 0;
    uint32_t wrong = 0;
    replay_fini(&window);
    memset(seen, 0, sizeof(seen));
    for (int i = 0; i < 100000; i++) {
        uint64_t c = highest + 1;
        uint32_t kind = rng_below(&rng, 100);
        if (kind == 0)
            c += rng_below(&rng, 20000) / (1 + rng_below(&rng, 100));
        else if (kind < 50)
            c = c > 10000 ? c - rng_below(&rng, 10000) : 1 + rng_below(&rng, (uint32_t)c);
        if (c >= sizeof(seen))
            break;
        bool want = !seen[c] && (c > highest || highest - c < REPLAY_WINDOW);
        wrong += replay_check_and_set(&window, c) != want;
        seen[c] = 1;
        highest = c > highest ? c : highest;
    }
    CHECK_EQ(wrong, 0);
    CHECK_EQ(window.highest, highest);
}

TEST_SUITE(replay) = {
    TEST(each_counter_once),
    TEST(too_old_is_refused),
    TEST(a_leap_moves_nothing),
    TEST(agrees_with_a_table),
    TEST_END,
};
