#include "round/budget.h"
#include <stdlib.h>
#include <string.h>

static sleet_duration clamp(sleet_duration v, sleet_duration low, sleet_duration high)
{
    return v < low ? low : v > high ? high : v;
}

static int compare(const void *a, const void *b)
{
    sleet_duration x = *(const sleet_duration *)a, y = *(const sleet_duration *)b;
    return (x > y) - (x < y);
}

void budget_init(struct budget *b, sleet_duration first, sleet_duration min, sleet_duration max)
{
    *b = (struct budget){.first = clamp(first, min, max), .min = min, .max = max};
}

void budget_add(struct budget *b, sleet_duration sample, bool censored)
{
    sleet_duration sorted[BUDGET_SAMPLES], now = budget_now(b);
    if (censored)
        sample = now + now / 2;
    b->samples[b->pos] = clamp(sample, 0, b->max);
    b->pos = (b->pos + 1) % BUDGET_SAMPLES;
    if (b->n < BUDGET_SAMPLES)
        b->n++;
    memcpy(sorted, b->samples, b->n * sizeof(sorted[0]));
    qsort(sorted, b->n, sizeof(sorted[0]), compare);
    b->p95 = sorted[(b->n * 95 + 99) / 100 - 1];
}

sleet_duration budget_now(const struct budget *b)
{
    return b->n < BUDGET_SAMPLES_MIN ? b->first : clamp(b->p95 + b->p95 / 4, b->min, b->max);
}
