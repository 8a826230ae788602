#include "base/rng.h"
#include "member/member.h"
#include "sleet_test.h"
#include <string.h>

#define PEERS (MEMBERS_MAX - 1)

static sleet_addr addresses[PEERS];

static void fill_addresses(void)
{
    memset(addresses, 0, sizeof addresses);
    for (uint32_t i = 0; i < PEERS; i++) {
        addresses[i].ip[0] = 0xfd;
        addresses[i].ip[15] = (uint8_t)(i / 8); /* eight ports an address */
        addresses[i].port = (uint16_t)(7000 + i % 8);
    }
}

static bool fill(struct view *v, uint32_t count)
{
    bool ok = view_init(v, count + 1);
    for (uint32_t i = 0; ok && i < count; i++)
        ok = view_add(v, &addresses[i]) != NULL;
    return ok;
}

static void the_heap_gives_the_earliest(void)
{
    struct heap h;
    sleet_rng rng = {test_seed()};
    uint32_t wrong = 0;
    REQUIRE(heap_init(&h, 100));
    CHECK_EQ(heap_first(&h), 0);
    for (int i = 0; i < 5000; i++) {
        uint32_t id = rng_below(&rng, 100), best = 0;
        sleet_time at = rng_below(&rng, 10) ? (sleet_time){rng_below(&rng, 50)} : TIME_NEVER;
        heap_move(&h, id, at);
        for (uint32_t k = 1; k < 100; k++)
            if (time_before(h.at[k], h.at[best]))
                best = k;
        wrong += heap_first(&h) != best;
    }
    CHECK_EQ(wrong, 0);
    heap_fini(&h);
}

static void addresses_are_found(void)
{
    struct view v;
    uint32_t wrong = 0;
    fill_addresses();
    addresses[9] = addresses[4]; /* listed twice: the first one counts */
    REQUIRE(fill(&v, PEERS));
    for (uint32_t i = 0; i < PEERS; i++) {
        const struct member *m = view_at(&v, &addresses[i]);
        wrong += !m || view_slot(&v, m) != (i == 9 ? 4 : i) + 1;
    }
    CHECK_EQ(wrong, 0);
    addresses[0].port = 9;
    CHECK(view_at(&v, &addresses[0]) == NULL);
    view_fini(&v);
    REQUIRE(fill(&v, 0));
    CHECK(view_at(&v, &addresses[0]) == NULL);
    view_fini(&v);
}

/* Slots are used again, and an address listed twice passes on to the one that is left. */
static void members_come_and_go(void)
{
    struct view v;
    fill_addresses();
    REQUIRE(fill(&v, 3));
    CHECK(view_add(&v, &addresses[3]) == NULL); /* no room */
    struct member *two = view_at(&v, &addresses[1]);
    two->node_id = 7;
    CHECK(view_by_id(&v, 7) == two);
    heap_move(&v.due, view_slot(&v, two), (sleet_time){5});
    view_remove(&v, two);
    CHECK(view_at(&v, &addresses[1]) == NULL && view_by_id(&v, 7) == NULL);
    CHECK_EQ(v.count, 3);
    CHECK_EQ(heap_first(&v.due), 0); /* its time is gone with it */
    struct member *twin = view_add(&v, &addresses[0]);
    REQUIRE(twin != NULL);
    CHECK(twin == two);
    CHECK_EQ(view_slot(&v, view_at(&v, &addresses[0])), 1);
    view_remove(&v, view_at(&v, &addresses[0]));
    CHECK(view_at(&v, &addresses[0]) == twin);
    view_move(&v, twin, &addresses[9]);
    CHECK(view_at(&v, &addresses[0]) == NULL && view_at(&v, &addresses[9]) == twin);
    CHECK_EQ(v.n, 4);
    CHECK_EQ(v.count, 3);
    view_fini(&v);
}

static bool counts(const struct member *m)
{
    const struct member_set *s = &m->sets[0];
    return m->alive && s->matches && s->attached && s->established && !s->parked;
}

static struct member_rounds plain_rounds(const struct view *v, uint64_t lineage)
{
    struct member_rounds r = {0};
    for (uint32_t i = 1; i < v->n; i++) {
        const struct member_set *s = &v->members[i].sets[0];
        uint64_t open = member_open_round(s);
        if (!counts(&v->members[i]) || s->lineage != lineage)
            continue;
        r.n++;
        r.joined = s->round > r.joined ? s->round : r.joined;
        if (open >= r.highest) {
            r.second = r.highest;
            r.highest = open;
        } else if (open > r.second) {
            r.second = open;
        }
    }
    if (r.n == 1)
        r.second = r.highest;
    return r;
}

static bool same_furthest(struct view *v)
{
    const struct member_set *got = view_furthest(v, 0), *want = NULL;
    for (uint32_t i = 1; i < v->n; i++) {
        const struct member_set *s = &v->members[i].sets[0];
        if (counts(&v->members[i]) && (!want || s->round > want->round ||
                                       (s->round == want->round && s->lineage < want->lineage)))
            want = s;
    }
    return (!got && !want) ||
           (got && want && got->round == want->round && got->lineage == want->lineage);
}

static bool same_heaviest(struct view *v)
{
    const struct member_set *got = view_heaviest(v, 0), *want = NULL;
    for (uint32_t i = 1; i < v->n; i++) {
        const struct member_set *s = &v->members[i].sets[0];
        if (counts(&v->members[i]) &&
            (!want || lineage_heavier(s->weight, s->lineage, want->weight, want->lineage)))
            want = s;
    }
    return (!got && !want) ||
           (got && want && got->weight == want->weight && got->lineage == want->lineage);
}

/* What is kept up to date is what a look at all members gives. */
static void rounds_agree_with_a_plain_count(void)
{
    struct view v;
    sleet_rng rng = {test_seed()};
    uint32_t wrong = 0;
    fill_addresses();
    REQUIRE(fill(&v, 9));
    for (int i = 0; i < 50000; i++) {
        struct member *m = &v.members[1 + rng_below(&rng, 9)];
        struct member_set now = m->sets[0];
        uint32_t what = rng_below(&rng, 200);
        now.matches = now.attached = now.established = true;
        if (what == 0)
            view_set_alive(&v, m, !m->alive);
        else if (what == 1)
            view_renew(&v, m);
        if (what < 180)
            now.round += rng_below(&rng, 3);
        else if (what < 185)
            now.round -= now.round > 3 ? 3 : 0;
        else if (what < 190)
            now.attached = false;
        else if (what < 193)
            now.lineage = 1 + rng_below(&rng, 2);
        else if (what < 196)
            now.parked = !now.parked;
        now.weight += rng_below(&rng, 4);
        now.weight -= what == 197 && now.weight > 9 ? 9 : 0;
        now.closed = rng_below(&rng, 2) != 0;
        view_learn(&v, m, 0, &now);
        uint64_t lineage = rng_below(&rng, 3);
        struct member_rounds got = view_rounds(&v, 0, lineage), want = plain_rounds(&v, lineage);
        wrong += got.n != want.n || got.highest != want.highest || got.second != want.second ||
                 got.joined != want.joined;
        wrong += !same_furthest(&v);
        wrong += !same_heaviest(&v);
    }
    CHECK_EQ(wrong, 0);
    view_fini(&v);
}

TEST_SUITE(member) = {
    TEST(the_heap_gives_the_earliest),
    TEST(addresses_are_found),
    TEST(members_come_and_go),
    TEST(rounds_agree_with_a_plain_count),
    TEST_END,
};
