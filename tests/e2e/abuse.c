/* abuse.c - a local client that does what none should, for clients.sh.
 *
 *   abuse api            every function of libsleet on NULL, unfinished and finished handles
 *   abuse ask LINE       prints what is answered to it
 *   abuse garbage N      N connections of random bytes ($SLEET_TEST_SEED)
 *   abuse flood MS       asks for reports for so long, as fast as it is answered
 *   abuse deaf           asks for reports and reads no answer until the daemon hangs up
 *   abuse half           half a line, a set half defined, a reply with a descriptor not read
 *   abuse mid BYTES      dies in an open round of a set of so many bytes
 *   abuse rounds BYTES   round after round, until killed
 *   abuse steps BYTES X  small steps from common values, of which X times is sent; 1: honest
 *   abuse held BYTES     a round that its deadline closes; is the result written afterwards?
 *
 * $SLEET_CONTROL names the daemon's socket.  Each but `ask` ends with a line "MODE: ...". */
#include "base/rng.h"
#include "sleet.h"
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static int dial(void)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    const char *path = getenv("SLEET_CONTROL");
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    snprintf(addr.sun_path, sizeof addr.sun_path, "%s", path ? path : "");
    if (fd >= 0 && connect(fd, (const struct sockaddr *)&addr, sizeof addr) == 0)
        return fd;
    perror("abuse: connect");
    exit(EXIT_FAILURE);
}

static void say(int fd, const char *line)
{
    if (send(fd, line, strlen(line), MSG_NOSIGNAL) < 0)
        perror("abuse: send");
}

/* ---- libsleet ------------------------------------------------------------------- */

static unsigned checks, faults;

static void expect(const char *what, int got, int want)
{
    checks++;
    if (got == want)
        return;
    faults++;
    printf("%s gives %d, not %d\n", what, got, want);
}
#define EXPECT(call, want) expect(#call, (call), (want))

static void on_null(sleet *ctx)
{
    sleet_job_info info;
    sleet_report report;
    sleet_set *set = NULL;
    EXPECT(sleet_open(NULL, NULL), SLEET_EINVAL);
    EXPECT(sleet_job(NULL, NULL, &info), SLEET_EINVAL);
    EXPECT(sleet_job(ctx, NULL, NULL), SLEET_EINVAL);
    EXPECT(sleet_wait_nodes(NULL, 1, 0), SLEET_EINVAL);
    EXPECT(sleet_set_new(NULL, ctx, "a", SLEET_MODEL), SLEET_EINVAL);
    EXPECT(sleet_set_new(&set, NULL, "a", SLEET_MODEL), SLEET_EINVAL);
    EXPECT(sleet_set_new(&set, ctx, NULL, SLEET_MODEL), SLEET_EINVAL);
    EXPECT(sleet_set_add(NULL, "t", SLEET_F32, 1, NULL), SLEET_EINVAL);
    EXPECT(sleet_set_rows(NULL, 0, 1), SLEET_EINVAL);
    EXPECT(sleet_set_register(NULL), SLEET_EINVAL);
    EXPECT(sleet_send_buffer(NULL, 0) != NULL, 0);
    EXPECT(sleet_result_buffer(NULL, 0) != NULL, 0);
    EXPECT(sleet_residual_buffer(NULL, 0) != NULL, 0);
    EXPECT(sleet_start(NULL, NULL), SLEET_EINVAL);
    EXPECT(sleet_poll(NULL), SLEET_EINVAL);
    EXPECT(sleet_wait(NULL, &report), SLEET_EINVAL);
    EXPECT(sleet_cancel(NULL), SLEET_EINVAL);
    EXPECT(sleet_fd(NULL), -1);
    sleet_close(NULL);
    expect("sleet_detail(NULL) is a text", sleet_detail(NULL) != NULL, 1);
    expect("sleet_strerror(12345) is a text", sleet_strerror(12345) != NULL, 1);
}

static void on_unfinished(sleet *ctx, sleet_set *set)
{
    EXPECT(sleet_start(set, NULL), SLEET_ESTATE);
    EXPECT(sleet_poll(set), SLEET_ESTATE);
    EXPECT(sleet_wait(set, NULL), SLEET_ESTATE);
    EXPECT(sleet_cancel(set), SLEET_OK);
    EXPECT(sleet_wait_nodes(set, 1, -1), SLEET_EINVAL);
    EXPECT(sleet_set_register(set), SLEET_EINVAL); /* no tensors */
    EXPECT(sleet_set_new(&set, ctx, "s", SLEET_MODEL), SLEET_EEXIST);
    EXPECT(sleet_set_new(&set, ctx, "", SLEET_MODEL), SLEET_EINVAL);
    EXPECT(sleet_set_new(&set, ctx, "b", (sleet_payload)99), SLEET_EINVAL);
}

