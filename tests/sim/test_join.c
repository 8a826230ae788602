/* Members that come, go, freeze and fall silent: who knows whom, and that the rounds of the
 * others go on with right values meanwhile. */
#include "helpers.h"

static const uint64_t counts[] = {3000, 17};
#define TENSORS 2
#define DEADLINE MS(300)

/* ---- helpers --------------------------------------------------------------------- */

static struct sim_config few_seeds(uint32_t nodes, uint32_t seeds)
{
    return (struct sim_config){.nodes = nodes,
                               .seeds = seeds,
                               .open_join = true,
                               .seed = test_seed(),
                               .link = CLEAN_LINK};
}

/* Every running node takes `alive` nodes for alive. */
static bool all_see(cluster *c, uint32_t alive)
{
    sim *s = cluster_sim(c);
    for (uint32_t i = 0; i < nodes_of(c); i++)
        if (sim_engine(s, i) && !sim_frozen(s, i) &&
            engine_nodes_alive(sim_engine(s, i), sim_now(s)) != alive)
            return false;
    return true;
}

static bool within(cluster *c, uint32_t alive, int seconds)
{
    for (int i = 0; i < 10 * seconds && !all_see(c, alive); i++)
        cluster_idle(c, MS(100));
    return all_see(c, alive);
}

static float value_of(uint32_t node)
{
    return (float)((int)(node * 37 % 101) - 50) * 0x1p-8f;
}

static void fill_values(cluster *c)
{
    for (uint32_t i = 0; i < nodes_of(c); i++)
        for (uint64_t k = 0; k < cluster_elements(c); k++)
            cluster_values(c, i)[k] = value_of(i);
}

/* What each node got is the mean of those that its explanation names. */
static void check_means(cluster *c)
{
    static engine_explanation x;
    for (uint32_t i = 0; i < nodes_of(c); i++) {
        const struct cluster_report *r = cluster_report(c, i);
        if (!sim_engine(cluster_sim(c), i) || sim_frozen(cluster_sim(c), i) || !r->reported ||
            r->error != SLEET_OK ||
            !engine_explain(sim_engine(cluster_sim(c), i), cluster_set(c, i), r->report.round, &x) ||
            !x.joined)
            continue;
        for (uint32_t k = 0; k < x.classes; k++) {
            double sum = 0;
            uint64_t at = x.class[k].first + (x.class[k].tensor ? counts[0] : 0);
            int n = __builtin_popcountll(x.class[k].contributors);
            for (uint32_t p = 0; p < x.people_n; p++)
                if (x.class[k].contributors >> p & 1)
                    sum += (double)value_of((uint32_t)x.people[p] - 1);
            if (n)
                CHECK_NEAR(cluster_values(c, i)[at], sum / n, 1e-6);
        }
    }
}

/* Rounds with a pause after each; every value is a mean of contributors. */
static double run_rounds(cluster *c, int rounds)
{
    sleet_round_options options = {.deadline_ns = DEADLINE};
    double coverage = 0;
    uint32_t n = 0;
    for (int i = 0; i < rounds; i++) {
        fill_values(c);
        CHECK(cluster_round(c, &options));
        check_means(c);
        for (uint32_t k = 0; k < nodes_of(c); k++) {
            const struct cluster_report *r = cluster_report(c, k);
            if (!sim_engine(cluster_sim(c), k) || !r->reported || r->error != SLEET_OK)
                continue;
            coverage += r->report.coverage;
            n++;
        }
        cluster_idle(c, MS(100));
    }
    return n ? coverage / n : 0;
}

static bool settles(cluster *c, uint32_t nodes)
{
    for (int i = 0; i < 30; i++) {
        run_rounds(c, 1);
        bool complete = true;
        for (uint32_t k = 0; k < nodes_of(c); k++) {
            const sleet_report *r = &cluster_report(c, k)->report;
            if (sim_engine(cluster_sim(c), k))
                complete &= r->coverage == 1.0 && r->expected == nodes;
        }
        if (complete)
            return true;
    }
    return false;
}

