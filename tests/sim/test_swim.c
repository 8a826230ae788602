/* SWIM among up to 1,000 nodes without engines: how fast the dead are found, at what cost,
 * and that the living are not wronged. */
#include "sim/detect.h"
#include "sleet_test.h"

static bool all_agree(members *m, uint32_t nodes, uint32_t live)
{
    for (uint32_t i = 0; i < nodes; i++)
        if (members_node(m, i) && members_node(m, i)->live != live)
            return false;
    return true;
}

/* What the papers lead one to expect, see docs/architecture.md. */
static void the_dead_are_found(void)
{
    uint32_t nodes = test_repeats(1000) < 1000 ? 200 : 1000;
    struct members_config c = {.nodes = nodes, .seed = test_seed()};
    struct detection d;
    REQUIRE(detect(&c, 16, &d));
    CHECK(d.first > 1 && d.first < 3.5);
    CHECK(d.spread < 1.5); /* rounds of gossip grow with log n: 1.1 at 1,000 */
    CHECK(d.dead < 22);
    CHECK_EQ(d.missed, 0);
    CHECK_EQ(d.wronged, 0);
    CHECK(d.idle_messages < 3); /* a probe, its answer, a comparison now and then */
    CHECK(d.idle_bytes < 200);
    CHECK(d.busy_messages < 20);
    CHECK(d.memory_bytes < nodes * 400 + 65536);
}

/* The load of a node does not grow with the job. */
static void the_load_is_constant(void)
{
    struct detection few, many;
    struct members_config c = {.nodes = 50, .seed = test_seed()};
    REQUIRE(detect(&c, 4, &few));
    c.nodes = 400;
    REQUIRE(detect(&c, 4, &many));
    CHECK_NEAR(few.idle_messages, many.idle_messages, 0.3);
    CHECK(many.spread < 2.5 * few.spread + 0.2);
}

static void loss_does_not_kill(void)
{
    struct members_config c = {.nodes = 100, .seed = test_seed(), .loss = 0.1};
    struct detection d;
    REQUIRE(detect(&c, 4, &d));
    CHECK_EQ(d.missed, 0);
    struct starvation s;
    REQUIRE(detect_starved(&c, 0, SEC(1), SEC(1), 60, &s));
    CHECK_EQ(s.declared, 0);
}

/* Lifeguard's own experiment: its gain over SWIM alone is the point. */
static void the_starved_do_not_accuse(void)
{
    struct members_config c = {.nodes = 128, .seed = test_seed()};
    struct starvation with, without;
    REQUIRE(detect_starved(&c, 8, SEC(16), MS(64), 90, &with));
    c.lifeguard_off = true;
    REQUIRE(detect_starved(&c, 8, SEC(16), MS(64), 90, &without));
    CHECK(without.declared > 100);
    CHECK(with.declared <= without.declared / 50);
    CHECK(with.declared_by_starved <= without.declared_by_starved / 50);
}

/* All know one node only, some links are bad: one job, every time. */
static void strangers_find_one_another(void)
{
    for (unsigned i = 0; i < test_repeats(20); i++) {
        struct members_config c = {
            .nodes = 64, .seed = test_seed() + i, .loss = 0.02 * (i % 5), .strangers = true};
        members *m = members_new(&c);
        REQUIRE(m);
        int periods = 0;
        while (periods++ < 30 && !all_agree(m, 64, 64))
            members_run(m, SEC(1));
        CHECK(all_agree(m, 64, 64));
        members_free(m);
    }
}

static void no_ghosts_after_many_restarts(void)
{
    struct members_config c = {.nodes = 12, .seed = test_seed(), .loss = 0.05};
    sleet_rng rng = {test_seed()};
    members *m = members_new(&c);
    REQUIRE(m);
    members_run(m, SEC(3));
    for (int life = 0; life < 20; life++) {
        REQUIRE(members_restart(m, 5, rng_below(&rng, 5)));
        members_run(m, MS(200) + MS(1) * rng_below(&rng, 3000));
    }
    members_run(m, SEC(15));
    CHECK(all_agree(m, 12, 12));
    for (uint32_t i = 0; i < 12; i++) {
        const struct swim *s = members_node(m, i);
        const struct wire_update *r = &s->members[swim_find(s, 6)].record;
        CHECK_EQ(r->boot_id, 6000 + 21);
        CHECK_EQ(r->status, STATUS_ALIVE);
    }
    members_kill(m, 5); /* and dead it stays */
    members_run(m, SEC(60));
    CHECK(all_agree(m, 12, 11));
    members_run(m, SEC(700));
    for (uint32_t i = 0; i < 12; i++)
        if (i != 5)
            CHECK_EQ(members_node(m, i)->n, 11);
    members_free(m);
}

static void a_dead_edge_is_no_death(void)
{
    struct members_config c = {.nodes = 8, .seed = test_seed()};
    members *m = members_new(&c);
    REQUIRE(m);
    members_cut(m, 2, 6, true);
    members_cut(m, 6, 2, true);
    members_cut(m, 3, 4, true); /* and one way only */
    members_run(m, SEC(60));
    CHECK(all_agree(m, 8, 8));
    const struct swim *s = members_node(m, 2);
    CHECK(s->members[swim_find(s, 7)].unreachable);
    CHECK_EQ(s->members[swim_find(s, 7)].record.incarnation, 0); /* never even suspected */
    members_free(m);
}

TEST_SUITE(swim) = {
    TEST(the_dead_are_found),         TEST(the_load_is_constant),
    TEST(loss_does_not_kill),         TEST(the_starved_do_not_accuse),
    TEST(strangers_find_one_another), TEST(no_ghosts_after_many_restarts),
    TEST(a_dead_edge_is_no_death),    TEST_END,
};
