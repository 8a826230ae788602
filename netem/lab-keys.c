/* lab-keys.c - the keys of a sealed job, new for each run and gone with its folder. */
#include "lab.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

static bool write_key(const struct lab *lab, int node, const char *keyword)
{
    uint8_t key[32];
    char path[160];
    node_path(lab, node, "key", path, sizeof path);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    bool ok = fd >= 0 && getrandom(key, sizeof key, 0) == (ssize_t)sizeof key &&
              dprintf(fd, "%s ", keyword) > 0;
    for (size_t i = 0; i < sizeof key && ok; i++)
        ok = dprintf(fd, i + 1 < sizeof key ? "%02x" : "%02x\n", key[i]) > 0;
    if (fd >= 0)
        close(fd);
    if (!ok)
        lab_say("cannot write %s: %s", path, strerror(errno));
    return ok;
}

/* The job's is the file of node 0. */
bool keys_make(const struct lab *lab)
{
    bool ok = write_key(lab, 0, "sleet-job-key");
    for (int i = 1; i <= (int)lab->s->nodes && ok; i++)
        ok = write_key(lab, i, "sleet-node-key");
    return ok;
}

void keys_options(const struct lab *lab, int node, char job[200], char own[200])
{
    char path[160];
    node_path(lab, 0, "key", path, sizeof path);
    snprintf(job, 200, "--job.key=%s", path);
    node_path(lab, node, "key", path, sizeof path);
    snprintf(own, 200, "--node.key=%s", path);
}