static void restart(cluster *c, uint32_t node)
{
    if (CHECK(sim_restart(cluster_sim(c), node)))
        CHECK_EQ(cluster_register(c, node), SLEET_OK);
}

static void leave(cluster *c, uint32_t node)
{
    sim *s = cluster_sim(c);
    engine_leave(sim_engine(s, node), sim_now(s));
    sim_kick(s, node);
    cluster_idle(c, MS(1));
    sim_kill(s, node);
}

static void cut(cluster *c, uint32_t from, uint32_t to, bool down)
{
    struct sim_link link = CLEAN_LINK;
    link.down = down;
    sim_set_link(cluster_sim(c), from, to, &link);
}

static void finish(cluster *c)
{
    CHECK_EQ(cluster_overdue(c), 0);
    CHECK(ledger_balances(c));
    cluster_free(c);
}

/* ---- joining ------------------------------------------------------------------------ */

static void nodes_started_at_once_are_one_job(void)
{
    for (unsigned i = 0; i < test_repeats(20); i++) {
        struct sim_config config = few_seeds(24, 1 + i % 3);
        config.seed += i;
        config.link.loss = i % 4 * 0.05;
        cluster *c = cluster_new(&config, counts, TENSORS);
        REQUIRE(c);
        if (!CHECK(within(c, 24, 15)))
            printf("seed %" PRIu64 "\n", config.seed);
        cluster_free(c);
    }
}

static uint32_t complaints;

static void count_complaints(void *arg, log_level l, log_fault f, const char *event,
                             const log_field *fields, int n)
{
    (void)arg, (void)l, (void)f, (void)n;
    if (strcmp(event, "peer-silent"))
        return;
    complaints++;
    CHECK_STR(fields[0].s, "[fd00:0:0:0:0:0:0:1]:7000");
}

static void dead_seeds_are_got_over(void)
{
    struct sim_config config = few_seeds(6, 3);
    cluster *c = cluster_new(&config, counts, TENSORS);
    REQUIRE(c);
    sim_kill(cluster_sim(c), 0);
    sim_kill(cluster_sim(c), 1);
    CHECK(within(c, 4, 10)); /* by the one seed that is left */
    CHECK(settles(c, 4));
    finish(c);

    config = few_seeds(4, 1);
    config.log.emit = count_complaints;
    complaints = 0;
    c = cluster_new(&config, counts, TENSORS);
    REQUIRE(c);
    sim_kill(cluster_sim(c), 0);
    cluster_idle(c, SEC(130));
    CHECK(all_see(c, 1));
    CHECK_EQ(complaints, 3 * 3); /* once a minute, each node */
    restart(c, 0);
    CHECK(within(c, 4, 10));
    CHECK(settles(c, 4));
    finish(c);
}

static void many_join_a_running_job(void)
{
    struct sim_config config = few_seeds(40, 2);
    cluster *c = cluster_new(&config, counts, TENSORS);
    REQUIRE(c);
    for (uint32_t i = 8; i < 40; i++)
        sim_kill(cluster_sim(c), i);
    CHECK(within(c, 8, 10));
    CHECK(settles(c, 8));
    for (uint32_t i = 8; i < 40; i++)
        restart(c, i);
    run_rounds(c, 10);
    CHECK(within(c, 40, 10));
    CHECK(settles(c, 40));
    finish(c);
}

/* Both are told of each other by the common member, and both greet: that opens the way. */
static void nodes_behind_boxes_meet(void)
{
    struct sim_config config = few_seeds(4, 1);
    cluster *c = cluster_new(&config, counts, TENSORS);
    REQUIRE(c);
    for (uint32_t i = 1; i < 4; i++) {
        sim_kill(cluster_sim(c), i);
        if (i != 2)
            sim_rebind(cluster_sim(c), i);
    }
    for (uint32_t i = 1; i < 4; i++)
        restart(c, i);
    CHECK(within(c, 4, 15));
    CHECK(settles(c, 4));
    finish(c);
}

/* ---- churn -------------------------------------------------------------------------- */

