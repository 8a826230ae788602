/* The edges of the engine: one node alone, odd sizes, late joiners, trainers at
 * different paces, nodes that do not fit together, calls that are refused. */
#include "helpers.h"

#define MEAN_MAX 65540

static double mean[MEAN_MAX];

static void keep_mean(cluster *c, uint32_t but)
{
    for (uint64_t k = 0; k < cluster_elements(c); k++) {
        double sum = 0;
        uint32_t n = 0;
        for (uint32_t i = 0; i < nodes_of(c); i++)
            if (i != but && ++n)
                sum += (double)cluster_values(c, i)[k];
        mean[k] = sum / n;
    }
}

/* Elements of `node` that are not the kept mean, but for the last bit. */
static uint64_t off_mean(cluster *c, uint32_t node)
{
    uint64_t bad = 0;
    for (uint64_t k = 0; k < cluster_elements(c); k++) {
        float want = (float)mean[k], got = cluster_values(c, node)[k];
        bad += got != want && nextafterf(want, got) != got;
    }
    return bad;
}

static void averages_rightly(uint32_t nodes, const uint64_t *counts, uint32_t tensors)
{
    struct sim_config config = {.nodes = nodes, .seed = test_seed() + nodes, .link = CLEAN_LINK};
    sleet_rng rng = {config.seed};
    cluster *c = ready_cluster(&config, counts, tensors);
    REQUIRE(c);
    for (int round = 0; round < 3; round++) {
        fill_grid(c, &rng);
        keep_mean(c, SIM_ALL);
        CHECK(cluster_round(c, NULL));
        CHECK(all_complete(c));
        CHECK(identical(c));
        CHECK_EQ(off_mean(c, 0), 0);
    }
    CHECK_EQ(cluster_overdue(c), 0);
    CHECK(ledger_balances(c));
    cluster_free(c);
}

/* ---- one node ----------------------------------------------------------- */

static const float odd_values[] = {0.0f, -0.0f, 1.5f, -3.25e-7f, 0x1p-149f, -0x1.8p-130f,
                                   0x1.fffffep127f, 0x1p-126f};
#define ODD (sizeof odd_values / sizeof odd_values[0])

static void check_alone(cluster *c)
{
    memcpy(cluster_values(c, 0), odd_values, sizeof odd_values);
    CHECK(cluster_round(c, NULL));
    CHECK_EQ(cluster_report(c, 0)->error, SLEET_OK);
    CHECK(cluster_report(c, 0)->report.coverage == 1.0);
    CHECK_EQ(cluster_report(c, 0)->report.expected, 1);
    CHECK_MEM(cluster_values(c, 0), odd_values, sizeof odd_values);
}

/* Rounds until both contribute, at most `most`. */
static bool both_take_part(cluster *c, int most)
{
    for (int i = 0; i < most; i++) {
        CHECK(cluster_round(c, NULL));
        if (i > 0 && all_complete(c))
            return true;
        cluster_idle(c, MS(100));
    }
    return false;
}

static void alone_then_two_then_alone(void)
{
    static const uint64_t counts[] = {ODD};
    struct sim_config config = {.nodes = 2, .seed = test_seed(), .link = CLEAN_LINK};
    cluster *c = cluster_new(&config, counts, 1);
    REQUIRE(c);
    sim *s = cluster_sim(c);
    sleet_rng rng = {test_seed()};
    sim_kill(s, 1);
    cluster_idle(c, SEC(4));
    for (int round = 0; round < 3; round++)
        check_alone(c);
    REQUIRE(sim_restart(s, 1));
    CHECK_EQ(cluster_register(c, 1), SLEET_OK);
    cluster_idle(c, SEC(2));
    CHECK(both_take_part(c, 6));
    fill_grid(c, &rng);
    keep_mean(c, SIM_ALL);
    CHECK(cluster_round(c, NULL));
    CHECK(all_complete(c));
    CHECK(identical(c));
    CHECK_EQ(off_mean(c, 1), 0);
    cluster_set_active(c, 1, false);
    engine_leave(sim_engine(s, 1), sim_now(s));
    sim_kick(s, 1);
    cluster_idle(c, MS(10));
    CHECK_EQ(cluster_start(c, 1, NULL), SLEET_ELEFT);
    for (int round = 0; round < 3; round++)
        check_alone(c);
    cluster_free(c);
}

