/* Strategies with packets: groups with owners that change by the round. */
#include "base/rng.h"
#include "helpers.h"
#include <math.h>

#define ELEMENTS (288 * 32)

static double mean_before[ELEMENTS];

static double moments(cluster *c, uint64_t k, double *mean)
{
    uint32_t n = nodes_of(c);
    double sum = 0, squares = 0;
    for (uint32_t i = 0; i < n; i++)
        sum += (double)cluster_values(c, i)[k];
    *mean = sum / n;
    for (uint32_t i = 0; i < n; i++)
        squares += pow((double)cluster_values(c, i)[k] - *mean, 2);
    return squares / n;
}

/* Variance among the nodes, mean over the elements. */
static double spread(cluster *c)
{
    double sum = 0, mean;
    for (uint64_t k = 0; k < ELEMENTS; k++)
        sum += moments(c, k, &mean);
    return sum / ELEMENTS;
}

/* n times the square of what the mean has moved, mean over the elements. */
static double drift(cluster *c)
{
    double sum = 0, mean;
    for (uint64_t k = 0; k < ELEMENTS; k++) {
        moments(c, k, &mean);
        sum += nodes_of(c) * pow(mean - mean_before[k], 2);
    }
    return sum / ELEMENTS;
}

static double draw(cluster *c, uint64_t seed)
{
    sleet_rng rng = {seed};
    for (uint32_t i = 0; i < nodes_of(c); i++)
        for (uint64_t k = 0; k < ELEMENTS; k++)
            cluster_values(c, i)[k] = (float)(rng_double(&rng) - 0.5);
    for (uint64_t k = 0; k < ELEMENTS; k++)
        moments(c, k, &mean_before[k]);
    return spread(c);
}

static bool joined(cluster *c)
{
    for (uint32_t i = 0; i < nodes_of(c); i++)
        if (!cluster_report(c, i)->reported || cluster_report(c, i)->report.flags & SLEET_JOINING)
            return false;
    return true;
}

static cluster *open_job(const struct sim_config *config, uint64_t count)
{
    struct sim_config clean = *config;
    clean.link = CLEAN_LINK;
    cluster *c = cluster_new(&clean, &count, 1);
    if (!c)
        return NULL;
    cluster_idle(c, SEC(4));
    for (int i = 0; i < 30 && (i == 0 || !joined(c)); i++) {
        cluster_round(c, NULL);
        cluster_idle(c, SEC(2));
    }
    if (!joined(c)) {
        cluster_free(c);
        return NULL;
    }
    sim_set_link(cluster_sim(c), SIM_ALL, SIM_ALL, &config->link);
    return c;
}

static bool node_whole(cluster *c, uint32_t node)
{
    const struct cluster_report *r = cluster_report(c, node);
    return !r->error && r->report.coverage == 1.0 && !(r->report.flags & SLEET_ALONE);
}

static bool whole(cluster *c)
{
    for (uint32_t i = 0; i < nodes_of(c); i++)
        if (sim_engine(cluster_sim(c), i) && !node_whole(c, i))
            return false;
    return true;
}

struct grid {
    uint32_t nodes;
    uint16_t numbers[2];
    uint32_t rounds; /* until all hold the mean */
    double before;   /* consensus a round earlier */
};

static void moshpit_is_exact_after_a_pass(void)
{
    static const struct grid grids[] = {
        {16, {4, 2}, 2, 0.2}, {8, {2, 3}, 3, 0.143}, {9, {3, 2}, 2, 0.25}, {12, {4, 2}, 2, 0.23}, {4, {0}, 1, 1}, {100, {10}, 2, 0.09}};
    for (size_t g = 0; g < sizeof grids / sizeof grids[0]; g++) {
        struct sim_config config = {.nodes = grids[g].nodes, .seed = test_seed(), .link = CLEAN_LINK,
                                    .kind = {.strategy = SLEET_MOSHPIT, .numbers = {grids[g].numbers[0], grids[g].numbers[1]}}};
        cluster *c = open_job(&config, ELEMENTS);
        REQUIRE(c);
        double before = draw(c, test_seed());
        for (uint32_t i = 1; i < grids[g].rounds; i++)
            CHECK(cluster_round(c, NULL) && whole(c));
        CHECK_NEAR(spread(c) / before, grids[g].before, 0.25 * grids[g].before);
        CHECK(cluster_round(c, NULL) && whole(c));
        CHECK(identical(c));
        CHECK(drift(c) < 1e-12 * before);
        CHECK(ledger_balances(c));
        cluster_free(c);
    }
}

