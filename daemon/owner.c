/* owner.c - port to inode by /proc/net/udp, inode to process by /proc/PID/fd. */
#include "owner.h"
#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static unsigned long inode_of(const char *table, uint16_t port)
{
    char line[512];
    unsigned long found = 0;
    FILE *f = fopen(table, "re");
    while (f && !found && fgets(line, sizeof line, f)) {
        unsigned local;
        unsigned long inode;
        if (sscanf(line, " %*[^:]: %*[0-9A-Fa-f]:%x %*s %*s %*s %*s %*s %*s %*s %lu", &local,
                   &inode) == 2 &&
            local == port)
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

void owner_of_port(uint16_t port, char *out, size_t cap)
{
    char want[64], path[64], name[32] = "?";
    unsigned long inode = inode_of("/proc/net/udp", port);
    if (!inode)
        inode = inode_of("/proc/net/udp6", port);
    snprintf(want, sizeof want, "socket:[%lu]", inode);
    snprintf(out, cap, "; `ss -ulnp sport = :%u` as root names its owner, --listen takes another",
             port);
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