/* ---- sizes and numbers -------------------------------------------------- */

static void sizes(void)
{
    static const uint64_t single[] = {1, 287, 288, 289};
    static const uint64_t several[] = {0, 1, 287, 0, 288, 289, 2304, 577, 0};
    for (size_t i = 0; i < sizeof single / sizeof single[0]; i++)
        averages_rightly(3, &single[i], 1);
    averages_rightly(3, several, sizeof several / sizeof several[0]);
}

/* Around every power of two. */
static void sizes_sweep(void)
{
    for (uint64_t power = 1; power <= 1u << 16; power *= 2)
        for (uint64_t n = power - 1; n <= power + 1; n++)
            if (n > 0)
                averages_rightly(2, &n, 1);
}

/* There is nothing to wait for, nor to miss: also for one that does more rounds than the others. */
static void a_set_of_nothing_ends_at_once(void)
{
    static const uint64_t none[] = {0};
    struct sim_config config = {.nodes = 2, .seed = test_seed(), .link = CLEAN_LINK};
    cluster *c = ready_cluster(&config, none, 1);
    REQUIRE(c);
    for (int round = 0; round < 20; round++) {
        cluster_set_active(c, 1, round % 4 == 0);
        CHECK(cluster_round(c, NULL));
        for (uint32_t i = 0; i < (round % 4 ? 1 : 2); i++) {
            const struct cluster_report *r = cluster_report(c, i);
            CHECK_EQ(r->error, SLEET_OK);
            CHECK_EQ(r->report.elapsed_ns, 0);
            CHECK_EQ(r->report.flags, SLEET_COMPLETE);
            CHECK(r->report.coverage == 1.0);
            CHECK_EQ(r->report.expected, 2);
            CHECK_EQ(r->report.group_size, 2);
        }
    }
    sim_kill(cluster_sim(c), 1);
    cluster_idle(c, SEC(70));
    CHECK(cluster_round(c, NULL));
    CHECK_EQ(cluster_report(c, 0)->report.expected, 1);
    CHECK_EQ(cluster_report(c, 0)->report.flags, SLEET_COMPLETE);
    cluster_free(c);
}

static void numbers_of_nodes(void)
{
    static const uint32_t nodes[] = {2, 3, 4, 5, 7, 8, 16};
    static const uint64_t counts[] = {3000, 5};
    for (size_t i = 0; i < sizeof nodes / sizeof nodes[0]; i++)
        averages_rightly(nodes[i], counts, 2);
}

static void a_nan_is_left_out(void)
{
    static const uint64_t counts[] = {700};
    struct sim_config config = {.nodes = 3, .seed = test_seed(), .link = CLEAN_LINK};
    sleet_rng rng = {test_seed()};
    cluster *c = ready_cluster(&config, counts, 1);
    REQUIRE(c);
    fill_grid(c, &rng);
    /* A fragment with NaN is left out as a whole: elements 288 to 575. */
    keep_mean(c, 1);
    double others[288];
    memcpy(others, mean + 288, sizeof others);
    keep_mean(c, SIM_ALL);
    memcpy(mean + 288, others, sizeof others);
    cluster_values(c, 1)[300] = NAN;
    CHECK(cluster_round(c, NULL));
    uint64_t nonfinite = 0;
    for (uint32_t i = 0; i < 3; i++) {
        engine_counters k;
        engine_get_counters(sim_engine(cluster_sim(c), i), &k);
        nonfinite += k.nonfinite;
        CHECK_EQ(cluster_report(c, i)->error, SLEET_OK);
        CHECK_EQ(off_mean(c, i), 0);
    }
    CHECK_EQ(nonfinite, 1);
    cluster_free(c);
}

