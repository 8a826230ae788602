/* Log events leave the core as an event name and typed fields; the shell that
 * owns the engine turns them into a line.  Fault says whose it is. */
#ifndef BASE_LOG_H
#define BASE_LOG_H
#include <stdint.h>

typedef enum { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR } log_level;
typedef enum { FAULT_NONE, FAULT_REMOTE, FAULT_LOCAL, FAULT_BUG } log_fault;

typedef struct {
    const char *key;
    enum { FIELD_U64, FIELD_F64, FIELD_STR, FIELD_HEX } type;
    union { uint64_t u; double f; const char *s; };
} log_field;

#define F_U(k, v) ((log_field){.key = (k), .type = FIELD_U64, .u = (uint64_t)(v)})
#define F_X(k, v) ((log_field){.key = (k), .type = FIELD_HEX, .u = (uint64_t)(v)})
#define F_F(k, v) ((log_field){.key = (k), .type = FIELD_F64, .f = (v)})
#define F_S(k, v) ((log_field){.key = (k), .type = FIELD_STR, .s = (v)})

typedef struct {
    /* Called synchronously; fields are valid during the call only. */
    void (*emit)(void *arg, log_level, log_fault, const char *event, const log_field *, int n);
    void *arg;
} log_sink;

static inline void log_emit(const log_sink *s, log_level l, log_fault f, const char *event,
                            const log_field *fields, int n)
{
    if (s && s->emit)
        s->emit(s->arg, l, f, event, fields, n);
}
#define LOG(sink, level, fault, event, ...)                                                  \
    log_emit((sink), (level), (fault), (event), (const log_field[]){__VA_ARGS__},            \
             (int)(sizeof((const log_field[]){__VA_ARGS__}) / sizeof(log_field)))
#endif
