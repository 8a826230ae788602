/* The membership protocol alone, beside what its papers lead one to expect. */
#include "sim/detect.h"
#include "sleet-sim-scenario.h"
#include <math.h>
#include <stdio.h>

#define VICTIMS 16
#define STARVE_NODES 128 /* of Lifeguard's own experiments */
#define STARVE_PERIODS 90

struct row {
    const char *key, *text;
    double measured, expected; /* NaN: nothing to expect */
    const char *why;
};

static void print_rows(const struct row *rows, size_t n, bool json)
{
    if (!json)
        printf("%-46s %10s %10s\n", "", "measured", "expected");
    for (size_t i = 0; i < n; i++) {
        const struct row *r = &rows[i];
        if (json)
            printf("%s\"%s\":%.4g", i ? "," : "", r->key, r->measured);
        else if (isnan(r->expected))
            printf("%-46s %10.4g %10s  %s\n", r->text, r->measured, "-", r->why);
        else
            printf("%-46s %10.4g %10.4g  %s\n", r->text, r->measured, r->expected, r->why);
    }
}

/* Fraction of probes that fail by loss alone: the direct way and all k helpers. */
static double false_probe(double loss)
{
    double q = 1 - loss;
    return (1 - q * q) * pow(1 - q * q * q * q, SWIM_HELPERS);
}

static void print_detection(const struct members_config *c, const struct detection *d, bool json)
{
    double n = d->nodes, decades = fmax(1, log10(n + 1));
    double false_a_node = false_probe(c->loss);
    const struct row rows[] = {
        {"first_periods", "death until somebody suspects it, periods", d->first,
         exp(1) / (exp(1) - 1), "SWIM: e/(e-1); 2 where periods are not in step"},
        {"first_most", "  most of the victims", d->first_most, log(VICTIMS) + 2,
         "exponential tail: 1 + ln(victims) + 1"},
        {"spread_periods", "then until every living node does", d->spread,
         (log(n) / log(1 + SWIM_FANOUT) + log(n) / SWIM_FANOUT) / SWIM_TICKS,
         "push gossip, 3 targets a tick of 1/5: O(log n)"},
        {"dead_periods", "death until every living node declares it", d->dead, 2 + 5 * decades,
         "2 + 5 log10(n + 1): confirmed 3 times (Lifeguard)"},
        {"idle_messages", "datagrams a node a period, quiet", d->idle_messages,
         2 + 2.0 / SWIM_SYNC_PERIODS + 4 * SWIM_HELPERS * (1 - pow(1 - c->loss, 2)),
         "SWIM: constant; a probe and its answer"},
        {"idle_bytes", "bytes of UDP payload, quiet", d->idle_bytes, NAN, ""},
        {"busy_messages", "datagrams a node a period, while news spreads", d->busy_messages,
         2 + SWIM_FANOUT * SWIM_TICKS, "constant: and 15 of gossip at most"},
        {"busy_bytes", "bytes of UDP payload, then", d->busy_bytes, NAN, ""},
        {"memory_bytes", "bytes of memory a node", (double)d->memory_bytes, NAN, "O(n)"},
        {"missed", "pairs of a living and a dead that missed it", d->missed, 0,
         "SWIM: completeness"},
        {"wronged", "living nodes that somebody suspected", d->wronged,
         n * (1 - pow(1 - false_a_node, 115)), "by loss, in 115 periods; then refuted"},
    };
    print_rows(rows, sizeof rows / sizeof *rows, json);
}

static void print_starvation(const struct starvation *with, const struct starvation *without,
                             bool json)
{
    double gain = (double)without->declared / (double)(with->declared ? with->declared : 1);
    const struct row rows[] = {
        {"starved_declared_swim", "healthy ones declared dead, SWIM alone",
         (double)without->declared, NAN, "pairs at healthy observers"},
        {"starved_declared", "  with Lifeguard", (double)with->declared,
         (double)without->declared / 50, "Lifeguard: at most 1/50"},
        {"starved_gain", "  fewer by, at least", gain, 50, ""},
        {"starved_suspected_swim", "healthy ones suspected, SWIM alone", (double)without->suspected,
         NAN, ""},
        {"starved_suspected", "  with Lifeguard", (double)with->suspected, NAN, ""},
        {"starved_own_swim", "declared by the starved, SWIM alone",
         (double)without->declared_by_starved, NAN, ""},
        {"starved_own", "  with Lifeguard", (double)with->declared_by_starved, NAN, ""},
    };
    if (!json)
        printf("\n%u nodes, %u of them starved: 16 s asleep, 64 ms awake, %d periods\n",
               with->nodes, with->starved, STARVE_PERIODS);
    else
        putchar(',');
    print_rows(rows, sizeof rows / sizeof *rows, json);
}

int sim_membership(uint32_t nodes, double loss, double delay_ms, uint64_t seed, bool json)
{
    struct members_config c = {
        .nodes = nodes, .seed = seed, .loss = loss, .delay = (sleet_duration)(delay_ms * 1e6)};
    struct detection d;
    struct starvation with, without;
    uint32_t victims = nodes > 4 * VICTIMS ? VICTIMS : 1 + nodes / 8;
    bool ok = detect(&c, victims, &d);
    c.nodes = nodes < STARVE_NODES ? nodes : STARVE_NODES;
    ok = ok && detect_starved(&c, (c.nodes + 15) / 16, SEC(16), MS(64), STARVE_PERIODS, &with);
    c.lifeguard_off = true;
    ok = ok && detect_starved(&c, (c.nodes + 15) / 16, SEC(16), MS(64), STARVE_PERIODS, &without);
    if (!ok) {
        fputs("sleet-sim: out of memory\n", stderr);
        return 1;
    }
    printf(json ? "{\"nodes\":%u,\"loss\":%g,\"seed\":%llu,"
                : "%u nodes, loss %g, seed %llu, a period of 1 s\n",
           nodes, loss, (unsigned long long)seed);
    print_detection(&c, &d, json);
    print_starvation(&with, &without, json);
    fputs(json ? "}\n" : "", stdout);
    return d.missed ? 1 : 0;
}
