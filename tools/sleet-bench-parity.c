/* sleet-bench-parity.c - what codes of k data and m parity datagrams leave lost.
 *
 * A group of k + m datagrams gives all its data when at most m are lost, else only what arrived
 * (Reed-Solomon, RFC 5510).  `interleaved` groups take turns on the wire, which spreads a burst
 * over them.  Lost: the simulator's link, independently or by its Gilbert model with all lost in
 * the bad state.  Theory: the same chain, exactly; seen every so many datagrams as a group does, it
 * is again a chain of two states. */
#include "sim/link.h"
#include "sleet-bench.h"
#include <stdio.h>
#include <string.h>

#define GROUP_MOST 256
#define INTERLEAVED 16
#define BATCH 64 /* sets of interleaved groups whose mean is one value of the measurement */
#define SPREAD 0.0125
#define GROUPS_MOST_DATAGRAMS 20000000
#define BRIEF_MOST_DATAGRAMS 1000000

struct code {
    uint32_t k, m;
};
struct channel {
    double loss, burst; /* burst 0: independent */
    uint32_t interleaved;
};

/* Of two states: the probability that a datagram is lost `apart` after one that was, or was not. */
struct chain {
    double lost, after_lost, after_good;
};

static struct chain chain_of(const struct channel *c)
{
    if (c->burst <= 0)
        return (struct chain){c->loss, c->loss, c->loss};
    double r = 1 / c->burst, p = c->loss * r / (1 - c->loss);
    double memory = pow(1 - p - r, c->interleaved);
    return (struct chain){c->loss, c->loss + (1 - c->loss) * memory, c->loss - c->loss * memory};
}

/* The share of data that is lost and not restored.  By number of lost datagrams so far and state
 * of the last one: the probability, and the data lost so far weighed with it. */
static double residual(const struct code *code, const struct channel *channel)
{
    static double chance[GROUP_MOST + 2][2], data[GROUP_MOST + 2][2];
    struct chain c = chain_of(channel);
    uint32_t n = code->k + code->m;
    memset(chance, 0, sizeof chance);
    memset(data, 0, sizeof data);
    chance[0][0] = 1 - c.lost;
    chance[1][1] = c.lost;
    data[1][1] = c.lost;
    for (uint32_t i = 1; i < n; i++) {
        double is_data = i < code->k;
        for (uint32_t lost = i + 1; lost + 1 > 0; lost--) {
            double p[2] = {chance[lost][0], chance[lost][1]}, d[2] = {data[lost][0], data[lost][1]};
            double went = p[0] * c.after_good + p[1] * c.after_lost;
            chance[lost + 1][1] = went;
            data[lost + 1][1] = d[0] * c.after_good + d[1] * c.after_lost + is_data * went;
            chance[lost][0] = p[0] * (1 - c.after_good) + p[1] * (1 - c.after_lost);
            data[lost][0] = d[0] * (1 - c.after_good) + d[1] * (1 - c.after_lost);
        }
        chance[0][1] = data[0][1] = 0;
    }
    double sum = 0;
    for (uint32_t lost = code->m + 1; lost <= n; lost++)
        sum += data[lost][0] + data[lost][1];
    return sum / code->k;
}

/* One set of interleaved groups through the link: the share of data lost for good. */
static double pass(const struct code *code, uint32_t groups, struct sim_path *path, sleet_rng *rng)
{
    uint32_t lost[INTERLEAVED] = {0}, lost_data[INTERLEAVED] = {0}, sum = 0;
    for (uint32_t i = 0; i < code->k + code->m; i++)
        for (uint32_t g = 0; g < groups; g++) {
            if (link_pass(path, rng, 1, (sleet_time){0}).copies > 0)
                continue;
            lost[g]++;
            lost_data[g] += i < code->k;
        }
    for (uint32_t g = 0; g < groups; g++)
        sum += lost[g] > code->m ? lost_data[g] : 0;
    return (double)sum / (groups * code->k);
}

static void run(struct bench *b, const struct code *code, const struct channel *channel)
{
    struct sim_path path = {.link = {.loss = channel->burst > 0 ? 0 : channel->loss}};
    if (channel->burst > 0) {
        path.link.ge_r = 1 / channel->burst;
        path.link.ge_p = channel->loss * path.link.ge_r / (1 - channel->loss);
    }
    sleet_rng rng = {mix64(b->seed)};
    struct bench_mean mean = {0};
    uint64_t a_batch = (uint64_t)(code->k + code->m) * channel->interleaved * BATCH;
    uint64_t most = (b->brief ? BRIEF_MOST_DATAGRAMS : GROUPS_MOST_DATAGRAMS) / a_batch;
    for (uint64_t i = 0; i < most; i++) {
        double sum = 0;
        for (int j = 0; j < BATCH; j++)
            sum += pass(code, channel->interleaved, &path, &rng);
        bench_add(&mean, sum / BATCH);
        if (mean.n >= 30 && mean.mean > 0 && bench_error(&mean) < SPREAD * mean.mean)
            break;
    }
    double theory = residual(code, channel), error = bench_error(&mean);
    /* Where nothing was lost the spread says nothing: what theory expects to see in so many. */
    error = fmax(error, sqrt(theory / ((double)mean.n * BATCH * channel->interleaved * code->k)));
    char name[32];
    snprintf(name, sizeof name, "%u+%u", code->k, code->m);
    const struct bench_value row[] = {
        BENCH_TEXT("code", name),
        BENCH_NUMBER("overhead_pct", 1, 100.0 * code->m / code->k),
        BENCH_NUMBER("loss", 2, channel->loss),
        BENCH_NUMBER("burst", 0, channel->burst > 0 ? channel->burst : 1),
        BENCH_NUMBER("interleaved", 0, channel->interleaved),
        BENCH_TINY("residual", 2, mean.mean),
        BENCH_TINY("theory", 2, theory),
        BENCH_TINY("error", 1, error),
    };
    bench_row(b, "parity", row, sizeof row / sizeof *row, bench_judge(b, mean.mean, theory, error));
}

int bench_parity(struct bench *b)
{
    static const struct code codes[] = {{9, 1},  {8, 2},  {7, 3},   {5, 5},
                                        {32, 4}, {32, 8}, {64, 16}, {192, 64}};
    static const double losses[] = {0.01, 0.05, 0.1, 0.2, 0.4};
    static const struct channel kinds[] = {{0, 0, 1}, {0, 8, 1}, {0, 8, INTERLEAVED}};
    for (size_t c = 0; c < sizeof codes / sizeof *codes; c++)
        for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
            for (size_t l = 0; l < sizeof losses / sizeof *losses; l++) {
                struct channel channel = kinds[k];
                channel.loss = losses[l];
                if (!b->brief || (l == 2 && codes[c].k < 64))
                    run(b, &codes[c], &channel);
            }
    return 0;
}
