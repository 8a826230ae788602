/* Budgets follow what changes in the middle of a run, with nothing to set: a round trip that
 * grows two hundred times, trainers that come to start apart.  What a budget cuts of what
 * the network would have delivered is counted fragment by fragment. */
#include "helpers.h"

#define NODES_MAX 8
#define CUT_MAX 0.02
#define LAN MS(1)
#define WAN MS(200)
#define APART_MAX MS(200)

enum skew { TOGETHER, STRAGGLER, APART }; /* when the trainers come to a round */

struct course {
    uint32_t nodes;
    double loss;
    uint64_t elements;
    uint64_t rounds; /* of each trainer, in each part of the run */
};

/* Trainers that start again some time after each report. */
struct loop {
    cluster *cluster;
    sleet_rng rng;
    enum skew skew;
    uint64_t made[NODES_MAX], until; /* reports, and how many of each are waited for */
    uint64_t skipped, alone, little; /* reports with rounds skipped, of nobody else, of less than half */
    struct trainer {
        struct loop *loop;
        uint32_t node;
    } trainers[NODES_MAX];
};

/* What became of the fragments of others that a node was to get, in both phases. */
struct toll {
    uint64_t good, cut;
};

static void begin(sim *s, void *arg)
{
    const struct trainer *t = arg;
    sleet_round_options options = {.deadline_ns = SEC(30)};
    (void)s;
    CHECK_EQ(cluster_start(t->loop->cluster, t->node, &options), SLEET_OK);
}

static void go_on(struct loop *loop, uint32_t node)
{
    sim *s = cluster_sim(loop->cluster);
    sleet_duration compute = MS(5);
    if (loop->skew == APART)
        compute += (sleet_duration)(rng_double(&loop->rng) * APART_MAX);
    else if (loop->skew == STRAGGLER && node == 1)
        compute += APART_MAX;
    sim_at(s, time_add(sim_now(s), compute), begin, &loop->trainers[node]);
}

static void reported(cluster *c, uint32_t node, void *arg)
{
    struct loop *loop = arg;
    const sleet_report *r = &cluster_report(c, node)->report;
    loop->made[node]++;
    loop->skipped += r->skipped > 0;
    loop->alone += (r->flags & SLEET_ALONE) != 0;
    loop->little += r->coverage < 0.5;
    go_on(loop, node);
}

static bool set_out(struct loop *loop, const struct course *k, enum skew skew)
{
    struct sim_config config = {.nodes = k->nodes, .seed = test_seed(), .link = {.delay = LAN / 2, .loss = k->loss}};
    *loop = (struct loop){.rng = {test_seed()}, .skew = skew};
    loop->cluster = ready_cluster(&config, &k->elements, 1);
    if (!loop->cluster)
        return false;
    cluster_on_report(loop->cluster, reported, loop);
    for (uint32_t i = 0; i < k->nodes; i++) {
        loop->trainers[i] = (struct trainer){loop, i};
        go_on(loop, i);
    }
    return true;
}

static bool some_are_behind(void *arg)
{
    const struct loop *loop = arg;
    for (uint32_t i = 0; i < nodes_of(loop->cluster); i++)
        if (loop->made[i] < loop->until)
            return true;
    return false;
}

static void count(struct toll *t, const ledger_side *side)
{
    t->good += side->expected - side->lost;
    t->cut += side->late + side->unsent;
}

static engine_set set_at(cluster *c, uint32_t node)
{
    engine_set set = {0};
    CHECK(engine_get_set(sim_engine(cluster_sim(c), node), cluster_set(c, node), &set, sim_now(cluster_sim(c))));
    return set;
}

static struct toll toll_of(cluster *c)
{
    struct toll t = {0};
    for (uint32_t i = 0; i < nodes_of(c); i++) {
        engine_set set = set_at(c, i);
        count(&t, &set.scatter);
        count(&t, &set.gather);
    }
    return t;
}

/* So many rounds more on each node. */
static void run_on(struct loop *loop, uint64_t rounds)
{
    sim *s = cluster_sim(loop->cluster);
    loop->until += rounds;
    CHECK(sim_run_while(s, some_are_behind, loop, time_add(sim_now(s), SEC(600))));
}

