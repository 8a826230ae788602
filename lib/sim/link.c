#include "sim/link.h"

#define LINK_DELAY_MIN US(1)
#define LINK_REORDER_DELAY MS(1)
#define LINK_QUEUE_BYTES (256u << 10)

static bool chance(sleet_rng *rng, double p)
{
    return p > 0 && rng_double(rng) < p;
}

static bool gilbert_loses(struct sim_path *path, sleet_rng *rng)
{
    const struct sim_link *l = &path->link;
    if (l->ge_p <= 0)
        return false;
    if (path->bad)
        path->bad = !chance(rng, l->ge_r);
    else
        path->bad = chance(rng, l->ge_p);
    return path->bad;
}

/* When the last bit leaves the rate limiter; never when its queue is full. */
static sleet_time leaves_at(struct sim_path *path, size_t len, sleet_time now)
{
    const struct sim_link *l = &path->link;
    if (l->rate_bps == 0)
        return now;
    sleet_time *free_at = l->free_at ? l->free_at : &path->free_at;
    double ns_a_byte = 8e9 / (double)l->rate_bps;
    sleet_time start = time_before(*free_at, now) ? now : *free_at;
    double waiting = (double)time_since(start, now) / ns_a_byte;
    uint32_t room = l->queue_bytes ? l->queue_bytes : LINK_QUEUE_BYTES;
    if (waiting + (double)len > (double)room)
        return TIME_NEVER;
    *free_at = time_add(start, (sleet_duration)(ns_a_byte * (double)len));
    return *free_at;
}

static sleet_time arrives_at(struct sim_path *path, sleet_rng *rng, sleet_time left)
{
    const struct sim_link *l = &path->link;
    sleet_duration d = l->delay;
    if (l->jitter > 0)
        d += (sleet_duration)(rng_double(rng) * (double)l->jitter);
    if (chance(rng, l->reorder)) {
        d += l->reorder_delay ? l->reorder_delay : LINK_REORDER_DELAY;
        path->reordered++;
    }
    return time_add(left, d < LINK_DELAY_MIN ? LINK_DELAY_MIN : d);
}

struct sim_fate link_pass(struct sim_path *path, sleet_rng *rng, size_t len, sleet_time now)
{
    const struct sim_link *l = &path->link;
    struct sim_fate fate = {.flip = -1};
    bool lost = gilbert_loses(path, rng);
    lost |= chance(rng, l->loss);
    if (lost || l->down || (l->mtu_bytes && len > l->mtu_bytes)) {
        path->lost++;
        return fate;
    }
    sleet_time left = leaves_at(path, len, now);
    if (time_is_never(left)) {
        path->lost++;
        path->tail_dropped++;
        return fate;
    }
    fate.at[fate.copies++] = arrives_at(path, rng, left);
    if (chance(rng, l->duplicate)) {
        path->duplicated++;
        fate.at[fate.copies++] = arrives_at(path, rng, left);
    }
    if (chance(rng, l->corrupt)) {
        path->corrupted++;
        fate.flip = (int64_t)rng_below(rng, (uint32_t)len * 8);
    }
    return fate;
}
