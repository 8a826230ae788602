/* SWIM's rules one by one: precedence of news, lives, dissemination, suspicion, probes. */
#include "member/swim.h"
#include "sleet_test.h"

static struct swim s;
static struct wire_members frame;
static struct swim_out out;

static void begin(void)
{
    struct swim_config c = {.node_id = 1, .boot_id = 11, .seed = 3};
    REQUIRE(swim_init(&s, &c, (sleet_time){0}));
}

static void end(void)
{
    swim_fini(&s);
}

static struct wire_update about(uint64_t node, uint64_t boot, uint32_t incarnation, uint8_t status)
{
    struct wire_update u = {
        .node_id = node, .boot_id = boot, .incarnation = incarnation, .status = status};
    u.by = status == STATUS_SUSPECT || status == STATUS_DEAD ? 99 : 0;
    return u;
}

static bool tell(uint64_t node, uint64_t boot, uint32_t incarnation, uint8_t status)
{
    struct wire_update u = about(node, boot, incarnation, status);
    return swim_accept(&s, &u, true);
}

static bool known(uint64_t node)
{
    return swim_find(&s, node) != SWIM_NONE;
}

/* One that is not known has a status of its own. */
static const struct swim_member *member(uint64_t node)
{
    static const struct swim_member none = {.record.status = 255};
    return known(node) ? &s.members[swim_find(&s, node)] : &none;
}

static uint8_t status(uint64_t node)
{
    return member(node)->record.status;
}

/* ---- precedence ---------------------------------------------------------------- */

/* All orders of arrival of news of one life end in the same record. */
static void news_of_a_life_commutes(void)
{
    static const struct {
        uint32_t incarnation;
        uint8_t status;
    } news[] = {{0, STATUS_ALIVE}, {0, STATUS_SUSPECT}, {1, STATUS_ALIVE},  {1, STATUS_SUSPECT},
                {1, STATUS_DEAD},  {2, STATUS_ALIVE},   {2, STATUS_SUSPECT}};
    enum { N = sizeof news / sizeof *news };
    sleet_rng rng = {test_seed()};
    for (unsigned round = 0; round < test_repeats(500); round++) {
        uint32_t order[N];
        begin();
        tell(5, 50, 0, STATUS_ALIVE);
        for (uint32_t i = 0; i < N; i++)
            order[i] = i;
        for (uint32_t i = N - 1; i > 0; i--) {
            uint32_t k = rng_below(&rng, i + 1), t = order[i];
            order[i] = order[k];
            order[k] = t;
        }
        for (uint32_t i = 0; i < N; i++)
            tell(5, 50, news[order[i]].incarnation, news[order[i]].status);
        CHECK_EQ(status(5), STATUS_SUSPECT);
        CHECK_EQ(member(5)->record.incarnation, 2);
        end();
    }
}

static void incarnations_wrap(void)
{
    begin();
    tell(5, 50, UINT32_MAX, STATUS_ALIVE);
    CHECK(tell(5, 50, UINT32_MAX, STATUS_DEAD));
    CHECK(tell(5, 50, 0, STATUS_ALIVE)); /* the refutation after the last one */
    CHECK_EQ(status(5), STATUS_ALIVE);
    CHECK(!tell(5, 50, UINT32_MAX, STATUS_DEAD));
    end();
}

static void a_new_life_replaces_the_old(void)
{
    begin();
    tell(5, 50, 7, STATUS_ALIVE);
    CHECK(!tell(5, 51, 9, STATUS_DEAD)); /* says nothing of the life that is known */
    CHECK(tell(5, 51, 0, STATUS_ALIVE)); /* whatever its incarnation */
    CHECK_EQ(member(5)->record.boot_id, 51);
    CHECK(!tell(5, 50, 7, STATUS_ALIVE)); /* no ghost */
    CHECK(!tell(5, 50, 9, STATUS_DEAD));
    CHECK_EQ(status(5), STATUS_ALIVE);
    CHECK(tell(5, 50, 8, STATUS_ALIVE)); /* only a living one can say that */
    CHECK_EQ(member(5)->record.boot_id, 50);
    CHECK(!tell(5, 51, 0, STATUS_ALIVE));
    CHECK_EQ(s.n, 2);
    end();
}

