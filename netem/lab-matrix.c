/* lab-matrix.c - what all recipes together have to show: a claim a line, green or red on a terminal. */
#include "lab-reproduce.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A row's bars so far. */
struct row {
    unsigned held, missed;
    struct lab_text first, misses;
};

static void bar_text(struct lab_text *to, const struct judged *j)
{
    const char *why = j->held ? "" : j->bar->why;
    lab_add(to, "%s%s: %s%s%s%s", to->len ? "; " : "", j->bar->text, j->measured, *why ? " (" : "", why, *why ? ")" : "");
}

static void on_row_bar(void *arg, const struct judged *j)
{
    struct row *r = arg;
    if (r->held + r->missed == 0)
        bar_text(&r->first, j);
    if (!j->held)
        bar_text(&r->misses, j);
    r->held += j->held;
    r->missed += !j->held;
}

static void row_print(const char *claim, const struct row *r, FILE *tables)
{
    unsigned bars = r->held + r->missed;
    const char *text = r->missed ? r->misses.text : r->first.text;
    const char *color = !isatty(STDOUT_FILENO) ? "" : r->missed ? "\033[31m" : "\033[32m";
    const char *plain = *color ? "\033[0m" : "";
    printf("%s%s  %-38s %3u of %3u  %s%s\n", color, r->missed ? "FAIL" : "pass", claim, r->held, bars, text, plain);
    fflush(stdout);
    if (tables)
        fprintf(tables, "| %s | %s | %u of %u | %s |\n", claim, text, r->held, bars, r->missed ? "**fail**" : "pass");
}

static bool row_judge(const struct recipe_experiment *e, const char *folder, FILE *tables, unsigned *held, unsigned *missed)
{
    struct row r = {0};
    bool ok = experiment_judge(e, folder, on_row_bar, &r);
    if (ok) {
        row_print(e->name, &r, tables);
        *held += !r.missed;
        *missed += r.missed > 0;
    }
    free(r.first.text);
    free(r.misses.text);
    return ok;
}

bool matrix_judge(const char *path, const char *folder, FILE *tables, unsigned *held, unsigned *missed)
{
    static struct recipe m;
    if (!recipe_load(&m, path ? path : LAB_MATRIX, stderr))
        return false;
    if (tables)
        fprintf(tables, "\n## %s\n\n    build/lab matrix\n\n%s %s\n\n| claim | measured | bars held | |\n|---|---|---|---|\n",
                m.paper, m.claim, m.differs);
    for (unsigned i = 0; i < m.experiments; i++)
        if (!*m.experiment[i].plot && !row_judge(&m.experiment[i], folder, tables, held, missed))
            return false;
    for (unsigned i = 0; tables && i < m.experiments; i++)
        plot_write(tables, &m.experiment[i], folder);
    return true;
}

int lab_matrix(const char *path, const struct lab_options *o)
{
    unsigned held = 0, missed = 0;
    FILE *tables = o->markdown ? fopen(o->markdown, "we") : NULL;
    if (o->markdown && !tables) {
        lab_say("cannot write %s: %s", o->markdown, strerror(errno));
        return LAB_USAGE;
    }
    bool ok = matrix_judge(path, o->keep, tables, &held, &missed);
    figures_forget();
    if (tables)
        ok = fclose(tables) == 0 && ok;
    if (!ok)
        return LAB_USAGE;
    printf("lab: %u rows hold, %u do not\n", held, missed);
    return missed ? LAB_FAILED : LAB_OK;
}
