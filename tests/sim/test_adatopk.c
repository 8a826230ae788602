/* Two sites of three nodes, 100 Mbit/s and 1 ms inside, one slow link between them: how much of a sparse
 * gradient goes over which link (AdaTopK). */
#include "helpers.h"
#include <math.h>

#define N 6
#define SITE 3
#define ELEMENTS 50000
#define SLOW UINT64_C(2000000)

#define TURN 12 /* rounds until the link changes */

static sleet_time free_at[2]; /* of the link between the sites, each direction */

static void between(cluster *c, uint64_t bps)
{
    for (uint32_t i = 0; i < N; i++)
        for (uint32_t j = 0; j < N; j++) {
            struct sim_link inside = {.delay = MS(1), .rate_bps = 100000000, .queue_bytes = 1 << 20};
            struct sim_link slow = {.delay = MS(40), .rate_bps = bps, .queue_bytes = 1 << 20,
                                    .free_at = &free_at[i / SITE]};
            if (i != j)
                sim_set_link(cluster_sim(c), i, j, i / SITE != j / SITE ? &slow : &inside);
        }
}

static cluster *sites(sleet_codec codec, sleet_estimator estimator)
{
    static const uint64_t counts[] = {ELEMENTS};
    struct sim_config config = {.nodes = N, .seed = test_seed(), .codec = codec, .link = CLEAN_LINK,
                                .kind = {.payload = SLEET_GRADIENT, .estimator = estimator}};
    cluster *c = ready_cluster(&config, counts, 1);
    free_at[0] = free_at[1] = (sleet_time){0};
    if (c)
        between(c, SLOW);
    return c;
}

/* A round of gradients; how long it took, s. */
static double step(cluster *c, const sleet_round_options *o, sleet_rng *rng)
{
    double longest = 0;
    for (uint32_t i = 0; i < N; i++)
        for (uint32_t k = 0; k < ELEMENTS; k++)
            cluster_values(c, i)[k] = (float)(rng_double(rng) - 0.5);
    CHECK(cluster_round(c, o));
    for (uint32_t i = 0; i < N; i++) {
        const struct cluster_report *r = cluster_report(c, i);
        longest = fmax(longest, (double)time_since(r->reported_at, r->started_at) * 1e-9);
    }
    cluster_idle(c, MS(100));
    return longest;
}

struct shares {
    double least, most, sum; /* of all that go inside the sites, or across; sum of their logarithms */
};

static struct shares shares(cluster *c, bool across)
{
    struct shares s = {1, 0, 0};
    for (uint32_t node = 0; node < N; node++) {
        engine_peer peer[N];
        uint32_t n = engine_get_peers(sim_engine(cluster_sim(c), node), peer, N, sim_now(cluster_sim(c)));
        for (uint32_t i = 0; i < n; i++) {
            if (((peer[i].node_id > SITE) != (node >= SITE)) != across)
                continue;
            s.least = fmin(s.least, peer[i].keep);
            s.most = fmax(s.most, peer[i].keep);
            s.sum += log(peer[i].keep);
        }
    }
    return s;
}

static void the_share_follows_the_link(void)
{
    const sleet_round_options automatic = {.size = sizeof automatic, .keep_auto = 1, .deadline_ns = SEC(20)};
    sleet_rng rng = {test_seed()};
    double seconds = 0, all = 0;
    cluster *c = sites(SLEET_CODEC_TOPK, SLEET_CARRY);
    if (!CHECK(c != NULL))
        return;
    for (int round = 0; round < TURN; round++) {
        seconds = step(c, &automatic, &rng);
        CHECK(identical(c));
        CHECK(shares(c, false).least == 1);
    }
    struct shares before = shares(c, true);
    CHECK(before.most <= 0.1 && before.least >= 0.0099);
    between(c, 10 * SLOW);
    for (int round = 0; round < 10; round++) {
        step(c, &automatic, &rng);
        CHECK(identical(c));
    }
    double times = exp((shares(c, true).sum - before.sum) / (2 * SITE * SITE));
    CHECK(shares(c, false).least == 1);
    CHECK(times > 6 && times < 15);
    cluster_free(c);
    const sleet_round_options dense = {.size = sizeof dense, .deadline_ns = SEC(20)};
    if (!CHECK((c = sites(SLEET_CODEC_F32, SLEET_RATIO)) != NULL))
        return;
    for (int round = 0; round < 3; round++)
        all = step(c, &dense, &rng); /* seconds of a queue that nobody knows of yet: in the first some are cut off */
    CHECK(identical(c));
    cluster_free(c);
    CHECK(seconds < all / 3);
    printf("two sites: a step takes %.3f s, %.3f s with all as f32; 1 / %.0f to 1 / %.0f goes across; over a link ten "
           "times as fast %.1f times as much\n", seconds, all, 1 / before.most, 1 / before.least, times);
}

/* What the slow link does not take goes with later rounds. */
static void nothing_is_left_behind(void)
{
    const sleet_round_options automatic = {.size = sizeof automatic, .keep_auto = 1, .deadline_ns = SEC(20)};
    static double sum[ELEMENTS], mean[ELEMENTS];
    const int rounds = 60;
    double error = 0, square = 0;
    cluster *c = sites(SLEET_CODEC_TOPK, SLEET_CARRY);
    if (!CHECK(c != NULL))
        return;
    memset(sum, 0, sizeof sum);
    for (int round = 0; round < rounds; round++) {
        sleet_rng rng = {test_seed()};
        memset(mean, 0, sizeof mean);
        for (uint32_t i = 0; i < N; i++)
            for (uint32_t k = 0; k < ELEMENTS; k++) {
                float x = (float)(rng_double(&rng) - 0.5);
                cluster_values(c, i)[k] = x;
                mean[k] += (double)x / N;
            }
        CHECK(cluster_round(c, &automatic));
        for (uint32_t k = 0; k < ELEMENTS; k++)
            sum[k] += (double)cluster_values(c, 0)[k] / rounds;
    }
    for (uint32_t k = 0; k < ELEMENTS; k++) {
        error += (sum[k] - mean[k]) * (sum[k] - mean[k]);
        square += mean[k] * mean[k];
    }
    CHECK(error < 0.1 * square);
    CHECK(ledger_balances(c));
    cluster_free(c);
    printf("two sites: after %d rounds of one gradient %.3f of its square is missing\n", rounds, error / square);
}

TEST_SUITE(adatopk) = {
    TEST(the_share_follows_the_link),
    TEST(nothing_is_left_behind),
    TEST_END,
};
