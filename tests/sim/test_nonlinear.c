/* Updates that need all of a gradient at once, as Adam's does: a node steps by what all the others
 * step by, or not at all; and who has missed steps is brought back by the refresh of state. */
#include "helpers.h"
#include <stdlib.h>

#define NODES 4
#define N 3000 /* parameters; as many gradients and two kinds of moments */

static const uint64_t counts[] = {N, N, N, N};
enum { GRADIENT, PARAMETER, FIRST, SECOND };

static float *part(cluster *c, uint32_t node, int tensor)
{
    return cluster_values(c, node) + (size_t)tensor * N;
}

static cluster *begin(double loss)
{
    struct sim_config config = {
        .nodes = NODES,
        .seed = test_seed(),
        .kind = {.payload = SLEET_GRADIENT, .update = SLEET_NONLINEAR},
        .link = {.delay = US(200), .loss = loss},
        .state_tensors = 3};
    cluster *c = ready_cluster(&config, counts, 4);
    for (uint32_t i = 0; c && i < NODES; i++)
        for (uint64_t k = 0; k < N; k++) {
            part(c, i, PARAMETER)[k] = (float)k / N;
            part(c, i, FIRST)[k] = part(c, i, SECOND)[k] = 0;
        }
    return c;
}

/* AdamW behind a clip of the norm, with the job's round as the count of steps: it is the same on all nodes. */
static void update(cluster *c, uint32_t node, uint64_t steps)
{
    const float *g = part(c, node, GRADIENT);
    float *p = part(c, node, PARAMETER), *m = part(c, node, FIRST), *v = part(c, node, SECOND);
    double first = 1 - pow(0.9, (double)steps), second = 1 - pow(0.999, (double)steps);
    double squares = 0;
    for (uint64_t k = 0; k < N; k++)
        squares += (double)g[k] * (double)g[k];
    float scale = squares > 1 ? (float)(1 / sqrt(squares)) : 1;
    for (uint64_t k = 0; k < N; k++) {
        float x = scale * g[k];
        m[k] = 0.9f * m[k] + 0.1f * x;
        v[k] = 0.999f * v[k] + 0.001f * x * x;
        double step = (double)m[k] / first / (sqrt((double)v[k] / second) + 1e-6);
        p[k] -= (float)(0.01 * (step + 0.01 * (double)p[k]));
    }
}

/* A round and the step that it allows; how many nodes were behind. */
static uint32_t train(cluster *c, sleet_rng *rng, const sleet_round_options *o)
{
    uint32_t behind = 0;
    for (uint32_t i = 0; i < NODES; i++)
        for (uint64_t k = 0; k < N; k++)
            part(c, i, GRADIENT)[k] =
                part(c, i, PARAMETER)[k] - (float)i + (float)(rng_double(rng) - 0.5);
    CHECK(cluster_round(c, o));
    for (uint32_t i = 0; i < NODES; i++) {
        const sleet_report *r = &cluster_report(c, i)->report;
        if (!(r->flags & SLEET_BEHIND)) {
            update(c, i, r->round);
            continue;
        }
        behind++;
        for (uint64_t k = 0; k < N; k++)
            if (part(c, i, GRADIENT)[k] != 0)
                CHECK_EQ(k, UINT64_MAX);
        CHECK(!(r->flags & SLEET_COMPLETE));
    }
    return behind;
}

static bool replicas_equal(cluster *c)
{
    for (uint32_t i = 1; i < NODES; i++)
        if (memcmp(part(c, 0, PARAMETER), part(c, i, PARAMETER), 3 * N * sizeof(float)) != 0)
            return false;
    return true;
}

