/* Nodes that are not alike: what they declare that they can send, what they are, where they stand. */
#include "forge.h"

#define NODES 4
#define SLOW 3
#define ELEMENTS 60000
#define MBIT UINT64_C(1000000)

static void draw(cluster *c, uint64_t seed)
{
    sleet_rng rng = {seed};
    fill_grid(c, &rng);
}

/* Fragments that others have scattered to the node in its rounds: 0 for one that owns nothing. */
static uint64_t reduced(cluster *c, uint32_t node)
{
    engine_set s;
    return engine_get_set(sim_engine(cluster_sim(c), node), cluster_set(c, node), &s, sim_now(cluster_sim(c))) ? s.scatter.expected : 0;
}

/* Milliseconds that the slowest takes, the mean of some rounds. */
static double time_of_rounds(cluster *c)
{
    const int rounds = 6;
    double sum = 0;
    for (int r = 0; r < rounds; r++) {
        double longest = 0;
        draw(c, test_seed() + (uint64_t)r);
        CHECK(cluster_round(c, &(sleet_round_options){.deadline_ns = SEC(10)}));
        for (uint32_t i = 0; i < nodes_of(c); i++) {
            const struct cluster_report *p = cluster_report(c, i);
            double took = (double)time_since(p->reported_at, p->started_at) / 1e6;
            longest = took > longest ? took : longest;
        }
        sum += longest / rounds;
    }
    return sum;
}

/* One of four sends at a tenth of the others' rate.  Owning a quarter it sends 1.5 vectors a round, owning nothing one. */
static void a_slow_node_that_says_so_holds_up_less(void)
{
    struct sim_node each[NODES] = {{.rate_bps = 100 * MBIT}, {.rate_bps = 100 * MBIT}, {.rate_bps = 100 * MBIT}, {.rate_bps = 10 * MBIT}};
    uint64_t count = ELEMENTS;
    double took[2];
    for (int said = 0; said < 2; said++) {
        struct sim_config config = {.nodes = NODES, .seed = test_seed(), .link = CLEAN_LINK, .each = each, .budget_first = SEC(2)};
        each[SLOW].declared.kbit = said ? 10000 : 0; /* who says nothing counts as 100 Mbit/s */
        cluster *c = ready_cluster(&config, &count, 1);
        REQUIRE(c);
        uint64_t before = reduced(c, SLOW);
        took[said] = time_of_rounds(c);
        CHECK(identical(c));
        CHECK_EQ(reduced(c, SLOW) > before, !said);
        CHECK(ledger_balances(c));
        cluster_free(c);
    }
    printf("rounds with a slow node: %.0f ms, where it says so %.0f ms: %.2f times as fast\n", took[0], took[1], took[0] / took[1]);
    CHECK(took[0] / took[1] > 1.35 && took[0] / took[1] < 1.6);
}

/* A daemon that starts again with another declaration is another life of the node: all come to new shares. */
static void who_comes_back_may_declare_otherwise(void)
{
    struct sim_node each[NODES] = {{.declared.kbit = 20000}, {.declared.kbit = 20000}, {.declared.kbit = 20000}, {.declared.kbit = 20000}};
    struct sim_config config = {.nodes = NODES, .seed = test_seed(), .link = CLEAN_LINK, .each = each};
    uint64_t count = ELEMENTS;
    cluster *c = ready_cluster(&config, &count, 1);
    REQUIRE(c);
    for (int r = 0; r < 8; r++)
        CHECK(cluster_round(c, NULL));
    CHECK(reduced(c, SLOW) > 0);
    each[SLOW].declared.kbit = 2000;
    CHECK(sim_restart(cluster_sim(c), SLOW));
    CHECK_EQ(cluster_register(c, SLOW), 0);
    cluster_idle(c, SEC(3));
    for (int r = 0; r < 12; r++) {
        CHECK(cluster_round(c, NULL));
        cluster_idle(c, MS(200));
    }
    CHECK(all_complete(c));
    CHECK(identical(c));
    CHECK_EQ(reduced(c, SLOW), 0);
    CHECK(ledger_balances(c));
    cluster_free(c);
}

