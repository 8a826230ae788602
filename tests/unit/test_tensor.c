#include "base/rng.h"
#include "codec/codec.h"
#include "sleet_test.h"
#include "tensor/layout.h"
#include "tensor/order.h"
#include "tensor/reduce.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N FRAGMENT_ELEMENTS

static const sleet_dtype f32s[8] = {SLEET_F32, SLEET_F32, SLEET_F32, SLEET_F32,
                                    SLEET_F32, SLEET_F32, SLEET_F32, SLEET_F32};
static const char *const abc[] = {"a", "b", "c", "d", "e"};

static const struct set_kind model = {.payload = SLEET_MODEL};

static int make_as(struct layout *l, const char *set, const char *const *names,
                   const sleet_dtype *dtypes, const uint64_t *counts, uint32_t n)
{
    static struct tensor_spec specs[SLEET_TENSORS_MAX + 1];
    for (uint32_t i = 0; i < n && i < SLEET_TENSORS_MAX; i++)
        specs[i] = (struct tensor_spec){names[i], dtypes[i], 0, counts[i], 0};
    return layout_init(l, set, model, specs, n);
}

static int make(struct layout *l, const uint64_t *counts, uint32_t n)
{
    return make_as(l, "set", abc, f32s, counts, n);
}

static void layout_numbers_fragments(void)
{
    const uint64_t counts[] = {0, 1, 0, 288 * 9 + 5, 0};
    struct layout l;
    uint32_t t, elements;
    uint64_t offset;
    CHECK_EQ(make(&l, counts, 5), SLEET_OK);
    CHECK_EQ(l.fragments, 11);
    CHECK_EQ(l.runs, 2);
    CHECK_EQ(l.elements, 288 * 9 + 6);
    CHECK_EQ(l.tensors[0].fragments, 0);
    layout_locate(&l, 0, &t, &offset, &elements);
    CHECK(t == 1 && offset == 0 && elements == 1);
    layout_locate(&l, 1, &t, &offset, &elements);
    CHECK(t == 3 && offset == 0 && elements == 288);
    layout_locate(&l, 10, &t, &offset, &elements);
    CHECK(t == 3 && offset == 288 * 9 && elements == 5);
    for (uint32_t i = 0; i < 5; i++)
        CHECK_EQ(layout_find(&l, l.tensors[i].id), (int)i);
    CHECK_EQ(layout_find(&l, l.tensors[0].id ^ 1), -1);
    layout_fini(&l);
    layout_fini(&l);
}

/* Nodes that differ in the rows of a matrix differ in the set. */
static void rows_are_of_the_layout(void)
{
    const uint32_t rows[] = {0, 4, 6, 5};
    uint32_t hash[3], id[3];
    for (int i = 0; i < 4; i++) {
        const struct tensor_spec spec = {"a", SLEET_F32, 0, 24, rows[i]};
        struct layout l;
        CHECK_EQ(layout_init(&l, "s", model, &spec, 1), i < 3 ? SLEET_OK : SLEET_EINVAL);
        if (i == 3)
            break;
        hash[i] = l.hash;
        id[i] = l.tensors[0].id;
        layout_fini(&l);
    }
    CHECK(hash[0] != hash[1] && hash[1] != hash[2] && hash[0] != hash[2]);
    CHECK(id[0] != id[1] && id[1] != id[2] && id[0] != id[2]);
}

/* What both ends of an edge reckon with are the same floats, in large sets as well. */
static void low_rank_travels_as_f32(void)
{
    const struct set_kind low = kind_resolved((struct set_kind){.payload = SLEET_MODEL, .strategy = SLEET_RING, .numbers = {2}});
    const struct set_kind whole = kind_resolved((struct set_kind){.payload = SLEET_MODEL, .strategy = SLEET_RING});
    const struct tensor_spec spec = {"a", SLEET_F32, 0, UINT64_C(1) << 21, 1024};
    struct layout l;
    CHECK(kind_refuse(&low) == NULL && kind_rank(&low) == 2 && kind_rank(&whole) == 0);
    CHECK(kind_refuse_codec(&low, SLEET_F32, SLEET_CODEC_BF16) != NULL);
    CHECK(kind_refuse_codec(&whole, SLEET_F32, SLEET_CODEC_BF16) == NULL);
    CHECK_EQ(layout_init(&l, "s", low, &spec, 1), SLEET_OK);
    CHECK_EQ(l.tensors[0].codec, SLEET_CODEC_F32);
    layout_fini(&l);
    CHECK_EQ(layout_init(&l, "s", whole, &spec, 1), SLEET_OK);
    CHECK_EQ(l.tensors[0].codec, SLEET_CODEC_BF16);
    layout_fini(&l);
}

