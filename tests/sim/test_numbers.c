/* Nodes driven exactly in step: all start at the same instant, the next step
 * begins when all have reported.  Whoever is ahead or new comes together with
 * the others, though none of them moves on while it waits. */
#include "engine_internal.h"
#include "forge.h"

#define STEPS 8 /* to come together */

static const uint64_t counts[] = {700};

/* Every node in the same round, which nobody had to wait out. */
static bool in_step(cluster *c)
{
    for (uint32_t i = 0; i < nodes_of(c); i++) {
        const struct cluster_report *r = cluster_report(c, i);
        if (r->report.round != cluster_report(c, 0)->report.round || r->report.coverage < 1.0 ||
            (r->report.flags & (SLEET_DEADLINE | SLEET_ALONE)))
            return false;
    }
    return true;
}

static bool come_together(cluster *c, sleet_duration compute)
{
    bool ok = false;
    for (int step = 0; step < STEPS && !ok; step++) {
        CHECK(cluster_round(c, NULL));
        ok = in_step(c);
        cluster_idle(c, compute);
    }
    return ok;
}

static void one_ahead_is_met(void)
{
    for (unsigned i = 0; i < test_repeats(70); i++) {
        sleet_rng rng = {test_seed() + i};
        struct sim_config config = {.nodes = 2 + i % 7,
                                    .seed = rng.state,
                                    .link = {.delay = US(100 + rng_below(&rng, 2000))}};
        uint32_t ahead = rng_below(&rng, config.nodes);
        cluster *c = ready_cluster(&config, counts, 1);
        REQUIRE(c);
        CHECK_EQ(cluster_start(c, ahead, NULL), SLEET_OK);
        cluster_idle(c, SEC(3)); /* nobody comes */
        if (!CHECK(come_together(c, i % 2 ? 0 : MS(20))))
            printf("seed %" PRIu64 ": node %u of %u\n", config.seed, ahead, config.nodes);
        cluster_free(c);
    }
}

static void a_newcomer_falls_into_step(void)
{
    for (unsigned i = 0; i < test_repeats(70); i++) {
        sleet_rng rng = {test_seed() + i};
        struct sim_config config = {.nodes = 2 + i % 7,
                                    .seed = rng.state,
                                    .link = {.delay = US(100 + rng_below(&rng, 2000))}};
        uint32_t late = rng_below(&rng, config.nodes);
        cluster *c = ready_cluster(&config, counts, 1);
        REQUIRE(c);
        sim_kill(cluster_sim(c), late);
        for (uint32_t k = 0; k < 10; k++)
            CHECK(cluster_round(c, NULL));
        REQUIRE(sim_restart(cluster_sim(c), late));
        CHECK_EQ(cluster_register(c, late), SLEET_OK);
        cluster_idle(c, US(rng_below(&rng, 4000)));
        if (rng_below(&rng, 2)) {
            CHECK_EQ(cluster_start(c, late, NULL), SLEET_OK);
            cluster_idle(c, US(rng_below(&rng, 4000)));
        }
        if (!CHECK(come_together(c, i % 2 ? 0 : MS(20))))
            printf("seed %" PRIu64 ": node %u of %u\n", config.seed, late, config.nodes);
        cluster_free(c);
    }
}

/* ---- the lower half of the round's number wraps ------------------------------ */

/* Every node believes that it has closed round `number`, and that the others have. */
static void move_to_round(cluster *c, uint64_t number)
{
    for (uint32_t i = 0; i < FORGE_NODES; i++) {
        engine *e = sim_engine(cluster_sim(c), i);
        struct set *s = &e->sets[cluster_set(c, i)];
        struct env env = engine_env(e);
        for (uint32_t slot = 0; slot < ROUNDS_RING; slot++)
            set_retire(s, &env, slot);
        s->own_round = number;
        for (uint32_t k = 1; k < e->view.n; k++) {
            struct member_set now = e->members[k].sets[s->handle];
            now.round = now.round_as_of = number;
            now.closed = true;
            view_learn(&e->view, &e->members[k], (uint32_t)s->handle, &now);
        }
    }
}

static void rounds_go_past_2_32(void)
{
    static const uint64_t starts[] = {0x7ffffffd, 0xfffffffd, 0x1fffffffd};
    sleet_rng rng = {test_seed()};
    for (unsigned k = 0; k < 3; k++) {
        struct tape t = {.kept = calloc(KEPT, sizeof *t.kept)};
        cluster *c = forged_cluster(false);
        REQUIRE(c && t.kept);
        cluster_idle(c, MS(100));
        move_to_round(c, starts[k]);
        sim_on_datagram(cluster_sim(c), record, &t);
        for (int i = 0; i < 10; i++)
            CHECK(exact_round(c, &rng));
        CHECK_EQ(cluster_report(c, 0)->report.round, starts[k] + 10);
        play(c, &t); /* from before the wrap as well */
        for (int i = 0; i < 5; i++)
            CHECK(exact_round(c, &rng));
        finish(c);
        free(t.kept);
    }
}

TEST_SUITE(numbers) = {
    TEST(one_ahead_is_met),
    TEST(a_newcomer_falls_into_step),
    TEST(rounds_go_past_2_32),
    TEST_END,
};
