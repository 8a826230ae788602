/* Quorums: rounds that close before everybody has come, and what becomes of those who come later.
 *
 * Eight trainers hand over a gradient of 1 after each step of some length, which is drawn.  The cases print their
 * figures where SLEET_TEST_LONG is set. */
#include "base/rng.h"
#include "helpers.h"
#include <stdarg.h>
#include <stdlib.h>

#define NODES 8
#define TENSORS 64 /* a fragment each */
#define ELEMENTS 16
#define ALL (TENSORS * ELEMENTS)
#define STATE (SLEET_REFRESH_ROUNDS * RUN_FRAGMENTS * FRAGMENT_ELEMENTS) /* in place of the last: a run is due in each round */
#define ROUNDS_MAX 4096
#define LAN ((struct sim_link){.delay = US(200), .jitter = US(50)})

enum pace { EVEN, ROTATING, UNIFORM, ONE_SLOW }; /* whose steps take long */

struct loop {
    cluster *c;
    sleet_rng rng;
    enum pace pace;
    sleet_round_options options;
    bool with_state;
    bool over; /* nobody begins another step */
    float gradient;
    uint64_t steps, last, until; /* gradients handed over; newest round; the one to reach */
    uint32_t dead;               /* 1 + a node */
    uint64_t cut;                /* reports of rounds that the deadline ended */
    sleet_time first;            /* when somebody first came to the round after the newest */
    double sum[NODES][ALL];      /* of the results */
    double fresh[ROUNDS_MAX];    /* contributors of a round, by number */
    uint64_t newest[NODES];      /* round a node was in, */
    uint64_t in[NODES];          /* and in which it left nothing behind: all of it was in a commit */
    bool old[NODES];             /* it has skipped rounds before the one it is in: its state is 0, else 1 */
    double state;                /* the least of the others in results */
    uint64_t left_out;           /* rounds between two of those, at most */
    struct trainer {
        struct loop *loop;
        uint32_t node;
    } trainers[NODES];
};

