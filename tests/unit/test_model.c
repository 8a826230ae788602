#include "base/rng.h"
#include "sleet_test.h"
#include "train/model.h"
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    struct model_shape shape;
    size_t params;
} nets[] = {
    {"mlp",
     {.rows = 2, .columns = 3, .hidden = {7, 5}, .hidden_count = 2, .classes = 4, .batch = 5},
     6 * 7 + 7 + 7 * 5 + 5 + 5 * 4 + 4},
    {"mlp", {.rows = 1, .columns = 6, .classes = 4, .batch = 5}, 6 * 4 + 4},
    {"mlp-si",
     {.rows = 2, .columns = 3, .hidden = {9, 8}, .hidden_count = 2, .classes = 4, .batch = 5},
     6 * 9 + 9 + 9 * 8 + 8 + 8 * 4 + 4},
    {"mlp-si", {.rows = 1, .columns = 6, .classes = 4, .batch = 5}, 6 * 4 + 4},
    /* An odd edge is left out by the pool: 7 x 5 becomes 3 x 2, then 1 x 1. */
    {"cnn",
     {.rows = 7, .columns = 5, .hidden = {6}, .hidden_count = 1, .classes = 4, .batch = 5},
     9 * 8 + 8 + 9 * 8 * 16 + 16 + 16 * 6 + 6 + 6 * 4 + 4},
    {"cnn",
     {.rows = 8, .columns = 8, .classes = 3, .batch = 3},
     9 * 8 + 8 + 9 * 8 * 16 + 16 + 4 * 16 * 3 + 3},
    {"cnn-bn",
     {.rows = 7, .columns = 5, .hidden = {6}, .hidden_count = 1, .classes = 4, .batch = 5},
     9 * 8 + 16 + 9 * 8 * 16 + 32 + 16 * 6 + 6 + 6 * 4 + 4},
    {"charlm",
     {.rows = 1, .columns = 5, .hidden = {8}, .hidden_count = 1, .classes = 6, .batch = 3},
     6 * 8 + 5 * 8 + 2 * (16 + 8 * 24 + 24 + 64 + 8 + 16 + 8 * 32 + 32 + 32 * 8 + 8) + 16 + 8 * 6 + 6},
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
    float *p, *g, *x; /* parameters with statistics, a gradient, inputs */
    float *scratch;   /* where the loss is to be of training, as that of a batch normalisation; or NULL */
    uint8_t *label;
    uint32_t samples, inputs, targets;
};

static struct trial trial_of(const model *m, const struct model_shape *s)
{
    struct trial t = {.samples = s->batch, .inputs = s->rows * s->columns, .targets = m->targets};
    sleet_rng rng = {test_seed()};
    size_t n = model_params(m);
    t.p = malloc((n + model_statistics(m)) * sizeof *t.p);
    t.g = malloc(n * sizeof *t.g);
    t.scratch = model_statistics(m) ? malloc(n * sizeof *t.g) : NULL;
    t.x = malloc((size_t)t.samples * t.inputs * sizeof *t.x);
    t.label = malloc((size_t)t.samples * t.targets);
    model_init(m, t.p, test_seed());
    for (size_t i = 0; i < n; i++)
        t.p[i] += (float)(0.1 * (rng_double(&rng) - 0.5));
    for (size_t i = 0; i < (size_t)t.samples * t.inputs; i++)
        t.x[i] = m->kind->text ? (float)rng_below(&rng, s->classes) : (float)(2 * rng_double(&rng) - 1);
    for (uint32_t i = 0; i < t.samples * t.targets; i++)
        t.label[i] = (uint8_t)(i % s->classes);
    return t;
}

static void trial_free(struct trial *t)
{
    free(t->p);
    free(t->g);
    free(t->scratch);
    free(t->x);
    free(t->label);
}

/* The slope of the loss at *v, from values `step` to both sides. */
static double slope(model *m, const struct trial *t, float *v, float step)
{
    float keep = *v;
    *v = keep + step;
    double high = model_loss(m, t->p, t->x, t->label, t->samples, t->scratch, NULL);
    *v = keep - step;
    double low = model_loss(m, t->p, t->x, t->label, t->samples, t->scratch, NULL);
    *v = keep;
    return (high - low) / (2.0 * (double)step);
}

/* How many of the `n` values at `v` have a gradient other than `g` says.  A step across the corner of a
 * ReLU or of a maximum is off, a short one is drowned in rounding: one of three has to agree. */