static void what_a_node_says_itself_counts_most(void)
{
    begin();
    tell(5, 50, 0, STATUS_ALIVE);
    tell(5, 51, 3, STATUS_ALIVE);
    struct wire_update who = {.node_id = 5, .boot_id = 50};
    CHECK_EQ(swim_meet(&s, &who, (sleet_time){1}), swim_find(&s, 5));
    CHECK_EQ(member(5)->record.boot_id, 50);
    CHECK(member(5)->record.incarnation > 0); /* others have it as a former one */
    CHECK_EQ(status(5), STATUS_ALIVE);
    who.node_id = 1;
    CHECK_EQ(swim_meet(&s, &who, (sleet_time){1}), SWIM_NONE);
    end();
}

static void an_accused_node_defends_itself(void)
{
    begin();
    tell(1, 11, 0, STATUS_SUSPECT);
    CHECK_EQ(s.members[SWIM_SELF].record.incarnation, 1);
    CHECK_EQ(s.health, 1);
    tell(1, 11, 0, STATUS_DEAD); /* refuted already */
    CHECK_EQ(s.members[SWIM_SELF].record.incarnation, 1);
    tell(1, 11, 5, STATUS_LEFT);
    CHECK_EQ(s.members[SWIM_SELF].record.incarnation, 6);
    tell(1, 12, 9, STATUS_DEAD); /* another life, and dead: nothing to say */
    CHECK_EQ(s.members[SWIM_SELF].record.incarnation, 6);
    tell(1, 12, 9, STATUS_ALIVE); /* somebody takes it for this one */
    CHECK_EQ(s.members[SWIM_SELF].record.incarnation, 10);
    CHECK_EQ(s.members[SWIM_SELF].record.status, STATUS_ALIVE);
    swim_leave(&s, (sleet_time){1});
    tell(1, 11, 20, STATUS_DEAD);
    CHECK_EQ(s.members[SWIM_SELF].record.status, STATUS_LEFT);
    CHECK_EQ(s.members[SWIM_SELF].record.incarnation, 10);
    end();
}

static void addresses_fill_up(void)
{
    struct wire_update u = about(5, 50, 0, STATUS_ALIVE);
    begin();
    u.at[CANDIDATE_V4] = (sleet_addr){.ip = {[15] = 4}, .port = 1};
    CHECK(swim_accept(&s, &u, true));
    u.at[CANDIDATE_V4].port = 2;
    u.at[CANDIDATE_OBSERVED] = (sleet_addr){.ip = {[15] = 9}, .port = 3};
    u.key[0] = 1;
    CHECK(swim_accept(&s, &u, true));
    CHECK(!swim_accept(&s, &u, true));
    CHECK_EQ(member(5)->record.at[CANDIDATE_V4].port, 1);
    CHECK_EQ(member(5)->record.at[CANDIDATE_OBSERVED].port, 3);
    CHECK_EQ(member(5)->record.key[0], 1);
    u.incarnation = 1; /* its own newer word */
    CHECK(swim_accept(&s, &u, true));
    CHECK_EQ(member(5)->record.at[CANDIDATE_V4].port, 2);
    end();
}

static void unlisted_members_are_not_taken(void)
{
    struct swim_config c = {.node_id = 1, .boot_id = 11, .listed_only = true};
    REQUIRE(swim_init(&s, &c, (sleet_time){0}));
    CHECK(!tell(5, 50, 0, STATUS_ALIVE));
    CHECK_EQ(s.n, 1);
    struct wire_update who = {.node_id = 5, .boot_id = 50};
    CHECK(swim_meet(&s, &who, (sleet_time){1}) != SWIM_NONE);
    CHECK(tell(5, 50, 0, STATUS_SUSPECT));
    end();
}