static void hardly_any_are_cut(struct loop *loop, const struct course *k, const char *what, struct toll since)
{
    struct toll now = toll_of(loop->cluster);
    double cut = (double)(now.cut - since.cut) / (double)(now.good - since.good);
    if (!CHECK(cut < CUT_MAX))
        printf("%s: %u nodes, loss %g, %" PRIu64 " elements: %.2f %% cut\n", what, k->nodes, k->loss, k->elements,
               cut * 100);
}

/* ... nor do nodes ask so much as to be a burden: a datagram each 2 ms to each other, beside two a fragment
 * and the summaries. */
static void part(struct loop *loop, const struct course *k, const char *what)
{
    struct toll before = toll_of(loop->cluster);
    struct sim_totals sent, sent_now;
    sleet_time began = sim_now(cluster_sim(loop->cluster));
    sim_get_totals(cluster_sim(loop->cluster), &sent);
    run_on(loop, k->rounds);
    sim_get_totals(cluster_sim(loop->cluster), &sent_now);
    hardly_any_are_cut(loop, k, what, before);
    uint64_t pairs = k->nodes * (k->nodes - 1), fragments = k->elements / 288 + 1;
    uint64_t quiet = (uint64_t)time_since(sim_now(cluster_sim(loop->cluster)), began) / MS(2);
    CHECK(sent_now.sent - sent.sent <= pairs * (quiet + (k->rounds + 1) * (8 + 3 * fragments / k->nodes)));
}

static void finish(struct loop *loop)
{
    CHECK_EQ(cluster_overdue(loop->cluster), 0);
    CHECK(ledger_balances(loop->cluster));
    cluster_free(loop->cluster);
}

static void round_trip(cluster *c, sleet_duration rtt, double loss)
{
    struct sim_link link = {.delay = rtt / 2, .loss = loss};
    sim_set_link(cluster_sim(c), SIM_ALL, SIM_ALL, &link);
}

static const struct course courses[] = {
    {4, 0, 1000, 100}, {4, 0.05, 1000, 100}, {8, 0, 1000, 100}, {8, 0.05, 1000, 100}, /* one owner a round */
    {8, 0.05, 100000, 40}, {4, 0, 1000000, 4},
};
#define SMALL 4 /* of them */
#define COURSES (sizeof courses / sizeof courses[0])

static void the_round_trip_changes(void)
{
    for (size_t i = 0; i < COURSES; i++) {
        const struct course *k = &courses[i];
        struct loop loop;
        REQUIRE(set_out(&loop, k, TOGETHER));
        part(&loop, k, "1 ms");
        round_trip(loop.cluster, WAN, k->loss);
        part(&loop, k, "200 ms");
        for (uint32_t n = 0; n < k->nodes; n++)
            CHECK(set_at(loop.cluster, n).budget >= WAN / 2);
        round_trip(loop.cluster, LAN, k->loss);
        part(&loop, k, "1 ms again");
        CHECK_EQ(loop.alone, 0);
        CHECK(loop.little <= k->nodes); /* one round of all */
        finish(&loop);
    }
}

static void the_budget_shrinks_again(void)
{
    static const struct course k = {4, 0, 1000, 100};
    struct loop loop;
    REQUIRE(set_out(&loop, &k, TOGETHER));
    round_trip(loop.cluster, WAN, 0);
    part(&loop, &k, "200 ms");
    round_trip(loop.cluster, LAN, 0);
    cluster_idle(loop.cluster, SEC(30));
    for (uint32_t n = 0; n < k.nodes; n++)
        CHECK_EQ(set_at(loop.cluster, n).budget, MS(20));
    finish(&loop);
}

/* From the beginning: nobody ever loses its place. */
static void trainers_start_apart(void)
{
    for (enum skew skew = STRAGGLER; skew <= APART; skew++) {
        for (size_t i = 0; i < COURSES; i++) {
            struct loop loop;
            REQUIRE(set_out(&loop, &courses[i], skew));
            part(&loop, &courses[i], skew == APART ? "all apart" : "one late");
            CHECK_EQ(loop.skipped + loop.little + loop.alone, 0);
            finish(&loop);
        }
    }
}