static size_t gradients_apart(model *m, const struct trial *t, float *v, const float *g, size_t n)
{
    static const float steps[] = {2e-3f, 4e-4f, 1e-4f};
    size_t apart = 0;
    for (size_t i = 0; i < n; i++) {
        int agree = 0;
        for (int k = 0; k < 3 && !agree; k++)
            agree = fabs(slope(m, t, v + i, steps[k]) - (double)g[i]) < 2e-3;
        apart += !agree;
    }
    return apart;
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
        if (m->kind->text) { /* has none */
            model_free(m);
            continue;
        }
        struct trial t = trial_of(m, &nets[i].shape);
        size_t n = (size_t)t.samples * t.inputs;
        float *x_delta = malloc(n * sizeof *x_delta);
        model_loss(m, t.p, t.x, t.label, t.samples, t.g, NULL);
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
        double together = model_loss(m, t.p, t.x, t.label, t.samples, NULL, NULL), alone = 0;
        for (uint32_t k = 0; k < t.samples; k++)
            alone += model_loss(m, t.p, t.x + (size_t)k * t.inputs, t.label + (size_t)k * t.targets, 1, NULL, NULL);
        CHECK_NEAR(together, alone / t.samples, 1e-5);
        float *again = malloc(nets[i].params * sizeof *again);
        model_loss(m, t.p, t.x, t.label, t.samples, t.g, NULL);
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
        if (!m->kind->text) { /* a character is a number always */
            *corner = NAN;
            CHECK(isnan(model_loss(m, t.p, t.x, t.label, t.samples, t.g, NULL)));
            *corner = keep;
        }
        t.p[m->kind->text ? nets[i].params - 1 : 0] = NAN; /* not of a character that is not there */
        CHECK(isnan(model_loss(m, t.p, t.x, t.label, t.samples, t.g, NULL)));
        trial_free(&t);
        model_free(m);
    }
}

/* Kernels that only copy: what is left is the largest pixel of each 4 x 4. */
static void cnn_pools_the_maximum(void)
{
    const size_t net = 5; /* 8 x 8 pixels, 3 classes, no hidden layer */
    const size_t centre = 4, second = 9 * 8 + 8, dense = second + 9 * 8 * 16 + 16;
    model *m = net_open(net);
    REQUIRE(m);
    struct trial t = trial_of(m, &nets[net].shape);
    memset(t.p, 0, nets[net].params * sizeof *t.p);
    t.p[centre * 8] = 1;               /* output 0 of the first stage is its input */
    t.p[second + centre * 8 * 16] = 1; /* and of the second stage output 0 of the first */
    for (int block = 0; block < 4; block++) {
        float best = 0;
        for (int i = 0; i < 16; i++)
            best = fmaxf(best, t.x[(block / 2 * 4 + i / 4) * 8 + block % 2 * 4 + i % 4]);
        float *weight = t.p + dense + block * 16 * 3;
        *weight = 1; /* to class 0 */
        CHECK_NEAR(m->kind->forward(m, t.p, t.x, 1, false)[0], best, 1e-6);
        *weight = 0;
    }
    trial_free(&t);
    model_free(m);
}

/* The running statistics become those of the batches, and are what is tested by. */
static void statistics_follow_the_batches(void)
{
    const size_t net = 6; /* cnn-bn */
    model *m = net_open(net);
    REQUIRE(m);
    struct trial t = trial_of(m, &nets[net].shape);
    CHECK_EQ(model_statistics(m), 2 * (8 + 16));
    for (uint32_t i = 0; i < t.samples * t.inputs; i++)
        t.x[i] = 3 * t.x[i] + 2; /* neither mean 0 nor variance 1 */
    double learnt = model_loss(m, t.p, t.x, t.label, t.samples, t.g, NULL);
    double before = model_loss(m, t.p, t.x, t.label, t.samples, NULL, NULL);
    for (int i = 0; i < 100; i++) {
        model_loss(m, t.p, t.x, t.label, t.samples, t.g, NULL);
        model_track(m, t.p);
    }
    double after = model_loss(m, t.p, t.x, t.label, t.samples, NULL, NULL);
    CHECK(fabs(before - learnt) > 0.1);
    CHECK_NEAR(after, learnt, 0.05 * learnt); /* a batch's variance is less than that of all */
    trial_free(&t);
    model_free(m);
}

