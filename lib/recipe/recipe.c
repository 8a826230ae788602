/* recipe.c - sections and keys of the file. */
#include "recipe/recipe.h"
#include <ctype.h>
#include <ini.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define LINE_MAX_INI 199 /* bytes a line; what inih takes */
#define SECTION_MAX 49   /* likewise, of a name between brackets */
#define SEEDS_MOST 16

struct reader {
    struct recipe *r;
    FILE *in, *errors;
    const char *path;
    int line;
    bool failed;
    bool goes_on;      /* the line began with a blank */
    bool begun;        /* there was a section */
    const char **last; /* the value that such a line goes on with */
    char section[SECTION_MAX + 1];
    struct recipe_experiment *experiment; /* of the section */
};

static bool wrong(struct reader *r, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The first fault is told. */
static bool wrong(struct reader *r, const char *format, ...)
{
    va_list args;
    if (r->failed)
        return false;
    fprintf(r->errors, "%s:%d: ", r->path, r->line);
    va_start(args, format);
    vfprintf(r->errors, format, args);
    va_end(args);
    fputc('\n', r->errors);
    r->failed = true;
    return false;
}

/* ---- text ---------------------------------------------------------------------- */

static const char *keep(struct reader *r, const char *text)
{
    struct recipe *p = r->r;
    size_t n = strlen(text) + 1;
    if (n > sizeof p->text - p->used) {
        wrong(r, "a recipe says at most %d bytes", RECIPE_TEXT_MAX);
        return "";
    }
    char *at = p->text + p->used;
    memcpy(at, text, n);
    p->used += n;
    return at;
}

/* The value is the last text that was kept. */
static bool go_on(struct reader *r, const char *text)
{
    struct recipe *p = r->r;
    size_t n = strlen(text);
    if (!r->last)
        return wrong(r,
                     "a line that begins with a blank goes on with a key above it: there is none");
    if (n + 1 > sizeof p->text - p->used)
        return wrong(r, "a recipe says at most %d bytes", RECIPE_TEXT_MAX);
    p->text[p->used - 1] = ' ';
    memcpy(p->text + p->used, text, n + 1);
    p->used += n + 1;
    return true;
}

static bool set_text(struct reader *r, const char *key, const char *value, const char **out)
{
    if (**out)
        return wrong(r, "%s was given already", key);
    *out = keep(r, value);
    r->last = out;
    return true;
}

static bool add_pair(struct reader *r, struct recipe_pair *pairs, unsigned *n, unsigned most,
                     const char *key, const char *value)
{
    for (unsigned i = 0; i < *n; i++)
        if (strcmp(pairs[i].key, key) == 0)
            return wrong(r, "%s%s was given at line %d already", *key ? "" : "a run without a name",
                         key, pairs[i].line);
    if (*n == most)
        return wrong(r, "more than %u keys of [%s]", most, r->section);
    struct recipe_pair *p = &pairs[(*n)++];
    p->line = r->line;
    p->key = keep(r, key);
    p->value = keep(r, value);
    r->last = &p->value;
    return true;
}

/* ---- sections ---------------------------------------------------------------------- */

static bool on_recipe(struct reader *r, const char *key, const char *value)
{
    struct {
        const char *key, **out;
    } known[] = {{"paper", &r->r->paper}, {"claim", &r->r->claim}, {"differs", &r->r->differs}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i].key, key) == 0)
            return set_text(r, key, value, known[i].out);
    return wrong(r, "there is no key %s in [recipe]; it takes paper, claim and differs", key);
}

static bool on_train(struct reader *r, const char *key, const char *value)
{
    return add_pair(r, r->r->train, &r->r->trains, RECIPE_PAIRS_MAX, key, value);
}

static bool on_sim(struct reader *r, const char *key, const char *value)
{
    return add_pair(r, r->r->sim, &r->r->sims, RECIPE_PAIRS_MAX, key, value);
}