static void on_tensors(sleet_set *set)
{
    char name[SLEET_NAME_MAX + 2];
    memset(name, 'n', sizeof name);
    name[SLEET_NAME_MAX + 1] = '\0';
    EXPECT(sleet_set_add(set, name, SLEET_F32, 1, NULL), SLEET_EINVAL);
    EXPECT(sleet_set_add(set, "t", (sleet_dtype)99, 1, NULL), SLEET_EINVAL);
    EXPECT(sleet_set_add(set, "t", SLEET_F32, UINT64_MAX, NULL), SLEET_ELIMIT);
    EXPECT(sleet_set_add(set, "t", SLEET_F32, 4, NULL), SLEET_OK);
    EXPECT(sleet_set_add(set, "t", SLEET_F32, 4, NULL), SLEET_EEXIST);
    EXPECT(sleet_set_rows(set, 1, 2), SLEET_EINVAL);
    EXPECT(sleet_set_rows(set, 0, 3), SLEET_EINVAL);
    EXPECT(sleet_set_rows(set, 0, 2), SLEET_OK);
    EXPECT(sleet_set_add(set, "empty", SLEET_F32, 0, NULL), SLEET_OK);
}

/* Options: zero-filled is the default, anything out of range is refused. */
static void on_options(sleet_set *set)
{
    const sleet_round_options good = {.size = sizeof good};
    sleet_round_options o = good;
    EXPECT(sleet_start(set, &o), SLEET_OK);
    EXPECT(sleet_wait(set, NULL), SLEET_OK);
    EXPECT(sleet_wait(set, NULL), SLEET_ESTATE); /* twice */
    EXPECT(sleet_poll(set), SLEET_ESTATE);
#define REFUSE(field, value)                                                                \
    o = good;                                                                               \
    o.field = (value);                                                                      \
    expect("start with " #field " = " #value, sleet_start(set, &o), SLEET_EINVAL)
    REFUSE(size, 0);
    REFUSE(size, 4);
    REFUSE(size, sizeof o + 1);
    REFUSE(deadline_ns, -1);
    REFUSE(deadline_ns, INT64_MAX);
    REFUSE(weight, -1);
    REFUSE(weight, (double)INFINITY);
    REFUSE(weight, (double)NAN);
    REFUSE(least_coverage, 1.5);
    REFUSE(least_coverage, (double)NAN);
    o = good;
    o.size = sizeof o.size; /* of an older version: the rest is the default */
    o.deadline_ns = -1;
    EXPECT(sleet_start(set, &o), SLEET_OK);
    EXPECT(sleet_cancel(set), SLEET_OK);
    EXPECT(sleet_cancel(set), SLEET_OK);
    EXPECT(sleet_wait(set, NULL), SLEET_ESTATE);
    ((float *)sleet_send_buffer(set, 0))[2] = NAN;
    EXPECT(sleet_start(set, NULL), SLEET_ENONFINITE);
    ((float *)sleet_send_buffer(set, 0))[2] = 0;
}

/* Alone in the job the residual, here of a checkpoint, goes into the result. */
static void on_residual(sleet *ctx, sleet_set *other)
{
    const sleet_set_options carry = {.size = sizeof carry, .estimator = SLEET_CARRY};
    sleet_set *set = NULL;
    EXPECT(sleet_residual_buffer(other, 0) != NULL, 0);
    EXPECT(sleet_set_new(&set, ctx, "g", SLEET_GRADIENT), SLEET_OK);
    EXPECT(sleet_set_configure(set, &carry), SLEET_OK);
    EXPECT(sleet_set_add(set, "first", SLEET_F32, 100, NULL), SLEET_OK);
    EXPECT(sleet_set_add(set, "second", SLEET_F32, 700, NULL), SLEET_OK);
    EXPECT(sleet_residual_buffer(set, 0) != NULL, 0);
    EXPECT(sleet_set_register(set), SLEET_OK);
    EXPECT(sleet_residual_buffer(set, 2) != NULL, 0);
    float *residual = sleet_residual_buffer(set, 1), *send = sleet_send_buffer(set, 1);
    const float *result = sleet_result_buffer(set, 1);
    expect("a set with estimator carry has residuals", residual && send && result, 1);
    if (!residual || !send || !result)
        return;
    for (int i = 0; i < 700; i++) {
        expect("a residual begins with 0", residual[i] == 0, 1);
        residual[i] = 1;
        send[i] = 2;
    }
    EXPECT(sleet_start(set, NULL), SLEET_OK);
    EXPECT(sleet_wait(set, NULL), SLEET_OK);
    for (int i = 0; i < 700; i++)
        expect("what was carried over is in the result", result[i] == 3 && residual[i] == 0, 1);
}

static int do_api(void)
{
    sleet *ctx = NULL;
    sleet_set *set = NULL;
    sleet_job_info info;
    EXPECT(sleet_open(&ctx, "/nonexistent/sock"), SLEET_ENODAEMON);
    EXPECT(sleet_open(&ctx, NULL), SLEET_OK);
    if (!ctx)
        return EXIT_FAILURE;
    on_null(ctx);
    EXPECT(sleet_set_new(&set, ctx, "s", SLEET_MODEL), SLEET_OK);
    on_unfinished(ctx, set);
    on_tensors(set);
    EXPECT(sleet_job(ctx, set, &info), SLEET_EINVAL); /* not registered */
    EXPECT(sleet_set_register(set), SLEET_OK);
    EXPECT(sleet_set_register(set), SLEET_ESTATE);
    EXPECT(sleet_set_add(set, "late", SLEET_F32, 1, NULL), SLEET_ESTATE);
    EXPECT(sleet_set_rows(set, 0, 1), SLEET_ESTATE);
    EXPECT(sleet_send_buffer(set, 2) != NULL, 0);
    on_options(set);
    on_residual(ctx, set);
    sleet_start(set, NULL);
    sleet_close(ctx); /* with a round open */
    printf("api: %u checks, %u faults\n", checks, faults);
    return faults ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* ---- the socket ------------------------------------------------------------------ */

static int do_ask(const char *line)
{
    char data[4096];
    int fd = dial();
    say(fd, line);
    say(fd, "\n");
    shutdown(fd, SHUT_WR);
    for (ssize_t n; (n = recv(fd, data, sizeof data, 0)) > 0;)
        fwrite(data, 1, (size_t)n, stdout);
    return EXIT_SUCCESS;
}

static int do_garbage(int connections)
{
    const char *seed = getenv("SLEET_TEST_SEED");
    sleet_rng rng = {seed ? strtoull(seed, NULL, 0) : 1};
    unsigned long bytes = 0;
    for (int i = 0; i < connections; i++) {
        char data[8192];
        int fd = dial();
        size_t n = 1 + rng_below(&rng, sizeof data);
        for (size_t k = 0; k < n; k++) /* every other one has short lines */
            data[k] = (char)(i % 2 && rng_below(&rng, 8) == 0 ? '\n' : rng_below(&rng, 256));
        ssize_t sent = send(fd, data, n, MSG_NOSIGNAL);
        bytes += sent > 0 ? (unsigned long)sent : 0;
        if (i % 3)
            shutdown(fd, SHUT_WR);
        while (i % 3 == 1 && recv(fd, data, sizeof data, 0) > 0)
            ;
        close(fd);
    }
    printf("garbage: %lu bytes on %d connections, seed %s\n", bytes, connections, seed ? seed : "1");
    return EXIT_SUCCESS;
}

/* Count the replies of each kind in a stream. */
static void count(char *data, ssize_t n, bool *begun, unsigned long *reports, unsigned long *refused)
{
    for (ssize_t i = 0; i < n; i++) {
        if (*begun && data[i] == '2')
            ++*reports;
        if (*begun && data[i] == '5')
            ++*refused;
        *begun = data[i] == '\n';
    }
}

static int do_flood(int ms)
{
    static char data[65536];
    unsigned long reports = 0, refused = 0;
    int64_t until = now_ms() + ms;
    bool begun = false; /* the greeting is no report */
    int fd = dial();
    for (int64_t left = ms; left > 0; left = until - now_ms()) {
        struct pollfd p = {.fd = fd, .events = POLLIN | POLLOUT};
        if (poll(&p, 1, (int)left) <= 0)
            continue;
        if (p.revents & POLLOUT)
            send(fd, " status\nstatus\n  status\nstatus\n", 31, MSG_DONTWAIT | MSG_NOSIGNAL);
        ssize_t n = p.revents & POLLIN ? recv(fd, data, sizeof data, MSG_DONTWAIT) : 1;
        if (n == 0 || (n < 0 && errno != EAGAIN))
            break;
        if (p.revents & POLLIN)
            count(data, n, &begun, &reports, &refused);
    }
    printf("flood: %lu reports, %lu refused\n", reports, refused);
    return EXIT_SUCCESS;
}

static int do_deaf(void)
{
    unsigned long asked = 0;
    int fd = dial();
    while (send(fd, "config\n", 7, MSG_NOSIGNAL) == 7)
        asked++;
    printf("deaf: hung up after %lu questions\n", asked);
    return EXIT_SUCCESS;
}

static int do_half(void)
{
    say(dial(), "stat");
    say(dial(), "set half model\ntensor a f32 1000\n");
    say(dial(), "set half model\ntensor a f32 1000\nregister\n");
    printf("half: three connections\n");
    return EXIT_SUCCESS;
}

/* ---- rounds ------------------------------------------------------------------------ */

static sleet *connection;

static sleet_set *ready(uint64_t bytes)
{
    sleet_set *set = NULL;
    int error = sleet_open(&connection, NULL);
    if (!error)
        error = sleet_set_new(&set, connection, "abuse", SLEET_MODEL);
    if (!error)
        error = sleet_set_add(set, "t", SLEET_F32, bytes / 4, NULL);
    if (!error)
        error = sleet_set_register(set);
    if (error) {
        printf("register: %d %s\n", error, sleet_detail(connection));
        exit(EXIT_FAILURE);
    }
    return set;
}

static int do_mid(uint64_t bytes)
{
    sleet_set *set = ready(bytes);
    const sleet_round_options o = {.size = sizeof o, .deadline_ns = 60 * INT64_C(1000000000)};
    sleet_wait_nodes(set, 2, INT64_C(10000000000));
    int error = sleet_start(set, &o);
    printf("mid: start %d\n", error);
    fflush(stdout);
    pause(); /* until killed */
    return EXIT_FAILURE;
}

static sleet_report one_round(sleet_set *set, int64_t deadline_ms)
{
    const sleet_round_options o = {.size = sizeof o, .deadline_ns = deadline_ms * 1000000};
    sleet_report r = {0};
    int error = sleet_start(set, &o);
    error = error ? error : sleet_wait(set, &r);
    if (!error)
        return r;
    printf("round: %d\n", error);
    exit(EXIT_FAILURE);
}

_Noreturn static void do_rounds(uint64_t bytes)
{
    sleet_set *set = ready(bytes);
    sleet_wait_nodes(set, 2, INT64_C(10000000000));
    for (;;)
        one_round(set, 10000);
}

/* Steps of 0.01 from what is committed; what is sent is `lie` times the model.  Says how large it
 * got. */
_Noreturn static void do_steps(uint64_t bytes, double lie)
{
    sleet_set *set = ready(bytes);
    sleet_rng rng = {(uint64_t)getpid()};
    float *send = sleet_send_buffer(set, 0);
    uint64_t n = bytes / 4;
    for (uint64_t i = 0; i < n; i++)
        send[i] = (float)(i % 17) - 8;
    sleet_wait_nodes(set, 3, INT64_C(10000000000));
    for (unsigned round = 1;; round++) {
        double most = 0;
        one_round(set, 2000);
        const float *result = sleet_result_buffer(set, 0);
        for (uint64_t i = 0; i < n; i++) {
            most = fmax(most, fabs((double)result[i]));
            double x = (double)result[i] + (rng_double(&rng) - 0.5) * 0.01;
            send[i] = (float)(round < 20 ? x : x * lie);
        }
        printf("step %u most %.1f\n", round, most);
        fflush(stdout);
    }
}

/* The other node's trainer makes rounds: its data goes on arriving after our deadline. */
static int do_held(uint64_t bytes)
{
    sleet_set *set = ready(bytes);
    sleet_report r = {.flags = SLEET_JOINING};
    sleet_wait_nodes(set, 2, INT64_C(10000000000));
    while (r.flags & (SLEET_JOINING | SLEET_ALONE))
        r = one_round(set, 10000);
    r = one_round(set, 300);
    uint8_t *copy = malloc(bytes);
    const void *result = sleet_result_buffer(set, 0);
    if (!copy || !result)
        return EXIT_FAILURE;
    memcpy(copy, result, bytes);
    int64_t until = now_ms() + 1500; /* what is late arrives by then */
    bool same = true;
    while (same && now_ms() < until)
        same = memcmp(copy, result, bytes) == 0;
    free(copy);
    sleet_close(connection);
    printf("held: flags %u, coverage %.3f, result %s\n", r.flags, r.coverage, same ? "kept" : "WRITTEN");
    return same ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";
    uint64_t n = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;
    if (strcmp(mode, "api") == 0)
        return do_api();
    if (strcmp(mode, "ask") == 0 && argc > 2)
        return do_ask(argv[2]);
    if (strcmp(mode, "garbage") == 0)
        return do_garbage((int)n);
    if (strcmp(mode, "flood") == 0)
        return do_flood((int)n);
    if (strcmp(mode, "deaf") == 0)
        return do_deaf();
    if (strcmp(mode, "half") == 0)
        return do_half();
    if (strcmp(mode, "mid") == 0)
        return do_mid(n);
    if (strcmp(mode, "rounds") == 0)
        do_rounds(n);
    if (strcmp(mode, "steps") == 0 && argc > 3)
        do_steps(n, strtod(argv[3], NULL));
    if (strcmp(mode, "held") == 0)
        return do_held(n);
    fprintf(stderr, "usage: abuse api|ask LINE|garbage N|flood MS|deaf|half|mid BYTES|rounds BYTES|"
                    "steps BYTES X|held BYTES\n");
    return 2;
}