/* ---- bounds ------------------------------------------------------------------------ */

static void the_table_is_bounded(void)
{
    begin();
    for (uint64_t i = 2; i <= SWIM_MEMBERS_MAX; i++)
        CHECK(tell(i, i, 0, STATUS_ALIVE));
    CHECK_EQ(s.n, SWIM_MEMBERS_MAX);
    CHECK(!tell(9999, 1, 0, STATUS_ALIVE));
    CHECK_EQ(s.refused, 1);
    tell(77, 77, 0, STATUS_DEAD); /* the dead make room */
    CHECK(tell(9999, 1, 0, STATUS_ALIVE));
    CHECK(!known(77));
    CHECK_EQ(s.n, SWIM_MEMBERS_MAX);
    CHECK(swim_bytes(&s) < SWIM_MEMBERS_MAX * 400);
    end();
}

static void the_dead_are_forgotten(void)
{
    begin();
    for (uint64_t i = 2; i < 40; i++)
        tell(i, i, 0, STATUS_ALIVE);
    for (uint64_t i = 2; i < 40; i++)
        tell(i, i, 0, i % 2 ? STATUS_DEAD : STATUS_LEFT);
    s.members[swim_find(&s, 7)].slot = 3; /* in use */
    CHECK_EQ(s.live, 1);
    swim_expire(&s, (sleet_time){SEC(599)});
    CHECK_EQ(s.n, 39);
    swim_expire(&s, (sleet_time){SEC(601)});
    CHECK_EQ(s.n, 2);
    CHECK(known(7));
    uint32_t changed = 0;
    while (swim_changed(&s) != SWIM_NONE)
        changed++;
    CHECK_EQ(changed, 1);         /* those that are gone are not spoken of */
    tell(8, 80, 0, STATUS_ALIVE); /* a number is used again while it is in that list */
    CHECK_EQ(swim_changed(&s), swim_find(&s, 8));
    CHECK_EQ(swim_changed(&s), SWIM_NONE);
    end();
}

/* ---- dissemination ------------------------------------------------------------------ */

static void news_is_sent_a_number_of_times(void)
{
    uint32_t sent = 0;
    begin();
    for (uint64_t i = 2; i < 10; i++)
        tell(i, i, 0, STATUS_ALIVE);
    CHECK_EQ(swim_sends(&s), 4);
    tell(10, 10, 0, STATUS_ALIVE);
    CHECK_EQ(swim_sends(&s), 8); /* ceil(log10(11)) = 2 decades */
    while (swim_piggyback(&s, swim_find(&s, 2), &frame))
        for (uint32_t i = 0; i < frame.n; i++)
            sent += frame.updates[i].node_id == 5;
    CHECK_EQ(sent, 8);
    tell(5, 5, 0, STATUS_DEAD);
    REQUIRE(swim_piggyback(&s, swim_find(&s, 3), &frame));
    CHECK_EQ(frame.n, 2); /* and of 2 itself, which it was never told */
    end();
}

static void the_least_sent_goes_first(void)
{
    struct gossip g;
    gossip_init(&g);
    REQUIRE(gossip_grow(&g, 8));
    CHECK_EQ(gossip_first(&g), GOSSIP_END);
    for (uint32_t i = 0; i < 4; i++)
        gossip_add(&g, i);
    gossip_sent(&g, 0, 3);
    gossip_sent(&g, 2, 3);
    CHECK_EQ(gossip_first(&g), 1);
    CHECK_EQ(gossip_after(&g, 1), 3);
    CHECK_EQ(gossip_after(&g, 3), 0);
    CHECK_EQ(gossip_after(&g, 0), 2);
    CHECK_EQ(gossip_after(&g, 2), GOSSIP_END);
    gossip_add(&g, 2); /* newer news of it */
    CHECK_EQ(gossip_after(&g, 3), 2);
    gossip_sent(&g, 0, 3);
    gossip_sent(&g, 0, 3);
    CHECK(!gossip_has(&g, 0));
    CHECK_EQ(g.n, 3);
    gossip_fini(&g);
}