/* Nodes 0 and 1 do not hear each other, so four nodes have three lists: whose shares each reckons from what the others
 * tell of theirs. */
static void shares_of_other_groups_are_known(void)
{
    struct sim_node each[NODES] = {{.declared.kbit = 20000}, {.declared.kbit = 30000}, {.declared.kbit = 40000}, {.declared.kbit = 0}};
    struct sim_config config = {.nodes = NODES, .seed = test_seed(), .link = CLEAN_LINK, .each = each};
    struct sim_link down = {.down = true};
    uint64_t count = ELEMENTS;
    double mean = 0;
    cluster *c = ready_cluster(&config, &count, 1);
    REQUIRE(c);
    sim_set_link(cluster_sim(c), 0, 1, &down);
    sim_set_link(cluster_sim(c), 1, 0, &down);
    cluster_idle(c, SEC(4)); /* they have noticed */
    for (int r = 0; r < 10; r++) {
        draw(c, test_seed());
        CHECK(cluster_round(c, NULL));
        cluster_idle(c, MS(200));
        mean += cluster_report(c, 2)->report.coverage / 10;
    }
    CHECK(mean > 0.9);
    for (uint32_t i = 0; i < NODES; i++) {
        engine_counters k;
        engine_get_counters(sim_engine(cluster_sim(c), i), &k);
        CHECK_EQ(k.usurped, 0);
    }
    CHECK(ledger_balances(c));
    cluster_free(c);
}

/* ---- clients -------------------------------------------------------------------------- */

/* Behind a box that lets nobody in whom the client has not sent something to: it starts behind it. */
static cluster *with_client(struct sim_config *config, uint32_t client)
{
    uint64_t count = ELEMENTS / 6;
    config->open_join = true;
    config->seeds = 1; /* nobody but node 0 is known to anybody at first */
    cluster *c = cluster_new(config, &count, 1);
    if (!c)
        return NULL;
    sim_kill(cluster_sim(c), client);
    sim_rebind(cluster_sim(c), client);
    CHECK(sim_restart(cluster_sim(c), client));
    CHECK_EQ(cluster_register(c, client), 0);
    cluster_idle(c, SEC(5));
    for (int r = 0; r < 8; r++) {
        cluster_round(c, NULL);
        cluster_idle(c, MS(500));
    }
    return c;
}

static void clients_average_and_own_nothing(void)
{
    static const struct set_kind kinds[] = {{.strategy = SLEET_RPS}, {.strategy = SLEET_MOSHPIT, .numbers = {2, 2}}};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        const uint32_t client = 2;
        struct sim_node each[NODES] = {[2] = {.declared.role = ROLE_CLIENT}};
        struct sim_config config = {.nodes = NODES, .seed = test_seed(), .link = CLEAN_LINK, .each = each, .kind = kinds[k]};
        cluster *c = with_client(&config, client);
        REQUIRE(c);
        double mean = 0;
        draw(c, test_seed());
        for (uint32_t i = 0; i < NODES; i++)
            mean += (double)cluster_values(c, i)[77] / NODES;
        for (int r = 0; r < 2; r++) { /* a pass of moshpit:2,2 */
            CHECK(cluster_round(c, NULL));
            cluster_idle(c, MS(100));
        }
        CHECK(identical(c));
        CHECK_NEAR((double)cluster_values(c, client)[77], mean, 1e-7);
        for (uint32_t i = 0; i < NODES; i++) {
            CHECK_EQ(reduced(c, i) == 0, i == client);
            CHECK_EQ(cluster_report(c, i)->report.coverage, 1);
        }
        CHECK(ledger_balances(c));
        cluster_free(c);
    }
}

/* The job's model is not the client's, whose id is the lowest. */
static void clients_found_no_job(void)
{
    struct sim_node each[NODES] = {[0] = {.declared.role = ROLE_CLIENT}};
    struct sim_config config = {.nodes = NODES, .seed = test_seed(), .link = CLEAN_LINK, .each = each};
    uint64_t count = 1000;
    cluster *c = cluster_new(&config, &count, 1);
    REQUIRE(c);
    cluster_idle(c, SEC(4));
    for (uint32_t i = 0; i < NODES; i++)
        cluster_values(c, i)[5] = (float)(i + 1);
    CHECK(cluster_round(c, NULL));
    for (uint32_t i = 0; i < NODES; i++)
        CHECK_EQ(cluster_values(c, i)[5], 2);
    cluster_free(c);
    for (uint32_t i = 0; i < NODES; i++) /* where all are clients one does */
        each[i].declared.role = ROLE_CLIENT;
    c = ready_cluster(&config, &count, 1);
    CHECK(c != NULL);
    cluster_free(c);
}

