/* Monotonic time handed to the core; nobody in the core reads a clock. */
#ifndef BASE_TIME_H
#define BASE_TIME_H
#include <stdbool.h>
#include <stdint.h>

typedef struct { int64_t ns; } sleet_time; /* an instant; the origin is the caller's */
typedef int64_t sleet_duration;            /* nanoseconds */

#define TIME_NEVER ((sleet_time){INT64_MAX}) /* "unset" for a deadline */
#define US(n) ((sleet_duration)(n) * 1000)
#define MS(n) ((sleet_duration)(n) * 1000000)
#define SEC(n) ((sleet_duration)(n) * 1000000000)

static inline bool time_before(sleet_time a, sleet_time b) { return a.ns < b.ns; }
static inline bool time_is_never(sleet_time t) { return t.ns == INT64_MAX; }
static inline sleet_duration time_since(sleet_time now, sleet_time then) { return now.ns - then.ns; }
static inline sleet_time time_min(sleet_time a, sleet_time b) { return a.ns < b.ns ? a : b; }
/* Saturates at TIME_NEVER. */
static inline sleet_time time_add(sleet_time t, sleet_duration d)
{
    int64_t r;
    return __builtin_add_overflow(t.ns, d, &r) ? TIME_NEVER : (sleet_time){r};
}
#endif
