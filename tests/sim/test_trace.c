/* A golden trace: what three nodes that meet at 10 % loss see, and when.
 * A change of behaviour shows as a difference to tests/vectors/trace-join.txt;
 * with SLEET_UPDATE_TRACE=1 that file is written anew. */
#include "helpers.h"
#include <stdarg.h>
#include <stdlib.h>

#ifndef TEST_VECTORS
#define TEST_VECTORS "tests/vectors"
#endif
#define TRACE_FILE TEST_VECTORS "/trace-join.txt"
#define NODES 3
#define ROUNDS 3
#define SEED 1 /* not the run's: the file belongs to this one */

struct trace {
    char text[16384];
    size_t len;
    uint32_t alive[NODES], trainers[NODES];
    bool joining[NODES];
    uint32_t waiting;
};

static void add(struct trace *t, cluster *c, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void add(struct trace *t, cluster *c, const char *format, ...)
{
    size_t room = sizeof t->text - t->len;
    long long us = (long long)(sim_now(cluster_sim(c)).ns / 1000);
    int n = snprintf(t->text + t->len, room, "%lld us ", us);
    if (n < 0 || (size_t)n >= room)
        return;
    t->len += (size_t)n;
    room -= (size_t)n;
    va_list args;
    va_start(args, format);
    n = vsnprintf(t->text + t->len, room, format, args);
    va_end(args);
    if (n > 0 && (size_t)n < room)
        t->len += (size_t)n;
}

static void reported(cluster *c, uint32_t node, void *arg)
{
    struct trace *t = arg;
    const struct cluster_report *r = cluster_report(c, node);
    t->waiting--;
    add(t, c, "report node %u error %d round %llu coverage %.4f group %u expected %u flags %u\n",
        node, r->error, (unsigned long long)r->report.round, r->report.coverage,
        r->report.group_size, r->report.expected, r->report.flags);
}

/* What changed in the engines' view of the job. */
static void watch(struct trace *t, cluster *c)
{
    sleet_time now = sim_now(cluster_sim(c));
    for (uint32_t i = 0; i < NODES; i++) {
        engine *e = sim_engine(cluster_sim(c), i);
        engine_set set;
        uint32_t alive = engine_nodes_alive(e, now);
        if (!engine_get_set(e, cluster_set(c, i), &set, now))
            continue;
        if (alive != t->alive[i])
            add(t, c, "alive node %u nodes %u\n", i, alive);
        if (set.trainers != t->trainers[i])
            add(t, c, "trainers node %u nodes %u\n", i, set.trainers);
        if (set.joining != t->joining[i])
            add(t, c, "joining node %u now %d job round %llu\n", i, set.joining,
                (unsigned long long)set.job_round);
        t->alive[i] = alive;
        t->trainers[i] = set.trainers;
        t->joining[i] = set.joining;
    }
}

static void run_traced(struct trace *t)
{
    static const uint64_t counts[] = {2000, 5};
    struct sim_config config = {
        .nodes = NODES, .seed = SEED, .link = {.delay = MS(1), .jitter = US(500), .loss = 0.1}};
    sleet_rng rng = {SEED};
    cluster *c = cluster_new(&config, counts, 2);
    REQUIRE(c);
    cluster_on_report(c, reported, t);
    while (sim_now(cluster_sim(c)).ns < SEC(4) && sim_step(cluster_sim(c)))
        watch(t, c);
    for (int round = 0; round < ROUNDS; round++) {
        fill_grid(c, &rng);
        for (uint32_t i = 0; i < NODES; i++) {
            int error = cluster_start(c, i, NULL);
            add(t, c, "start node %u error %d\n", i, error);
            t->waiting += error == SLEET_OK;
        }
        while (t->waiting > 0 && sim_step(cluster_sim(c)))
            watch(t, c);
    }
    cluster_free(c);
}

/* The first line in which the two differ, on stderr. */
static void show_difference(const char *want, const char *got)
{
    int line = 1;
    while (*want && *got) {
        size_t a = strcspn(want, "\n"), b = strcspn(got, "\n");
        if (a != b || memcmp(want, got, a) != 0)
            break;
        want += a + (want[a] != 0);
        got += b + (got[b] != 0);
        line++;
    }
    fprintf(stderr, "trace-join.txt:%d: expected: %.*s\ntrace-join.txt:%d: got:      %.*s\n", line,
            (int)strcspn(want, "\n"), want, line, (int)strcspn(got, "\n"), got);
}

static void joining_as_recorded(void)
{
    static struct trace t;
    static char recorded[sizeof t.text];
    const char *update = getenv("SLEET_UPDATE_TRACE");
    memset(&t, 0, sizeof t);
    run_traced(&t);
    CHECK(t.len > 0 && t.len < sizeof t.text - 256);
    CHECK(strstr(t.text, "report node 2") != NULL);
    if (update && strcmp(update, "1") == 0) {
        FILE *out = fopen(TRACE_FILE, "w");
        REQUIRE(out != NULL);
        CHECK_EQ(fwrite(t.text, 1, t.len, out), t.len);
        CHECK_EQ(fclose(out), 0);
        return;
    }
    FILE *in = fopen(TRACE_FILE, "r");
    REQUIRE(in != NULL);
    size_t len = fread(recorded, 1, sizeof recorded - 1, in);
    fclose(in);
    recorded[len] = '\0';
    if (!CHECK(len == t.len && memcmp(recorded, t.text, len) == 0))
        show_difference(recorded, t.text);
}

TEST_SUITE(trace) = {
    TEST(joining_as_recorded),
    TEST_END,
};
