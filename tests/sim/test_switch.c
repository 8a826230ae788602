/* Another strategy for a job that runs. */
#include "helpers.h"
#include "strategy/edge_list.h"
#include <math.h>

static const uint64_t counts[] = {20 * 288 + 100};

static struct edge_list edges; /* that strategy graph goes by; of no nodes: none are given */
static uint64_t alarms; /* that replicas differ which ought to be equal */

static void note(void *arg, log_level level, log_fault fault, const char *event, const log_field *fields, int n)
{
    (void)arg, (void)level, (void)fault, (void)fields, (void)n;
    alarms += strcmp(event, "replicas-drift") == 0;
}

static cluster *set_up(uint32_t nodes, double loss)
{
    struct sim_config config = {.nodes = nodes, .seed = test_seed(), .link = {.delay = US(200), .loss = loss},
                                .edges = edges.n ? &edges : NULL,
                                .log = {.emit = note}};
    alarms = 0;
    cluster *c = ready_cluster(&config, counts, 1);
    sleet_rng rng = {test_seed()};
    if (c)
        fill_grid(c, &rng);
    return c;
}

static engine_set told(cluster *c, uint32_t node)
{
    engine_set s;
    memset(&s, 0, sizeof s);
    engine_get_set(sim_engine(cluster_sim(c), node), cluster_set(c, node), &s, sim_now(cluster_sim(c)));
    return s;
}

static int order(cluster *c, uint32_t node, const char *word, const char **why)
{
    int error = engine_set_strategy(sim_engine(cluster_sim(c), node), cluster_set(c, node), word, why,
                                    sim_now(cluster_sim(c)));
    sim_kick(cluster_sim(c), node);
    return error;
}

/* One round each 300 ms until round `number` is over; the least group after `from`, the largest before it. */
struct seen {
    uint32_t before, after;
    bool late; /* a deadline was missed */
    bool all;  /* all reports have come */
};

static struct seen run_to(cluster *c, uint64_t number, uint64_t from)
{
    struct seen seen = {.all = true};
    for (int i = 0; i < 40 && told(c, 0).round < number; i++) {
        cluster_idle(c, MS(300));
        seen.all &= cluster_round(c, NULL);
        for (uint32_t k = 0; k < nodes_of(c); k++) {
            const sleet_report *r = &cluster_report(c, k)->report;
            uint32_t *most = r->round < from ? &seen.before : &seen.after;
            *most = r->group_size > *most ? r->group_size : *most;
            seen.late |= (r->flags & SLEET_DEADLINE) != 0;
        }
    }
    return seen;
}

/* The largest difference between two nodes. */
static double apart(cluster *c)
{
    double most = 0;
    for (uint32_t i = 1; i < nodes_of(c); i++)
        for (uint64_t k = 0; k < cluster_elements(c); k++)
            most = fmax(most, fabs((double)cluster_values(c, i)[k] - (double)cluster_values(c, 0)[k]));
    return most;
}

static bool all_told(cluster *c, uint32_t version, uint64_t by, uint64_t from, const char *word)
{
    for (uint32_t i = 0; i < nodes_of(c); i++) {
        const engine_set s = told(c, i);
        if (s.strategy_version != version || s.strategy_by != by || s.strategy_from != from ||
            strcmp(s.next_strategy, word) != 0)
            return false;
    }
    return true;
}

