/* find.c - where recipes are. */
#include "recipe/recipe.h"
#include <errno.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef RECIPE_INSTALLED
#error RECIPE_INSTALLED has to be the folder that recipes are installed in
#endif
#define LEVELS_MOST 4 /* a program of a build lies so deep below the tree's top */

static bool is_folder(const char *path)
{
    char here[RECIPE_PATH_MAX + 3];
    snprintf(here, sizeof here, "%s/.", path);
    return access(here, R_OK) == 0;
}

/* recipes/ of the tree that the program was built in; it has lib/sleet.h beside it. */
static bool of_tree(char out[RECIPE_PATH_MAX])
{
    char top[RECIPE_PATH_MAX / 2], probe[RECIPE_PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", top, sizeof top - 1);
    if (n <= 0)
        return false;
    top[n] = '\0';
    for (int level = 0; level < LEVELS_MOST; level++) {
        char *slash = strrchr(top, '/');
        if (!slash)
            return false;
        *slash = '\0';
        snprintf(probe, sizeof probe, "%s/lib/sleet.h", top);
        snprintf(out, RECIPE_PATH_MAX, "%s/recipes", top);
        if (access(probe, R_OK) == 0 && is_folder(out))
            return true;
    }
    return false;
}

bool recipe_folder(char out[RECIPE_PATH_MAX], FILE *errors)
{
    const char *told = getenv("SLEET_RECIPES");
    if (told && *told)
        snprintf(out, RECIPE_PATH_MAX, "%s", told);
    else if (!of_tree(out))
        snprintf(out, RECIPE_PATH_MAX, "%s", RECIPE_INSTALLED);
    if (is_folder(out))
        return true;
    fprintf(errors, "no recipes: there is no folder %s%s\n", out,
            told && *told ? ", which SLEET_RECIPES names" : "; SLEET_RECIPES can name another");
    return false;
}

static bool load_path(struct recipe *r, const char *path, FILE *errors)
{
    FILE *in = fopen(path, "re");
    if (!in) {
        fprintf(errors, "cannot read the recipe %s: %s\n", path, strerror(errno));
        return false;
    }
    bool ok = recipe_read(r, in, path, errors);
    fclose(in);
    return ok;
}

static bool is_path(const char *name)
{
    size_t n = strlen(name);
    return strchr(name, '/') || (n > 4 && strcmp(name + n - 4, ".ini") == 0);
}

bool recipe_load(struct recipe *r, const char *name, FILE *errors)
{
    char folder[RECIPE_PATH_MAX], path[RECIPE_PATH_MAX + 64];
    if (is_path(name))
        return load_path(r, name, errors);
    if (!recipe_folder(folder, errors))
        return false;
    snprintf(path, sizeof path, "%s/%.*s.ini", folder, RECIPE_NAME_MAX, name);
    if (strlen(name) < RECIPE_NAME_MAX && access(path, F_OK) == 0)
        return load_path(r, path, errors);
    fprintf(errors, "there is no recipe %s in %s; --recipe list shows what there is\n", name,
            folder);
    return false;
}

bool recipe_list(FILE *out, FILE *errors)
{
    static struct recipe r;
    char folder[RECIPE_PATH_MAX], pattern[RECIPE_PATH_MAX + 8];
    glob_t found;
    if (!recipe_folder(folder, errors))
        return false;
    snprintf(pattern, sizeof pattern, "%s/*.ini", folder);
    if (glob(pattern, 0, NULL, &found) != 0) {
        fprintf(errors, "there are no recipes in %s\n", folder);
        return false;
    }
    bool ok = true;
    for (size_t i = 0; i < found.gl_pathc && ok; i++)
        if ((ok = load_path(&r, found.gl_pathv[i], errors)))
            fprintf(out, "%-16s %s\n", r.name, r.claim);
    globfree(&found);
    return ok;
}
