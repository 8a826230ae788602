/* What is known of the way to one peer, and the pace of sending. */
#ifndef PATH_H
#define PATH_H
#include "base/time.h"
#include <stdbool.h>
#include <stdint.h>

/* ---- round trip (RFC 6298) ---------------------------------------------- */

struct rtt {
    sleet_duration srtt, var, min;
    bool valid; /* a sample was taken */
};

void rtt_init(struct rtt *);
/* Negative samples are ignored. */
void rtt_sample(struct rtt *, sleet_duration sample);
/* srtt + max(1 ms, 4 var), at most 60 s; 1 s before the first sample. */
sleet_duration rtt_timeout(const struct rtt *);

/* ---- pace ---------------------------------------------------------------- */

/* Never more than rate * t + burst_bytes bytes in any time t, provided that one
 * spend is at most pacer_room() (never less than burst_bytes / 2 when ready). */
struct pacer {
    uint64_t rate_bps, max_bps; /* bits a second, now and at most */
    double tokens_bytes;        /* from -burst/2 to burst/2; ready from 0 on */
    uint32_t burst_bytes;
    sleet_time last;       /* of the tokens */
    sleet_time changed_at; /* last cut or regain */
    sleet_time cut_at;
    bool was_cut;
};

/* rate_bps > 0 is the maximum as well. */
void pacer_init(struct pacer *, uint64_t rate_bps, uint32_t burst_bytes, sleet_time now);
/* Brings the tokens up to `now`; true when a burst may leave. */
bool pacer_ready(struct pacer *, sleet_time now);
/* Bytes that may be spent at once, as of the last pacer_ready(). */
uint32_t pacer_room(const struct pacer *);
void pacer_spend(struct pacer *, uint32_t bytes);
/* When pacer_ready() will be true; in the past when it is now. */
sleet_time pacer_next(const struct pacer *);
/* Loss: halve the rate, at most once in `rtt`, not below 1/64 of the maximum. */
void pacer_cut(struct pacer *, sleet_duration rtt, sleet_time now);
/* No loss: add 1/16 of the maximum, at most once in `rtt`. */
void pacer_regain(struct pacer *, sleet_duration rtt, sleet_time now);

/* ---- reordering ------------------------------------------------------------ */

#define REORDER_MARKS 32

struct reorder {
    uint64_t highest; /* packet counter */
    sleet_time highest_at;
    sleet_duration extent; /* how late a lower counter arrives after a higher one */
    struct reorder_mark {
        uint64_t counter;
        sleet_time at;
    } marks[REORDER_MARKS]; /* a ring of arrivals of new highest counters */
    uint32_t mark_n, mark_pos;
};

void reorder_init(struct reorder *);
/* A datagram with this counter (not a duplicate) arrived.  The extent is the maximum,
 * less 1/4096 a note. */
void reorder_note(struct reorder *, uint64_t counter, sleet_time now);
/* How long a gap stays unreported: max(1 ms, 2 var, 1.25 extent). */
sleet_duration reorder_grace(const struct reorder *, const struct rtt *);
#endif
