#include "sleet_test.h"
#include "train/checkpoint.h"
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

enum { NUMBERS = 3, ELEMENTS = 5, BYTES_MAX = 1024 };

#define SETTINGS "model = MLP 2-3\nbatch = 64\nlr = 0.1\n"

/* A folder with the file `path`, and a state to put there. */
struct scene {
    char folder[64], path[96];
    double number[NUMBERS];
    float params[ELEMENTS], momentum[ELEMENTS];
    struct checkpoint state;
};

static bool scene_open(struct scene *s)
{
    *s = (struct scene){.number = {1, -0.5, 1e300},
                        .params = {1, 2, -3, 0.25f, 1e-30f},
                        .momentum = {0, -0.0f, 7, 8, 9}};
    s->state = (struct checkpoint){.settings = SETTINGS,
                                   .step = 41,
                                   .drawn = UINT64_C(1) << 40,
                                   .part = {{"numbers", s->number, sizeof s->number, false},
                                            {"params", s->params, sizeof s->params, false},
                                            {"momentum", s->momentum, sizeof s->momentum, false}},
                                   .parts = 3};
    snprintf(s->folder, sizeof s->folder, "/tmp/sleet-checkpoint-XXXXXX");
    if (!mkdtemp(s->folder))
        return false;
    snprintf(s->path, sizeof s->path, "%s/a.ckpt", s->folder);
    return true;
}

static void scene_close(const struct scene *s)
{
    unlink(s->path);
    CHECK(rmdir(s->folder) == 0); /* nothing else was left there */
}

static size_t slurp(const char *path, uint8_t out[BYTES_MAX])
{
    FILE *f = fopen(path, "rb");
    size_t n = f ? fread(out, 1, BYTES_MAX, f) : 0;
    if (f)
        fclose(f);
    return n;
}

static void spill(const char *path, const uint8_t *data, size_t bytes)
{
    FILE *f = fopen(path, "wb");
    CHECK(f && fwrite(data, 1, bytes, f) == bytes && fclose(f) == 0);
}

static void write_good(const struct scene *s)
{
    char error[CHECKPOINT_ERROR_MAX] = "";
    if (!CHECK(checkpoint_write(s->path, &s->state, error)))
        printf("    the sentence is: %s\n", error);
}

/* Another run's state of the same shape. */
struct other {
    double number[NUMBERS];
    float params[ELEMENTS], momentum[ELEMENTS];
    struct checkpoint state;
};

static void other_init(struct other *o)
{
    memset(o, 0x55, sizeof *o);
    o->state = (struct checkpoint){.settings = SETTINGS,
                                   .step = 3,
                                   .drawn = 4,
                                   .part = {{"numbers", o->number, sizeof o->number, false},
                                            {"params", o->params, sizeof o->params, false},
                                            {"momentum", o->momentum, sizeof o->momentum, false}},
                                   .parts = 3};
}

/* Reading the file fails with a sentence that names it and holds `part`; nothing is touched. */
static void check_refused_with(const char *path, struct other *o, const char *part)
{
    struct other before = *o;
    char error[CHECKPOINT_ERROR_MAX] = "";
    CHECK(!checkpoint_read(path, &o->state, error));
    if (!CHECK(strstr(error, part) != NULL && strstr(error, path) != NULL))
        printf("    the sentence is: %s\n", error);
    CHECK_MEM(o, &before, sizeof before);
}

static void check_refused(const struct scene *s, const char *part)
{
    struct other o;
    other_init(&o);
    check_refused_with(s->path, &o, part);
}

static void what_is_written_is_read(void)
{
    struct scene s;
    struct other o;
    char error[CHECKPOINT_ERROR_MAX] = "";
    REQUIRE(scene_open(&s));
    write_good(&s);
    other_init(&o);
    CHECK(checkpoint_read(s.path, &o.state, error));
    CHECK_EQ(o.state.step, 41);
    CHECK_EQ(o.state.drawn, UINT64_C(1) << 40);
    CHECK_MEM(o.number, s.number, sizeof s.number);
    CHECK_MEM(o.params, s.params, sizeof s.params);
    CHECK_MEM(o.momentum, s.momentum, sizeof s.momentum);
    s.params[0] = 11;
    s.state.step = 42;
    write_good(&s); /* over the old one */
    CHECK(checkpoint_read(s.path, &o.state, error));
    CHECK(o.params[0] == 11 && o.state.step == 42);
    scene_close(&s);
}

