/* reading.h - text as a file, for readers that take a stream and say into another what is wrong. */
#ifndef TEST_READING_H
#define TEST_READING_H
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What `reads` returns of `text`; what was said about it is in `said`.  _GNU_SOURCE has to be defined. */
static inline bool reading(const char *text, bool (*reads)(FILE *in, FILE *errors), char *said, size_t room)
{
    char *errors = NULL, *copy = strdup(text);
    size_t len;
    FILE *in = fmemopen(copy, strlen(copy), "r"), *out = open_memstream(&errors, &len);
    bool ok = in && out && reads(in, out);
    if (in)
        fclose(in);
    if (out)
        fclose(out);
    snprintf(said, room, "%s", errors ? errors : "");
    free(errors);
    free(copy);
    return ok;
}
#endif
