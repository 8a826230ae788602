/* loop.h - the daemon as a whole: one libev loop around one engine. */
#ifndef DAEMON_LOOP_H
#define DAEMON_LOOP_H
#include "address.h"
#include "control.h"
#include "keys.h"
#include "privilege.h"

struct daemon {
    const struct config *config;
    struct keys *keys;
    engine *engine;
    struct udp udp;
    struct address_choice advertised;
    struct control control;
    struct ev_loop *loop;
    ev_io udp_in, udp_out, timer_io;
    ev_prepare prepare;
    ev_signal term, intr;
    ev_timer goodbye;
    int timer_fd;
    sleet_time armed;   /* what timer_fd is set to */
    sleet_time started; /* of the process */
    sleet_time now;     /* read once a wake-up */
    engine_burst burst; /* next to send */
    bool burst_waits;   /* the socket was full */
    bool left, ending, evicted;
    uint32_t nodes_known;
};

/* Build the engine and open everything, files in the name of the given user.  False after printing the reason. */
bool loop_open(struct daemon *, const struct config *, struct keys *,
               const struct privilege *);
/* Run until a signal or `shutdown`. */
void loop_run(struct daemon *);
void loop_close(struct daemon *);

/* CLOCK_MONOTONIC now. */
sleet_time loop_clock(void);
/* Leave the job; with `end` the process exits once the good-byes are out. */
void loop_leave(struct daemon *, bool end);
#endif