static void every_truncation_is_refused(void)
{
    struct scene s;
    uint8_t data[BYTES_MAX];
    REQUIRE(scene_open(&s));
    write_good(&s);
    size_t bytes = slurp(s.path, data);
    CHECK_EQ(bytes, 40 + 3 * 8 + strlen(SETTINGS) + 8 * NUMBERS + 2 * 4 * ELEMENTS + 8);
    for (size_t n = 0; n < bytes; n++) {
        spill(s.path, data, n);
        check_refused(&s, n < 8 ? "is not a checkpoint" : "is truncated");
    }
    scene_close(&s);
}

static void every_changed_byte_is_refused(void)
{
    struct scene s;
    uint8_t data[BYTES_MAX];
    REQUIRE(scene_open(&s));
    write_good(&s);
    size_t bytes = slurp(s.path, data);
    for (size_t i = 0; i < bytes; i++) {
        data[i] ^= 0x10;
        spill(s.path, data, bytes);
        check_refused(&s, i < 8 ? "is not a checkpoint" : i < 12 ? "has format" : "is ");
        data[i] ^= 0x10;
    }
    data[bytes] = 0;
    spill(s.path, data, bytes + 1);
    check_refused(&s, "is damaged");
    scene_close(&s);
}

static void other_formats_and_files_are_refused(void)
{
    struct scene s;
    uint8_t data[BYTES_MAX];
    char path[128];
    struct other o;
    REQUIRE(scene_open(&s));
    write_good(&s);
    size_t bytes = slurp(s.path, data);
    data[8] = 1; /* an earlier version, whole */
    XXH64_hash_t sum = XXH3_64bits(data, bytes - 8);
    memcpy(data + bytes - 8, &sum, 8);
    spill(s.path, data, bytes);
    check_refused(&s, "has format 1, this sleet-train reads format 2");
    spill(s.path, (const uint8_t *)"GIF89a, certainly no checkpoint", 31);
    check_refused(&s, "is not a checkpoint of sleet-train");
    other_init(&o);
    snprintf(path, sizeof path, "%s/none", s.folder);
    check_refused_with(path, &o, "No such file");
    check_refused_with(s.folder, &o, "is no file");
    scene_close(&s);
}

static void other_settings_are_named(void)
{
    static const struct {
        const char *settings, *part;
    } cases[] = {
        {"model = MLP 2-3\nbatch = 32\nlr = 0.1\n", "with batch = 64, this run has batch = 32"},
        {"model = MLP 2-3\nbatch = 64\nlr = 0.11\n", "with lr = 0.1, this run has lr = 0.11"},
        {"model = CNN\nbatch = 64\nlr = 0.1\n", "with model = MLP 2-3, this run has model = CNN"},
        {"model = MLP 2-3\nbatch = 64\n", "with other settings"},
        {SETTINGS "more = 1\n", "with other settings"},
        {"", "with other settings"},
    };
    struct scene s;
    struct other o;
    REQUIRE(scene_open(&s));
    write_good(&s);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        other_init(&o);
        o.state.settings = cases[i].settings;
        check_refused_with(s.path, &o, cases[i].part);
    }
    other_init(&o);
    o.state.part[2].bytes -= 4;
    check_refused_with(s.path, &o, "holds 20 bytes of momentum, this run 16");
    other_init(&o);
    o.state.part[0].any = true; /* is not kept where another part does not fit */
    o.state.part[2].bytes += 4;
    check_refused_with(s.path, &o, "holds 20 bytes of momentum, this run 24");
    other_init(&o);
    o.state.parts = 2;
    check_refused_with(s.path, &o, "holds 3 parts, this run 2");
    scene_close(&s);
}

/* A part of any size is what was written, also nothing. */
static void a_part_may_have_any_size(void)
{
    struct scene s;
    struct other o;
    char error[CHECKPOINT_ERROR_MAX] = "";
    REQUIRE(scene_open(&s));
    for (size_t bytes = 0; bytes <= sizeof s.momentum; bytes += 4) {
        s.state.part[2].bytes = bytes;
        s.state.part[2].data = bytes ? s.momentum : NULL;
        write_good(&s);
        other_init(&o);
        o.state.part[2] = (struct checkpoint_part){.name = "momentum", .any = true};
        CHECK(checkpoint_read(s.path, &o.state, error));
        CHECK_EQ(o.state.part[2].bytes, bytes);
        CHECK_MEM(o.state.part[2].data, s.momentum, bytes);
        CHECK_MEM(o.params, s.params, sizeof s.params);
        free(o.state.part[2].data);
    }
    scene_close(&s);
}

