/* Commits that come when their round has closed: replicas that add results do not walk apart.
 *
 * Each node steps by what its rounds bring.  As in a network that is quick to go on, holes are served only when
 * the round has closed (repair_late), so at each step a part p of the commits is late. */
#include "helpers.h"
#include <stdlib.h>

#define NODES 8
#define LOSS 0.1
#define TENSORS 64 /* a fragment each */
#define ELEMENTS 16
#define ALL (TENSORS * ELEMENTS)

struct run {
    cluster *c;
    double at[NODES][ALL]; /* the replicas */
    double update;         /* mean square of what they add a round */
    uint64_t corrected;
    sleet_duration computes; /* between two rounds */
    sleet_rng rng;
};

/* Unit variance, near enough to a normal distribution. */
static double noise(sleet_rng *rng)
{
    double sum = 0;
    for (int i = 0; i < 4; i++)
        sum += rng_double(rng) - 0.5;
    return sum * sqrt(3);
}

static struct run *begin(bool repaired)
{
    struct sim_config config = {.nodes = NODES,
                                .seed = test_seed(),
                                .kind = {.payload = SLEET_GRADIENT},
                                .link = {.delay = US(200), .loss = LOSS},
                                .repair_off = !repaired,
                                .repair_late = repaired};
    uint64_t counts[TENSORS];
    struct run *r = calloc(1, sizeof *r);
    for (uint32_t t = 0; t < TENSORS; t++)
        counts[t] = ELEMENTS;
    if (r)
        r->c = ready_cluster(&config, counts, TENSORS);
    if (!r || !r->c) {
        free(r);
        return NULL;
    }
    r->rng.state = config.seed;
    return r;
}

static void finish(struct run *r)
{
    CHECK_EQ(cluster_overdue(r->c), 0);
    CHECK(ledger_balances(r->c));
    cluster_free(r->c);
    free(r);
}

static void step(struct run *r, unsigned rounds, double gradient)
{
    r->update = 0;
    for (unsigned round = 0; round < rounds; round++) {
        for (uint32_t i = 0; i < NODES; i++)
            for (uint32_t k = 0; k < ALL; k++)
                cluster_values(r->c, i)[k] = (float)(gradient * noise(&r->rng));
        CHECK(cluster_round(r->c, NULL));
        cluster_idle(r->c, r->computes);
        for (uint32_t i = 0; i < NODES; i++) {
            r->corrected += cluster_report(r->c, i)->report.fragments_corrected;
            for (uint32_t k = 0; k < ALL; k++) {
                double x = (double)cluster_values(r->c, i)[k];
                r->at[i][k] += x;
                r->update += x * x / (ALL * NODES) / rounds;
            }
        }
    }
}

/* Variance between the replicas, the mean over the elements. */
static double drift(const struct run *r)
{
    double sum = 0;
    for (uint32_t k = 0; k < ALL; k++) {
        double mean = 0, squares = 0;
        for (uint32_t i = 0; i < NODES; i++)
            mean += r->at[i][k] / NODES;
        for (uint32_t i = 0; i < NODES; i++)
            squares += (r->at[i][k] - mean) * (r->at[i][k] - mean);
        sum += squares / (NODES - 1);
    }
    return sum / ALL;
}

/* 2,000 rounds, as `make check-long` asks for. */
static bool in_full(void)
{
    return getenv("SLEET_TEST_LONG") != NULL;
}

/* Of a round's commits the owner's own part is never lost. */
#define OTHERS ((NODES - 1.0) / NODES)

static void drift_stays_bounded(void)
{
    struct run *r = begin(true);
    unsigned rounds = in_full() ? 500 : test_repeats(200);
    REQUIRE(r);
    for (int part = 0; part < 4; part++) {
        step(r, rounds, 1);
        double bound = LOSS / (1 - LOSS) * OTHERS * r->update;
        if (!CHECK(drift(r) < 2.5 * bound && drift(r) > 0.3 * bound))
            printf("drift %.4f, p/(1-p) of an update's variance %.4f\n", drift(r), bound);
    }
    CHECK(r->corrected > 0);
    finish(r);
}

