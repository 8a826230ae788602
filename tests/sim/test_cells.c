/* Jobs of more nodes than a group may have: every round falls into cells. */
#include "helpers.h"

#define ELEMENTS 2000

static const uint64_t counts[] = {ELEMENTS};

static uint32_t joining(cluster *c)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < nodes_of(c); i++)
        n += (cluster_report(c, i)->report.flags & SLEET_JOINING) != 0;
    return n;
}

/* All have met, hold the job's model and know it of each other. */
static cluster *ready_crowd(uint32_t nodes)
{
    struct sim_config config = {.nodes = nodes, .seed = test_seed(), .link = CLEAN_LINK};
    sleet_round_options options = {.deadline_ns = MS(500)};
    cluster *c = cluster_new(&config, counts, 1);
    if (!c)
        return NULL;
    cluster_idle(c, SEC(4));
    for (int i = 0; i < 3; i++) { /* the founder's cell takes its model first, then theirs */
        cluster_round(c, &options);
        cluster_idle(c, MS(100));
        if (i > 0 && joining(c) == 0)
            return c;
    }
    cluster_free(c);
    return NULL;
}

static void fill_random(cluster *c, sleet_rng *rng)
{
    for (uint32_t i = 0; i < nodes_of(c); i++)
        for (uint64_t k = 0; k < ELEMENTS; k++)
            cluster_values(c, i)[k] = (float)(rng_double(rng) - 0.5);
}

/* Mean square distance of the values from their means over the nodes. */
static double spread(cluster *c, double *mean_of_all)
{
    double sum = 0;
    *mean_of_all = 0;
    for (uint64_t k = 0; k < ELEMENTS; k++) {
        double mean = 0;
        for (uint32_t i = 0; i < nodes_of(c); i++)
            mean += (double)cluster_values(c, i)[k] / nodes_of(c);
        for (uint32_t i = 0; i < nodes_of(c); i++)
            sum +=
                ((double)cluster_values(c, i)[k] - mean) * ((double)cluster_values(c, i)[k] - mean);
        *mean_of_all += mean / ELEMENTS;
    }
    return sum / ELEMENTS / nodes_of(c);
}

/* Under the sanitizers a smaller job does. */
static void averages_mix_over_the_job(void)
{
    uint32_t nodes = test_repeats(300) < 300 ? 100 : 300;
    sleet_rng rng = {test_seed()};
    cluster *c = ready_crowd(nodes);
    double mean, mean_now;
    REQUIRE(c);
    fill_random(c, &rng);
    double before = spread(c, &mean);
    for (int round = 0; round < 6; round++) { /* more than the K rounds one is waited for */
        uint32_t partial = 0, uneven = 0;
        CHECK(cluster_round(c, NULL));
        for (uint32_t i = 0; i < nodes_of(c); i++) {
            const sleet_report *r = &cluster_report(c, i)->report;
            partial += !(r->flags & SLEET_COMPLETE);
            uneven += r->group_size < 12 || r->group_size > SLEET_GROUP_MAX ||
                      r->expected != r->group_size;
        }
        CHECK_EQ(partial, 0);
        CHECK_EQ(uneven, 0);
        double now = spread(c, &mean_now);
        CHECK(now < before / 12 || now < 1e-13); /* one over the size of the smaller cells */
        CHECK_NEAR(mean_now, mean, 1e-6);
        before = now;
    }
    CHECK_EQ(cluster_overdue(c), 0);
    CHECK(ledger_balances(c));
    cluster_free(c);
}

/* A round without node 17: how many had less than full coverage or waited for it. */
static void round_without_17(cluster *c, uint32_t *partial, uint32_t *waited, uint32_t *cell)
{
    *partial = *waited = *cell = 0;
    CHECK(cluster_round(c, NULL));
    for (uint32_t i = 0; i < nodes_of(c); i++) {
        const struct cluster_report *r = cluster_report(c, i);
        if (i == 17)
            continue;
        CHECK(r->reported && r->error == SLEET_OK && r->report.coverage > 0.9);
        *waited += time_since(r->reported_at, r->started_at) > MS(200);
        if (r->report.coverage == 1.0)
            continue;
        ++*partial;
        *cell = r->report.group_size; /* of all of them, if they are one cell */
    }
}

