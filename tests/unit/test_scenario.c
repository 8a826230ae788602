#define _GNU_SOURCE 1 /* fmemopen, open_memstream */
#include "reading.h"
#include "scenario/scenario.h"
#include "sleet_test.h"
#include <stdlib.h>
#include <string.h>

static struct scenario s;
static char said[4096];

static bool reads(FILE *in, FILE *errors)
{
    return scenario_read(&s, in, "a/try.ini", errors);
}

static bool read_text(const char *text)
{
    return reading(text, reads, said, sizeof said);
}

#define LEAST "[nodes]\ncount = 4\n[expect]\ndone = 1\n"

static void least_file_has_defaults(void)
{
    REQUIRE(read_text(LEAST));
    CHECK_STR(s.name, "try");
    CHECK_EQ(s.nodes, 4);
    CHECK_EQ(s.workload.min_nodes, 4);
    CHECK_EQ(s.workload.deadline_s, 2);
    CHECK_EQ(scenario_steps(&s), 2 * (6000 / (4 * 32)));
    CHECK_EQ(scenario_parameters(&s), 785 * 16 + 170);
    CHECK_EQ(s.link[3].loss, 0);
    CHECK_EQ(s.events, 0);
    CHECK(s.sealed); /* as a daemon */
    CHECK(!s.go_on);
}

static void links_of_all_and_of_some(void)
{
    REQUIRE(read_text(LEAST "[link *]\nloss = 0.1\ndelay_ms = 5\n[link 2 4]\nrate_mbit = 2\n"));
    CHECK_NEAR(s.link[0].loss, 0.1, 0);
    CHECK_NEAR(s.link[2].delay_ms, 5, 0);
    CHECK_EQ(s.link[1].loss, 0); /* a link of its own has nothing of [link *] */
    CHECK_EQ(s.link[1].rate_mbit, 2);
    CHECK_EQ(s.link[3].rate_mbit, 2);
    char text[160];
    scenario_link_text(&s.link[0], text, sizeof text);
    CHECK_STR(text, "5 ms, loss 10 %");
}

static void events_in_order(void)
{
    REQUIRE(read_text(LEAST "[event a]\nat_step = 12\ndo = partition 1 2 3 | 4\n"
                            "[event b]\nafter_s = 2.5\ndo = heal\n"
                            "[event c]\nat_s = 30\ndo = link 1 3\nloss = 1\n"));
    CHECK_EQ(s.events, 3);
    CHECK_EQ(s.event[0].action, SCENARIO_PARTITION);
    CHECK_EQ(s.event[0].when, WHEN_AT_STEP);
    CHECK_EQ(s.event[0].group[2], 1);
    CHECK_EQ(s.event[0].group[3], 2);
    CHECK_EQ(s.event[1].action, SCENARIO_HEAL);
    CHECK_NEAR(s.event[1].value, 2.5, 0);
    CHECK_EQ(s.event[2].nodes, 5);
    CHECK_EQ(s.event[2].link.loss, 1);
}

static void nodes_behind_nats_and_what_befalls_them(void)
{
    REQUIRE(read_text("[nodes]\ncount = 4\nseeds = 2\nnat = 3 4\nsecurity = sealed\n"
                      "[event a]\nat_s = 1\ndo = rebind 3\n"
                      "[event b]\nat_s = 2\ndo = down 1 4\n[event c]\nat_s = 3\ndo = up 4\n"
                      "[event d]\nat_s = 4\ndo = clock -3600\n[expect]\njoined_s 3 <= 9\n"));
    CHECK_EQ(s.seeds, 2);
    CHECK_EQ(s.nat, 12);
    CHECK(s.sealed);
    CHECK_EQ(s.event[0].action, SCENARIO_REBIND);
    CHECK_EQ(s.event[1].nodes, 9);
    CHECK_EQ(s.event[3].action, SCENARIO_CLOCK);
    CHECK_NEAR(s.event[3].seconds, -3600, 0);
    CHECK(scenario_has(&s, SCENARIO_UP));
    CHECK(!scenario_has(&s, SCENARIO_KILL));
    REQUIRE(read_text("[nodes]\ncount = 4\nnat = *\nsecurity = none\n"
                      "on_partition = continue\n[expect]\ndone = 1\n"));
    CHECK_EQ(s.nat, 15);
    CHECK(!s.sealed);
    CHECK(s.go_on);
}