/* Once nothing is on its way all replicas are the same but for rounding. */
static void what_was_late_is_not_lost(void)
{
    struct run *r = begin(true);
    REQUIRE(r);
    r->computes = MS(5); /* so that no hole outlives the window */
    step(r, 50, 1);
    CHECK(drift(r) > 1e-3);
    sim_set_link(cluster_sim(r->c), SIM_ALL, SIM_ALL, &CLEAN_LINK);
    step(r, 3, 0);
    CHECK(drift(r) < 1e-10);
    finish(r);
}

/* The control: without it the distance grows by p of an update's variance a round. */
static void without_repair_they_walk_apart(void)
{
    struct run *r = begin(false);
    unsigned rounds = in_full() ? 2000 : test_repeats(600);
    REQUIRE(r);
    step(r, rounds / 2, 1);
    double half = drift(r);
    step(r, rounds - rounds / 2, 1);
    CHECK_NEAR(drift(r) / half, 2, 0.5);
    CHECK_NEAR(drift(r) / (LOSS * OTHERS * r->update * rounds), 1, 0.3);
    CHECK_EQ(r->corrected, 0);
    finish(r);
}

/* A deadline cuts rounds off: what comes after it is added all the same. */
static void a_deadline_costs_nothing_in_the_end(void)
{
    struct run *r = begin(true);
    const sleet_round_options brief = {.deadline_ns = US(900)};
    double sum = 0;
    uint64_t cut = 0;
    REQUIRE(r);
    sim_set_link(cluster_sim(r->c), SIM_ALL, SIM_ALL, &CLEAN_LINK);
    for (int round = 0; round < 20; round++) {
        fill_constant(r->c, 1);
        CHECK(cluster_round(r->c, round < 15 ? &brief : NULL));
        cluster_idle(r->c, MS(5));
        cut += (cluster_report(r->c, 0)->report.flags & SLEET_DEADLINE) != 0;
        for (uint32_t k = 0; k < ALL; k++)
            sum += (double)cluster_values(r->c, 0)[k] / ALL;
    }
    CHECK(cut > 0);
    CHECK_NEAR(sum, 20, 1e-6);
    finish(r);
}

/* A trainer that is slow skips rounds, and has their results all the same. */
static void who_skips_rounds_catches_up(void)
{
    struct run *r = begin(false);
    double sum[NODES] = {0}, rounds = 0;
    REQUIRE(r);
    cluster_free(r->c);
    struct sim_config config = {.nodes = NODES, .seed = test_seed(), .kind = {.payload = SLEET_DELTA}, .link = CLEAN_LINK};
    r->c = ready_cluster(&config, (const uint64_t[]){ALL}, 1);
    REQUIRE(r->c);
    for (int round = 0; round < 60; round++) {
        bool pauses = round % 10 == 3 || round % 10 == 4;
        cluster_set_active(r->c, 5, !pauses);
        fill_constant(r->c, 1);
        CHECK(cluster_round(r->c, NULL));
        cluster_idle(r->c, SEC(1)); /* in lock step it has to hear which round has closed */
        rounds++;
        for (uint32_t i = 0; i < NODES; i++) {
            if (i == 5 && pauses)
                continue;
            sum[i] += (double)cluster_values(r->c, i)[0];
            r->corrected += cluster_report(r->c, i)->report.fragments_corrected;
        }
    }
    for (uint32_t i = 0; i < NODES; i++)
        CHECK_NEAR(sum[i], rounds, 1e-6);
    CHECK(r->corrected >= 12);
    finish(r);
}

TEST_SUITE(late) = {
    TEST(drift_stays_bounded),
    TEST(what_was_late_is_not_lost),
    TEST(without_repair_they_walk_apart),
    TEST(a_deadline_costs_nothing_in_the_end),
    TEST(who_skips_rounds_catches_up),
    TEST_END,
};
