/* The halves of a round as calls of their own, with owners that stay: reduce-scatter gives each
 * owner the mean of its share, all-gather hands out the owners' values. */
#include "helpers.h"
#include "tensor/kind.h"
#include <stdlib.h>

#define N 4
#define RUN (RUN_FRAGMENTS * FRAGMENT_ELEMENTS)
static const uint64_t counts[] = {60 * RUN + 100};
#define RUNS 61

static cluster *set_up_over(struct sim_link link, sleet_payload payload, sleet_exchange exchange)
{
    struct sim_config config = {.nodes = N, .seed = test_seed(), .link = link,
                                .kind = {.payload = payload, .estimator = SLEET_RATIO, .exchange = exchange}};
    cluster *c = ready_cluster(&config, counts, 1);
    sleet_rng rng = {test_seed()};
    if (c)
        fill_grid(c, &rng);
    return c;
}

static cluster *set_up(sleet_payload payload, sleet_exchange exchange, double loss)
{
    struct sim_link link = CLEAN_LINK;
    link.loss = loss;
    return set_up_over(link, payload, exchange);
}

/* The one owner of a run; N where there is none, or more than one. */
static uint32_t owner_of_run(cluster *c, uint32_t run)
{
    uint32_t owner = N;
    for (uint32_t i = 0; i < N; i++)
        if (sim_engine(cluster_sim(c), i) && cluster_owns(c, i, run)) {
            if (owner != N)
                return N;
            owner = i;
        }
    return owner;
}

static bool each_run_has_an_owner(cluster *c, uint32_t owner[RUNS])
{
    bool all = true;
    for (uint32_t r = 0; r < RUNS; r++)
        all &= (owner[r] = owner_of_run(c, r)) < N;
    return all;
}

static float *copy(cluster *c)
{
    float *x = malloc(N * counts[0] * sizeof *x);
    for (uint32_t i = 0; x && i < N; i++)
        memcpy(x + i * counts[0], cluster_values(c, i), counts[0] * sizeof *x);
    return x;
}

static void reduce_scatter_gives_owners_the_mean(void)
{
    cluster *c = set_up(SLEET_GRADIENT, SLEET_REDUCE_SCATTER, 0);
    uint32_t owner[RUNS], before[RUNS];
    struct sim_totals a, b;
    REQUIRE(c);
    CHECK(cluster_round(c, NULL));
    CHECK(all_complete(c));
    CHECK(each_run_has_an_owner(c, before));
    for (int round = 0; round < 3; round++) {
        sleet_rng rng = {test_seed() + (uint64_t)round};
        fill_grid(c, &rng);
        float *x = copy(c);
        REQUIRE(x);
        sim_get_totals(cluster_sim(c), &a);
        CHECK(cluster_round(c, NULL));
        sim_get_totals(cluster_sim(c), &b);
        CHECK(all_complete(c));
        CHECK(each_run_has_an_owner(c, owner));
        CHECK_MEM(owner, before, sizeof owner); /* they stay */
        for (uint64_t k = 0; k < counts[0]; k++) {
            float mean = (x[k] + x[counts[0] + k] + x[2 * counts[0] + k] + x[3 * counts[0] + k]) / N;
            if (cluster_values(c, owner[k / RUN])[k] != mean)
                CHECK_EQ(k, UINT64_MAX);
        }
        CHECK_EQ(cluster_report(c, 0)->report.runs_moved, 0);
        double half = 4.0 * (N - 1) * (double)counts[0]; /* of an all-reduce's bytes */
        CHECK((double)(b.bytes - a.bytes) < 1.15 * half);
        free(x);
    }
    CHECK(ledger_balances(c));
    cluster_free(c);
}

static void all_gather_hands_out_the_owners_values(double loss)
{
    cluster *c = set_up(SLEET_MODEL, SLEET_ALL_GATHER, loss);
    uint32_t owner[RUNS];
    REQUIRE(c);
    for (int round = 0; round < 4; round++) {
        sleet_rng rng = {test_seed() + (uint64_t)round};
        fill_grid(c, &rng);
        float *x = copy(c);
        REQUIRE(x);
        CHECK(cluster_round(c, NULL));
        CHECK(all_complete(c));
        CHECK(identical(c));
        CHECK(each_run_has_an_owner(c, owner));
        for (uint64_t k = 0; k < counts[0]; k++)
            if (cluster_values(c, 0)[k] != x[owner[k / RUN] * counts[0] + k])
                CHECK_EQ(k, UINT64_MAX);
        free(x);
    }
    CHECK_EQ(cluster_overdue(c), 0);
    CHECK(ledger_balances(c));
    cluster_free(c);
}