static void rounds_go_on_in_churn(void)
{
    struct sim_config config = few_seeds(10, 3);
    sleet_rng rng = {test_seed()};
    cluster *c = cluster_new(&config, counts, TENSORS);
    REQUIRE(c);
    CHECK(within(c, 10, 10));
    CHECK(settles(c, 10));
    double coverage = 0;
    int turns = (int)test_repeats(30);
    for (int turn = 0; turn < turns; turn++) { /* one every 5 s */
        uint32_t node = 1 + rng_below(&rng, 9);
        if (!sim_engine(cluster_sim(c), node))
            restart(c, node);
        else if (rng_below(&rng, 2))
            leave(c, node);
        else
            sim_kill(cluster_sim(c), node);
        sleet_time end = time_add(sim_now(cluster_sim(c)), SEC(5));
        coverage += run_rounds(c, 5) / turns;
        if (time_before(sim_now(cluster_sim(c)), end))
            cluster_idle(c, time_since(end, sim_now(cluster_sim(c))));
    }
    CHECK(coverage > 0.7 && coverage < 1);
    for (uint32_t i = 0; i < 10; i++)
        if (!sim_engine(cluster_sim(c), i))
            restart(c, i);
    CHECK(within(c, 10, 15));
    CHECK(settles(c, 10));
    finish(c);
}

static void half_of_them_go(bool politely)
{
    struct sim_config config = few_seeds(12, 2);
    cluster *c = cluster_new(&config, counts, TENSORS);
    REQUIRE(c);
    CHECK(within(c, 12, 10));
    CHECK(settles(c, 12));
    for (uint32_t i = 6; i < 12; i++) {
        if (politely)
            leave(c, i);
        else
            sim_kill(cluster_sim(c), i);
    }
    run_rounds(c, 3);
    CHECK(within(c, 6, politely ? 0 : 5));
    CHECK(settles(c, 6) || !politely); /* the killed are expected for a while */
    cluster_idle(c, SEC(150));
    CHECK(settles(c, 6));
    engine_peer peers[16];
    CHECK_EQ(engine_get_peers(sim_engine(cluster_sim(c), 0), peers, 16, sim_now(cluster_sim(c))), 5);
    finish(c);
}

static void half_leave_at_once(void)
{
    half_of_them_go(true);
    half_of_them_go(false);
}

static void no_ghosts_after_restarts(void)
{
    struct sim_config config = few_seeds(6, 2);
    engine_peer peers[16];
    cluster *c = cluster_new(&config, counts, TENSORS);
    REQUIRE(c);
    CHECK(within(c, 6, 10));
    for (int life = 0; life < 20; life++) {
        sim_kill(cluster_sim(c), 4);
        run_rounds(c, life % 3);
        restart(c, 4);
        run_rounds(c, 1 + life % 4);
    }
    CHECK(within(c, 6, 10));
    CHECK(settles(c, 6));
    for (uint32_t i = 0; i < 6; i++) {
        engine *e = sim_engine(cluster_sim(c), i);
        uint32_t n = engine_get_peers(e, peers, 16, sim_now(cluster_sim(c)));
        CHECK_EQ(n, 5);
        for (uint32_t k = 0; k < n; k++)
            if (peers[k].node_id == 5)
                CHECK_EQ(peers[k].boot_id, ((uint64_t)5 << 32) + 21);
    }
    finish(c);
}

/* ---- silence --------------------------------------------------------------------------- */

static uint32_t sees(cluster *c, uint32_t node)
{
    return engine_nodes_alive(sim_engine(cluster_sim(c), node), sim_now(cluster_sim(c)));
}

static void a_dead_edge_is_no_death(void)
{
    for (int one_way = 0; one_way < 2; one_way++) {
        struct sim_config config = few_seeds(6, 6);
        cluster *c = cluster_new(&config, counts, TENSORS);
        REQUIRE(c);
        CHECK(within(c, 6, 10));
        CHECK(settles(c, 6));
        cut(c, 0, 1, true);
        cut(c, 1, 0, !one_way);
        for (int i = 0; i < 30; i++) {
            run_rounds(c, 1);
            cluster_idle(c, SEC(1));
            CHECK_EQ(sees(c, 2), 6); /* nobody believes that one of them is dead */
            CHECK_EQ(sees(c, 5), 6);
        }
        CHECK_EQ(sees(c, 1), 5);
        CHECK_EQ(sees(c, 0), one_way ? 6 : 5);
        cut(c, 0, 1, false);
        cut(c, 1, 0, false);
        CHECK(within(c, 6, 10));
        CHECK(settles(c, 6));
        finish(c);
    }
}

