/* lab-reproduce.c - runs the experiments of recipes: claim, target, measured, pass or fail. */
#include "lab-reproduce.h"
#include <errno.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>

struct report {
    const char *keep;
    FILE *tables, *summary, *matrix; /* NULL: none are wanted */
    char *tables_text, *summary_text, *matrix_text;
    size_t tables_size, summary_size, matrix_size;
    unsigned held, missed;
};

static const char preface[] = "# Papers, reproduced\n\n"
                              "    build/lab reproduce all --markdown docs/papers.md\n\n"
                              "runs the experiments of every recipe in `recipes/` and wrote this "
                              "page; `lab reproduce NAME` runs those of one. A\n"
                              "recipe says what is trained (`sleet-train --recipe NAME`), what its "
                              "paper claims, what is different here, which runs\n"
                              "show it, and the bar for each of their figures. Bars are ours: from "
                              "the paper's algorithm, simulated apart from Sleet.\n"
                              "Where one is missed, the recipe says why. What is said of vectors, "
                              "`tests/e2e/strategies.sh` holds real daemons to.\n\n"
                              "| recipe | bars held | |\n|---|---|---|\n";

/* ---- tables ------------------------------------------------------------------------- */

static void table_begin(const struct report *r, const struct recipe *p)
{
    if (r->tables)
        fprintf(r->tables,
                "\n## %s\n\n%s\n\n> %s\n\nHere: %s\n\n| experiment | target | measured | "
                "|\n|---|---|---|---|\n",
                p->name, p->paper, p->claim, p->differs);
}

static void table_row(const struct report *r, const struct judged *j)
{
    if (r->tables)
        fprintf(r->tables, "| %s | %s | %s | %s%s%s |\n", j->experiment->name, j->bar->text, j->measured,
                j->held ? "pass" : "**fail**", !j->held && *j->bar->why ? ": " : "", j->held ? "" : j->bar->why);
}

static void table_end(const struct report *r, const struct recipe *p)
{
    if (!r->tables)
        return;
    for (unsigned i = 0; i < p->experiments; i++)
        for (unsigned k = 0; k < p->experiment[i].runs; k++) {
            const struct recipe_pair *run = &p->experiment[i].run[k];
            fprintf(r->tables, "%s    %s%s%s\n", i + k ? "" : "\n", run->value,
                    *run->key ? "    # " : "", run->key);
        }
    for (unsigned i = 0; i < p->experiments; i++)
        plot_write(r->tables, &p->experiment[i], r->keep);
}

/* ---- experiments --------------------------------------------------------------------- */

static void judge(void *arg, const struct judged *j)
{
    struct report *r = arg;
    printf("  %-28s %-44s %-24s %s\n", j->experiment->name, j->bar->text, j->measured, j->held ? "pass" : "FAIL");
    if (!j->held && *j->bar->why)
        printf("    %s\n", j->bar->why);
    fflush(stdout);
    table_row(r, j);
    r->held += j->held;
    r->missed += !j->held;
}

static bool reproduce(struct report *r, const char *name)
{
    static struct recipe p;
    unsigned held = r->held, missed = r->missed;
    if (!recipe_load(&p, name, stderr))
        return false;
    printf("%s: %s\n", p.name, p.claim);
    if (p.experiments == 0)
        puts("  no experiment");
    table_begin(r, &p);
    for (unsigned i = 0; i < p.experiments; i++)
        if (!experiment_judge(&p.experiment[i], r->keep, judge, r))
            return false;
    table_end(r, &p);
    if (r->summary)
        fprintf(r->summary, "| [%s](#%s) | %u of %u | %s |\n", p.name, p.name, r->held - held,
                r->held + r->missed - held - missed, r->missed == missed ? "pass" : "**fail**");
    return true;
}

static bool reproduce_all(struct report *r)
{
    char folder[RECIPE_PATH_MAX], pattern[RECIPE_PATH_MAX + 8];
    glob_t found;
    if (!recipe_folder(folder, stderr))
        return false;
    snprintf(pattern, sizeof pattern, "%s/*.ini", folder);
    if (glob(pattern, 0, NULL, &found) != 0)
        return false;
    bool ok = true;
    for (size_t i = 0; i < found.gl_pathc && ok; i++)
        ok = reproduce(r, found.gl_pathv[i]);
    globfree(&found);
    unsigned held = 0, missed = 0; /* rows, of bars that were counted */
    return ok && (!r->matrix || matrix_judge(NULL, r->keep, r->matrix, &held, &missed));
}

static bool write_page(struct report *r, const char *path)
{
    FILE *to = fopen(path, "we");
    if (!to) {
        lab_say("cannot write %s: %s", path, strerror(errno));
        return false;
    }
    fprintf(to, "%s%s%s%s", preface, r->summary_text, r->matrix_text, r->tables_text);
    return fclose(to) == 0;
}

int lab_reproduce(int count, char **names, const struct lab_options *o)
{
    struct report r = {.keep = o->keep};
    bool ok = true;
    if (o->markdown) {
        r.tables = open_memstream(&r.tables_text, &r.tables_size);
        r.summary = open_memstream(&r.summary_text, &r.summary_size);
        r.matrix = open_memstream(&r.matrix_text, &r.matrix_size);
        if (!r.tables || !r.summary || !r.matrix)
            abort();
    }
    for (int i = 0; i < count && ok; i++)
        ok = strcmp(names[i], "all") == 0 ? reproduce_all(&r) : reproduce(&r, names[i]);
    figures_forget();
    if (o->markdown) {
        fclose(r.tables);
        fclose(r.summary);
        fclose(r.matrix);
        ok = ok && write_page(&r, o->markdown);
        free(r.tables_text);
        free(r.summary_text);
        free(r.matrix_text);
    }
    if (!ok)
        return LAB_USAGE;
    printf("lab: %u bars held, %u missed\n", r.held, r.missed);
    return r.missed ? LAB_FAILED : LAB_OK;
}
