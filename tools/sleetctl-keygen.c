/* sleetctl-keygen.c - make key files, and show the public halves of those there are. */
#include "keyfile/keyfile.h"
#include "sleetctl.h"
#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct keygen {
    bool wanted[KEYFILE_KINDS], show, force, json;
    const char *path[KEYFILE_KINDS]; /* NULL: the default */
};

static bool fail(const char *why)
{
    fprintf(stderr, "sleetctl: keygen: %s\n", why);
    return false;
}

/* "--node", "--node FILE" or "--node=FILE". */
static bool take_word(struct keygen *g, int argc, char **argv, int *i)
{
    const char *word = argv[*i];
    for (unsigned k = 0; k < KEYFILE_KINDS; k++) {
        size_t n = strlen(keyfile_name(k));
        if (strncmp(word, "--", 2) != 0 || strncmp(word + 2, keyfile_name(k), n) != 0 ||
            (word[2 + n] && word[2 + n] != '='))
            continue;
        g->wanted[k] = true;
        if (word[2 + n])
            g->path[k] = word + 3 + n;
        else if (*i + 1 < argc && argv[*i + 1][0] != '-')
            g->path[k] = argv[++*i];
        return !g->path[k] || g->path[k][0] || fail("an empty file name");
    }
    g->show |= strcmp(word, "--show") == 0;
    g->force |= strcmp(word, "--force") == 0;
    g->json |= strcmp(word, "--json") == 0;
    if (strcmp(word, "--show") == 0 || strcmp(word, "--force") == 0 || strcmp(word, "--json") == 0)
        return true;
    fprintf(stderr, "sleetctl: keygen does not know %s; it takes --node, --job, --operator (each with "
                    "a FILE, or none for the default), --show, --force and --json\n", word);
    return false;
}

/* The key itself into `key`, made or read. */
static bool obtain(const struct keygen *g, enum keyfile_kind kind, char path[KEYFILE_PATH],
                   uint8_t key[KEY_BYTES])
{
    char why[KEYFILE_WHY];
    if (g->path[kind]) {
        if (snprintf(path, KEYFILE_PATH, "%s", g->path[kind]) >= KEYFILE_PATH)
            return fail("the file's name is too long");
    } else if (!keyfile_default_path(kind, path)) {
        return fail("neither HOME nor XDG_CONFIG_HOME is set: name the file");
    }
    if (g->show)
        return keyfile_read(kind, path, geteuid(), key, why) || fail(why);
    if (!g->path[kind] && !keyfile_make_folder(path, why))
        return fail(why);
    keyfile_generate(key);
    bool done = g->force ? keyfile_replace(kind, path, key, why) : keyfile_create(kind, path, key, why);
    return done || fail(why);
}

static void print_public(cJSON *to, enum keyfile_kind kind, const char *path,
                         const uint8_t key[KEY_BYTES])
{
    static const char *const advice[KEYFILE_KINDS] = {
        [KEYFILE_NODE] = "job.allow of the other nodes, if they have one, takes the id",
        [KEYFILE_JOB] = "copy the file to every node of the job; whoever has it can join",
        [KEYFILE_OPERATOR] = "job.operator of every node is the public key; keep the file off the nodes"};
    char digits[KEY_DIGITS + 1], id[24];
    uint8_t public_key[KEY_BYTES];
    const char *name = keyfile_name(kind), *what = "fingerprint";
    cJSON *o = cJSON_AddObjectToObject(to, name);
    cJSON_AddStringToObject(o, "file", path);
    if (kind == KEYFILE_JOB) {
        keyfile_fingerprint(digits, key);
    } else {
        keyfile_public(kind, key, public_key);
        key_format(digits, public_key);
        what = "public";
    }
    cJSON_AddStringToObject(o, what, digits);
    snprintf(id, sizeof id, "%" PRIu64, kind == KEYFILE_NODE ? key_node_id(public_key) : 0);
    if (kind == KEYFILE_NODE)
        cJSON_AddStringToObject(o, "node_id", id);
    cJSON_AddStringToObject(o, "advice", advice[kind]);
}

static void print_text(const cJSON *root)
{
    const cJSON *o, *field;
    cJSON_ArrayForEach(o, root) {
        printf("%s key\n", o->string);
        cJSON_ArrayForEach(field, o)
            if (strcmp(field->string, "advice") == 0)
                printf("  (%s)\n", field->valuestring);
            else
                printf("  %-11s  %s\n", field->string, field->valuestring);
    }
}

int keygen_main(int argc, char **argv, bool json)
{
    struct keygen g = {.json = json};
    bool ok = sodium_init() >= 0, any = false;
    uint8_t key[KEY_BYTES];
    char path[KEYFILE_PATH];
    for (int i = 1; i < argc; i++)
        if (!take_word(&g, argc, argv, &i))
            return CTL_USAGE;
    if (g.show && g.force) {
        fail("--show changes nothing, so --force has no meaning with it");
        return CTL_USAGE;
    }
    for (unsigned k = 0; k < KEYFILE_KINDS; k++)
        any |= g.wanted[k];
    g.wanted[KEYFILE_NODE] |= !any;
    cJSON *root = cJSON_CreateObject();
    for (unsigned k = 0; ok && k < KEYFILE_KINDS; k++) {
        if (!g.wanted[k])
            continue;
        ok = obtain(&g, k, path, key);
        if (ok)
            print_public(root, k, path, key);
    }
    sodium_memzero(key, sizeof key);
    char *text = g.json ? cJSON_PrintUnformatted(root) : NULL;
    if (text && ok)
        puts(text);
    else if (!g.json)
        print_text(root); /* also of those made before a failure: they are there now */
    cJSON_free(text);
    cJSON_Delete(root);
    return ok && fflush(stdout) == 0 ? CTL_OK : CTL_FAILED;
}

/* ---- keys of a run ------------------------------------------------------------- */

struct node_key {
    uint64_t id;
    uint8_t key[KEY_BYTES];
};

static int by_id(const void *a, const void *b)
{
    const struct node_key *x = a, *y = b;
    return (x->id > y->id) - (x->id < y->id);
}

/* --keep may name the folder of an earlier run: its keys are replaced. */
static bool write_key(enum keyfile_kind kind, const char *path, const uint8_t key[KEY_BYTES])
{
    char why[KEYFILE_WHY];
    if (keyfile_replace(kind, path, key, why))
        return true;
    fprintf(stderr, "sleetctl: %s\n", why);
    return false;
}

bool run_make_keys(const char *dir, int n)
{
    struct node_key nodes[RUN_NODES_MAX];
    uint8_t public_key[KEY_BYTES];
    char path[128];
    bool ok = sodium_init() >= 0;
    for (int i = 0; ok && i < n; i++) {
        keyfile_generate(nodes[i].key);
        key_public(public_key, nodes[i].key);
        nodes[i].id = key_node_id(public_key);
    }
    qsort(nodes, (size_t)n, sizeof *nodes, by_id);
    for (int i = 0; ok && i < n; i++) {
        snprintf(path, sizeof path, "%s/node%d.key", dir, i);
        ok = write_key(KEYFILE_NODE, path, nodes[i].key);
    }
    keyfile_generate(nodes[0].key);
    snprintf(path, sizeof path, "%s/job.key", dir);
    ok = ok && write_key(KEYFILE_JOB, path, nodes[0].key);
    sodium_memzero(nodes, sizeof nodes);
    return ok;
}
