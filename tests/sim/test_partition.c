/* Jobs that are cut apart and meet again.  Trainers go at their own pace; one that is told that
 * it is parked takes no step.  What is checked: at most one side goes on, the other parks within
 * one suspicion time, no call passes its deadline, and all hold the same bits soon after. */
#include "engine_internal.h" /* for the lineages */
#include "helpers.h"

#define NODES_MAX 8
#define COMPUTE MS(50)
#define DEADLINE MS(500)
#define SUSPICION MS(2500) /* 2.5 ping periods */
#define CUT SEC(30)
#define SAME_WITHIN 4 /* rounds */

static const uint64_t counts[] = {3000, 11};

struct job {
    cluster *c;
    sleet_rng rng;
    bool over, fill;
    sleet_duration compute; /* of a step; 0: COMPUTE */
    uint32_t still; /* not 0: values are 1 on the nodes of these bits, 2 on the others */
    uint32_t merges, yields; /* that nodes have logged */
    struct node {
        struct job *job;
        uint32_t id;
        uint32_t rounds, parked, joined; /* reports with progress, without, as joiner */
        sleet_time first_parked, last_parked, last_progress;
        float sent[3011];
        bool kept; /* no parked report has changed a value */
    } node[NODES_MAX];
};

static sleet_time now_of(struct job *j)
{
    return sim_now(cluster_sim(j->c));
}

static struct set *set_of(struct job *j, uint32_t node)
{
    return &sim_engine(cluster_sim(j->c), node)->sets[cluster_set(j->c, node)];
}

static void begin(sim *s, void *arg)
{
    struct node *n = arg;
    struct job *j = n->job;
    sleet_round_options options = {.deadline_ns = DEADLINE};
    if (j->over || !sim_engine(s, n->id))
        return;
    memcpy(n->sent, cluster_values(j->c, n->id), sizeof n->sent);
    CHECK_EQ(cluster_start(j->c, n->id, &options), SLEET_OK);
}

static void reported(cluster *c, uint32_t node, void *arg)
{
    struct job *j = arg;
    struct node *n = &j->node[node];
    const sleet_report *r = &cluster_report(c, node)->report;
    float *x = cluster_values(c, node);
    if (j->over)
        return;
    sleet_time next = now_of(j);
    if (r->flags & SLEET_PARKED) {
        if (n->parked++ == 0)
            n->first_parked = now_of(j);
        n->last_parked = now_of(j);
        n->kept &= memcmp(n->sent, x, sizeof n->sent) == 0;
    } else {
        n->rounds++;
        n->joined += (r->flags & SLEET_JOINING) != 0;
        n->last_progress = now_of(j);
        for (uint64_t k = 0; !j->still && k < cluster_elements(c); k++)
            x[k] += (float)(rng_double(&j->rng) - 0.5);
        for (uint64_t k = 0; j->fill && k < cluster_elements(c); k++)
            x[k] = j->still >> node & 1 ? 1 : 2;
        next = time_add(next, j->compute ? j->compute : COMPUTE);
    }
    sim_at(cluster_sim(c), next, begin, n);
}

static void logged(void *arg, log_level level, log_fault fault, const char *event,
                   const log_field *fields, int n)
{
    struct job *j = arg;
    (void)level, (void)fault, (void)fields, (void)n;
    j->merges += strcmp(event, "lineage-merges") == 0;
    j->yields += strcmp(event, "lineage-yields") == 0;
}

static bool launch(struct job *j, const struct sim_config *config)
{
    struct sim_config logging = *config;
    *j = (struct job){.rng = {config->seed}};
    logging.log = (log_sink){logged, j};
    j->c = ready_cluster(&logging, counts, 2);
    if (!j->c)
        return false;
    for (uint32_t i = 0; i < nodes_of(j->c); i++)
        j->node[i] = (struct node){.job = j, .id = i, .kept = true};
    cluster_on_report(j->c, reported, j);
    for (uint32_t i = 0; i < nodes_of(j->c); i++)
        begin(cluster_sim(j->c), &j->node[i]);
    cluster_idle(j->c, SEC(2));
    return true;
}