static void tell(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void tell(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (getenv("SLEET_TEST_LONG"))
        vprintf(format, args);
    va_end(args);
}

static void hand_over(sim *s, void *arg)
{
    const struct trainer *t = arg;
    struct loop *loop = t->loop;
    if (loop->dead == t->node + 1)
        return;
    for (uint32_t k = 0; k < ALL; k++)
        cluster_values(loop->c, t->node)[k] = loop->gradient;
    loop->old[t->node] = loop->newest[t->node] + 1 < loop->last;
    for (uint64_t k = ALL - ELEMENTS; loop->with_state && k < cluster_elements(loop->c); k++)
        cluster_values(loop->c, t->node)[k] = loop->old[t->node] ? 0 : 1;
    loop->steps += loop->gradient > 0;
    if (time_is_never(loop->first) && loop->newest[t->node] == loop->last)
        loop->first = sim_now(s);
    CHECK_EQ(cluster_start(loop->c, t->node, &loop->options), SLEET_OK);
}

static sleet_duration step_time(struct loop *loop, uint32_t node)
{
    sleet_rng of_round = {loop->newest[node] ^ test_seed() << 32};
    if (loop->pace == UNIFORM)
        return (sleet_duration)(rng_double(&loop->rng) * (double)MS(200));
    bool slow = loop->pace == ONE_SLOW ? node == 3 : loop->pace == ROTATING && rng_below(&of_round, NODES) == node;
    return slow ? MS(200) : MS(20) + (sleet_duration)rng_below(&loop->rng, US(2000));
}

static void go_on(struct loop *loop, uint32_t node)
{
    sim *s = cluster_sim(loop->c);
    if (!loop->over)
        sim_at(s, time_add(sim_now(s), step_time(loop, node)), hand_over, &loop->trainers[node]);
}

static void add(struct loop *loop, uint32_t node)
{
    for (uint32_t k = 0; k < ALL; k++)
        loop->sum[node][k] += (double)cluster_values(loop->c, node)[k];
}

static void reported(cluster *c, uint32_t node, void *arg)
{
    struct loop *loop = arg;
    const sleet_report *r = &cluster_report(c, node)->report;
    CHECK_EQ(cluster_report(c, node)->error, SLEET_OK);
    add(loop, node);
    for (uint64_t k = ALL - ELEMENTS; loop->with_state && !loop->old[node] && k < cluster_elements(c); k++)
        loop->state = fmin(loop->state, (double)cluster_values(c, node)[k]);
    loop->cut += (r->flags & SLEET_DEADLINE) != 0;
    if (r->round) {
        loop->newest[node] = r->round;
        if (cluster_residual(c, node)[0] > 0)
            loop->left_out = r->round - loop->in[node] > loop->left_out ? r->round - loop->in[node] : loop->left_out;
        else
            loop->in[node] = r->round;
        REQUIRE(r->round < ROUNDS_MAX);
        loop->fresh[r->round] = r->coverage * r->expected;
        if (r->round > loop->last) {
            loop->last = r->round;
            loop->first = TIME_NEVER;
        }
    }
    go_on(loop, node);
}

/* `state`: the last tensor is refreshed beside the gradients. */
static struct loop *begin_with(bool state, enum pace pace, uint32_t quorum, uint32_t max_async)
{
    struct sim_config config = {.nodes = NODES, .seed = test_seed(), .link = LAN, .state_tensors = state,
                                .kind = {.payload = SLEET_GRADIENT, .estimator = SLEET_CARRY}};
    uint64_t counts[TENSORS];
    struct loop *loop = calloc(1, sizeof *loop);
    for (uint32_t t = 0; t < TENSORS; t++)
        counts[t] = state && t == TENSORS - 1 ? STATE : ELEMENTS;
    if (loop)
        loop->c = ready_cluster(&config, counts, TENSORS);
    if (!loop || !loop->c) {
        free(loop);
        return NULL;
    }
    loop->rng.state = test_seed();
    loop->pace = pace;
    loop->gradient = 1;
    loop->with_state = state;
    loop->first = TIME_NEVER;
    loop->options = (sleet_round_options){.quorum = quorum, .max_async = max_async};
    for (uint32_t i = 0; i < NODES; i++) {
        loop->trainers[i] = (struct trainer){loop, i};
        loop->newest[i] = loop->in[i] = loop->last = cluster_report(loop->c, i)->report.round;
    }
    cluster_on_report(loop->c, reported, loop);
    for (uint32_t i = 0; i < NODES; i++)
        go_on(loop, i);
    return loop;
}

static struct loop *begin(enum pace pace, uint32_t quorum, uint32_t max_async)
{
    return begin_with(false, pace, quorum, max_async);
}

static void finish(struct loop *loop)
{
    CHECK_EQ(cluster_overdue(loop->c), 0);
    CHECK_EQ(loop->cut, 0);
    CHECK(ledger_balances(loop->c));
    cluster_free(loop->c);
    free(loop);
}

static bool not_there(void *arg)
{
    const struct loop *loop = arg;
    return loop->last < loop->until;
}

/* So many rounds more: milliseconds of one. */
static double run_on(struct loop *loop, uint64_t rounds)
{
    sim *s = cluster_sim(loop->c);
    sleet_time since = sim_now(s);
    loop->until = loop->last + rounds;
    CHECK(sim_run_while(s, not_there, loop, time_add(since, SEC(300))));
    return (double)time_since(sim_now(s), since) / 1e6 / (double)rounds;
}

static double mean_fresh(const struct loop *loop, uint64_t rounds)
{
    double sum = 0;
    for (uint64_t n = loop->until - rounds + 1; n <= loop->until; n++)
        sum += loop->fresh[n];
    return sum / (double)rounds;
}

/* One of eight takes ten times as long, each time another: who waits for whom? */
static void a_straggler_does_not_set_the_pace(void)
{
    const uint32_t quorums[] = {SLEET_QUORUM_ALL, SLEET_QUORUM_MAJORITY, SLEET_QUORUM_SOLO};
    double ms[3];
    for (int i = 0; i < 3; i++) {
        struct loop *loop = begin(ROTATING, quorums[i], 0);
        REQUIRE(loop);
        run_on(loop, 20);
        ms[i] = run_on(loop, test_repeats(100));
        finish(loop);
    }
    tell("ms a round: all %.1f, majority %.1f, solo %.1f\n", ms[0], ms[1], ms[2]);
    CHECK(ms[0] >= 195);
    CHECK(ms[1] < 0.6 * ms[0] && ms[1] > ms[2]);
    CHECK(ms[2] < 60);
}

/* Steps take 0 to 200 ms: by then half of them have come to whom the draw falls on.  A contribution that is late counts
 * where it gets in, and whoever arrives in the millisecond of grace counts as well. */
static void how_many_contribute(void)
{
    const struct {
        uint32_t quorum;
        uint64_t rounds;
        double contributors, tolerance;
    } cases[] = {{SLEET_QUORUM_MAJORITY, 500, (NODES + 1) / 2.0, 0.5}, {SLEET_QUORUM_SOLO, 100, 1.2, 0.2}, {3, 100, 3.2, 0.2}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct loop *loop = begin(UNIFORM, cases[i].quorum, 1000);
        REQUIRE(loop);
        run_on(loop, 20 + cases[i].rounds);
        double mean = mean_fresh(loop, cases[i].rounds);
        tell("quorum %x: %.2f contributors over %" PRIu64 " rounds\n", cases[i].quorum, mean, cases[i].rounds);
        CHECK_NEAR(mean, cases[i].contributors, cases[i].tolerance);
        finish(loop);
    }
}

/* From now on gradients are 0, and rounds wait for all: what is left over gets in, and what is late arrives. */
static void settle(struct loop *loop)
{
    loop->gradient = 0;
    loop->options.quorum = NODES;
    run_on(loop, 12);
    loop->over = true;
    cluster_idle(loop->c, SEC(3));
}

static double carried(const struct loop *loop)
{
    double sum = 0;
    for (uint32_t i = 0; i < NODES; i++)
        sum += (double)cluster_residual(loop->c, i)[0];
    return sum;
}

/* The results, times the nodes, are the gradients that were handed over. */
static void nothing_is_thrown_away(void)
{
    const struct {
        enum pace pace;
        uint32_t quorum;
        bool state;
    } cases[] = {{UNIFORM, SLEET_QUORUM_SOLO, false}, {UNIFORM, SLEET_QUORUM_MAJORITY, false},
                 {ROTATING, SLEET_QUORUM_SOLO, false}, {ROTATING, SLEET_QUORUM_MAJORITY, true},
                 {ONE_SLOW, SLEET_QUORUM_SOLO, true}, {ONE_SLOW, 4, false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct loop *loop = begin_with(cases[i].state, cases[i].pace, cases[i].quorum, 0);
        REQUIRE(loop);
        run_on(loop, test_repeats(80));
        double left = carried(loop);
        settle(loop);
        bool ok = true;
        for (uint32_t node = 0; node < NODES; node++)
            for (uint32_t k = 0; k < ALL - ELEMENTS; k++)
                ok &= fabs(loop->sum[node][k] * NODES - (double)loop->steps) < 1e-6;
        if (!CHECK(ok))
            for (uint32_t node = 0; node < NODES; node++)
                printf("case %zu node %u: %.3f of %" PRIu64 " steps\n", i, node, loop->sum[node][0] * NODES, loop->steps);
        CHECK_NEAR(carried(loop), 0, 0);
        tell("case %zu: %.0f of %" PRIu64 " gradients were yet to get in\n", i, left, loop->steps);
        finish(loop);
    }
}

/* Who is never the first is waited for once in a while. */
static void nobody_is_left_out_for_long(void)
{
    const uint32_t bounds[] = {10, 1000};
    for (int i = 0; i < 2; i++) {
        struct loop *loop = begin(ONE_SLOW, SLEET_QUORUM_SOLO, bounds[i]);
        REQUIRE(loop);
        run_on(loop, 100);
        tell("max_async %u: %" PRIu64 " rounds without one\n", bounds[i], loop->left_out);
        CHECK(i ? loop->left_out > 30 : loop->left_out <= bounds[i]);
        finish(loop);
    }
}

/* Whom the others wait for in that round: the lowest hash of round and id. */
static uint32_t initiator(const struct loop *loop, uint64_t round)
{
    uint32_t node = 0;
    uint64_t lowest = UINT64_MAX;
    for (uint32_t i = 0; i < NODES; i++) {
        uint64_t hash = mix64(round ^ mix64(sim_node_id(cluster_sim(loop->c), i)));
        node = hash < lowest ? i : node;
        lowest = hash < lowest ? hash : lowest;
    }
    return node;
}

/* Parameters of a node that skipped rounds lack what those added: they must not pull the others back. */
static void old_state_counts_for_nothing(void)
{
    struct loop *loop = begin_with(true, ROTATING, SLEET_QUORUM_MAJORITY, 1000);
    REQUIRE(loop);
    loop->state = 1;
    run_on(loop, 60);
    tell("state of 1, beside an old one of 0: %.6f\n", loop->state);
    CHECK(loop->state > 0.999);
    finish(loop);
}

/* Where there are no owners there is nobody to keep one. */
static void neighbours_have_no_quorum(void)
{
    struct sim_config config = {.nodes = 2, .seed = test_seed(), .kind = {.strategy = SLEET_RING}};
    cluster *c = cluster_new(&config, (const uint64_t[]){ELEMENTS}, 1);
    REQUIRE(c);
    CHECK_EQ(cluster_start(c, 0, &(sleet_round_options){.quorum = SLEET_QUORUM_SOLO}), SLEET_EINVAL);
    CHECK_EQ(cluster_start(c, 0, NULL), SLEET_OK);
    cluster_free(c);
}

/* It does not come, since its trainer hangs or the node is dead: when its time is over the next one closes the round.
 * What the dead node owned the others miss for as long as it takes to see that it is silent. */
static void the_next_one_starts_in_its_place(void)
{
    for (int kill = 0; kill < 2; kill++) {
        struct loop *loop = begin(EVEN, SLEET_QUORUM_MAJORITY, 0);
        sleet_duration budget = 0;
        sleet_time came = TIME_NEVER;
        REQUIRE(loop);
        sim *s = cluster_sim(loop->c);
        run_on(loop, 30);
        uint32_t victim = initiator(loop, loop->last + 1);
        loop->dead = victim + 1;
        if (kill)
            sim_kill(s, victim);
        for (uint32_t i = 0; i < NODES; i++) {
            engine_set set = {0};
            if (sim_engine(s, i) && CHECK(engine_get_set(sim_engine(s, i), cluster_set(loop->c, i), &set, sim_now(s))))
                budget = set.budget > budget ? set.budget : budget;
        }
        loop->until = loop->last + 1;
        while (loop->last < loop->until) {
            came = loop->first;
            REQUIRE(sim_step(s));
        }
        sleet_duration waited = time_since(sim_now(s), came);
        tell("%s: closed after %.1f ms, the budget was %.1f\n", kill ? "killed" : "hangs", (double)waited / 1e6,
             (double)budget / 1e6);
        CHECK(waited > MS(20) && waited < (kill ? MS(600) : 2 * budget));
        CHECK(run_on(loop, 20) < 100);
        finish(loop);
    }
}

TEST_SUITE(quorum) = {
    TEST(a_straggler_does_not_set_the_pace),
    TEST(how_many_contribute),
    TEST(nothing_is_thrown_away),
    TEST(nobody_is_left_out_for_long),
    TEST(old_state_counts_for_nothing),
    TEST(neighbours_have_no_quorum),
    TEST(the_next_one_starts_in_its_place),
    TEST_END,
};
