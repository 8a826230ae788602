#include "train/batch.h"
#include <stddef.h>

#define SPEED_BITS 20           /* of the fastest node's speed */
#define SCALE_MOST (1ull << 37) /* at which the slowest node's batch is above BATCH_MAX */
#define MILLION 1000000u

static uint32_t there(const struct batch_row *row, uint32_t n)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < n; i++)
        count += row[i].batch > 0;
    return count;
}

uint32_t batch_global(const struct batch_control *c, uint32_t count)
{
    if (c->on_resize == RESIZE_CONSTANT || c->nodes == 0)
        return c->global;
    return (uint32_t)(((uint64_t)c->global * count + c->nodes / 2) / c->nodes);
}

double batch_rate(const struct batch_control *c, uint32_t count)
{
    if (c->on_resize != RESIZE_LINEAR || c->global == 0)
        return 1;
    return (double)batch_global(c, count) / (double)c->global;
}

/* All measured times are near their mean, and the sum is what it should be. */
static bool settled(const struct batch_control *c, const struct batch_row *row, uint32_t n,
                    uint64_t global)
{
    uint64_t sum = 0, times = 0, measured = 0, deadband = (uint64_t)(c->deadband * MILLION + 0.5);
    for (uint32_t i = 0; i < n; i++) {
        sum += row[i].batch;
        times += row[i].batch ? row[i].time_us : 0;
        measured += row[i].batch && row[i].time_us;
        if (row[i].batch && (row[i].batch < c->least || row[i].batch > c->most))
            return false;
    }
    for (uint32_t i = 0; i < n; i++) {
        uint64_t t = row[i].time_us * measured, off = t > times ? t - times : times - t;
        if (row[i].batch && row[i].time_us && off * MILLION > deadband * times)
            return false;
    }
    return sum == global;
}

/* Samples a second of each row, relative, at most 2^SPEED_BITS; where none was measured, their
 * mean. */
static void speeds(const struct batch_row *row, uint32_t n, uint64_t *speed)
{
    uint64_t most = 0, sum = 0, measured = 0;
    for (uint32_t i = 0; i < n; i++) {
        speed[i] =
            row[i].batch && row[i].time_us ? ((uint64_t)row[i].batch << 40) / row[i].time_us : 0;
        most = speed[i] > most ? speed[i] : most;
    }
    for (uint32_t i = 0; i < n; i++) {
        uint64_t v = speed[i];
        for (uint64_t m = most; m >> SPEED_BITS; m >>= 1)
            v >>= 1;
        measured += speed[i] > 0;
        speed[i] = speed[i] && !v ? 1 : v;
        sum += speed[i];
    }
    for (uint32_t i = 0; i < n; i++)
        if (row[i].batch && !speed[i])
            speed[i] = measured ? sum / measured : 1u << SPEED_BITS;
}

static uint32_t bounded(const struct batch_control *c, uint64_t batch)
{
    return batch < c->least ? c->least : batch > c->most ? c->most : (uint32_t)batch;
}

/* The batches at one scale of the speeds; their sum. */
static uint64_t at_scale(const struct batch_control *c, const uint64_t *speed, uint32_t n,
                         uint64_t scale, uint32_t *batch)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < n; i++) {
        batch[i] = speed[i] ? bounded(c, scale * speed[i] >> SPEED_BITS) : 0;
        sum += batch[i];
    }
    return sum;
}

/* One sample more for those that have the largest part of one coming, until the sum is there. */
static void fill_up(const struct batch_control *c, const uint64_t *speed, uint32_t n,
                    uint64_t scale, uint64_t missing, uint32_t *batch)
{
    bool given[BATCH_NODES_MAX] = {false};
    const uint64_t part = (1u << SPEED_BITS) - 1;
    for (; missing > 0; missing--) {
        uint32_t best = n;
        for (uint32_t i = 0; i < n; i++)
            if (speed[i] && !given[i] && batch[i] < c->most &&
                (best == n || (scale * speed[i] & part) > (scale * speed[best] & part)))
                best = i;
        if (best == n)
            return; /* all are at their bound */
        batch[best]++;
        given[best] = true;
    }
}

bool batch_balance(const struct batch_control *c, struct batch_row *row, uint32_t n)
{
    uint64_t speed[BATCH_NODES_MAX], global = batch_global(c, there(row, n)), low = 0,
                                     high = SCALE_MOST;
    uint32_t batch[BATCH_NODES_MAX];
    bool changed = false;
    if (n > BATCH_NODES_MAX || settled(c, row, n, global))
        return false;
    speeds(row, n, speed);
    while (high - low > 1) { /* the largest scale at which the sum is not above */
        uint64_t middle = low + (high - low) / 2;
        if (at_scale(c, speed, n, middle, batch) <= global)
            low = middle;
        else
            high = middle;
    }
    uint64_t sum = at_scale(c, speed, n, low, batch);
    if (sum < global)
        fill_up(c, speed, n, low, global - sum, batch);
    for (uint32_t i = 0; i < n; i++) {
        changed |= row[i].batch != batch[i];
        row[i].batch = batch[i];
    }
    return changed;
}
