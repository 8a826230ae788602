/* control.h - the control socket: connections, commands, sets with a trainer.
 * docs/control.md is the protocol. */
#ifndef DAEMON_CONTROL_H
#define DAEMON_CONTROL_H
#include "client/protocol.h"
#include "config.h"
#include "engine.h"
#include "privilege.h"
#include "shm.h"
#include "udp.h"
#include <ev.h>
#include <sys/types.h>

#define CONTROL_CLIENTS_MAX 64
#define CONTROL_CLIENTS_EACH 16 /* connections of one process */
#define CONTROL_OUTPUT_MAX (4u * 1024 * 1024) /* bytes waiting for one client */

/* A set being defined by `set` and `tensor`. */
struct definition {
    char name[SLEET_NAME_MAX + 1]; /* "": none */
    struct set_kind kind;
    engine_tensor *tensors;
    uint32_t count, cap;
    uint64_t half, fragments; /* bytes of the send buffers; of the set */
};

struct client {
    int fd; /* -1: free */
    pid_t pid;
    bool admin; /* the daemon's user or root: may also end things */
    ev_io io;
    char in[CONTROL_LINE_MAX];
    size_t have;
    char *out; /* owned; `filled` bytes of which `sent` are out */
    size_t out_cap, filled, sent;
    bool closing; /* after the output is out */
    bool held;    /* its next line waits for its turn, command_waits() */
    unsigned unknown; /* lines that were no command */
    struct definition def;
};

/* What the shell keeps of an engine set; index = handle. */
struct slot {
    struct client *owner; /* NULL: no trainer */
    char name[SLEET_NAME_MAX + 1];
    struct shm shm;
    void **buffers; /* 2 * count: send, then result */
    float **residual; /* count; NULL: nothing is carried over */
    uint64_t *owned; /* NULL: owners do not stay */
    uint32_t count;
    uint64_t seq;
    bool open;
    char schema[256];
};

/* Published state of the set with the same handle; see state.c. */
struct state_slot {
    struct shm shm;
    uint64_t bytes; /* of a state */
    uint32_t hash;  /* of the set */
    int newest;     /* half that holds the newest version */
    bool published, reserved, fetching, asking;
    uint64_t fetch_seq, blob_seq; /* the caller's numbers */
};

struct daemon; /* loop.h */

struct control {
    struct daemon *d;
    int fd;
    bool shared; /* the socket file's group may connect as well */
    char path[108];
    dev_t dev; /* of our socket file, so that only ours is removed */
    ino_t ino;
    ev_io io;
    ev_timer turn; /* runs while a client is held */
    ev_timer accept_pause; /* runs while `io` is stopped for want of descriptors */
    unsigned first_turn;        /* client that is first in the next one */
    sleet_duration report_time; /* that reports may still take */
    sleet_time reported;        /* when this was last reckoned */
    struct client clients[CONTROL_CLIENTS_MAX];
    struct slot slots[ENGINE_SETS_MAX];
    struct state_slot states[ENGINE_SETS_MAX];
};

/* Bind and listen, the file in the name of the user that the daemon becomes; a stale file is reclaimed, a live one refused.  False after
 * printing the reason. */
bool control_open(struct control *, struct daemon *, const char *path, const struct privilege *);
void control_start(struct control *, struct ev_loop *);
/* Close all connections and remove the socket file. */
void control_close(struct control *);

/* Append a line (LF added) to the client's output. */
void control_say(struct client *, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The same for a text of any length. */
void control_say_text(struct client *, const char *prefix, const char *text);
/* Send a line with a descriptor at once. */
bool control_say_fd(struct client *, const char *line, int fd);
/* Push all waiting output. */
void control_flush(struct control *);

/* command.c: run one line, freeing of what a client holds, events to clients. */
void command_run(struct control *, struct client *, char *line);
/* Should the line be run later, since its kind has had its share of time? */
bool command_waits(struct control *, const char *line);
void command_drop(struct control *, struct client *);
void command_events(struct control *);
/* End all open rounds: before leaving. */
void command_cancel_all(struct control *);

/* status.c: texts made by cJSON; NULL when out of memory, freed by free(). */
char *status_json(const struct control *);
char *status_peers_json(const struct control *);
/* By what a set is averaged. */
char *status_strategy_json(const struct control *, int handle);
/* What is published, fetched and held of each set. */
char *status_state_json(const struct control *);
/* The options in force: as a file, and one by one. */
char *status_config_json(const struct control *);
/* `name`: one set, or NULL for all. */
char *status_rounds_json(const struct control *, const char *name);
/* Of every set that still has it; 0 is the newest that the node joined. */
char *status_explain_json(const struct control *, uint64_t round);
#endif