/* ---- joiners and paces -------------------------------------------------- */

#define PACERS 3

struct paces {
    cluster *cluster;
    sleet_duration compute[PACERS];
    uint64_t round[PACERS], reports[PACERS], missed;
    uint64_t took_part_after; /* reports of node 2 until its values counted with all others' */
    uint64_t apart; /* largest distance between two nodes' last rounds */
    struct pacer {
        struct paces *all;
        uint32_t node;
    } pacer[PACERS];
};

static void begin(sim *s, void *arg)
{
    struct pacer *p = arg;
    if (sim_frozen(s, p->node))
        sim_at(s, time_add(sim_now(s), MS(20)), begin, p);
    else
        CHECK_EQ(cluster_start(p->all->cluster, p->node, NULL), SLEET_OK);
}

static void reported(cluster *c, uint32_t node, void *arg)
{
    struct paces *p = arg;
    const sleet_report *r = &cluster_report(c, node)->report;
    p->reports[node]++;
    p->missed += r->skipped;
    if (node == 2 && !p->took_part_after && !(r->flags & (SLEET_JOINING | SLEET_ALONE)) &&
        r->expected == PACERS && r->coverage == 1.0)
        p->took_part_after = p->reports[2];
    if (r->round)
        p->round[node] = r->round;
    for (uint32_t i = 0; i < PACERS; i++)
        for (uint32_t j = 0; j < PACERS; j++)
            if (p->round[i] > p->round[j] && p->round[i] - p->round[j] > p->apart)
                p->apart = p->round[i] - p->round[j];
    sim_at(cluster_sim(c), time_add(sim_now(cluster_sim(c)), p->compute[node]), begin,
           &p->pacer[node]);
}

static void pace_all(struct paces *p)
{
    cluster_on_report(p->cluster, reported, p);
    for (uint32_t i = 0; i < PACERS; i++) {
        p->pacer[i] = (struct pacer){.all = p, .node = i};
        p->round[i] = cluster_report(p->cluster, i)->report.round;
        begin(cluster_sim(p->cluster), &p->pacer[i]);
    }
}

static bool start_pacing(struct paces *p)
{
    static const uint64_t counts[] = {3000};
    struct sim_config config = {.nodes = PACERS, .seed = test_seed(), .link = CLEAN_LINK};
    *p = (struct paces){.compute = {MS(20), MS(20), MS(40)}};
    p->cluster = ready_cluster(&config, counts, 1);
    if (!p->cluster)
        return false;
    pace_all(p);
    cluster_idle(p->cluster, SEC(2));
    return true;
}

/* Ten seconds in which nobody is left behind. */
static void check_together(struct paces *p)
{
    uint64_t before[PACERS];
    memcpy(before, p->reports, sizeof before);
    p->apart = p->missed = 0;
    cluster_idle(p->cluster, SEC(10));
    CHECK(p->apart <= 1);
    CHECK_EQ(p->missed, 0);
    for (uint32_t i = 0; i < PACERS; i++) {
        CHECK(p->reports[i] > before[i] + 100);
        CHECK_EQ(sim_frozen(cluster_sim(p->cluster), i), false);
    }
    CHECK_EQ(cluster_overdue(p->cluster), 0);
    CHECK(ledger_balances(p->cluster));
}

static void twice_as_slow_stays_in_the_same_rounds(void)
{
    struct paces p;
    REQUIRE(start_pacing(&p));
    check_together(&p);
    cluster_free(p.cluster);
}

static void frozen_ten_seconds_comes_back(void)
{
    struct paces p;
    REQUIRE(start_pacing(&p));
    sim_freeze(cluster_sim(p.cluster), 2, true);
    uint64_t before = p.round[0];
    cluster_idle(p.cluster, SEC(10));
    CHECK(p.round[0] > before + 50); /* the others went on */
    sim_freeze(cluster_sim(p.cluster), 2, false);
    cluster_idle(p.cluster, SEC(5));
    check_together(&p);
    cluster_free(p.cluster);
}

