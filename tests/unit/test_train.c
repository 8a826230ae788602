#include "sleet_test.h"
#include "train/idx.h"
#include "train/model.h"
#include "train/sgd.h"
#include "train/shard.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

/* ---- model -------------------------------------------------------------- */

static const struct {
    const char *name;
    struct model_shape shape;
    size_t params;
} nets[] = {
    {"mlp", {.rows = 2, .columns = 3, .hidden = {7, 5}, .hidden_count = 2, .classes = 4, .batch = 5},
     6 * 7 + 7 + 7 * 5 + 5 + 5 * 4 + 4},
    {"mlp", {.rows = 1, .columns = 6, .classes = 4, .batch = 5}, 6 * 4 + 4},
    /* An odd edge is left out by the pool: 7 x 5 becomes 3 x 2, then 1 x 1. */
    {"cnn", {.rows = 7, .columns = 5, .hidden = {6}, .hidden_count = 1, .classes = 4, .batch = 5},
     9 * 8 + 8 + 9 * 8 * 16 + 16 + 16 * 6 + 6 + 6 * 4 + 4},
    {"cnn", {.rows = 8, .columns = 8, .classes = 3, .batch = 3},
     9 * 8 + 8 + 9 * 8 * 16 + 16 + 4 * 16 * 3 + 3},
};
#define NETS (sizeof nets / sizeof *nets)

static model *net_open(size_t i)
{
    const char *why = "";
    model *m = model_new(model_find(nets[i].name), &nets[i].shape, &why);
    CHECK(m != NULL && why != NULL);
    return m;
}

/* Random samples and parameters, biases included, of a net. */
struct trial {
    float *p, *g, *x;
    uint8_t *label;
    uint32_t samples, inputs;
};

static struct trial trial_of(const model *m, const struct model_shape *s)
{
    struct trial t = {.samples = s->batch, .inputs = s->rows * s->columns};
    sleet_rng rng = {test_seed()};
    size_t n = model_params(m);
    t.p = malloc(n * sizeof *t.p);
    t.g = malloc(n * sizeof *t.g);
    t.x = malloc((size_t)t.samples * t.inputs * sizeof *t.x);
    t.label = malloc(t.samples);
    model_init(m, t.p, test_seed());
    for (size_t i = 0; i < n; i++)
        t.p[i] += (float)(0.2 * rng_double(&rng));
    for (size_t i = 0; i < (size_t)t.samples * t.inputs; i++)
        t.x[i] = (float)(2 * rng_double(&rng) - 1);
    for (uint32_t i = 0; i < t.samples; i++)
        t.label[i] = (uint8_t)(i % s->classes);
    return t;
}

static void trial_free(struct trial *t)
{
    free(t->p);
    free(t->g);
    free(t->x);
    free(t->label);
}

/* How many of the `n` values at `v` have a gradient other than `g` says. */
static size_t gradients_apart(model *m, const struct trial *t, float *v, const float *g, size_t n)
{
    size_t apart = 0;
    for (size_t i = 0; i < n; i++) {
        float keep = v[i], step = 2e-3f;
        v[i] = keep + step;
        double high = model_loss(m, t->p, t->x, t->label, t->samples, NULL, NULL);
        v[i] = keep - step;
        double low = model_loss(m, t->p, t->x, t->label, t->samples, NULL, NULL);
        v[i] = keep;
        apart += fabs((high - low) / (2.0 * (double)step) - (double)g[i]) > 2e-3;
    }
    return apart; /* a step across the corner of a ReLU or of a maximum is off */
}

static void gradient_matches_finite_differences(void)
{
    for (size_t i = 0; i < NETS; i++) {
        model *m = net_open(i);
        REQUIRE(m);
        struct trial t = trial_of(m, &nets[i].shape);
        CHECK_EQ(model_params(m), nets[i].params);
        model_loss(m, t.p, t.x, t.label, t.samples, t.g, NULL);
        CHECK(gradients_apart(m, &t, t.p, t.g, nets[i].params) <= nets[i].params / 50);
        trial_free(&t);
        model_free(m);
    }
}

