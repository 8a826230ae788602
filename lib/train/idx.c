#include "train/idx.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

#define MAGIC_IMAGES 0x00000803u
#define MAGIC_LABELS 0x00000801u
#define IMAGES_HEADER 16
#define LABELS_HEADER 8

struct bytes {
    uint8_t *data;
    size_t len, room;
};

__attribute__((format(printf, 2, 3))) static bool fail(char *error, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(error, IDX_ERROR_MAX, format, args);
    va_end(args);
    return false;
}

static uint32_t big_endian(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static bool check_header(const uint8_t *data, size_t bytes, size_t header, uint32_t magic,
                         char *error)
{
    if (bytes < header)
        return fail(error, "holds %zu bytes, less than the %zu of an IDX header", bytes, header);
    if (big_endian(data) != magic)
        return fail(error, "has the magic number 0x%08x instead of 0x%08x", big_endian(data),
                    magic);
    return true;
}

static bool check_length(uint64_t promised, size_t bytes, char *error)
{
    if (promised != bytes)
        return fail(error, "holds %zu bytes where its header promises %llu", bytes,
                    (unsigned long long)promised);
    return true;
}

bool idx_decode_images(const uint8_t *data, size_t bytes, uint32_t *count, uint32_t *rows,
                       uint32_t *columns, char error[static IDX_ERROR_MAX])
{
    if (!check_header(data, bytes, IMAGES_HEADER, MAGIC_IMAGES, error))
        return false;
    uint64_t n = big_endian(data + 4), high = big_endian(data + 8), wide = big_endian(data + 12);
    if (n == 0)
        return fail(error, "holds no images");
    if (high == 0 || wide == 0 || high > 4096 || wide > 4096)
        return fail(error, "has images of %llu x %llu pixels, outside 1 x 1 to 4096 x 4096",
                    (unsigned long long)high, (unsigned long long)wide);
    if (!check_length(IMAGES_HEADER + n * high * wide, bytes, error))
        return false;
    *count = (uint32_t)n;
    *rows = (uint32_t)high;
    *columns = (uint32_t)wide;
    return true;
}

bool idx_decode_labels(const uint8_t *data, size_t bytes, uint32_t *count,
                       char error[static IDX_ERROR_MAX])
{
    if (!check_header(data, bytes, LABELS_HEADER, MAGIC_LABELS, error))
        return false;
    uint32_t n = big_endian(data + 4);
    if (!check_length(LABELS_HEADER + (uint64_t)n, bytes, error))
        return false;
    for (uint32_t i = 0; i < n; i++)
        if (data[LABELS_HEADER + i] >= IDX_CLASSES)
            return fail(error, "has the label %u at sample %u, outside 0 to %d",
                        data[LABELS_HEADER + i], i, IDX_CLASSES - 1);
    *count = n;
    return true;
}

static bool grow(struct bytes *b)
{
    size_t room = b->room ? b->room * 2 : 1u << 16;
    uint8_t *data = realloc(b->data, room);
    if (!data)
        return false;
    b->data = data;
    b->room = room;
    return true;
}

/* Read all of an open file, unpacking it if it is packed. */
static bool read_all(gzFile file, const char *path, struct bytes *out, char *error)
{
    for (;;) {
        if (out->len == out->room && !grow(out))
            return fail(error, "%s: out of memory", path);
        size_t want = out->room - out->len < 1u << 20 ? out->room - out->len : 1u << 20;
        int got = gzread(file, out->data + out->len, (unsigned)want);
        int code;
        const char *text = gzerror(file, &code);
        if (code == Z_BUF_ERROR)
            return fail(error, "%s: the gzip file is truncated", path);
        if (got < 0)
            return fail(error, "%s: cannot be read: %s", path,
                        code == Z_ERRNO ? strerror(errno) : text);
        if (got == 0)
            return true;
        out->len += (size_t)got;
        if (out->len > IDX_BYTES_MAX)
            return fail(error, "%s: unpacks to more than %u bytes", path, IDX_BYTES_MAX);
    }
}

/* Find NAME or NAME.gz in the folder and read it; `path` tells which. */
static bool read_file(const char *folder, const char *name, struct bytes *out, char *path,
                      size_t path_room, char *error)
{
    *out = (struct bytes){0};
    static const char *const endings[] = {".gz", ""};
    for (size_t i = 0; i < 2; i++) {
        int len = snprintf(path, path_room, "%s/%s%s", folder, name, endings[i]);
        if (len < 0 || (size_t)len >= path_room)
            return fail(error, "%.100s...: the folder's name is too long", folder);
        gzFile file = gzopen(path, "rb");
        if (!file && errno == ENOENT)
            continue;
        if (!file)
            return fail(error, "%s: %s", path, strerror(errno));
        bool ok = read_all(file, path, out, error);
        gzclose_r(file);
        return ok;
    }
    return fail(error, "%s: holds no %s or %s.gz; put the IDX files there or name another folder",
                folder, name, name);
}

/* Make the bytes after the header the caller's own. */
static void take(struct bytes *from, size_t header, size_t bytes, uint8_t **out)
{
    memmove(from->data, from->data + header, bytes);
    uint8_t *smaller = realloc(from->data, bytes);
    *out = smaller ? smaller : from->data;
    from->data = NULL;
}

static bool load_part(struct idx_samples *out, const char *folder, const char *part, uint32_t limit,
                      char *error)
{
    char image_name[64], label_name[64], image_path[256], label_path[256];
    char why[IDX_ERROR_MAX];
    snprintf(image_name, sizeof image_name, "%s-images-idx3-ubyte", part);
    snprintf(label_name, sizeof label_name, "%s-labels-idx1-ubyte", part);
    struct bytes images = {0}, labels = {0};
    uint32_t count = 0, label_count = 0, rows = 0, columns = 0;
    bool ok = read_file(folder, image_name, &images, image_path, sizeof image_path, error) &&
              read_file(folder, label_name, &labels, label_path, sizeof label_path, error);
    if (ok && !idx_decode_images(images.data, images.len, &count, &rows, &columns, why))
        ok = fail(error, "%s: %.240s", image_path, why);
    if (ok && !idx_decode_labels(labels.data, labels.len, &label_count, why))
        ok = fail(error, "%s: %.240s", label_path, why);
    if (ok && count != label_count)
        ok = fail(error, "%s: %u images in %s but %u labels in %s", folder, count, image_name,
                  label_count, label_name);
    if (ok) {
        if (limit > 0 && count > limit)
            count = limit;
        out->count = count;
        out->rows = rows;
        out->columns = columns;
        out->features = rows * columns;
        take(&images, IMAGES_HEADER, (size_t)count * out->features, &out->pixel);
        take(&labels, LABELS_HEADER, count, &out->label);
    }
    free(images.data);
    free(labels.data);
    return ok;
}

bool idx_load(struct idx_dataset *out, const char *folder, uint32_t limit,
              char error[static IDX_ERROR_MAX])
{
    *out = (struct idx_dataset){0};
    struct stat st;
    bool ok = true;
    if (stat(folder, &st) != 0)
        ok = fail(error, "%.300s: %s", folder, strerror(errno));
    else if (!S_ISDIR(st.st_mode))
        ok = fail(error, "%.300s: not a folder", folder);
    ok = ok && load_part(&out->train, folder, "train", limit, error) &&
         load_part(&out->test, folder, "t10k", limit, error);
    if (ok && (out->train.rows != out->test.rows || out->train.columns != out->test.columns))
        ok = fail(error, "%.300s: training images have %u x %u pixels, test images %u x %u", folder,
                  out->train.rows, out->train.columns, out->test.rows, out->test.columns);
    if (!ok)
        idx_free(out);
    return ok;
}

static void free_part(struct idx_samples *s)
{
    free(s->pixel);
    free(s->label);
    *s = (struct idx_samples){0};
}

void idx_free(struct idx_dataset *d)
{
    free_part(&d->train);
    free_part(&d->test);
}

void idx_image(const struct idx_samples *s, uint32_t i, float *out)
{
    const uint8_t *pixel = s->pixel + (size_t)i * s->features;
    for (uint32_t k = 0; k < s->features; k++)
        out[k] = (float)pixel[k] * (1.0f / 255.0f);
}
