#define _GNU_SOURCE 1 /* fmemopen, open_memstream */
#include "reading.h"
#include "recipe/options.h"
#include "sleet_test.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct recipe r;
static char said[4096];

static bool reads(FILE *in, FILE *errors)
{
    return recipe_read(&r, in, "a/try.ini", errors);
}

static bool read_text(const char *text)
{
    return reading(text, reads, said, sizeof said);
}

#define HEAD "[recipe]\npaper = A\nclaim = B\ndiffers = C\n"
#define REPRODUCE HEAD "[reproduce x]\nrun = sleet-bench average rps\n"

static void sections_and_lines_that_go_on(void)
{
    REQUIRE(read_text(HEAD "[train]\naverage = model\nno-repair = yes\n[sim]\nloss = 0.1\n"
                           "[reproduce small one]\nseeds = 3\nrun = sleet-bench average rps\n"
                           "  --json\nrun other = sleet-train\nbar = a = 1 within\n  2 x\n"
                           "bar = other.b >= a\n"));
    CHECK_STR(r.name, "try");
    CHECK_STR(r.claim, "B");
    CHECK_EQ(r.trains, 2);
    CHECK_STR(r.train[1].key, "no-repair");
    CHECK_EQ(r.train[1].line, 7);
    CHECK_EQ(r.sims, 1);
    const struct recipe_experiment *e = &r.experiment[0];
    CHECK_STR(e->name, "small one");
    CHECK_EQ(e->seeds, 3);
    CHECK_STR(e->run[0].value, "sleet-bench average rps --json");
    CHECK_STR(e->run[1].key, "other");
    CHECK_EQ(e->bars, 2);
    CHECK_STR(e->bar[0].text, "a = 1 within 2 x");
    CHECK_EQ(e->bar[0].kind, RECIPE_TIMES);
    CHECK_STR(e->bar[1].left, "other.b");
}

static void reasons_others_and_plots(void)
{
    REQUIRE(read_text(REPRODUCE "bar = a = 1\nbar = b = 1\nwhy = it is not\n  so\nof = rps\nof = rps: 8 nodes\n"
                      "[reproduce y]\nof = moshpit\n[reproduce z]\nrun = lab\nplot = a_\n"));
    const struct recipe_experiment *e = r.experiment;
    CHECK_STR(e[0].bar[0].why, "");
    CHECK_STR(e[0].bar[1].why, "it is not so");
    CHECK_EQ(e[0].ofs, 2);
    CHECK_STR(e[0].of[1], "rps: 8 nodes");
    CHECK_STR(e[0].plot, "");
    CHECK_EQ(e[1].runs, 0);
    CHECK_STR(e[2].plot, "a_");
}

static void one_fault_with_its_line(void)
{
    static const struct {
        const char *text, *says;
    } faults[] = {
        {"[recipe]\npaper = A\n", "needs paper, claim and differs"},
        {"paper = A\n", ":1: there is no section []"},
        {HEAD "[rain]\n a = b\n", ":6: there is no section [rain]"},
        {HEAD "title = x\n", ":5: there is no key title in [recipe]"},
        {HEAD "claim = x\n", ":5: claim was given already"},
        {HEAD "[train]\nlr = 1\nlr = 2\n", ":7: lr was given at line 6 already"},
        {HEAD "[train]\n lr = 1\n", ":6: a line that begins with a blank"},
        {HEAD "[train]\nlr\nrate = 1\n", ":6: neither a [section]"},
        {HEAD "[reproduce x]\nrun = lab\n", "[reproduce x] needs a run and a bar"},
        {HEAD "[reproduce x]\nbar = a = 1\n", "needs a run and a bar"},
        {REPRODUCE "seeds = 0\n", ":7: seeds = \"0\""},
        {REPRODUCE "run = lab\n", ":7: a run without a name was given at line 6"},
        {REPRODUCE "walk = lab\n", ":7: there is no key walk"},
        {REPRODUCE "why = x\n", ":7: why is of the bar above it: there is none"},
        {REPRODUCE "bar = a = 1\nwhy = x\nwhy = y\n", ":9: why was given already"},
        {HEAD "[reproduce x]\nplot = a_\n", "needs a run and a bar"},
        {REPRODUCE "bar = a\n", ":7: bar = \"a\""},
        {REPRODUCE "bar = a <= 1 within 2 %\n", ":7: bar"},
        {REPRODUCE "bar = q.a <= 1\n", ":7: bar = \"q.a <= 1\": [reproduce x] has no such run"},
        {REPRODUCE "bar = a <= q.a\n", "has no such run"},
        {REPRODUCE "bar = a = 1\n[train]\nlr = 1\n[reproduce x]\nrun = lab\n",
         "there is a [reproduce x] at line"},
    };
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        CHECK(!read_text(faults[i].text));
        if (!strstr(said, faults[i].says))
            CHECK_STR(said, faults[i].says);
        CHECK_EQ(strchr(said, '\n') - said, (long)strlen(said) - 1); /* one sentence */
    }
}