static void all_gather_clean(void) { all_gather_hands_out_the_owners_values(0); }
static void all_gather_repairs_losses(void) { all_gather_hands_out_the_owners_values(0.1); }

/* Of a dead owner's runs each has another owner soon, the others keep theirs. */
static void a_dead_owners_runs_move(void)
{
    cluster *c = set_up(SLEET_GRADIENT, SLEET_REDUCE_SCATTER, 0.05);
    uint32_t before[RUNS], after[RUNS], moved = 0, told = 0;
    REQUIRE(c);
    CHECK(cluster_round(c, NULL));
    CHECK(each_run_has_an_owner(c, before));
    sim_kill(cluster_sim(c), 1);
    for (int round = 0; round < 8; round++) {
        CHECK(cluster_round(c, NULL));
        for (uint32_t i = 0; i < N; i++)
            told += i == 1 ? 0 : cluster_report(c, i)->report.runs_moved;
    }
    CHECK(each_run_has_an_owner(c, after));
    for (uint32_t r = 0; r < RUNS; r++) {
        moved += before[r] == 1;
        CHECK(before[r] == 1 ? after[r] != 1 : after[r] == before[r]);
    }
    CHECK(moved > 0);
    CHECK_EQ(told, moved);
    CHECK_EQ(cluster_overdue(c), 0);
    cluster_free(c);
}

/* Nobody can hand out what its trainer does not: the others wait a budget for it, not a deadline, and
 * keep what they have of its share. */
static void a_stalled_owner_holds_up_nobody(void)
{
    cluster *c = set_up(SLEET_MODEL, SLEET_ALL_GATHER, 0);
    uint32_t owner[RUNS];
    REQUIRE(c);
    for (int round = 0; round < 10; round++)
        CHECK(cluster_round(c, NULL));
    CHECK(each_run_has_an_owner(c, owner));
    cluster_set_active(c, 2, false);
    fill_constant(c, 7);
    for (uint64_t k = 0; k < counts[0]; k++)
        cluster_values(c, 0)[k] = 5;
    CHECK(cluster_round(c, NULL));
    for (uint64_t k = 0; k < counts[0]; k++)
        if (cluster_values(c, 0)[k] != (owner[k / RUN] == 1 || owner[k / RUN] == 3 ? 7 : 5))
            CHECK_EQ(k, UINT64_MAX);
    const struct cluster_report *r = cluster_report(c, 0);
    CHECK(r->report.coverage < 1 && r->report.coverage > 0.3);
    CHECK(time_since(r->reported_at, r->started_at) < MS(500));
    cluster_free(c);
}

/* The end of a contribution is said until its owner has committed: who has lost it does not wait for the deadline. */
static void lost_ends_are_said_again(struct sim_link link)
{
    cluster *c = set_up_over(link, SLEET_GRADIENT, SLEET_REDUCE_SCATTER);
    double waited = 0;
    REQUIRE(c);
    for (int round = 0; round < 60; round++) {
        CHECK(cluster_round(c, NULL));
        for (uint32_t i = 0; i < N; i++) {
            const struct cluster_report *r = cluster_report(c, i);
            waited += (double)time_since(r->reported_at, r->started_at) * 1e-9 / (60 * N);
            CHECK(r->report.coverage > 0.8); /* its own quarter may lack 3 of 10 */
        }
    }
    if (waited > 0.1)
        printf("a round took %.3f s\n", waited);
    CHECK(waited <= 0.1);
    CHECK_EQ(cluster_overdue(c), 0);
    cluster_free(c);
}

static void lost_ends(void)
{
    struct sim_link link = CLEAN_LINK;
    link.loss = 0.3;
    lost_ends_are_said_again(link);
}

static void lost_ends_in_bursts(void)
{
    struct sim_link link = CLEAN_LINK;
    link.ge_r = 1.0 / 8;
    link.ge_p = 0.3 * link.ge_r / 0.7;
    lost_ends_are_said_again(link);
}

static void count_summaries(sim *s, const struct sim_datagram *d, void *arg)
{
    *(uint64_t *)arg += (d->data[0] & 15) == 7;
    sim_relay(s, d, 0);
}

