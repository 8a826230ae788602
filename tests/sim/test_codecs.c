/* Rounds whose tensors travel in fewer bytes: equal bits at all members, an error as the codec
 * has it, and bytes to show for it. */
#include "helpers.h"
#include "tensor/kind.h"
#include <math.h>

#define N 4
static const uint64_t counts[] = {64 * 288 * 3 + 777, 5, 300};
#define ELEMENTS (64 * 288 * 3 + 777 + 5 + 300)

static const struct codec_case {
    sleet_codec codec;
    double error;    /* squared, of one contribution over its square: at most */
    double bytes;    /* of f32's: at most */
    bool additive;
} cases[] = {
    {SLEET_CODEC_F32, 1e-13, 1.01, false},   {SLEET_CODEC_BF16, 1e-5, 0.55, false},
    {SLEET_CODEC_F16, 1e-6, 0.55, false},    {SLEET_CODEC_I8, 3e-4, 0.25, false},
    {SLEET_CODEC_TRUNC2, 2e-5, 0.55, false}, {SLEET_CODEC_TRUNC3, 1e-9, 0.80, false},
    {SLEET_CODEC_ROT1, 0.66, 0.0412, true},  {SLEET_CODEC_ROT2, 0.15, 0.072, true},
    {SLEET_CODEC_ROT3, 0.041, 0.103, true},  {SLEET_CODEC_ROT4, 0.011, 0.125, true},
};

static double normal(sleet_rng *rng)
{
    return sqrt(-2 * log(1 - rng_double(rng))) * cos(6.283185307179586 * rng_double(rng));
}

static cluster *set_up(const struct codec_case *k, double loss)
{
    struct sim_config config = {.nodes = N, .seed = test_seed(), .link = CLEAN_LINK, .codec = k->codec,
                                .kind = {.payload = k->additive ? SLEET_GRADIENT : SLEET_MODEL}};
    config.link.loss = loss;
    return ready_cluster(&config, counts, 3);
}

/* Fill with normal values; their mean into `mean`. */
static void draw(cluster *c, double *mean, sleet_rng *rng)
{
    memset(mean, 0, ELEMENTS * sizeof *mean);
    for (uint32_t i = 0; i < N; i++)
        for (uint64_t k = 0; k < ELEMENTS; k++) {
            float x = (float)normal(rng);
            cluster_values(c, i)[k] = x;
            mean[k] += (double)x / N;
        }
}

/* The mean, coded in both halves: the error of each of N contributions over N, then that of the mean. */
static void error_and_bytes(void)
{
    static double mean[ELEMENTS];
    double f32_bytes = 0;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        cluster *c = set_up(&cases[k], 0);
        struct sim_totals a, b;
        sleet_rng rng = {test_seed()};
        double error = 0, square = 0;
        REQUIRE(c);
        draw(c, mean, &rng);
        sim_get_totals(cluster_sim(c), &a);
        CHECK(cluster_round(c, NULL));
        sim_get_totals(cluster_sim(c), &b);
        CHECK(all_complete(c));
        CHECK(identical(c));
        for (uint64_t i = 0; i < ELEMENTS; i++) {
            double d = (double)cluster_values(c, 0)[i] - mean[i];
            error += d * d;
            square += mean[i] * mean[i];
        }
        /* N contributions of square 1, each over N: as much again as the mean's own 1 / N. */
        double most = 2 * cases[k].error + 1e-13;
        if (!CHECK(error / square < most * 1.15) || !CHECK(cases[k].error < 1e-9 || error > 0))
            printf("codec %u: error %g, at most %g\n", (unsigned)cases[k].codec, error / square, most);
        f32_bytes = k ? f32_bytes : (double)(b.bytes - a.bytes);
        double bytes = (double)(b.bytes - a.bytes) / f32_bytes;
        printf("%s%s %.4f", k ? ", " : "datagrams of a round, bytes over those of f32: ", codec_text((int)cases[k].codec), bytes);
        if (!CHECK(bytes < cases[k].bytes))
            printf("codec %u: %g of f32's bytes\n", (unsigned)cases[k].codec, bytes);
        CHECK(ledger_balances(c));
        cluster_free(c);
    }
    printf("\n");
}

/* Under loss: still equal bits where all was repaired, and nothing that is not finite. */
static void equal_bits_under_loss(void)
{
    static double mean[ELEMENTS];
    for (size_t k = 1; k < sizeof cases / sizeof *cases; k++) {
        cluster *c = set_up(&cases[k], 0.1);
        sleet_rng rng = {test_seed()};
        REQUIRE(c);
        for (int round = 0; round < 20; round++) {
            draw(c, mean, &rng);
            CHECK(cluster_round(c, NULL));
            bool whole = true;
            for (uint32_t i = 0; i < N; i++) {
                const sleet_report *r = &cluster_report(c, i)->report;
                whole &= r->fragments_direct + r->fragments_repaired == r->fragments_expected &&
                         r->fragments_corrected == 0;
            }
            CHECK(!whole || identical(c));
            for (uint64_t i = 0; i < ELEMENTS; i++)
                if (!isfinite(cluster_values(c, 1)[i]))
                    CHECK_EQ(i, UINT64_MAX);
        }
        CHECK_EQ(cluster_overdue(c), 0);
        CHECK(ledger_balances(c));
        cluster_free(c);
    }
}

/* The mean over many rounds of one gradient is that gradient: no codec leans to a side.  But for a
 * mean of one-bit values that is one bit itself, in the same rotation: where contributions cancel its
 * sign says nothing, and the scale counts it as if it did, so that 2 % are missing. */
