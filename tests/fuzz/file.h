/* file.h - any bytes as a file, for readers that take a stream; and where what they say about it goes. */
#ifndef FUZZ_FILE_H
#define FUZZ_FILE_H
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* NULL where there are too few or too many.  _GNU_SOURCE has to be defined. */
static inline FILE *fuzz_file(const uint8_t *data, size_t size)
{
    static uint8_t copy[1 << 16]; /* fmemopen takes no const */
    if (size == 0 || size > sizeof copy)
        return NULL;
    memcpy(copy, data, size);
    return fmemopen(copy, size, "r");
}

static inline FILE *fuzz_null(void)
{
    static FILE *null;
    return null ? null : (null = fopen("/dev/null", "w"));
}
#endif
