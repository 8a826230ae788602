/* Sealed sessions between simulated nodes. */
#include "helpers.h"
#include "wire/wire.h"

static const uint64_t counts[] = {2000};

static struct sim_config config(uint32_t nodes, double loss)
{
    return (struct sim_config){.nodes = nodes,
                               .seed = test_seed(),
                               .sealed = true,
                               .link = {.delay = MS(5), .loss = loss}};
}

static uint32_t alive(cluster *c, uint32_t node)
{
    sim *s = cluster_sim(c);
    return engine_nodes_alive(sim_engine(s, node), sim_now(s));
}

static bool all_alive(cluster *c)
{
    for (uint32_t i = 0; i < nodes_of(c); i++)
        if (alive(c, i) != nodes_of(c))
            return false;
    return true;
}

static void a_sealed_cluster_averages(void)
{
    struct sim_config cfg = config(4, 0);
    cluster *c = ready_cluster(&cfg, counts, 1);
    if (!CHECK(c != NULL))
        return;
    for (uint32_t i = 0; i < 4; i++)
        for (uint64_t k = 0; k < cluster_elements(c); k++)
            cluster_values(c, i)[k] = (float)i;
    CHECK(cluster_round(c, NULL));
    CHECK(all_complete(c));
    CHECK(cluster_values(c, 2)[7] == 1.5f);
    CHECK(identical(c));
    for (uint32_t i = 1; i < 4; i++)
        CHECK(sim_node_id(cluster_sim(c), i - 1) < sim_node_id(cluster_sim(c), i));
    CHECK(ledger_balances(c));
    cluster_free(c);
}

static void all_sessions_come_up_under_loss(void)
{
    for (uint32_t seed = 0; seed < test_repeats(10); seed++) {
        struct sim_config cfg = config(8, 0.3);
        cfg.seed += seed;
        cluster *c = cluster_new(&cfg, counts, 1);
        if (!CHECK(c != NULL))
            return;
        cluster_idle(c, SEC(3));
        CHECK(all_alive(c));
        CHECK(ledger_balances(c));
        cluster_free(c);
    }
}

TEST_SUITE(session) = {
    TEST(a_sealed_cluster_averages),
    TEST(all_sessions_come_up_under_loss),
    TEST_END,
};
