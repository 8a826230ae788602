/* State transfer between engines: whole or an error, under loss, from donors that die, lie,
 * go on or restart, while the others average. */
#include "helpers.h"
#include <stdlib.h>

static const uint64_t counts[] = {40000};
#define BYTES (48 * 65536 + 1000)
#define RATE UINT64_C(100000000)

/* One state in the hands of the shell, as long as the engines may look at it. */
static uint8_t *state_of(uint64_t version)
{
    uint8_t *p = malloc(BYTES);
    sleet_rng rng = {version};
    for (size_t i = 0; p && i < BYTES; i++)
        p[i] = (uint8_t)rng_next(&rng);
    return p;
}

struct outcome {
    uint32_t events, node;
    int error;
    engine_fetched fetched;
    sleet_time at;
    bool rounds; /* the others go on averaging */
    uint32_t blob_events;
    int blob_error;
};

static struct outcome got;

static void on_event(sim *s, uint32_t node, const engine_event *ev, void *arg)
{
    (void)arg;
    if (ev->type == EVENT_BLOB) {
        got.blob_events++;
        got.blob_error = ev->error;
    }
    if (ev->type != EVENT_STATE)
        return;
    got.events++;
    got.node = node;
    got.error = ev->error;
    got.fetched = ev->fetched;
    got.at = sim_now(s);
}

static bool waiting(void *arg)
{
    (void)arg;
    return got.events == 0;
}

static void fetch_on(cluster *c, uint32_t node, uint8_t *into, sleet_duration limit)
{
    sim *s = cluster_sim(c);
    engine_fetch_args a = {.into = into, .bytes = BYTES, .limit = limit};
    got = (struct outcome){0};
    sim_on_event(s, on_event, NULL);
    CHECK_EQ(engine_state_fetch(sim_engine(s, node), cluster_set(c, node), &a, sim_now(s)), SLEET_OK);
    sim_kick(s, node);
}

static void publish_on(cluster *c, uint32_t node, const uint8_t *p, uint64_t version, const char *blob)
{
    sim *s = cluster_sim(c);
    engine_state a = {.data = p, .bytes = BYTES, .version = version, .blob = blob,
                      .blob_bytes = blob ? (uint32_t)strlen(blob) : 0};
    CHECK_EQ(engine_state_publish(sim_engine(s, node), cluster_set(c, node), &a, sim_now(s)), SLEET_OK);
    sim_kick(s, node);
}

static bool sealed; /* the sessions of the next job */

/* `n` nodes that know each other, of which the first `donors` publish `p`. */
static cluster *job_of(uint32_t n, uint32_t donors, const uint8_t *p, double loss)
{
    struct sim_config config = {.nodes = n, .seed = test_seed(), .rate_bps = RATE, .sealed = sealed,
                                .link = {.delay = MS(2), .loss = loss}};
    cluster *c = cluster_new(&config, counts, 1);
    if (!c)
        return NULL;
    cluster_idle(c, SEC(sealed ? 5 : 2));
    for (uint32_t i = 0; i < donors; i++)
        publish_on(c, i, p, 5, "five");
    return c;
}

static uint64_t served(cluster *c, uint32_t node)
{
    engine_state_info i = {0};
    engine_get_state(sim_engine(cluster_sim(c), node), cluster_set(c, node), &i);
    return i.served_bytes;
}

/* ---- whole -------------------------------------------------------------------------- */

static void arrives_under_loss(void)
{
    static const double losses[] = {0, 0.1, 0.3, 0.1};
    uint8_t *p = state_of(5), *q = malloc(BYTES);
    for (uint32_t k = 0; k < 4; k++) {
        sealed = k == 3;
        cluster *c = job_of(5, 4, p, losses[k]);
        REQUIRE(c && p && q);
        sleet_time begun = sim_now(cluster_sim(c));
        memset(q, 0, BYTES);
        fetch_on(c, 4, q, SEC(20));
        CHECK(sim_run_while(cluster_sim(c), waiting, NULL, time_add(begun, SEC(20))));
        CHECK_EQ(got.error, SLEET_OK);
        CHECK_EQ(got.fetched.version, 5);
        CHECK_EQ(got.fetched.lies, 0);
        CHECK_EQ(got.fetched.newest, 5);
        CHECK(got.fetched.blob_of != 0);
        CHECK(got.fetched.donors >= 3);
        CHECK_MEM(q, p, BYTES);
        /* four times a quarter of the rate, and what was lost again */
        CHECK(time_since(got.at, begun) < (sleet_duration)(8e9 * BYTES / (double)RATE * 3) + SEC(3));
        CHECK(ledger_balances(c));
        cluster_free(c);
    }
    sealed = false;
    free(p);
    free(q);
}

