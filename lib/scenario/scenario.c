/* scenario.c - sections and keys of the file. */
#include "scenario/parse.h"
#include <errno.h>
#include <ini.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define LINE_MAX_INI 199 /* bytes a line; what inih takes */
#define SECTION_MAX 49   /* likewise, of a name between brackets */

static const struct scenario_key job_keys[] = {
    {"seed", offsetof(struct scenario, seed), 0, 1e9, true},
    {"limit_s", offsetof(struct scenario, limit_s), 1, 3600, false},
};
static const struct scenario_key nodes_keys[] = {
    {"count", offsetof(struct scenario, nodes), 1, SCENARIO_NODES_MAX, true},
    {"rate_mbit", offsetof(struct scenario, rate_mbit), 0.1, 10000, false},
    {"seeds", offsetof(struct scenario, seeds), 0, SCENARIO_NODES_MAX, true},
};
static const struct scenario_key link_keys[] = {
#define X(field, low, high, whole)                                                                 \
    {#field, offsetof(struct scenario_link, field), low, high, whole},
    SCENARIO_LINK_MAP(X)
#undef X
};
static const struct scenario_key workload_keys[] = {
#define X(field, low, high, whole)                                                                 \
    {#field, offsetof(struct scenario_workload, field), low, high, whole},
    SCENARIO_WORKLOAD_MAP(X)
#undef X
};
#define COUNT(table) (sizeof(table) / sizeof *(table))

bool reader_wrong(struct reader *r, int line, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fprintf(r->errors, "%s:%d: ", r->path, line);
    vfprintf(r->errors, format, args);
    fputc('\n', r->errors);
    va_end(args);
    r->failed = true;
    return false;
}

static bool unknown_key(struct reader *r, const char *key, const struct scenario_key *known,
                        size_t count, const char *others)
{
    char list[512] = "";
    size_t used = 0;
    for (size_t i = 0; i < count && used < sizeof list; i++)
        used += (size_t)snprintf(list + used, sizeof list - used, " %s", known[i].name);
    return reader_wrong(r, r->line, "there is no key %s in [%s]; it takes%s%s", key, r->section,
                        others, list);
}

static bool keys_only(struct reader *r, const struct scenario_key *known, size_t count,
                      const char *others, const char *key, const char *value, void *section)
{
    return parse_key(r, known, count, key, value, section) != 0 ||
           unknown_key(r, key, known, count, others);
}

static bool copy_text(struct reader *r, const char *key, const char *value, char *out, size_t len)
{
    if (strlen(value) >= len)
        return reader_wrong(r, r->line, "%s takes at most %zu bytes", key, len - 1);
    memcpy(out, value, strlen(value) + 1);
    return true;
}

static bool on_job(struct reader *r, const char *key, const char *value)
{
    if (strcmp(key, "about") == 0)
        return copy_text(r, key, value, r->s->about, sizeof r->s->about);
    return keys_only(r, job_keys, COUNT(job_keys), " about", key, value, r->s);
}

/* "0, 20, 40": when each node is started. */
static bool on_starts(struct reader *r, const char *value)
{
    char item[16];
    r->starts_line = r->line;
    for (const char *p = value + strspn(value, ", "); *p; p += strspn(p, ", ")) {
        size_t len = strcspn(p, ", ");
        if (r->starts == SCENARIO_NODES_MAX || len >= sizeof item)
            return reader_wrong(r, r->line, "start_s takes a number of seconds for each node");
        memcpy(item, p, len);
        item[len] = '\0';
        if (!parse_number(r, "start_s", item, 0, 3600, false, &r->s->start_s[r->starts]))
            return false;
        r->starts++;
        p += len;
    }
    return true;
}

/* One of two words: *out says whether it is the second. */
static bool on_choice(struct reader *r, const char *key, const char *value, const char *first,
                      const char *second, bool *out)
{
    *out = strcmp(value, second) == 0;
    return *out || strcmp(value, first) == 0 ||
           reader_wrong(r, r->line, "%s = \"%s\": use %s or %s", key, value, first, second);
}

static bool on_nodes(struct reader *r, const char *key, const char *value)
{
    if (strcmp(key, "start_s") == 0)
        return on_starts(r, value);
    if (strcmp(key, "security") == 0)
        return on_choice(r, key, value, "none", "sealed", &r->s->sealed);
    if (strcmp(key, "on_partition") == 0)
        return on_choice(r, key, value, "park", "continue", &r->s->go_on);
    if (strcmp(key, "nat") == 0) {
        r->nat_line = r->line;
        return parse_nodes(r, key, value, "", &r->s->nat);
    }
    return keys_only(r, nodes_keys, COUNT(nodes_keys), " start_s security on_partition nat", key, value, r->s);
}

static bool on_link(struct reader *r, const char *key, const char *value)
{
    if (r->link_nodes == UINT32_MAX)
        return keys_only(r, link_keys, COUNT(link_keys), "", key, value, &r->all);
    for (int i = 0; i < SCENARIO_NODES_MAX; i++) {
        if (!(r->link_nodes & 1u << i))
            continue;
        r->link_line[i] = r->line;
        r->own_link |= 1u << i;
        if (!keys_only(r, link_keys, COUNT(link_keys), "", key, value, &r->s->link[i]))
            return false;
    }
    return true;
}

static bool on_event(struct reader *r, const char *key, const char *value)
{
    static const char *const when[] = {
        [WHEN_AT_S] = "at_s", [WHEN_AT_STEP] = "at_step", [WHEN_AFTER_S] = "after_s"};
    struct scenario_event *e = &r->s->event[r->s->events - 1];
    if (strcmp(key, "do") == 0)
        return parse_action(r, value, e);
    for (int i = WHEN_AT_S; i <= WHEN_AFTER_S; i++) {
        if (strcmp(key, when[i]) != 0)
            continue;
        if (e->when != WHEN_MISSING)
            return reader_wrong(r, r->line,
                                "[%s] has %s already; give one of at_s, at_step, after_s",
                                r->section, when[e->when]);
        e->when = (enum scenario_when)i;
        return parse_number(r, key, value, i == WHEN_AT_STEP, 1e6, i == WHEN_AT_STEP, &e->value);
    }
    return keys_only(r, link_keys, COUNT(link_keys), " do at_s at_step after_s, and for a link",
                     key, value, &e->link);
}

static bool on_workload(struct reader *r, const char *key, const char *value)
{
    if (strcmp(key, "shards") == 0)
        return copy_text(r, key, value, r->s->workload.shards, sizeof r->s->workload.shards);
    return keys_only(r, workload_keys, COUNT(workload_keys), " shards", key, value,
                     &r->s->workload);
}

static const struct {
    const char *name;
    bool named; /* "link 3": the rest is for begin_section() */
    bool (*on_key)(struct reader *, const char *key, const char *value);
} sections[] = {
    {"job", false, on_job},    {"nodes", false, on_nodes},       {"link", true, on_link},
    {"event", true, on_event}, {"workload", false, on_workload}, {"expect", false, parse_expect},
};

static int find_section(const char *text)
{
    for (size_t i = 0; i < COUNT(sections); i++) {
        size_t n = strlen(sections[i].name);
        if (strncmp(text, sections[i].name, n) == 0 &&
            (sections[i].named ? text[n] == ' ' && text[n + 1] : !text[n]))
            return (int)i;
    }
    return -1;
}

/* A section other than that of the line before. */
static bool begin_section(struct reader *r, const char *section)
{
    int id = find_section(section);
    r->seen_count = 0;
    r->link_nodes = 0;
    snprintf(r->section, sizeof r->section, "%s", section);
    if (id < 0)
        return reader_wrong(r, r->line,
                            "there is no section [%s]; use [job], [nodes], "
                            "[link NODES], [event NAME], [workload] or [expect]",
                            section);
    if (sections[id].on_key == on_link)
        return parse_nodes(r, "link", section + 5, "", &r->link_nodes);
    if (sections[id].on_key != on_event)
        return true;
    if (r->s->events == SCENARIO_EVENTS_MAX)
        return reader_wrong(r, r->line, "more than %d events", SCENARIO_EVENTS_MAX);
    struct scenario_event *e = &r->s->event[r->s->events++];
    *e = (struct scenario_event){.line = r->line, .action = SCENARIO_ACTIONS};
    return copy_text(r, "the name of an event", section + 6, e->name, sizeof e->name);
}

static bool first_time(struct reader *r, const char *key)
{
    for (int i = 0; i < r->seen_count; i++)
        if (strcmp(r->seen[i], key) == 0)
            return reader_wrong(r, r->line, "%s was given at line %d already; remove one of them",
                                key, r->seen_line[i]);
    if (r->seen_count < SEEN_MAX && strlen(key) < sizeof r->seen[0]) {
        memcpy(r->seen[r->seen_count], key, strlen(key) + 1);
        r->seen_line[r->seen_count++] = r->line;
    }
    return true;
}

static int on_key(void *arg, const char *section, const char *key, const char *value)
{
    struct reader *r = arg;
    int id = find_section(section);
    if (strcmp(section, r->section) != 0 && !begin_section(r, section))
        return 1;
    if (id >= 0 && first_time(r, key))
        sections[id].on_key(r, key, value);
    return 1; /* go on: all faults are told at once */
}

static char *read_line(char *out, int cap, void *arg)
{
    struct reader *r = arg;
    if (!fgets(out, cap, r->in))
        return NULL;
    r->line++;
    bool whole = strchr(out, '\n') || feof(r->in);
    if (!whole)
        reader_wrong(r, r->line, "line longer than %d bytes", LINE_MAX_INI - 1);
    for (int ch = 0; !whole && ch != '\n' && ch != EOF;)
        ch = getc(r->in);
    if (out[0] == '[' && strcspn(out, "]") > SECTION_MAX)
        whole = reader_wrong(r, r->line, "section name longer than %d bytes", SECTION_MAX);
    if (!whole)
        snprintf(out, (size_t)cap, "\n");
    return out;
}

static void base_name(const char *path, char out[SCENARIO_NAME_MAX])
{
    const char *slash = strrchr(path, '/');
    snprintf(out, SCENARIO_NAME_MAX, "%s", slash ? slash + 1 : path);
    char *dot = strrchr(out, '.');
    if (dot && dot != out)
        *dot = '\0';
}

bool scenario_read(struct scenario *s, FILE *in, const char *path, FILE *errors)
{
    struct reader r = {.s = s, .in = in, .errors = errors, .path = path};
    *s = (struct scenario){.seed = 1,
                           .sealed = true,
                           .limit_s = 120,
                           .rate_mbit = 25,
                           .workload = {.samples = 6000,
                                        .epochs = 2,
                                        .batch = 32,
                                        .hidden = 16,
                                        .lr = 0.1,
                                        .deadline_s = 2,
                                        .min_wait_s = 30,
                                        .shards = "iid"}};
    base_name(path, s->name);
    int bad = ini_parse_stream(read_line, &r, on_key, &r);
    if (bad > 0)
        reader_wrong(&r, bad, "neither a [section], a key = value nor a ; comment");
    if (bad < 0)
        reader_wrong(&r, r.line, "out of memory");
    if (!r.failed)
        scenario_review(&r);
    return !r.failed;
}

bool scenario_load(struct scenario *s, const char *path, FILE *errors)
{
    FILE *in = fopen(path, "re");
    if (!in) {
        fprintf(errors, "cannot read %s: %s\n", path, strerror(errno));
        return false;
    }
    bool ok = scenario_read(s, in, path, errors);
    fclose(in);
    return ok;
}
