/* lab-reproduce.h - lab reproduce: the experiments of recipes.
 *
 *   lab-reproduce.c  which recipes, what is printed and written
 *   lab-figures.c    a run, and the figures in what it prints */
#ifndef LAB_REPRODUCE_H
#define LAB_REPRODUCE_H
#include "lab.h"
#include "recipe/recipe.h"

/* Exit status.  Names of recipes, or "all".  Of the options: markdown, keep. */
int lab_reproduce(int count, char **names, const struct lab_options *);

/* The figure, after its run if that is the first that needs it; its mean over the experiment's
 * seeds.  NaN after saying why there is none.  `folder`: where what runs printed is kept, and found
 * instead of running them again; NULL: nowhere. */
double figure_of(const struct recipe_experiment *, const char *figure, const char *folder);
void figures_forget(void);
#endif