static void donors_share_the_load(void)
{
    uint8_t *p = state_of(5), *q = malloc(BYTES);
    sleet_duration took[2];
    for (uint32_t k = 0; k < 2; k++) {
        uint32_t donors = k ? 5 : 1;
        cluster *c = job_of(6, donors, p, 0);
        REQUIRE(c && p && q);
        sleet_time begun = sim_now(cluster_sim(c));
        fetch_on(c, 5, q, SEC(20));
        CHECK(sim_run_while(cluster_sim(c), waiting, NULL, time_add(begun, SEC(20))));
        took[k] = time_since(got.at, begun);
        CHECK_EQ(got.fetched.donors, donors);
        for (uint32_t i = 0; k && i < donors; i++)
            CHECK(served(c, i) > BYTES / 10 && served(c, i) < BYTES / 3);
        cluster_free(c);
    }
    CHECK(took[1] * 3 < took[0]);
    free(p);
    free(q);
}

/* A donor gives state no more than a quarter of its rate. */
static void donors_keep_to_their_share(void)
{
    uint8_t *p = state_of(5), *q[4];
    cluster *c = job_of(5, 1, p, 0);
    REQUIRE(c && p);
    sim *s = cluster_sim(c);
    for (uint32_t i = 0; i < 4; i++) {
        q[i] = malloc(BYTES);
        REQUIRE(q[i] != NULL);
        fetch_on(c, i + 1, q[i], SEC(30));
    }
    sim_run_until(s, time_add(sim_now(s), MS(500)));
    for (uint32_t k = 0; k < 5; k++) {
        engine_counters a, b;
        engine_get_counters(sim_engine(s, 0), &a);
        sim_run_until(s, time_add(sim_now(s), MS(400)));
        engine_get_counters(sim_engine(s, 0), &b);
        double share = 8.0 * (double)(b.out_bytes - a.out_bytes) / ((double)RATE * 0.4);
        CHECK(share > 0.2 && share < 0.28);
    }
    cluster_free(c);
    for (uint32_t i = 0; i < 4; i++)
        free(q[i]);
    free(p);
}

/* ---- among rounds --------------------------------------------------------------------- */

static void next_round(cluster *c, uint32_t node, void *arg)
{
    const sleet_round_options options = {.deadline_ns = MS(500)};
    (void)arg;
    if (node < 3)
        cluster_start(c, node, &options);
}

static uint64_t round_on(cluster *c, uint32_t node)
{
    engine_round newest = {0};
    engine_get_rounds(sim_engine(cluster_sim(c), node), cluster_set(c, node), &newest, 1);
    return newest.round;
}

static engine *joiner;
static int joiner_set;
static bool still_fetching(void *arg)
{
    engine_state_info i;
    (void)arg;
    return engine_get_state(joiner, joiner_set, &i) && i.fetching;
}

/* Rounds without a pause on links that they fill: they keep their deadlines, and state arrives. */
static void rounds_go_on_and_state_arrives(void)
{
    static const double losses[] = {0, 0.1};
    uint8_t *p = state_of(5), *q = malloc(BYTES);
    for (uint32_t k = 0; k < 2; k++) {
        struct sim_config config = {.nodes = 4, .seed = test_seed(), .rate_bps = RATE / 4,
                                    .link = {.delay = MS(2), .loss = losses[k]}};
        cluster *c = ready_cluster(&config, counts, 1);
        REQUIRE(c && p && q);
        sim *s = cluster_sim(c);
        cluster_set_active(c, 3, false);
        for (uint32_t i = 0; i < 3; i++)
            publish_on(c, i, p, 5, NULL);
        cluster_on_report(c, next_round, NULL);
        for (uint32_t i = 0; i < 3; i++)
            next_round(c, i, NULL);
        sim_run_until(s, time_add(sim_now(s), SEC(5))); /* nobody waits for the joiner any more */
        uint64_t usual = round_on(c, 0);
        sim_run_until(s, time_add(sim_now(s), SEC(2)));
        usual = round_on(c, 0) - usual;
        engine_fetch_args a = {.into = q, .bytes = BYTES, .limit = SEC(30)};
        joiner = sim_engine(s, 3);
        joiner_set = cluster_set(c, 3);
        memset(q, 0, BYTES);
        CHECK_EQ(engine_state_fetch(joiner, joiner_set, &a, sim_now(s)), SLEET_OK);
        sim_kick(s, 3);
        uint64_t before = round_on(c, 0);
        sleet_time begun = sim_now(s);
        CHECK(sim_run_while(s, still_fetching, NULL, time_add(sim_now(s), SEC(25))));
        double seconds = (double)time_since(sim_now(s), begun) / 1e9;
        CHECK((double)(round_on(c, 0) - before) / seconds > 0.75 * (double)usual / 2);
        CHECK_MEM(q, p, BYTES);
        CHECK_EQ(cluster_overdue(c), 0);
        CHECK(ledger_balances(c));
        cluster_free(c);
    }
    free(p);
    free(q);
}