static void there_and_back_under_loss(void)
{
    cluster *c = set_up(8, 0.1);
    REQUIRE(c);
    CHECK_EQ(told(c, 3).strategy_version, 0);
    CHECK_STR(told(c, 3).strategy, "rps");
    CHECK(run_to(c, told(c, 0).round + 3, 0).all);
    CHECK_EQ(order(c, 2, "one-peer", NULL), 0);
    uint64_t from = told(c, 2).strategy_from;
    CHECK(from > told(c, 2).job_round + 4 && from < told(c, 2).job_round + 12);
    CHECK_STR(told(c, 2).strategy, "rps");
    struct seen seen = run_to(c, from + 4, from);
    CHECK(seen.all && !seen.late);
    CHECK_EQ(seen.before, 8);
    CHECK(seen.after >= 2 && seen.after <= 3);
    CHECK(all_told(c, 1, 3, from, "one-peer"));
    CHECK_STR(told(c, 7).strategy, "one-peer");
    CHECK_EQ(order(c, 5, "rps", NULL), 0);
    from = told(c, 5).strategy_from;
    seen = run_to(c, from + 3, from);
    CHECK(seen.all && !seen.late);
    CHECK(seen.before >= 2 && seen.before <= 3);
    CHECK_EQ(seen.after, 8);
    CHECK(all_told(c, 2, 6, from, "rps"));
    CHECK(apart(c) < 1e-6);
    CHECK_EQ(cluster_overdue(c), 0);
    cluster_free(c);
}

/* From each of the table to the next, with its usual numbers; in the end all come together again. */
static void through_all_strategies(void)
{
#define WORD(name, value, text, ...) text,
    static const char *const words[] = {SLEET_STRATEGY_MAP(WORD) "rps"};
#undef WORD
    static const char ring[] = "1 2\n2 3\n3 4\n4 5\n5 6\n6 7\n7 8\n8 1\n";
    struct edge_fault fault;
    char word[STRATEGY_WORD];
    REQUIRE(edge_list_parse(&edges, ring, sizeof ring - 1, &fault));
    cluster *c = set_up(8, 0.05);
    REQUIRE(c);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        CHECK_EQ(order(c, (uint32_t)i % 8, words[i], NULL), 0);
        uint64_t from = told(c, (uint32_t)i % 8).strategy_from;
        struct seen seen = run_to(c, from + 2, from);
        CHECK(seen.all && !seen.late);
        struct set_kind kind = {0};
        CHECK(kind_strategy_of(&kind, words[i]) && !edge_list_fit(&edges, 1, &kind)); /* graph: with its numbers */
        CHECK(all_told(c, (uint32_t)i + 1, i % 8 + 1, from, kind_strategy_word(&kind, word)));
        CHECK(told(c, 0).consensus_distance >= 0);
    }
    CHECK(apart(c) < 1e-6);
    CHECK_EQ(alarms, 0);
    CHECK_EQ(cluster_overdue(c), 0);
    cluster_free(c);
    edge_list_free(&edges);
}

/* Within a fraction of the ping period, whatever is lost. */
static void it_is_told_at_once(void)
{
    cluster *c = set_up(8, 0.2);
    REQUIRE(c);
    cluster_idle(c, MS(3450)); /* what else there was to tell is told, pings are due in half a second */
    CHECK_EQ(order(c, 6, "ring", NULL), 0);
    cluster_idle(c, MS(150));
    CHECK(all_told(c, 1, 7, told(c, 6).strategy_from, "ring"));
    cluster_free(c);
}

/* Both make version 1: that of the higher node id is everybody's, also theirs. */
static void two_operators_at_once(void)
{
    cluster *c = set_up(6, 0.05);
    REQUIRE(c);
    CHECK_EQ(order(c, 1, "ring", NULL), 0);
    CHECK_EQ(order(c, 4, "one-peer", NULL), 0);
    uint64_t from = told(c, 4).strategy_from;
    struct seen seen = run_to(c, from + 3, from);
    CHECK(seen.all && !seen.late);
    CHECK(all_told(c, 1, 5, from, "one-peer"));
    CHECK(seen.before == 6 && seen.after <= 3);
    cluster_free(c);
}