/* SIGSTOP for 10 s in effect; what waits in its socket is old then. */
static void a_frozen_node_is_excluded_and_comes_back(void)
{
    struct sim_config config = few_seeds(6, 2);
    cluster *c = cluster_new(&config, counts, TENSORS);
    REQUIRE(c);
    CHECK(within(c, 6, 10));
    CHECK(settles(c, 6));
    sim_freeze(cluster_sim(c), 3, true);
    cluster_idle(c, SEC(4));
    CHECK(all_see(c, 5));
    run_rounds(c, 10);
    cluster_idle(c, SEC(8));
    CHECK(all_see(c, 5));
    sim_freeze(cluster_sim(c), 3, false);
    CHECK(within(c, 6, 5));
    CHECK(settles(c, 6));
    cluster_idle(c, SEC(100));
    CHECK(all_see(c, 6)); /* whoever declared it dead knows better now */

    sim_freeze(cluster_sim(c), 3, true); /* and so long that its slots are given away */
    cluster_idle(c, SEC(100));
    run_rounds(c, 15);
    cluster_idle(c, SEC(20));
    engine_peer peers[8];
    CHECK_EQ(engine_get_peers(sim_engine(cluster_sim(c), 5), peers, 8, sim_now(cluster_sim(c))), 4);
    sim_freeze(cluster_sim(c), 3, false);
    CHECK(within(c, 6, 20));
    CHECK(settles(c, 6));
    finish(c);
}

static void a_flapping_node_is_taken_back(void)
{
    struct sim_config config = few_seeds(5, 2);
    cluster *c = cluster_new(&config, counts, TENSORS);
    REQUIRE(c);
    CHECK(within(c, 5, 10));
    for (int i = 0; i < 5; i++) {
        cut(c, 4, SIM_ALL, true);
        cut(c, SIM_ALL, 4, true);
        cluster_idle(c, SEC(3 + 2 * i));
        CHECK_EQ(sees(c, 0), 4);
        cut(c, 4, SIM_ALL, false);
        cut(c, SIM_ALL, 4, false);
        CHECK(within(c, 5, 5));
    }
    CHECK(settles(c, 5));
    finish(c);
}

/* Three of 16 run for a tenth of a second every three: what they missed is their own fault. */
static void the_starved_do_not_accuse(void)
{
    struct sim_config config = few_seeds(16, 3);
    cluster *c = cluster_new(&config, counts, TENSORS);
    REQUIRE(c);
    CHECK(within(c, 16, 10));
    uint32_t wronged = 0;
    for (int turn = 0; turn < 30; turn++) {
        for (uint32_t i = 5; i < 16; i += 5)
            sim_freeze(cluster_sim(c), i, turn % 2 == 0);
        for (int k = 0; k < (turn % 2 ? 1 : 30); k++) {
            cluster_idle(c, MS(100));
            for (uint32_t i = 0; i < 16; i++)
                wronged += i % 5 != 0 && sees(c, i) < 13;
        }
    }
    CHECK_EQ(wronged, 0);
    for (uint32_t i = 5; i < 16; i += 5)
        sim_freeze(cluster_sim(c), i, false);
    CHECK(within(c, 16, 10));
    finish(c);
}

TEST_SUITE(join) = {
    TEST(nodes_started_at_once_are_one_job),
    TEST(dead_seeds_are_got_over),
    TEST(many_join_a_running_job),
    TEST(nodes_behind_boxes_meet),
    TEST(rounds_go_on_in_churn),
    TEST(half_leave_at_once),
    TEST(no_ghosts_after_restarts),
    TEST(a_dead_edge_is_no_death),
    TEST(a_frozen_node_is_excluded_and_comes_back),
    TEST(a_flapping_node_is_taken_back),
    TEST(the_starved_do_not_accuse),
    TEST_END,
};