/* Every node at its own pace from the 5,000th round on, node 2 only then. */
static void joins_at_round_5000(void)
{
    static const uint64_t counts[] = {4};
    const uint64_t goal = 5000;
    struct paces p = {.compute = {MS(20), MS(20), MS(20)}};
    struct sim_config config = {.nodes = PACERS, .seed = test_seed(), .link = CLEAN_LINK};
    cluster *c = p.cluster = ready_cluster(&config, counts, 1);
    REQUIRE(c);
    sim *s = cluster_sim(c);
    sim_kill(s, 2);
    for (uint64_t i = 0; i < goal && cluster_report(c, 0)->report.round < goal; i++)
        if (!CHECK(cluster_round(c, NULL)))
            break;
    CHECK(cluster_report(c, 0)->report.round >= goal);
    REQUIRE(sim_restart(s, 2));
    CHECK_EQ(cluster_register(c, 2), SLEET_OK);
    pace_all(&p);
    while (p.reports[2] < 5 && !p.took_part_after && p.reports[0] < 1000)
        if (!CHECK(sim_step(s)))
            break;
    CHECK(p.took_part_after > 0);
    CHECK(p.round[2] >= goal);
    CHECK_EQ(cluster_overdue(c), 0);
    cluster_free(c);
}

/* ---- what does not fit -------------------------------------------------- */

struct texts {
    uint32_t count[2];
    char text[2][256];
};

static void keep_text(sim *s, uint32_t node, const engine_event *e, void *arg)
{
    struct texts *t = arg;
    (void)s;
    if (e->type != EVENT_SCHEMA)
        return;
    t->count[node]++;
    memcpy(t->text[node], e->text, sizeof t->text[node]);
}

/* Two nodes with one set each, of two definitions; what each says of the other's. */
static void two_schemas(const struct set_kind kind[2], const engine_tensor tensors[2][3], struct texts *texts)
{
    struct sim_config config = {.nodes = 2, .seed = test_seed(), .link = CLEAN_LINK};
    float values[400] = {0}, result[400];
    const void *send[3] = {values, values + 5, values + 310};
    void *results[3] = {result, result + 5, result + 310};
    engine_start_args args = {.send = send, .result = results};
    args.options.size = sizeof args.options;
    int set[2];
    sim *s = sim_new(&config);
    REQUIRE(s);
    *texts = (struct texts){0};
    sim_on_event(s, keep_text, texts);
    for (uint32_t i = 0; i < 2; i++) {
        set[i] = engine_register(sim_engine(s, i), "model", kind[i], tensors[i], 3, sim_now(s));
        CHECK(set[i] >= 0);
        sim_kick(s, i);
    }
    sim_run_until(s, time_add(sim_now(s), SEC(5)));
    for (uint32_t i = 0; i < 2; i++) {
        CHECK_EQ(texts->count[i], 1);
        CHECK_EQ(engine_start(sim_engine(s, i), set[i], &args, sim_now(s)), SLEET_ESCHEMA);
    }
    sim_free(s);
}

static const struct set_kind models[2] = {{.payload = SLEET_MODEL}, {.payload = SLEET_MODEL}};

static void schemas_that_differ_are_named(void)
{
    static const engine_tensor tensors[2][3] = {
        {{"first", SLEET_F32, 0, 5, 0}, {"second", SLEET_F32, 0, 300, 0}, {"third", SLEET_F32, 0, 1, 0}},
        {{"first", SLEET_F32, 0, 5, 0}, {"second", SLEET_F32, 0, 301, 0}, {"third", SLEET_F32, 0, 2, 0}}};
    struct texts texts;
    two_schemas(models, tensors, &texts);
    for (uint32_t i = 0; i < 2; i++) {
        CHECK(strstr(texts.text[i], "second") != NULL);
        CHECK(strstr(texts.text[i], "300") && strstr(texts.text[i], "301"));
        CHECK(!strstr(texts.text[i], "first") && !strstr(texts.text[i], "third"));
    }
}

