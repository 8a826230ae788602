/* sleet-bench-estimators.c - the error of a round's result, by rounds of the engine over the
 * simulator.
 *
 * Every coordinate of every node is drawn with mean 1 and variance 1.  The error of a fragment's
 * result is taken against the true mean of all nodes, at each node that took it.  Scatter datagrams
 * are lost, independently or in bursts; the gather is repaired.  The formulas are for a group of n
 * of which the owner's own share is never lost, so that n - 1 contributions are at risk:
 *
 *     ratio     V (E[1/K] - 1/n), K = 1 + Bin(n - 1, 1 - p)
 *     expected  p / (1 - p) (M + V) (n - 1) / n^2
 *     carry     about twice that, of one round, where each node gives the same in every round;
 *               what it is for, the sum over rounds, has no error but the last residual
 *
 * with V the variance among nodes, M the squared mean.  Bursts do not change any of them, because
 * nodes lose independently of each other; but in bursts a few rounds may have met some more or less than p: p here
 * is what they have met. */
#include "round/carry.h"
#include "sim/cluster.h"
#include "sleet-bench.h"
#include "tensor/layout.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FRAGMENTS 256 /* a round, for each node: many to each owner, for its ends cut bursts */
#define BRIEF_FRAGMENTS 64
#define ROUNDS_LEAST 10
#define ROUNDS_MOST 20000
#define MEETING SEC(5)
#define JOIN_ROUNDS_MOST 20
#define SPREAD 0.0125 /* standard error that is good enough: 4 of it are the tolerance */

static double binomial(uint32_t n, uint32_t k, double p)
{
    return exp(lgamma(n + 1.0) - lgamma(k + 1.0) - lgamma(n - k + 1.0)) * pow(p, k) *
           pow(1 - p, n - k);
}

static double ratio_formula(uint32_t n, double p, double v, double m)
{
    (void)m; /* any mean that all share comes through */
    double inverse = 0;
    for (uint32_t k = 0; k < n; k++)
        inverse += binomial(n - 1, k, 1 - p) / (k + 1);
    return v * (inverse - 1.0 / n);
}

static double expected_formula(uint32_t n, double p, double v, double m)
{
    return p / (1 - p) * (m + v) * (n - 1) / n / n;
}

/* What did not get through comes with the next contribution, so each is (1 + G) times its value
 * when it does, P(G = g) = (1 - a) a^g with a = p (n - 1) / n, since a node owns each nth fragment
 * itself; the residual's norm is bounded, so G counts as CARRY_MOST at most.  z: the factor of a value in the
 * sum, less 1. */
static double carry_formula(uint32_t n, double p, double v, double m)
{
    double a = p * (n - 1) / n, once = 0, twice = 0; /* the means of 1 + G and of its square */
    for (int g = 0; g < 1000; g++) {
        double times = 1 + fmin(g, CARRY_MOST), often = (1 - a) * pow(a, g);
        once += often * times;
        twice += often * times * times;
    }
    double own = once - 1, own2 = twice - 2 * once + 1; /* the means of z and of its square */
    double other = (1 - p) * once - 1, other2 = (1 - p) * twice - 2 * (1 - p) * once + 1;
    double squares = own2 + (n - 1) * other2, means = own * own + (n - 1) * other * other;
    return ((m + v) * squares - m * means) / n / n;
}

static const struct estimator {
    struct set_kind kind;
    uint32_t warm; /* rounds under loss that do not count: budgets and rates of arrival settle */
    double (*formula)(uint32_t n, double p, double v, double m);
} estimators[] = {
    {{SLEET_MODEL, .estimator = SLEET_RATIO}, 5, ratio_formula},
    {{SLEET_GRADIENT, .estimator = SLEET_RATIO}, 5, ratio_formula},
    {{SLEET_GRADIENT, .estimator = SLEET_EXPECTED}, 40, expected_formula},
    {{SLEET_GRADIENT, .estimator = SLEET_CARRY}, 10, carry_formula},
};

struct cell {
    const struct estimator *estimator;
    uint32_t nodes;
    double loss, burst; /* burst 0: independent */
};