/* ---- auxiliaries ------------------------------------------------------------------------- */

#define HELPER 0 /* its id is the lowest, and its uplink the best */
#define TENSORS 40 /* more than a SCHEMA holds */

static uint64_t helped(cluster *c)
{
    engine_set s;
    engine *e = sim_engine(cluster_sim(c), HELPER);
    return e && engine_get_set(e, 0, &s, sim_now(cluster_sim(c))) ? s.scatter.expected : 0;
}

static cluster *with_helper(struct sim_config *config, struct sim_node *each)
{
    uint64_t counts[TENSORS];
    for (int t = 0; t < TENSORS; t++)
        counts[t] = (uint64_t)(100 * t);
    for (uint32_t i = 0; i <= NODES; i++)
        each[i] = (struct sim_node){.declared = {.kbit = i == HELPER ? 100000 : 50000, .role = i == HELPER ? ROLE_AUXILIARY : ROLE_NODE}};
    config->nodes = NODES + 1;
    config->seed = test_seed();
    config->each = each;
    cluster *c = cluster_new(config, counts, TENSORS);
    if (!c)
        return NULL;
    cluster_idle(c, SEC(4));
    CHECK(cluster_round(c, NULL)); /* in which the others take the founder's values, partly from the helper */
    for (uint32_t i = 1; i <= NODES; i++)
        CHECK(!(cluster_report(c, i)->report.flags & SLEET_DEADLINE));
    return c;
}

/* Counts what nobody should send to the helper: results, among neighbours anything. */
static void count_in_vain(sim *s, const struct sim_datagram *d, void *arg)
{
    uint32_t *in_vain = arg;
    bool data = (d->data[0] & 15) == WIRE_DATA && d->to == HELPER;
    in_vain[0] += data;
    in_vain[1] += data && (d->data[WIRE_HEADER_BYTES + 16] == PHASE_GATHER || d->data[WIRE_HEADER_BYTES + 16] == PHASE_REPAIR);
    sim_relay(s, d, 0);
}

/* All but the helper end with their mean, which has all of them. */
static void check_mean(cluster *c, int passes)
{
    double mean = 0;
    draw(c, test_seed());
    for (uint32_t i = 1; i <= NODES; i++)
        mean += (double)cluster_values(c, i)[4321] / NODES;
    for (int p = 0; p < passes; p++) {
        CHECK(cluster_round(c, &(sleet_round_options){.exact = 1}));
        cluster_idle(c, MS(200));
    }
    for (uint32_t i = 1; i <= NODES; i++) {
        CHECK_EQ(cluster_report(c, i)->report.coverage, 1);
        CHECK_NEAR((double)cluster_values(c, i)[4321], mean, 1e-7);
        CHECK_MEM(cluster_values(c, i), cluster_values(c, 1), cluster_elements(c) * sizeof(float));
    }
}

static void rounds(cluster *c, int n)
{
    for (int r = 0; r < n; r++) {
        CHECK(cluster_round(c, NULL));
        cluster_idle(c, MS(200));
    }
}

/* It learns the set from the others, holds nothing of a model, and reduces most of it; the others go on when it dies, and
 * take it back. */
