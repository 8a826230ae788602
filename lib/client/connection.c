/* connection.c - the Unix socket to the daemon: open, call, close. */
#define _GNU_SOURCE 1 /* ppoll */
#include "client/client.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

int64_t client_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int lost(sleet *ctx)
{
    ctx->dead = true;
    return client_fail(ctx, SLEET_EDAEMON, "sleetd went away");
}

/* Wait for `events`; SLEET_EAGAIN when `until_ns` has come. */
static int await(sleet *ctx, short events, int64_t until_ns)
{
    for (;;) {
        int64_t left = until_ns ? until_ns - client_now() : 0;
        if (left < 0)
            left = 0;
        struct timespec ts = {left / 1000000000, left % 1000000000};
        struct pollfd p = {.fd = ctx->fd, .events = events};
        int n = ppoll(&p, 1, &ts, NULL);
        if (n > 0)
            return SLEET_OK;
        if (n == 0)
            return SLEET_EAGAIN;
        if (errno != EINTR)
            return lost(ctx);
    }
}

static void keep_descriptor(sleet *ctx, struct msghdr *msg)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        int fd;
        memcpy(&fd, CMSG_DATA(c), sizeof fd);
        if (ctx->passed >= 0)
            close(ctx->passed);
        ctx->passed = fd;
    }
}

/* Read what is there; SLEET_EAGAIN if nothing is. */
static int fill(sleet *ctx)
{
    if (ctx->dead)
        return SLEET_EDAEMON;
    if (ctx->have == sizeof ctx->input)
        return lost(ctx);
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec iov = {ctx->input + ctx->have, sizeof ctx->input - ctx->have};
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.bytes,
                         .msg_controllen = sizeof control.bytes};
    ssize_t n = recvmsg(ctx->fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (n > 0) {
        keep_descriptor(ctx, &msg);
        ctx->have += (size_t)n;
        return SLEET_OK;
    }
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return SLEET_EAGAIN;
    return lost(ctx);
}

/* Take one line from the input into `line`; false if none is complete. */
static bool take_line(sleet *ctx, char line[CLIENT_INPUT_MAX])
{
    char *end = memchr(ctx->input, '\n', ctx->have);
    if (!end)
        return false;
    size_t n = (size_t)(end - ctx->input);
    memcpy(line, ctx->input, n);
    line[n] = '\0';
    ctx->have -= n + 1;
    memmove(ctx->input, end + 1, ctx->have);
    return true;
}

/* Next reply line, asynchronous ones applied on the way. */
static bool next_reply(sleet *ctx, char line[CLIENT_INPUT_MAX])
{
    while (take_line(ctx, line)) {
        if (strncmp(line, "150 round ", 10) == 0) {
            client_round_line(ctx, line + 10);
        } else if (strncmp(line, "151 schema ", 11) == 0) {
            client_schema_line(ctx, line + 11);
        } else if (strncmp(line, "152 state ", 10) == 0) {
            client_state_line(ctx, line + 10);
        } else if (strncmp(line, "153 blob ", 9) == 0) {
            client_blob_line(ctx, line + 9);
        } else if (line[0] != '1') {
            if (ctx->stale == 0)
                return true;
            ctx->stale--;
            if (ctx->passed >= 0)
                close(ctx->passed);
            ctx->passed = -1;
        }
    }
    return false;
}

int client_pump(sleet *ctx, int64_t until_ns)
{
    char line[CLIENT_INPUT_MAX];
    size_t had = ctx->have;
    while (next_reply(ctx, line)) /* what came along with an earlier reply */
        ;
    if (ctx->have != had)
        return SLEET_OK;
    int error = fill(ctx);
    if (error == SLEET_EAGAIN && until_ns) {
        error = await(ctx, POLLIN, until_ns);
        if (error == SLEET_OK)
            error = fill(ctx);
    }
    while (next_reply(ctx, line)) /* a reply nobody waits for: ignored */
        ;
    return error == SLEET_EAGAIN ? SLEET_OK : error;
}

