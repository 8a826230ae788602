/* main.c - sleetd: options, one line that says where it listens, the loop. */
#include "edges/edges.h"
#include "keys.h"
#include "log.h"
#include "loop.h"
#include "privilege.h"
#include <inttypes.h>
#include <signal.h>
#include <sodium.h>
#include <stdlib.h>
#include <unistd.h>

/* What job.edges names. */
static bool take_edges(struct config *c, struct edges_file *f)
{
    f->path = c->text[CONFIG_EDGES];
    const char *wrong = *f->path ? edges_read(f) : NULL;
    if (*f->path && !wrong && c->allow_count)
        wrong = edges_among(f, c->allow, c->allow_count, "in job.allow");
    c->edges = edges_in_force(f);
    if (wrong)
        fprintf(stderr, "sleetd: %s: job.edges: %s\n", c->origin[CONFIG_EDGES], wrong);
    return !wrong;
}

int main(int argc, char **argv)
{
    static struct daemon d;
    static struct keys keys;
    static struct edges_file edges;
    struct privilege who;
    struct config c;
    int stop = config_load(&c, argc, argv);
    if (!stop && (sodium_init() < 0 || !privilege_find(&who, &c) || !keys_load(&keys, &c, who.uid) ||
                  !take_edges(&c, &edges)))
        stop = CONFIG_UNUSABLE;
    if (stop || c.check_only) {
        if (!stop)
            config_print(&c, stdout);
        keys_wipe(&keys);
        edges_free(&edges);
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
    edges_free(&edges);
    config_free(&c);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