static void replicas_are_equal_under_loss(void)
{
    cluster *c = begin(0.2);
    sleet_rng rng = {test_seed()};
    uint32_t behind = 0;
    unsigned steps = getenv("SLEET_TEST_LONG") ? 5000 : test_repeats(500);
    REQUIRE(c);
    for (unsigned step = 1; step <= steps; step++) {
        behind += train(c, &rng, NULL);
        if (step % 100 == 0)
            CHECK(replicas_equal(c));
    }
    CHECK(replicas_equal(c));
    CHECK_EQ(behind, 0);
    CHECK(fabs((double)part(c, 0, PARAMETER)[0] - 1.5) < 1.6); /* it has learned something */
    CHECK_EQ(cluster_overdue(c), 0);
    CHECK(ledger_balances(c));
    cluster_free(c);
}

/* Deadlines too short for repairs leave single nodes behind, again and again; then 16 rounds that are whole
 * make all equal. */
static void who_is_behind_is_brought_back(void)
{
    cluster *c = begin(0.05);
    sleet_rng rng = {test_seed()};
    const sleet_round_options brief = {.deadline_ns = MS(3)};
    uint32_t behind = 0;
    REQUIRE(c);
    for (int step = 0; step < 20; step++) {
        behind += train(c, &rng, &brief);
        cluster_idle(c, MS(2));
    }
    CHECK(behind > 0 && behind < 20 * NODES);
    CHECK(!replicas_equal(c));
    sim_set_link(cluster_sim(c), SIM_ALL, SIM_ALL, &CLEAN_LINK);
    cluster_idle(c, SEC(1));
    behind = 0;
    for (int step = 0; step < SLEET_REFRESH_ROUNDS + 2; step++)
        behind += train(c, &rng, NULL);
    CHECK(behind <= NODES);
    CHECK(replicas_equal(c));
    cluster_free(c);
}

/* Cut off for some rounds a node misses steps; it takes the state of the others part by part. */
static void who_was_cut_off_is_brought_back(void)
{
    cluster *c = begin(0);
    sleet_rng rng = {test_seed()};
    const struct sim_link down = {.down = true}, up = CLEAN_LINK;
    const sleet_round_options brief = {.deadline_ns = MS(300)};
    REQUIRE(c);
    train(c, &rng, NULL);
    sim_set_link(cluster_sim(c), 3, SIM_ALL, &down);
    sim_set_link(cluster_sim(c), SIM_ALL, 3, &down);
    for (int step = 0; step < 15; step++) {
        train(c, &rng, &brief);
        cluster_idle(c, MS(200));
    }
    CHECK(cluster_report(c, 3)->report.flags & SLEET_BEHIND);
    CHECK(!replicas_equal(c));
    sim_set_link(cluster_sim(c), SIM_ALL, SIM_ALL, &up);
    uint32_t step = 0;
    while (step < 40 && !replicas_equal(c)) {
        train(c, &rng, &brief);
        cluster_idle(c, MS(200));
        step++;
    }
    CHECK(step <= SLEET_REFRESH_ROUNDS + 8);
    for (int more = 0; more < 20; more++) {
        train(c, &rng, &brief);
        CHECK(replicas_equal(c));
    }
    CHECK(all_complete(c));
    CHECK_EQ(cluster_overdue(c), 0);
    cluster_free(c);
}

/* What comes late is no correction: it is part of no step. */
static void nothing_is_corrected(void)
{
    cluster *c = begin(0);
    const sleet_round_options brief = {.deadline_ns = US(900)};
    sleet_rng rng = {test_seed()};
    uint32_t behind = 0;
    REQUIRE(c);
    for (int step = 0; step < 10; step++) {
        behind += train(c, &rng, &brief);
        cluster_idle(c, MS(5));
        for (uint32_t i = 0; i < NODES; i++)
            CHECK_EQ(cluster_report(c, i)->report.fragments_corrected, 0);
    }
    CHECK(behind > 0);
    cluster_free(c);
}

TEST_SUITE(nonlinear) = {
    TEST(replicas_are_equal_under_loss),
    TEST(who_is_behind_is_brought_back),
    TEST(who_was_cut_off_is_brought_back),
    TEST(nothing_is_corrected),
    TEST_END,
};
