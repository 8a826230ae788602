#include "sleet_test.h"
#include "train/awp.h"
#include "train/idx.h"
#include "train/optimizer.h"
#include "train/shard.h"
#include "train/trigger.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

/* ---- optimizer ---------------------------------------------------------- */

static void sgd_moves_as_written(void)
{
    struct optimizer s = {.kind = &optimizer_sgd,
                          .rate = 0.5,
                          .momentum = 0.5,
                          .weight_decay = 0.25,
                          .schedule = SCHEDULE_LINEAR,
                          .steps = 2};
    float p = 4, v = 2, g = 1;
    optimizer_step(&s, 0, 0, &p, &v, &g, 1);
    CHECK_NEAR(v, 3, 0); /* 0.5 * 2 + 1 + 0.25 * 4 */
    CHECK_NEAR(p, 2.5, 0);
    CHECK_NEAR(optimizer_rate(&s, 1), 0.25, 1e-12);
    CHECK_NEAR(optimizer_rate(&s, 2), 0, 0);
}

/* Two steps by hand, beta 0.5 and 0.75, rate 0.5, decay 0.25, gradients 2 and -4. */
static void adamw_moves_as_written(void)
{
    struct optimizer o = {.kind = &optimizer_adamw,
                          .rate = 0.5,
                          .beta1 = 0.5,
                          .beta2 = 0.75,
                          .weight_decay = 0.25,
                          .schedule = SCHEDULE_LINEAR,
                          .steps = 2};
    float p = 4, g = 2, moments[2] = {0};
    optimizer_step(&o, 0, 0, &p, moments, &g, 1);
    CHECK_NEAR(moments[0], 1, 0);
    CHECK_NEAR(moments[1], 1, 0);
    CHECK_NEAR(p, 4 - 0.5 * (2 / 2.0 + 0.25 * 4), 1e-6); /* m' = 1 / 0.5, v' = 1 / 0.25 */
    g = -4;
    optimizer_step(&o, 1, 1, &p, moments, &g, 1);
    CHECK_NEAR(moments[0], -1.5, 0);
    CHECK_NEAR(moments[1], 4.75, 0);
    CHECK_NEAR(p, 3 - 0.25 * (-1.5 / 0.75 / sqrt(4.75 / 0.4375) + 0.25 * 3), 1e-6);
}

/* Two steps by hand, momentum 0.5, rate 0.5, decay 0.25; a rate that stays as it is. */
static void nesterov_moves_as_written(void)
{
    struct optimizer s = {.kind = optimizer_find("nesterov"),
                          .rate = 0.5,
                          .momentum = 0.5,
                          .weight_decay = 0.25,
                          .steps = 2};
    float p = 4, v = 2, g = 1;
    REQUIRE(s.kind == &optimizer_nesterov && schedule_find("constant", &s.schedule));
    optimizer_step(&s, 7, 0, &p, &v, &g, 1);
    CHECK_NEAR(v, 3, 0);   /* 0.5 * 2 + (1 + 0.25 * 4) */
    CHECK_NEAR(p, 2.25, 0); /* 4 - 0.5 * (2 + 0.5 * 3) */
    optimizer_step(&s, 8, 1, &p, &v, &g, 1);
    CHECK_NEAR(v, 3.0625, 0);                                   /* 0.5 * 3 + 1.5625 */
    CHECK_NEAR(p, 2.25 - 0.5 * (1.5625 + 0.5 * 3.0625), 1e-6);
    s.warm_up = 9;
    CHECK_NEAR(optimizer_rate(&s, 0), 0.05, 1e-12);
    CHECK_NEAR(optimizer_rate(&s, 1000), 0.5, 0);
    CHECK(!schedule_find("none", &s.schedule));
}

/* Moments that begin late, as where an owner is replaced, are as free of bias as others. */
static void fresh_moments_take_no_wild_step(void)
{
    struct optimizer o = {
        .kind = &optimizer_adamw, .rate = 1, .beta1 = 0.9, .beta2 = 0.999, .steps = 1000};
    float p = 0, g = 3, moments[2] = {0};
    optimizer_step(&o, 500, 0, &p, moments, &g, 1);
    CHECK_NEAR(p, -optimizer_rate(&o, 500), 1e-5);
}