/* Rounds that follow each other at once: a node is in a group with those that it last heard of many rounds ago. */
static void members_met_long_ago_are_waited_for(void)
{
    static const struct set_kind kinds[] = {{.strategy = SLEET_MOSHPIT, .numbers = {2}}, {.strategy = SLEET_ONE_PEER}};
    for (int k = 0; k < 2; k++) {
        struct sim_config config = {.nodes = 64, .seed = test_seed(), .link = CLEAN_LINK, .kind = kinds[k]};
        cluster *c = open_job(&config, ELEMENTS);
        REQUIRE(c);
        CHECK(cluster_round(c, NULL));
        double before = draw(c, test_seed());
        for (int i = 0; i < 6; i++)
            CHECK(cluster_round(c, NULL) && whole(c));
        CHECK(spread(c) < 1e-12 * before);
        CHECK(drift(c) < 1e-12 * before);
        cluster_free(c);
    }
}

/* Two of one group are away for a round: they come to the next one with all others, not to that which their
 * group has closed without them, and the mean stays. */
static void who_was_away_comes_to_the_next_round(void)
{
    static const uint32_t away[][2] = {{12, 13}, {3, 7}};
    struct sim_config config = {.nodes = 16, .seed = test_seed(), .link = CLEAN_LINK, .kind = {.strategy = SLEET_MOSHPIT}};
    cluster *c = open_job(&config, ELEMENTS);
    REQUIRE(c);
    double before = draw(c, test_seed());
    for (int i = 0; i < 8; i++) { /* away in each other one, along both dimensions */
        for (int k = 0; i % 2 == 0 && k < 2; k++)
            cluster_set_active(c, away[i / 4][k], false);
        cluster_idle(c, SEC(2));
        CHECK(cluster_round(c, NULL));
        for (int k = 0; k < 2; k++)
            cluster_set_active(c, away[i / 4][k], true);
        for (uint32_t n = 1; i % 2 == 1 && n < 16; n++)
            CHECK_EQ(cluster_report(c, n)->report.round, cluster_report(c, 0)->report.round);
        if (i % 4 == 1)
            cluster_round(c, NULL); /* the other dimension's turn */
    }
    CHECK(spread(c) < 1e-3 * before);
    CHECK(drift(c) < 1e-12 * before);
    cluster_free(c);
}

/* Rounds that follow each other at once, in every second of which most are by themselves. */
static void members_by_themselves_go_on(void)
{
    struct sim_config config = {.nodes = 8, .seed = test_seed(), .link = CLEAN_LINK,
                                .kind = {.strategy = SLEET_HIERARCHICAL, .numbers = {4}}};
    cluster *c = open_job(&config, ELEMENTS);
    REQUIRE(c);
    double before = draw(c, test_seed());
    for (int i = 0; i < 24; i++)
        CHECK(cluster_round(c, NULL) && whole(c));
    CHECK(spread(c) < 4e-3 * before);
    CHECK(drift(c) < 1e-12 * before);
    sim_kill(cluster_sim(c), 4);
    cluster_idle(c, SEC(10));
    for (int i = 0; i < 4; i++)
        CHECK(cluster_round(c, NULL) && whole(c)); /* who has died is not missed by who would be alone with it or without */
    cluster_free(c);
}

struct lossy {
    sleet_strategy strategy;
    uint32_t nodes, rounds;
    double loss, consensus, drift; /* after the last one */
};

/* What is lost leaves a node's own values in place: the mean moves once, and all come together all the same. */
static void keeping_own_values_moves_the_mean(void)
{
    static const struct lossy cases[] = {{SLEET_ONE_PEER, 8, 1, 0.05, 0.45, 0.027}, {SLEET_ONE_PEER, 8, 4, 0.05, 5.6e-3, 0.05},
                                         {SLEET_CROSSOVER, 8, 2, 0.1, 0.23, 0.08}, {SLEET_MOSHPIT, 16, 4, 0.1, 1.3e-3, 0.21}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct lossy *t = &cases[i];
        struct sim_config config = {.nodes = t->nodes, .seed = test_seed(), .repair_off = true, .parity_off = true,
                                    .go_on_isolated = true, .link = {.delay = US(200), .loss = t->loss},
                                    .kind = {.strategy = t->strategy}};
        double before = 0, after = 0, moved = 0;
        cluster *c = open_job(&config, ELEMENTS);
        REQUIRE(c);
        for (uint32_t k = 0; k < 12; k++) {
            before += draw(c, test_seed() + k);
            for (uint32_t r = 0; r < t->rounds; r++) {
                CHECK(cluster_round(c, NULL));
                cluster_idle(c, MS(5));
            }
            after += spread(c);
            moved += drift(c);
        }
        CHECK_NEAR(after / before, t->consensus, 0.3 * t->consensus);
        CHECK_NEAR(moved / before, t->drift, 0.2 * t->drift);
        cluster_free(c);
    }
}