static void unbiased_over_rounds(void)
{
    static double mean[ELEMENTS], sum[ELEMENTS];
    static const sleet_codec codecs[] = {SLEET_CODEC_I8, SLEET_CODEC_ROT1, SLEET_CODEC_ROT2};
    for (size_t k = 0; k < 3; k++) {
        struct codec_case one = {codecs[k], 0, 0, true};
        cluster *c = set_up(&one, 0);
        double dot = 0, square = 0;
        REQUIRE(c);
        memset(sum, 0, sizeof sum);
        for (int round = 0; round < 40; round++) {
            sleet_rng rng = {test_seed()};
            draw(c, mean, &rng);
            CHECK(cluster_round(c, NULL));
            for (uint64_t i = 0; i < ELEMENTS; i++)
                sum[i] += (double)cluster_values(c, 0)[i] / 40;
        }
        for (uint64_t i = 0; i < ELEMENTS; i++) {
            dot += sum[i] * mean[i];
            square += mean[i] * mean[i];
        }
        if (!CHECK(fabs(dot / square - 1) < (codecs[k] == SLEET_CODEC_ROT1 ? 0.03 : 0.005)))
            printf("codec %u: %g of the gradient\n", (unsigned)codecs[k], dot / square);
        cluster_free(c);
    }
}

/* Of topk's gradient a round brings the largest elements; with carry the rest comes later. */
static double after_rounds(sleet_estimator estimator, int rounds, double *bytes)
{
    static double mean[ELEMENTS], sum[ELEMENTS];
    struct sim_config config = {.nodes = N, .seed = test_seed(), .link = CLEAN_LINK,
                                .codec = SLEET_CODEC_TOPK, .kind = {.payload = SLEET_GRADIENT, .estimator = estimator}};
    sleet_round_options o = {.size = sizeof o, .keep = 0.05};
    cluster *c = ready_cluster(&config, counts, 3);
    struct sim_totals a, b;
    double error = 0, square = 0;
    if (!c)
        return -1;
    memset(sum, 0, sizeof sum);
    sim_get_totals(cluster_sim(c), &a);
    for (int round = 0; round < rounds; round++) {
        sleet_rng rng = {test_seed()};
        draw(c, mean, &rng);
        CHECK(cluster_round(c, &o));
        CHECK(identical(c));
        for (uint64_t i = 0; i < ELEMENTS; i++)
            sum[i] += (double)cluster_values(c, 0)[i] / rounds;
    }
    sim_get_totals(cluster_sim(c), &b);
    *bytes = (double)(b.bytes - a.bytes) / rounds;
    for (uint64_t i = 0; i < ELEMENTS; i++) {
        double d = sum[i] - mean[i];
        error += d * d;
        square += mean[i] * mean[i];
    }
    CHECK(ledger_balances(c));
    cluster_free(c);
    return error / square;
}

static void topk_leaves_the_rest_for_later(void)
{
    double sparse, carried, bytes, all = 2.0 * (N - 1) * 4 * ELEMENTS;
    sparse = after_rounds(SLEET_EXPECTED, 100, &bytes);
    CHECK(sparse > 0.3 && sparse < 1); /* the same elements each time */
    CHECK(bytes < 0.20 * all);
    carried = after_rounds(SLEET_CARRY, 100, &bytes);
    CHECK(carried >= 0 && carried < 0.1);
    CHECK(bytes < 0.20 * all);
    printf("topk: after 100 rounds of one gradient %.3f of its square is missing, with carry %.3f; %.3f of f32's bytes\n",
           sparse, carried, bytes / all);
}

/* Bytes of a round of a set whose last tensor is state, of values hardly any of which is not 0. */
static double bytes_beside_state(sleet_codec codec)
{
    struct sim_config config = {.nodes = N, .seed = test_seed(), .link = CLEAN_LINK, .codec = codec,
                                .kind = {.payload = SLEET_GRADIENT}, .state_tensors = 1};
    cluster *c = cluster_new(&config, counts, 3);
    struct sim_totals a = {0}, b = {0};
    uint64_t wrong = 0, lossy = counts[0] + counts[1];
    if (!CHECK(c != NULL))
        return 0;
    cluster_idle(c, SEC(4));
    for (int round = 0; round <= SLEET_REFRESH_ROUNDS; round++) { /* then all have all of the state */
        cluster_round(c, NULL);
        cluster_idle(c, MS(100));
    }
    for (uint32_t i = 0; i < N; i++)
        for (uint64_t k = 0; k < ELEMENTS; k++)
            cluster_values(c, i)[k] = (k + 7 * i) % 100 == 0 ? 1 : 0;
    sim_get_totals(cluster_sim(c), &a);
    CHECK(cluster_round(c, NULL) && all_complete(c));
    sim_get_totals(cluster_sim(c), &b);
    for (uint32_t i = 0; i < N; i++)
        for (uint64_t k = 0; k < lossy; k++) {
            uint64_t at = k % 100;
            double want = at == 0 || at == 93 || at == 86 || at == 79 ? 0.25 : 0;
            wrong += fabs((double)cluster_values(c, i)[k] - want) > 0.01;
        }
    CHECK_EQ(wrong, 0);
    cluster_free(c);
    return (double)(b.bytes - a.bytes);
}

/* Also of a set that has others: a datagram holds what fits, of sparse ones up to a run. */
static void small_fragments_travel_together(void)
{
    double f32 = bytes_beside_state(SLEET_CODEC_F32);
    CHECK(bytes_beside_state(SLEET_CODEC_I8) < 0.275 * f32);
    CHECK(bytes_beside_state(SLEET_CODEC_TOPK) < 0.06 * f32);
}

TEST_SUITE(codecs) = {
    TEST(topk_leaves_the_rest_for_later),
    TEST(error_and_bytes),
    TEST(equal_bits_under_loss),
    TEST(unbiased_over_rounds),
    TEST(small_fragments_travel_together),
    TEST_END,
};
