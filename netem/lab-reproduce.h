/* lab-reproduce.h - lab reproduce: the experiments of recipes.
 *
 *   lab-reproduce.c  which recipes, what is printed and written
 *   lab-matrix.c     the claims of all recipes together, a line each
 *   lab-plot.c       curves of an experiment as text
 *   lab-bars.c       whether the bars of an experiment hold
 *   lab-figures.c    a run, and the figures in what it prints */
#ifndef LAB_REPRODUCE_H
#define LAB_REPRODUCE_H
#include "lab.h"
#include "recipe/recipe.h"

/* Exit status.  Names of recipes, or "all".  Of the options: markdown, keep. */
int lab_reproduce(int count, char **names, const struct lab_options *);

/* ---- lab-matrix.c ---- */

/* Exit status.  `path`: a file like a recipe, each of whose experiments is a row; NULL: netem/matrix.ini.  Of the
 * options: keep, markdown. */
int lab_matrix(const char *path, const struct lab_options *);
/* As rows of a Markdown table, and its plots, into `tables` (NULL: neither); false when it cannot be read. */
bool matrix_judge(const char *path, const char *folder, FILE *tables, unsigned *held, unsigned *missed);

/* ---- lab-plot.c ---- */

/* What the experiment's `plot` says, as a block of text, by gnuplot; without that one sentence instead. */
void plot_write(FILE *to, const struct recipe_experiment *, const char *folder);

/* ---- lab-bars.c ---- */

struct judged {
    const struct recipe_experiment *experiment;
    const struct recipe_bar *bar;
    bool held;
    char measured[96]; /* "0.8361" or "0.8361, beside 0.8379" */
};
typedef void on_bar(void *arg, const struct judged *);
/* Its bars, then those of the experiments of others that it names, each told; false after saying which of them is
 * not there. */
bool experiment_judge(const struct recipe_experiment *, const char *folder, on_bar *, void *arg);

/* ---- lab-figures.c ---- */

/* The figure, after its run if that is the first that needs it; its mean over the experiment's
 * seeds.  NaN after saying why there is none.  `folder`: where what runs printed is kept, and found
 * instead of running them again; NULL: nowhere. */
double figure_of(const struct recipe_experiment *, const char *figure, const char *folder);
double figure_if_any(const struct recipe_experiment *, const char *figure, const char *folder); /* likewise, NaN in silence */
void figures_forget(void);
#endif
