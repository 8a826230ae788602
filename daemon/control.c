/* control.c - the Unix socket and its connections. */
#define _GNU_SOURCE 1
#include "control.h"
#include "log.h"
#include "loop.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#define TURN_S 0.002 /* seconds until a line that had to wait is looked at again */
#define ACCEPT_PAUSE_S 0.2 /* seconds; after accept() found no free descriptor */

/* ---- output ---------------------------------------------------------------- */

static bool reserve(struct client *c, size_t more)
{
    if (c->filled - c->sent + more > CONTROL_OUTPUT_MAX) {
        SAY(LOG_WARN, FAULT_LOCAL, "client-does-not-read", F_U("pid", c->pid));
        c->closing = true;
        c->filled = c->sent = 0;
        return false;
    }
    if (c->sent == c->filled)
        c->sent = c->filled = 0;
    if (c->filled + more > c->out_cap) {
        size_t cap = 2 * c->out_cap + more + 1024;
        char *grown = realloc(c->out, cap);
        if (!grown) {
            c->closing = true;
            return false;
        }
        c->out = grown;
        c->out_cap = cap;
    }
    return true;
}

void control_say_text(struct client *c, const char *prefix, const char *text)
{
    size_t a = strlen(prefix), b = strlen(text);
    if (c->fd < 0 || !reserve(c, a + b + 1))
        return;
    memcpy(c->out + c->filled, prefix, a);
    memcpy(c->out + c->filled + a, text, b);
    c->out[c->filled + a + b] = '\n';
    c->filled += a + b + 1;
}

void control_say(struct client *c, const char *format, ...)
{
    char line[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    for (char *p = line; *p; p++)
        if (*p == '\n')
            *p = ' ';
    control_say_text(c, "", line);
}

static void push(struct client *c)
{
    while (c->sent < c->filled) {
        ssize_t n = send(c->fd, c->out + c->sent, c->filled - c->sent, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n > 0) {
            c->sent += (size_t)n;
        } else if (errno == EAGAIN) {
            return;
        } else if (errno != EINTR) {
            c->closing = true;
            c->sent = c->filled;
        }
    }
}

bool control_say_fd(struct client *c, const char *line, int fd)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {.bytes = {0}};
    push(c);
    if (c->sent < c->filled)
        return false;
    struct iovec iov = {(void *)(uintptr_t)line, strlen(line)};
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.bytes,
                         .msg_controllen = sizeof control.bytes};
    struct cmsghdr *h = CMSG_FIRSTHDR(&msg);
    h->cmsg_level = SOL_SOCKET;
    h->cmsg_type = SCM_RIGHTS;
    h->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(h), &fd, sizeof fd);
    return sendmsg(c->fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)iov.iov_len;
}

/* ---- connections ------------------------------------------------------------ */

static void drop(struct control *k, struct client *c)
{
    command_drop(k, c);
    ev_io_stop(k->d->loop, &c->io);
    close(c->fd);
    free(c->out);
    *c = (struct client){.fd = -1};
}

void control_flush(struct control *k)
{
    for (int i = 0; i < CONTROL_CLIENTS_MAX; i++) {
        struct client *c = &k->clients[i];
        if (c->fd < 0)
            continue;
        push(c);
        int want = (c->closing || c->held ? 0 : EV_READ) | (c->sent < c->filled ? EV_WRITE : 0);
        if (c->closing && c->sent == c->filled) {
            drop(k, c);
        } else if ((c->io.events & (EV_READ | EV_WRITE)) != want) {
            ev_io_stop(k->d->loop, &c->io);
            ev_io_set(&c->io, c->fd, want);
            ev_io_start(k->d->loop, &c->io);
        }
    }
}

static void run_lines(struct control *k, struct client *c)
{
    char *end;
    c->held = false;
    while (!c->closing && (end = memchr(c->in, '\n', c->have))) {
        c->held = command_waits(k, c->in);
        if (c->held) {
            ev_timer_again(k->d->loop, &k->turn);
            return;
        }
        size_t n = (size_t)(end - c->in) + 1;
        *end = '\0';
        if (end > c->in && end[-1] == '\r')
            end[-1] = '\0';
        command_run(k, c, c->in);
        c->have -= n;
        memmove(c->in, c->in + n, c->have);
    }
    if (c->have == sizeof c->in && !c->closing) {
        control_say(c, "400 a line has at most %d bytes", CONTROL_LINE_MAX);
        c->closing = true;
    }
}