/* Reports from here on. */
static void count_anew(struct job *j)
{
    for (uint32_t i = 0; i < nodes_of(j->c); i++)
        j->node[i].rounds = j->node[i].parked = j->node[i].joined = 0;
}

/* Nodes whose bits differ do not reach each other, one way or both. */
static void cut(struct job *j, uint32_t sides, bool there, bool back, const struct sim_link *link)
{
    struct sim_link down = *link;
    down.down = true;
    for (uint32_t a = 0; a < nodes_of(j->c); a++)
        for (uint32_t b = 0; b < nodes_of(j->c); b++)
            if (a != b && (sides >> a & 1) && !(sides >> b & 1)) {
                sim_set_link(cluster_sim(j->c), a, b, there ? &down : link);
                sim_set_link(cluster_sim(j->c), b, a, back ? &down : link);
            }
}

static void heal(struct job *j, const struct sim_link *link)
{
    sim_set_link(cluster_sim(j->c), SIM_ALL, SIM_ALL, link);
}

static uint32_t lineages(struct job *j)
{
    uint64_t seen[NODES_MAX];
    uint32_t n = 0;
    for (uint32_t i = 0; i < nodes_of(j->c); i++) {
        uint32_t k = 0;
        const struct set *s = sim_engine(cluster_sim(j->c), i) ? set_of(j, i) : NULL;
        while (s && s->established && k < n && seen[k] != s->lineage)
            k++;
        if (s && s->established && k == n)
            seen[n++] = s->lineage;
    }
    return n;
}

/* Let the trainers end, and see that all hold one model. */
static bool one_model(struct job *j)
{
    sleet_round_options exact = {.exact = 1};
    struct sim_link clean = CLEAN_LINK;
    bool same = false;
    j->over = true;
    heal(j, &clean);
    cluster_idle(j->c, SEC(2));
    for (int i = 0; i < SAME_WITHIN && !same; i++)
        same = cluster_round(j->c, &exact) && identical(j->c) && all_complete(j->c);
    return same && lineages(j) == 1;
}

static void end(struct job *j)
{
    CHECK_EQ(cluster_overdue(j->c), 0);
    CHECK(ledger_balances(j->c));
    for (uint32_t i = 0; i < nodes_of(j->c); i++)
        CHECK(j->node[i].kept);
    cluster_free(j->c);
}

/* ---- splits -------------------------------------------------------------------- */

static const struct split {
    uint32_t nodes, sides; /* sides: bits of those on the side that goes on */
} splits[] = {
    {6, 0x07},          /* 3/3: the lowest id decides */
    {6, 0x15},          {3, 0x03}, {3, 0x06}, /* 2/1: with and without the lowest id */
    {4, 0x03},          {4, 0x09}, {8, 0x0f}, {8, 0x1f}, {8, 0xf8},
};

/* Each of those that are not to go on parks within one suspicion time of the cut, for good; a round
 * that was open then ends by its deadline. */
static void check_parked(struct job *j, const struct split *p, sleet_time cut_at, sleet_time heal_at)
{
    for (uint32_t i = 0; i < p->nodes; i++) {
        const struct node *n = &j->node[i];
        if (p->sides >> i & 1) {
            CHECK_EQ(n->parked, 0);
            CHECK(n->rounds > (uint32_t)(CUT / SEC(1))); /* at least one each second */
            continue;
        }
        CHECK(n->parked > 0);
        CHECK(time_since(n->last_progress, cut_at) <= SUSPICION + DEADLINE + MS(100));
        CHECK(time_since(heal_at, n->last_parked) <= DEADLINE + MS(100));
    }
}

