/* Orders of an operator in a simulated job: they reach everybody, and they hold. */
#include "helpers.h"
#include "member/orders.h"
#include <sodium.h>

#define EVICTED 3u /* the node that is, where one is */
#define JOB "sim"

static const uint64_t counts[] = {2000};
static const uint8_t seed[32] = {7, 7}, stranger[32] = {8, 8}, new_key[32] = {1, 2, 3};
static uint8_t operator_key[32];

/* Events by node. */
static struct seen {
    unsigned keys, evicted;
    uint8_t key[32];
} seen[64];

static void on_event(sim *s, uint32_t node, const engine_event *ev, void *arg)
{
    (void)s;
    (void)arg;
    seen[node].evicted += ev->type == EVENT_EVICTED;
    if (ev->type != EVENT_JOB_KEY)
        return;
    seen[node].keys++;
    memcpy(seen[node].key, ev->job_key, sizeof seen[node].key);
}

/* The nodes have met.  No trainer's events are needed here. */
static sim *job(uint32_t nodes, double loss, unsigned run)
{
    uint8_t secret[crypto_sign_SECRETKEYBYTES];
    crypto_sign_seed_keypair(operator_key, secret, seed);
    memset(seen, 0, sizeof seen);
    struct sim_config c = {.nodes = nodes,
                           .seed = test_seed() + 1000 * run,
                           .sealed = true,
                           .operator_key = operator_key,
                           .link = {.delay = MS(5), .loss = loss}};
    sim *s = sim_new(&c);
    if (!CHECK(s != NULL))
        return NULL;
    sim_on_event(s, on_event, NULL);
    sim_run_until(s, (sleet_time){SEC(5)});
    return s;
}

static void pass(sim *s, sleet_duration d) { sim_run_until(s, time_add(sim_now(s), d)); }

/* Nothing is lost any more: who is alive is seen to be, and what was to be told has been. */
static void calm(sim *s)
{
    sim_set_link(s, SIM_ALL, SIM_ALL, &(struct sim_link){.delay = MS(5)});
    pass(s, SEC(8));
}

static int order(sim *s, uint32_t node, struct wire_record r, const uint8_t by[32])
{
    uint8_t bytes[WIRE_RECORD_BYTES];
    r.job = job_tag(JOB);
    CHECK(record_sign(&r, by));
    CHECK_EQ(wire_record_encode(bytes, sizeof bytes, &r), sizeof bytes);
    int error = engine_order(sim_engine(s, node), bytes, sizeof bytes, sim_now(s));
    sim_kick(s, node);
    return error;
}

static int evict(sim *s, uint32_t at, uint32_t whom, uint64_t serial)
{
    return order(s, at, (struct wire_record){.kind = RECORD_EVICT, .serial = serial, .subject = sim_node_id(s, whom)}, seed);
}

static int rekey(sim *s, uint32_t at, uint64_t serial)
{
    struct wire_record r = {.kind = RECORD_REKEY, .serial = serial};
    memcpy(r.value, new_key, sizeof new_key);
    return order(s, at, r, seed);
}

static uint32_t alive(sim *s, uint32_t node) { return engine_nodes_alive(sim_engine(s, node), sim_now(s)); }

static bool knows(sim *s, uint32_t node, uint32_t orders)
{
    engine_order_info info[ORDERS_MAX];
    return engine_get_orders(sim_engine(s, node), info, ORDERS_MAX) == orders;
}

/* All but `except` see so many. */
static bool all_see(sim *s, uint32_t count, uint32_t except)
{
    for (uint32_t i = 0; i < sim_nodes(s); i++)
        if (i != except && sim_engine(s, i) && alive(s, i) != count)
            return false;
    return true;
}

static void an_eviction_reaches_all(void)
{
    for (unsigned k = 0; k < test_repeats(5); k++) {
        sim *s = job(8, 0.3, k);
        if (!s)
            return;
        CHECK_EQ(evict(s, 0, EVICTED, 10), SLEET_OK);
        CHECK_EQ(evict(s, 0, EVICTED, 10), SLEET_OK); /* the same again */
        CHECK_EQ(evict(s, 0, EVICTED, 9), SLEET_EEXIST);
        pass(s, SEC(10));
        for (uint32_t i = 0; i < 8; i++)
            CHECK(knows(s, i, 1));
        calm(s);
        CHECK(all_see(s, 7, EVICTED));
        CHECK_EQ(seen[EVICTED].evicted, 1);
        engine_order_info info;
        CHECK_EQ(engine_get_orders(sim_engine(s, 0), &info, 1), 1);
        CHECK_EQ(info.members, 6);
        CHECK_EQ(info.told, 6);
        CHECK(sim_restart(s, EVICTED)); /* with the same key, without the order */
        pass(s, SEC(20));
        CHECK(all_see(s, 7, EVICTED));
        sim_free(s);
    }
}