/* Rounds that have more to send than the rate allows, always, leave gaps enough. */
static void state_is_not_starved(void)
{
    static const uint64_t many[] = {1000000};
    uint8_t *p = state_of(5), *q = malloc(BYTES);
    struct sim_config config = {.nodes = 4, .seed = test_seed(), .rate_bps = RATE / 4,
                                .link = {.delay = MS(2)}};
    cluster *c = cluster_new(&config, many, 1);
    REQUIRE(c && p && q);
    sim *s = cluster_sim(c);
    cluster_idle(c, SEC(4));
    for (uint32_t i = 0; i < 3; i++)
        publish_on(c, i, p, 5, NULL);
    cluster_on_report(c, next_round, NULL);
    for (uint32_t i = 0; i < 3; i++)
        next_round(c, i, NULL);
    sim_run_until(s, time_add(sim_now(s), SEC(5)));
    engine_fetch_args a = {.into = q, .bytes = BYTES, .limit = SEC(20)};
    joiner = sim_engine(s, 3);
    joiner_set = cluster_set(c, 3);
    CHECK_EQ(engine_state_fetch(joiner, joiner_set, &a, sim_now(s)), SLEET_OK);
    sim_kick(s, 3);
    CHECK(sim_run_while(s, still_fetching, NULL, time_add(sim_now(s), SEC(8))));
    CHECK_MEM(q, p, BYTES);
    cluster_free(c);
    free(p);
    free(q);
}

/* ---- donors that fail ---------------------------------------------------------------- */

static void kill_first(sim *s, void *arg)
{
    (void)arg;
    sim_kill(s, 0);
}

static void a_donor_dies_midway(void)
{
    uint8_t *p = state_of(5), *q = malloc(BYTES);
    cluster *c = job_of(4, 3, p, 0.1);
    REQUIRE(c && p && q);
    sim *s = cluster_sim(c);
    fetch_on(c, 3, q, SEC(30));
    sim_at(s, time_add(sim_now(s), MS(150)), kill_first, NULL);
    CHECK(sim_run_while(s, waiting, NULL, time_add(sim_now(s), SEC(30))));
    CHECK_EQ(got.error, SLEET_OK);
    CHECK(got.fetched.elapsed > MS(150) && got.fetched.elapsed < SEC(8));
    CHECK_MEM(q, p, BYTES);
    cluster_free(c);
    free(p);
    free(q);
}

/* It hashed other bytes than it sends. */
static void a_donor_lies(void)
{
    uint8_t *p = state_of(5), *wrong = state_of(5), *q = malloc(BYTES);
    cluster *c = job_of(4, 2, p, 0);
    REQUIRE(c && p && q && wrong);
    sim *s = cluster_sim(c);
    publish_on(c, 2, wrong, 5, NULL);
    for (size_t i = 0; i < BYTES; i += 65536)
        wrong[i] ^= 1;
    fetch_on(c, 3, q, SEC(30));
    CHECK(sim_run_while(s, waiting, NULL, time_add(sim_now(s), SEC(30))));
    CHECK_EQ(got.error, SLEET_OK);
    CHECK_EQ(got.fetched.lies, 1);
    CHECK_EQ(got.fetched.donors, 2);
    CHECK_MEM(q, p, BYTES);
    cluster_free(c);
    free(p);
    free(wrong);
    free(q);
}

