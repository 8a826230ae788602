/* keys.c - from the paths of the configuration to keys in memory. */
#define _GNU_SOURCE 1
#include "keys.h"
#include <inttypes.h>
#include <sodium.h>
#include <string.h>

static bool load(struct config *c, int id, enum keyfile_kind kind, uid_t reader, uint8_t key[KEY_BYTES])
{
    char path[KEYFILE_PATH], why[KEYFILE_WHY];
    if (!c->text[id][0]) {
        if (!keyfile_default_path(kind, path))
            return config_wrong(c, id, "neither HOME nor XDG_CONFIG_HOME is set: name the file");
        if (!config_set(c, id, path, c->origin[id]))
            return config_wrong(c, id, "out of memory");
    }
    return keyfile_read(kind, c->text[id], reader, key, why) ||
           config_wrong(c, id, "%s; job.security = none does without keys", why);
}

/* The key says who the node is; a number that says otherwise is an old one or another's. */
static bool take_id(struct keys *k, struct config *c)
{
    uint8_t public_key[KEY_BYTES];
    char text[24];
    key_public(public_key, k->node_secret);
    uint64_t id = key_node_id(public_key);
    if (c->node_id && c->node_id != id)
        return config_wrong(c, CONFIG_ID, "the key in %s makes this node %" PRIu64 ": remove the id, or "
                                          "name the file of its key by node.key",
                            c->text[CONFIG_NODE_KEY], id);
    snprintf(text, sizeof text, "%" PRIu64, id);
    c->node_id = id;
    return config_set(c, CONFIG_ID, text, c->text[CONFIG_ID][0] ? c->origin[CONFIG_ID] : "node.key");
}

bool keys_load(struct keys *k, struct config *c, uid_t reader)
{
    *k = (struct keys){.unsaved = false};
    if (!c->sealed)
        return true;
    if (!load(c, CONFIG_NODE_KEY, KEYFILE_NODE, reader, k->node_secret) || !take_id(k, c) ||
        !load(c, CONFIG_JOB_KEY, KEYFILE_JOB, reader, k->job))
        return false;
    keyfile_fingerprint(k->job_fingerprint, k->job);
    return true;
}

bool keys_new_job(struct keys *k, const struct config *c, const uint8_t key[KEY_BYTES],
                  char why[KEYFILE_WHY])
{
    memcpy(k->job, key, KEY_BYTES);
    keyfile_fingerprint(k->job_fingerprint, key);
    k->unsaved = !keyfile_replace(KEYFILE_JOB, c->text[CONFIG_JOB_KEY], key, why);
    return !k->unsaved;
}

void keys_wipe(struct keys *k) { sodium_memzero(k, sizeof *k); }
