/* One node is frozen, killed or cut off at any phase of a round: the others
 * never wait past their deadline, and it comes back to the same model. */
#include "helpers.h"

static const uint64_t counts[] = {5000, 17};
#define TENSORS 2
#define ROUNDS_TO_RETURN 20

enum fault { FREEZE, KILL, PARTITION, FAULTS };

struct incident {
    enum fault fault;
    uint32_t victim;
};

static void cut(sim *s, uint32_t node, bool down)
{
    struct sim_link link = CLEAN_LINK;
    link.down = down;
    sim_set_link(s, node, SIM_ALL, &link);
    sim_set_link(s, SIM_ALL, node, &link);
}

static void strike(sim *s, void *arg)
{
    const struct incident *in = arg;
    if (in->fault == FREEZE)
        sim_freeze(s, in->victim, true);
    else if (in->fault == KILL)
        sim_kill(s, in->victim);
    else
        cut(s, in->victim, true);
}

static void repair(cluster *c, const struct incident *in)
{
    sim *s = cluster_sim(c);
    if (in->fault == FREEZE)
        sim_freeze(s, in->victim, false);
    else if (in->fault == PARTITION)
        cut(s, in->victim, false);
    else if (CHECK(sim_restart(s, in->victim)))
        CHECK_EQ(cluster_register(c, in->victim), SLEET_OK);
}

/* A training step: every node moves its values by its own amount. */
static void step(cluster *c, sleet_rng *rng)
{
    for (uint32_t i = 0; i < nodes_of(c); i++)
        for (uint64_t k = 0; k < cluster_elements(c); k++)
            cluster_values(c, i)[k] += (float)(rng_double(rng) - 0.5);
}

static void run_rounds_of(cluster *c, sleet_rng *rng, int rounds, sleet_duration deadline)
{
    sleet_round_options options = {.deadline_ns = deadline};
    for (int i = 0; i < rounds; i++) {
        step(c, rng);
        CHECK(cluster_round(c, &options));
        cluster_idle(c, MS(100)); /* the trainer computes */
    }
}

static void run_rounds(cluster *c, sleet_rng *rng, int rounds)
{
    run_rounds_of(c, rng, rounds, MS(300));
}

/* Within some rounds all hold the same values, made of everybody's. */
static bool come_together(cluster *c, sleet_rng *rng)
{
    for (int round = 0; round < ROUNDS_TO_RETURN; round++) {
        run_rounds(c, rng, 1);
        if (identical(c) && all_complete(c))
            return true;
    }
    return false;
}

/* A restarted node of two is left to test_pace.c: in lock step the other would
 * wait for it, where a real trainer goes on. */
static void one_incident(unsigned i)
{
    sleet_rng rng = {test_seed() + i};
    struct sim_config config = {
        .nodes = 2 + rng_below(&rng, 4), .seed = test_seed() + i, .link = CLEAN_LINK};
    struct incident in = {.fault = i % FAULTS, .victim = rng_below(&rng, config.nodes)};
    cluster *c = ready_cluster(&config, counts, TENSORS);
    REQUIRE(c);
    run_rounds(c, &rng, 2);
    sim *s = cluster_sim(c);
    sim_at(s, time_add(sim_now(s), US(rng_below(&rng, 5000))), strike, &in);
    run_rounds(c, &rng, 1 + (int)rng_below(&rng, 20));
    repair(c, &in);
    if (!CHECK(come_together(c, &rng)))
        printf("seed %" PRIu64 ": fault %d of node %u among %u\n", config.seed, (int)in.fault,
               in.victim, config.nodes);
    CHECK_EQ(cluster_overdue(c), 0);
    CHECK(ledger_balances(c));
    cluster_free(c);
}

static void one_node_fails_and_returns(void)
{
    for (unsigned i = 0; i < test_repeats(60); i++)
        one_incident(i);
}

/* Both halves go on alone and agree again after the cut. */
static void halves_heal(void)
{
    for (unsigned i = 0; i < test_repeats(10); i++) {
        struct sim_config config = {.nodes = 4, .seed = test_seed() + i, .link = CLEAN_LINK};
        struct sim_link down = {.down = true}, up = CLEAN_LINK;
        sleet_rng rng = {config.seed};
        cluster *c = ready_cluster(&config, counts, TENSORS);
        REQUIRE(c);
        for (uint32_t a = 0; a < 2; a++) {
            for (uint32_t b = 2; b < 4; b++) {
                sim_set_link(cluster_sim(c), a, b, &down);
                sim_set_link(cluster_sim(c), b, a, &down);
            }
        }
        run_rounds(c, &rng, 15);
        sim_set_link(cluster_sim(c), SIM_ALL, SIM_ALL, &up);
        CHECK(come_together(c, &rng));
        CHECK_EQ(cluster_overdue(c), 0);
        cluster_free(c);
    }
}