struct trial {
    cluster *c;
    uint32_t nodes;
    uint64_t elements;
    float *values;                       /* of all nodes, as they are before each round */
    double *mean;                        /* true, by coordinate */
    uint64_t fragments, differing, lost; /* not the same at two nodes; taken by none */
};

static void trial_free(struct trial *t)
{
    cluster_free(t->c);
    free(t->values);
    free(t->mean);
}

static bool joining(cluster *c, uint32_t nodes)
{
    for (uint32_t i = 0; i < nodes; i++)
        if (cluster_report(c, i)->report.flags & SLEET_JOINING)
            return true;
    return false;
}

static bool trial_open(struct trial *t, const struct bench *b, const struct cell *cell)
{
    struct sim_config config = {.nodes = cell->nodes,
                                .seed = b->seed,
                                .go_on_isolated = true,
                                .kind = cell->estimator->kind,
                                .link = {.delay = MS(1)}};
    uint64_t count =
        (uint64_t)cell->nodes * (b->brief ? BRIEF_FRAGMENTS : FRAGMENTS) * FRAGMENT_ELEMENTS;
    *t = (struct trial){.c = cluster_new(&config, &count, 1),
                        .nodes = cell->nodes,
                        .elements = count,
                        .values = malloc(cell->nodes * count * sizeof(float)),
                        .mean = calloc(count, sizeof(double))};
    if (!t->c || !t->values || !t->mean)
        return false;
    sleet_rng rng = {mix64(b->seed)};
    bench_normal(&rng, t->values, cell->nodes * count);
    for (uint64_t k = 0; k < cell->nodes * count; k++) {
        t->values[k] += 1;
        t->mean[k % count] += (double)t->values[k] / cell->nodes;
    }
    cluster_idle(t->c, MEETING);
    for (int i = 0; i < JOIN_ROUNDS_MOST && (i == 0 || joining(t->c, cell->nodes)); i++)
        cluster_round(t->c, NULL);
    struct sim_link link = {.delay = MS(1), .loss = cell->burst > 0 ? 0 : cell->loss};
    if (cell->burst > 0) {
        link.ge_r = 1 / cell->burst;
        link.ge_p = cell->loss * link.ge_r / (1 - cell->loss);
    }
    sim_set_link(cluster_sim(t->c), SIM_ALL, SIM_ALL, &link);
    return true;
}

static double squared_error(const float *result, const double *mean)
{
    double sum = 0;
    for (uint32_t k = 0; k < FRAGMENT_ELEMENTS; k++) {
        double d = (double)result[k] - mean[k];
        sum += d * d;
    }
    return sum / FRAGMENT_ELEMENTS;
}

/* Add the error of the fragment's result, the mean of the nodes that took one: their values are
 * not those they came with, nor, of payloads that are added, nothing.  They are the same
 * everywhere, unless a node counted on other members. */
static void add_fragment(struct trial *t, uint64_t at, struct bench_mean *errors)
{
    static const float nothing[FRAGMENT_ELEMENTS];
    const size_t bytes = FRAGMENT_ELEMENTS * sizeof(float);
    const float *found = NULL;
    struct bench_mean mean = {0};
    double error = 0;
    bool differs = false;
    for (uint32_t i = 0; i < t->nodes; i++) {
        const float *result = cluster_values(t->c, i) + at;
        if (memcmp(result, t->values + i * t->elements + at, bytes) == 0 ||
            memcmp(result, nothing, bytes) == 0)
            continue;
        if (!found || memcmp(found, result, bytes) != 0) {
            differs |= found != NULL;
            found = result;
            error = squared_error(result, t->mean + at);
        }
        bench_add(&mean, error);
    }
    if (found)
        bench_add(errors, mean.mean);
    t->differing += differs;
    t->lost += !found;
    t->fragments++;
}

/* A round: the mean squared error of a coordinate, below 0 where it failed. */
static double trial_round(struct trial *t)
{
    sleet_round_options options = {.size = sizeof options};
    for (uint32_t i = 0; i < t->nodes; i++)
        memcpy(cluster_values(t->c, i), t->values + i * t->elements, t->elements * sizeof(float));
    if (!cluster_round(t->c, &options))
        return -1;
    struct bench_mean errors = {0};
    for (uint64_t at = 0; at < t->elements; at += FRAGMENT_ELEMENTS)
        add_fragment(t, at, &errors);
    return errors.n ? errors.mean : -1;
}

