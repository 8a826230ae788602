/* config.c - reading and printing options. */
#define _GNU_SOURCE 1 /* asprintf */
#include "config_rows.h"
#include "sleet.h"
#include <ctype.h>
#include <errno.h>
#include <ini.h>
#include <stdlib.h>
#include <string.h>

#define LINE_MAX_INI 199 /* bytes a line; what inih takes */
#define HELP_EXIT 1
#define USAGE_EXIT CONFIG_UNUSABLE

const struct config_row config_rows[CONFIG_COUNT] = {
#define X(id, section, key, type, def, low, high, help)                                     \
    {section, key, type, def, low, high, help},
    CONFIG_MAP(X)
#undef X
};
#define rows config_rows

enum { RANK_DEFAULT, RANK_FILE, RANK_ENV, RANK_FLAG };

/* Set an option.  A list that is set twice by the same file is continued. */
static bool put(struct config *c, int id, int rank, const char *value, const char *origin)
{
    char *text = NULL;
    if (rank < c->rank[id])
        return true;
    if (rank == RANK_FILE && c->rank[id] == RANK_FILE && config_is_list(id) && c->text[id][0]) {
        if (asprintf(&text, "%s, %s", c->text[id], value) < 0)
            return false;
    } else {
        text = strdup(value);
    }
    char *from = strdup(origin);
    if (!text || !from) {
        free(text);
        free(from);
        return false;
    }
    free(c->text[id]);
    free(c->origin[id]);
    c->text[id] = text;
    c->origin[id] = from;
    c->rank[id] = rank;
    return true;
}

bool config_set(struct config *c, int id, const char *value, const char *origin)
{
    return put(c, id, c->rank[id], value, origin);
}

void config_env_name(int id, char out[64])
{
    int n = snprintf(out, 64, "SLEET_%s_%s", rows[id].section, rows[id].key);
    for (int i = 0; i < n; i++)
        out[i] = (char)toupper((unsigned char)out[i]);
}

/* ---- the file ------------------------------------------------------------ */

struct source {
    struct config *c;
    FILE *file;
    const char *path;
    int line, first_bad; /* first_bad: of a line too long */
    int errors;
};

static char *read_line(char *out, int cap, void *arg)
{
    struct source *s = arg;
    char *got = fgets(out, cap, s->file);
    if (!got)
        return NULL;
    s->line++;
    if (!strchr(out, '\n') && !feof(s->file)) {
        fprintf(stderr, "sleetd: %s:%d: line longer than %d bytes; continue it on the next line, "
                        "which begins with a space\n", s->path, s->line, LINE_MAX_INI - 1);
        s->errors++;
        for (int ch = getc(s->file); ch != '\n' && ch != EOF; ch = getc(s->file))
            ;
        snprintf(out, (size_t)cap, "\n");
    }
    return out;
}

static int on_key(void *arg, const char *section, const char *key, const char *value)
{
    struct source *s = arg;
    char origin[512];
    snprintf(origin, sizeof origin, "%s:%d", s->path, s->line);
    for (int i = 0; i < CONFIG_COUNT; i++) {
        if (strcmp(rows[i].section, section) != 0 || strcmp(rows[i].key, key) != 0)
            continue;
        if (s->c->rank[i] == RANK_FILE && !config_is_list(i)) {
            fprintf(stderr, "sleetd: %s: [%s] %s was given at %s already; remove one of them\n",
                    origin, section, key, s->c->origin[i]);
            s->errors++;
        }
        return put(s->c, i, RANK_FILE, value, origin);
    }
    fprintf(stderr, "sleetd: %s: there is no key %s in section [%s]; sleetd --help lists them\n",
            origin, key, section);
    s->errors++;
    return 1;
}

static bool load_file(struct config *c, const char *path)
{
    struct source s = {.c = c, .path = path, .file = fopen(path, "re")};
    if (!s.file) {
        fprintf(stderr, "sleetd: cannot read %s: %s\n", path, strerror(errno));
        return false;
    }
    int bad = ini_parse_stream(read_line, &s, on_key, &s);
    fclose(s.file);
    if (bad > 0)
        fprintf(stderr, "sleetd: %s:%d: neither a [section], a key = value nor a ; comment\n", path,
                bad);
    return bad == 0 && s.errors == 0;
}

/* ---- the command line ----------------------------------------------------- */

static void help(void)
{
    printf("usage: sleetd [-c FILE] [--check-config] [--SECTION.KEY=VALUE ...]\n\n"
           "The daemon of one node.  -c FILE    read an INI file\n"
           "--check-config    print what is in force and exit\n--version, --help\n\n"
           "Each key also as SLEET_SECTION_KEY, and without its section (--listen :0):\n");
    for (int i = 0; i < CONFIG_COUNT; i++)
        printf("  --%s.%s=%s\n        %s\n", rows[i].section, rows[i].key, rows[i].def, rows[i].help);
}

