/* Any bytes as a recipe.  Whatever is accepted can be printed and judged: texts are there, runs
 * and bars of an experiment as well, and bars name its runs. */
#define _GNU_SOURCE 1 /* fmemopen */
#include "file.h"
#include "recipe/recipe.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_pairs(const struct recipe_pair *pairs, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        if (strlen(pairs[i].key) + strlen(pairs[i].value) >= RECIPE_TEXT_MAX || pairs[i].line < 1)
            abort();
}

static void check_accepted(const struct recipe *r)
{
    if (!*r->paper || !*r->claim || !*r->differs || r->used > sizeof r->text)
        abort();
    check_pairs(r->train, r->trains);
    check_pairs(r->sim, r->sims);
    for (unsigned i = 0; i < r->experiments; i++) {
        const struct recipe_experiment *e = &r->experiment[i];
        if (!e->runs || !e->bars || !*e->name || e->seeds < 1)
            abort();
        check_pairs(e->run, e->runs);
        for (unsigned b = 0; b < e->bars; b++) {
            struct recipe_bar again;
            if (!bar_parse(&again, e->bar[b].text) || again.op != e->bar[b].op)
                abort();
            bar_holds(&again, 1, 2);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct recipe r;
    FILE *in = fuzz_file(data, size), *null = fuzz_null();
    if (in && null && recipe_read(&r, in, "fuzz.ini", null))
        check_accepted(&r);
    if (in)
        fclose(in);
    return 0;
}