/* The gradient at the inputs, on which a model inside another one stands. */
static void input_gradient_matches_finite_differences(void)
{
    for (size_t i = 0; i < NETS; i++) {
        model *m = net_open(i);
        REQUIRE(m);
        struct trial t = trial_of(m, &nets[i].shape);
        size_t n = (size_t)t.samples * t.inputs;
        float *x_delta = malloc(n * sizeof *x_delta);
        model_loss(m, t.p, t.x, t.label, t.samples, NULL, NULL);
        m->kind->backward(m, t.p, t.x, t.samples, m->delta, t.g, x_delta);
        CHECK(gradients_apart(m, &t, t.x, x_delta, n) <= 1 + n / 50);
        free(x_delta);
        trial_free(&t);
        model_free(m);
    }
}

/* A sample counts alone: neither its neighbours in the batch nor earlier calls matter. */
static void samples_do_not_mix(void)
{
    for (size_t i = 0; i < NETS; i++) {
        model *m = net_open(i);
        REQUIRE(m);
        struct trial t = trial_of(m, &nets[i].shape);
        double together = model_loss(m, t.p, t.x, t.label, t.samples, t.g, NULL), alone = 0;
        for (uint32_t k = 0; k < t.samples; k++)
            alone += model_loss(m, t.p, t.x + (size_t)k * t.inputs, t.label + k, 1, NULL, NULL);
        CHECK_NEAR(together, alone / t.samples, 1e-5);
        float *again = malloc(nets[i].params * sizeof *again);
        model_loss(m, t.p, t.x, t.label, t.samples, again, NULL);
        CHECK_MEM(again, t.g, nets[i].params * sizeof *again);
        free(again);
        trial_free(&t);
        model_free(m);
    }
}

/* A diverged model says so: no layer hides a value that is no number. */
static void nan_reaches_the_loss(void)
{
    for (size_t i = 0; i < NETS; i++) {
        model *m = net_open(i);
        REQUIRE(m);
        struct trial t = trial_of(m, &nets[i].shape);
        float *corner = t.x + (nets[i].shape.rows - 1) * nets[i].shape.columns, keep = *corner;
        *corner = NAN;
        CHECK(isnan(model_loss(m, t.p, t.x, t.label, t.samples, t.g, NULL)));
        *corner = keep;
        t.p[0] = NAN;
        CHECK(isnan(model_loss(m, t.p, t.x, t.label, t.samples, t.g, NULL)));
        trial_free(&t);
        model_free(m);
    }
}

/* Kernels that only copy: what is left is the largest pixel of each 4 x 4. */
static void cnn_pools_the_maximum(void)
{
    const size_t net = 3; /* 8 x 8 pixels, 3 classes, no hidden layer */
    const size_t centre = 4, second = 9 * 8 + 8, dense = second + 9 * 8 * 16 + 16;
    model *m = net_open(net);
    REQUIRE(m);
    struct trial t = trial_of(m, &nets[net].shape);
    memset(t.p, 0, nets[net].params * sizeof *t.p);
    t.p[centre * 8] = 1;                /* output 0 of the first stage is its input */
    t.p[second + centre * 8 * 16] = 1;  /* and of the second stage output 0 of the first */
    for (int block = 0; block < 4; block++) {
        float best = 0;
        for (int i = 0; i < 16; i++)
            best = fmaxf(best, t.x[(block / 2 * 4 + i / 4) * 8 + block % 2 * 4 + i % 4]);
        float *weight = t.p + dense + block * 16 * 3;
        *weight = 1; /* to class 0 */
        CHECK_NEAR(m->kind->forward(m, t.p, t.x, 1)[0], best, 1e-6);
        *weight = 0;
    }
    trial_free(&t);
    model_free(m);
}

