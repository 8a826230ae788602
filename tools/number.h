/* number.h - numbers as users write them on command lines.  Whole text, within bounds; else false, and *out stays. */
#ifndef TOOLS_NUMBER_H
#define TOOLS_NUMBER_H
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

/* Digits only. */
static inline bool number_whole(const char *text, uint64_t least, uint64_t most, uint64_t *out)
{
    char *end;
    errno = 0;
    if (*text < '0' || *text > '9')
        return false;
    unsigned long long v = strtoull(text, &end, 10);
    if (*end || errno || v < least || v > most)
        return false;
    *out = v;
    return true;
}

static inline bool number_whole32(const char *text, uint32_t least, uint32_t most, uint32_t *out)
{
    uint64_t v;
    if (!number_whole(text, least, most, &v))
        return false;
    *out = (uint32_t)v;
    return true;
}

static inline bool number_real(const char *text, double least, double most, double *out)
{
    char *end;
    errno = 0;
    double v = strtod(text, &end);
    if (end == text || *end || errno || !(v >= least && v <= most))
        return false;
    *out = v;
    return true;
}
#endif
