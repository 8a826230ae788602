/* client.h - the inside of libsleet's handles.
 * A context owns one connection and the sets made from it. */
#ifndef CLIENT_CLIENT_H
#define CLIENT_CLIENT_H
#include "client/protocol.h"
#include <stdarg.h>

#define CLIENT_REPLY_NS INT64_C(5000000000)  /* longest wait for a reply */
#define CLIENT_STALL_NS INT64_C(250000000)   /* grace after a round's deadline */
#define CLIENT_INPUT_MAX 4096                /* bytes of a line from the daemon */

struct tensor {
    char name[SLEET_NAME_MAX + 1];
    sleet_dtype dtype;
    sleet_codec codec;     /* 0: the default */
    uint64_t count, bytes; /* elements, bytes */
    uint32_t rows;         /* 0: it is a vector */
    uint64_t offset;       /* bytes from the start of the send half */
    void *data;            /* the caller's, or NULL */
};

struct sleet_set {
    sleet *ctx;
    sleet_set *next;
    char name[SLEET_NAME_MAX + 1];
    struct set_kind kind;
    struct tensor *tensors;
    uint32_t count, cap;
    int handle; /* -1: not registered */
    uint8_t *map;
    uint64_t map_bytes, half, fragments;
    struct control_shared shared;
    uint64_t seq;        /* of the newest start */
    bool open, closed;   /* a round was started; its 150 has come */
    bool running;        /* the daemon may be using the buffers */
    int64_t deadline_ns; /* instant, CLOCK_MONOTONIC */
    int round_error;
    sleet_report report;
    struct state_side {
        uint8_t *map;
        uint64_t map_bytes;
        uint64_t seq;      /* of the newest question */
        bool came;         /* its answer has */
        int error, half;
        sleet_state_report report; /* of 152 */
        uint64_t blob_version, blob_bytes; /* of 153 */
    } state;
    char schema[256]; /* text of 151, "" if none */
};

struct sleet {
    int fd;
    bool dead;
    int stale;   /* replies that are owed to calls which gave up */
    int passed;  /* descriptor that came with a reply, or -1 */
    size_t have; /* bytes in `input` */
    char input[CLIENT_INPUT_MAX];
    char detail[512];
    sleet_set *sets;
};

int64_t client_now(void);

/* Set the context's (NULL: the thread's) detail and return `error`. */
int client_fail(sleet *ctx, int error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Send `line` (LF added) and wait until `until_ns` for its reply, whose text
 * after the code is copied to `text`.  SLEET_OK or the reply's error with the detail set.
 * Asynchronous lines met on the way are applied to their sets. */
int client_call(sleet *ctx, int64_t until_ns, char text[CLIENT_INPUT_MAX], const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Apply the asynchronous lines that are here; waits for input until `until_ns`
 * (0: not at all) if there is none.  SLEET_OK, or SLEET_EDAEMON. */
int client_pump(sleet *ctx, int64_t until_ns);

/* Set the set's round state from "HANDLE SEQ ..." of a 150 or "HANDLE TEXT" of a 151. */
void client_round_line(sleet *ctx, const char *text);
void client_schema_line(sleet *ctx, const char *text);
/* Take what 152 or 153 says. */
void client_state_line(sleet *ctx, const char *text);
void client_blob_line(sleet *ctx, const char *text);

/* Wait for the daemon's greeting. */
int client_greeting(sleet *ctx, int64_t until_ns);

/* Unmap and free one set; it is unlinked by the caller. */
void client_set_free(sleet_set *set);
#endif