static void a_death_costs_one_cell(void)
{
    uint32_t partial, waited, cell;
    cluster *c = ready_crowd(150);
    REQUIRE(c);
    CHECK(cluster_round(c, NULL));
    sim_kill(cluster_sim(c), 17);
    round_without_17(c, &partial, &waited, &cell);
    CHECK(partial > 0 && partial <= cell);
    CHECK(waited > 0 && waited <= cell);
    cluster_idle(c, SEC(10)); /* somebody has probed it, and all know */
    round_without_17(c, &partial, &waited, &cell);
    CHECK(partial > 0 && partial <= cell); /* it still counts where it would be */
    CHECK_EQ(waited, 0);

    REQUIRE(sim_restart(cluster_sim(c), 17));
    CHECK_EQ(cluster_register(c, 17), SLEET_OK);
    cluster_idle(c, SEC(3)); /* it greets all, and they it */
    CHECK(cluster_round(c, NULL)); /* it waits for the first commits that it is sent */
    CHECK_EQ(joining(c), 1);
    CHECK(cluster_report(c, 17)->report.flags & SLEET_COMPLETE);
    CHECK(cluster_round(c, NULL));
    CHECK_EQ(joining(c), 0);
    CHECK_EQ(cluster_overdue(c), 0);
    cluster_free(c);
}

static void loss_costs_what_it_costs_a_group(void)
{
    struct sim_link lossy = {.delay = US(200), .loss = 0.1};
    cluster *c = ready_crowd(150);
    REQUIRE(c);
    sim_set_link(cluster_sim(c), SIM_ALL, SIM_ALL, &lossy);
    double least = 1, sum = 0;
    for (int round = 0; round < 8; round++) {
        CHECK(cluster_round(c, NULL));
        for (uint32_t i = 0; i < nodes_of(c); i++) {
            double coverage = cluster_report(c, i)->report.coverage;
            least = coverage < least ? coverage : least;
            sum += coverage / 8 / nodes_of(c);
        }
    }
    CHECK(least > 0.6);
    CHECK_NEAR(sum, 0.9, 0.03); /* gather is repaired, scatter is not */
    CHECK_EQ(cluster_overdue(c), 0);
    CHECK(ledger_balances(c));
    cluster_free(c);
}

/* Every node but nodes 3 and 4 takes this many for alive. */
static bool all_know(cluster *c, uint32_t alive)
{
    sim *s = cluster_sim(c);
    for (uint32_t i = 0; i < nodes_of(c); i++)
        if (i != 3 && i != 4 && engine_nodes_alive(sim_engine(s, i), sim_now(s)) != alive)
            return false;
    return true;
}

/* Beyond 64 nodes nobody pings everybody: one probe a period and its answer. */
static void pings_are_bounded_and_deaths_get_around(void)
{
    struct sim_totals before, after;
    cluster *c = ready_crowd(127);
    REQUIRE(c);
    sim *s = cluster_sim(c);
    cluster_idle(c, SEC(30)); /* all news is out, tables are compared seldom */
    CHECK(all_know(c, 127));
    sim_get_totals(s, &before);
    cluster_idle(c, SEC(20));
    sim_get_totals(s, &after);
    CHECK(after.sent - before.sent > 127 * 2 * 20 * 9 / 10);
    CHECK(after.sent - before.sent < 127 * 3 * 20);
    CHECK(all_know(c, 127));

    engine_leave(sim_engine(s, 3), sim_now(s));
    sim_kick(s, 3);
    cluster_idle(c, MS(10));
    CHECK(all_know(c, 126));
    sim_kill(s, 3);
    sim_kill(s, 4);
    cluster_idle(c, SEC(8)); /* probed by somebody within some periods, then all know within one */
    CHECK(all_know(c, 125));
    cluster_free(c);
}

TEST_SUITE(cells) = {
    TEST(averages_mix_over_the_job),
    TEST(a_death_costs_one_cell),
    TEST(loss_costs_what_it_costs_a_group),
    TEST(pings_are_bounded_and_deaths_get_around),
    TEST_END,
};