static void bars(void)
{
    static const struct {
        const char *text;
        double left, right;
        bool holds;
    } cases[] = {
        {"a = 0.079 within 20 %", 0.064, 0, true},
        {"a = 0.079 within 20 %", 0.063, 0, false},
        {"a = 2e-5 within 1.5 x", 2.9e-5, 0, true},
        {"a = 2e-5 within 1.5 x", 1.4e-5, 0, true},
        {"a = 2e-5 within 1.5 x", 1.3e-5, 0, false},
        {"a = 2e-5 within 1.5 x", 0, 0, false},
        {"a = 4.5 within 0.5", 5, 0, true},
        {"a = 4.5 within 0.5", 5.1, 0, false},
        {"a = 0", 0, 0, true},
        {"a = 0", 1e-9, 0, false},
        {"a <= 1e-12", 1e-13, 0, true},
        {"a >= -1", -2, 0, false},
        {"a <= 0.6 * b", 0.6, 1, true},
        {"a <= 0.6 * b", 0.61, 1, false},
        {"a >= b - 0.01", 0.84, 0.85, true},
        {"a >= b - 0.01", 0.839, 0.85, false},
        {"a <= 2 * b + 1", 3, 1, true},
        {"a = b within 1 %", 1.01, 1, true},
        {"a <= b", 0, NAN, false},
        {"a <= 1", NAN, 0, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct recipe_bar b;
        REQUIRE(bar_parse(&b, cases[i].text));
        if (bar_holds(&b, cases[i].left, cases[i].right) != cases[i].holds)
            CHECK_STR(cases[i].text, "the other way");
    }
    static const char *const none[] = {"",
                                       "a",
                                       "a <",
                                       "a < 1",
                                       "= 1",
                                       "a <= 1 2",
                                       "a = 1 within",
                                       "a = 1 within -1",
                                       "a = 1 within 0.5 x",
                                       "a = 2 * 3",
                                       "a = b +"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        struct recipe_bar b;
        if (bar_parse(&b, none[i]))
            CHECK_STR(none[i], "refused");
    }
}

/* What `take` was handed. */
static char taken[256];

static bool take(void *arg, int option, const char *value)
{
    size_t used = strlen(taken);
    snprintf(taken + used, sizeof taken - used, "%c%s ", option, value ? value : "");
    return arg == NULL && (!value || strcmp(value, "wrong") != 0);
}

/* The recipe's options; optind is left for the caller to begin anew. */
static int options_of(const char *train)
{
    static const struct option known[] = {{"recipe", 1, NULL, 'r'},
                                          {"rate", 1, NULL, 'l'},
                                          {"quiet", 0, NULL, 'q'},
                                          {NULL, 0, NULL, 0}};
    char name[] = "/tmp/recipe-XXXXXX.ini", program[] = "try", option[] = "--recipe",
         other[] = "--rate=3";
    int fd = mkstemps(name, 4);
    if (fd < 0)
        return 1;
    dprintf(fd, HEAD "%s", train);
    close(fd);
    char *argv[] = {program, other, option, name, NULL};
    taken[0] = '\0';
    optind = 0;
    int status = recipe_options(RECIPE_TRAIN, 4, argv, "h", known, take, NULL);
    remove(name);
    return status;
}

static void options_before_those_of_the_command_line(void)
{
    CHECK_EQ(options_of("[train]\nrate = 2\nquiet = yes\n"), -1);
    CHECK_STR(taken, "l2 q ");
    CHECK_EQ(optind, 0); /* getopt begins anew */
    CHECK_EQ(options_of("[train]\nquite = yes\n"), 2);
    CHECK_EQ(options_of("[train]\nquiet = no\n"), 2);
    CHECK_EQ(options_of("[train]\nrate = wrong\n"), 2);
    CHECK_EQ(options_of("[train]\nrecipe = other\n"), 2);
    CHECK_EQ(options_of("[sim]\nrate = 1\n"), 2);
    optind = 0;
}

TEST_SUITE(recipe) = {
    TEST(sections_and_lines_that_go_on),
    TEST(reasons_others_and_plots),
    TEST(one_fault_with_its_line),
    TEST(bars),
    TEST(options_before_those_of_the_command_line),
    TEST_END,
};
