/* command.h - what the files of commands share: the caller, its words, refusals. */
#ifndef DAEMON_COMMAND_H
#define DAEMON_COMMAND_H
#include "control.h"

#define COMMAND_WORDS_MAX 11

struct call {
    struct control *k;
    struct client *c;
    int argc; /* words after the command */
    char *argv[COMMAND_WORDS_MAX];
};

/* Answer with the error's code; `text` NULL: its sentence. */
void command_fail(struct client *, int error, const char *text);
/* The whole of `word` as a number up to `max`. */
bool command_number(const char *word, uint64_t max, uint64_t *out);
/* The slot of the first word's handle if it is the caller's; NULL after answering. */
struct slot *command_slot(const struct call *, int *handle);
void command_say_json(const struct call *, char *json);

/* ---- define.c: sets and their slots */
void define_do_set(const struct call *);
void define_do_tensor(const struct call *);
void define_do_register(const struct call *);
/* An unfinished definition, or a slot, whose trainer is gone. */
void define_forget(struct definition *);
void define_free_slot(struct control *, int handle);
/* Bytes of shared memory that there are. */
uint64_t define_shared_held(const struct control *);

/* ---- orders.c: of an operator */
void orders_do_order(const struct call *);
void orders_do_show(const struct call *);
/* An EVENT_JOB_KEY or EVENT_EVICTED. */
void orders_event(struct control *, const engine_event *);

/* ---- strategy.c */
void strategy_do(const struct call *);

/* ---- state.c: publish, fetch, blobs */
void state_do_attach(const struct call *);
void state_do_reserve(const struct call *);
void state_do_publish(const struct call *);
void state_do_fetch(const struct call *);
void state_do_blob(const struct call *);
void state_do_show(const struct call *);
/* An EVENT_STATE or EVENT_BLOB of the set. */
void state_event(struct control *, const engine_event *);
/* The handle is registered: what is kept of another set under it goes. */
void state_renew(struct control *, int handle);
/* Its trainer is gone: what it published stays, for its next life and for others. */
void state_detach(struct control *, int handle);
#endif