/* A write that fails leaves the old file and no other. */
/* One line may be another's, which is told; the others may not, before it and after. */
static void one_line_may_differ(void)
{
    struct scene s;
    struct other o;
    char error[CHECKPOINT_ERROR_MAX] = "";
    REQUIRE(scene_open(&s));
    write_good(&s);
    other_init(&o);
    o.state.settings = "model = MLP 2-3\nbatch = 128\nlr = 0.1\n";
    o.state.may_differ = "batch = ";
    CHECK(checkpoint_read(s.path, &o.state, error));
    CHECK_STR(o.state.differs, "batch = 64");
    CHECK_EQ(o.state.step, 41);
    o.state.settings = "model = MLP 2-3\nbatch = 128\nlr = 0.2\n";
    CHECK(!checkpoint_read(s.path, &o.state, error));
    CHECK(strstr(error, "this run has lr = 0.2") != NULL);
    o.state.settings = "model = CNN\nbatch = 128\nlr = 0.1\n";
    CHECK(!checkpoint_read(s.path, &o.state, error));
    o.state.settings = "model = MLP 2-3\nbatch = 128\n";
    CHECK(!checkpoint_read(s.path, &o.state, error));
    other_init(&o);
    o.state.may_differ = "batch = ";
    CHECK(checkpoint_read(s.path, &o.state, error));
    CHECK_STR(o.state.differs, "");
    scene_close(&s);
}

static void a_failed_write_loses_nothing(void)
{
    struct scene s;
    uint8_t before[BYTES_MAX], after[BYTES_MAX];
    char path[128], error[CHECKPOINT_ERROR_MAX] = "";
    REQUIRE(scene_open(&s));
    snprintf(path, sizeof path, "%s/none/a.ckpt", s.folder);
    CHECK(!checkpoint_write(path, &s.state, error));
    CHECK(strstr(error, path) && strstr(error, "No such file"));
    write_good(&s);
    size_t bytes = slurp(s.path, before);
    snprintf(path, sizeof path, "%s.tmp", s.path);
    CHECK(mkdir(path, 0700) == 0); /* the new file cannot be made */
    s.params[0] = 12;
    CHECK(!checkpoint_write(s.path, &s.state, error));
    CHECK(strstr(error, s.path) != NULL);
    CHECK(rmdir(path) == 0);
    CHECK_EQ(slurp(s.path, after), bytes);
    CHECK_MEM(after, before, bytes);
    unlink(s.path);
    CHECK(mkdir(s.path, 0700) == 0); /* the rename fails */
    CHECK(!checkpoint_write(s.path, &s.state, error));
    CHECK(rmdir(s.path) == 0);
    scene_close(&s);
}

/* What a killed process left is used again; a process that is at it is not disturbed. */
static void the_temporary_file_is_one_writers(void)
{
    struct scene s;
    struct other o;
    char part[128], error[CHECKPOINT_ERROR_MAX] = "";
    uint8_t junk[BYTES_MAX] = {0};
    REQUIRE(scene_open(&s));
    snprintf(part, sizeof part, "%s.tmp", s.path);
    spill(part, junk, sizeof junk);
    write_good(&s);
    CHECK(access(part, F_OK) != 0);
    other_init(&o);
    CHECK(checkpoint_read(s.path, &o.state, error));
    int fd = open(part, O_WRONLY | O_CREAT, 0600);
    CHECK(fd >= 0 && flock(fd, LOCK_EX) == 0);
    CHECK(!checkpoint_write(s.path, &s.state, error));
    CHECK(strstr(error, "another process") != NULL && access(part, F_OK) == 0);
    close(fd);
    write_good(&s);
    scene_close(&s);
}

TEST_SUITE(checkpoint) = {
    TEST(what_is_written_is_read),           TEST(every_truncation_is_refused),
    TEST(every_changed_byte_is_refused),     TEST(other_formats_and_files_are_refused),
    TEST(other_settings_are_named),          TEST(a_part_may_have_any_size),
    TEST(one_line_may_differ),               TEST(a_failed_write_loses_nothing),
    TEST(the_temporary_file_is_one_writers), TEST_END};