/* Two lives: the first joins after 3 s, is alone for 10 s; the second never joins. */
static void course_of_a_node(void)
{
    struct scenario_course c = {0};
    double joined, gap;
    scenario_course_values(&c, &joined, &gap);
    CHECK(isnan(joined) && isnan(gap));
    scenario_course_start(&c, 100);
    scenario_course_round(&c, 101, 0, true); /* alone */
    scenario_course_round(&c, 102, 0.95, false);
    scenario_course_round(&c, 103, 0.95, true);
    scenario_course_round(&c, 104, 0.3, true);
    scenario_course_round(&c, 112, 0.6, true);
    scenario_course_end(&c, 113);
    scenario_course_values(&c, &joined, &gap);
    CHECK_NEAR(joined, 3, 1e-12);
    CHECK_NEAR(gap, 9, 1e-12); /* from 103 to 112 */
    scenario_course_start(&c, 200); /* the time it was killed is no gap */
    scenario_course_round(&c, 201, 0.6, true);
    scenario_course_end(&c, 221);
    scenario_course_values(&c, &joined, &gap);
    CHECK(isnan(joined));
    CHECK_NEAR(gap, 20, 1e-12);
}

static void expectations_and_their_worst(void)
{
    static scenario_values v;
    REQUIRE(read_text("[nodes]\ncount = 3\n[expect]\ncoverage >= 0.9\nlongest_wait_s 1 3 <= 2\n"
                      "done = 1\n"));
    for (int m = 0; m < METRIC_COUNT; m++)
        for (int i = 0; i < SCENARIO_NODES_MAX; i++)
            v[m][i] = NAN;
    for (int i = 0; i < 3; i++) {
        v[METRIC_COVERAGE][i] = 0.92 + 0.01 * i;
        v[METRIC_LONGEST_WAIT][i] = i == 1 ? 9 : 1 + i; /* node 2 is not asked for */
        v[METRIC_DONE][i] = 1;
    }
    CHECK_NEAR(scenario_worst(&s, &s.expect[0], v), 0.92, 1e-12);
    CHECK_EQ(scenario_worst(&s, &s.expect[1], v), 3);
    FILE *null = fopen("/dev/null", "w");
    REQUIRE(null != NULL);
    struct scenario_verdict got = scenario_check(&s, v, 0, null);
    CHECK_EQ(got.passed, 2);
    CHECK_EQ(got.failed, 1);
    v[METRIC_DONE][2] = NAN; /* a node without a value does not pass */
    got = scenario_check(&s, v, 0, null);
    CHECK_EQ(got.failed, 2);
    got = scenario_check(&s, v, 1u << METRIC_DONE, null);
    CHECK_EQ(got.passed, 1);
    CHECK_EQ(got.failed, 1);
    fclose(null);
    char text[128];
    scenario_expect_text(&s.expect[1], text, sizeof text);
    CHECK_STR(text, "longest_wait_s 1 3 <= 2");
}

static void quantiles(void)
{
    const double v[] = {5, 1, 4, 2, 3};
    CHECK_EQ(scenario_quantile(v, 5, 0), 1);
    CHECK_EQ(scenario_quantile(v, 5, 0.5), 3);
    CHECK_EQ(scenario_quantile(v, 5, 1), 5);
    CHECK(isnan(scenario_quantile(v, 0, 0.5)));
}

