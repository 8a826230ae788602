/* Replicas that come apart are seen, and who it is; those that only lose datagrams are not. */
#include "helpers.h"
#include "round/round.h"
#include <float.h>
#include <stdlib.h>

#define NODES 4
#define ODD 2

static const uint64_t counts[] = {5000, 20000};

static struct {
    uint64_t alarms, of_odd; /* of them naming the odd one */
    double most, least;      /* difference said */
} said;

static void note(void *arg, log_level level, log_fault fault, const char *event, const log_field *fields, int n)
{
    (void)arg, (void)level, (void)fault;
    if (strcmp(event, "replicas-drift") != 0)
        return;
    said.alarms++;
    for (int i = 0; i < n; i++) {
        if (strcmp(fields[i].key, "node") == 0)
            said.of_odd += fields[i].u == ODD + 1;
        if (strcmp(fields[i].key, "difference") == 0) {
            said.most = fmax(said.most, fields[i].f);
            said.least = fmin(said.least, fields[i].f);
        }
    }
}

static cluster *set_up(sleet_payload payload, double loss)
{
    struct sim_config config = {.nodes = NODES, .seed = test_seed(), .link = {.delay = US(200), .loss = loss},
                                .kind = {.payload = (uint8_t)payload}, .log = {.emit = note}};
    config.state_tensors = payload == SLEET_MODEL ? 0 : 1;
    memset(&said, 0, sizeof said);
    said.least = INFINITY;
    return ready_cluster(&config, counts, 2);
}

/* The largest difference that the node sees to another one; -1: none is known. */
static double seen(cluster *c, uint32_t node)
{
    engine_peer peers[NODES];
    double most = -1;
    uint32_t n = engine_get_peers(sim_engine(cluster_sim(c), node), peers, NODES, sim_now(cluster_sim(c)));
    for (uint32_t i = 0; i < n; i++)
        most = fmax(most, peers[i].drift);
    return most;
}

/* Each node takes a step of its own before each round. */
static void repaired_loss_is_no_drift(void)
{
    cluster *c = set_up(SLEET_MODEL, 0.1);
    sleet_rng rng = {test_seed()};
    REQUIRE(c);
    for (unsigned i = 0; i < test_repeats(500); i++) {
        for (uint32_t k = 0; k < NODES; k++)
            for (uint64_t j = 0; j < cluster_elements(c); j++)
                cluster_values(c, k)[j] += (float)(rng_double(&rng) - 0.5);
        CHECK(cluster_round(c, NULL));
        cluster_idle(c, MS(20));
    }
    cluster_idle(c, SEC(2));
    for (uint32_t k = 0; k < NODES; k++)
        CHECK(seen(c, k) == 0); /* bit for bit */
    CHECK_EQ(said.alarms, 0);
    cluster_free(c);
}

/* Parameters of a set of gradients, one node's 5 % off in each round. */
static void who_is_apart_is_named(void)
{
    cluster *c = set_up(SLEET_GRADIENT, 0);
    sleet_rng rng = {test_seed()};
    float *values = malloc(counts[1] * sizeof *values);
    REQUIRE(c && values);
    for (uint64_t j = 0; j < counts[1]; j++)
        values[j] = (float)(rng_double(&rng) - 0.5);
    for (unsigned round = 0; round < 8; round++) {
        for (uint32_t k = 0; k < NODES; k++)
            for (uint64_t j = 0; j < counts[1]; j++)
                cluster_values(c, k)[counts[0] + j] =
                    values[j] * (k == ODD && round >= 4 ? 1 + 0.1f * (float)(rng_double(&rng) - 0.5) * 1.7320508f : 1);
        CHECK(cluster_round(c, NULL));
        cluster_idle(c, SEC(1));
        if (round < 4)
            CHECK(said.alarms == 0 && seen(c, 0) <= 0);
    }
    CHECK(said.alarms >= NODES - 1 && said.of_odd == said.alarms);
    CHECK(said.least > 0.01 && said.most < 0.12); /* 0.05, by four projections */
    CHECK(seen(c, 0) > 0.01 && seen(c, ODD) > 0.01);
    free(values);
    cluster_free(c);
}

/* The root of the mean square of what the projections differ by, over the larger norm. */
static void sketches_tell_the_distance(void)
{
    struct wire_sketch a = {.digest = 1, .norm = 2, .projection = {1, 2, 3, 4}}, b = a;
    CHECK(drift_between(&a, &b) == 0);
    b.digest = 2; /* a bit */
    CHECK(drift_between(&a, &b) == 0);
    for (int i = 0; i < WIRE_PROJECTIONS; i++)
        b.projection[i] += 0.5f;
    CHECK_NEAR(drift_between(&a, &b), 0.25, 1e-6);
    CHECK_NEAR(drift_between(&b, &a), 0.25, 1e-6);
    a.norm = b.norm = 0;
    CHECK(drift_between(&a, &b) == 0);
}

/* What a member tells may be anything that is finite; the next that it tells counts as it should. */
static void a_lie_does_not_stay(void)
{
    static struct set s;
    static struct member members[2];
    struct view view = {.members = members, .n = 2};
    const struct env e = {.members = members, .view = &view};
    struct wire_sketch k = {.projection = {FLT_MAX, FLT_MAX}, .before = {FLT_MAX}};
    members[1].used = members[1].alive = members[1].sets[0].attached = true;
    s.drift.n = DRIFT_ROUNDS;
    for (uint32_t i = 0; i < DRIFT_ROUNDS; i++) {
        s.drift.own[i] = (struct wire_sketch){.round = i + 1, .norm = 1, .before = {1}};
        s.drift.differs[i] = true;
    }
    for (k.round = 1; k.round <= DRIFT_ROUNDS; k.round++) {
        drift_recv(&s, &e, &members[1], &k);
        CHECK(isfinite(drift_distance(&s, &e).consensus) && isfinite(drift_distance(&s, &e).mixing));
        k = (struct wire_sketch){.round = k.round, .digest = 1, .norm = 1, .projection = {1}};
    }
    CHECK(drift_distance(&s, &e).consensus < 2);
}

TEST_SUITE(drift) = {
    TEST(repaired_loss_is_no_drift),
    TEST(who_is_apart_is_named),
    TEST(sketches_tell_the_distance),
    TEST(a_lie_does_not_stay),
    TEST_END,
};