/* Those that were held get a turn, the first of them another one each time. */
static void on_turn(struct ev_loop *loop, ev_timer *w, int events)
{
    struct control *k = w->data;
    (void)events;
    ev_timer_stop(loop, w);
    k->d->now = loop_clock();
    for (unsigned i = 0; i < CONTROL_CLIENTS_MAX; i++) {
        struct client *c = &k->clients[(k->first_turn + i) % CONTROL_CLIENTS_MAX];
        if (c->fd >= 0 && c->held)
            run_lines(k, c);
    }
    k->first_turn++;
}

static void on_client(struct ev_loop *loop, ev_io *w, int events)
{
    struct client *c = w->data;
    struct control *k = &((struct daemon *)ev_userdata(loop))->control;
    if (!(events & EV_READ) || c->closing || c->held)
        return; /* output: pushed before the next sleep */
    ssize_t n = recv(c->fd, c->in + c->have, sizeof c->in - c->have, MSG_DONTWAIT);
    if (n > 0) {
        c->have += (size_t)n;
        k->d->now = loop_clock();
        run_lines(k, c);
    } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
        k->d->now = loop_clock();
        drop(k, c);
    }
}

static void refuse(int fd, const char *line)
{
    ssize_t n = send(fd, line, strlen(line), MSG_DONTWAIT | MSG_NOSIGNAL);
    (void)n; /* the caller is refused either way */
    close(fd);
}

static void on_accept_pause(struct ev_loop *loop, ev_timer *w, int events)
{
    struct control *k = w->data;
    (void)events;
    ev_io_start(loop, &k->io);
}

/* A connection that cannot be accepted keeps the socket readable: look away for a while. */
static void pause_accept(struct ev_loop *loop, struct control *k, int error)
{
    SAY(LOG_WARN, FAULT_LOCAL, "accept-failed", F_S("error", strerror(error)));
    ev_io_stop(loop, &k->io);
    ev_timer_set(&k->accept_pause, ACCEPT_PAUSE_S, 0.);
    ev_timer_start(loop, &k->accept_pause);
}

/* NULL after refusing: no process may keep the others, nor an operator, out. */
static struct client *free_client(struct control *k, int fd, pid_t pid)
{
    struct client *found = NULL;
    int same = 0;
    for (int i = 0; i < CONTROL_CLIENTS_MAX; i++) {
        struct client *c = &k->clients[i];
        if (c->fd < 0)
            found = found ? found : c;
        else
            same += c->pid == pid;
    }
    if (found && same < CONTROL_CLIENTS_EACH)
        return found;
    refuse(fd, found ? "503 too many connections of one process\n" : "503 too many connections\n");
    return NULL;
}

static void on_accept(struct ev_loop *loop, ev_io *w, int events)
{
    struct control *k = w->data;
    struct ucred who = {0};
    socklen_t len = sizeof who;
    (void)events;
    int fd = accept4(k->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) {
        if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)
            pause_accept(loop, k, errno);
        return;
    }
    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len);
    bool admin = who.uid == 0 || who.uid == geteuid();
    if (!admin && !k->shared) { /* shared: the file's mode has decided */
        refuse(fd, "403 only the daemon's user and root are served\n");
        return;
    }
    struct client *c = free_client(k, fd, who.pid);
    if (!c)
        return;
    *c = (struct client){.fd = fd, .pid = who.pid, .admin = admin};
    ev_io_init(&c->io, on_client, fd, EV_READ);
    c->io.data = c;
    ev_io_start(loop, &c->io);
    control_say(c, "220 sleetd %d.%d.%d control=1 node=%" PRIu64 " pid=%d", SLEET_VERSION_MAJOR,
                SLEET_VERSION_MINOR, SLEET_VERSION_PATCH, k->d->config->node_id, (int)getpid());
}

/* ---- the socket file --------------------------------------------------------- */

/* Is a daemon behind the file?  0: no; else its pid, or -1 when unknown. */
static pid_t living_owner(const struct sockaddr_un *addr)
{
    struct ucred who = {.pid = -1};
    socklen_t len = sizeof who;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    pid_t pid = -1;
    if (connect(fd, (const struct sockaddr *)addr, sizeof *addr) == 0)
        pid = getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) == 0 ? who.pid : -1;
    else if (errno == ECONNREFUSED || errno == ENOENT)
        pid = 0;
    close(fd);
    return pid;
}

