/* lab-exec.c - running other programs: argument vectors, no shell. */
#include "lab.h"
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static sigset_t child_mask;

void lab_exec_init(void)
{
    sigprocmask(SIG_SETMASK, NULL, &child_mask);
}

double lab_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

void lab_say(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fflush(stdout);
    fputs("lab: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
}

void lab_add(struct lab_text *t, const char *format, ...)
{
    for (;;) {
        va_list args;
        va_start(args, format);
        int n = vsnprintf(t->text ? t->text + t->len : NULL, t->room - t->len, format, args);
        va_end(args);
        if (n < 0)
            abort();
        if (t->text && (size_t)n < t->room - t->len) {
            t->len += (size_t)n;
            return;
        }
        t->room = t->len + (size_t)n + 256;
        t->text = realloc(t->text, t->room);
        if (!t->text)
            abort();
    }
}

bool lab_find(const char *program)
{
    char path[4096];
    const char *dirs = getenv("PATH");
    for (const char *p = dirs ? dirs : ""; *p; p += strspn(p, ":")) {
        size_t n = strcspn(p, ":");
        snprintf(path, sizeof path, "%.*s/%s", (int)n, p, program);
        if (access(path, X_OK) == 0)
            return true;
        p += n;
    }
    return false;
}

/* Between fork and exec; does not return. */
static void child(const char *const *argv, const char *const *env, int ns, int in, int out,
                  pid_t parent)
{
    char *words[64] = {NULL};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(126);
    for (; env && *env; env += 2)
        setenv(env[0], env[1], 1);
    if ((ns >= 0 && setns(ns, CLONE_NEWNET) != 0) || dup2(in, 0) < 0 ||
        (out >= 0 && (dup2(out, 1) < 0 || dup2(out, 2) < 0)))
        _exit(126);
    signal(SIGPIPE, SIG_DFL);
    sigprocmask(SIG_SETMASK, &child_mask, NULL);
    for (size_t i = 0; argv[i] && i < 63; i++)
        words[i] = strdup(argv[i]); /* execvp takes no const */
    execvp(words[0], words);
    dprintf(2, "cannot run %s: %s\n", argv[0], strerror(errno));
    _exit(127);
}

static char *whole_file(int fd)
{
    off_t size = lseek(fd, 0, SEEK_END);
    char *text = calloc(1, (size_t)(size > 0 ? size : 0) + 1);
    if (text && size > 0 && pread(fd, text, (size_t)size, 0) < 0)
        text[0] = '\0';
    return text;
}

int lab_exec(const char *const *argv, const char *input, char **output)
{
    int in = memfd_create("in", MFD_CLOEXEC), out = memfd_create("out", MFD_CLOEXEC);
    int status = -1;
    pid_t self = getpid();
    size_t len = input ? strlen(input) : 0;
    if (in < 0 || out < 0 || write(in, input ? input : "", len) != (ssize_t)len)
        abort();
    lseek(in, 0, SEEK_SET);
    pid_t pid = fork();
    if (pid == 0)
        child(argv, NULL, -1, in, out, self);
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (output)
        *output = whole_file(out);
    close(in);
    close(out);
    return pid > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

bool lab_must(const char *const *argv, const char *input)
{
    struct lab_text words = {0};
    char *output = NULL;
    int code = lab_exec(argv, input, &output);
    if (code != 0) {
        for (; *argv; argv++)
            lab_add(&words, "%s%s", words.len ? " " : "", *argv);
        lab_say("%s failed with %d: %s", words.text, code,
                output && *output ? output : "it printed nothing");
        free(words.text);
    }
    free(output);
    return code == 0;
}

pid_t lab_spawn(const char *const *argv, const char *const *env, int ns, int out)
{
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    pid_t self = getpid(), pid = fork();
    if (pid == 0) {
        setpgid(0, 0);
        child(argv, env, ns, null, out, self);
    }
    close(null);
    if (pid < 0)
        lab_say("cannot start %s: %s", argv[0], strerror(errno));
    else
        setpgid(pid, pid);
    return pid;
}

int lab_attach(const char *const *argv, const char *const *env)
{
    int status = -1;
    pid_t self = getpid(), pid = fork();
    if (pid == 0)
        child(argv, env, -1, 0, -1, self);
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return pid > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}
