#include "path/path.h"

#define LOSS_WINDOW 256 /* packet counters */
#define LOSS_GAIN 4

void loss_note(struct loss *l, uint64_t highest, uint64_t received)
{
    if (highest < l->highest) /* another session's */
        *l = (struct loss){0};
    uint64_t sent = highest - l->highest;
    if (sent < LOSS_WINDOW)
        return;
    double sample = 1 - (double)(received - l->received) / (double)sent;
    l->share += l->valid ? (sample - l->share) / LOSS_GAIN : sample;
    l->valid = true;
    l->highest = highest;
    l->received = received;
}

double loss_share(const struct loss *l)
{
    return l->share < 0 ? 0 : l->share > 1 ? 1 : l->share;
}