/* What owners have counted in rounds that left the window. */
static ledger_side scatter(struct trial *t)
{
    ledger_side sum = {0};
    for (uint32_t i = 0; i < t->nodes; i++) {
        engine_set set;
        sim *s = cluster_sim(t->c);
        if (!engine_get_set(sim_engine(s, i), cluster_set(t->c, i), &set, sim_now(s)))
            continue;
        sum.expected += set.scatter.expected;
        sum.direct += set.scatter.direct + set.scatter.repaired;
    }
    return sum;
}

/* The share of contributions that was lost since `from`. */
static double lost_since(struct trial *t, const ledger_side *from)
{
    ledger_side now = scatter(t);
    return 1 - (double)(now.direct - from->direct) / (double)(now.expected - from->expected);
}

static bool measure(struct trial *t, uint32_t warm, struct bench_mean *mse, double *met)
{
    ledger_side before = {0};
    for (uint32_t r = 0; r < warm + ROUNDS_MOST; r++) {
        if (r == warm)
            before = scatter(t);
        double error = trial_round(t);
        if (error < 0)
            return false;
        if (r < warm)
            continue;
        bench_add(mse, error);
        if (mse->n >= ROUNDS_LEAST && bench_error(mse) <= SPREAD * mse->mean)
            break;
    }
    *met = lost_since(t, &before);
    return true;
}

static int run(struct bench *b, const struct cell *cell)
{
    struct trial t;
    struct bench_mean mse = {0};
    double met = 0;
    bool ok = trial_open(&t, b, cell) && measure(&t, cell->estimator->warm, &mse, &met);
    double theory = cell->estimator->formula(cell->nodes, ok ? met : cell->loss, 1, 1);
    enum bench_verdict verdict = bench_judge(b, mse.mean, theory, 0);
    if (ok) {
        const struct bench_value row[] = {
            BENCH_TEXT("estimator", estimator_text((int)cell->estimator->kind.estimator)),
            BENCH_TEXT("payload", payload_text((int)cell->estimator->kind.payload)),
            BENCH_NUMBER("n", 0, cell->nodes),
            BENCH_NUMBER("loss", 2, cell->loss),
            BENCH_NUMBER("burst", 0, cell->burst > 0 ? cell->burst : 1),
            BENCH_NUMBER("met", 4, met),
            BENCH_NUMBER("mse", 5, mse.mean),
            BENCH_NUMBER("formula", 5, theory),
            BENCH_NUMBER("off_pct", 1, 100 * (mse.mean / theory - 1)),
            BENCH_NUMBER("error_pct", 1, 100 * bench_error(&mse) / mse.mean),
            BENCH_NUMBER("rounds", 0, (double)mse.n),
            BENCH_NUMBER("differing_pct", 2, 100.0 * (double)t.differing / (double)t.fragments),
            BENCH_NUMBER("lost_pct", 2, 100.0 * (double)t.lost / (double)t.fragments),
        };
        bench_row(b, "estimators", row, sizeof row / sizeof *row, verdict);
    } else {
        fprintf(stderr,
                "sleet-bench: %s with %u nodes at loss %g: out of memory, or a round without a "
                "result\n",
                estimator_text((int)cell->estimator->kind.estimator), cell->nodes, cell->loss);
    }
    trial_free(&t);
    return ok ? 0 : -1;
}

int bench_estimators(struct bench *b)
{
    static const uint32_t nodes[] = {4, 8, 16};
    static const double losses[] = {0.01, 0.05, 0.1, 0.2, 0.4}, bursts[] = {0, 8};
    for (size_t e = 0; e < sizeof estimators / sizeof *estimators; e++)
        for (size_t n = 0; n < 3; n++)
            for (size_t u = 0; u < 2; u++)
                for (size_t l = 0; l < 5; l++) {
                    struct cell cell = {&estimators[e], nodes[n], losses[l], bursts[u]};
                    if (b->brief && (cell.nodes != 8 || u > 0 || l != 2))
                        continue;
                    if (run(b, &cell) < 0)
                        return -1;
                }
    return 0;
}
