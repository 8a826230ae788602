#include "round/budget.h"
#include <stdlib.h>
#include <string.h>

#define LATE_MAX MS(500)

static sleet_duration longer(sleet_duration a, sleet_duration b)
{
    return a > b ? a : b;
}

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

static sleet_duration longest_recent(const struct budget *b)
{
    sleet_duration longest = 0;
    for (uint32_t i = 1; i <= BUDGET_RECENT && i <= b->n; i++)
        longest = longer(longest, b->samples[(b->pos + BUDGET_SAMPLES - i) % BUDGET_SAMPLES]);
    return longest;
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
    b->longest = longer(sorted[(b->n * 95 + 99) / 100 - 1], longest_recent(b));
}

void budget_late(struct budget *b, sleet_duration sample)
{
    budget_add(b, clamp(sample, 0, longer(LATE_MAX, 4 * budget_now(b))), false);
}

void budget_floor(struct budget *b, sleet_duration floor)
{
    b->floor = floor;
}

sleet_duration budget_now(const struct budget *b)
{
    sleet_duration learned = b->n < BUDGET_SAMPLES_MIN ? b->first : b->longest + b->longest / 4;
    return clamp(longer(learned, b->floor), b->min, b->max);
}