static void layout_covers_every_element_once(void)
{
    sleet_rng rng = {test_seed()};
    uint64_t counts[5], next[5] = {0};
    struct layout l;
    for (int i = 0; i < 5; i++)
        counts[i] = rng_below(&rng, 4) == 0 ? 0 : rng_below(&rng, 5000);
    CHECK_EQ(make(&l, counts, 5), SLEET_OK);
    for (uint32_t f = 0; f < l.fragments; f++) {
        uint32_t t, elements;
        uint64_t offset;
        layout_locate(&l, f, &t, &offset, &elements);
        CHECK(t < 5 && offset == next[t] && elements >= 1 && elements <= N);
        next[t] += elements;
    }
    for (int i = 0; i < 5; i++)
        CHECK_EQ(next[i], counts[i]);
    layout_fini(&l);
}

static void layout_is_safe_beyond_32_bits(void)
{
    const uint64_t big = ((uint64_t)1 << 29) + 1; /* 2 GiB and one element of f32 */
    const uint64_t counts[] = {big, big, ((uint64_t)1 << 32) + 7};
    struct layout l;
    uint32_t t, elements, last;
    uint64_t offset;
    CHECK_EQ(make(&l, counts, 3), SLEET_OK);
    CHECK_EQ(l.elements, 2 * big + counts[2]);
    last = l.tensors[1].first - 1;
    layout_locate(&l, last, &t, &offset, &elements);
    CHECK_EQ(t, 0);
    CHECK_EQ(offset + elements, big);
    CHECK_EQ(offset, big / N * N);
    last = l.fragments - 1;
    layout_locate(&l, last, &t, &offset, &elements);
    CHECK_EQ(t, 2);
    CHECK_EQ(offset + elements, counts[2]);
    layout_locate(&l, last - 1, &t, &offset, &elements);
    CHECK_EQ(elements, N);
    CHECK(offset > UINT32_MAX - 2 * N);
    layout_fini(&l);
}

static void layout_limits(void)
{
    const uint64_t most = (uint64_t)UINT32_MAX * N;
    const uint64_t fits[] = {most}, over[] = {most, 1}, huge[] = {UINT64_MAX, UINT64_MAX};
    const uint64_t ones[] = {1, 2};
    const char *const same[] = {"x", "x"}, *const empty[] = {""};
    char longer[65];
    struct layout l;
    CHECK_EQ(make(&l, fits, 1), SLEET_OK);
    CHECK_EQ(l.fragments, UINT32_MAX);
    CHECK_EQ(l.runs, (uint32_t)1 << 29);
    layout_fini(&l);
    CHECK_EQ(make(&l, over, 2), SLEET_ELIMIT);
    CHECK_EQ(make(&l, huge, 2), SLEET_ELIMIT);
    CHECK_EQ(make(&l, ones, 0), SLEET_EINVAL);
    CHECK_EQ(layout_init(&l, "s", model, &(struct tensor_spec){"a", SLEET_F32, 0, 1, 0},
                         SLEET_TENSORS_MAX + 1), SLEET_ELIMIT);
    CHECK_EQ(make_as(&l, "s", same, f32s, ones, 2), SLEET_EEXIST);
    CHECK_EQ(make_as(&l, "s", empty, f32s, ones, 1), SLEET_EINVAL);
    CHECK_EQ(make_as(&l, "", abc, f32s, ones, 1), SLEET_EINVAL);
    CHECK_EQ(layout_init(&l, "s", (struct set_kind){.payload = (sleet_payload)9},
                         &(struct tensor_spec){"a", SLEET_F32, 0, 1, 0}, 1), SLEET_EINVAL);
    CHECK_EQ(make_as(&l, "s", abc, &(sleet_dtype){(sleet_dtype)9}, ones, 1),
             SLEET_EINVAL);
    memset(longer, 'x', 64);
    longer[64] = 0;
    CHECK_EQ(make_as(&l, longer, abc, f32s, ones, 1), SLEET_EINVAL);
    longer[63] = 0;
    CHECK_EQ(make_as(&l, longer, abc, f32s, ones, 1), SLEET_OK);
    layout_fini(&l);
}