static void one_split(const struct split *p, uint64_t seed, double loss)
{
    struct sim_link link = CLEAN_LINK;
    link.loss = loss;
    struct sim_config config = {.nodes = p->nodes, .seed = seed, .link = link};
    static struct job j;
    REQUIRE(launch(&j, &config));
    count_anew(&j);
    sleet_time cut_at = now_of(&j);
    cut(&j, p->sides, true, true, &link);
    cluster_idle(j.c, CUT);
    check_parked(&j, p, cut_at, now_of(&j));
    CHECK_EQ(lineages(&j), 1);
    count_anew(&j);
    heal(&j, &link);
    cluster_idle(j.c, SEC(5));
    for (uint32_t i = 0; i < p->nodes; i++) {
        CHECK(j.node[i].rounds > 5);
        bool went_on = p->sides >> i & 1;
        CHECK(j.node[i].joined > 0 || went_on); /* who parked joins again */
        /* Of the others one may fall behind by the window where datagrams are lost. */
        CHECK(j.node[i].joined == 0 || !went_on || loss > 0);
    }
    if (!CHECK(one_model(&j)))
        printf("seed %" PRIu64 ": %u nodes, sides %x\n", seed, p->nodes, p->sides);
    end(&j);
}

static void the_smaller_side_parks(void)
{
    for (unsigned i = 0; i < test_repeats(10); i++)
        for (size_t k = 0; k < sizeof splits / sizeof splits[0]; k++)
            one_split(&splits[k], test_seed() + i, i % 2 ? 0.1 : 0);
}

/* A cut of a few rounds only: who was parked takes the others' model all the same, nothing of its own
 * gets into theirs. */
static void the_parked_bring_nothing(void)
{
    for (unsigned i = 0; i < test_repeats(10); i++) {
        struct sim_link link = CLEAN_LINK;
        struct sim_config config = {.nodes = 6, .seed = test_seed() + i, .link = link};
        static struct job j;
        REQUIRE(launch(&j, &config));
        j.compute = MS(900);
        j.still = 0x07;
        cluster_idle(j.c, SEC(2));
        cut(&j, 0x07, true, true, &link);
        cluster_idle(j.c, SEC(2));
        j.fill = true; /* on the side that goes on; the other one reports nothing but that it is parked */
        cluster_idle(j.c, SEC(2));
        CHECK(set_of(&j, 0)->own_round > set_of(&j, 3)->own_round);
        CHECK(set_of(&j, 0)->own_round < set_of(&j, 3)->own_round + 5);
        j.fill = false;
        heal(&j, &link);
        cluster_idle(j.c, SEC(5));
        CHECK(one_model(&j));
        for (uint64_t k = 0; k < cluster_elements(j.c); k++)
            if (!CHECK(cluster_values(j.c, 3)[k] == 1))
                break;
        end(&j);
    }
}

/* Of three sides none is the larger part: all wait, none has to join again. */
static void three_sides_park(void)
{
    struct sim_link link = CLEAN_LINK;
    struct sim_config config = {.nodes = 6, .seed = test_seed(), .link = link};
    static struct job j;
    REQUIRE(launch(&j, &config));
    cut(&j, 0x03, true, true, &link);
    cut(&j, 0x0c, true, true, &link);
    cluster_idle(j.c, SEC(5));
    count_anew(&j);
    cluster_idle(j.c, SEC(10));
    for (uint32_t i = 0; i < 6; i++)
        CHECK(j.node[i].rounds == 0 && j.node[i].parked > 0);
    heal(&j, &link);
    cluster_idle(j.c, SEC(5));
    for (uint32_t i = 0; i < 6; i++)
        CHECK(j.node[i].rounds > 5);
    CHECK(one_model(&j));
    end(&j);
}

/* Of two nodes the second cannot tell a cut from a death: it parks at first, then goes on in a lineage
 * of its own; the lighter of the two yields. */
static void a_pair_is_cut(void)
{
    struct sim_link link = CLEAN_LINK;
    struct sim_config config = {.nodes = 2, .seed = test_seed(), .link = link};
    static struct job j;
    REQUIRE(launch(&j, &config));
    count_anew(&j);
    cut(&j, 1, true, true, &link);
    cluster_idle(j.c, SEC(8));
    CHECK(j.node[0].rounds > 50 && j.node[0].parked == 0);
    CHECK(j.node[1].parked > 0);
    CHECK_EQ(lineages(&j), 1);
    count_anew(&j);
    cluster_idle(j.c, SEC(22));
    CHECK(j.node[1].rounds > 100);
    CHECK_EQ(lineages(&j), 2);
    count_anew(&j);
    heal(&j, &link);
    cluster_idle(j.c, SEC(3));
    CHECK(j.node[0].joined == 0 && j.node[1].joined > 0);
    CHECK(one_model(&j));
    end(&j);
}

