/* recipe.h - a recipe: how a published method is trained here, and the experiment that shows it.
 *
 *     [recipe]
 *     paper = Authors, Title, venue, arXiv number
 *     claim = one sentence
 *     differs = what is different here
 *     [train]                     ; long options of sleet-train without their dashes
 *     strategy = one-peer
 *     no-repair = yes             ; a flag
 *     [sim]                       ; likewise of sleet-sim
 *     [reproduce consensus]       ; an experiment; any number of them, each with a name
 *     run = sleet-bench average one-peer --json
 *     run other = sleet-bench average rps
 *       --json                    ; a line that begins with a blank goes on with the one above
 *     bar = consensus_1 = 0.43 within 20 %
 *     bar = other.bytes_most >= 1.5 * bytes_most
 *     why = what the reason is     ; of the bar above, where it is missed; told with it
 *     of = other recipe: its experiment ; its bars as well; without an experiment all of its
 *     plot = consensus_            ; of all runs, a curve of consensus_1, consensus_2 ... each
 *     plot = accuracy by bytes     ; or a point each
 *
 * A run is a program of Sleet and its options, without a shell; its figures are the numbers of the
 * JSON objects that it prints (of a key that comes again, the last), and "exit", its status.
 * @seed in a run stands for each of `seeds` in turn; figures are then means over them. */
#ifndef RECIPE_H
#define RECIPE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define RECIPE_NAME_MAX 48
#define RECIPE_PATH_MAX 1024
#define RECIPE_TEXT_MAX 16384 /* bytes of all that a file says */
#define RECIPE_PAIRS_MAX 48   /* keys of [train], and of [sim] */
#define RECIPE_EXPERIMENTS_MAX 24
#define RECIPE_RUNS_MAX 12 /* of an experiment */
#define RECIPE_BARS_MAX 12 /* likewise */
#define RECIPE_OF_MAX 32   /* likewise, experiments of other recipes */

/* Text is the recipe's own, as long as it is. */
struct recipe_pair {
    const char *key, *value;
    int line;
};

/* FIGURE OP [NUMBER *] FIGURE [+ or - NUMBER], or FIGURE OP NUMBER, and with = a tolerance:
 * "within 20 %" of the right side, "within 1.5 x" of it, "within 0.5".
 * A figure is KEY of the run without a name, or RUN.KEY. */
struct recipe_bar {
    const char *text; /* as in the file */
    const char *why;  /* it may be missed; "" */
    int line;
    char left[64], right[64]; /* right "": `offset` alone */
    enum recipe_op { RECIPE_EQUAL, RECIPE_MOST, RECIPE_LEAST } op;
    double factor, offset; /* right side: factor * right + offset */
    double tolerance;
    enum { RECIPE_ABSOLUTE, RECIPE_PERCENT, RECIPE_TIMES } kind; /* of the tolerance */
};

struct recipe_experiment {
    const char *name;
    struct recipe_pair run[RECIPE_RUNS_MAX]; /* key: "" or the run's name */
    struct recipe_bar bar[RECIPE_BARS_MAX];
    const char *of[RECIPE_OF_MAX]; /* "RECIPE" or "RECIPE: EXPERIMENT" */
    const char *plot;              /* "" */
    unsigned runs, bars, ofs, seeds; /* seeds: 1 unless the file says more */
    int line;
};

struct recipe {
    char name[RECIPE_NAME_MAX], path[RECIPE_PATH_MAX];
    const char *paper, *claim, *differs; /* never NULL once read */
    struct recipe_pair train[RECIPE_PAIRS_MAX], sim[RECIPE_PAIRS_MAX];
    struct recipe_experiment experiment[RECIPE_EXPERIMENTS_MAX];
    unsigned trains, sims, experiments;
    char text[RECIPE_TEXT_MAX]; /* what the pointers point into */
    size_t used;
};

/* Read a recipe; at the first fault one sentence, with `path` and line, into `errors`, and false.
 * Whether programs know the options is for them to say. */
bool recipe_read(struct recipe *, FILE *in, const char *path, FILE *errors);

/* Find and read one.  A name with a slash or that ends in .ini is a path.  Others are NAME.ini in
 * the folder $SLEET_RECIPES, else in recipes/ of the tree that the program was built in, else in
 * the one that was installed. */
bool recipe_load(struct recipe *, const char *name, FILE *errors);
/* The folder that recipe_load() looks in; false, and a sentence into `errors`, when there is none.
 */
bool recipe_folder(char out[RECIPE_PATH_MAX], FILE *errors);
/* Names and claims of all recipes there, one a line; false after saying what is wrong with one. */
bool recipe_list(FILE *out, FILE *errors);

/* Parse a bar; false when the text is none. */
bool bar_parse(struct recipe_bar *, const char *text);
/* Does it hold, with the figures of both sides? */
bool bar_holds(const struct recipe_bar *, double left, double right);
#endif
