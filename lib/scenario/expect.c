/* expect.c - what came out against what was expected. */
#include "scenario/scenario.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

void scenario_nodes_text(uint32_t nodes, char *out, size_t len)
{
    size_t used = 0;
    out[0] = '\0';
    for (int i = 0; i < SCENARIO_NODES_MAX && used < len; i++)
        if (nodes & 1u << i)
            used += (size_t)snprintf(out + used, len - used, used ? " %d" : "%d", i + 1);
}

void scenario_link_text(const struct scenario_link *l, char *out, size_t len)
{
    const struct {
        const char *before;
        double value;
        const char *unit;
    } parts[] = {
        {"", l->delay_ms, "ms"},
        {"+-", l->jitter_ms, "ms"},
        {"loss ", 100 * l->loss, "%"},
        {"bursts ", 100 * l->gemodel_p, "%"},
        {"ended by ", 100 * l->gemodel_r, "%"},
        {"duplicate ", 100 * l->duplicate, "%"},
        {"corrupt ", 100 * l->corrupt, "%"},
        {"reorder ", 100 * l->reorder, "%"},
        {"", l->rate_mbit, "Mbit/s"},
        {"queue ", l->queue_kb, "kB"},
    };
    size_t used = 0;
    snprintf(out, len, "perfect");
    for (size_t i = 0; i < sizeof parts / sizeof *parts && used < len; i++)
        if (parts[i].value > 0)
            used += (size_t)snprintf(out + used, len - used, "%s%s%g %s", used ? ", " : "",
                                     parts[i].before, parts[i].value, parts[i].unit);
}

void scenario_expect_text(const struct scenario_expect *e, char *out, size_t len)
{
    char nodes[3 * SCENARIO_NODES_MAX] = "";
    if (e->nodes && e->nodes != UINT32_MAX)
        scenario_nodes_text(e->nodes, nodes, sizeof nodes);
    snprintf(out, len, "%s%s%s %s %g", scenario_metric_names[e->metric], nodes[0] ? " " : "", nodes,
             e->op == '>'   ? ">="
             : e->op == '<' ? "<="
                            : "=",
             e->value);
}

double scenario_worst(const struct scenario *s, const struct scenario_expect *e,
                      scenario_values values)
{
    double worst = NAN, far = -1;
    for (int i = 0; i < (int)s->nodes; i++) {
        double v = values[e->metric][i];
        if (e->nodes && !(e->nodes & 1u << i))
            continue;
        if (isnan(v))
            return NAN;
        double beyond = e->op == '>'   ? e->value - v
                        : e->op == '<' ? v - e->value
                                       : fabs(v - e->value);
        if (isnan(worst) || beyond > far) {
            far = beyond;
            worst = v;
        }
    }
    return worst;
}

bool scenario_holds(const struct scenario_expect *e, double worst)
{
    return e->op == '>' ? worst >= e->value : e->op == '<' ? worst <= e->value : worst == e->value;
}

struct scenario_verdict scenario_check(const struct scenario *s, scenario_values values,
                                       uint32_t left_out, FILE *out)
{
    struct scenario_verdict v = {0, 0};
    for (int i = 0; i < s->expects; i++) {
        const struct scenario_expect *e = &s->expect[i];
        char text[128], found[32] = "not measured";
        double worst = scenario_worst(s, e, values);
        bool holds = !isnan(worst) && scenario_holds(e, worst);
        if (!isnan(worst))
            snprintf(found, sizeof found, "%.6g", worst);
        scenario_expect_text(e, text, sizeof text);
        if (left_out & 1u << e->metric) {
            fprintf(out, "  left out: %s\n", text);
            continue;
        }
        fprintf(out, "  %s: %s (%s)\n", holds ? "ok" : "FAILED", text, found);
        v.passed += holds;
        v.failed += !holds;
    }
    return v;
}

static int by_size(const void *a, const void *b)
{
    double x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return (x > y) - (x < y);
}

double scenario_quantile(const double *values, size_t count, double q)
{
    if (count == 0)
        return NAN;
    double *sorted = malloc(count * sizeof *sorted);
    if (!sorted)
        abort();
    memcpy(sorted, values, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, by_size);
    double v = sorted[(size_t)(q * (double)(count - 1) + 0.5)];
    free(sorted);
    return v;
}

const char *scenario_figure(double value, char out[16])
{
    if (isnan(value))
        snprintf(out, 16, "-");
    else
        snprintf(out, 16, "%.1f", value);
    return out;
}
