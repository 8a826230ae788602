/* keyfile.c - secrets in files. */
#define _GNU_SOURCE 1
#include "keyfile/keyfile.h"
#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINE_MAX_BYTES 128 /* more than any key file has */

static const struct row {
    const char *word, *name;
} rows[KEYFILE_KINDS] = {
#define X(kind, word, name) {word, name},
    KEYFILE_MAP(X)
#undef X
};

const char *keyfile_name(enum keyfile_kind kind) { return rows[kind].name; }

static bool refuse(char why[KEYFILE_WHY], const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static bool refuse(char why[KEYFILE_WHY], const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(why, KEYFILE_WHY, format, args);
    va_end(args);
    return false;
}

/* ---- keys ------------------------------------------------------------------ */

void keyfile_generate(uint8_t key[KEY_BYTES]) { randombytes_buf(key, KEY_BYTES); }

void keyfile_public(enum keyfile_kind kind, const uint8_t key[KEY_BYTES],
                    uint8_t out[KEY_BYTES])
{
    uint8_t pair[crypto_sign_SECRETKEYBYTES];
    if (kind == KEYFILE_OPERATOR)
        crypto_sign_seed_keypair(out, pair, key);
    else
        key_public(out, key);
    sodium_memzero(pair, sizeof pair);
}

void keyfile_fingerprint(char out[17], const uint8_t key[KEY_BYTES])
{
    static const uint8_t what[] = "sleet key fingerprint";
    uint8_t hash[crypto_generichash_BYTES];
    crypto_generichash(hash, sizeof hash, what, sizeof what, key, KEY_BYTES);
    sodium_bin2hex(out, 17, hash, 8);
}

/* ---- reading ------------------------------------------------------------------- */

/* The one place that says what file may hold a secret. */
static bool private_file(int fd, const char *path, uid_t reader, char why[KEYFILE_WHY])
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return refuse(why, "%s: %s", path, strerror(errno));
    if (!S_ISREG(st.st_mode))
        return refuse(why, "%s is %s, a key is in a regular file", path,
                      S_ISDIR(st.st_mode) ? "a folder" : "no file");
    if (st.st_uid != 0 && st.st_uid != reader)
        return refuse(why, "%s belongs to user %u, who can change it: a key file belongs to its "
                           "reader (user %u) or to root",
                      path, (unsigned)st.st_uid, (unsigned)reader);
    if (st.st_mode & 077)
        return refuse(why, "%s can be read or written by others (mode %03o): chmod 600 it, and "
                           "make a new key if others may have seen it",
                      path, (unsigned)st.st_mode & 0777);
    return true;
}

/* `line` without its end of line is "WORD DIGITS". */
static bool parse_line(enum keyfile_kind kind, char *line, const char *path, uint8_t *key, char *why)
{
    const char *word = rows[kind].word;
    size_t n = strlen(word), len = strcspn(line, "\n");
    bool one_line = line[len] == '\0' || line[len + 1] == '\0';
    line[len] = '\0';
    for (int k = 0; k < KEYFILE_KINDS; k++) {
        size_t other = strlen(rows[k].word);
        if (k != (int)kind && strncmp(line, rows[k].word, other) == 0 && line[other] == ' ')
            return refuse(why, "%s holds the %s key, the %s key is wanted here", path, rows[k].name,
                          rows[kind].name);
    }
    if (strncmp(line, word, n) != 0 || line[n] != ' ')
        return refuse(why, "%s is no key file: its one line begins with \"%s \"", path, word);
    if (!one_line || !key_parse(key, line + n + 1))
        return refuse(why, "%s is damaged: after \"%s \" come %d lower-case hexadecimal digits and "
                           "nothing else, here are %zu bytes",
                      path, word, KEY_DIGITS, strlen(line + n + 1));
    return true;
}

bool keyfile_read(enum keyfile_kind kind, const char *path, uid_t reader,
                  uint8_t key[KEY_BYTES], char why[KEYFILE_WHY])
{
    char line[LINE_MAX_BYTES + 1];
    size_t have = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY); /* a pipe must not hold us */
    if (fd < 0)
        return refuse(why, "cannot read the %s key %s: %s%s", rows[kind].name, path, strerror(errno),
                      errno == ENOENT ? "; sleetctl keygen makes one" : "");
    bool ok = private_file(fd, path, reader, why);
    for (ssize_t n = 1; ok && n != 0 && have < LINE_MAX_BYTES; have += (size_t)n) {
        n = read(fd, line + have, LINE_MAX_BYTES - have);
        if (n < 0) {
            ok = refuse(why, "cannot read %s: %s", path, strerror(errno));
            n = 0;
        }
    }
    close(fd);
    line[have] = '\0';
    ok = ok && parse_line(kind, line, path, key, why);
    sodium_memzero(line, sizeof line);
    return ok;
}

/* ---- writing --------------------------------------------------------------------- */

/* The folder that `path` is in. */
static void folder_of(const char *path, char out[KEYFILE_WHY / 2])
{
    const char *slash = strrchr(path, '/');
    int n = slash ? (int)(slash - path) : 1;
    snprintf(out, KEYFILE_WHY / 2, "%.*s", n ? n : 1, slash ? (n ? path : "/") : ".");
}

