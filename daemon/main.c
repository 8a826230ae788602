/* main.c - sleetd: options, one line that says where it listens, the loop. */
#include "keys.h"
#include "log.h"
#include "loop.h"
#include "privilege.h"
#include <inttypes.h>
#include <signal.h>
#include <sodium.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    static struct daemon d;
    static struct keys keys;
    struct privilege who;
    struct config c;
    int stop = config_load(&c, argc, argv);
    if (!stop && (sodium_init() < 0 || !privilege_find(&who, &c) || !keys_load(&keys, &c, who.uid)))
        stop = CONFIG_UNUSABLE;
    if (stop || c.check_only) {
        if (!stop)
            config_print(&c, stdout);
        keys_wipe(&keys);
        config_free(&c);
        if (stop > 1)
            return stop - 1;
        return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
    }
    signal(SIGPIPE, SIG_IGN);
    logger_sink(c.level);
    bool ok = loop_open(&d, &c, &keys, &who) && privilege_drop(&who, &c);
    if (ok) {
        printf("sleetd node=%" PRIu64 " listen=%s control=%s pid=%d\n", c.node_id, d.udp.address,
               d.control.path, (int)getpid());
        fflush(stdout);
        loop_run(&d);
    }
    loop_close(&d);
    keys_wipe(&keys);
    config_free(&c);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