#define MANY (288 * 8 * 64)
#define VICTIM 4

static void kill_victim(sim *s, void *arg)
{
    (void)arg;
    sim_kill(s, VICTIM);
}

static void draw_many(cluster *c)
{
    sleet_rng rng = {test_seed()};
    for (uint32_t i = 0; i < nodes_of(c); i++)
        for (uint64_t k = 0; k < MANY; k++)
            cluster_values(c, i)[k] = (float)(rng_double(&rng) - 0.5);
}

/* Its group keeps its own values there, in time, and says so; the others do not notice.  The next round is
 * held by those that are left. */
static void a_reducer_that_dies_costs_its_group_its_share(void)
{
    static float before[9][MANY];
    struct sim_config config = {.nodes = 9, .seed = test_seed(), .link = CLEAN_LINK,
                                .kind = {.strategy = SLEET_MOSHPIT, .numbers = {3}}};
    cluster *c = open_job(&config, MANY);
    REQUIRE(c);
    sim *s = cluster_sim(c);
    uint32_t hurt = 0, sizes[4] = {0};
    draw_many(c);
    for (uint32_t i = 0; i < 9; i++)
        memcpy(before[i], cluster_values(c, i), sizeof before[i]);
    sim_at(s, time_add(sim_now(s), MS(3)), kill_victim, NULL); /* it needs 10 to send what it has */
    CHECK(cluster_round(c, NULL));
    CHECK_EQ(cluster_overdue(c), 0);
    for (uint32_t i = 0; i < 9; i++) {
        const sleet_report *r = &cluster_report(c, i)->report;
        uint64_t kept = 0;
        for (uint64_t k = 0; k < MANY; k++)
            kept += cluster_values(c, i)[k] == before[i][k];
        if (i == VICTIM || (kept == 0 && node_whole(c, i)))
            continue;
        hurt++;
        CHECK_NEAR((double)kept / MANY, 1.0 / 3, 0.1);
        CHECK(r->coverage < 0.9 && !(r->flags & (SLEET_DEADLINE | SLEET_COMPLETE)));
        CHECK_EQ((r->fragments_lost + r->fragments_unsent) * 288, kept);
    }
    CHECK_EQ(hurt, 2);
    cluster_idle(c, SEC(10));
    CHECK(cluster_round(c, NULL));
    for (uint32_t i = 0; i < 9; i++) {
        sizes[cluster_report(c, i)->report.group_size % 4] += i != VICTIM;
        CHECK(i == VICTIM || node_whole(c, i));
    }
    CHECK(sizes[3] == 6 && sizes[2] == 2);
    cluster_free(c);
}

static void freeze_victim(sim *s, void *arg)
{
    (void)arg;
    sim_freeze(s, VICTIM, true);
}

/* A member that is frozen in the middle of rounds and comes back is in the next ones, and has spoilt no average. */
static void a_frozen_member_comes_back(void)
{
    struct sim_config config = {.nodes = 9, .seed = test_seed(), .link = CLEAN_LINK,
                                .kind = {.strategy = SLEET_MOSHPIT, .numbers = {3}}};
    cluster *c = open_job(&config, ELEMENTS);
    REQUIRE(c);
    double before = draw(c, test_seed()), most = 0;
    sim *s = cluster_sim(c);
    for (int i = 0; i < 6; i++) {
        if (i % 3 == 0)
            sim_at(s, time_add(sim_now(s), MS(1)), freeze_victim, NULL); /* it needs 2 to send what it has */
        if (i % 3 == 2)
            sim_freeze(s, VICTIM, false);
        CHECK(cluster_round(c, NULL));
    }
    sim_freeze(s, VICTIM, false);
    cluster_idle(c, SEC(4));
    CHECK_EQ(cluster_overdue(c), 0);
    for (uint32_t i = 0; i < 9; i++)
        for (uint64_t k = 0; k < ELEMENTS; k++)
            most = fmax(most, fabs((double)cluster_values(c, i)[k]));
    CHECK(most <= 0.5); /* a mean of some of what was drawn */
    for (int i = 0; i < 4; i++) {
        CHECK(cluster_round(c, NULL));
        cluster_idle(c, SEC(2));
    }
    CHECK(whole(c) && identical(c));
    CHECK(spread(c) < before);
    cluster_free(c);
}