/* The version that is being fetched stays, though a newer one is there; afterwards it goes. */
static void a_newer_version_appears_midway(void)
{
    uint8_t *p = state_of(5), *newer = state_of(6), *q = malloc(BYTES);
    cluster *c = job_of(4, 3, p, 0);
    REQUIRE(c && p && q && newer);
    sim *s = cluster_sim(c);
    fetch_on(c, 3, q, SEC(30));
    sim_run_until(s, time_add(sim_now(s), MS(100)));
    for (uint32_t i = 0; i < 3; i++)
        publish_on(c, i, newer, 6, "six");
    sim_run_until(s, time_add(sim_now(s), MS(50)));
    CHECK_EQ(got.events, 0);
    CHECK(!engine_state_reserve(sim_engine(s, 0), cluster_set(c, 0), sim_now(s)));
    CHECK(sim_run_while(s, waiting, NULL, time_add(sim_now(s), SEC(30))));
    CHECK_EQ(got.error, SLEET_OK);
    CHECK_EQ(got.fetched.version, 5);
    CHECK_EQ(got.fetched.newest, 6);
    CHECK_MEM(q, p, BYTES);
    sim_run_until(s, time_add(sim_now(s), SEC(3)));
    CHECK(engine_state_reserve(sim_engine(s, 0), cluster_set(c, 0), sim_now(s)));
    fetch_on(c, 3, q, SEC(30));
    CHECK(sim_run_while(s, waiting, NULL, time_add(sim_now(s), SEC(30))));
    CHECK_EQ(got.fetched.version, 6);
    CHECK_MEM(q, newer, BYTES);
    cluster_free(c);
    free(p);
    free(newer);
    free(q);
}

static void the_joiner_restarts(void)
{
    uint8_t *p = state_of(5), *q = malloc(BYTES);
    cluster *c = job_of(4, 3, p, 0.1);
    REQUIRE(c && p && q);
    sim *s = cluster_sim(c);
    fetch_on(c, 3, q, SEC(30));
    sim_run_until(s, time_add(sim_now(s), MS(100)));
    CHECK_EQ(got.events, 0);
    CHECK(sim_restart(s, 3));
    CHECK_EQ(cluster_register(c, 3), SLEET_OK);
    sim_run_until(s, time_add(sim_now(s), SEC(1)));
    fetch_on(c, 3, q, SEC(30));
    CHECK(sim_run_while(s, waiting, NULL, time_add(sim_now(s), SEC(30))));
    CHECK_EQ(got.error, SLEET_OK);
    CHECK_MEM(q, p, BYTES);
    cluster_free(c);
    free(p);
    free(q);
}

/* All but the stalest die: its state is taken, and that it is old is known. */
static void the_stalest_is_all_that_is_left(void)
{
    uint8_t *p = state_of(5), *newer = state_of(9), *q = malloc(BYTES);
    cluster *c = job_of(4, 1, p, 0);
    REQUIRE(c && p && q && newer);
    sim *s = cluster_sim(c);
    publish_on(c, 1, newer, 9, "nine");
    publish_on(c, 2, newer, 9, NULL);
    sim_run_until(s, time_add(sim_now(s), SEC(4)));
    sim_kill(s, 1);
    sim_kill(s, 2);
    sim_run_until(s, time_add(sim_now(s), SEC(4)));
    fetch_on(c, 3, q, SEC(30));
    CHECK(sim_run_while(s, waiting, NULL, time_add(sim_now(s), SEC(30))));
    CHECK_EQ(got.error, SLEET_OK);
    CHECK_EQ(got.fetched.version, 5);
    CHECK_EQ(got.fetched.newest, 9);
    CHECK_MEM(q, p, BYTES);
    cluster_free(c);
    free(p);
    free(newer);
    free(q);
}

/* ---- in time ------------------------------------------------------------------------- */

static void an_error_comes_by_the_deadline(void)
{
    uint8_t *p = state_of(5), *q = malloc(BYTES);
    cluster *c = job_of(3, 0, p, 0.3);
    REQUIRE(c && p && q);
    sim *s = cluster_sim(c);
    fetch_on(c, 2, q, SEC(30)); /* nobody has one */
    CHECK(sim_run_while(s, waiting, NULL, time_add(sim_now(s), SEC(4))));
    CHECK_EQ(got.error, SLEET_ENOSTATE);
    publish_on(c, 0, p, 5, NULL);
    fetch_on(c, 2, q, MS(300)); /* no time for it */
    CHECK(sim_run_while(s, waiting, NULL, time_add(sim_now(s), MS(301))));
    CHECK(got.error == SLEET_EAGAIN || got.error == SLEET_ENOSTATE);
    CHECK(got.fetched.coverage < 1);
    sim_kill(s, 0); /* and nobody will ever */
    fetch_on(c, 2, q, SEC(9));
    CHECK(sim_run_while(s, waiting, NULL, time_add(sim_now(s), SEC(9) + 1)));
    CHECK(got.error == SLEET_ENOSTATE || got.error == SLEET_EAGAIN);
    cluster_free(c);
    free(p);
    free(q);
}