/* Remove a stale socket file; false after printing why the path is not free. */
static bool make_way(const struct sockaddr_un *addr)
{
    struct stat st;
    const char *path = addr->sun_path;
    if (lstat(path, &st) != 0)
        return true; /* bind says what is wrong, if anything is */
    if (!S_ISSOCK(st.st_mode)) {
        fprintf(stderr, "sleetd: %s exists and is no socket; give another path by --control\n", path);
        return false;
    }
    pid_t pid = living_owner(addr);
    if (pid > 0)
        fprintf(stderr, "sleetd: the process with pid %d serves %s already; stop it, or give "
                        "another path by --control\n", (int)pid, path);
    else if (pid < 0)
        fprintf(stderr, "sleetd: %s is in use; give another path by --control\n", path);
    else if (unlink(path) != 0)
        fprintf(stderr, "sleetd: cannot remove the stale socket %s: %s\n", path, strerror(errno));
    else
        SAY(LOG_INFO, FAULT_NONE, "stale-socket-reclaimed", F_S("path", path));
    return pid == 0;
}

/* Who the file belongs to decides who can connect. */
static bool hand_over(const char *path, const struct privilege *who)
{
    gid_t group = who->shared ? who->trainers : who->gid;
    return ((!who->drop && !who->shared) || lchown(path, who->uid, group) == 0) &&
           (!who->shared || chmod(path, 0660) == 0);
}

bool control_open(struct control *k, struct daemon *d, const char *path, const struct privilege *who)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    struct stat st;
    k->d = d;
    k->fd = -1;
    for (int i = 0; i < CONTROL_CLIENTS_MAX; i++)
        k->clients[i].fd = -1;
    for (int i = 0; i < ENGINE_SETS_MAX; i++)
        k->slots[i].shm.fd = k->states[i].shm.fd = -1;
    if (strlen(path) >= sizeof addr.sun_path) {
        fprintf(stderr, "sleetd: the control path is longer than %zu bytes: %s; give a shorter one "
                        "by --control\n", sizeof addr.sun_path - 1, path);
        return false;
    }
    strcpy(addr.sun_path, path);
    if (!make_way(&addr))
        return false;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    mode_t old = umask(0177);
    bool ok = fd >= 0 && bind(fd, (struct sockaddr *)&addr, sizeof addr) == 0;
    int error = errno;
    umask(old);
    if (!ok || listen(fd, CONTROL_CLIENTS_MAX) != 0 || !hand_over(path, who) ||
        stat(path, &st) != 0) {
        fprintf(stderr, "sleetd: cannot listen on the control socket %s: %s; give another path by "
                        "--control\n", path, strerror(ok ? errno : error));
        if (ok)
            unlink(path);
        if (fd >= 0)
            close(fd);
        return false;
    }
    k->fd = fd;
    k->shared = who->shared;
    k->dev = st.st_dev;
    k->ino = st.st_ino;
    strcpy(k->path, path);
    return true;
}

void control_start(struct control *k, struct ev_loop *loop)
{
    ev_set_userdata(loop, k->d);
    ev_io_init(&k->io, on_accept, k->fd, EV_READ);
    ev_timer_init(&k->accept_pause, on_accept_pause, ACCEPT_PAUSE_S, 0.);
    ev_init(&k->turn, on_turn);
    k->turn.repeat = TURN_S;
    k->io.data = k->accept_pause.data = k->turn.data = k;
    ev_io_start(loop, &k->io);
}

void control_close(struct control *k)
{
    struct stat st;
    if (k->fd < 0)
        return;
    for (int i = 0; i < CONTROL_CLIENTS_MAX; i++)
        if (k->clients[i].fd >= 0)
            drop(k, &k->clients[i]);
    for (int i = 0; i < ENGINE_SETS_MAX; i++)
        shm_destroy(&k->states[i].shm); /* the engine is not called any more */
    if (stat(k->path, &st) == 0 && st.st_dev == k->dev && st.st_ino == k->ino && unlink(k->path) != 0)
        SAY(LOG_WARN, FAULT_LOCAL, "socket-stays", F_S("path", k->path), F_S("error", strerror(errno)));
    close(k->fd);
}
