/* sleet-bench-parity.c - what codes of k data and m parity datagrams leave lost.
 *
 * Streams of datagrams go through protect/'s encoder, the simulator's link and the decoder, and
 * each block that comes back is compared.  A group of k + m gives all its data when at most m are
 * lost, else only what arrived.  Interleaved groups take turns on the wire, which spreads a burst
 * over them.  Lost: independently, or by the link's Gilbert model with all lost in the bad state.
 * Theory: the same chain, exactly; seen every so many datagrams as a group does, it is again a
 * chain of two states. */
#include "base/bytes.h"
#include "protect/stream.h"
#include "sim/link.h"
#include "sleet-bench.h"
#include <stdio.h>
#include <string.h>

#define GROUP_MOST (PARITY_DATA_MAX + PARITY_ROWS_MAX)
#define BLOCK 16 /* bytes: a number and what follows from it */
#define BATCH 16 /* streams whose mean is one value of the measurement */
#define SPREAD 0.0125
#define DATAGRAMS_MOST 1500000
#define BRIEF_DATAGRAMS_MOST 200000

struct code {
    uint32_t k, m;
    uint8_t rows; /* of a full group that make m of one of k */
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

struct receiver {
    uint64_t key; /* of the stream: its blocks are like no other's */
    uint32_t lost, restored, wrong;
    bool got[GROUP_MOST * PARITY_DEPTH_MAX];
};

static void fill(uint8_t block[BLOCK], uint64_t key, uint32_t number)
{
    le_store(block, number, 8);
    le_store(block + 8, mix64(key + number), 8);
}

static void take(void *arg, const uint8_t *block, size_t len)
{
    struct receiver *r = arg;
    uint8_t right[BLOCK];
    uint64_t number = le_load(block, 8);
    bool known = number < sizeof r->got;
    fill(right, r->key, (uint32_t)number);
    if (!known || r->got[number] || len != BLOCK || memcmp(block, right, BLOCK) != 0) {
        r->wrong++;
        return;
    }
    r->got[number] = true;
    r->restored++;
}

/* One stream of interleaved groups through the link: the share of data lost for good; below 0 when
 * out of memory or what came back was not what had been sent. */
static double pass(const struct code *code, uint32_t groups, struct sim_path *path, sleet_rng *rng)
{
    struct receiver r = {.key = rng_next(rng)};
    struct parity_encoder encoder;
    struct parity_decoder decoder;
    const struct parity_code how = {.rows = code->rows, .depth = (uint8_t)groups};
    uint32_t data = groups * code->k;
    uint64_t room = UINT64_MAX;
    uint8_t block[BLOCK];
    if (!parity_encoder_init(&encoder, how, data))
        return -1;
    parity_decoder_init(&decoder, how, data, &room);
    for (uint32_t i = 0; i < data; i++) {
        fill(block, r.key, i);
        parity_encoder_add(&encoder, block, BLOCK);
        r.got[i] = link_pass(path, rng, 1, (sleet_time){0}).copies > 0;
        r.lost += !r.got[i];
        if (r.got[i])
            parity_decoder_add(&decoder, i, block, BLOCK);
    }
    while (parity_encoder_due(&encoder, true)) {
        struct parity_row row = parity_encoder_take(&encoder);
        if (link_pass(path, rng, 1, (sleet_time){0}).copies > 0)
            parity_decoder_row(&decoder, &row);
    }
    for (uint32_t g = 0; g < groups; g++)
        parity_decoder_rebuild(&decoder, g, take, &r);
    parity_encoder_fini(&encoder);
    parity_decoder_fini(&decoder);
    return r.wrong ? -1 : (double)(r.lost - r.restored) / data;
}

static bool run(struct bench *b, const struct code *code, const struct channel *channel)
{
    struct sim_path path = {.link = {.loss = channel->burst > 0 ? 0 : channel->loss}};
    if (channel->burst > 0) {
        path.link.ge_r = 1 / channel->burst;
        path.link.ge_p = channel->loss * path.link.ge_r / (1 - channel->loss);
    }
    sleet_rng rng = {mix64(b->seed)};
    struct bench_mean mean = {0};
    uint64_t a_batch = (uint64_t)(code->k + code->m) * channel->interleaved * BATCH;
    uint64_t most = (b->brief ? BRIEF_DATAGRAMS_MOST : DATAGRAMS_MOST) / a_batch;
    for (uint64_t i = 0; i < most; i++) {
        double sum = 0;
        for (int j = 0; j < BATCH; j++) {
            double lost = pass(code, channel->interleaved, &path, &rng);
            if (lost < 0)
                return false;
            sum += lost;
        }
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
    return true;
}

int bench_parity(struct bench *b)
{
    static const struct code codes[] = {{8, 1, 8},  {8, 2, 16},   {8, 4, 32},
                                        {32, 4, 8}, {32, 8, 16},  {64, 4, 4},
                                        {64, 8, 8}, {64, 16, 16}, {64, 32, 32}};
    static const double losses[] = {0.01, 0.05, 0.1, 0.2, 0.4};
    static const struct channel kinds[] = {{0, 0, 1}, {0, 8, 1}, {0, 8, PARITY_DEPTH_MAX}};
    for (size_t c = 0; c < sizeof codes / sizeof *codes; c++)
        for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
            for (size_t l = 0; l < sizeof losses / sizeof *losses; l++) {
                struct channel channel = kinds[k];
                channel.loss = losses[l];
                if (b->brief && (l != 2 || (codes[c].k != 8 && codes[c].m != 16)))
                    continue;
                if (!run(b, &codes[c], &channel)) {
                    fprintf(stderr,
                            "sleet-bench: code %u+%u: out of memory, or a block came back wrong\n",
                            codes[c].k, codes[c].m);
                    return -1;
                }
            }
    return 0;
}
