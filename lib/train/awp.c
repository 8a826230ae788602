#include "train/awp.h"
#include <math.h>

void awp_init(struct awp *a, double threshold, uint32_t interval, uint32_t bytes)
{
    *a = (struct awp){threshold, interval, bytes, 0, NAN};
}

uint32_t awp_batch(struct awp *a, double norm)
{
    norm = isfinite(norm) ? norm : NAN;
    /* Not divided, so that a norm of 0 is no trouble; false where one is not a number. */
    a->calm = norm - a->norm < a->threshold * a->norm ? a->calm + 1 : 0;
    a->norm = norm;
    if (a->calm >= a->interval) {
        a->calm = 0;
        a->bytes += a->bytes < AWP_BYTES_MAX;
    }
    return a->bytes;
}

sleet_codec awp_codec(uint32_t bytes)
{
    static const sleet_codec codec[] = {SLEET_CODEC_TRUNC1, SLEET_CODEC_TRUNC2, SLEET_CODEC_TRUNC3};
    return bytes < AWP_BYTES_MAX ? codec[bytes - 1] : SLEET_CODEC_F32;
}