static uint64_t sent[8];

static void count_bytes(sim *s, const struct sim_datagram *d, void *arg)
{
    (void)arg;
    sent[d->from] += d->len;
    sim_relay(s, d, 0);
}

static uint64_t bytes_of_a_round(cluster *c)
{
    uint64_t sum = 0;
    memset(sent, 0, sizeof sent);
    sim_on_datagram(cluster_sim(c), count_bytes, NULL);
    CHECK(cluster_round(c, NULL) && whole(c));
    sim_on_datagram(cluster_sim(c), NULL, NULL);
    for (uint32_t i = 0; i < 8; i++)
        sum += sent[i];
    return sum;
}

/* All send as much; and a node that is frozen costs the others a segment in seven, or all that they would have had of it. */
static void crossover_spreads_a_fault(void)
{
    static const uint16_t segments[] = {64, 1};
    for (int k = 0; k < 2; k++) {
        struct sim_config config = {.nodes = 8, .seed = test_seed(), .link = CLEAN_LINK,
                                    .kind = {.strategy = SLEET_CROSSOVER, .numbers = {segments[k]}}};
        cluster *c = open_job(&config, MANY);
        REQUIRE(c);
        uint64_t least = UINT64_MAX, most = 0;
        double least_there = 1, all = 0;
        bytes_of_a_round(c);
        for (uint32_t i = 0; i < 8; i++) {
            least = sent[i] < least ? sent[i] : least;
            most = sent[i] > most ? sent[i] : most;
        }
        CHECK(most - least < 1200 && least > MANY * 4);
        sim_freeze(cluster_sim(c), VICTIM, true);
        CHECK(cluster_round(c, NULL));
        for (uint32_t i = 0; i < 8; i++) {
            double there = cluster_report(c, i)->report.coverage;
            least_there = i != VICTIM && there < least_there ? there : least_there;
            all += i != VICTIM ? 2 * there - 1 : 0; /* of the other's values */
        }
        CHECK_NEAR(all, 6, 1e-9);
        CHECK(k == 1 || 2 * (1 - least_there) <= 10.0 / 64);
        CHECK(k == 0 || least_there == 0.5);
        CHECK_EQ(cluster_overdue(c), 0);
        cluster_free(c);
    }
}

/* Two groups of four: in each second round two nodes of eight send across. */
static void a_hierarchy_sends_a_quarter_across(void)
{
    uint64_t bytes[2] = {0};
    for (int k = 0; k < 2; k++) {
        struct sim_config config = {.nodes = 8, .seed = test_seed(), .link = CLEAN_LINK,
                                    .kind = {.strategy = SLEET_CROSSOVER, .numbers = {16, k ? 4 : 0}}};
        cluster *c = open_job(&config, MANY);
        REQUIRE(c);
        draw_many(c);
        bytes[k] = bytes_of_a_round(c);
        uint64_t other = bytes_of_a_round(c);
        bytes[k] = other < bytes[k] ? other : bytes[k]; /* one of the two was within the groups */
        cluster_free(c);
    }
    CHECK_NEAR((double)bytes[1] / (double)bytes[0], 0.25, 0.005);
}

TEST_SUITE(strategies) = {
    TEST(moshpit_is_exact_after_a_pass),
    TEST(members_met_long_ago_are_waited_for),
    TEST(who_was_away_comes_to_the_next_round),
    TEST(members_by_themselves_go_on),
    TEST(keeping_own_values_moves_the_mean),
    TEST(a_reducer_that_dies_costs_its_group_its_share),
    TEST(a_frozen_member_comes_back),
    TEST(crossover_spreads_a_fault),
    TEST(a_hierarchy_sends_a_quarter_across),
    TEST_END,
};
