/* log.h - key=value lines on stderr, limited by site. */
#ifndef DAEMON_LOG_H
#define DAEMON_LOG_H
#include "base/log.h"

/* The sink for the engine and for the shell.  Lines below `level` are left
 * out; a site (an event name) writes at most 10 lines in 10 seconds, the next
 * line after that says how many were suppressed. */
log_sink logger_sink(log_level level);

/* As LOG() on that sink. */
#define SAY(level, fault, event, ...)                                                        \
    do {                                                                                     \
        const log_sink say_sink = logger_current();                                          \
        LOG(&say_sink, level, fault, event, __VA_ARGS__);                                    \
    } while (0)
log_sink logger_current(void);
#endif