/* The same bits whether a vector is stepped at once or run by run, each by another owner. */
static void steps_are_elementwise(void)
{
    enum { N = 37 };
    static const struct optimizer_kind *const kinds[] = {&optimizer_sgd, &optimizer_nesterov, &optimizer_sgd_si,
                                                        &optimizer_adamw};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        struct optimizer o = {.kind = kinds[k], .rate = 0.1, .momentum = 0.9, .beta1 = 0.9,
                              .beta2 = 0.999, .weight_decay = 0.01, .steps = 10};
        uint32_t each = kinds[k]->moments;
        float whole[3 * N] = {0}, parts[3 * N], g[N]; /* parameters, moments */
        sleet_rng rng = {test_seed()};
        for (int i = 0; i < N; i++) {
            whole[i] = (float)rng_double(&rng);
            g[i] = (float)(rng_double(&rng) - 0.5);
        }
        memcpy(parts, whole, sizeof parts);
        for (uint64_t step = 0; step < 3; step++) {
            optimizer_step(&o, step, step, whole, whole + N, g, N);
            for (size_t at = N, n; at > 0; at -= n) {
                n = at < 8 ? at : 8;
                size_t from = at - n;
                optimizer_step(&o, step, step, parts + from, parts + N + each * from, g + from, n);
            }
        }
        CHECK_MEM(whole, parts, sizeof whole);
    }
}

static void long_gradients_are_shortened(void)
{
    const float g[] = {3, -4};
    struct optimizer o = {.kind = &optimizer_sgd, .clip_norm = 10};
    double energy = optimizer_energy(g, 1) + optimizer_energy(g + 1, 1);
    CHECK_NEAR(energy, 25, 0);
    CHECK_NEAR(optimizer_clip(&o, 0, energy, 0), 1, 0);
    o.clip_norm = 1;
    CHECK_NEAR(optimizer_clip(&o, 0, energy, 0), 0.2, 1e-7);
    CHECK(!optimizer_linear(&o));
    o.clip_norm = 0;
    CHECK_NEAR(optimizer_clip(&o, 0, energy, 0), 1, 0);
    CHECK(optimizer_linear(&o));
    o.kind = &optimizer_adamw;
    CHECK(!optimizer_linear(&o));
    CHECK(optimizer_find("adamw") == &optimizer_adamw && !optimizer_find("adam"));
}

/* By hand, rate 0.5 and decay 0.25: gradients of up to sqrt(2 0.25 / 0.5) = 1 times the parameters. */
static void sgd_si_moves_as_written(void)
{
    struct optimizer o = {
        .kind = &optimizer_sgd_si, .rate = 0.5, .weight_decay = 0.25, .schedule = SCHEDULE_LINEAR, .steps = 2};
    float p = 4, g = 1;
    optimizer_step(&o, 0, 0, &p, NULL, &g, 1);
    CHECK_NEAR(p, 4 * (1 - 0.5 * 0.25) - 0.5 * 1, 0);
    CHECK_NEAR(optimizer_clip(&o, 0, 9, 9), 1, 0);
    CHECK_NEAR(optimizer_clip(&o, 0, 100, 9), 0.3, 1e-7);
    CHECK_NEAR(optimizer_clip(&o, 1, 100, 9), 0.3 * sqrt(2), 1e-6); /* the rate is half */
    o.clip_norm = 2;
    CHECK_NEAR(optimizer_clip(&o, 0, 100, 9), 0.2, 1e-7); /* the shorter of both */
    o.clip_norm = 0;
    CHECK(optimizer_clips(&o) && !optimizer_linear(&o));
    o.weight_decay = 0;
    CHECK_NEAR(optimizer_clip(&o, 0, 1e12, 1), 1, 0);
    CHECK_NEAR(optimizer_clip(&o, 2, 1e12, 1), 1, 0); /* behind the last step */
}

