/* text.c - a text as a dataset: windows of TEXT_CONTEXT characters, the classes are the bytes that
 * the text has.
 *
 * It is cut into blocks of windows one after another; the windows of every tenth block are for
 * testing, so that both parts are of the same kind.  For shards a window's group is the tenth of the
 * text in which it lies: shards by label are stretches of the text. */
#include "train/data.h"
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#define BLOCK_WINDOWS 64 /* less in a short text */
#define TEST_EVERY 10    /* blocks */
#define TEST_WINDOWS 512 /* at most, spread over the text: more only cost time */
#define GROUPS 10
#define BYTES_MAX (1u << 30)

/* Debian's bible-kjv: the text without the verses' numbers. */
#define PROGRAM "bible -f Gen1:1-Rev22:21 </dev/null 2>/dev/null | cut -d' ' -f2-"

__attribute__((format(printf, 2, 3))) static bool fail(char *error, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(error, DATA_ERROR_MAX, format, args);
    va_end(args);
    return false;
}

/* ---- reading ----------------------------------------------------------------------- */

static bool read_all(FILE *file, const char *name, struct text *t, char *error)
{
    for (size_t room = 0;;) {
        if (t->length == room) {
            room = room ? 2 * room : 1u << 20;
            uint8_t *larger = realloc(t->symbol, room);
            if (!larger)
                return fail(error, "%.300s: out of memory", name);
            t->symbol = larger;
        }
        size_t got = fread(t->symbol + t->length, 1, room - t->length, file);
        t->length += got;
        if (t->length > BYTES_MAX)
            return fail(error, "%.300s: holds more than %u bytes; name a smaller text", name, BYTES_MAX);
        if (got == 0 && ferror(file))
            return fail(error, "%.300s: cannot be read: %s; name a text file with --data", name, strerror(errno));
        if (got == 0)
            return true;
    }
}

static bool read_text(const char *path, struct text *t, char *error)
{
    FILE *file = path ? fopen(path, "rb") : popen(PROGRAM, "r");
    if (!file)
        return fail(error, "%.300s: %s; name a text file with --data", path ? path : "bible",
                    strerror(errno));
    bool ok = read_all(file, path ? path : "bible", t, error);
    if (path)
        fclose(file);
    else
        pclose(file);
    if (ok && !path && t->length == 0)
        return fail(error, "the program bible gives no text; install the package bible-kjv, or name "
                           "a text file with --data");
    return ok;
}

/* Bytes become classes, in the order of the bytes. */
static uint32_t number_bytes(struct text *t)
{
    uint8_t number[256] = {0};
    uint32_t classes = 0;
    for (size_t i = 0; i < t->length; i++)
        number[t->symbol[i]] = 1;
    for (int b = 0; b < 256; b++)
        if (number[b])
            number[b] = (uint8_t)classes++;
    for (size_t i = 0; i < t->length; i++)
        t->symbol[i] = number[t->symbol[i]];
    return classes;
}

/* ---- parts -------------------------------------------------------------------------- */

/* The i-th window of a part, in the order of the text. */
static uint32_t window_of(const struct text *t, enum data_part part, uint32_t i)
{
    if (part == DATA_TEST)
        i *= t->test_stride;
    uint32_t block = i / t->block, in = i % t->block;
    if (part == DATA_TEST)
        block = block * TEST_EVERY + TEST_EVERY - 1;
    else
        block += block / (TEST_EVERY - 1);
    return block * t->block + in;
}

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static bool cut(struct dataset *d, uint32_t limit, const char *name, char *error)
{
    struct text *t = &d->text;
    uint32_t windows = t->length ? (uint32_t)((t->length - 1) / TEXT_CONTEXT) : 0;
    t->block = least(windows / TEST_EVERY, BLOCK_WINDOWS);
    if (t->block == 0)
        return fail(error, "%.300s: holds %zu characters, fewer than the %d for ten windows; name a longer text",
                    name, t->length, TEST_EVERY * TEXT_CONTEXT + 1);
    uint32_t blocks = windows / t->block, tests = blocks / TEST_EVERY * t->block;
    t->test_stride = (tests + TEST_WINDOWS - 1) / TEST_WINDOWS;
    d->count[DATA_TEST] = tests / t->test_stride;
    d->count[DATA_TRAIN] = (blocks - blocks / TEST_EVERY) * t->block;
    d->group = malloc(d->count[DATA_TRAIN]);
    if (!d->group)
        return fail(error, "%.300s: out of memory", name);
    for (uint32_t i = 0; i < d->count[DATA_TRAIN]; i++)
        d->group[i] = (uint8_t)((uint64_t)i * GROUPS / d->count[DATA_TRAIN]);
    for (int part = 0; limit > 0 && part < 2; part++)
        d->count[part] = least(d->count[part], limit);
    return true;
}

static void text_free(struct dataset *d)
{
    free(d->text.symbol);
    free(d->group);
}

static bool text_load(struct dataset *d, const char *path, uint32_t limit,
                      char error[static DATA_ERROR_MAX])
{
    const char *name = path ? path : "bible";
    bool ok = read_text(path, &d->text, error);
    if (ok) {
        d->rows = 1;
        d->columns = d->targets = TEXT_CONTEXT;
        d->classes = number_bytes(&d->text);
        d->groups = GROUPS;
        if (d->classes < 2 || d->classes > TEXT_CLASSES_MAX)
            ok = fail(error, "%.300s: has %u different bytes, outside 2 to %d; name a text in ASCII (iconv -t ASCII//TRANSLIT)",
                      name, d->classes, TEXT_CLASSES_MAX);
    }
    ok = ok && cut(d, limit, name, error);
    if (!ok)
        text_free(d);
    return ok;
}

static void text_sample(const struct dataset *d, enum data_part part, uint32_t i, float *x,
                        uint8_t *target)
{
    const uint8_t *at = d->text.symbol + (size_t)window_of(&d->text, part, i) * TEXT_CONTEXT;
    for (uint32_t k = 0; k < TEXT_CONTEXT; k++)
        x[k] = at[k];
    memcpy(target, at + 1, TEXT_CONTEXT);
}

static uint64_t text_checksum(const struct dataset *d)
{
    return XXH3_64bits(d->text.symbol, d->text.length);
}

static double bits_per_character(double loss, uint64_t right, uint64_t count)
{
    (void)right;
    (void)count;
    return loss / log(2);
}

const struct data_kind data_text = {.metric = "bits_per_char",
                                    .text = "bits per character",
                                    .unit = "",
                                    .scale = 1,
                                    .digits = 3,
                                    .less_is_better = true,
                                    .batch = 16,
                                    .test_batch = 16,
                                    .load = text_load,
                                    .free = text_free,
                                    .sample = text_sample,
                                    .checksum = text_checksum,
                                    .score = bits_per_character};
