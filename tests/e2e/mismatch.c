/* mismatch.c - a trainer for daemon.sh that says what libsleet tells it.
 *
 *   mismatch register NODES NAME:COUNT...  register a set of these tensors and wait for
 *                                          NODES trainers; then stay until killed
 *   mismatch hold N                        open N connections and send nothing; stay
 *
 * $SLEET_CONTROL names the daemon's socket.  Each event is one line on stdout. */
#include "sleet.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define WAIT_NS INT64_C(10000000000)

static int say(const char *what, int error, const sleet *ctx)
{
    printf("%s: %d %s: %s\n", what, error, sleet_strerror(error), sleet_detail(ctx));
    fflush(stdout);
    return error;
}

static int add_tensors(sleet_set *set, int count, char **words)
{
    for (int i = 0; i < count; i++) {
        char name[SLEET_NAME_MAX + 1];
        uint64_t elements;
        if (sscanf(words[i], "%63[^:]:%" SCNu64, name, &elements) != 2)
            return SLEET_EINVAL;
        int error = sleet_set_add(set, name, SLEET_F32, elements, NULL);
        if (error)
            return error;
    }
    return SLEET_OK;
}

static int do_register(int argc, char **argv)
{
    sleet *ctx = NULL;
    sleet_set *set = NULL;
    int error = sleet_open(&ctx, NULL);
    if (!error)
        error = sleet_set_new(&set, ctx, "mismatch", SLEET_MODEL);
    if (!error)
        error = add_tensors(set, argc - 3, argv + 3);
    if (!error)
        error = say("register", sleet_set_register(set), ctx);
    else
        say("open", error, ctx);
    if (!error) {
        say("wait", sleet_wait_nodes(set, (uint32_t)atoi(argv[2]), WAIT_NS), ctx);
        say("start", sleet_start(set, NULL), ctx);
        pause(); /* the other side is to hear of this set as well */
    }
    sleet_close(ctx);
    return error ? EXIT_FAILURE : EXIT_SUCCESS;
}

static int do_hold(int count)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    const char *path = getenv("SLEET_CONTROL");
    if (!path || strlen(path) >= sizeof addr.sun_path)
        return EXIT_FAILURE;
    strcpy(addr.sun_path, path);
    for (int i = 0; i < count; i++) {
        int fd = socket(AF_UNIX, SOCK_STREAM, 0);
        if (fd < 0 || connect(fd, (const struct sockaddr *)&addr, sizeof addr) != 0)
            return EXIT_FAILURE;
    }
    printf("holding %d\n", count);
    fflush(stdout);
    pause();
    return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    if (argc > 3 && strcmp(argv[1], "register") == 0)
        return do_register(argc, argv);
    if (argc == 3 && strcmp(argv[1], "hold") == 0)
        return do_hold(atoi(argv[2]));
    fprintf(stderr, "usage: mismatch register NODES NAME:COUNT... | hold N\n");
    return 2;
}
