/* lab-figures.c - a run of a recipe's experiment, and the figures in what it prints. */
#include "lab-reproduce.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WORDS_MAX 60 /* of a run */
#define LINE_RUN_MAX 4096

/* A run that another experiment has as well is not repeated. */
static struct known {
    struct known *next;
    char *line, *output;
    int status;
    double seconds;
} * known;

/* Only programs of Sleet, from this program's own folder. */
static bool program_path(const char *name, char out[RECIPE_PATH_MAX])
{
    static const char *const programs[] = {"sleet-train", "sleet-sim", "sleet-bench", "lab", "simtest", "unit"};
    char self[RECIPE_PATH_MAX / 2];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    char *slash = n > 0 ? memrchr(self, '/', (size_t)n) : NULL;
    for (size_t i = 0; slash && i < sizeof programs / sizeof *programs; i++)
        if (strcmp(programs[i], name) == 0) {
            *slash = '\0';
            snprintf(out, RECIPE_PATH_MAX, "%s/%s", self, name);
            if (access(out, X_OK) == 0)
                return true;
            lab_say("there is no program %s: make %s", out, name);
            return false;
        }
    lab_say("a recipe runs sleet-train, sleet-sim, sleet-bench, lab, simtest or unit, not %s", name);
    return false;
}

/* ---- kept on disk: a long list that was interrupted goes on ---------------------------- */

static void kept_path(const char *folder, const char *line, char out[RECIPE_PATH_MAX])
{
    uint64_t hash = 14695981039346656037u; /* FNV-1a */
    for (const char *p = line; *p; p++)
        hash = (hash ^ (unsigned char)*p) * 1099511628211u;
    snprintf(out, RECIPE_PATH_MAX, "%s/%016llx.run", folder, (unsigned long long)hash);
}

static void keep_run(const char *folder, const struct known *k)
{
    char path[RECIPE_PATH_MAX];
    kept_path(folder, k->line, path);
    FILE *to = fopen(path, "we");
    if (!to || fprintf(to, "%s\n%d %.3f\n%s", k->line, k->status, k->seconds, k->output) < 0)
        lab_say("cannot write %s: %s", path, strerror(errno));
    if (to)
        fclose(to);
}

/* False when there is none of that line. */
static bool find_kept(const char *folder, struct known *k)
{
    char path[RECIPE_PATH_MAX], line[LINE_RUN_MAX];
    size_t room = 0;
    kept_path(folder, k->line, path);
    FILE *in = fopen(path, "re");
    bool found = in && fgets(line, sizeof line, in) && strcspn(line, "\n") == strlen(k->line) &&
                 strncmp(line, k->line, strlen(k->line)) == 0 &&
                 fscanf(in, "%d %lf", &k->status, &k->seconds) == 2;
    if (found && getdelim(&k->output, &room, '\0', in) < 0)
        found = false;
    if (in)
        fclose(in);
    return found;
}

static void run_program(struct known *k, const char *const *argv, const char *folder)
{
    double began = lab_now();
    k->status = lab_exec(argv, NULL, &k->output);
    k->seconds = lab_now() - began;
    if (folder && k->output && k->status == 0)
        keep_run(folder, k);
}

static struct known *run_line(const char *line, const char *folder)
{
    char words[LINE_RUN_MAX], path[RECIPE_PATH_MAX], *rest = words;
    const char *argv[WORDS_MAX + 1] = {path};
    int argc = 0;
    snprintf(words, sizeof words, "%s", line);
    for (char *word; (word = strsep(&rest, " \t"));)
        if (*word && argc < WORDS_MAX)
            argv[argc++] = word;
    if (argc == 0 || !program_path(argv[0], path))
        return NULL;
    argv[0] = path;
    struct known *k = calloc(1, sizeof *k);
    if (!k || !(k->line = strdup(line)))
        abort();
    if (!folder || !find_kept(folder, k))
        run_program(k, argv, folder);
    k->next = known;
    return known = k;
}

static const struct known *result_of(const char *line, const char *folder)
{
    for (const struct known *k = known; k; k = k->next)
        if (strcmp(k->line, line) == 0)
            return k;
    return run_line(line, folder);
}

/* The number of that key in the last object that has it; NaN: none has. */
static double figure_in(const char *output, const char *key)
{
    double found = NAN;
    for (const char *p = output; p && *p; p = strchr(p, '\n') ? strchr(p, '\n') + 1 : NULL) {
        cJSON *object = *p == '{' ? cJSON_ParseWithOpts(p, NULL, 0) : NULL;
        const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
        if (cJSON_IsNumber(item))
            found = item->valuedouble;
        else if (cJSON_IsBool(item))
            found = cJSON_IsTrue(item);
        cJSON_Delete(object);
    }
    return found;
}

static void with_seed(const char *line, unsigned seed, char out[LINE_RUN_MAX])
{
    size_t used = 0;
    while (*line && used + 16 < LINE_RUN_MAX) {
        if (strncmp(line, "@seed", 5) == 0) {
            used += (size_t)sprintf(out + used, "%u", seed);
            line += 5;
        } else {
            out[used++] = *line++;
        }
    }
    out[used] = '\0';
}

static const char *run_named(const struct recipe_experiment *e, const char *figure,
                             const char **key)
{
    const char *dot = strchr(figure, '.');
    size_t n = dot ? (size_t)(dot - figure) : 0;
    *key = dot ? dot + 1 : figure;
    for (unsigned i = 0; i < e->runs; i++)
        if (strlen(e->run[i].key) == n && memcmp(e->run[i].key, figure, n) == 0)
            return e->run[i].value;
    return "";
}

/* `loud`: it is said why there is none. */
static double mean_figure(const struct recipe_experiment *e, const char *figure, const char *folder, bool loud)
{
    const char *key, *line = run_named(e, figure, &key);
    char words[LINE_RUN_MAX];
    double sum = 0;
    for (unsigned s = 1; s <= e->seeds; s++) {
        with_seed(line, s, words);
        const struct known *k = result_of(words, folder);
        if (!k)
            return NAN;
        double v = strcmp(key, "exit") == 0 ? k->status : figure_in(k->output, key);
        if (isnan(v) && loud)
            lab_say("%s has no figure %s; exit status %d, it printed:\n%.600s", words, key,
                    k->status, k->output ? k->output : "");
        sum += v;
    }
    return sum / e->seeds;
}

double figure_of(const struct recipe_experiment *e, const char *figure, const char *folder)
{
    return mean_figure(e, figure, folder, true);
}

double figure_if_any(const struct recipe_experiment *e, const char *figure, const char *folder)
{
    return mean_figure(e, figure, folder, false);
}

void figures_forget(void)
{
    while (known) {
        struct known *k = known;
        known = k->next;
        free(k->line);
        free(k->output);
        free(k);
    }
}