static void the_accused_is_told_first(void)
{
    begin();
    for (uint64_t i = 2; i < 100; i++)
        tell(i, i, 0, STATUS_ALIVE);
    while (swim_piggyback(&s, swim_find(&s, 9), &frame))
        ;
    tell(50, 50, 0, STATUS_SUSPECT);
    while (swim_piggyback(&s, swim_find(&s, 9), &frame))
        ;
    REQUIRE(swim_piggyback(&s, swim_find(&s, 50), &frame)); /* though the news is old */
    CHECK_EQ(frame.updates[0].node_id, 50);
    CHECK_EQ(frame.updates[0].status, STATUS_SUSPECT);
    end();
}

/* ---- suspicion and probes ------------------------------------------------------------ */

static void suspicion_shrinks_with_confirmations(void)
{
    begin();
    CHECK_EQ(swim_suspicion(&s, 0), SEC(5)); /* nobody could confirm: the least */
    for (uint64_t i = 2; i < 100; i++)
        tell(i, i, 0, STATUS_ALIVE);
    CHECK_NEAR(swim_suspicion(&s, 3), SEC(10), SEC(1) / 100); /* 5 log10(100) */
    CHECK_NEAR(swim_suspicion(&s, 0), SEC(60), SEC(1) / 100);
    CHECK_NEAR(swim_suspicion(&s, 1), SEC(35), SEC(1) / 100); /* log 2 / log 4 = 1/2 of the way */
    tell(5, 5, 0, STATUS_SUSPECT);
    uint32_t i = swim_find(&s, 5);
    CHECK_NEAR(s.due.at[i].ns, SEC(60), SEC(1) / 100);
    tell(5, 5, 0, STATUS_SUSPECT); /* the same accuser */
    CHECK_NEAR(s.due.at[i].ns, SEC(60), SEC(1) / 100);
    for (uint64_t by = 2; by < 5; by++)
        swim_accuse(&s, i, by);
    CHECK_NEAR(s.due.at[i].ns, SEC(10), SEC(1) / 100);
    swim_accuse(&s, i, 7);
    CHECK_NEAR(s.due.at[i].ns, SEC(10), SEC(1) / 100);
    end();
}

static void a_member_that_is_heard_is_sound(void)
{
    begin();
    for (uint64_t i = 2; i < 10; i++)
        tell(i, i, 0, STATUS_ALIVE);
    uint32_t i = swim_find(&s, 5);
    swim_heard(&s, i, (sleet_time){SEC(1)});
    swim_expire(&s, (sleet_time){SEC(2)});
    tell(5, 5, 0, STATUS_SUSPECT);
    CHECK(!swim_sound(&s, i)); /* at once */
    swim_heard(&s, i, (sleet_time){SEC(3)});
    CHECK(swim_sound(&s, i));
    for (int64_t t = 4; t < 100; t++) { /* this node never declares it dead */
        swim_heard(&s, i, (sleet_time){SEC(t)});
        swim_expire(&s, (sleet_time){SEC(t)});
    }
    CHECK_EQ(status(5), STATUS_SUSPECT);
    tell(5, 5, 1, STATUS_ALIVE);
    CHECK_EQ(status(5), STATUS_ALIVE);
    end();
}

/* The next message of a kind, 0: a PING. */
static bool find_message(uint8_t kind)
{
    while (swim_send(&s, &out))
        if (kind == 0 ? out.ping : !out.ping && out.frame.kind == kind)
            return true;
    return false;
}

