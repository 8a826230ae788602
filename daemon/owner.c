/* owner.c - address to inode by /proc/net/udp, inode to process by /proc/PID/fd. */
#include "owner.h"
#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The address of a line of /proc/net/udp or udp6: each 32 bits as this machine reads them. */
static bool read_address(const char *hex, sleet_addr *out)
{
    size_t words = strlen(hex) == 8 ? 1 : 4;
    *out = (sleet_addr){.ip = {[10] = 0xff, [11] = 0xff}};
    for (size_t i = 0; i < words; i++, hex += 8) {
        unsigned word;
        if (sscanf(hex, "%8x", &word) != 1)
            return false;
        memcpy(out->ip + (words == 1 ? 12 : 4 * i), &word, sizeof word);
    }
    return true;
}

static bool is_wildcard(const sleet_addr *a)
{
    static const uint8_t any6[16], any4[16] = {[10] = 0xff, [11] = 0xff};
    return memcmp(a->ip, any6, 16) == 0 || memcmp(a->ip, any4, 16) == 0;
}

/* Of the socket that keeps others from `at`: of the same port, at the same address or all. */
static unsigned long inode_of(const char *table, const sleet_addr *at)
{
    char line[512], hex[33];
    unsigned long found = 0;
    FILE *f = fopen(table, "re");
    while (f && !found && fgets(line, sizeof line, f)) {
        sleet_addr local;
        unsigned port;
        unsigned long inode;
        if (sscanf(line, " %*[^:]: %32[0-9A-Fa-f]:%x %*s %*s %*s %*s %*s %*s %*s %lu", hex, &port,
                   &inode) == 3 &&
            port == at->port && read_address(hex, &local) &&
            (is_wildcard(&local) || is_wildcard(at) || memcmp(local.ip, at->ip, 16) == 0))
            found = inode;
    }
    if (f)
        fclose(f);
    return found;
}

static bool holds(const char *pid, const char *want)
{
    char path[300], link[64];
    bool found = false;
    snprintf(path, sizeof path, "/proc/%.20s/fd", pid);
    DIR *dir = opendir(path);
    for (struct dirent *e; dir && !found && (e = readdir(dir));) {
        snprintf(path, sizeof path, "/proc/%.20s/fd/%.20s", pid, e->d_name);
        ssize_t n = readlink(path, link, sizeof link - 1);
        link[n > 0 ? n : 0] = '\0';
        found = strcmp(link, want) == 0;
    }
    if (dir)
        closedir(dir);
    return found;
}

void owner_of_address(const sleet_addr *at, char *out, size_t cap)
{
    char want[64], path[64], name[32] = "?";
    static const char *const tables[] = {"/proc/net/udp", "/proc/net/udp6"};
    bool v6 = at->ip[10] != 0xff; /* its own kind first */
    unsigned long inode = inode_of(tables[v6], at);
    if (!inode)
        inode = inode_of(tables[!v6], at);
    snprintf(want, sizeof want, "socket:[%lu]", inode);
    snprintf(out, cap, "; `ss -ulnp sport = :%u` as root names its owner, --listen takes another",
             at->port);
    DIR *proc = inode ? opendir("/proc") : NULL;
    for (struct dirent *e; proc && (e = readdir(proc));) {
        if (e->d_name[0] < '0' || e->d_name[0] > '9' || !holds(e->d_name, want))
            continue;
        snprintf(path, sizeof path, "/proc/%.20s/comm", e->d_name);
        FILE *f = fopen(path, "re");
        if (f && fgets(name, sizeof name, f))
            name[strcspn(name, "\n")] = '\0';
        if (f)
            fclose(f);
        snprintf(out, cap, "; held by pid %.20s (%s): stop it, or give another by --listen",
                 e->d_name, name);
        break;
    }
    if (proc)
        closedir(proc);
}