static void rounds_go_on_without_the_evicted(void)
{
    uint8_t secret[crypto_sign_SECRETKEYBYTES];
    crypto_sign_seed_keypair(operator_key, secret, seed);
    struct sim_config cfg = {.nodes = 4, .seed = test_seed(), .sealed = true, .operator_key = operator_key,
                             .link = {.delay = MS(5)}};
    cluster *c = ready_cluster(&cfg, counts, 1);
    if (!CHECK(c != NULL))
        return;
    for (uint32_t i = 0; i < 4; i++)
        CHECK_EQ(cluster_start(c, i, NULL), SLEET_OK);
    CHECK_EQ(evict(cluster_sim(c), 0, EVICTED, 10), SLEET_OK); /* in the middle of a round */
    cluster_idle(c, SEC(3));
    CHECK_EQ(cluster_overdue(c), 0);
    cluster_set_active(c, EVICTED, false);
    fill_constant(c, 1);
    CHECK(cluster_round(c, NULL));
    for (uint32_t i = 0; i < 3; i++) {
        CHECK_EQ(cluster_report(c, i)->report.expected, 3);
        CHECK(cluster_report(c, i)->report.coverage == 1.0);
    }
    cluster_free(c);
}

static void later_joiners_hear_of_it(void)
{
    sim *s = job(6, 0.2, 0);
    if (!s)
        return;
    sim_kill(s, 5);
    pass(s, SEC(5));
    CHECK_EQ(evict(s, 1, EVICTED, 10), SLEET_OK);
    CHECK_EQ(rekey(s, 1, 11), SLEET_OK);
    pass(s, SEC(5));
    CHECK(sim_restart(s, 5)); /* with the former key */
    pass(s, SEC(10));
    calm(s);
    CHECK(knows(s, 5, 2));
    CHECK_MEM(seen[5].key, new_key, sizeof new_key);
    CHECK(all_see(s, 5, EVICTED));
    sim_free(s);
}

static void a_new_key_reaches_all_but_the_evicted(void)
{
    sim *s = job(8, 0.3, 0);
    if (!s)
        return;
    sim_kill(s, 7); /* forgotten by nobody, but away for too long */
    pass(s, SEC(5));
    CHECK_EQ(evict(s, 0, EVICTED, 10), SLEET_OK);
    CHECK_EQ(rekey(s, 0, 11), SLEET_OK);
    pass(s, SEC(20));
    calm(s);
    for (int i = 0; i < 700; i++) { /* also past two changes of the sessions' keys */
        pass(s, SEC(1));
        CHECK(all_see(s, 6, EVICTED));
    }
    for (uint32_t i = 0; i < 7; i++) {
        CHECK_EQ(seen[i].keys, i == EVICTED ? 0 : 1);
        if (i != EVICTED)
            CHECK_MEM(seen[i].key, new_key, sizeof new_key);
    }
    CHECK(sim_restart(s, 2)); /* it has saved the new key */
    CHECK(sim_restart(s, 7)); /* it has the former one, which is void by now */
    pass(s, SEC(20));
    for (uint32_t i = 0; i < 8; i++)
        CHECK_EQ(alive(s, i), i == 7 ? 1 : i == EVICTED ? alive(s, i) : 6);
    CHECK(sim_restart(s, EVICTED));
    pass(s, SEC(10));
    CHECK_EQ(alive(s, EVICTED), 1);
    CHECK_EQ(alive(s, 0), 6);
    CHECK_EQ(seen[EVICTED].keys, 0);
    sim_free(s);
}

/* Under another name the evicted has the former key still, while that is taken from others. */
static void nobody_new_comes_in_with_the_former_key(void)
{
    struct sim_config c = {.nodes = 6, .sealed = true, .link = {.delay = MS(5)}};
    uint8_t secret[crypto_sign_SECRETKEYBYTES];
    crypto_sign_seed_keypair(operator_key, secret, seed);
    memset(seen, 0, sizeof seen);
    c.seed = test_seed();
    c.operator_key = operator_key;
    sim *s = sim_new(&c);
    if (!CHECK(s != NULL))
        return;
    sim_on_event(s, on_event, NULL);
    sim_kill(s, 5); /* nobody has met it */
    pass(s, SEC(5));
    CHECK(all_see(s, 5, 5));
    CHECK_EQ(rekey(s, 0, 11), SLEET_OK);
    pass(s, SEC(2));
    CHECK(sim_restart(s, 5));
    pass(s, SEC(30));
    CHECK(all_see(s, 5, 5));
    CHECK_EQ(seen[5].keys, 0);
    sim_free(s);
}

static void only_the_operator_is_obeyed(void)
{
    sim *s = job(4, 0, 0);
    if (!s)
        return;
    struct wire_record r = {.kind = RECORD_EVICT, .serial = 10, .subject = sim_node_id(s, 2)};
    CHECK_EQ(order(s, 0, r, stranger), SLEET_EPERM);
    uint8_t bytes[WIRE_RECORD_BYTES + 1] = {0};
    CHECK_EQ(engine_order(sim_engine(s, 0), bytes, WIRE_RECORD_BYTES, sim_now(s)), SLEET_EINVAL);
    CHECK_EQ(engine_order(sim_engine(s, 0), bytes, WIRE_RECORD_BYTES - 1, sim_now(s)), SLEET_EINVAL);
    pass(s, SEC(5));
    CHECK(all_see(s, 4, SIM_ALL));
    CHECK(knows(s, 0, 0));
    sim_free(s);
}

TEST_SUITE(notice) = {
    TEST(an_eviction_reaches_all),
    TEST(rounds_go_on_without_the_evicted),
    TEST(later_joiners_hear_of_it),
    TEST(a_new_key_reaches_all_but_the_evicted),
    TEST(nobody_new_comes_in_with_the_former_key),
    TEST(only_the_operator_is_obeyed),
    TEST_END,
};
