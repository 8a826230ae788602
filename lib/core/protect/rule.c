#include "protect/rule.h"
#include "protect/parity.h"
#include <math.h>

#define PASS_ROUND_TRIPS 1.5
#define CLEAN 0.1 /* datagrams lost of all */

/* Rows, by how much may be lost at most. */
static const struct {
    double loss;
    uint8_t rows;
} codes[] = {{1. / 16, 8}, {1. / 8, 16}, {1. / 4, 32}};
#define CODES (sizeof codes / sizeof codes[0])

/* At most, so that sums do not overflow. */
static sleet_duration seconds(double s)
{
    return s < 1e6 ? (sleet_duration)(s * 1e9) : SEC(1000000);
}

struct protection protect_decide(const struct protect_case *c)
{
    struct protection d = {0};
    uint32_t code = 0;
    while (code < CODES && c->loss > codes[code].loss)
        code++;
    if (c->off)
        return (struct protection){.reason = PROTECT_OFF};
    if (!(c->loss * c->datagrams > CLEAN))
        return (struct protection){.reason = PROTECT_CLEAN};
    if (c->rtt < 0)
        return (struct protection){.reason = PROTECT_NO_RTT};
    if (code == CODES)
        return (struct protection){.reason = PROTECT_BEYOND};
    double more_passes = log((double)c->datagrams) / -log(c->loss);
    double time = (double)c->bytes * 8 / (double)c->rate_bps;
    double overhead = (double)codes[code].rows / PARITY_DATA_MAX;
    d.repair = seconds(PASS_ROUND_TRIPS * (double)c->rtt / 1e9 * more_passes);
    d.parity = seconds(overhead * time);
    if (d.repair <= d.parity)
        d.reason = PROTECT_NEAR;
    else if (c->congested)
        d.reason = PROTECT_CONGESTED;
    else if (seconds((1 + overhead) * time) + c->rtt / 2 > c->deadline)
        d.reason = PROTECT_NO_TIME;
    else
        d.reason = PROTECT_FAR;
    d.rows = d.reason == PROTECT_FAR ? codes[code].rows : 0;
    return d;
}

const char *protect_reason_text(enum protect_reason reason)
{
    static const char *const text[] = {
#define PROTECT_X(name, sentence) [name] = sentence,
        PROTECT_REASON_MAP(PROTECT_X)
#undef PROTECT_X
    };
    return text[reason];
}