/* Gradients at a right angle to the parameters and always too long: the length stays, whatever they were. */
static void sgd_si_keeps_the_length_of_clipped_steps(void)
{
    static const float scales[] = {1, 1e4f};
    for (int i = 0; i < 2; i++) {
        struct optimizer o = {.kind = &optimizer_sgd_si, .rate = 0.1, .weight_decay = 0.01, .steps = UINT64_MAX / 2};
        float p[2] = {0, 3};
        for (uint64_t step = 0; step < 100; step++) {
            float g[2] = {p[1] * scales[i], -p[0] * scales[i]};
            float by = optimizer_clip(&o, step, optimizer_energy(g, 2), optimizer_energy(p, 2));
            CHECK(by < 1);
            g[0] *= by, g[1] *= by;
            optimizer_step(&o, step, step, p, NULL, g, 2);
        }
        CHECK_NEAR(sqrt(optimizer_energy(p, 2)), 3, 1e-3);
        CHECK_NEAR(atan2((double)-p[0], (double)p[1]), 100 * sqrt(2 * 0.1 * 0.01) - 6.283185, 0.01);
    }
}

static void rate_rises_then_falls_to_zero(void)
{
    for (int schedule = SCHEDULE_COSINE; schedule <= SCHEDULE_LINEAR; schedule++) {
        struct optimizer s = {
            .rate = 1, .schedule = (enum schedule)schedule, .warm_up = 9, .steps = 100};
        CHECK_NEAR(optimizer_rate(&s, 0), 0.1, 1e-12);
        CHECK_NEAR(optimizer_rate(&s, 9), 1, 1e-12);
        for (uint64_t i = 9; i < 100; i++)
            CHECK(optimizer_rate(&s, i + 1) < optimizer_rate(&s, i));
        CHECK(optimizer_rate(&s, 99) < 0.02);
        CHECK_NEAR(optimizer_rate(&s, 1000), 0, 0);
        struct optimizer late = s; /* the same, from step 50 on */
        late.begin = 50;
        late.steps = 150;
        for (uint64_t i = 0; i < 100; i++)
            CHECK_NEAR(optimizer_rate(&late, 50 + i), optimizer_rate(&s, i), 1e-12);
        CHECK_NEAR(optimizer_rate(&late, 7), optimizer_rate(&s, 0), 0);
    }
}

/* ---- shards ------------------------------------------------------------- */

static void shards_partition_all_samples(void)
{
    enum { COUNT = 1003 };
    static const char *const kinds[] = {"iid", "label", "dirichlet:0.3", "dirichlet:0.01",
                                        "dirichlet:100"};
    static const uint32_t shards[] = {1, 2, 3, 4, 8, 64};
    uint8_t label[COUNT];
    sleet_rng rng = {test_seed()};
    for (size_t i = 0; i < COUNT; i++)
        label[i] = (uint8_t)rng_below(&rng, 10);
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (size_t j = 0; j < sizeof shards / sizeof *shards; j++) {
            struct shard_kind kind;
            struct shard_split a, b;
            uint8_t seen[COUNT] = {0};
            REQUIRE(shard_parse(kinds[k], &kind));
            REQUIRE(shard_make(&a, kind, label, COUNT, 10, shards[j], test_seed()));
            REQUIRE(shard_make(&b, kind, label, COUNT, 10, shards[j], test_seed()));
            CHECK_MEM(a.order, b.order, COUNT * sizeof *a.order);
            CHECK_EQ(a.start[0], 0);
            CHECK_EQ(a.start[shards[j]], COUNT);
            for (uint32_t s = 0; s < shards[j]; s++)
                CHECK(a.start[s] < a.start[s + 1]);
            unsigned once = 0;
            for (size_t i = 0; i < COUNT; i++)
                once += a.order[i] < COUNT && !seen[a.order[i]]++;
            CHECK_EQ(once, COUNT);
            shard_free(&a);
            shard_free(&b);
        }
}

