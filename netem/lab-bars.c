/* lab-bars.c - an experiment's bars, held against what its runs printed. */
#include "lab-reproduce.h"
#include <math.h>
#include <string.h>

static void number_text(double v, char out[32])
{
    if (isnan(v))
        snprintf(out, 32, "none");
    else if (v == floor(v) && fabs(v) < 1e15)
        snprintf(out, 32, "%.0f", v);
    else
        snprintf(out, 32, "%.4g", v);
}

static struct judged judge_bar(const struct recipe_experiment *e, const struct recipe_bar *b, const char *folder)
{
    struct judged j = {.bar = b, .experiment = e};
    char left[32], right[32];
    double l = figure_of(e, b->left, folder), r = b->right[0] ? figure_of(e, b->right, folder) : 0;
    j.held = bar_holds(b, l, r);
    number_text(l, left);
    number_text(r, right);
    snprintf(j.measured, sizeof j.measured, b->right[0] ? "%s, beside %s" : "%s", left, right);
    return j;
}

static void judge_own(const struct recipe_experiment *e, const char *folder, on_bar *told, void *arg)
{
    for (unsigned i = 0; i < e->bars; i++) {
        struct judged j = judge_bar(e, &e->bar[i], folder);
        told(arg, &j);
    }
}

/* "RECIPE" or "RECIPE: EXPERIMENT": false after saying what there is not.  One without a bar would hold whatever is
 * measured. */
static bool judge_other(const char *name, const char *folder, on_bar *told, void *arg)
{
    static struct recipe other;
    char recipe[RECIPE_PATH_MAX];
    const char *colon = strchr(name, ':');
    const char *wanted = colon ? colon + 1 + strspn(colon + 1, " ") : NULL;
    unsigned found = 0;
    snprintf(recipe, sizeof recipe, "%.*s", colon ? (int)(colon - name) : (int)strlen(name), name);
    if (!recipe_load(&other, recipe, stderr))
        return false;
    for (unsigned i = 0; i < other.experiments; i++)
        if (!wanted || strcmp(other.experiment[i].name, wanted) == 0) {
            judge_own(&other.experiment[i], folder, told, arg);
            found += other.experiment[i].bars;
        }
    if (!found)
        lab_say("%s has no experiment %s with bars of its own", other.path, wanted ? wanted : "at all");
    return found;
}

bool experiment_judge(const struct recipe_experiment *e, const char *folder, on_bar *told, void *arg)
{
    judge_own(e, folder, told, arg);
    for (unsigned i = 0; i < e->ofs; i++)
        if (!judge_other(e->of[i], folder, told, arg))
            return false;
    return true;
}