/* -1 for a name that there is not, or that two sections have. */
static int find_flag(const char *name, size_t n)
{
    char full[64];
    int found = -1, count = 0;
    for (int i = 0; i < CONFIG_COUNT; i++) {
        snprintf(full, sizeof full, "%s.%s", rows[i].section, rows[i].key);
        if (strlen(full) == n && memcmp(full, name, n) == 0)
            return i;
        if (strlen(rows[i].key) == n && memcmp(rows[i].key, name, n) == 0) {
            found = i;
            count++;
        }
    }
    return count == 1 ? found : -1;
}

/* One "--name=value" or "--name value"; advances *i.  False on a usage error. */
static bool flag(struct config *c, int argc, char **argv, int *i)
{
    const char *arg = argv[*i];
    const char *equals = strchr(arg, '=');
    size_t n = equals ? (size_t)(equals - arg) : strlen(arg);
    int id = n > 2 && arg[0] == '-' && arg[1] == '-' ? find_flag(arg + 2, n - 2) : -1;
    if (id < 0) {
        fprintf(stderr, "sleetd: unknown argument %s; sleetd --help lists what there is\n", arg);
        return false;
    }
    if (!equals && *i + 1 >= argc) {
        fprintf(stderr, "sleetd: %s needs a value: %s=VALUE\n", arg, arg);
        return false;
    }
    char origin[80];
    snprintf(origin, sizeof origin, "%.*s", (int)n, arg);
    return put(c, id, RANK_FLAG, equals ? equals + 1 : argv[++*i], origin);
}

static int parse_args(struct config *c, int argc, char **argv, const char **file)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            help();
            return HELP_EXIT;
        }
        if (strcmp(argv[i], "--version") == 0) {
            printf("sleetd %d.%d.%d\n", SLEET_VERSION_MAJOR, SLEET_VERSION_MINOR,
                   SLEET_VERSION_PATCH);
            return HELP_EXIT;
        }
        if (strcmp(argv[i], "--check-config") == 0) {
            c->check_only = true;
        } else if (strcmp(argv[i], "-c") == 0) {
            if (i + 1 == argc) {
                fprintf(stderr, "sleetd: -c needs a file\n");
                return USAGE_EXIT;
            }
            *file = argv[++i];
        } else if (!flag(c, argc, argv, &i)) {
            return USAGE_EXIT;
        }
    }
    return 0;
}

int config_load(struct config *c, int argc, char **argv)
{
    const char *file = NULL;
    char env[64];
    *c = (struct config){0};
    for (int i = 0; i < CONFIG_COUNT; i++)
        if (!put(c, i, RANK_DEFAULT, rows[i].def, "default"))
            return USAGE_EXIT;
    int stop = parse_args(c, argc, argv, &file);
    if (stop)
        return stop;
    for (int i = 0; i < CONFIG_COUNT; i++) {
        config_env_name(i, env);
        const char *value = getenv(env);
        if (value && !put(c, i, RANK_ENV, value, env))
            return USAGE_EXIT;
    }
    if (file && !load_file(c, file))
        return USAGE_EXIT;
    bool ok = true;
    for (int i = 0; i < CONFIG_COUNT; i++)
        ok = config_check(c, i) && ok;
    ok = ok && config_check_together(c);
    return ok ? 0 : USAGE_EXIT;
}

/* A list, a few items a line so that no line is too long. */
static void print_list(const char *text, FILE *out)
{
    char item[512];
    size_t column = 0;
    for (const char *p = text; (p = config_next_item(p, item, sizeof item));) {
        size_t n = strlen(item);
        if (column && column + n > 150) {
            fputs("\n   ", out);
            column = 0;
        }
        fprintf(out, column ? ", %s" : " %s", item);
        column += n + 2;
    }
}

void config_print(const struct config *c, FILE *out)
{
    const char *section = "";
    for (int i = 0; i < CONFIG_COUNT; i++) {
        if (strcmp(section, rows[i].section) != 0)
            fprintf(out, "%s[%s]\n", i ? "\n" : "", rows[i].section);
        section = rows[i].section;
        fprintf(out, "; %s (from %s)\n%s =", rows[i].help, c->origin[i], rows[i].key);
        if (config_is_list(i))
            print_list(c->text[i], out);
        else
            fprintf(out, " %s", c->text[i]);
        fputc('\n', out);
    }
}

void config_free(struct config *c)
{
    for (int i = 0; i < CONFIG_COUNT; i++) {
        free(c->text[i]);
        free(c->origin[i]);
    }
    free(c->allow);
}