static void who_was_cut_off_hears_of_it(void)
{
    cluster *c = set_up(5, 0);
    struct sim_link down = CLEAN_LINK, up = CLEAN_LINK;
    REQUIRE(c);
    down.down = true;
    sim_set_link(cluster_sim(c), 4, SIM_ALL, &down);
    sim_set_link(cluster_sim(c), SIM_ALL, 4, &down);
    cluster_idle(c, SEC(4));
    CHECK_EQ(order(c, 0, "one-peer", NULL), 0);
    uint64_t from = told(c, 0).strategy_from;
    run_to(c, from + 2, from);
    CHECK_EQ(told(c, 3).strategy_version, 1);
    CHECK_EQ(told(c, 4).strategy_version, 0);
    sim_set_link(cluster_sim(c), 4, SIM_ALL, &up);
    sim_set_link(cluster_sim(c), SIM_ALL, 4, &up);
    cluster_idle(c, SEC(8));
    struct seen seen = run_to(c, told(c, 0).round + 4, from);
    CHECK(seen.all && seen.after <= 3);
    CHECK(all_told(c, 1, 1, from, "one-peer"));
    cluster_free(c);
}

/* It knows before its first round, hence averages with the right ones from the start. */
static void a_joiner_knows_at_once(void)
{
    cluster *c = set_up(5, 0.05);
    REQUIRE(c);
    CHECK_EQ(order(c, 0, "one-peer", NULL), 0);
    uint64_t from = told(c, 0).strategy_from;
    CHECK(run_to(c, from + 2, from).all);
    CHECK(sim_restart(cluster_sim(c), 3));
    CHECK_EQ(cluster_register(c, 3), 0);
    CHECK_EQ(told(c, 3).strategy_version, 0);
    struct seen seen = run_to(c, told(c, 0).round + 6, from);
    CHECK(seen.all && seen.after <= 4); /* one more than its own: the joiner it serves */
    CHECK(all_told(c, 1, 1, from, "one-peer"));
    CHECK(!(cluster_report(c, 3)->report.flags & SLEET_JOINING));
    cluster_free(c);
}

/* Of node 0 from the others, relative: what the sketches estimate. */
static double distance(cluster *c)
{
    double sum = 0, norm[64] = {0};
    for (uint32_t i = 0; i < nodes_of(c); i++)
        for (uint64_t k = 0; k < cluster_elements(c); k++)
            norm[i] += pow((double)cluster_values(c, i)[k], 2);
    for (uint32_t i = 1; i < nodes_of(c); i++) {
        double square = 0;
        for (uint64_t k = 0; k < cluster_elements(c); k++)
            square += pow((double)cluster_values(c, i)[k] - (double)cluster_values(c, 0)[k], 2);
        sum += square / fmax(norm[0], norm[i]);
    }
    return sqrt(sum / (nodes_of(c) - 1));
}

static void round_told(cluster *c) /* and time for the PINGs about it */
{
    CHECK(cluster_round(c, NULL));
    cluster_idle(c, MS(1200));
}

static void neighbours_come_together(void)
{
    cluster *c = set_up(8, 0.1);
    REQUIRE(c);
    for (int i = 0; i < 3; i++)
        round_told(c);
    CHECK_EQ(told(c, 0).consensus_distance, 0); /* by rps: bit for bit */
    CHECK_EQ(order(c, 0, "one-peer", NULL), 0);
    run_to(c, told(c, 0).strategy_from, 0);
    sleet_rng rng = {test_seed()};
    double peak = 0;
    fill_grid(c, &rng);
    for (int i = 0; i < 4; i++) {
        round_told(c);
        peak = fmax(peak, told(c, 0).consensus_distance);
    }
    CHECK(peak > 0.2);
    CHECK(told(c, 0).mixing > 0 && told(c, 0).mixing < 0.8);
    for (int i = 0; i < 16; i++)
        round_told(c);
    CHECK(distance(c) < 1e-2);
    CHECK(told(c, 0).consensus_distance < 0.15 * peak); /* smoothed */
    cluster_free(c);
}