/* Of nine members the one whose probe has gone unanswered for the timeout. */
static uint32_t one_is_silent(void)
{
    begin();
    for (uint64_t i = 2; i < 10; i++)
        tell(i, i, 0, STATUS_ALIVE);
    swim_expire(&s, s.period_at);
    uint32_t target = find_message(0) ? out.to : SWIM_NONE;
    swim_expire(&s, time_add(s.now, MS(201)));
    return target;
}

static void a_silent_member_is_asked_through_others(void)
{
    uint32_t target = one_is_silent();
    REQUIRE(target != SWIM_NONE);
    uint32_t helpers = 0;
    while (find_message(MEMBERS_PROBE)) {
        helpers++;
        CHECK(out.to != target);
        CHECK_EQ(out.frame.subject, s.members[target].record.node_id);
    }
    CHECK_EQ(helpers, SWIM_HELPERS);
    frame = (struct wire_members){.kind = MEMBERS_PROBE_ANSWER,
                                  .flags = MEMBERS_HEARD,
                                  .sequence = s.probe.sequence,
                                  .subject = s.members[target].record.node_id};
    swim_recv(&s, swim_find(&s, 3), &frame, s.now);
    swim_expire(&s, s.period_at);
    CHECK_EQ(s.members[target].record.status, STATUS_ALIVE); /* one's own edge is no proof */
    CHECK(s.members[target].unreachable);
    swim_heard(&s, target, s.now);
    CHECK(!s.members[target].unreachable);
    end();
}

static void nobody_answers(void)
{
    uint32_t target = one_is_silent();
    REQUIRE(target != SWIM_NONE);
    frame = (struct wire_members){.kind = MEMBERS_PROBE_ANSWER,
                                  .sequence = s.probe.sequence,
                                  .subject = s.members[target].record.node_id};
    swim_recv(&s, swim_find(&s, 3), &frame, s.now); /* a helper that did not hear it either */
    swim_expire(&s, s.period_at);
    CHECK_EQ(s.members[target].record.status, STATUS_SUSPECT);
    CHECK_EQ(s.members[target].record.by, 1);
    CHECK_EQ(s.health, 2); /* two helpers did not answer at all: it may be us */
    CHECK_EQ(time_since(s.period_at, s.now), SEC(3));
    end();
}

static void a_helper_answers_either_way(void)
{
    begin();
    for (uint64_t i = 2; i < 10; i++)
        tell(i, i, 0, STATUS_ALIVE);
    frame = (struct wire_members){.kind = MEMBERS_PROBE, .sequence = 8, .subject = 5};
    swim_recv(&s, swim_find(&s, 3), &frame, (sleet_time){MS(1)});
    REQUIRE(find_message(0));
    CHECK_EQ(out.to, swim_find(&s, 5));
    swim_heard(&s, swim_find(&s, 5), (sleet_time){MS(2)});
    REQUIRE(find_message(MEMBERS_PROBE_ANSWER));
    CHECK_EQ(out.to, swim_find(&s, 3));
    CHECK_EQ(out.frame.flags, MEMBERS_HEARD);
    CHECK_EQ(out.frame.sequence, 8);
    frame.subject = 77; /* not known */
    swim_recv(&s, swim_find(&s, 3), &frame, (sleet_time){MS(3)});
    swim_expire(&s, (sleet_time){MS(3)});
    REQUIRE(find_message(MEMBERS_PROBE_ANSWER));
    CHECK_EQ(out.frame.flags, 0);
    CHECK_EQ(s.relays_n, 0);
    for (uint64_t i = 0; i < 100; i++) { /* no more than there is room for */
        frame.subject = 2 + i % 8;
        swim_recv(&s, swim_find(&s, 3), &frame, (sleet_time){MS(4)});
    }
    CHECK_EQ(s.relays_n, SWIM_RELAYS);
    end();
}