/* Only one way is cut.  Who is not heard learns that from the pings of those who do not hear it. */
static void one_way_is_cut(void)
{
    static const struct split half = {6, 0x07};
    for (int back = 0; back < 2; back++) {
        struct sim_link link = CLEAN_LINK;
        struct sim_config config = {.nodes = 6, .seed = test_seed(), .link = link};
        static struct job j;
        REQUIRE(launch(&j, &config));
        cut(&j, half.sides, !back, back, &link);
        cluster_idle(j.c, 2 * SUSPICION + SEC(1));
        count_anew(&j);
        cluster_idle(j.c, SEC(20));
        for (uint32_t i = 0; i < 6; i++)
            CHECK(half.sides >> i & 1 ? j.node[i].parked == 0 && j.node[i].rounds > 20
                                      : j.node[i].rounds == 0 && j.node[i].parked > 0);
        heal(&j, &link);
        cluster_idle(j.c, SEC(5));
        CHECK(one_model(&j));
        end(&j);
    }
}

/* One node hears both sides.  Where it makes the larger part of either, nobody parks, and what
 * the sides do is averaged through it. */
static void a_node_bridges_the_sides(void)
{
    static const struct { uint32_t bridge, parked; } cases[] = {{2, 0}, {3, 0x30}};
    for (size_t k = 0; k < 2; k++) {
        struct sim_link link = CLEAN_LINK;
        struct sim_config config = {.nodes = 6, .seed = test_seed(), .link = link};
        static struct job j;
        REQUIRE(launch(&j, &config));
        cut(&j, 0x07, true, true, &link);
        sim_set_link(cluster_sim(j.c), cases[k].bridge, SIM_ALL, &link);
        sim_set_link(cluster_sim(j.c), SIM_ALL, cases[k].bridge, &link);
        cluster_idle(j.c, SEC(4));
        count_anew(&j);
        cluster_idle(j.c, SEC(20));
        for (uint32_t i = 0; i < 6; i++)
            CHECK((j.node[i].parked > 0) == (cases[k].parked >> i & 1));
        heal(&j, &link);
        cluster_idle(j.c, SEC(5));
        CHECK(one_model(&j));
        end(&j);
    }
}

/* Cuts of any shape follow each other before the last one is over. */
static void cuts_follow_each_other(void)
{
    for (unsigned i = 0; i < test_repeats(20); i++) {
        struct sim_link link = CLEAN_LINK;
        link.loss = i % 2 ? 0.05 : 0;
        struct sim_config config = {.nodes = 2 + i % 6,
                                    .seed = test_seed() + i,
                                    .link = link,
                                    .part_continue = i % 3 == 0};
        static struct job j;
        sleet_rng rng = {config.seed};
        REQUIRE(launch(&j, &config));
        for (int k = 0; k < 12; k++) {
            heal(&j, &link);
            if (rng_below(&rng, 4))
                cut(&j, rng_below(&rng, 1u << config.nodes), rng_below(&rng, 4) != 0,
                    rng_below(&rng, 4) != 0, &link);
            cluster_idle(j.c, MS(200 + (int)rng_below(&rng, 12000)));
        }
        heal(&j, &link);
        cluster_idle(j.c, SEC(10));
        if (!CHECK(one_model(&j)))
            printf("seed %" PRIu64 ": %u nodes, %u lineages\n", config.seed, config.nodes,
                   lineages(&j));
        end(&j);
    }
}

/* ---- members that go ----------------------------------------------------------- */

static void part_by(struct job *j, uint32_t node, bool kill)
{
    sim *s = cluster_sim(j->c);
    if (kill) {
        sim_kill(s, node);
        return;
    }
    engine_leave(sim_engine(s, node), sim_now(s));
    sim_kick(s, node);
    cluster_idle(j->c, MS(10));
    sim_kill(s, node);
}

/* Half of the members go at once.  A good-bye shrinks the view; after deaths the half without the
 * lowest id waits for the operator's word. */
