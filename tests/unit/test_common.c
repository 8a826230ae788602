#include "member/common.h"
#include "sleet_test.h"

/* Ids 1 .. n but `self`, each in its first life. */
static struct common others_of(uint64_t self, uint32_t n)
{
    struct common c = {0};
    for (uint64_t id = n; id; id--)
        if (id != self)
            CHECK(common_add(&c, id, 1));
    return c;
}

/* Those whose bit (id - 1) is set can be heard. */
static bool hear(struct common *c, uint32_t ids, sleet_time now)
{
    for (uint32_t i = 0; i < c->n; i++)
        c->p[i].here = ids >> (c->p[i].node_id - 1) & 1;
    return common_settle(c, now);
}

static void people_are_found_by_id(void)
{
    struct common c = others_of(3, 40);
    CHECK_EQ(c.n, 39);
    for (uint64_t id = 1; id <= 41; id++)
        CHECK((common_find(&c, id) != NULL) == (id != 3 && id != 41));
    common_remove(&c, 7);
    common_remove(&c, 7);
    common_remove(&c, 100);
    CHECK_EQ(c.n, 38);
    CHECK(!common_find(&c, 7) && common_find(&c, 8)->node_id == 8);
    common_fini(&c);
}

/* Whatever the cut, of two sides that have the same view at most one goes on; of two sides and
 * nobody else just one. */
static void one_side_goes_on(void)
{
    for (uint32_t n = 1; n <= 8; n++) {
        uint32_t all = (1u << n) - 1;
        for (uint32_t side = 1; side <= all; side++) {
            uint32_t votes[2] = {0, 0}, size[2] = {0, 0};
            for (uint32_t id = 1; id <= n; id++) {
                struct common c = others_of(id, n);
                uint32_t other = !(side >> (id - 1) & 1);
                hear(&c, other ? all & ~side : side, (sleet_time){0});
                votes[other] += common_goes_on(&c, id);
                size[other]++;
                common_fini(&c);
            }
            CHECK(votes[0] == 0 || votes[0] == size[0]); /* a side is of one mind */
            CHECK(votes[1] == 0 || votes[1] == size[1]);
            CHECK_EQ((votes[0] > 0) + (votes[1] > 0), 1);
        }
    }
}

static void of_two_halves_the_lowest_id_decides(void)
{
    struct common c = others_of(1, 4);
    hear(&c, 1 << 3, (sleet_time){0}); /* 1 and 4 */
    CHECK(common_goes_on(&c, 1) && common_leads(&c, 1));
    common_fini(&c);
    c = others_of(2, 4);
    hear(&c, 1 << 2, (sleet_time){0}); /* 2 and 3 */
    CHECK(!common_goes_on(&c, 2) && common_leads(&c, 2));
    common_fini(&c);
    c = others_of(3, 4);
    hear(&c, 1 << 1, (sleet_time){0});
    CHECK(!common_goes_on(&c, 3) && !common_leads(&c, 3));
    common_fini(&c);
}

/* Members that die one by one leave a view that goes on, down to two. */
static void the_missing_are_dropped_after_a_while(void)
{
    struct common c = others_of(4, 6);
    uint32_t here = 0x3f;
    for (uint64_t dead = 1; dead <= 3; dead++) {
        sleet_time at = {(sleet_duration)dead * SEC(100)};
        here &= ~(1u << (dead - 1));
        CHECK(hear(&c, here, at));
        CHECK(!hear(&c, here, time_add(at, SEC(1)))); /* since then */
        CHECK(common_goes_on(&c, 4));
        CHECK_EQ(common_deadline(&c, SEC(10)).ns, time_add(at, SEC(10)).ns);
        common_drop(&c, SEC(10), time_add(at, SEC(9)));
        CHECK_EQ(common_missing(&c), 1);
        common_drop(&c, SEC(10), time_add(at, SEC(10)));
        CHECK_EQ(common_missing(&c), 0);
        CHECK(time_is_never(common_deadline(&c, SEC(10))));
    }
    CHECK_EQ(c.n, 2);
    hear(&c, here, (sleet_time){SEC(500)});
    CHECK(common_goes_on(&c, 4));
    hear(&c, 0, (sleet_time){SEC(600)});
    CHECK(!common_goes_on(&c, 4));
    common_fini(&c);
}

TEST_SUITE(common) = {
    TEST(people_are_found_by_id),
    TEST(one_side_goes_on),
    TEST(of_two_halves_the_lowest_id_decides),
    TEST(the_missing_are_dropped_after_a_while),
    TEST_END,
};