/* One that is cut off makes many rounds alone in the time of the others' few; it comes
 * back to their rounds and does not hold them up. */
static void a_hasty_one_returns(void)
{
    struct sim_config config = {.nodes = 4, .seed = test_seed(), .link = CLEAN_LINK};
    struct sim_link up = CLEAN_LINK;
    sleet_rng rng = {config.seed};
    cluster *c = ready_cluster(&config, counts, TENSORS);
    REQUIRE(c);
    cut(cluster_sim(c), 3, true);
    run_rounds(c, &rng, 10);
    for (uint32_t i = 0; i < 3; i++)
        cluster_set_active(c, i, false);
    run_rounds(c, &rng, 100);
    for (uint32_t i = 0; i < 3; i++)
        cluster_set_active(c, i, true);
    sim_set_link(cluster_sim(c), SIM_ALL, SIM_ALL, &up);
    CHECK(come_together(c, &rng));
    CHECK_EQ(cluster_overdue(c), 0);
    cluster_free(c);
}

/* One trainer pauses for a long time, as a daemon without work does. */
static void a_joiner_catches_up(void)
{
    struct sim_config config = {.nodes = 3, .seed = test_seed(), .link = CLEAN_LINK};
    sleet_rng rng = {config.seed};
    cluster *c = ready_cluster(&config, counts, TENSORS);
    REQUIRE(c);
    cluster_set_active(c, 2, false);
    run_rounds(c, &rng, (int)test_repeats(200));
    cluster_set_active(c, 2, true);
    run_rounds(c, &rng, 5);
    CHECK(identical(c));
    CHECK(all_complete(c));
    CHECK_EQ(cluster_overdue(c), 0);
    cluster_free(c);
}

/* All but the victim have their result by the deadline; `whole`: of all that are left, though it is expected yet. */
static bool others_have_it(cluster *c, uint32_t victim, bool whole)
{
    for (uint32_t i = 0; i < nodes_of(c); i++) {
        const struct cluster_report *r = cluster_report(c, i);
        if (i != victim && (!r->reported || r->error != SLEET_OK || (whole && (1 - r->report.coverage) * r->report.expected > 1.001)))
            return false;
    }
    return true;
}

/* Each of nine in turn is killed in a round: the one that the others were started with, those that lead or reduce.
 * No round waits for it beyond the deadline, after three more at most all the others are in them, and it comes back. */
static void each_in_turn(const char *strategy)
{
    struct sim_config config = {.nodes = 9, .seeds = 1, .open_join = true, .seed = test_seed(), .link = CLEAN_LINK,
                                .kind = {.payload = SLEET_MODEL}};
    sleet_rng rng = {config.seed};
    REQUIRE(kind_strategy_of(&config.kind, strategy));
    config.kind = kind_resolved(config.kind);
    cluster *c = cluster_new(&config, counts, TENSORS);
    REQUIRE(c);
    cluster_idle(c, SEC(4));
    run_rounds_of(c, &rng, 10, SEC(2));
    for (uint32_t victim = 0; victim < 9; victim++) {
        struct incident in = {KILL, victim};
        sim *s = cluster_sim(c);
        sim_at(s, time_add(sim_now(s), US(rng_below(&rng, 1500))), strike, &in);
        run_rounds_of(c, &rng, 1, SEC(2));
        int more = 0;
        for (; !others_have_it(c, victim, true) && more < 10; more++) {
            CHECK(others_have_it(c, victim, false));
            run_rounds_of(c, &rng, 1, SEC(2));
        }
        if (!CHECK(more <= 3))
            printf("%s: node %u\n", strategy, victim);
        repair(c, &in);
        run_rounds_of(c, &rng, ROUNDS_TO_RETURN, SEC(2));
        CHECK(others_have_it(c, 9, true));
    }
    CHECK_EQ(cluster_overdue(c), 0);
    CHECK(ledger_balances(c));
    cluster_free(c);
}

static void whoever_dies_the_next_round_ends(void)
{
    static const char *const strategies[] = {"rps", "moshpit:3,2", "hierarchical:3", "one-peer", "crossover:8"};
    for (size_t i = 0; i < sizeof strategies / sizeof *strategies; i++)
        each_in_turn(strategies[i]);
}

TEST_SUITE(faults) = {
    TEST(one_node_fails_and_returns),
    TEST(halves_heal),
    TEST(a_hasty_one_returns),
    TEST(a_joiner_catches_up),
    TEST(whoever_dies_the_next_round_ends),
    TEST_END,
};