static void auxiliaries_reduce_for_others(void)
{
    static const struct { struct set_kind kind; int passes; } cases[] = {
        {{.strategy = SLEET_RPS}, 1}, {{.strategy = SLEET_MOSHPIT, .numbers = {2, 2}}, 2}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct sim_node each[NODES + 1];
        struct sim_config config = {.link = {.delay = US(200), .loss = 0.02}, .kind = cases[k].kind};
        cluster *c = with_helper(&config, each);
        REQUIRE(c);
        rounds(c, 10);
        check_mean(c, cases[k].passes);
        uint64_t one = helped(c), all = one;
        for (uint32_t i = 1; i <= NODES; i++)
            all += reduced(c, i);
        CHECK(one > all / 4);
        sim_kill(cluster_sim(c), HELPER);
        rounds(c, 12);
        check_mean(c, cases[k].passes);
        CHECK(sim_restart(cluster_sim(c), HELPER));
        CHECK_EQ(cluster_register(c, HELPER), SLEET_EPERM);
        cluster_idle(c, SEC(4));
        rounds(c, 10);
        check_mean(c, cases[k].passes);
        CHECK(helped(c) > 0);
        CHECK(ledger_balances(c));
        CHECK_EQ(cluster_overdue(c), 0);
        cluster_free(c);
    }
}

/* Gradients, too; among neighbours it has nothing to do and is in nobody's way. */
static void auxiliaries_of_gradients_and_of_neighbours(void)
{
    static const struct set_kind kinds[] = {{.payload = SLEET_GRADIENT, .estimator = SLEET_CARRY}, {.payload = SLEET_MODEL, .strategy = SLEET_RING}};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        struct sim_node each[NODES + 1];
        struct sim_config config = {.link = CLEAN_LINK, .kind = kinds[k]};
        cluster *c = with_helper(&config, each);
        uint32_t in_vain[2] = {0};
        REQUIRE(c);
        sim_on_datagram(cluster_sim(c), count_in_vain, in_vain);
        rounds(c, 10);
        CHECK_EQ(in_vain[k == 0], 0);
        CHECK(k == 1 || in_vain[0] > 100);
        draw(c, test_seed());
        CHECK(cluster_round(c, NULL));
        for (uint32_t i = 1; i <= NODES; i++)
            CHECK_EQ(cluster_report(c, i)->report.coverage, 1);
        CHECK_EQ(helped(c) > 0, k == 0);
        CHECK(ledger_balances(c));
        cluster_free(c);
    }
}

/* What one node tells the helper of is a set that it never tells to its end; nothing of the others comes before. */
static void mislead(sim *s, const struct sim_datagram *d, void *arg)
{
    static struct opened o;
    bool *begun = arg, tells = d->to == HELPER && forge_open(d, &o) && o.head.type == WIRE_SCHEMA;
    struct sim_datagram other = *d;
    if (tells && d->from == 1) {
        o.body[0] ^= 1; /* its hash */
        forge_seal(&other, &o);
        *begun = true;
    }
    if (!tells || *begun)
        sim_relay(s, &other, 0);
}

static void a_set_told_in_part_keeps_out_no_other(void)
{
    struct sim_node each[NODES + 1] = {{.declared.role = ROLE_AUXILIARY}};
    struct sim_config config = {.nodes = NODES + 1, .seed = test_seed(), .link = CLEAN_LINK, .each = each};
    uint64_t counts[TENSORS];
    bool begun = false;
    engine_set s;
    for (int t = 0; t < TENSORS; t++)
        counts[t] = 100;
    cluster *c = cluster_new(&config, counts, TENSORS);
    REQUIRE(c);
    sim_on_datagram(cluster_sim(c), mislead, &begun);
    cluster_idle(c, SEC(10));
    CHECK(begun);
    CHECK(engine_get_set(sim_engine(cluster_sim(c), HELPER), 0, &s, sim_now(cluster_sim(c))));
    cluster_free(c);
}

/* A set of one run, which mostly another owns: nobody waits for the auxiliary to take a result. */
static void an_auxiliary_that_owns_nothing_holds_nobody_up(void)
{
    struct sim_node each[NODES + 1] = {{.declared.role = ROLE_AUXILIARY}};
    struct sim_config config = {.nodes = NODES + 1, .seed = test_seed(), .link = CLEAN_LINK, .each = each};
    uint64_t count = 100;
    cluster *c = cluster_new(&config, &count, 1);
    REQUIRE(c);
    cluster_idle(c, SEC(4));
    rounds(c, 3);
    for (int r = 0; r < 10; r++) {
        CHECK(cluster_round(c, NULL));
        for (uint32_t i = 1; i <= NODES; i++)
            CHECK(cluster_report(c, i)->report.elapsed_ns < MS(50)); /* a budget is 500 at first */
        cluster_idle(c, MS(100));
    }
    cluster_free(c);
}