static void layout_hash_sees_every_difference(void)
{
    const uint64_t one[] = {3, 4}, two[] = {3, 5}, three[] = {4, 3};
    struct layout a, b;
    CHECK_EQ(make(&a, one, 2), SLEET_OK);
    CHECK_EQ(make(&b, one, 2), SLEET_OK);
    CHECK_EQ(a.hash, b.hash);
    layout_fini(&b);
    CHECK_EQ(make(&b, two, 2), SLEET_OK);
    CHECK(a.hash != b.hash && a.tensors[1].id != b.tensors[1].id);
    CHECK_EQ(a.tensors[0].id, b.tensors[0].id);
    layout_fini(&b);
    CHECK_EQ(make(&b, three, 2), SLEET_OK);
    CHECK(a.hash != b.hash);
    layout_fini(&b);
    CHECK_EQ(make_as(&b, "other", abc, f32s, one, 2), SLEET_OK);
    CHECK(a.hash != b.hash);
    layout_fini(&b);
    layout_fini(&a);
}

#define KIND(p, e, u, x) {.payload = (p), .estimator = (e), .update = (u), .exchange = (x)}

static void layout_hash_sees_kind_and_codec(void)
{
    const struct tensor_spec spec = {"a", SLEET_F32, 0, 3, 0};
    const struct set_kind kinds[] = {KIND(SLEET_MODEL, 0, 0, 0), KIND(SLEET_GRADIENT, 0, 0, 0),
                                     KIND(SLEET_DELTA, 0, 0, 0), KIND(SLEET_GRADIENT, SLEET_EXPECTED, 0, 0),
                                     KIND(SLEET_GRADIENT, 0, SLEET_NONLINEAR, 0),
                                     KIND(SLEET_GRADIENT, SLEET_RATIO, 0, SLEET_REDUCE_SCATTER),
                                     {.payload = SLEET_MODEL, .strategy = SLEET_MOSHPIT},
                                     {.payload = SLEET_MODEL, .strategy = SLEET_MOSHPIT, .numbers = {3, 0}}};
    uint32_t hash[8];
    struct layout l;
    for (int i = 0; i < 8; i++) {
        CHECK_EQ(layout_init(&l, "s", kinds[i], &spec, 1), SLEET_OK);
        hash[i] = l.hash;
        layout_fini(&l);
        for (int j = 0; j < i; j++)
            CHECK(hash[i] != hash[j]);
    }
}

static void strategy_words(void)
{
    static const char *const good[] = {"rps", "one-peer", "pairs:3", "ring:65535,2"};
    static const char *const bad[] = {"", "none-such", "rps:", "rps:0", "rps:1,", "rps:1,2,3", "rps:65536", "rps1", "rps:1x"};
    char word[STRATEGY_WORD];
    struct set_kind k;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        CHECK(kind_strategy_of(&k, good[i]));
        CHECK_STR(kind_strategy_word(&k, word), good[i]);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK(!kind_strategy_of(&k, bad[i]));
}