static void label_shards_see_few_classes(void)
{
    enum { COUNT = 1000, SHARDS = 5 };
    uint8_t label[COUNT];
    struct shard_kind kind;
    struct shard_split split;
    for (unsigned i = 0; i < COUNT; i++)
        label[i] = (uint8_t)(i % 10);
    REQUIRE(shard_parse("label", &kind));
    REQUIRE(shard_make(&split, kind, label, COUNT, 10, SHARDS, test_seed()));
    for (unsigned s = 0; s < SHARDS; s++) {
        unsigned classes = 0;
        for (uint32_t i = split.start[s]; i < split.start[s + 1]; i++)
            classes |= 1u << label[split.order[i]];
        CHECK_EQ(__builtin_popcount(classes), 2);
    }
    shard_free(&split);
}

static void walk_visits_each_sample_once_a_round(void)
{
    uint8_t label[30] = {0};
    struct shard_split split;
    REQUIRE(shard_make(&split, (struct shard_kind){0}, label, 30, 10, 3, test_seed()));
    struct shard_walk walk = shard_walk_of(&split, 1, test_seed());
    CHECK_EQ(walk.count, 10);
    for (int turn = 0; turn < 3; turn++) {
        uint32_t seen = 0;
        for (int i = 0; i < 10; i++)
            seen |= 1u << shard_walk_next(&walk);
        CHECK_EQ(__builtin_popcount(seen), 10);
    }
    shard_free(&split);
}

static void a_skipped_walk_stands_where_a_drawn_one_stood(void)
{
    uint8_t label[30] = {0};
    struct shard_split a, b;
    REQUIRE(shard_make(&a, (struct shard_kind){0}, label, 30, 10, 3, test_seed()));
    REQUIRE(shard_make(&b, (struct shard_kind){0}, label, 30, 10, 3, test_seed()));
    struct shard_walk drawn = shard_walk_of(&a, 2, test_seed());
    struct shard_walk skipped = shard_walk_of(&b, 2, test_seed());
    for (int i = 0; i < 47; i++)
        shard_walk_next(&drawn);
    shard_walk_skip(&skipped, 47);
    for (int i = 0; i < 40; i++)
        CHECK_EQ(shard_walk_next(&drawn), shard_walk_next(&skipped));
    shard_free(&a);
    shard_free(&b);
}

static void bad_shard_kinds_are_refused(void)
{
    static const char *const bad[] = {"", "IID", "dirichlet", "dirichlet:", "dirichlet:0",
                                      "dirichlet:nan", "dirichlet:1x", "labels"};
    struct shard_kind kind;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK(!shard_parse(bad[i], &kind));
    struct shard_split split;
    uint8_t label[2] = {0};
    CHECK(!shard_make(&split, (struct shard_kind){0}, label, 2, 10, 3, 1));
}

/* ---- data --------------------------------------------------------------- */

#define FILES 4
static const char *const file_names[FILES] = {
    "train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte"};

struct folder {
    char path[64];
    uint8_t images[16 + 3 * 4], labels[8 + 3]; /* three samples of 2 x 2 pixels */
};

static void put_file(const struct folder *f, const char *name, const void *data, size_t len,
                     bool packed)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s%s", f->path, name, packed ? ".gz" : "");
    gzFile file = gzopen(path, packed ? "wb" : "wbT");
    CHECK(file && gzwrite(file, data, (unsigned)len) == (int)len && gzclose(file) == Z_OK);
}

/* A folder of four good files: the training part packed, the test part plain. */
static bool folder_open(struct folder *f)
{
    static const uint8_t images[16] = {0, 0, 8, 3, 0, 0, 0, 3, 0, 0, 0, 2, 0, 0, 0, 2};
    static const uint8_t labels[8 + 3] = {0, 0, 8, 1, 0, 0, 0, 3, 9, 0, 4};
    memcpy(f->images, images, sizeof images);
    for (uint8_t i = 0; i < 12; i++)
        f->images[16 + i] = (uint8_t)(i * 23);
    memcpy(f->labels, labels, sizeof labels);
    snprintf(f->path, sizeof f->path, "/tmp/sleet-idx-XXXXXX");
    if (!mkdtemp(f->path))
        return false;
    for (int i = 0; i < FILES; i++)
        put_file(f, file_names[i], i % 2 ? f->labels : f->images,
                 i % 2 ? sizeof f->labels : sizeof f->images, i < 2);
    return true;
}

