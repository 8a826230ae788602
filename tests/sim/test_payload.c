/* Payloads that are added to a model: what did not come is 0, nobody adds anything that the
 * others do not, and a node without history has a say at once unless the set holds the job's state. */
#include "helpers.h"

#define RUN (8 * 288) /* elements */

static const uint64_t few[] = {5000};

static struct sim_config additive(uint32_t nodes, double loss)
{
    return (struct sim_config){.nodes = nodes,
                               .seed = test_seed(),
                               .kind = {.payload = SLEET_GRADIENT},
                               .link = {.delay = US(200), .loss = loss}};
}

static uint32_t flags_of(cluster *c, uint32_t node)
{
    return cluster_report(c, node)->report.flags;
}

static uint64_t count(cluster *c, uint32_t node, float value)
{
    uint64_t n = 0;
    for (uint64_t k = 0; k < cluster_elements(c); k++)
        n += cluster_values(c, node)[k] == value;
    return n;
}

static void what_nobody_delivered_is_zero(void)
{
    struct sim_config config = additive(4, 0.3);
    config.repair_off = true;
    cluster *c = ready_cluster(&config, few, 1);
    uint64_t zeros = 0;
    REQUIRE(c);
    for (int round = 0; round < 20; round++) {
        fill_constant(c, 1);
        CHECK(cluster_round(c, NULL));
        for (uint32_t i = 0; i < 4; i++) {
            uint64_t zero = count(c, i, 0);
            CHECK_EQ(zero + count(c, i, 1), few[0]);
            CHECK(cluster_report(c, i)->report.coverage <= 1 - (double)zero / (double)few[0]);
            zeros += zero;
        }
    }
    CHECK_NEAR((double)zeros / (20 * 4 * 5000), 0.3 * 0.75, 0.06); /* of the own share none is lost */
    CHECK(ledger_balances(c));
    cluster_free(c);
}

static void the_first_round_has_everybody(void)
{
    struct sim_config config = additive(4, 0);
    cluster *c = cluster_new(&config, few, 1);
    REQUIRE(c);
    for (uint32_t i = 0; i < 4; i++)
        for (uint64_t k = 0; k < few[0]; k++)
            cluster_values(c, i)[k] = (float)(i + 1);
    cluster_idle(c, SEC(4));
    CHECK(cluster_round(c, NULL));
    for (uint32_t i = 0; i < 4; i++) {
        CHECK_EQ(count(c, i, 2.5f), few[0]);
        CHECK(!(flags_of(c, i) & (SLEET_JOINING | SLEET_BEHIND)));
    }
    CHECK(all_complete(c));
    cluster_free(c);
}

static void who_comes_again_has_a_say_at_once(void)
{
    struct sim_config config = additive(3, 0);
    cluster *c = ready_cluster(&config, few, 1);
    REQUIRE(c);
    for (int round = 0; round < 8; round++) {
        fill_constant(c, 1);
        CHECK(cluster_round(c, NULL));
    }
    CHECK(sim_restart(cluster_sim(c), 1));
    CHECK_EQ(cluster_register(c, 1), SLEET_OK);
    cluster_idle(c, SEC(2));
    for (int round = 0; round < 2; round++) { /* the first may find a group without it */
        for (uint32_t i = 0; i < 3; i++)
            for (uint64_t k = 0; k < few[0]; k++)
                cluster_values(c, i)[k] = (float)(3 * i);
        CHECK(cluster_round(c, NULL));
        CHECK(!(flags_of(c, 1) & SLEET_JOINING));
    }
    CHECK_EQ(count(c, 1, 3), few[0]);
    CHECK(all_complete(c));
    CHECK(identical(c));
    cluster_free(c);
}

/* Alone in the job a node's own values are the result. */
static void a_single_node_adds_its_own(void)
{
    struct sim_config config = additive(1, 0);
    cluster *c = cluster_new(&config, few, 1);
    REQUIRE(c);
    cluster_idle(c, SEC(4));
    fill_constant(c, 3);
    CHECK(cluster_round(c, NULL));
    CHECK_EQ(count(c, 0, 3), few[0]);
    CHECK(!(flags_of(c, 0) & SLEET_BEHIND));
    CHECK(cluster_report(c, 0)->report.coverage == 1);
    cluster_free(c);
}

static void who_is_cut_off_adds_nothing(void)
{
    struct sim_config config = additive(4, 0);
    const struct sim_link down = {.down = true}, up = CLEAN_LINK;
    const sleet_round_options brief = {.deadline_ns = MS(300)};
    cluster *c = ready_cluster(&config, few, 1);
    REQUIRE(c);
    sim_set_link(cluster_sim(c), 3, SIM_ALL, &down);
    sim_set_link(cluster_sim(c), SIM_ALL, 3, &down);
    cluster_idle(c, SEC(4));
    for (int round = 0; round < 3; round++) {
        fill_constant(c, 1);
        CHECK(cluster_round(c, &brief));
        CHECK_EQ(count(c, 0, 1), few[0]);
        CHECK_EQ(count(c, 3, 0), few[0]);
        CHECK(flags_of(c, 3) & SLEET_PARKED);
        CHECK(flags_of(c, 3) & SLEET_BEHIND);
        CHECK(cluster_report(c, 3)->report.coverage == 0);
    }
    sim_set_link(cluster_sim(c), SIM_ALL, SIM_ALL, &up);
    bool back = false;
    for (int round = 0; round < 12 && !back; round++) {
        cluster_idle(c, MS(500));
        fill_constant(c, 1);
        CHECK(cluster_round(c, &brief));
        back = all_complete(c);
    }
    CHECK(back);
    CHECK_EQ(cluster_overdue(c), 0);
    cluster_free(c);
}

