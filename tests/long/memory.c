/* memory.c - the engines' heap neither grows with the rounds nor passes its bound.
 *
 *   memory [NODES [ROUNDS]]      2 to 64 nodes (4), rounds (10000)
 *
 * A fifth of the rounds fail: by a deadline too short for the data, or by one
 * node cut off.  Resident memory after a tenth of the rounds and at the end
 * must be within 5 % (half a MiB where that is more), and below the sum of engine_memory_bound_bytes() and
 * 32 MiB.  Prints the figures; exit 0 when all hold, 1 when not, 2 usage.
 * Environment: SLEET_TEST_SEED (1). */
#include "sim/cluster.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define SMALL_BYTES (512u << 10) /* what an allocator keeps or gives back by chance */

static const uint64_t counts[] = {19000, 1000};
static const struct sim_link clean = {.delay = INT64_C(200000)};

struct figures {
    uint64_t deadline_rounds, cut_rounds; /* rounds made to fail */
    uint64_t short_rounds;                /* of those, rounds with less than full coverage */
    bool on_time;                         /* every node reported by its deadline */
};

/* Bytes; 0 where the system does not tell. */
static uint64_t resident_bytes(void)
{
    unsigned long long size, resident = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (f && fscanf(f, "%llu %llu", &size, &resident) != 2)
        resident = 0;
    if (f)
        fclose(f);
    return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

static uint64_t bound_bytes(cluster *c)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < sim_nodes(cluster_sim(c)); i++)
        sum += engine_memory_bound_bytes(sim_engine(cluster_sim(c), i));
    return sum;
}

static void cut(cluster *c, uint32_t node, bool down)
{
    struct sim_link link = clean;
    link.down = down;
    sim_set_link(cluster_sim(c), node, SIM_ALL, &link);
    sim_set_link(cluster_sim(c), SIM_ALL, node, &link);
}

static bool full_coverage(cluster *c)
{
    for (uint32_t i = 0; i < sim_nodes(cluster_sim(c)); i++)
        if (cluster_report(c, i)->report.coverage < 1.0)
            return false;
    return true;
}

static void one_round(cluster *c, sleet_rng *rng, struct figures *f)
{
    sleet_round_options options = {.size = sizeof(options), .deadline_ns = INT64_C(300000000)};
    uint32_t victim = rng_below(rng, sim_nodes(cluster_sim(c)));
    uint32_t dice = rng_below(rng, 10);
    if (dice == 0) {
        options.deadline_ns = 1000000 + rng_below(rng, 4000000);
        f->deadline_rounds++;
    } else if (dice == 1) {
        cut(c, victim, true);
        f->cut_rounds++;
    }
    for (uint32_t i = 0; i < sim_nodes(cluster_sim(c)); i++)
        cluster_values(c, i)[rng_below(rng, 20000)] += 0.125f;
    if (!cluster_round(c, &options))
        f->on_time = false;
    if (dice < 2 && !full_coverage(c))
        f->short_rounds++;
    if (dice == 1)
        cut(c, victim, false);
    cluster_idle(c, 20000000); /* the trainers compute */
}

/* True when the figures are within their bars. */
static bool judge(const struct figures *f, cluster *c, uint32_t rounds, uint64_t early, uint64_t late)
{
    uint32_t nodes = sim_nodes(cluster_sim(c));
    uint64_t bar = bound_bytes(c) + (UINT64_C(32) << 20);
    uint64_t failing = f->deadline_rounds + f->cut_rounds;
    double growth = early ? 100.0 * ((double)late - (double)early) / (double)early : 100.0;
    printf("memory: %" PRIu32 " nodes, %" PRIu32 " rounds, %" PRIu64 " by short deadline, %" PRIu64
           " by cut links, %" PRIu64 " of these incomplete\n",
           nodes, rounds, f->deadline_rounds, f->cut_rounds, f->short_rounds);
    printf("memory: resident %" PRIu64 " KiB after %" PRIu32 " rounds, %" PRIu64
           " KiB at the end: %+.2f %% (bar 5 %%); bar %" PRIu64 " KiB\n",
           early >> 10, rounds / 10, late >> 10, growth, bar >> 10);
    uint64_t change = late > early ? late - early : early - late;
    bool flat = change * 20 <= early || change <= SMALL_BYTES;
    bool ok = early && flat && late <= bar;
    if (!f->on_time || cluster_overdue(c)) {
        printf("memory: %" PRIu64 " reports passed their deadline\n", cluster_overdue(c));
        ok = false;
    }
    if (failing * 10 < rounds || f->short_rounds * 4 < failing) {
        printf("memory: too few rounds failed to tell anything\n");
        ok = false;
    }
    return ok;
}

int main(int argc, char **argv)
{
    long nodes = argc > 1 ? strtol(argv[1], NULL, 10) : 4;
    long rounds = argc > 2 ? strtol(argv[2], NULL, 10) : 10000;
    const char *text = getenv("SLEET_TEST_SEED");
    uint64_t seed = text ? strtoull(text, NULL, 0) : 1, early = 0;
    if (argc > 3 || nodes < 2 || nodes > SLEET_GROUP_MAX || rounds < 100 || rounds > 100000000) {
        fprintf(stderr, "usage: memory [NODES [ROUNDS]]\n");
        return 2;
    }
    struct sim_config config = {.nodes = (uint32_t)nodes, .seed = seed, .link = clean};
    struct figures f = {.on_time = true};
    sleet_rng rng = {seed};
    cluster *c = cluster_new(&config, counts, 2);
    if (!c) {
        fprintf(stderr, "memory: out of memory\n");
        return 1;
    }
    cluster_idle(c, INT64_C(4000000000));
    for (long i = 0; i < rounds; i++) {
        one_round(c, &rng, &f);
        if (i + 1 == rounds / 10)
            early = resident_bytes();
    }
    bool ok = judge(&f, c, (uint32_t)rounds, early, resident_bytes());
    cluster_free(c);
    if (!ok)
        printf("memory: failed with seed %" PRIu64 "\n", seed);
    return ok ? 0 : 1;
}