/* A text, parsed when all of it is there. */
static bool add_bar(struct reader *r, struct recipe_experiment *e, const char *value)
{
    if (e->bars == RECIPE_BARS_MAX)
        return wrong(r, "more than %d bars of [%s]", RECIPE_BARS_MAX, r->section);
    struct recipe_bar *b = &e->bar[e->bars++];
    b->line = r->line;
    b->why = "";
    b->text = keep(r, value);
    r->last = &b->text;
    return true;
}

static bool add_why(struct reader *r, struct recipe_experiment *e, const char *value)
{
    if (e->bars == 0)
        return wrong(r, "why is of the bar above it: there is none");
    return set_text(r, "why", value, &e->bar[e->bars - 1].why);
}

static bool add_of(struct reader *r, struct recipe_experiment *e, const char *value)
{
    if (e->ofs == RECIPE_OF_MAX)
        return wrong(r, "more than %d experiments of others in [%s]", RECIPE_OF_MAX, r->section);
    r->last = &e->of[e->ofs++];
    *r->last = keep(r, value);
    return true;
}

static bool set_seeds(struct reader *r, struct recipe_experiment *e, const char *value)
{
    char *end;
    long v = strtol(value, &end, 10);
    if (end == value || *end || v < 1 || v > SEEDS_MOST)
        return wrong(r, "seeds = \"%s\": a whole number from 1 to %d is needed", value, SEEDS_MOST);
    e->seeds = (unsigned)v;
    return true;
}

static bool on_reproduce(struct reader *r, const char *key, const char *value)
{
    struct recipe_experiment *e = r->experiment;
    if (strcmp(key, "bar") == 0)
        return add_bar(r, e, value);
    if (strcmp(key, "seeds") == 0)
        return set_seeds(r, e, value);
    if (strcmp(key, "why") == 0)
        return add_why(r, e, value);
    if (strcmp(key, "of") == 0)
        return add_of(r, e, value);
    if (strcmp(key, "plot") == 0)
        return set_text(r, key, value, &e->plot);
    if (strcmp(key, "run") == 0 || strncmp(key, "run ", 4) == 0)
        return add_pair(r, e->run, &e->runs, RECIPE_RUNS_MAX, key + (key[3] ? 4 : 3), value);
    return wrong(r, "there is no key %s in [reproduce NAME]; it takes run, run NAME, bar, why, of, plot and seeds",
                 key);
}

static const struct {
    const char *name;
    bool (*on_key)(struct reader *, const char *key, const char *value);
} sections[] = {
    {"recipe", on_recipe}, {"train", on_train}, {"sim", on_sim}, {"reproduce ", on_reproduce}};
#define SECTIONS (sizeof sections / sizeof *sections)

static size_t section_of(const char *text)
{
    size_t i = 0;
    while (i < SECTIONS && (sections[i].on_key == on_reproduce
                                ? strncmp(text, sections[i].name, 10) != 0 || !text[10]
                                : strcmp(text, sections[i].name) != 0))
        i++;
    return i;
}

static bool begin_section(struct reader *r, const char *section)
{
    size_t i = section_of(section);
    snprintf(r->section, sizeof r->section, "%s", section);
    r->last = NULL;
    r->begun = true;
    if (i == SECTIONS)
        return wrong(r,
                     "there is no section [%s]; use [recipe], [train], [sim] or [reproduce NAME]",
                     section);
    if (sections[i].on_key != on_reproduce)
        return true;
    if (r->r->experiments == RECIPE_EXPERIMENTS_MAX)
        return wrong(r, "more than %d sections [reproduce NAME]", RECIPE_EXPERIMENTS_MAX);
    for (unsigned e = 0; e < r->r->experiments; e++)
        if (strcmp(r->r->experiment[e].name, section + 10) == 0)
            return wrong(r, "there is a [%s] at line %d already", section,
                         r->r->experiment[e].line);
    r->experiment = &r->r->experiment[r->r->experiments++];
    *r->experiment = (struct recipe_experiment){.seeds = 1, .plot = "", .line = r->line};
    r->experiment->name = keep(r, section + 10);
    return true;
}

