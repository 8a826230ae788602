#include "train/checkpoint.h"
#include "base/bytes.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#define MAGIC "SLEETCKP"
#define MAGIC_BYTES 8
#define VERSION 2
#define HEADER_BYTES 40
#define PART_BYTES_MAX (UINT64_C(1) << 48)
#define SUM_BYTES 8
#define START_ANEW "start anew with another --checkpoint"

static bool fail(char *error, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool fail(char *error, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(error, CHECKPOINT_ERROR_MAX, format, args);
    va_end(args);
    return false;
}

/* ---- one file as bytes ------------------------------------------------------------- */

struct header {
    uint32_t version, settings, parts;
    uint64_t step, drawn, bytes[CHECKPOINT_PARTS_MAX];
};

static uint8_t *encode(const struct checkpoint *c, size_t *bytes)
{
    size_t settings = strlen(c->settings);
    *bytes = HEADER_BYTES + c->parts * sizeof(uint64_t) + settings + SUM_BYTES;
    for (uint32_t i = 0; i < c->parts; i++)
        *bytes += c->part[i].bytes;
    uint8_t *data = malloc(*bytes);
    if (!data)
        return NULL;
    byte_writer w = writer_of(data, *bytes);
    put_bytes(&w, MAGIC, MAGIC_BYTES);
    put_u32(&w, VERSION);
    put_u32(&w, (uint32_t)settings);
    put_u32(&w, c->parts);
    put_u32(&w, 0);
    put_u64(&w, c->step);
    put_u64(&w, c->drawn);
    for (uint32_t i = 0; i < c->parts; i++)
        put_u64(&w, c->part[i].bytes);
    put_bytes(&w, c->settings, settings);
    for (uint32_t i = 0; i < c->parts; i++)
        put_bytes(&w, c->part[i].data, c->part[i].bytes);
    put_u64(&w, XXH3_64bits(data, w.len));
    return data;
}

static struct header header_of(byte_reader *r)
{
    struct header h = {.version = get_u32(r), .settings = get_u32(r)};
    h.parts = get_u32(r);
    get_u32(r);
    h.step = get_u64(r);
    h.drawn = get_u64(r);
    for (uint32_t i = 0; i < h.parts && i < CHECKPOINT_PARTS_MAX; i++)
        h.bytes[i] = get_u64(r);
    return h;
}

/* Bytes that the header promises; 0 when it cannot be. */
static uint64_t promised(const struct header *h)
{
    if (h->settings > CHECKPOINT_SETTINGS_MAX || h->parts > CHECKPOINT_PARTS_MAX)
        return 0;
    uint64_t sum = HEADER_BYTES + h->parts * sizeof(uint64_t) + h->settings + SUM_BYTES;
    for (uint32_t i = 0; i < h->parts; i++) {
        if (h->bytes[i] > PART_BYTES_MAX)
            return 0;
        sum += h->bytes[i];
    }
    return sum;
}

static bool begins(const char *line, int len, const char *with)
{
    return with && len >= (int)strlen(with) && memcmp(line, with, strlen(with)) == 0;
}

/* Say which line of the settings differs first, but for the one that may.  `was` need not end
 * in NUL. */
static bool compare(const char *path, const char *was, size_t was_len, struct checkpoint *c, char *error)
{
    const char *end = was + was_len, *now = c->settings;
    if (was_len == strlen(now) && memcmp(was, now, was_len) == 0)
        return true;
    while (was < end && *now) {
        const char *lf = memchr(was, '\n', (size_t)(end - was));
        int was_line = (int)((lf ? lf : end) - was), now_line = (int)strcspn(now, "\n");
        bool same = was_line == now_line && memcmp(was, now, (size_t)was_line) == 0;
        if (!same && begins(was, was_line, c->may_differ) && begins(now, now_line, c->may_differ))
            snprintf(c->differs, sizeof c->differs, "%.*s", was_line, was);
        else if (!same)
            return fail(error,
                        "%s was written with %.*s, this run has %.*s; give the same "
                        "options and data, or " START_ANEW,
                        path, was_line, was, now_line, now);
        was += was_line + (lf != NULL);
        now += now_line + (now[now_line] != '\0');
    }
    if (was == end && !*now)
        return true;
    return fail(error, "%s was written with other settings; " START_ANEW, path);
}

/* Of each part its size, and room where any will do; nothing is changed where one does not fit. */
static bool fit_parts(const char *path, const struct header *h, const struct checkpoint *c,
                      void *room[CHECKPOINT_PARTS_MAX], char *error)
{
    if (h->parts != c->parts)
        return fail(error, "%s holds %u parts, this run %u; " START_ANEW, path, h->parts, c->parts);
    for (uint32_t i = 0; i < c->parts; i++) {
        const struct checkpoint_part *p = &c->part[i];
        if (!p->any && h->bytes[i] != p->bytes)
            return fail(error, "%s holds %llu bytes of %s, this run %zu; " START_ANEW, path,
                        (unsigned long long)h->bytes[i], p->name, p->bytes);
        if (p->any && !(room[i] = malloc(h->bytes[i] + 1)))
            return fail(error, "no memory for %s of %s", p->name, path);
    }
    return true;
}

static bool take_parts(const char *path, byte_reader *r, const struct header *h, struct checkpoint *c, char *error)
{
    void *room[CHECKPOINT_PARTS_MAX] = {NULL};
    if (!fit_parts(path, h, c, room, error)) {
        for (uint32_t i = 0; i < CHECKPOINT_PARTS_MAX; i++)
            free(room[i]);
        return false;
    }
    for (uint32_t i = 0; i < c->parts; i++) {
        struct checkpoint_part *p = &c->part[i];
        p->data = p->any ? room[i] : p->data;
        p->bytes = h->bytes[i];
        if (p->bytes)
            memcpy(p->data, get_bytes(r, p->bytes), p->bytes);
    }
    return true;
}

static bool decode(const char *path, const uint8_t *data, size_t bytes, struct checkpoint *c,
                   char *error)
{
    if (bytes < MAGIC_BYTES || memcmp(data, MAGIC, MAGIC_BYTES) != 0)
        return fail(error,
                    "%s is not a checkpoint of sleet-train; name another file, or " START_ANEW,
                    path);
    if (bytes < HEADER_BYTES + SUM_BYTES)
        return fail(
            error,
            "%s is truncated: %zu bytes are less than a header; take an older copy, or " START_ANEW,
            path, bytes);
    byte_reader r = reader_of(data + MAGIC_BYTES, bytes - MAGIC_BYTES - SUM_BYTES);
    struct header h = header_of(&r);
    if (h.version != VERSION)
        return fail(error,
                    "%s has format %u, this sleet-train reads format %d; resume with the "
                    "version that wrote it, or " START_ANEW,
                    path, h.version, VERSION);
    uint64_t size = promised(&h);
    if (!r.ok || size > bytes)
        return fail(error,
                    "%s is truncated: %zu bytes where its header promises %llu; take an older "
                    "copy, or " START_ANEW,
                    path, bytes, (unsigned long long)size);
    if (size != bytes ||
        le_load(data + bytes - SUM_BYTES, SUM_BYTES) != XXH3_64bits(data, bytes - SUM_BYTES))
        return fail(error,
                    "%s is damaged: its checksum does not match its bytes; take an older "
                    "copy, or " START_ANEW,
                    path);
    const char *settings = (const char *)get_bytes(&r, h.settings);
    if (!settings || !compare(path, settings, h.settings, c, error))
        return false;
    if (!take_parts(path, &r, &h, c, error))
        return false;
    c->step = h.step;
    c->drawn = h.drawn;
    return true;
}

/* ---- the file ---------------------------------------------------------------------- */

static bool write_all(int fd, const uint8_t *data, size_t bytes)
{
    while (bytes) {
        ssize_t n = write(fd, data, bytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        data += n;
        bytes -= (size_t)n;
    }
    return fsync(fd) == 0;
}

/* A rename has reached the disk once its folder has. */
static bool sync_folder(const char *path)
{
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    if (!slash)
        snprintf(folder, sizeof folder, ".");
    else
        snprintf(folder, sizeof folder, "%.*s", (int)(slash - path) + 1, path);
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool ok = fd >= 0 && fsync(fd) == 0;
    if (fd >= 0)
        close(fd);
    return ok;
}

/* The empty file PATH.tmp, locked: what a killed process left there is used again, and two
 * that were given the same path do not mix.  -1 with errno. */
static int open_part(const char *part)
{
    struct stat at_name, at_fd;
    for (;;) {
        int fd = open(part, O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW, 0666);
        if (fd < 0)
            return -1;
        if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
            bool same = fstat(fd, &at_fd) == 0 && stat(part, &at_name) == 0 &&
                        at_fd.st_ino == at_name.st_ino;
            if (same && ftruncate(fd, 0) == 0)
                return fd;
            close(fd);
            if (same)
                return -1;
            continue; /* another process renamed it in between */
        }
        close(fd);
        errno = EBUSY;
        return -1;
    }
}

static bool replace(const char *path, const uint8_t *data, size_t bytes, char *error)
{
    char part[PATH_MAX];
    if (snprintf(part, sizeof part, "%s.tmp", path) >= (int)sizeof part)
        return fail(error, "the checkpoint's path is too long");
    int fd = open_part(part);
    if (fd < 0 && errno == EBUSY)
        return fail(error,
                    "another process is writing the checkpoint %s; give each node a file of "
                    "its own",
                    path);
    bool ok = fd >= 0 && write_all(fd, data, bytes) && rename(part, path) == 0 && sync_folder(path);
    if (!ok)
        fail(error, "cannot write the checkpoint %s: %s; name a file that can be written", path,
             strerror(errno));
    if (fd >= 0) {
        if (!ok)
            unlink(part);
        close(fd);
    }
    return ok;
}

bool checkpoint_write(const char *path, const struct checkpoint *c,
                      char error[static CHECKPOINT_ERROR_MAX])
{
    size_t bytes;
    uint8_t *data = encode(c, &bytes);
    bool ok = data ? replace(path, data, bytes, error)
                   : fail(error, "no memory for the checkpoint %s", path);
    free(data);
    return ok;
}

bool checkpoint_read(const char *path, struct checkpoint *c,
                     char error[static CHECKPOINT_ERROR_MAX])
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe is refused, not awaited */
    if (fd < 0 || fstat(fd, &st) != 0) {
        fail(error, "cannot resume from %s: %s; name another file, or " START_ANEW, path,
             strerror(errno));
        if (fd >= 0)
            close(fd);
        return false;
    }
    if (!S_ISREG(st.st_mode)) {
        close(fd);
        return fail(error, "%s is no file; name another one, or " START_ANEW, path);
    }
    size_t bytes = (size_t)st.st_size, have = 0;
    uint8_t *data = malloc(bytes + 1);
    while (data && have < bytes) {
        ssize_t n = read(fd, data + have, bytes - have);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        have += (size_t)n;
    }
    close(fd);
    bool ok = data ? decode(path, data, have, c, error) : fail(error, "no memory to read %s", path);
    free(data);
    return ok;
}
