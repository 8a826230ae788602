/* lab-figures.c - a run of a recipe's experiment, and the figures in what it prints. */
#include "lab-reproduce.h"
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
    static const char *const programs[] = {"sleet-train", "sleet-sim", "sleet-bench", "lab"};
    char self[RECIPE_PATH_MAX / 2];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    char *slash = n > 0 ? memrchr(self, '/', (size_t)n) : NULL;
    for (size_t i = 0; slash && i < sizeof programs / sizeof *programs; i++)
        if (strcmp(programs[i], name) == 0) {
            *slash = '\0';
            snprintf(out, RECIPE_PATH_MAX, "%s/%s", self, name);
            return true;
        }
    lab_say("a recipe runs sleet-train, sleet-sim, sleet-bench or lab, not %s", name);
    return false;
}

static struct known *run_line(const char *line)
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
    double began = lab_now();
    k->status = lab_exec(argv, NULL, &k->output);
    k->seconds = lab_now() - began;
    k->next = known;
    return known = k;
}

static const struct known *result_of(const char *line)
{
    for (const struct known *k = known; k; k = k->next)
        if (strcmp(k->line, line) == 0)
            return k;
    return run_line(line);
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

double figure_of(const struct recipe_experiment *e, const char *figure, double *seconds)
{
    const char *key, *line = run_named(e, figure, &key);
    char words[LINE_RUN_MAX];
    double sum = 0;
    for (unsigned s = 1; s <= e->seeds; s++) {
        with_seed(line, s, words);
        const struct known *k = result_of(words);
        if (!k)
            return NAN;
        *seconds += k->seconds;
        double v = strcmp(key, "exit") == 0 ? k->status : figure_in(k->output, key);
        if (isnan(v))
            lab_say("%s has no figure %s; exit status %d, it printed:\n%.600s", words, key,
                    k->status, k->output ? k->output : "");
        sum += v;
    }
    return sum / e->seeds;
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