static void shapes_that_differ_are_named(void)
{
    static const engine_tensor tensors[2][3] = {
        {{"first", SLEET_F32, 0, 5, 0}, {"second", SLEET_F32, 0, 300, 30}, {"third", SLEET_F32, 0, 1, 0}},
        {{"first", SLEET_F32, 0, 5, 0}, {"second", SLEET_F32, 0, 300, 20}, {"third", SLEET_F32, 0, 1, 0}}};
    struct texts texts;
    two_schemas(models, tensors, &texts);
    for (uint32_t i = 0; i < 2; i++) {
        CHECK(strstr(texts.text[i], "second of 300 in 30 rows") != NULL);
        CHECK(strstr(texts.text[i], "second of 300 in 20 rows") != NULL);
    }
}

static void kinds_that_differ_are_named(void)
{
    static const struct set_kind kinds[2] = {{.payload = SLEET_MODEL},
                                             {.payload = SLEET_GRADIENT, .estimator = SLEET_CARRY, .update = SLEET_LINEAR}};
    static const engine_tensor tensors[2][3] = {
        {{"first", SLEET_F32, 0, 5, 0}, {"second", SLEET_F32, 0, 300, 0}, {"third", SLEET_F32, 0, 1, 0}},
        {{"first", SLEET_F32, 0, 5, 0}, {"second", SLEET_F32, 0, 300, 0}, {"third", SLEET_F32, 0, 1, 0}}};
    struct texts texts;
    two_schemas(kinds, tensors, &texts);
    for (uint32_t i = 0; i < 2; i++) {
        CHECK(strstr(texts.text[i], "gradient, carry, linear, all-reduce") != NULL);
        CHECK(strstr(texts.text[i], "model, ratio, linear, all-reduce") != NULL);
    }
}

static int start_with(cluster *c, sleet_round_options o)
{
    int error = cluster_start(c, 0, &o);
    engine_cancel(sim_engine(cluster_sim(c), 0), cluster_set(c, 0), sim_now(cluster_sim(c)));
    return error;
}

static void calls_that_are_refused(void)
{
    static const uint64_t counts[] = {4};
    struct sim_config config = {.nodes = 2, .seed = test_seed(), .link = CLEAN_LINK};
    cluster *c = ready_cluster(&config, counts, 1);
    REQUIRE(c);
    engine *e = sim_engine(cluster_sim(c), 0);
    sleet_time now = sim_now(cluster_sim(c));
    engine_tensor t[2] = {{"t0", SLEET_F32, 0, 4, 0}, {"t1", SLEET_F32, 0, 4, 0}}, bad = {"", SLEET_F32, 0, 4, 0};
    CHECK_EQ(cluster_register(c, 0), SLEET_EBUSY);
    CHECK_EQ(engine_register(e, "model", (struct set_kind){.payload = SLEET_MODEL}, t, 2, now), SLEET_EBUSY);
    CHECK_EQ(engine_register(e, "other", (struct set_kind){.payload = SLEET_MODEL}, t, 0, now), SLEET_EINVAL);
    CHECK_EQ(engine_register(e, "other", (struct set_kind){.payload = SLEET_MODEL}, NULL, 1, now), SLEET_EINVAL);
    CHECK_EQ(engine_register(e, "", (struct set_kind){.payload = SLEET_MODEL}, t, 1, now), SLEET_EINVAL);
    CHECK_EQ(engine_register(e, "other", (struct set_kind){.payload = SLEET_MODEL}, &bad, 1, now), SLEET_EINVAL);
    CHECK_EQ(engine_start(e, 1, &(engine_start_args){0}, now), SLEET_EINVAL);
    cluster_free(c);
    c = ready_cluster(&config, counts, 1);
    REQUIRE(c);
    CHECK_EQ(start_with(c, (sleet_round_options){.deadline_ns = -1}), SLEET_EINVAL);
    CHECK_EQ(start_with(c, (sleet_round_options){.deadline_ns = SEC(3600) + 1}), SLEET_EINVAL);
    CHECK_EQ(start_with(c, (sleet_round_options){.weight = -1}), SLEET_EINVAL);
    CHECK_EQ(start_with(c, (sleet_round_options){.weight = (double)NAN}), SLEET_EINVAL);
    CHECK_EQ(start_with(c, (sleet_round_options){.weight = (double)INFINITY}), SLEET_EINVAL);
    CHECK_EQ(start_with(c, (sleet_round_options){.least_coverage = 1.5}), SLEET_EINVAL);
    CHECK_EQ(start_with(c, (sleet_round_options){.least_coverage = (double)NAN}), SLEET_EINVAL);
    CHECK_EQ(start_with(c, (sleet_round_options){.deadline_ns = SEC(3600)}), SLEET_OK);
    cluster_free(c);
}