static void init_follows_the_seed(void)
{
    for (size_t i = 0; i < NETS; i++) {
        model *m = net_open(i);
        REQUIRE(m);
        size_t n = model_params(m), bytes = n * sizeof(float);
        float *a = malloc(bytes), *b = malloc(bytes);
        model_init(m, a, 7);
        model_init(m, b, 7);
        CHECK_MEM(a, b, bytes);
        model_init(m, b, 8);
        CHECK(memcmp(a, b, bytes) != 0);
        CHECK(a[n - 1] == 0); /* a bias */
        free(a);
        free(b);
        model_free(m);
    }
}

static void bad_shapes_are_refused(void)
{
    static const struct {
        const char *kind, *why;
        struct model_shape shape;
    } bad[] = {
        {"mlp", "width", {.rows = 2, .columns = 2, .hidden_count = 1, .classes = 2, .batch = 1}},
        {"mlp", "65536", {.rows = 257, .columns = 257, .classes = 2, .batch = 1}},
        {"mlp", "classes", {.rows = 2, .columns = 2, .batch = 1}},
        {"mlp", "batch", {.rows = 2, .columns = 2, .classes = 2}},
        {"cnn", "at least 4 x 4", {.rows = 28, .columns = 3, .classes = 2, .batch = 1}},
    };
    const char *why;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        CHECK(model_new(model_find(bad[i].kind), &bad[i].shape, &why) == NULL);
        CHECK(strstr(why, bad[i].why) != NULL);
    }
    CHECK(model_find("CNN") == NULL);
}

static void sgd_moves_as_written(void)
{
    struct sgd s = {.rate = 0.5, .momentum = 0.5, .weight_decay = 0.25, .decay = SGD_LINEAR,
                    .steps = 2};
    float p = 4, v = 2, g = 1;
    sgd_step(&s, 0, &p, &v, &g, 1);
    CHECK_NEAR(v, 3, 0); /* 0.5 * 2 + 1 + 0.25 * 4 */
    CHECK_NEAR(p, 2.5, 0);
    CHECK_NEAR(sgd_rate(&s, 1), 0.25, 1e-12);
    CHECK_NEAR(sgd_rate(&s, 2), 0, 0);
}

static void rate_rises_then_falls_to_zero(void)
{
    for (int decay = SGD_COSINE; decay <= SGD_LINEAR; decay++) {
        struct sgd s = {.rate = 1, .decay = (enum sgd_decay)decay, .warm_up = 9, .steps = 100};
        CHECK_NEAR(sgd_rate(&s, 0), 0.1, 1e-12);
        CHECK_NEAR(sgd_rate(&s, 9), 1, 1e-12);
        for (uint64_t i = 9; i < 100; i++)
            CHECK(sgd_rate(&s, i + 1) < sgd_rate(&s, i));
        CHECK(sgd_rate(&s, 99) < 0.02);
        CHECK_NEAR(sgd_rate(&s, 1000), 0, 0);
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

TEST_SUITE(train) = {TEST(gradient_matches_finite_differences),
                     TEST(input_gradient_matches_finite_differences),
                     TEST(samples_do_not_mix),
                     TEST(nan_reaches_the_loss),
                     TEST(cnn_pools_the_maximum),
                     TEST(init_follows_the_seed),
                     TEST(bad_shapes_are_refused),
                     TEST(sgd_moves_as_written),
                     TEST(rate_rises_then_falls_to_zero),
                     TEST(shards_partition_all_samples),
                     TEST(label_shards_see_few_classes),
                     TEST(walk_visits_each_sample_once_a_round),
                     TEST(bad_shard_kinds_are_refused),
                     TEST(good_folder_loads),
                     TEST(truncated_gzip_is_refused),
                     TEST(short_plain_file_is_refused),
                     TEST(wrong_magic_is_refused),
                     TEST(label_out_of_range_is_refused),
                     TEST(different_counts_are_refused),
                     TEST(empty_and_absent_folders_are_refused),
                     TEST_END};
