/* lab-plot.c - an experiment's figures drawn as text, by gnuplot. */
#include "lab-reproduce.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define POINTS_MAX 64
#define LEAST 1e-12 /* of a curve: what is less is drawn there */

/* KEY of the run, as a bar names it. */
static double figure(const struct recipe_experiment *e, unsigned run, const char *key, const char *folder)
{
    char name[128];
    snprintf(name, sizeof name, "%s%s%s", e->run[run].key, *e->run[run].key ? "." : "", key);
    return figure_if_any(e, name, folder);
}

/* KEY_1, KEY_2 ... as far as they go. */
static void curve(struct lab_text *data, const struct recipe_experiment *e, unsigned run, const char *key,
                  const char *folder)
{
    char name[96];
    for (unsigned i = 1; i <= POINTS_MAX; i++) {
        snprintf(name, sizeof name, "%s%u", key, i);
        double y = figure(e, run, name, folder);
        if (isnan(y))
            break;
        lab_add(data, "%u %g\n", i, fmax(y, LEAST));
    }
    lab_add(data, "e\n");
}

static void point(struct lab_text *data, const struct recipe_experiment *e, unsigned run, const char *y,
                  const char *x, const char *folder)
{
    lab_add(data, "%g %g\ne\n", figure(e, run, x, folder), figure(e, run, y, folder));
}

/* The script with its data; `y`, and `x` or NULL, out of "Y by X". */
static void script(struct lab_text *s, const struct recipe_experiment *e, const char *y, const char *x, const char *folder)
{
    struct lab_text data = {0};
    lab_add(s, "set terminal dumb mono noenhanced size 100, 30\nset key outside bottom center horizontal\nset ylabel '%s'\n", x ? y : "");
    lab_add(s, x ? "set logscale x\nset xlabel '%s'\nset offsets graph 0.05, graph 0.05, graph 0.1, graph 0.1\n"
                 : "set logscale y\nset format y '%%.0e'\nset xlabel '%s'\n", x ? x : "round");
    lab_add(s, "plot");
    for (unsigned i = 0; i < e->runs; i++) {
        lab_add(s, "%s '-' with %s title '%s'", i ? "," : "", x ? "points" : "linespoints", e->run[i].key);
        if (x)
            point(&data, e, i, y, x, folder);
        else
            curve(&data, e, i, y, folder);
    }
    lab_add(s, "\n%s", data.text);
    free(data.text);
}

/* As a block of Markdown, without the blanks that lines end in. */
static void block(FILE *to, const char *text)
{
    text += strspn(text, "\f\n");
    for (const char *end; *text; text = *end ? end + 1 : end) {
        end = strchrnul(text, '\n');
        size_t n = (size_t)(end - text);
        while (n && text[n - 1] == ' ')
            n--;
        fprintf(to, n ? "    %.*s\n" : "%.*s\n", (int)n, text);
    }
}

void plot_write(FILE *to, const struct recipe_experiment *e, const char *folder)
{
    const char *argv[] = {"gnuplot", "-", NULL};
    struct lab_text s = {0};
    char y[64] = "", by[8] = "", x[64] = "", *drawn = NULL;
    if (!*e->plot)
        return;
    int words = sscanf(e->plot, "%63s %7s %63s", y, by, x);
    fprintf(to, "\n%s: `%s`\n\n", e->name, e->plot);
    if (!lab_find("gnuplot")) {
        fputs("    (no gnuplot here)\n", to);
        return;
    }
    script(&s, e, y, words == 3 ? x : NULL, folder);
    if (lab_exec(argv, s.text, &drawn) == 0 && drawn)
        block(to, drawn);
    else
        lab_say("gnuplot draws no %s: %s", e->name, drawn ? drawn : "");
    for (unsigned i = 0; i < e->runs; i++)
        fprintf(to, "%s    %s    # %s\n", i ? "" : "\n", e->run[i].value, e->run[i].key);
    free(drawn);
    free(s.text);
}
