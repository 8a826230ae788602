#include "path/path.h"

#define TRAIN_MIN 3       /* datagrams, of fewer the time says too little */
#define SPAN_MIN US(250)  /* what is read at once has one time */
#define SLACK MS(1)       /* by which datagrams spread without anything in their way */
#define IN_A_ROW 2        /* trains that were held up: it is the way, not a process that read late */
#define MANTISSA_BITS 10
#define EXPONENT_MAX 31
#define AT_LEAST 0x8000

static uint64_t median(const uint64_t *x, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        uint32_t below = 0;
        for (uint32_t k = 0; k < n; k++)
            below += x[k] < x[i] || (x[k] == x[i] && k < i);
        if (below == (n - 1) / 2)
            return x[i];
    }
    return 0;
}

uint64_t capacity_bps(const struct capacity *c)
{
    return median(c->measured, c->trains < CAPACITY_TRAINS ? (uint32_t)c->trains : CAPACITY_TRAINS);
}

bool capacity_at_least(const struct capacity *c) { return c->held_up < IN_A_ROW; }

static void train_over(struct capacity *c)
{
    sleet_duration came = time_since(c->last, c->first), left = US((int32_t)(c->sent_last - c->sent_first));
    bool enough = c->n >= TRAIN_MIN;
    c->n = 0;
    if (!enough)
        return;
    sleet_duration span = came > left ? came : left;
    span = span > SPAN_MIN ? span : SPAN_MIN;
    uint64_t bps = (uint64_t)((double)c->bytes * 8e9 / (double)span);
    bool held_up = came > left + left / 4 + SLACK;
    if (capacity_at_least(c))
        c->held_up = held_up ? c->held_up + 1 : 0;
    if (held_up || bps > capacity_bps(c))
        c->measured[c->trains++ % CAPACITY_TRAINS] = bps;
}

void capacity_note(struct capacity *c, uint32_t train, uint32_t sent_us, uint32_t bytes, bool last,
                   sleet_time now)
{
    if (c->n && c->train != train)
        train_over(c);
    if (!c->n++) {
        c->train = train;
        c->sent_first = c->sent_last = sent_us;
        c->first = now;
        c->bytes = 0; /* the first one's own time is not known */
    } else {
        c->bytes += bytes + c->beside;
    }
    if ((int32_t)(sent_us - c->sent_last) > 0)
        c->sent_last = sent_us;
    c->beside = 0;
    c->last = now;
    if (last)
        train_over(c);
}

void capacity_beside(struct capacity *c, uint32_t bytes) { c->beside += bytes; }

uint16_t capacity_code(const struct capacity *c)
{
    uint64_t bps = capacity_bps(c);
    uint32_t shift = 0;
    while (bps >> shift >> MANTISSA_BITS)
        shift++;
    uint32_t code = shift << MANTISSA_BITS | (uint32_t)(bps >> shift);
    if (shift > EXPONENT_MAX)
        code = AT_LEAST - 1;
    return (uint16_t)(code | (bps && capacity_at_least(c) ? AT_LEAST : 0));
}

uint64_t capacity_of_code(uint16_t code, bool *at_least)
{
    uint32_t exponent = (code & (AT_LEAST - 1u)) >> MANTISSA_BITS;
    *at_least = (code & AT_LEAST) != 0;
    return (uint64_t)(code & ((1u << MANTISSA_BITS) - 1)) << exponent;
}