/* After rounds that took a few milliseconds.  Each owner has to learn for itself, and does in a
 * round or two. */
static void trainers_drift_apart(void)
{
    for (enum skew skew = STRAGGLER; skew <= APART; skew++) {
        for (size_t i = 0; i < SMALL; i++) {
            const struct course *k = &courses[i];
            struct loop loop;
            REQUIRE(set_out(&loop, k, TOGETHER));
            struct toll before = toll_of(loop.cluster);
            part(&loop, k, "together");
            loop.skew = skew;
            run_on(&loop, 2 * k->rounds);
            hardly_any_are_cut(&loop, k, skew == APART ? "drifted apart" : "one has become late", before);
            if (!CHECK((double)(loop.skipped + loop.alone) <= 3.0 * (double)(k->nodes * k->rounds) * CUT_MAX))
                printf("%" PRIu64 " skipped, %" PRIu64 " alone\n", loop.skipped, loop.alone);
            finish(&loop);
        }
    }
}

static cluster *pair(sleet_duration delay)
{
    static const uint64_t elements = 1000; /* one owner a round */
    struct sim_config config = {.nodes = 2, .seed = test_seed(), .link = {.delay = delay}};
    cluster *c = ready_cluster(&config, &elements, 1);
    for (int i = 0; c && i < 80; i++)
        CHECK(cluster_round(c, NULL));
    if (c)
        cluster_idle(c, MS(10)); /* what is on its way arrives */
    return c;
}

static sleet_duration wait_of(cluster *c, uint32_t node)
{
    const struct cluster_report *r = cluster_report(c, node);
    return time_since(r->reported_at, r->started_at);
}

/* An owner whose own trainer is missing commits when its budget is up, to the nanosecond; one that
 * has not heard the other asks first, and looks again after another budget.  After three rounds
 * nobody is waited for that does not come. */
static void a_missing_trainer_costs_three_budgets(void)
{
    const sleet_duration delay = US(200);
    cluster *c = pair(delay);
    REQUIRE(c);
    int waited = 0;
    cluster_set_active(c, 1, false);
    for (int i = 0; i < 6; i++) {
        sleet_duration here = set_at(c, 0).budget, there = set_at(c, 1).budget;
        CHECK(cluster_round(c, NULL));
        sleet_duration wait = wait_of(c, 0);
        if (i >= 3)
            CHECK(wait <= 2 * delay);
        else
            CHECK(wait == 0 || wait == here || wait == 2 * here || wait == there + 2 * delay);
        waited += wait > MS(1);
    }
    CHECK(waited >= 2 && waited <= 3);
    CHECK_EQ(cluster_overdue(c), 0);
    cluster_free(c);
}

static void the_deadline_is_kept_to_the_nanosecond(void)
{
    cluster *c = pair(US(200));
    REQUIRE(c);
    struct sim_link down = {.down = true};
    sim_set_link(cluster_sim(c), SIM_ALL, SIM_ALL, &down);
    CHECK(cluster_round(c, &(sleet_round_options){.deadline_ns = MS(300)}));
    for (uint32_t i = 0; i < 2; i++)
        CHECK_EQ(wait_of(c, i), MS(300));
    cluster_free(c);
}

/* Silence is waited out for half a second, once by an owner and once for one. */
static void a_dead_node_costs_a_second_at_most(void)
{
    cluster *c = pair(US(200));
    sleet_duration sum = 0;
    REQUIRE(c);
    sim_kill(cluster_sim(c), 1);
    for (int i = 0; i < 6; i++) {
        CHECK(cluster_round(c, NULL));
        CHECK(wait_of(c, 0) <= MS(501));
        sum += wait_of(c, 0);
    }
    CHECK(sum >= MS(500) && sum <= MS(1100));
    cluster_free(c);
}

TEST_SUITE(budgets) = {
    TEST(the_round_trip_changes),
    TEST(the_budget_shrinks_again),
    TEST(trainers_start_apart),
    TEST(trainers_drift_apart),
    TEST(a_missing_trainer_costs_three_budgets),
    TEST(the_deadline_is_kept_to_the_nanosecond),
    TEST(a_dead_node_costs_a_second_at_most),
    TEST_END,
};