static int on_key(void *arg, const char *section, const char *key, const char *value)
{
    struct reader *r = arg;
    if (r->failed)
        return 1;
    if ((!r->begun || strcmp(section, r->section) != 0) && !begin_section(r, section))
        return 1;
    if (r->goes_on)
        go_on(r, value);
    else
        sections[section_of(section)].on_key(r, key, value);
    return 1;
}

static char *read_line(char *out, int cap, void *arg)
{
    struct reader *r = arg;
    if (r->failed || !fgets(out, cap, r->in))
        return NULL;
    r->line++;
    r->goes_on = isspace((unsigned char)out[0]);
    if (!strchr(out, '\n') && !feof(r->in))
        wrong(r, "line longer than %d bytes: go on in the next one, after a blank",
              LINE_MAX_INI - 1);
    if (out[0] == '[' && strcspn(out, "]") > SECTION_MAX)
        wrong(r, "section name longer than %d bytes", SECTION_MAX);
    return r->failed ? NULL : out;
}

/* ---- the whole ---------------------------------------------------------------------- */

static bool has_run(const struct recipe_experiment *e, const char *figure)
{
    const char *dot = strchr(figure, '.');
    size_t n = dot ? (size_t)(dot - figure) : 0;
    for (unsigned i = 0; i < e->runs; i++)
        if (strlen(e->run[i].key) == n && memcmp(e->run[i].key, figure, n) == 0)
            return true;
    return false;
}

static bool review_bar(struct reader *r, const struct recipe_experiment *e, struct recipe_bar *b)
{
    int line = b->line;
    const char *why = b->why;
    r->line = line;
    if (!bar_parse(b, b->text))
        return wrong(r,
                     "bar = \"%s\": FIGURE, then <= or >= and a number or NUMBER * FIGURE + "
                     "NUMBER, or = and within",
                     b->text);
    b->line = line;
    b->why = why;
    if (!has_run(e, b->left) || (b->right[0] && !has_run(e, b->right)))
        return wrong(r, "bar = \"%s\": [reproduce %s] has no such run", b->text, e->name);
    return true;
}

static void review(struct reader *r)
{
    struct recipe *p = r->r;
    if (!*p->paper || !*p->claim || !*p->differs) {
        wrong(r, "[recipe] needs paper, claim and differs");
        return;
    }
    for (unsigned i = 0; i < p->experiments; i++) {
        struct recipe_experiment *e = &p->experiment[i];
        r->line = e->line;
        if ((!e->runs || (!e->bars && !*e->plot)) && !e->ofs)
            wrong(r, "[reproduce %s] needs a run and a bar", e->name);
        for (unsigned b = 0; b < e->bars && !r->failed; b++)
            review_bar(r, e, &e->bar[b]);
    }
}

static void base_name(const char *path, char out[RECIPE_NAME_MAX])
{
    const char *slash = strrchr(path, '/');
    snprintf(out, RECIPE_NAME_MAX, "%s", slash ? slash + 1 : path);
    char *dot = strrchr(out, '.');
    if (dot && dot != out)
        *dot = '\0';
}

bool recipe_read(struct recipe *p, FILE *in, const char *path, FILE *errors)
{
    struct reader r = {.r = p, .in = in, .errors = errors, .path = path};
    memset(p, 0, sizeof *p);
    p->paper = p->claim = p->differs = "";
    base_name(path, p->name);
    snprintf(p->path, sizeof p->path, "%s", path);
    int bad = ini_parse_stream(read_line, &r, on_key, &r);
    if (bad > 0) { /* it has read on to the end */
        r.line = bad;
        wrong(&r, "neither a [section], a key = value nor a ; comment");
    }
    if (bad < 0)
        wrong(&r, "out of memory");
    if (!r.failed)
        review(&r);
    return !r.failed;
}