/* Each fault is told with the file, the line and a way to mend it. */
static void faults_are_named(void)
{
    static const struct {
        const char *text, *told;
    } cases[] = {
        {"[expect]\ndone = 1\n", "try.ini:2: [nodes] count is missing, e.g. count = 4"},
        {"[nodes]\ncount = 4\n", "[expect] is missing"},
        {"[nodes]\ncount = 99\n",
         "try.ini:2: count = \"99\": a whole number from 1 to 16 is needed"},
        {"[nodes]\ncount = 2.5\n", "a whole number from 1 to 16"},
        {"[node]\ncount = 2\n", "try.ini:2: there is no section [node]; use [job]"},
        {"nonsense\n", "try.ini:1: neither a [section], a key = value nor a ; comment"},
        {"[job]\ncolour = red\n", "there is no key colour in [job]; it takes about seed limit_s"},
        {"[job]\nseed = 1\nseed = 2\n", "try.ini:3: seed was given at line 2 already"},
        {LEAST "[link *]\nloss = nan\n", "loss = \"nan\": a number from 0 to 1"},
        {LEAST "[link 5]\nloss = 0.1\n", "try.ini:6: node 5 is named, but [nodes] count = 4"},
        {LEAST "[link 17]\nloss = 0.1\n", "\"17\" is not a node"},
        {LEAST "[link 1]\ngemodel_p = 0.1\n", "gemodel_p and gemodel_r come together"},
        {LEAST "[link 1]\nreorder = 0.1\n", "reorder needs a delay_ms"},
        {LEAST "[link 1]\ndelay_ms = 1\njitter_ms = 2\n",
         "jitter_ms = 2 is more than delay_ms = 1"},
        {LEAST "[event a]\nat_s = 1\n", "[event a] needs do, e.g. do = freeze 3"},
        {LEAST "[event a]\ndo = freeze 3\n", "[event a] needs at_s, at_step or after_s"},
        {LEAST "[event a]\nat_s = 1\nat_step = 1\n", "has at_s already"},
        {LEAST "[event a]\nat_s = 1\ndo = explode 1\n", "do = \"explode 1\": use one of kill, start, freeze, "},
        {LEAST "[event a]\nat_s = 1\ndo = freeze\n", "freeze needs nodes, e.g. freeze 2 3"},
        {LEAST "[event a]\nat_s = 1\ndo = thaw 3\n", "thaw 3: the node is running then"},
        {LEAST "[event a]\nat_s = 1\ndo = start 3\n", "start 3: the node is running then"},
        {LEAST "[event a]\nat_s = 1\ndo = kill 2\n[event b]\nat_s = 2\ndo = freeze 2\n",
         "[event b]: freeze 2: the node is killed then"},
        {LEAST "[event a]\nat_s = 1\ndo = up 2\n", "up 2: the node is not cut off then"},
        {LEAST "[event a]\nat_s = 1\ndo = down 2\n[event b]\nat_s = 2\ndo = down 1 2\n",
         "[event b]: down 2: the node is cut off then"},
        {LEAST "[event a]\nat_s = 1\ndo = rebind 3\n", "rebind 3: the node is behind no NAT"},
        {LEAST "[event a]\nat_s = 1\ndo = clock 0\n", "clock 0 moves nothing"},
        {LEAST "[event a]\nat_s = 1\ndo = clock\n", "clock = \"\": a number from -1e+06"},
        {"[nodes]\ncount = 4\nsecurity = some\n", "security = \"some\": use none or sealed"},
        {"[nodes]\ncount = 4\non_partition = stop\n", "use park or continue"},
        {"[nodes]\ncount = 4\nnat = 5\n[expect]\ndone = 1\n", "try.ini:3: node 5 is named"},
        {"[nodes]\ncount = 4\nseeds = 5\n[expect]\ndone = 1\n", "seeds = 5 is more than count"},
        {LEAST "[event a]\nat_s = 1\ndo = heal\n", "heal without a partition"},
        {LEAST "[event a]\nat_s = 1\ndo = heal now\n", "heal takes nothing more"},
        {LEAST "[event a]\nat_s = 1\ndo = partition 1 2\n", "two groups divided by |"},
        {LEAST "[event a]\nat_s = 1\ndo = partition 1 2 | 2 3\n", "in one group only"},
        {LEAST "[event a]\nat_s = 1\ndo = kill 1\nloss = 1\n", "only with do = link NODES"},
        {"[expect]\nspeed >= 1\n", "\"speed >\": a line of [expect] is METRIC"},
        {"[expect]\ncoverage > 1\n", "try.ini:2: neither a [section], a key = value"},
        {"[expect]\ncoverage 9x >= 1\n", "\"9x\" is not a node"},
        {LEAST "[workload]\nmin_nodes = 5\n", "min_nodes = 5 is more than [nodes] count = 4"},
        {"[nodes]\ncount = 4\nstart_s = 1, 2\n[expect]\ndone = 1\n", "start_s has 2 numbers for 4"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (!CHECK(!read_text(cases[i].text)) || !CHECK(strstr(said, cases[i].told) != NULL))
            printf("  case %zu: \"%s\" was told as \"%s\"\n", i, cases[i].told, said);
    }
}

static void long_lines_are_refused(void)
{
    char text[600];
    snprintf(text, sizeof text, LEAST "[job]\nabout = %0300d\n", 1);
    CHECK(!read_text(text));
    CHECK(strstr(said, "try.ini:6: line longer than 198 bytes") != NULL);
    snprintf(text, sizeof text, LEAST "[event %060d]\nat_s = 1\n", 1);
    CHECK(!read_text(text));
    CHECK(strstr(said, "section name longer than 49 bytes") != NULL);
}

TEST_SUITE(scenario) = {
    TEST(least_file_has_defaults),
    TEST(links_of_all_and_of_some),
    TEST(events_in_order),
    TEST(nodes_behind_nats_and_what_befalls_them),
    TEST(course_of_a_node),
    TEST(expectations_and_their_worst),
    TEST(quantiles),
    TEST(faults_are_named),
    TEST(long_lines_are_refused),
    TEST_END,
};