static void folder_clear(const struct folder *f)
{
    for (int i = 0; i < FILES; i++)
        for (int packed = 0; packed < 2; packed++) {
            char path[128];
            snprintf(path, sizeof path, "%s/%s%s", f->path, file_names[i], packed ? ".gz" : "");
            unlink(path);
        }
}

static void folder_close(const struct folder *f)
{
    folder_clear(f);
    CHECK(rmdir(f->path) == 0);
}

/* Loading fails with a sentence that holds `part`. */
static void check_refused(const struct folder *f, const char *part)
{
    struct idx_dataset data;
    char error[IDX_ERROR_MAX] = "";
    CHECK(!idx_load(&data, f->path, 0, error));
    CHECK(data.train.pixel == NULL && data.test.label == NULL);
    if (!CHECK(strstr(error, part) != NULL))
        printf("    the sentence is: %s\n", error);
}

static void good_folder_loads(void)
{
    struct folder f;
    struct idx_dataset data;
    char error[IDX_ERROR_MAX];
    float pixel[4];
    REQUIRE(folder_open(&f));
    if (CHECK(idx_load(&data, f.path, 0, error))) {
        CHECK_EQ(data.train.count, 3);
        CHECK_EQ(data.test.features, 4);
        CHECK(data.train.rows == 2 && data.train.columns == 2);
        CHECK_MEM(data.train.pixel, f.images + 16, 12);
        CHECK_MEM(data.test.label, f.labels + 8, 3);
        idx_image(&data.train, 1, pixel);
        CHECK_NEAR(pixel[0], 4 * 23 / 255.0, 1e-6);
        idx_free(&data);
    }
    if (CHECK(idx_load(&data, f.path, 2, error)))
        CHECK_EQ(data.train.count, 2);
    idx_free(&data);
    folder_close(&f);
}

static void truncated_gzip_is_refused(void)
{
    struct folder f;
    char path[128];
    REQUIRE(folder_open(&f));
    snprintf(path, sizeof path, "%s/%s.gz", f.path, file_names[0]);
    CHECK(truncate(path, 24) == 0);
    check_refused(&f, "the gzip file is truncated");
    folder_close(&f);
}

static void short_plain_file_is_refused(void)
{
    struct folder f;
    REQUIRE(folder_open(&f));
    put_file(&f, file_names[2], f.images, 20, false);
    check_refused(&f, "holds 20 bytes where its header promises 28");
    put_file(&f, file_names[2], f.images, 7, false);
    check_refused(&f, "less than the 16 of an IDX header");
    folder_close(&f);
}

static void wrong_magic_is_refused(void)
{
    struct folder f;
    REQUIRE(folder_open(&f));
    put_file(&f, file_names[0], f.labels, sizeof f.labels, true);
    check_refused(&f, "less than the 16");
    f.images[3] = 1;
    put_file(&f, file_names[0], f.images, sizeof f.images, true);
    check_refused(&f, "has the magic number 0x00000801 instead of 0x00000803");
    folder_close(&f);
}

static void label_out_of_range_is_refused(void)
{
    struct folder f;
    REQUIRE(folder_open(&f));
    f.labels[9] = 10;
    put_file(&f, file_names[3], f.labels, sizeof f.labels, false);
    check_refused(&f, "has the label 10 at sample 1, outside 0 to 9");
    folder_close(&f);
}

static void different_counts_are_refused(void)
{
    struct folder f;
    REQUIRE(folder_open(&f));
    f.labels[7] = 2;
    put_file(&f, file_names[1], f.labels, sizeof f.labels - 1, true);
    check_refused(&f, "3 images in train-images-idx3-ubyte but 2 labels in");
    folder_close(&f);
}

