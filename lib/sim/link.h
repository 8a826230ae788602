/* link.h - a deterministic model of one direction of a network path.
 *
 * Every random choice is drawn from the generator handed in.  Probabilities are
 * fractions from 0 to 1, durations nanoseconds.  A zero-filled sim_link is
 * perfect: no loss, no limit, and the least delay of 1 us, so that time moves. */
#ifndef SIM_LINK_H
#define SIM_LINK_H
#include "base/rng.h"
#include "base/time.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sim_link {
    sleet_duration delay;         /* one way */
    sleet_duration jitter;        /* uniform in [0, jitter] on top */
    sleet_duration reorder_delay; /* on top for reordered datagrams; 0: 1 ms */
    double loss;                  /* independent for each datagram */
    double duplicate, corrupt, reorder;
    double ge_p, ge_r; /* Gilbert: good -> bad, bad -> good, a datagram; all in bad are lost; 0: off */
    uint64_t rate_bps;    /* bits of payload per second; 0: no limit */
    uint32_t queue_bytes; /* waiting for the rate limit, then drop; 0: 256 KiB */
    sleet_time *free_at;  /* of the rate limit; paths with the same one share it.  NULL: its own */
    uint32_t mtu_bytes;   /* longer datagrams are lost; 0: no limit */
    bool down;            /* everything is lost */
};

/* What a path remembers between datagrams; zero-filled at first. */
struct sim_path {
    struct sim_link link;
    sleet_time free_at; /* when the rate limiter has sent all it took */
    bool bad;           /* Gilbert state */
    uint64_t lost, tail_dropped, duplicated, corrupted, reordered;
};

#define LINK_COPIES_MAX 2

/* The fate of one datagram: `copies` arrivals (0: lost) at the instants `at`.
 * flip >= 0: the bit to invert in the first copy. */
struct sim_fate {
    uint32_t copies;
    sleet_time at[LINK_COPIES_MAX];
    int64_t flip;
};

/* Decide over a datagram of `len` bytes (> 0) that enters the path at `now`. */
struct sim_fate link_pass(struct sim_path *, sleet_rng *, size_t len, sleet_time now);
#endif
