/* Any bytes as sleetd's configuration file.  A file that is accepted must print as
 * one that is accepted too and means the same. */
#define _GNU_SOURCE 1 /* memfd_create */
#include "daemon/config.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int load(struct config *c, int fd)
{
    char path[64], name[] = "sleetd", option[] = "-c";
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    char *argv[] = {name, option, path, NULL};
    return config_load(c, 3, argv);
}

static bool write_all(int fd, const uint8_t *data, size_t size)
{
    while (size) {
        ssize_t n = write(fd, data, size);
        if (n <= 0)
            return false;
        data += n;
        size -= (size_t)n;
    }
    return true;
}

/* Lists are printed again with other blanks and line breaks. */
static bool same_words(const char *a, const char *b)
{
    for (;;) {
        a += strspn(a, ", \t");
        b += strspn(b, ", \t");
        size_t n = strcspn(a, ", \t");
        if (n != strcspn(b, ", \t") || memcmp(a, b, n) != 0)
            return false;
        if (n == 0)
            return true;
        a += n;
        b += n;
    }
}

static void check_print(const struct config *c)
{
    struct config again;
    int fd = memfd_create("printed", MFD_CLOEXEC);
    FILE *out = fd < 0 ? NULL : fdopen(dup(fd), "w");
    if (!out)
        abort();
    config_print(c, out);
    fclose(out);
    if (load(&again, fd) != 0)
        abort();
    for (int i = 0; i < CONFIG_COUNT; i++) {
        bool list = i == CONFIG_PEERS || i == CONFIG_ALLOW;
        if (list ? !same_words(c->text[i], again.text[i]) : strcmp(c->text[i], again.text[i]) != 0)
            abort();
    }
    config_free(&again);
    close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static FILE *quiet;
    struct config c;
    if (!quiet && (quiet = fopen("/dev/null", "w")))
        stderr = quiet; /* the sentences about what is wrong; sanitizers write to descriptor 2 */
    int fd = memfd_create("config", MFD_CLOEXEC);
    if (fd < 0 || !write_all(fd, data, size))
        abort();
    if (load(&c, fd) == 0)
        check_print(&c);
    config_free(&c);
    close(fd);
    return 0;
}
