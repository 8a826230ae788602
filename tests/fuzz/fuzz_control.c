/* Any bytes as lines of one control connection: command.c and the engine are the
 * daemon's own, the socket and the shared memory are not there.  Each line must be
 * answered by a line that begins with three digits. */
#include "daemon/command.h"
#include "daemon/log.h"
#include "daemon/loop.h"
#include <ctype.h>
#include <stdarg.h>

#define SHARED_MAX (1u << 20) /* bytes; a larger set finds no memory */
#define COUNT_DIGITS_MAX 7    /* of a number in a `tensor` line: the engine allocates by it */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned answers;

static void answer(const char *line)
{
    for (int i = 0; i < 3; i++)
        if (!isdigit((unsigned char)line[i]))
            abort();
    if (line[3] != ' ')
        abort();
    answers++;
}

/* ---- what command.c calls of the daemon ------------------------------------------- */

void control_say(struct client *c, const char *format, ...)
{
    char line[1024];
    va_list args;
    (void)c;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    answer(line);
}

void control_say_text(struct client *c, const char *prefix, const char *text)
{
    (void)c;
    (void)text;
    answer(prefix);
}

bool control_say_fd(struct client *c, const char *line, int fd)
{
    (void)c;
    (void)fd;
    answer(line);
    return true;
}

bool shm_create(struct shm *s, uint64_t bytes, uint64_t held)
{
    *s = (struct shm){.fd = -1, .bytes = bytes};
    s->map = bytes + held <= SHARED_MAX ? calloc(1, (size_t)bytes) : NULL;
    return s->map != NULL;
}

void shm_close_fd(struct shm *s) { s->fd = -1; }

void shm_destroy(struct shm *s)
{
    free(s->map);
    *s = (struct shm){.fd = -1};
}

char *status_json(const struct control *k) { return k ? strdup("{}") : NULL; }
char *status_peers_json(const struct control *k) { return k ? strdup("[]") : NULL; }
char *status_state_json(const struct control *k) { return k ? strdup("{}") : NULL; }
char *status_config_json(const struct control *k) { return k ? strdup("{}") : NULL; }
char *status_explain_json(const struct control *k, uint64_t round)
{
    (void)round;
    return k ? strdup("{}") : NULL;
}
char *status_strategy_json(const struct control *k, int handle)
{
    return k && handle >= 0 ? strdup("{}") : NULL;
}
char *status_rounds_json(const struct control *k, const char *name)
{
    return k && (!name || name[0]) ? strdup("[]") : NULL;
}

sleet_time loop_clock(void) { return (sleet_time){SEC(1)}; }

void loop_leave(struct daemon *d, bool end)
{
    d->left = true;
    d->ending |= end;
}

void orders_do_order(const struct call *a) { command_fail(a->c, SLEET_EINVAL, NULL); }
void orders_do_show(const struct call *a) { control_say(a->c, "211 {}"); }
void orders_event(struct control *k, const engine_event *ev)
{
    (void)k;
    (void)ev;
}

log_sink logger_current(void) { return (log_sink){.emit = NULL}; }

/* ---- one connection --------------------------------------------------------------- */

static bool too_large(const char *line)
{
    const char *last = strrchr(line, ' ');
    return strncmp(line, "tensor", 6) == 0 && last && strspn(last + 1, "0123456789") > COUNT_DIGITS_MAX;
}

static void run_line(struct daemon *d, struct client *c, const uint8_t *data, size_t size)
{
    char line[CONTROL_LINE_MAX];
    if (size >= sizeof line)
        return; /* refused before command.c sees it */
    memcpy(line, data, size);
    line[size] = '\0';
    if (too_large(line))
        return;
    unsigned before = answers;
    command_run(&d->control, c, line);
    if (answers == before)
        abort();
    d->now = time_add(d->now, MS(1));
    engine_expire(d->engine, d->now);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct daemon d;
    const struct config config = {.node_id = 1};
    const engine_config ec = {.node_id = 1, .boot_id = 1, .job = "fuzz", .rate_bps = 1000000000};
    d = (struct daemon){.config = &config, .now = {SEC(1)}};
    struct client *c = &d.control.clients[0];
    d.control.d = &d;
    d.control.report_time = MS(1);
    c->admin = true;
    d.engine = engine_new(&ec, d.now);
    if (!d.engine)
        abort();
    while (size && !c->closing) {
        const uint8_t *end = memchr(data, '\n', size);
        size_t n = end ? (size_t)(end - data) : size;
        run_line(&d, c, data, n);
        n += end != NULL;
        data += n;
        size -= n;
    }
    command_drop(&d.control, c);
    for (int i = 0; i < ENGINE_SETS_MAX; i++)
        shm_destroy(&d.control.states[i].shm);
    engine_free(d.engine);
    return 0;
}