static int read_reply(sleet *ctx, int64_t until_ns, char text[CLIENT_INPUT_MAX])
{
    char line[CLIENT_INPUT_MAX];
    int error = SLEET_OK;
    while (!next_reply(ctx, line)) {
        if (error)
            return error;
        error = await(ctx, POLLIN, until_ns);
        if (error == SLEET_EAGAIN) {
            ctx->stale++;
            return client_fail(ctx, SLEET_ESTALLED, "sleetd did not answer in time");
        }
        if (error == SLEET_OK)
            error = fill(ctx);
        if (error == SLEET_EAGAIN)
            error = SLEET_OK;
    }
    int code = atoi(line);
    const char *rest = strchr(line, ' ');
    memmove(text, rest ? rest + 1 : "", rest ? strlen(rest + 1) + 1 : 1);
    error = control_error_of(code);
    return error ? client_fail(ctx, error, "%.500s", text) : SLEET_OK;
}

int client_greeting(sleet *ctx, int64_t until_ns)
{
    char text[CLIENT_INPUT_MAX];
    int error = read_reply(ctx, until_ns, text);
    if (error == SLEET_OK && strncmp(text, "sleetd ", 7) != 0)
        error = client_fail(ctx, SLEET_EPROTO, "what answers on the control socket is not sleetd");
    return error;
}

static int send_all(sleet *ctx, const char *p, size_t left, int64_t until_ns)
{
    while (left) {
        ssize_t n = send(ctx->fd, p, left, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n > 0) {
            p += n;
            left -= (size_t)n;
        } else if (errno == EAGAIN) {
            if (await(ctx, POLLOUT, until_ns) == SLEET_OK)
                continue;
            lost(ctx); /* half a line may be out: the connection is of no more use */
            return client_fail(ctx, SLEET_ESTALLED, "sleetd does not read its control socket");
        } else if (errno != EINTR) {
            return lost(ctx);
        }
    }
    return SLEET_OK;
}

int client_call(sleet *ctx, int64_t until_ns, char text[CLIENT_INPUT_MAX], const char *format, ...)
{
    char line[CONTROL_LINE_MAX];
    if (ctx->dead)
        return lost(ctx);
    va_list args;
    va_start(args, format);
    int n = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (n < 0 || (size_t)n + 1 > sizeof line)
        return client_fail(ctx, SLEET_EINVAL, "command too long");
    line[n] = '\n';
    int error = send_all(ctx, line, (size_t)n + 1, until_ns);
    return error ? error : read_reply(ctx, until_ns, text);
}

static int connect_to(sleet *ctx, const char *path)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof addr.sun_path)
        return client_fail(NULL, SLEET_EINVAL, "control path is longer than %zu bytes: %s",
                           sizeof addr.sun_path - 1, path);
    strcpy(addr.sun_path, path);
    ctx->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (ctx->fd < 0)
        return client_fail(NULL, SLEET_ENOMEM, "no socket: %s", strerror(errno));
    if (connect(ctx->fd, (struct sockaddr *)&addr, sizeof addr) == 0)
        return SLEET_OK;
    return client_fail(NULL, errno == EACCES || errno == EPERM ? SLEET_EPERM : SLEET_ENODAEMON,
                       "no sleetd answers on %s: %s", path, strerror(errno));
}

int sleet_open(sleet **out, const char *socket_path)
{
    char path[256];
    if (!out)
        return client_fail(NULL, SLEET_EINVAL, "sleet_open: out is NULL");
    *out = NULL;
    if (!socket_path)
        socket_path = getenv("SLEET_CONTROL");
    if (!socket_path || !*socket_path) {
        control_default_path(path, sizeof path, getuid());
        socket_path = path;
    }
    sleet *ctx = calloc(1, sizeof *ctx);
    if (!ctx)
        return client_fail(NULL, SLEET_ENOMEM, "out of memory");
    ctx->fd = ctx->passed = -1;
    int error = connect_to(ctx, socket_path);
    if (error == SLEET_OK) {
        error = client_greeting(ctx, client_now() + CLIENT_REPLY_NS);
        if (error) {
            client_fail(NULL, 0, "%s: %s", socket_path, ctx->detail);
            if (error != SLEET_EPERM && error != SLEET_EPROTO)
                error = SLEET_ENODAEMON;
        }
    }
    if (error)
        sleet_close(ctx);
    else
        *out = ctx;
    return error;
}

void sleet_close(sleet *ctx)
{
    if (!ctx)
        return;
    if (ctx->fd >= 0)
        close(ctx->fd);
    if (ctx->passed >= 0)
        close(ctx->passed);
    while (ctx->sets) {
        sleet_set *set = ctx->sets;
        ctx->sets = set->next;
        client_set_free(set);
    }
    free(ctx);
}

int sleet_fd(const sleet *ctx)
{
    return ctx ? ctx->fd : -1;
}