/* Within some rounds the first `n` nodes have one that is whole. */
static bool whole_rounds(cluster *c, uint32_t n)
{
    for (int round = 0; round < 10; round++) {
        bool whole = true;
        fill_constant(c, 1);
        if (!cluster_round(c, NULL))
            return false;
        for (uint32_t i = 0; i < n; i++)
            whole &= cluster_report(c, i)->report.coverage == 1;
        if (whole)
            return true;
        cluster_idle(c, SEC(1));
    }
    return false;
}

/* Cells would step apart: who comes when there are 64 gets no round, and is told why. */
static void number_65_is_refused(void)
{
    static const uint64_t tiny[] = {300};
    struct sim_config config = additive(66, 0);
    cluster *c = cluster_new(&config, tiny, 1);
    engine_set info;
    REQUIRE(c);
    for (uint32_t i = 64; i < 66; i++)
        sim_kill(cluster_sim(c), i);
    cluster_idle(c, SEC(8));
    CHECK(whole_rounds(c, 64));
    for (uint32_t i = 64; i < 66; i++) {
        CHECK(sim_restart(cluster_sim(c), i));
        CHECK_EQ(cluster_register(c, i), SLEET_OK);
    }
    cluster_idle(c, SEC(8));
    CHECK(whole_rounds(c, 64));
    for (uint32_t i = 0; i < 66; i++) {
        CHECK_EQ((flags_of(c, i) & SLEET_BEHIND) != 0, i >= 64);
        CHECK_EQ(count(c, i, i < 64), tiny[0]);
    }
    CHECK(engine_get_set(sim_engine(cluster_sim(c), 65), cluster_set(c, 65), &info, sim_now(cluster_sim(c))));
    CHECK(info.idle && strstr(info.idle, "64 trainers") != NULL);
    CHECK_EQ(cluster_overdue(c), 0);
    cluster_free(c);
}

/* The state of the set is the job's: who comes takes it part by part and gives none before. */
static void state_is_taken_before_it_is_given(void)
{
    static const uint64_t with_state[] = {5000, 40 * RUN + 100};
    struct sim_config config = additive(4, 0);
    config.state_tensors = 1;
    cluster *c = ready_cluster(&config, with_state, 2);
    uint32_t joining = 0;
    REQUIRE(c);
    CHECK(sim_restart(cluster_sim(c), 2));
    CHECK_EQ(cluster_register(c, 2), SLEET_OK);
    for (uint32_t i = 0; i < 4; i++)
        for (uint64_t k = 0; k < with_state[1]; k++)
            cluster_values(c, i)[with_state[0] + k] = i == 2 ? 99 : 7;
    cluster_idle(c, SEC(2));
    for (int round = 0; round < SLEET_REFRESH_ROUNDS + 3; round++) {
        for (uint32_t i = 0; i < 4; i++)
            for (uint64_t k = 0; k < with_state[0]; k++)
                cluster_values(c, i)[k] = (float)i;
        CHECK(cluster_round(c, NULL));
        cluster_idle(c, MS(50));
        joining += (flags_of(c, 2) & SLEET_JOINING) != 0;
        for (uint64_t k = 0; k < with_state[1]; k++)
            if (cluster_values(c, 0)[with_state[0] + k] != 7)
                CHECK_EQ(k, UINT64_MAX);
        if (flags_of(c, 2) & SLEET_JOINING)
            CHECK_NEAR(cluster_values(c, 0)[0], 4.0 / 3, 1e-6);
    }
    CHECK(joining >= SLEET_REFRESH_ROUNDS - 1 && joining <= SLEET_REFRESH_ROUNDS + 1);
    CHECK_EQ(cluster_values(c, 0)[0] * 2, 3);
    for (uint64_t k = 0; k < with_state[1]; k++)
        if (cluster_values(c, 2)[with_state[0] + k] != 7)
            CHECK_EQ(k, UINT64_MAX);
    CHECK(identical(c));
    CHECK(ledger_balances(c));
    cluster_free(c);
}

TEST_SUITE(payload) = {
    TEST(what_nobody_delivered_is_zero),
    TEST(the_first_round_has_everybody),
    TEST(who_comes_again_has_a_say_at_once),
    TEST(a_single_node_adds_its_own),
    TEST(who_is_cut_off_adds_nothing),
    TEST(state_is_taken_before_it_is_given),
    TEST(number_65_is_refused),
    TEST_END,
};