/* ---- blobs ------------------------------------------------------------------------------ */

static const char *blob_on(cluster *c, uint32_t node, uint64_t owner)
{
    uint64_t version;
    uint32_t bytes;
    static char text[64];
    const void *p =
        engine_blob(sim_engine(cluster_sim(c), node), cluster_set(c, node), owner, &version, &bytes);
    memset(text, 0, sizeof text);
    if (p && bytes < sizeof text)
        memcpy(text, p, bytes);
    return p ? text : "none";
}

static bool blob_waiting(void *arg)
{
    (void)arg;
    return got.blob_events == 0;
}

static void a_dead_nodes_blob_can_be_read(void)
{
    uint8_t *p = state_of(5);
    cluster *c = job_of(4, 0, p, 0.1);
    REQUIRE(c && p);
    sim *s = cluster_sim(c);
    sim_kill(s, 3);
    publish_on(c, 0, p, 5, "first");
    publish_on(c, 0, p, 6, "second");
    sim_run_until(s, time_add(sim_now(s), SEC(5)));
    CHECK_STR(blob_on(c, 1, 1), "second");
    CHECK_STR(blob_on(c, 2, 1), "second");
    sim_kill(s, 0);
    CHECK(sim_restart(s, 3)); /* it was away when it was published */
    CHECK_EQ(cluster_register(c, 3), SLEET_OK);
    sim_run_until(s, time_add(sim_now(s), SEC(3)));
    CHECK_STR(blob_on(c, 3, 1), "none");
    got = (struct outcome){0};
    sim_on_event(s, on_event, NULL);
    CHECK_EQ(engine_blob_ask(sim_engine(s, 3), cluster_set(c, 3), 1, SEC(5), sim_now(s)), SLEET_OK);
    sim_kick(s, 3);
    CHECK(sim_run_while(s, blob_waiting, NULL, time_add(sim_now(s), SEC(5))));
    CHECK_EQ(got.blob_error, SLEET_OK);
    CHECK_STR(blob_on(c, 3, 1), "second");
    CHECK(sim_restart(s, 0)); /* back, it asks for what it had itself */
    CHECK_EQ(cluster_register(c, 0), SLEET_OK);
    sim_run_until(s, time_add(sim_now(s), SEC(3)));
    got = (struct outcome){0};
    CHECK_EQ(engine_blob_ask(sim_engine(s, 0), cluster_set(c, 0), 1, SEC(5), sim_now(s)), SLEET_OK);
    sim_kick(s, 0);
    CHECK(sim_run_while(s, blob_waiting, NULL, time_add(sim_now(s), SEC(5))));
    CHECK_STR(blob_on(c, 0, 1), "second");
    got = (struct outcome){0};
    CHECK_EQ(engine_blob_ask(sim_engine(s, 3), cluster_set(c, 3), 77, SEC(1), sim_now(s)), SLEET_OK);
    sim_kick(s, 3);
    CHECK(sim_run_while(s, blob_waiting, NULL, time_add(sim_now(s), SEC(1) + 1)));
    CHECK_EQ(got.blob_error, SLEET_ENOSTATE);
    cluster_free(c);
    free(p);
}

TEST_SUITE(state) = {
    TEST(arrives_under_loss),
    TEST(donors_share_the_load),
    TEST(donors_keep_to_their_share),
    TEST(rounds_go_on_and_state_arrives),
    TEST(state_is_not_starved),
    TEST(a_donor_dies_midway),
    TEST(a_donor_lies),
    TEST(a_newer_version_appears_midway),
    TEST(the_joiner_restarts),
    TEST(the_stalest_is_all_that_is_left),
    TEST(an_error_comes_by_the_deadline),
    TEST(a_dead_nodes_blob_can_be_read),
    TEST_END,
};
