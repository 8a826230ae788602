/* options.c - a recipe's options, as if they stood before those of the command line. */
#include "recipe/options.h"
#include <string.h>

/* The argument of the last --recipe; NULL: there is none. */
static const char *named(int argc, char **argv, const char *shorts, const struct option *known)
{
    const char *name = NULL;
    int index = -1, loud = opterr;
    opterr = 0; /* what is wrong is told when they are taken */
    while (getopt_long(argc, argv, shorts, known, &index) != -1) {
        if (index >= 0 && strcmp(known[index].name, "recipe") == 0)
            name = optarg;
        index = -1;
    }
    opterr = loud;
    optind = 0; /* glibc: begin anew */
    return name;
}

static bool take_pair(const struct recipe *r, const struct recipe_pair *p,
                      const struct option *known, recipe_take *take, void *arg)
{
    const struct option *o = known;
    while (o->name && (strcmp(o->name, p->key) != 0 || strcmp(o->name, "recipe") == 0))
        o++;
    if (!o->name)
        fprintf(stderr, "%s:%d: there is no option --%s\n", r->path, p->line, p->key);
    else if (!o->has_arg && strcmp(p->value, "yes") != 0)
        fprintf(stderr, "%s:%d: --%s takes no value: write %s = yes, or leave it out\n", r->path,
                p->line, p->key, p->key);
    else if (!take(arg, o->val, o->has_arg ? p->value : NULL))
        fprintf(stderr, "%s:%d: --%s does not take the value %s\n", r->path, p->line, p->key,
                p->value);
    else
        return true;
    return false;
}

int recipe_options(enum recipe_program program, int argc, char **argv, const char *shorts,
                   const struct option *known, recipe_take *take, void *arg)
{
    static struct recipe r; /* options point into it */
    const char *name = named(argc, argv, shorts, known);
    if (!name)
        return -1;
    if (strcmp(name, "list") == 0)
        return recipe_list(stdout, stderr) ? 0 : 1;
    if (!recipe_load(&r, name, stderr))
        return 2;
    const struct recipe_pair *pairs = program == RECIPE_TRAIN ? r.train : r.sim;
    unsigned n = program == RECIPE_TRAIN ? r.trains : r.sims;
    if (n == 0) {
        fprintf(stderr, "%s: the recipe has no section [%s]\n", r.path,
                program == RECIPE_TRAIN ? "train" : "sim");
        return 2;
    }
    for (unsigned i = 0; i < n; i++)
        if (!take_pair(&r, &pairs[i], known, take, arg))
            return 2;
    return -1;
}