static void a_pause_blames_nobody(void)
{
    begin();
    for (uint64_t i = 2; i < 10; i++)
        tell(i, i, 0, STATUS_ALIVE);
    swim_expire(&s, s.period_at);
    tell(4, 4, 0, STATUS_SUSPECT);
    swim_paused(&s, SEC(100));
    swim_expire(&s, (sleet_time){SEC(100)});
    CHECK_EQ(status(4), STATUS_SUSPECT); /* not declared dead for the time nobody listened */
    CHECK_EQ(s.live, 9);
    CHECK_EQ(s.health, 1);
    end();
}

/* ---- the frame ------------------------------------------------------------------------ */

static void frames_have_one_form(void)
{
    uint8_t bytes[WIRE_BODY_MAX + 1], again[WIRE_BODY_MAX];
    static struct wire_members f;
    f = (struct wire_members){.kind = MEMBERS_PROBE, .n = 3, .sequence = 5, .subject = 9};
    f.updates[0] = about(3, 30, 1, STATUS_DEAD);
    f.updates[1] = about(4, 40, 2, STATUS_ALIVE);
    f.updates[1].key[31] = 7;
    f.updates[1].at[CANDIDATE_V6] = (sleet_addr){.ip = {0xfd}, .port = 7700};
    f.updates[2] = about(5, 50, 3, STATUS_LEFT);
    size_t n = wire_members_encode(bytes, sizeof bytes, &f);
    CHECK_EQ(n, WIRE_MEMBERS_HEAD + 30 + (22 + 32 + 18) + 22);
    REQUIRE(wire_members_decode(&frame, bytes, n) == SLEET_OK);
    CHECK_EQ(wire_members_encode(again, sizeof again, &frame), n);
    CHECK_MEM(bytes, again, n);
    for (size_t i = 0; i < n; i++)
        CHECK_EQ(wire_members_decode(&frame, bytes, i), SLEET_EMALFORMED);
    CHECK_EQ(wire_members_decode(&frame, bytes, n + 1), SLEET_EMALFORMED);
    for (size_t i = 0; i < 8 * n; i++) { /* any other accepted bytes are another frame */
        bytes[i / 8] ^= (uint8_t)(1 << i % 8);
        if (wire_members_decode(&frame, bytes, n) == SLEET_OK) {
            CHECK_EQ(wire_members_encode(again, sizeof again, &frame), n);
            CHECK_MEM(bytes, again, n);
        }
        bytes[i / 8] ^= (uint8_t)(1 << i % 8);
    }
    f.updates[1].by = 3; /* only the accused have an accuser */
    CHECK_EQ(wire_members_encode(bytes, sizeof bytes, &f), 0);
    f.updates[1].by = 0;
    f.kind = MEMBERS_TABLE_ASK; /* carries no news */
    CHECK_EQ(wire_members_encode(bytes, sizeof bytes, &f), 0);
    f.kind = MEMBERS_TABLE; /* has no subject */
    CHECK_EQ(wire_members_encode(bytes, sizeof bytes, &f), 0);
}

TEST_SUITE(swim) = {
    TEST(frames_have_one_form),
    TEST(news_of_a_life_commutes),
    TEST(incarnations_wrap),
    TEST(a_new_life_replaces_the_old),
    TEST(what_a_node_says_itself_counts_most),
    TEST(an_accused_node_defends_itself),
    TEST(addresses_fill_up),
    TEST(unlisted_members_are_not_taken),
    TEST(the_table_is_bounded),
    TEST(the_dead_are_forgotten),
    TEST(news_is_sent_a_number_of_times),
    TEST(the_least_sent_goes_first),
    TEST(the_accused_is_told_first),
    TEST(suspicion_shrinks_with_confirmations),
    TEST(a_member_that_is_heard_is_sound),
    TEST(a_silent_member_is_asked_through_others),
    TEST(nobody_answers),
    TEST(a_helper_answers_either_way),
    TEST(a_pause_blames_nobody),
    TEST_END,
};