/* Four nodes of 10 Mbit/s own about a quarter each and send 1.5 vectors a round; with a fifth of 100 Mbit/s that owns all, one. */
static void an_auxiliary_takes_work_off_slow_nodes(void)
{
    struct sim_node each[NODES + 1];
    uint64_t count = 2 * ELEMENTS;
    double took[2];
    for (uint32_t i = 0; i < NODES; i++)
        each[i] = (struct sim_node){.rate_bps = 10 * MBIT, .declared.kbit = 10000};
    each[NODES] = (struct sim_node){.rate_bps = 100 * MBIT, .declared = {.kbit = 100000, .role = ROLE_AUXILIARY}};
    for (uint32_t more = 0; more < 2; more++) {
        struct sim_config config = {.nodes = NODES + more, .seed = test_seed(), .link = CLEAN_LINK, .each = each};
        cluster *c = cluster_new(&config, &count, 1);
        REQUIRE(c);
        cluster_idle(c, SEC(4));
        for (int r = 0; r < 6; r++) {
            CHECK(cluster_round(c, NULL));
            cluster_idle(c, MS(200));
        }
        took[more] = time_of_rounds(c);
        for (uint32_t i = 0; i < NODES; i++)
            CHECK_EQ(cluster_report(c, i)->report.coverage, 1);
        cluster_free(c);
    }
    printf("rounds of slow nodes: %.0f ms, with an auxiliary %.0f ms: %.2f times as fast\n", took[0], took[1], took[0] / took[1]);
    CHECK(took[0] / took[1] > 1.35 && took[0] / took[1] < 2);
}

/* ---- sites ----------------------------------------------------------------------------- */

/* Two LANs whose nodes' ids alternate.  With the way between them cut for a round, that within the groups lacks nothing. */
static void sites_average_first(void)
{
    struct sim_node each[8];
    struct sim_config config = {.nodes = 8, .seed = test_seed(), .link = CLEAN_LINK, .each = each,
                                .kind = {.strategy = SLEET_HIERARCHICAL, .numbers = {4}}};
    uint64_t count = 10000;
    for (uint32_t i = 0; i < 8; i++)
        each[i] = (struct sim_node){.declared.site = {i % 2 ? 'b' : 'a'}};
    cluster *c = cluster_new(&config, &count, 1);
    REQUIRE(c);
    cluster_idle(c, SEC(4));
    for (int r = 0; r < 6 || cluster_report(c, 0)->report.round % 2 == 0; r++) {
        CHECK(cluster_round(c, NULL));
        cluster_idle(c, MS(200));
    }
    for (uint32_t i = 0; i < 8; i++)
        for (uint32_t k = 0; k < 8; k++)
            if (i % 2 != k % 2)
                sim_set_link(cluster_sim(c), i, k, &(struct sim_link){.loss = 1});
    draw(c, test_seed());
    CHECK(cluster_round(c, NULL));
    for (uint32_t i = 0; i < 8; i++) {
        CHECK_EQ(cluster_report(c, i)->report.coverage, 1);
        CHECK_EQ(cluster_report(c, i)->report.expected, 4);
        CHECK_EQ(cluster_values(c, i)[9], cluster_values(c, i % 2)[9]);
    }
    CHECK(cluster_values(c, 0)[9] != cluster_values(c, 1)[9]);
    cluster_free(c);
}

TEST_SUITE(roles) = {
    TEST(a_slow_node_that_says_so_holds_up_less),
    TEST(who_comes_back_may_declare_otherwise),
    TEST(shares_of_other_groups_are_known),
    TEST(clients_average_and_own_nothing),
    TEST(clients_found_no_job),
    TEST(auxiliaries_reduce_for_others),
    TEST(auxiliaries_of_gradients_and_of_neighbours),
    TEST(a_set_told_in_part_keeps_out_no_other),
    TEST(an_auxiliary_that_owns_nothing_holds_nobody_up),
    TEST(an_auxiliary_takes_work_off_slow_nodes),
    TEST(sites_average_first),
    TEST_END};
