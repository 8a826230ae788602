/* shm.c - memfd with seals. */
#define _GNU_SOURCE 1
#include "shm.h"
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

/* Making all pages here would keep the daemon from its peers for seconds; the ones who
 * write make them.  What cannot fit is refused beforehand. */
static bool enough_memory(uint64_t bytes, uint64_t held)
{
    unsigned long long kib, free_kib = 0, all_kib = 0;
    char line[128];
    FILE *f = fopen("/proc/meminfo", "re");
    if (!f)
        return true;
    while (fgets(line, sizeof line, f)) {
        if (sscanf(line, "MemAvailable: %llu", &kib) == 1 || sscanf(line, "SwapFree: %llu", &kib) == 1)
            free_kib += kib;
        if (sscanf(line, "MemTotal: %llu", &kib) == 1 || sscanf(line, "SwapTotal: %llu", &kib) == 1)
            all_kib += kib;
    }
    fclose(f);
    return bytes / 1024 <= free_kib && (bytes + held) / 1024 <= all_kib;
}

bool shm_create(struct shm *s, uint64_t bytes, uint64_t held)
{
    *s = (struct shm){.fd = -1, .bytes = bytes};
    s->fd = memfd_create("sleet-set", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (s->fd < 0)
        return false;
    if (enough_memory(bytes, held) && ftruncate(s->fd, (off_t)bytes) == 0 &&
        fcntl(s->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0) {
        void *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, s->fd, 0);
        if (map != MAP_FAILED) {
            s->map = map;
            return true;
        }
    }
    shm_close_fd(s);
    return false;
}

void shm_close_fd(struct shm *s)
{
    if (s->fd >= 0)
        close(s->fd);
    s->fd = -1;
}

void shm_destroy(struct shm *s)
{
    shm_close_fd(s);
    if (s->map)
        munmap(s->map, s->bytes);
    *s = (struct shm){.fd = -1};
}