/* Nothing is lost: what a peer sent has been received, and both say so. */
static void a_clean_link_loses_nothing(void)
{
    struct sim_config config = {.nodes = 3, .seed = test_seed(), .link = CLEAN_LINK};
    cluster *c = ready_cluster(&config, (const uint64_t[]){5000}, 1);
    REQUIRE(c);
    cluster_idle(c, SEC(3));
    for (uint32_t i = 0; i < 3; i++) {
        engine_peer peers[2];
        sleet_time now = sim_now(cluster_sim(c));
        CHECK_EQ(engine_get_peers(sim_engine(cluster_sim(c), i), peers, 2, now), 2);
        for (uint32_t k = 0; k < 2; k++)
            CHECK(peers[k].lost == 0 && peers[k].received > 0);
    }
    cluster_free(c);
}

/* Lost datagrams a gap, from node 1 to node 0 over the link. */
static double mean_run(const struct sim_link *link)
{
    struct sim_config config = {.nodes = 2, .seed = test_seed(), .link = *link};
    cluster *c = ready_cluster(&config, (const uint64_t[]){50000}, 1);
    engine_peer peer = {.gaps = 1};
    if (c) {
        for (int round = 0; round < 30; round++)
            CHECK(cluster_round(c, NULL));
        engine_get_peers(sim_engine(cluster_sim(c), 0), &peer, 1, sim_now(cluster_sim(c)));
        cluster_free(c);
    }
    return (double)peer.lost / (double)peer.gaps;
}

/* Bursts of five on the link are seen as such, single losses as single ones. */
static void runs_of_losses_are_counted(void)
{
    struct sim_link single = CLEAN_LINK, bursts = CLEAN_LINK;
    single.loss = 0.1;
    bursts.ge_p = 0.02;
    bursts.ge_r = 0.2;
    double one = mean_run(&single), five = mean_run(&bursts);
    CHECK(one > 1.05 && one < 1.2);
    CHECK(five > 4 && five < 6);
}

TEST_SUITE(engine) = {
    TEST(runs_of_losses_are_counted),
    TEST(a_clean_link_loses_nothing),
    TEST(alone_then_two_then_alone),
    TEST(sizes),
    TEST(sizes_sweep),
    TEST(a_set_of_nothing_ends_at_once),
    TEST(numbers_of_nodes),
    TEST(a_nan_is_left_out),
    TEST(joins_at_round_5000),
    TEST(twice_as_slow_stays_in_the_same_rounds),
    TEST(frozen_ten_seconds_comes_back),
    TEST(schemas_that_differ_are_named),
    TEST(shapes_that_differ_are_named),
    TEST(kinds_that_differ_are_named),
    TEST(calls_that_are_refused),
    TEST_END,
};