static void empty_and_absent_folders_are_refused(void)
{
    struct folder f;
    REQUIRE(folder_open(&f));
    folder_clear(&f);
    check_refused(&f, "holds no train-images-idx3-ubyte");
    folder_close(&f);
    check_refused(&f, "No such file or directory");
}

/* ---- adaptive weight precision -------------------------------------------- */

static void awp_waits_for_calm(void)
{
    struct awp a;
    double norm = 1;
    awp_init(&a, 1e-3, 3, 1);
    for (int batch = 0; batch < 100; batch++) /* while it grows by 1 % a batch nothing changes */
        CHECK_EQ(awp_batch(&a, norm *= 1.01), 1);
    CHECK_EQ(awp_batch(&a, norm), 1);
    CHECK_EQ(awp_batch(&a, norm), 1);
    CHECK_EQ(awp_batch(&a, norm *= 1.01), 1); /* the count begins anew */
    CHECK_EQ(awp_batch(&a, norm *= 1.0005), 1);
    CHECK_EQ(awp_batch(&a, norm *= 0.5), 1);
    CHECK_EQ(awp_batch(&a, norm), 2); /* three in a row */
    for (int batch = 0; batch < 100; batch++) /* it never falls */
        CHECK_EQ(awp_batch(&a, norm *= 1.5), 2);
    for (int batch = 1; batch < 100; batch++)
        CHECK_EQ(awp_batch(&a, norm), batch < 3 ? 2 : batch < 6 ? 3 : 4);
}

static void awp_takes_any_norm(void)
{
    const double norms[] = {0, 0, 5, NAN, 5, INFINITY, 5, 5};
    struct awp a;
    awp_init(&a, 0.5, 1, 2);
    for (size_t i = 0; i < 7; i++)
        CHECK_EQ(awp_batch(&a, norms[i]), 2);
    CHECK_EQ(awp_batch(&a, norms[7]), 3);
    awp_init(&a, -0.01, 1, 1); /* with a threshold below 0 the norm has to shrink */
    awp_batch(&a, 1);
    CHECK_EQ(awp_batch(&a, 1), 1);
    CHECK_EQ(awp_batch(&a, 0.98), 2);
    CHECK(awp_codec(1) == SLEET_CODEC_TRUNC1 && awp_codec(3) == SLEET_CODEC_TRUNC3);
    CHECK(awp_codec(4) == SLEET_CODEC_F32);
}

/* ---- when to average ------------------------------------------------------- */

static void every_nth_step_has_its_round(void)
{
    struct trigger_options o = {.kind = trigger_find("every"), .every = 3};
    struct trigger t = {.local = 100};
    REQUIRE(o.kind);
    for (uint64_t done = 1; done < 20; done++)
        CHECK(trigger_due(&o, &t, done) == (done % 3 == 0));
    CHECK(trigger_waits(&o) && !trigger_always(&o));
    o.every = 1;
    CHECK(trigger_always(&o) && !trigger_waits(&o) && !o.kind->joins);
    CHECK(!trigger_find("never"));
}

/* The smallest number of steps that take ten times as long as a round, and at most twice as many as before. */
static void auto_spends_a_tenth(void)
{
    struct trigger_options o = {.kind = trigger_find("auto")};
    struct trigger t = {0};
    uint64_t steps = 0;
    CHECK(trigger_due(&o, &t, 1)); /* nothing is known */
    for (unsigned round = 0; round < 12; round++) {
        for (; t.local < t.every || t.local < 1; CHECK(trigger_due(&o, &t, 1) == (t.local >= t.every)))
            trigger_step(&t, 0.01);
        trigger_round(&t, round ? 0.031 : 5); /* the first one waits for somebody */
        uint64_t before = steps;
        steps = trigger_choose(&t, (double)(float)trigger_wish(&t));
        CHECK(steps <= 2 * before || round == 0);
    }
    for (unsigned round = 0; round < 100; round++)
        trigger_round(&t, 0.031);
    CHECK_EQ(trigger_choose(&t, trigger_wish(&t)), 31);
    t.every = 400;
    t.round_s = 1e9;
    CHECK_EQ(trigger_choose(&t, trigger_wish(&t)), TRIGGER_AUTO_MAX);
    CHECK_EQ(trigger_choose(&t, 1e9), TRIGGER_AUTO_MAX);
    CHECK_EQ(trigger_choose(&t, -1), 1);
    CHECK_EQ(trigger_choose(&t, NAN), 1);
}

