/* options.h - --recipe NAME of a program. */
#ifndef RECIPE_OPTIONS_H
#define RECIPE_OPTIONS_H
#include "recipe/recipe.h"
#include <getopt.h>

enum recipe_program { RECIPE_TRAIN, RECIPE_SIM }; /* the section that is for it */

/* Take an option by the number it has in the table; false where the value is none of its. */
typedef bool recipe_take(void *arg, int option, const char *value);

/* Where --recipe NAME is among the arguments, hand the recipe's options to `take`; the caller then
 * takes those of the command line, which so win.  `--recipe list` prints what there is.
 * -1 to go on, else the exit status, after a sentence.  Text of options stays valid. */
int recipe_options(enum recipe_program, int argc, char **argv, const char *shorts,
                   const struct option *known, recipe_take *take, void *arg);
#endif