static void half_of_the_members_go(void)
{
    static const struct { bool kill; uint32_t first; bool parks; } cases[] = {
        {false, 0, false}, {false, 3, false}, {true, 3, false}, {true, 0, true}};
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        struct sim_config config = {.nodes = 6, .seed = test_seed(), .link = CLEAN_LINK};
        static struct job j;
        uint32_t left = 3 - cases[k].first;
        REQUIRE(launch(&j, &config));
        for (uint32_t i = cases[k].first; i < cases[k].first + 3; i++)
            part_by(&j, i, cases[k].kill);
        cluster_idle(j.c, cases[k].kill ? SEC(4) : MS(100));
        count_anew(&j);
        cluster_idle(j.c, SEC(30));
        for (uint32_t i = left; i < left + 3; i++)
            CHECK(cases[k].parks ? j.node[i].rounds == 0 : j.node[i].parked == 0);
        if (cases[k].parks) {
            CHECK_EQ(engine_resume(sim_engine(cluster_sim(j.c), 4), now_of(&j)), 1);
            sim_kick(cluster_sim(j.c), 4);
            cluster_idle(j.c, SEC(1));
            CHECK_EQ(engine_resume(sim_engine(cluster_sim(j.c), 5), now_of(&j)), 0);
            count_anew(&j);
            cluster_idle(j.c, SEC(5));
            CHECK_EQ(lineages(&j), 1);
        }
        for (uint32_t i = left; i < left + 3; i++)
            CHECK(j.node[i].rounds > 20);
        end(&j);
    }
}

/* Deaths that the larger part sees one at a time leave a job that goes on, down to the last. */
static void members_die_one_by_one(void)
{
    struct sim_config config = {.nodes = 5, .seed = test_seed(), .link = CLEAN_LINK};
    static struct job j;
    REQUIRE(launch(&j, &config));
    for (uint32_t dead = 0; dead < 4; dead++) {
        part_by(&j, dead, true);
        cluster_idle(j.c, SEC(15)); /* certain after 12.5 s */
        count_anew(&j);
        cluster_idle(j.c, SEC(2));
        for (uint32_t i = dead + 1; i < 5; i++)
            CHECK(j.node[i].rounds > 15 && j.node[i].parked == 0);
    }
    end(&j);
}

/* The dead come back as others: those who waited for them go on at once. */
static void a_restart_ends_the_wait(void)
{
    struct sim_config config = {.nodes = 4, .seed = test_seed(), .link = CLEAN_LINK};
    static struct job j;
    REQUIRE(launch(&j, &config));
    part_by(&j, 0, true);
    part_by(&j, 1, true);
    cluster_idle(j.c, SEC(20));
    count_anew(&j);
    REQUIRE(sim_restart(cluster_sim(j.c), 0));
    CHECK_EQ(cluster_register(j.c, 0), SLEET_OK);
    begin(cluster_sim(j.c), &j.node[0]);
    cluster_idle(j.c, SEC(5));
    CHECK(j.node[0].joined > 0);
    for (uint32_t i = 0; i < 4; i++)
        CHECK(i == 1 || j.node[i].rounds > 20);
    end(&j);
}

/* ---- continue -------------------------------------------------------------------- */

/* The mean of all values of node 0. */
static double mean_of(struct job *j)
{
    double sum = 0;
    for (uint64_t k = 0; k < cluster_elements(j->c); k++)
        sum += (double)cluster_values(j->c, 0)[k];
    return sum / (double)cluster_elements(j->c);
}

/* Both sides go on, each in its lineage.  What is left when they meet: the model of the heavier one
 * and nothing of the other, or, where they may merge, one model as well, mostly of both: while the
 * groups differ one side can get ahead by more than the window, and the other then joins it. */
