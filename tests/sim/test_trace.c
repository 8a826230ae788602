/* Golden traces: what the nodes of small clusters at 10 % loss see, and when, as they
 * meet, while one is frozen or killed and comes back, and while they are cut apart.
 * A change of behaviour shows as a difference to tests/vectors/trace-NAME.txt;
 * with SLEET_UPDATE_TRACE=1 these files are written anew. */
#include "helpers.h"
#include <stdarg.h>
#include <stdlib.h>

#ifndef TEST_VECTORS
#define TEST_VECTORS "tests/vectors"
#endif
#define NODES_MAX 4
#define SEED 1       /* not the run's: the files belong to this one */
#define STEP MS(400) /* a trainer computes so long between two rounds */
#define LINES_MAX 200
#define LOSSY ((struct sim_link){.delay = MS(1), .jitter = US(500), .loss = 0.1})

struct trace {
    char text[32768];
    size_t len;
    cluster *c;
    sleet_rng rng;
    uint32_t alive[NODES_MAX], trainers[NODES_MAX];
    bool joining[NODES_MAX];
    bool idle[NODES_MAX]; /* no round open, and none will be started */
    bool over;            /* no node starts another round */
    struct trainer {
        struct trace *t;
        uint32_t node;
    } trainer[NODES_MAX];
};

static void put(struct trace *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void put(struct trace *t, const char *format, ...)
{
    size_t room = sizeof t->text - t->len;
    va_list args;
    va_start(args, format);
    int n = vsnprintf(t->text + t->len, room, format, args);
    va_end(args);
    if (n > 0)
        t->len += (size_t)n < room ? (size_t)n : room - 1;
}

/* The beginning of a line: milliseconds since the start. */
static void put_time(struct trace *t)
{
    long long us = (long long)(sim_now(cluster_sim(t->c)).ns / 1000);
    put(t, "%5lld.%03lld ", us / 1000, us % 1000);
}

static void begin(sim *s, void *arg);

static void reported(cluster *c, uint32_t node, void *arg)
{
    struct trace *t = arg;
    const struct cluster_report *r = cluster_report(c, node);
    put_time(t);
    put(t, "node %u: round %llu over", node, (unsigned long long)r->report.round);
    if (r->error)
        put(t, ", error %d", r->error);
    put(t, ", coverage %.4f of %u, group of %u", r->report.coverage, r->report.expected,
        r->report.group_size);
#define FLAG(name, bit, text)                                                                      \
    if (r->report.flags & (1u << bit))                                                             \
        put(t, ", " text);
    SLEET_REPORT_FLAG_MAP(FLAG)
#undef FLAG
    put(t, ", after %.1f ms\n", (double)time_since(r->reported_at, r->started_at) / 1e6);
    sim_at(cluster_sim(c), time_add(r->reported_at, STEP), begin, &t->trainer[node]);
}

/* What changed in the engines' view of the job. */
static void watch(struct trace *t)
{
    sim *s = cluster_sim(t->c);
    for (uint32_t i = 0; i < nodes_of(t->c); i++) {
        engine *e = sim_engine(s, i);
        engine_set set;
        if (!e || sim_frozen(s, i) || !engine_get_set(e, cluster_set(t->c, i), &set, sim_now(s)))
            continue;
        uint32_t alive = engine_nodes_alive(e, sim_now(s));
        if (alive == t->alive[i] && set.trainers == t->trainers[i] && set.joining == t->joining[i])
            continue;
        put_time(t);
        put(t, "node %u: sees %u alive, %u training", i, alive, set.trainers);
        if (set.joining)
            put(t, ", joining");
        put(t, "\n");
        t->alive[i] = alive;
        t->trainers[i] = set.trainers;
        t->joining[i] = set.joining;
    }
}

static bool watching(void *arg)
{
    watch(arg);
    return true;
}

static void pass(struct trace *t, sleet_duration d)
{
    sim *s = cluster_sim(t->c);
    sleet_time until = time_add(sim_now(s), d);
    sim_run_while(s, watching, t, until);
    sim_run_until(s, until);
    watch(t);
}

/* A node's next round, with new values. */
static void begin(sim *s, void *arg)
{
    const struct trainer *me = arg;
    struct trace *t = me->t;
    t->idle[me->node] = t->over || !sim_engine(s, me->node) || sim_frozen(s, me->node);
    if (t->idle[me->node])
        return;
    for (uint64_t k = 0; k < cluster_elements(t->c); k++)
        cluster_values(t->c, me->node)[k] = (float)rng_below(&t->rng, 2048) * 0x1p-12f;
    int error = cluster_start(t->c, me->node, NULL);
    if (error) {
        put_time(t);
        put(t, "node %u: a round does not start, error %d\n", me->node, error);
    }
}

static void begin_all(struct trace *t)
{
    for (uint32_t i = 0; i < nodes_of(t->c); i++)
        begin(cluster_sim(t->c), &t->trainer[i]);
}

/* ---- what happens --------------------------------------------------------- */

static void incident(struct trace *t, const char *what)
{
    put_time(t);
    put(t, "%s\n", what);
}

/* Cut node 3 off, or connect it again. */
static void cut_3(struct trace *t, bool down)
{
    struct sim_link link = LOSSY;
    link.down = down;
    sim_set_link(cluster_sim(t->c), 3, SIM_ALL, &link);
    sim_set_link(cluster_sim(t->c), SIM_ALL, 3, &link);
    incident(t, down ? "node 3 is cut off" : "node 3 is connected again");
}

static void play_join(struct trace *t)
{
    pass(t, SEC(2));
}

static void play_freeze(struct trace *t)
{
    sim *s = cluster_sim(t->c);
    pass(t, SEC(2));
    sim_freeze(s, 2, true);
    incident(t, "node 2 is frozen");
    pass(t, SEC(4));
    incident(t, "node 2 is thawed");
    sim_freeze(s, 2, false);
    if (t->idle[2])
        begin(s, &t->trainer[2]);
    pass(t, SEC(4));
}

static void play_kill(struct trace *t)
{
    sim *s = cluster_sim(t->c);
    pass(t, SEC(2));
    sim_kill(s, 1);
    t->alive[1] = t->trainers[1] = 0;
    incident(t, "node 1 is killed");
    pass(t, SEC(4));
    incident(t, "node 1 starts again");
    CHECK(sim_restart(s, 1));
    CHECK_EQ(cluster_register(t->c, 1), SLEET_OK);
    begin(s, &t->trainer[1]);
    pass(t, SEC(4));
}

static void play_partition(struct trace *t)
{
    pass(t, SEC(2));
    cut_3(t, true);
    pass(t, SEC(4));
    cut_3(t, false);
    pass(t, SEC(4));
}

/* ---- comparison ------------------------------------------------------------ */

/* The first line in which the two differ, on stderr. */
static void show_difference(const char *file, const char *want, const char *got)
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
    fprintf(stderr, "%s:%d: expected: %.*s\n%s:%d: got:      %.*s\n", file, line,
            (int)strcspn(want, "\n"), want, file, line, (int)strcspn(got, "\n"), got);
}

