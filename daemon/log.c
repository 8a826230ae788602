/* log.c - one line an event. */
#define _GNU_SOURCE 1
#include "log.h"
#include <stdbool.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define SITES 64
#define SITE_LINES 10   /* lines a site in ... */
#define SITE_SECONDS 10 /* ... so many seconds */

struct site {
    char event[40];
    int64_t since; /* seconds */
    uint64_t lines, suppressed;
};

static struct {
    log_level level;
    struct site sites[SITES];
} logger = {.level = LOG_INFO};

static struct site *site_of(const char *event)
{
    uint32_t h = 2166136261u;
    for (const char *p = event; *p; p++)
        h = (h ^ (unsigned char)*p) * 16777619u;
    for (uint32_t i = 0; i < SITES; i++) {
        struct site *s = &logger.sites[(h + i) % SITES];
        if (!s->event[0])
            snprintf(s->event, sizeof s->event, "%s", event);
        if (strncmp(s->event, event, sizeof s->event - 1) == 0)
            return s;
    }
    return &logger.sites[h % SITES];
}

static void put_text(FILE *out, const char *text)
{
    if (text[0] && !text[strcspn(text, " \"=\\")]) {
        bool plain = true;
        for (const char *p = text; *p; p++)
            plain = plain && (unsigned char)*p > ' ' && *p != 127;
        if (plain) {
            fputs(text, out);
            return;
        }
    }
    fputc('"', out);
    for (const char *p = text; *p; p++) {
        if (*p == '"' || *p == '\\')
            fputc('\\', out);
        fputc((unsigned char)*p < ' ' || *p == 127 ? '?' : *p, out);
    }
    fputc('"', out);
}

static void put_field(FILE *out, const log_field *f)
{
    fprintf(out, " %s=", f->key);
    switch (f->type) {
    case FIELD_U64:
        fprintf(out, "%" PRIu64, f->u);
        break;
    case FIELD_HEX:
        fprintf(out, "%" PRIx64, f->u);
        break;
    case FIELD_F64:
        fprintf(out, "%g", f->f);
        break;
    case FIELD_STR:
        put_text(out, f->s ? f->s : "");
        break;
    }
}

static void emit(void *arg, log_level level, log_fault fault, const char *event,
                 const log_field *fields, int n)
{
    static const char *const levels[] = {"debug", "info", "warn", "error"};
    static const char *const faults[] = {"none", "remote", "local", "bug"};
    char line[2048];
    struct timespec t;
    struct tm tm;
    (void)arg;
    if (level < logger.level)
        return;
    clock_gettime(CLOCK_REALTIME, &t);
    struct site *site = site_of(event);
    if (t.tv_sec - site->since >= SITE_SECONDS || t.tv_sec < site->since) {
        site->since = t.tv_sec;
        site->lines = 0;
    }
    if (++site->lines > SITE_LINES && level < LOG_ERROR) {
        site->suppressed++;
        return;
    }
    FILE *out = fmemopen(line, sizeof line - 1, "w");
    if (!out)
        return;
    gmtime_r(&t.tv_sec, &tm);
    fprintf(out, "ts=%04d-%02d-%02dT%02d:%02d:%02d.%03ldZ level=%s event=%s fault=%s",
            tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec,
            t.tv_nsec / 1000000, levels[level], event, faults[fault]);
    for (int i = 0; i < n; i++)
        put_field(out, &fields[i]);
    if (site->suppressed)
        fprintf(out, " suppressed=%" PRIu64, site->suppressed);
    site->suppressed = 0;
    fclose(out);
    line[sizeof line - 1] = '\0';
    fprintf(stderr, "%s\n", line);
}

log_sink logger_current(void)
{
    return (log_sink){.emit = emit};
}

log_sink logger_sink(log_level level)
{
    logger.level = level;
    return logger_current();
}