static void both_sides_go_on(void)
{
    static const struct { uint32_t nodes, sides, merge_rounds; double low, high; } cases[] = {
        {6, 0x07, 1, 1, 2}, /* equal: either */
        {8, 0x1f, 1, 1, 1}, /* five weigh more than three */
        {8, 0x07, 1, 2, 2}, /* also than the three with the lowest id */
        {6, 0x07, 1000000, 1, 2},
        {8, 0x1f, 1000000, 1, 2},
    };
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        struct sim_link link = CLEAN_LINK;
        struct sim_config config = {.nodes = cases[k].nodes,
                                    .seed = test_seed(),
                                    .link = link,
                                    .part_continue = true,
                                    .merge_rounds = cases[k].merge_rounds};
        static struct job j;
        bool merge = cases[k].merge_rounds > 1;
        REQUIRE(launch(&j, &config));
        j.still = cases[k].sides;
        cut(&j, cases[k].sides, true, true, &link);
        cluster_idle(j.c, SEC(10));
        CHECK_EQ(lineages(&j), 2);
        count_anew(&j);
        j.fill = true;
        cluster_idle(j.c, SEC(20));
        j.fill = false;
        for (uint32_t i = 0; i < config.nodes; i++)
            CHECK(j.node[i].rounds > 100 && j.node[i].parked == 0);
        heal(&j, &link);
        cluster_idle(j.c, SEC(5));
        CHECK(merge ? j.yields == 0 && j.merges > 0 : j.yields > 0 && j.merges == 0);
        CHECK(one_model(&j));
        double left = mean_of(&j);
        CHECK(left >= cases[k].low && left <= cases[k].high);
        CHECK(merge || left == 1 || left == 2);
        end(&j);
    }
}

/* A cut that is over before the limit: nobody joins again, at any number of rounds apart all nodes
 * decide alike. */
static void a_short_cut_is_averaged(void)
{
    uint32_t merged = 0, yielded = 0;
    for (unsigned i = 0; i < test_repeats(40); i++) {
        struct sim_link link = CLEAN_LINK;
        struct sim_config config = {.nodes = 6,
                                    .seed = test_seed() + i,
                                    .link = link,
                                    .part_continue = true,
                                    .merge_rounds = 60 + i * 40 / test_repeats(40)};
        static struct job j;
        REQUIRE(launch(&j, &config));
        cut(&j, 0x07, true, true, &link);
        cluster_idle(j.c, MS(6200)); /* the next pings come some 75 rounds after */
        CHECK_EQ(lineages(&j), 2);
        heal(&j, &link);
        cluster_idle(j.c, SEC(4));
        CHECK((j.merges == 3 && j.yields == 0) || (j.merges == 0 && j.yields == 3));
        merged += j.merges > 0;
        yielded += j.yields > 0;
        CHECK(one_model(&j));
        end(&j);
    }
    CHECK(merged > 0 && yielded > 0);
}

/* ---- isolation ------------------------------------------------------------------- */

/* Pings reach a node, data does not: after ten rounds it keeps its values. */
static void an_isolated_node_pauses(void)
{
    for (int go_on = 0; go_on < 2; go_on++) {
        struct sim_link link = CLEAN_LINK, small = CLEAN_LINK;
        struct sim_config config = {
            .nodes = 3, .seed = test_seed(), .link = link, .go_on_isolated = go_on};
        static struct job j;
        small.mtu_bytes = 600;
        REQUIRE(launch(&j, &config));
        count_anew(&j);
        sim_set_link(cluster_sim(j.c), 2, SIM_ALL, &small);
        sim_set_link(cluster_sim(j.c), SIM_ALL, 2, &small);
        cluster_idle(j.c, SEC(20));
        CHECK(go_on || j.node[2].rounds <= 12);
        CHECK((j.node[2].parked > 0) == !go_on);
        CHECK(j.node[0].parked == 0 && j.node[0].rounds > 15);
        count_anew(&j);
        heal(&j, &link);
        cluster_idle(j.c, SEC(5));
        CHECK(j.node[2].rounds > 20);
        CHECK(one_model(&j));
        end(&j);
    }
}

TEST_SUITE(partition) = {
    TEST(the_smaller_side_parks),
    TEST(the_parked_bring_nothing),
    TEST(three_sides_park),
    TEST(a_pair_is_cut),
    TEST(one_way_is_cut),
    TEST(a_node_bridges_the_sides),
    TEST(cuts_follow_each_other),
    TEST(half_of_the_members_go),
    TEST(members_die_one_by_one),
    TEST(a_restart_ends_the_wait),
    TEST(both_sides_go_on),
    TEST(a_short_cut_is_averaged),
    TEST(an_isolated_node_pauses),
    TEST_END,
};