static void update(const char *file, const struct trace *t)
{
    FILE *out = fopen(file, "w");
    REQUIRE(out != NULL);
    CHECK_EQ(fwrite(t->text, 1, t->len, out), t->len);
    CHECK_EQ(fclose(out), 0);
}

static void compare(const char *file, const struct trace *t)
{
    static char recorded[sizeof t->text];
    FILE *in = fopen(file, "r");
    REQUIRE(in != NULL);
    size_t len = fread(recorded, 1, sizeof recorded - 1, in);
    fclose(in);
    recorded[len] = '\0';
    if (!CHECK(len == t->len && memcmp(recorded, t->text, len) == 0))
        show_difference(file, recorded, t->text);
}

static void as_recorded(const char *name, uint32_t nodes, void (*play)(struct trace *))
{
    static const uint64_t counts[] = {2000, 5};
    static struct trace t;
    struct sim_config config = {.nodes = nodes, .seed = SEED, .link = LOSSY};
    char file[sizeof TEST_VECTORS + 64];
    const char *env = getenv("SLEET_UPDATE_TRACE");
    int lines = 0;
    t = (struct trace){.rng = {SEED}, .c = cluster_new(&config, counts, 2)};
    REQUIRE(t.c);
    cluster_on_report(t.c, reported, &t);
    for (uint32_t i = 0; i < nodes; i++)
        t.trainer[i] = (struct trainer){&t, i};
    pass(&t, SEC(4)); /* they meet */
    begin_all(&t);
    play(&t);
    t.over = true;
    pass(&t, SEC(3)); /* open rounds end */
    t.over = false;
    incident(&t, "all start the last round");
    begin_all(&t);
    t.over = true;
    pass(&t, SEC(3));
    put_time(&t);
    put(&t, "end: the nodes' values are %s, %d reports overdue\n",
        identical(t.c) ? "identical" : "different", (int)cluster_overdue(t.c));
    cluster_free(t.c);
    for (const char *p = t.text; (p = strchr(p, '\n')); p++)
        lines++;
    CHECK(lines <= LINES_MAX && t.len < sizeof t.text - 1);
    snprintf(file, sizeof file, "%s/trace-%s.txt", TEST_VECTORS, name);
    if (env && strcmp(env, "1") == 0)
        update(file, &t);
    else
        compare(file, &t);
}

static void joining_as_recorded(void)
{
    as_recorded("join", 3, play_join);
}
static void freeze_as_recorded(void)
{
    as_recorded("freeze", 3, play_freeze);
}
static void kill_as_recorded(void)
{
    as_recorded("kill", 3, play_kill);
}
static void partition_as_recorded(void)
{
    as_recorded("partition", 4, play_partition);
}

TEST_SUITE(trace) = {
    TEST(joining_as_recorded),
    TEST(freeze_as_recorded),
    TEST(kill_as_recorded),
    TEST(partition_as_recorded),
    TEST_END,
};