/* Nothing comes of it where each node goes back to what it had. */
static void neighbours_stay_apart(void)
{
    static float had[8][20 * 288 + 100];
    cluster *c = set_up(8, 0);
    sleet_rng rng = {test_seed()};
    REQUIRE(c);
    CHECK_EQ(order(c, 0, "one-peer", NULL), 0);
    run_to(c, told(c, 0).strategy_from, 0);
    fill_grid(c, &rng);
    for (uint32_t k = 0; k < 8; k++)
        memcpy(had[k], cluster_values(c, k), sizeof had[k]);
    double early = 0;
    for (int i = 0; i < 24; i++) {
        for (uint32_t k = 0; k < 8; k++)
            memcpy(cluster_values(c, k), had[k], sizeof had[k]);
        round_told(c);
        early = i == 11 ? told(c, 0).consensus_distance : early;
    }
    CHECK_NEAR(told(c, 0).consensus_distance / early, 1, 0.35);
    CHECK_NEAR(told(c, 0).consensus_distance / distance(c), 1, 0.35);
    CHECK_NEAR(told(c, 0).mixing, sqrt(3.0 / 7), 0.15); /* a half of the squares, of two others a quarter or of one nothing */
    engine_peer peers[8];
    uint32_t n = engine_get_peers(sim_engine(cluster_sim(c), 0), peers, 8, sim_now(cluster_sim(c)));
    for (uint32_t k = 0; k < n; k++)
        CHECK(peers[k].drift < 0); /* which is no fault of theirs */
    CHECK_EQ(alarms, 0);
    cluster_free(c);
}

static void what_cannot_be_is_refused(void)
{
    struct sim_config config = {.nodes = 2, .seed = test_seed(), .link = CLEAN_LINK, .kind = {.payload = SLEET_GRADIENT}};
    const char *why = NULL;
    cluster *c = cluster_new(&config, counts, 1);
    REQUIRE(c);
    CHECK_EQ(order(c, 0, "one-peer", &why), SLEET_EINVAL);
    CHECK(why && strstr(why, "only strategy rps"));
    CHECK_EQ(order(c, 0, "two-peer", &why), SLEET_EINVAL);
    CHECK(why && strstr(why, "unknown strategy"));
    CHECK_EQ(order(c, 0, "rps:0", &why), SLEET_EINVAL);
    CHECK_EQ(told(c, 0).strategy_version, 0);
    CHECK_EQ(order(c, 0, "rps", &why), 0);
    CHECK_EQ(told(c, 0).strategy_version, 1);
    cluster_free(c);
}

/* The bound is that of all strategies whose rounds and sides may be there. */
static void memory_is_bound_by_all_that_may_be(void)
{
    static const uint32_t rows[] = {60};
    struct sim_config config = {.nodes = 4, .seed = test_seed(), .link = CLEAN_LINK, .rows = rows};
    static const uint64_t matrix[] = {60 * 600};
    cluster *c = ready_cluster(&config, matrix, 1);
    REQUIRE(c);
    const engine *e = sim_engine(cluster_sim(c), 0);
    uint64_t rps = engine_memory_bound_bytes(e);
    CHECK_EQ(order(c, 0, "ring:8", NULL), 0);
    uint64_t sides = 8 * 4 * 8 * (60 + 600), low = engine_memory_bound_bytes(e); /* 8 edges */
    CHECK(low > rps + sides);
    CHECK(run_to(c, told(c, 0).strategy_from + 1, 0).all);
    CHECK_EQ(order(c, 0, "rps", NULL), 0);
    CHECK(engine_memory_bound_bytes(e) >= low);
    CHECK(run_to(c, told(c, 0).strategy_from + 1, 0).all);
    CHECK_EQ(order(c, 0, "rps", NULL), 0);
    CHECK_EQ(engine_memory_bound_bytes(e), rps + sides / 4); /* those of two neighbours are still there */
    cluster_free(c);
}

TEST_SUITE(switch) = {
    TEST(there_and_back_under_loss),
    TEST(through_all_strategies),
    TEST(it_is_told_at_once),
    TEST(two_operators_at_once),
    TEST(who_was_cut_off_hears_of_it),
    TEST(a_joiner_knows_at_once),
    TEST(neighbours_come_together),
    TEST(neighbours_stay_apart),
    TEST(what_cannot_be_is_refused),
    TEST(memory_is_bound_by_all_that_may_be),
    TEST_END,
};
