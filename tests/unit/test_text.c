#include "base/rng.h"
#include "sleet_test.h"
#include "train/data.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SYMBOLS = 20 };

/* A file of `length` random letters from 'a' on, also in `text`. */
struct scene {
    char path[64];
    uint8_t *text;
    size_t length;
};

static bool scene_open(struct scene *s, size_t length)
{
    sleet_rng rng = {test_seed()};
    *s = (struct scene){.length = length, .text = malloc(length + 1)};
    for (size_t i = 0; i < length; i++)
        s->text[i] = (uint8_t)('a' + (i < SYMBOLS ? i : rng_below(&rng, SYMBOLS)));
    snprintf(s->path, sizeof s->path, "/tmp/sleet-text-XXXXXX");
    int fd = mkstemp(s->path);
    return fd >= 0 && write(fd, s->text, length) == (ssize_t)length && close(fd) == 0;
}

static void scene_close(struct scene *s)
{
    unlink(s->path);
    free(s->text);
}

/* Where in the text a sample lies: its windows are random, and so no two alike. */
static size_t window_at(const struct scene *s, const float *x)
{
    for (size_t at = 0; at + TEXT_CONTEXT < s->length; at += TEXT_CONTEXT) {
        size_t k = 0;
        while (k < TEXT_CONTEXT && s->text[at + k] - 'a' == (int)x[k])
            k++;
        if (k == TEXT_CONTEXT)
            return at / TEXT_CONTEXT;
    }
    return SIZE_MAX;
}

static void parts_do_not_overlap(void)
{
    enum { WINDOWS = 10 * 64 * 3 + 70 };
    struct scene s;
    struct dataset d;
    char error[DATA_ERROR_MAX] = "";
    float x[TEXT_CONTEXT];
    uint8_t target[TEXT_CONTEXT], seen[WINDOWS] = {0};
    REQUIRE(scene_open(&s, WINDOWS * TEXT_CONTEXT + 1));
    REQUIRE(data_load(&d, &data_text, s.path, 0, error));
    CHECK_EQ(d.classes, SYMBOLS);
    CHECK_EQ(d.count[DATA_TEST], 3 * 64);
    CHECK_EQ(d.count[DATA_TRAIN], 9 * 64 * 3 + 64);
    for (int part = 0; part < 2; part++)
        for (uint32_t i = 0; i < d.count[part]; i++) {
            data_sample(&d, (enum data_part)part, i, x, target);
            size_t at = window_at(&s, x);
            if (!CHECK(at < WINDOWS && !seen[at]++))
                break;
            CHECK_EQ(at / 64 % 10 == 9, part == DATA_TEST);
            for (size_t k = 0; k < TEXT_CONTEXT; k++)
                if (target[k] != s.text[at * TEXT_CONTEXT + k + 1] - 'a')
                    CHECK(!"a target is not the next character");
        }
    data_free(&d);
    scene_close(&s);
}

/* Shards by label are stretches of the text. */
static void groups_follow_the_text(void)
{
    struct scene s;
    struct dataset d;
    char error[DATA_ERROR_MAX] = "";
    REQUIRE(scene_open(&s, 2000 * TEXT_CONTEXT));
    REQUIRE(data_load(&d, &data_text, s.path, 0, error));
    for (uint32_t i = 1; i < d.count[DATA_TRAIN]; i++)
        CHECK(d.group[i] == d.group[i - 1] || d.group[i] == d.group[i - 1] + 1);
    CHECK_EQ(d.group[0], 0);
    CHECK_EQ(d.group[d.count[DATA_TRAIN] - 1], d.groups - 1);
    data_free(&d);
    scene_close(&s);
}

static void score_is_in_bits(void)
{
    CHECK_NEAR(data_text.score(log(2) * 3, 0, 1), 3, 1e-12);
}

static void check_refused(const char *path, const char *part)
{
    struct dataset d;
    char error[DATA_ERROR_MAX] = "";
    CHECK(!data_load(&d, &data_text, path, 0, error));
    CHECK(d.group == NULL && d.text.symbol == NULL);
    if (!CHECK(strstr(error, part) != NULL && strstr(error, path) != NULL && strstr(error, "; name ")))
        printf("    the sentence is: %s\n", error);
}

static void bad_files_are_refused(void)
{
    struct scene s;
    uint8_t bytes[256 * 8];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)i;
    REQUIRE(scene_open(&s, 640));
    check_refused(s.path, "640 characters, fewer than the 641");
    FILE *f = fopen(s.path, "wb");
    REQUIRE(f && fwrite(bytes, 1, sizeof bytes, f) == sizeof bytes && fclose(f) == 0);
    check_refused(s.path, "256 different bytes");
    check_refused("/tmp", "directory");
    unlink(s.path);
    check_refused(s.path, "No such file");
    scene_close(&s);
}

TEST_SUITE(text) = {TEST(parts_do_not_overlap), TEST(groups_follow_the_text), TEST(score_is_in_bits),
                    TEST(bad_files_are_refused), TEST_END};
