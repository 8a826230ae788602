/* Any bytes as a recipe.  Whatever is accepted can be printed and judged: texts are there, runs
 * and bars of an experiment as well, and bars name its runs. */
#define _GNU_SOURCE 1 /* fmemopen */
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
    static FILE *null;
    static struct recipe r;
    static uint8_t copy[1 << 16];
    if (size == 0 || size > sizeof copy || (!null && !(null = fopen("/dev/null", "w"))))
        return 0;
    for (size_t i = 0; i < size; i++) /* fmemopen takes no const */
        copy[i] = data[i];
    FILE *in = fmemopen(copy, size, "r");
    if (!in)
        return 0;
    if (recipe_read(&r, in, "fuzz.ini", null))
        check_accepted(&r);
    fclose(in);
    return 0;
}