/* The mlp-si: a factor of all parameters, or of a layer's, changes no output; the gradient is at a right angle to
 * them, and shrinks as they grow. */
static void scale_of_parameters_does_not_matter(void)
{
    const size_t net = 2, first = 6 * 9 + 9, n = nets[net].params;
    model *m = net_open(net);
    REQUIRE(m);
    struct trial t = trial_of(m, &nets[net].shape);
    float before[5 * 4], *g = malloc(n * sizeof *g);
    memcpy(before, m->kind->forward(m, t.p, t.x, t.samples, false), sizeof before);
    model_loss(m, t.p, t.x, t.label, t.samples, t.g, NULL);
    double along = 0, energy = 0;
    for (size_t i = 0; i < n; i++) {
        along += (double)t.g[i] * (double)t.p[i];
        energy += (double)t.g[i] * (double)t.g[i];
    }
    CHECK(energy > 1e-3 && fabs(along) < 1e-6);
    for (size_t i = 0; i < first; i++)
        t.p[i] *= 1e-3f;
    for (size_t i = first; i < n; i++)
        t.p[i] *= 1e3f;
    const float *after = m->kind->forward(m, t.p, t.x, t.samples, false);
    for (size_t i = 0; i < 5 * 4; i++)
        CHECK_NEAR(after[i], before[i], 1e-5);
    model_loss(m, t.p, t.x, t.label, t.samples, g, NULL);
    for (size_t i = 0; i < n; i++)
        CHECK_NEAR(i < first ? g[i] * 1e-3f : g[i] * 1e3f, t.g[i], 1e-5);
    free(g);
    trial_free(&t);
    model_free(m);
}

/* What is said of a place in a text does not depend on what stands behind it. */
static void charlm_sees_no_later_character(void)
{
    const size_t net = NETS - 1;
    const uint32_t classes = nets[net].shape.classes, last = nets[net].shape.columns - 1;
    model *m = net_open(net);
    REQUIRE(m);
    struct trial t = trial_of(m, &nets[net].shape);
    float before[5 * 6];
    memcpy(before, m->kind->forward(m, t.p, t.x, 1, false), sizeof before);
    t.x[last] = t.x[last] > 0 ? 0 : 1;
    const float *after = m->kind->forward(m, t.p, t.x, 1, false);
    CHECK_MEM(after, before, last * classes * sizeof *after);
    CHECK(memcmp(after + last * classes, before + last * classes, classes * sizeof *after) != 0);
    memcpy(before, after, sizeof before);
    t.x[0] = t.x[0] > 0 ? 0 : 1; /* but on what stands before it */
    after = m->kind->forward(m, t.p, t.x, 1, false);
    CHECK(memcmp(after + last * classes, before + last * classes, classes * sizeof *after) != 0);
    trial_free(&t);
    model_free(m);
}

static void init_follows_the_seed(void)
{
    for (size_t i = 0; i < NETS; i++) {
        model *m = net_open(i);
        REQUIRE(m);
        size_t n = model_params(m), bytes = (n + model_statistics(m)) * sizeof(float);
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
        {"mlp-si", "one unit", {.rows = 2, .columns = 2, .hidden = {1}, .hidden_count = 1, .classes = 2, .batch = 1}},
        {"charlm", "multiple of 4", {.rows = 1, .columns = 9, .hidden = {9}, .hidden_count = 1, .classes = 2, .batch = 1}},
        {"cnn", "at least 4 x 4", {.rows = 28, .columns = 3, .classes = 2, .batch = 1}},
    };
    const char *why;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        CHECK(model_new(model_find(bad[i].kind), &bad[i].shape, &why) == NULL);
        CHECK(strstr(why, bad[i].why) != NULL);
    }
    CHECK(model_find("CNN") == NULL);
}

TEST_SUITE(model) = {TEST(gradient_matches_finite_differences),
                     TEST(input_gradient_matches_finite_differences),
                     TEST(samples_do_not_mix),
                     TEST(nan_reaches_the_loss),
                     TEST(cnn_pools_the_maximum),
                     TEST(statistics_follow_the_batches),
                     TEST(scale_of_parameters_does_not_matter),
                     TEST(charlm_sees_no_later_character),
                     TEST(init_follows_the_seed),
                     TEST(bad_shapes_are_refused),
                     TEST_END};
