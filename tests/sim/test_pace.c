/* Trainers that go at their own pace: a slow one, one ahead, one that slept.
 * Round numbers come together again and no deadline is passed. */
#include "helpers.h"

#define NODES 4
#define DEADLINE MS(200)

static const uint64_t counts[] = {3000};

struct loop {
    cluster *cluster;
    struct pace {
        struct loop *loop;
        uint32_t node;
        sleet_duration compute;
        uint64_t reports;
    } pace[NODES];
};

static void begin(sim *s, void *arg)
{
    struct pace *p = arg;
    sleet_round_options options = {.deadline_ns = DEADLINE};
    if (!sim_engine(s, p->node))
        return; /* killed */
    if (sim_frozen(s, p->node)) /* the process sleeps as a whole */
        sim_at(s, time_add(sim_now(s), MS(20)), begin, p);
    else
        CHECK_EQ(cluster_start(p->loop->cluster, p->node, &options), SLEET_OK);
}

static void reported(cluster *c, uint32_t node, void *arg)
{
    struct loop *loop = arg;
    struct pace *p = &loop->pace[node];
    p->reports++;
    sim_at(cluster_sim(c), time_add(sim_now(cluster_sim(c)), p->compute), begin, p);
}

static cluster *free_running(struct loop *loop, double loss)
{
    struct sim_config config = {
        .nodes = NODES, .seed = test_seed(), .link = {.delay = US(200), .loss = loss}};
    cluster *c = ready_cluster(&config, counts, 1);
    if (!c)
        return NULL;
    loop->cluster = c;
    cluster_on_report(c, reported, loop);
    for (uint32_t i = 0; i < NODES; i++) {
        loop->pace[i] = (struct pace){.loop = loop, .node = i, .compute = MS(20)};
        sim_at(cluster_sim(c), sim_now(cluster_sim(c)), begin, &loop->pace[i]);
    }
    cluster_idle(c, SEC(1));
    return c;
}

/* All are in about the same round and hear each other. */
static bool together(const cluster *c)
{
    uint64_t least = UINT64_MAX, most = 0;
    for (uint32_t i = 0; i < NODES; i++) {
        const struct cluster_report *r = cluster_report(c, i);
        uint64_t round = r->report.round;
        if (!r->reported)
            continue; /* in the middle of one */
        if (r->report.coverage < 0.99 || r->report.group_size != NODES)
            return false;
        least = round < least ? round : least;
        most = round > most ? round : most;
    }
    return most > 0 && most - least <= 1;
}

static void finish(struct loop *loop)
{
    cluster *c = loop->cluster;
    for (uint32_t i = 0; i < NODES; i++)
        loop->pace[i].compute = MS(20);
    cluster_idle(c, SEC(5));
    bool seen = false;
    for (int i = 0; i < 50 && !seen; i++) {
        cluster_idle(c, MS(7));
        seen = together(c);
    }
    CHECK(seen);
    CHECK_EQ(cluster_overdue(c), 0);
    CHECK(ledger_balances(c));
    cluster_free(c);
}

static void one_is_twice_as_slow(void)
{
    struct loop loop;
    REQUIRE(free_running(&loop, 0));
    loop.pace[3].compute = MS(60);
    cluster_idle(loop.cluster, SEC(20));
    CHECK(loop.pace[0].reports > 100);
    CHECK(loop.pace[3].reports > 100);
    finish(&loop);
}

static void one_runs_ahead(void)
{
    struct loop loop;
    REQUIRE(free_running(&loop, 0));
    loop.pace[0].compute = MS(1);
    cluster_idle(loop.cluster, SEC(20));
    finish(&loop);
}

static void one_sleeps_ten_seconds(void)
{
    struct loop loop;
    REQUIRE(free_running(&loop, 0));
    sim_freeze(cluster_sim(loop.cluster), 1, true);
    uint64_t before = loop.pace[0].reports;
    cluster_idle(loop.cluster, SEC(10));
    CHECK(loop.pace[0].reports > before + 40);
    sim_freeze(cluster_sim(loop.cluster), 1, false);
    finish(&loop);
}

static void one_dies_and_is_restarted(void)
{
    struct loop loop;
    REQUIRE(free_running(&loop, 0));
    sim *s = cluster_sim(loop.cluster);
    sim_kill(s, 0);
    cluster_idle(loop.cluster, SEC(10));
    REQUIRE(sim_restart(s, 0));
    CHECK_EQ(cluster_register(loop.cluster, 0), SLEET_OK);
    sim_at(s, sim_now(s), begin, &loop.pace[0]);
    finish(&loop);
}

static void loss_keeps_nobody_apart(void)
{
    struct loop loop;
    REQUIRE(free_running(&loop, 0.1));
    struct sim_link clean = CLEAN_LINK;
    cluster_idle(loop.cluster, SEC(20));
    sim_set_link(cluster_sim(loop.cluster), SIM_ALL, SIM_ALL, &clean);
    finish(&loop);
}

TEST_SUITE(pace) = {
    TEST(one_is_twice_as_slow),
    TEST(one_runs_ahead),
    TEST(one_sleeps_ten_seconds),
    TEST(one_dies_and_is_restarted),
    TEST(loss_keeps_nobody_apart),
    TEST_END,
};
