/* lab-keys.c - the keys of a sealed job, new for each run and gone with its folder. */
#include "lab.h"
#include "keyfile/keyfile.h"
#include <stdlib.h>
#include <string.h>

static uint64_t id_of(const uint8_t secret[KEY_BYTES])
{
    uint8_t public_key[KEY_BYTES];
    key_public(public_key, secret);
    return key_node_id(public_key);
}

static int by_id(const void *a, const void *b)
{
    uint64_t x = id_of(a), y = id_of(b);
    return (x > y) - (x < y);
}

static bool write_key(const struct lab *lab, int node, enum keyfile_kind kind, const uint8_t *key)
{
    char path[160], why[KEYFILE_WHY];
    node_path(lab, node, "key", path, sizeof path);
    if (keyfile_create(kind, path, key, why))
        return true;
    lab_say("%s", why);
    return false;
}

/* The job's is the file of node 0.  Ids rise with the numbers of the nodes, as without keys:
 * the lowest decides ties. */
bool keys_make(const struct lab *lab)
{
    uint8_t key[LAB_NODES + 1][KEY_BYTES];
    int nodes = (int)lab->s->nodes;
    for (int i = 0; i <= nodes; i++)
        keyfile_generate(key[i]);
    qsort(key[1], (size_t)nodes, KEY_BYTES, by_id);
    bool ok = write_key(lab, 0, KEYFILE_JOB, key[0]);
    for (int i = 1; i <= nodes && ok; i++)
        ok = write_key(lab, i, KEYFILE_NODE, key[i]);
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