/* Each rule refuses, with a sentence; what defaults make of nothing does not. */
static void kinds_that_do_not_go_together(void)
{
    const struct set_kind wrong[] = {
        KIND(SLEET_MODEL, SLEET_EXPECTED, 0, 0), KIND(SLEET_MODEL, SLEET_CARRY, 0, 0),
        KIND(SLEET_GRADIENT, SLEET_CARRY, SLEET_NONLINEAR, 0), KIND(SLEET_MODEL, 0, 0, SLEET_REDUCE_SCATTER),
        KIND(SLEET_DELTA, 0, 0, SLEET_ALL_GATHER), KIND((sleet_payload)0, 0, 0, 0),
        {.payload = SLEET_GRADIENT, .strategy = SLEET_ONE_PEER}, {.payload = SLEET_MODEL, .strategy = (sleet_strategy)99},
        {.payload = SLEET_MODEL, .exchange = SLEET_ALL_GATHER, .strategy = SLEET_PAIRS},
        {.payload = SLEET_MODEL, .strategy = SLEET_ONE_PEER, .numbers = {3}},
        {.payload = SLEET_MODEL, .strategy = SLEET_PAIRS, .numbers = {KIND_RANK_MAX + 1}},
        {.payload = SLEET_MODEL, .strategy = SLEET_MOSHPIT, .numbers = {33}},
        {.payload = SLEET_MODEL, .strategy = SLEET_RANDOM, .numbers = {4, 2}},
        {.payload = SLEET_MODEL, .strategy = SLEET_CROSSOVER, .numbers = {65}},
        {.payload = SLEET_MODEL, .strategy = SLEET_CROSSOVER, .numbers = {16, 1}},
        {.payload = SLEET_MODEL, .strategy = SLEET_GRAPH, .numbers = {7}},

        {.payload = SLEET_GRADIENT, .spread = 2}, {.payload = SLEET_MODEL, .spread = SLEET_SPREAD_MAX + 1},
        {.payload = SLEET_MODEL, .exchange = SLEET_ALL_GATHER, .spread = 2},
        {.payload = SLEET_MODEL, .strategy = SLEET_ONE_PEER, .spread = 2}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct set_kind k = kind_resolved(wrong[i]);
        CHECK(kind_refuse(&k) != NULL);
    }
    struct set_kind k = kind_resolved((struct set_kind){.payload = SLEET_GRADIENT, .exchange = SLEET_REDUCE_SCATTER});
    CHECK(kind_refuse(&k) == NULL && k.estimator == SLEET_EXPECTED && k.update == SLEET_LINEAR);
    CHECK_EQ(payload_of("pseudo-gradient"), SLEET_PSEUDO_GRADIENT);
    CHECK_EQ(payload_of("pseudo"), 0);
    CHECK_STR(exchange_text(SLEET_ALL_GATHER), "all-gather");
    CHECK(estimator_text(9) == NULL);
    CHECK(kind_refuse_codec(&k, SLEET_F32, SLEET_CODEC_ROT4) != NULL); /* an owner has parts of a group */
    CHECK(kind_refuse_codec(&k, SLEET_F32, SLEET_CODEC_I8) == NULL);
    CHECK(kind_refuse_codec(&k, SLEET_F32, 99) != NULL);
    CHECK(kind_refuse_codec(&k, SLEET_F32, SLEET_CODEC_F32) == NULL);
    CHECK(kind_refuse_codec(&k, SLEET_F32, SLEET_CODEC_TOPK) == NULL);
    k = kind_resolved((struct set_kind){.payload = SLEET_MODEL});
    CHECK(kind_refuse_codec(&k, SLEET_F32, SLEET_CODEC_I8) == NULL);
    CHECK(kind_refuse_codec(&k, SLEET_F32_STATE, SLEET_CODEC_I8) != NULL);
    CHECK(kind_refuse_codec(&k, SLEET_F32, SLEET_CODEC_TOPK) != NULL);
    CHECK(kind_refuse_codec(&k, SLEET_F32, SLEET_CODEC_ROT4) != NULL);
}

static void layout_holds_the_most_tensors(void)
{
    static char names[SLEET_TENSORS_MAX][8];
    static const char *pointers[SLEET_TENSORS_MAX];
    static sleet_dtype dtypes[SLEET_TENSORS_MAX];
    static uint64_t counts[SLEET_TENSORS_MAX];
    struct layout l;
    bool found = true;
    for (uint32_t i = 0; i < SLEET_TENSORS_MAX; i++) {
        snprintf(names[i], sizeof(names[i]), "t%u", i % 10000);
        pointers[i] = names[i];
        dtypes[i] = SLEET_F32;
        counts[i] = i;
    }
    CHECK_EQ(make_as(&l, "s", pointers, dtypes, counts, SLEET_TENSORS_MAX),
             SLEET_OK);
    for (uint32_t i = 0; i < l.n; i++)
        found = found && layout_find(&l, l.tensors[i].id) == (int)i;
    CHECK(found);
    layout_fini(&l);
}