/* Whoever can write to the folder can put another file in the key's place. */
static bool private_folder(const char *path, char why[KEYFILE_WHY])
{
    char folder[KEYFILE_WHY / 2];
    struct stat st;
    if (strlen(path) >= sizeof folder)
        return refuse(why, "the path of the key has more than %zu bytes", sizeof folder - 1);
    folder_of(path, folder);
    if (stat(folder, &st) != 0)
        return refuse(why, "cannot write a key into %s: %s", folder, strerror(errno));
    if (!S_ISDIR(st.st_mode))
        return refuse(why, "cannot write a key into %s: it is no folder", folder);
    if (st.st_uid != 0 && st.st_uid != geteuid())
        return refuse(why, "the folder %s belongs to user %u, who could exchange a key in it: write "
                           "it as that user",
                      folder, (unsigned)st.st_uid);
    if ((st.st_mode & 022) && !(st.st_mode & S_ISVTX))
        return refuse(why, "the folder %s can be written by others (mode %03o), who could exchange a "
                           "key in it: chmod go-w it",
                      folder, (unsigned)st.st_mode & 0777);
    return true;
}

static bool write_line(int fd, enum keyfile_kind kind, const uint8_t key[KEY_BYTES])
{
    char line[LINE_MAX_BYTES], digits[KEY_DIGITS + 1];
    key_format(digits, key);
    int n = snprintf(line, sizeof line, "%s %s\n", rows[kind].word, digits);
    bool ok = fchmod(fd, 0600) == 0 && write(fd, line, (size_t)n) == n && fsync(fd) == 0;
    sodium_memzero(line, sizeof line);
    sodium_memzero(digits, sizeof digits);
    return ok;
}

static void sync_folder(const char *path)
{
    char folder[KEYFILE_WHY / 2];
    folder_of(path, folder);
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return;
    fsync(fd); /* without it the name may be lost with the power; the key is not half there */
    close(fd);
}

/* `temporary` gets the content, then becomes `path`; both are the same for a new file. */
static bool write_new(enum keyfile_kind kind, const char *path, const char *temporary,
                      const uint8_t key[KEY_BYTES], char why[KEYFILE_WHY])
{
    int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0 && errno == EEXIST)
        return refuse(why, "%s exists and is kept: a key that is written over is lost for good; "
                           "--force does it",
                      temporary);
    if (fd < 0)
        return refuse(why, "cannot write %s: %s", temporary, strerror(errno));
    bool ok = write_line(fd, kind, key);
    int error = errno;
    if (close(fd) != 0 && ok) {
        ok = false;
        error = errno;
    }
    if (ok && temporary != path && rename(temporary, path) != 0) {
        ok = false;
        error = errno;
    }
    if (!ok) {
        unlink(temporary);
        return refuse(why, "cannot write %s: %s", path, strerror(error));
    }
    sync_folder(path);
    return true;
}

bool keyfile_create(enum keyfile_kind kind, const char *path, const uint8_t key[KEY_BYTES],
                    char why[KEYFILE_WHY])
{
    return private_folder(path, why) && write_new(kind, path, path, key, why);
}

bool keyfile_replace(enum keyfile_kind kind, const char *path, const uint8_t key[KEY_BYTES],
                     char why[KEYFILE_WHY])
{
    char temporary[KEYFILE_WHY / 2];
    struct stat st;
    if (!private_folder(path, why))
        return false;
    if (lstat(path, &st) == 0 && !S_ISREG(st.st_mode))
        return refuse(why, "%s is no regular file and is left as it is", path);
    if (snprintf(temporary, sizeof temporary, "%s.tmp", path) >= (int)sizeof temporary)
        return refuse(why, "the path of the key is too long: %s", path);
    if (unlink(temporary) != 0 && errno != ENOENT) /* of a crash before the rename */
        return refuse(why, "cannot remove %s: %s", temporary, strerror(errno));
    return write_new(kind, path, temporary, key, why);
}

/* ---- where ------------------------------------------------------------------------- */

bool keyfile_default_path(enum keyfile_kind kind, char out[KEYFILE_PATH])
{
    const char *home = getenv("HOME"), *config = getenv("XDG_CONFIG_HOME");
    int n;
    if (geteuid() == 0)
        n = snprintf(out, KEYFILE_PATH, "/var/lib/sleet/%s.key", rows[kind].name);
    else if (config && config[0] == '/')
        n = snprintf(out, KEYFILE_PATH, "%s/sleet/%s.key", config, rows[kind].name);
    else if (home && home[0] == '/')
        n = snprintf(out, KEYFILE_PATH, "%s/.config/sleet/%s.key", home, rows[kind].name);
    else
        return false;
    return n < KEYFILE_PATH;
}

bool keyfile_make_folder(const char *path, char why[KEYFILE_WHY])
{
    char folder[KEYFILE_WHY / 2];
    folder_of(path, folder);
    for (char *p = folder + 1;; p++) {
        if (*p != '/' && *p)
            continue;
        char end = *p;
        *p = '\0';
        if (mkdir(folder, 0700) != 0 && errno != EEXIST)
            return refuse(why, "cannot make the folder %s: %s", folder, strerror(errno));
        *p = end;
        if (!end)
            return true;
    }
}