/* By hand: a window of two, whose older value weighs 0.99. */
static void selsync_sees_a_change(void)
{
    struct trigger_options o = {.kind = trigger_find("selsync"), .window = 2, .delta = 0.3};
    struct trigger t = {0};
    const double norms[] = {1, 1, 1, 1, 2, 2, 2, 2};
    double mean = 1, change[8] = {0};
    for (int i = 1; i < 8; i++) {
        double now = (norms[i] + 0.99 * norms[i - 1]) / 1.99;
        change[i] = (now - mean) / mean;
        mean = now;
    }
    for (int i = 0; i < 8; i++) {
        trigger_gradient(&o, &t, norms[i]);
        bool flag = i < 2 || (change[i] + 0.99 * change[i - 1]) / 1.99 >= 0.3;
        CHECK(trigger_due(&o, &t, 1) == flag);
        CHECK(flag == (i < 2 || i == 5)); /* 0.25 behind the first larger gradient, then 0.42 */
    }
    CHECK_NEAR(t.mean, 2, 1e-12);
}

static void selsync_has_its_bounds(void)
{
    struct trigger_options o = {.kind = trigger_find("selsync"), .window = 25, .most = 10};
    struct trigger t = {0};
    for (int i = 0; i < 100; i++) { /* delta 0: always */
        trigger_gradient(&o, &t, 1);
        CHECK(trigger_due(&o, &t, 1));
    }
    o.delta = 1e9;
    t = (struct trigger){0};
    for (int i = 0; i < 100; i++) { /* only at first, and after so many local steps */
        trigger_gradient(&o, &t, i % 7);
        trigger_step(&t, 0);
        bool due = trigger_due(&o, &t, 1);
        CHECK(due == (i < 25 || (i - 24) % 10 == 0));
        if (due)
            trigger_round(&t, 0);
    }
    o.window = 2;
    o.delta = 0.1;
    t = (struct trigger){0};
    for (int i = 0; i < 10; i++) /* no gradient at all changes nothing, the first one does */
        trigger_gradient(&o, &t, i < 6 ? 0 : 1), CHECK(trigger_due(&o, &t, 1) == (i < 2 || (i >= 6 && i < 9)));
}

TEST_SUITE(train) = {TEST(sgd_moves_as_written),
                     TEST(adamw_moves_as_written),
                     TEST(nesterov_moves_as_written),
                     TEST(fresh_moments_take_no_wild_step),
                     TEST(steps_are_elementwise),
                     TEST(long_gradients_are_shortened),
                     TEST(sgd_si_moves_as_written),
                     TEST(sgd_si_keeps_the_length_of_clipped_steps),
                     TEST(rate_rises_then_falls_to_zero),
                     TEST(every_nth_step_has_its_round),
                     TEST(auto_spends_a_tenth),
                     TEST(selsync_sees_a_change),
                     TEST(selsync_has_its_bounds),
                     TEST(shards_partition_all_samples),
                     TEST(label_shards_see_few_classes),
                     TEST(walk_visits_each_sample_once_a_round),
                     TEST(a_skipped_walk_stands_where_a_drawn_one_stood),
                     TEST(bad_shard_kinds_are_refused),
                     TEST(good_folder_loads),
                     TEST(truncated_gzip_is_refused),
                     TEST(short_plain_file_is_refused),
                     TEST(wrong_magic_is_refused),
                     TEST(label_out_of_range_is_refused),
                     TEST(different_counts_are_refused),
                     TEST(empty_and_absent_folders_are_refused),
                     TEST(awp_waits_for_calm),
    TEST(awp_takes_any_norm),
    TEST_END};
