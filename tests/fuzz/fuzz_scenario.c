/* Any bytes as a scenario file.  Whatever is accepted names only nodes that exist and
 * can be printed and checked. */
#define _GNU_SOURCE 1 /* fmemopen */
#include "file.h"
#include "scenario/scenario.h"
#include <math.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_accepted(const struct scenario *s, FILE *null)
{
    static scenario_values values;
    char text[256];
    if (s->nodes < 1 || s->nodes > SCENARIO_NODES_MAX || s->expects < 1 || scenario_steps(s) < 1)
        abort();
    for (int i = 0; i < (int)s->nodes; i++) {
        if (!(s->link[i].loss >= 0 && s->link[i].loss <= 1))
            abort();
        scenario_link_text(&s->link[i], text, sizeof text);
    }
    for (int i = 0; i < s->events; i++)
        if (s->event[i].action >= SCENARIO_ACTIONS || s->event[i].when == WHEN_MISSING ||
            s->event[i].nodes >> (int)s->nodes)
            abort();
    for (int i = 0; i < s->expects; i++)
        scenario_expect_text(&s->expect[i], text, sizeof text);
    for (int m = 0; m < METRIC_COUNT; m++)
        for (int i = 0; i < SCENARIO_NODES_MAX; i++)
            values[m][i] = i % 2 ? NAN : 1;
    struct scenario_verdict v = scenario_check(s, values, 0, null);
    if (v.passed + v.failed != s->expects)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct scenario s;
    FILE *in = fuzz_file(data, size), *null = fuzz_null();
    if (in && null && scenario_read(&s, in, "fuzz.ini", null))
        check_accepted(&s, null);
    if (in)
        fclose(in);
    return 0;
}