static void codec_f32_round_trip(void)
{
    const struct codec *c = codec_by_id(SLEET_CODEC_F32);
    float in[N], out[N];
    uint8_t bytes[N * 4 + 1];
    sleet_rng rng = {test_seed()};
    const struct codec_args args = {0};
    CHECK(codec_by_id(0) == NULL && codec_by_id(31) == NULL);
    CHECK(c != NULL);
    if (!c)
        return;
    CHECK_EQ(c->bytes_max, N * 4);
    for (int i = 0; i < N; i++)
        in[i] = (float)(rng_double(&rng) - 0.5);
    in[0] = 1.0f;
    in[1] = -0.0f;
    in[2] = 1e-45f;
    CHECK_EQ(c->encode(bytes + 1, in, N, &args), N * 4);
    CHECK(bytes[1] == 0 && bytes[2] == 0 && bytes[3] == 0x80 && bytes[4] == 0x3f);
    CHECK_EQ(c->decode(out, bytes + 1, N * 4, N), N * 4);
    CHECK_EQ(c->decode(out, bytes + 1, N * 4 - 1, N), 0);
    CHECK(memcmp(in, out, sizeof(in)) == 0);
    const float bad[] = {NAN, INFINITY, -INFINITY};
    for (int k = 0; k < 3; k++) {
        int at = (int)rng_below(&rng, N);
        float old = in[at];
        in[at] = bad[k];
        c->encode(bytes, in, N, &args);
        CHECK_EQ(c->decode(out, bytes, N * 4, N), CODEC_NONFINITE);
        CHECK(!reduce_finite(in, N));
        in[at] = old;
    }
    CHECK(reduce_finite(in, N));
}

static void reduce_means(void)
{
    float a[N], b[N], out[N];
    double acc[N] = {0};
    sleet_rng rng = {test_seed()};
    for (int i = 0; i < N; i++) {
        a[i] = (float)((int)rng_below(&rng, 8192) - 4096) * 0x1p-12f;
        b[i] = (float)((int)rng_below(&rng, 8192) - 4096) * 0x1p-12f;
    }
    reduce_add(acc, a, 1, N);
    reduce_add(acc, b, 3, N);
    reduce_mean(out, acc, 4, N);
    bool equal = true;
    for (int i = 0; i < N; i++)
        equal = equal && out[i] == (float)(((double)a[i] + 3 * (double)b[i]) / 4);
    CHECK(equal);
}

static void reduce_merge_commutes(void)
{
    float a[N], b[N], x[N], y[N];
    sleet_rng rng = {test_seed()};
    double wa = rng_double(&rng) + 0.1, wb = rng_double(&rng) * 7 + 0.1;
    for (int i = 0; i < N; i++) {
        a[i] = (float)(rng_double(&rng) * 2 - 1);
        b[i] = (float)(rng_double(&rng) * 2 - 1);
    }
    memcpy(x, a, sizeof(a));
    memcpy(y, b, sizeof(b));
    reduce_merge(x, wa, b, wb, N);
    reduce_merge(y, wb, a, wa, N);
    CHECK(memcmp(x, y, sizeof(x)) == 0);
    for (int i = 0; i < N; i++)
        a[i] = b[i] = 1.0f;
    reduce_merge(a, wa, b, wb, N);
    CHECK(a[0] == 1.0f && a[N - 1] == 1.0f);
}

static void order_is_a_permutation(void)
{
    static uint8_t seen[2000];
    sleet_rng rng = {test_seed()};
    for (uint32_t n = 1; n < 2000; n += 1 + n / 20) {
        uint32_t stride = order_stride(n, rng_next(&rng)), start = rng_below(&rng, n);
        uint32_t count = 0;
        memset(seen, 0, sizeof(seen));
        for (uint32_t i = 0; i < n; i++) {
            uint32_t at = order_at(i, n, stride, start);
            count += at < n && !seen[at];
            if (at < n)
                seen[at] = 1;
        }
        CHECK_EQ(count, n);
    }
    uint32_t n = UINT32_MAX, stride = order_stride(n, 3);
    CHECK(stride > n / 10 * 3 && stride < n / 10 * 5);
    CHECK(order_at(n - 1, n, stride, n - 1) < n);
}

TEST_SUITE(tensor) = {
    TEST(layout_numbers_fragments),
    TEST(low_rank_travels_as_f32),
    TEST(rows_are_of_the_layout),
    TEST(layout_covers_every_element_once),
    TEST(layout_is_safe_beyond_32_bits),
    TEST(layout_limits),
    TEST(layout_hash_sees_every_difference),
    TEST(layout_hash_sees_kind_and_codec),
    TEST(kinds_that_do_not_go_together),
    TEST(strategy_words),
    TEST(layout_holds_the_most_tensors),
    TEST(codec_f32_round_trip),
    TEST(reduce_means),
    TEST(reduce_merge_commutes),
    TEST(order_is_a_permutation),
    TEST_END,
};
