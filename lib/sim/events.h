/* events.h - a binary heap of what happens next; equal instants keep the order
 * in which they were pushed. */
#ifndef SIM_EVENTS_H
#define SIM_EVENTS_H
#include "base/time.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sim_packet;
struct sim;

struct sim_event {
    sleet_time at;
    uint64_t order; /* set by events_push() */
    enum { SIM_ARRIVAL, SIM_WAKE, SIM_KICK, SIM_CALL } kind;
    uint32_t node;
    union {
        struct sim_packet *packet; /* SIM_ARRIVAL */
        uint64_t generation;       /* SIM_WAKE */
        struct {
            void (*fn)(struct sim *, void *);
            void *arg;
        } call; /* SIM_CALL */
    };
};

/* Zero-filled: empty. */
struct sim_events {
    struct sim_event *heap;
    size_t count, room;
    uint64_t pushed;
};

/* False when out of memory. */
bool events_push(struct sim_events *, struct sim_event);
/* The next one, NULL if there is none; valid until the next call. */
const struct sim_event *events_first(const struct sim_events *);
/* Remove and return the next one; there must be one. */
struct sim_event events_pop(struct sim_events *);
void events_free(struct sim_events *);
#endif