/* While contributions come nothing is asked. */
static void ends_are_said_seldom(void)
{
    enum { NODES = 32 };
    static const uint64_t many[] = {1500 * FRAGMENT_ELEMENTS};
    struct sim_config config = {.nodes = NODES, .seed = test_seed(), .link = {.delay = US(100)},
                                .kind = {.payload = SLEET_GRADIENT, .exchange = SLEET_REDUCE_SCATTER}};
    cluster *c = ready_cluster(&config, many, 1);
    uint64_t summaries = 0;
    REQUIRE(c);
    CHECK(cluster_round(c, NULL));
    sim_on_datagram(cluster_sim(c), count_summaries, &summaries);
    CHECK(cluster_round(c, NULL));
    CHECK(all_complete(c));
    CHECK(summaries < 12 * NODES * (NODES - 1)); /* in 141 ms */
    cluster_free(c);
}

/* An owner that waits for a stalled trainer has the mean of the others when its own deadline comes. */
static void what_is_there_by_the_deadline_counts(void)
{
    const sleet_round_options brief = {.size = sizeof brief, .deadline_ns = MS(50)};
    cluster *c = set_up(SLEET_GRADIENT, SLEET_REDUCE_SCATTER, 0);
    uint32_t owner[RUNS];
    REQUIRE(c);
    CHECK(cluster_round(c, NULL));
    CHECK(each_run_has_an_owner(c, owner));
    cluster_set_active(c, 3, false);
    for (uint32_t i = 0; i < N; i++)
        for (uint64_t k = 0; k < counts[0]; k++)
            cluster_values(c, i)[k] = (float)(i + 1);
    CHECK(cluster_round(c, &brief));
    for (uint64_t k = 0; k < counts[0]; k++)
        if (owner[k / RUN] != 3 && cluster_values(c, owner[k / RUN])[k] != 2) /* of 1, 2 and 3 */
            CHECK_EQ(k, UINT64_MAX);
    const struct cluster_report *r = cluster_report(c, 0);
    CHECK(r->report.coverage < 1);
    CHECK(time_since(r->reported_at, r->started_at) <= MS(50));
    cluster_free(c);
}

/* Alone, a node owns everything. */
static void alone_it_owns_all(void)
{
    struct sim_config config = {.nodes = 1, .seed = test_seed(), .link = CLEAN_LINK,
                                .kind = {.payload = SLEET_GRADIENT, .exchange = SLEET_REDUCE_SCATTER}};
    cluster *c = ready_cluster(&config, counts, 1);
    REQUIRE(c);
    CHECK(cluster_round(c, NULL));
    for (uint32_t r = 0; r < RUNS; r++)
        CHECK(cluster_owns(c, 0, r));
    cluster_free(c);
}

/* Ahead of the others nothing is exchanged, and nobody's share is another's for it. */
static void ahead_it_owns_no_more(void)
{
    cluster *c = set_up(SLEET_GRADIENT, SLEET_REDUCE_SCATTER, 0);
    uint32_t before = 0, after = 0;
    REQUIRE(c);
    CHECK(cluster_round(c, NULL));
    for (uint32_t r = 0; r < RUNS; r++)
        before += cluster_owns(c, 0, r);
    for (uint32_t i = 1; i < N; i++)
        cluster_set_active(c, i, false);
    for (int round = 0; round < 3; round++)
        CHECK(cluster_round(c, NULL));
    CHECK(cluster_report(c, 0)->report.flags & SLEET_ALONE);
    for (uint32_t r = 0; r < RUNS; r++)
        after += cluster_owns(c, 0, r);
    CHECK_EQ(after, before);
    CHECK_EQ(cluster_report(c, 0)->report.runs_moved, 0);
    cluster_free(c);
}

TEST_SUITE(exchange) = {
    TEST(ahead_it_owns_no_more),
    TEST(reduce_scatter_gives_owners_the_mean),
    TEST(all_gather_clean),
    TEST(all_gather_repairs_losses),
    TEST(a_dead_owners_runs_move),
    TEST(a_stalled_owner_holds_up_nobody),
    TEST(lost_ends),
    TEST(lost_ends_in_bursts),
    TEST(ends_are_said_seldom),
    TEST(what_is_there_by_the_deadline_counts),
    TEST(alone_it_owns_all),
    TEST_END,
};
