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

/* ---- loss ---------------------------------------------------------------- */

/* The share of a peer's datagrams that does not arrive: of at least 256 packet counters each, the
 * newest counts a quarter.  What comes late counts as lost in one and makes up for it in the
 * next.  Zero-filled at first. */
struct loss {
    uint64_t highest, received; /* when the present ones began */
    double share;
    bool valid; /* there is a first value */
};

/* The highest counter and the datagrams received so far, in a session. */
void loss_note(struct loss *, uint64_t highest, uint64_t received);
/* 0..1; 0 before there is a value. */
double loss_share(const struct loss *);

/* ---- capacity ------------------------------------------------------------ */

/* What the way from a peer carries, in bits of UDP payload a second.  A train is what the peer had to
 * send all at once: its bytes behind the first datagram, over the time from the first to the last.
 * Where they left about as far apart as they came, the peer's pace has set that rate: the way
 * carries so much at least, which may raise the measure but not lower it.  The measure is the median
 * of the last five trains, so that one that was read late by a busy process does not matter.
 * What others send over the same way at that time is theirs, not counted.  Zero-filled at first. */
#define CAPACITY_TRAINS 5

struct capacity {
    uint32_t train, n; /* the present one; its datagrams so far, 0: there is none */
    uint32_t sent_first, sent_last; /* by the peer's clock, microseconds */
    sleet_time first, last;         /* when they came */
    uint64_t bytes, beside;         /* behind the first; come since the last one */
    uint64_t measured[CAPACITY_TRAINS]; /* a ring */
    uint64_t trains;
    uint32_t held_up; /* in a row, until that is enough */
};

/* A datagram of the train with that number, which left at sent_us; `last`: none follows. */
void capacity_note(struct capacity *, uint32_t train, uint32_t sent_us, uint32_t bytes, bool last,
                   sleet_time now);
/* Another one of the peer's, which travels among those of a train. */
void capacity_beside(struct capacity *, uint32_t bytes);
/* 0 before there is a value. */
uint64_t capacity_bps(const struct capacity *);
/* The way has never held up what the peer sent: it carries that much, and maybe more. */
bool capacity_at_least(const struct capacity *);
/* As it travels: mantissa in bits 0 to 9, exponent in 10 to 14, rounded down; bit 15: at least. */
uint16_t capacity_code(const struct capacity *);
uint64_t capacity_of_code(uint16_t, bool *at_least);

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

/* ---- the flow of data to one peer: its pace and its breaker --------------- */

/* A peer that says nothing within a patience (rtt_timeout(), at least 20 ms) of data sent to
 * it is asked.  Each further patience without a sign of life halves its pace; after this
 * many datagrams in that state its flow is stopped until it is heard again. */
#define FLOW_UNANSWERED_MAX 64
#define FLOW_QUESTIONS_MAX 8 /* to a silent peer, apart from the usual pings */

struct flow {
    struct pacer pacer;
    sleet_time look_at;  /* the end of the patience; TIME_NEVER: it owes no answer */
    uint32_t questions;  /* since it was last heard; from the second on it is silent */
    uint32_t unanswered; /* data datagrams since it is silent */
};

void flow_init(struct flow *, uint64_t rate_bps, uint32_t burst_bytes, sleet_time now);
/* Data of that many bytes left towards the peer. */
void flow_sent(struct flow *, const struct rtt *, uint32_t datagrams, uint32_t bytes, sleet_time now);
/* Any sign of life. */
void flow_heard(struct flow *);
/* The peer's socket dropped datagrams: halve its pace, at most once a round trip. */
void flow_overflow(struct flow *, const struct rtt *, sleet_time now);
/* What is due by `now`: slow down, or regain 1/16 a round trip (counted as at least 10 ms).
 * True when the peer has to be asked for a sign of life. */
bool flow_expire(struct flow *, const struct rtt *, sleet_time now);
/* When flow_expire() has work. */
sleet_time flow_deadline(const struct flow *, const struct rtt *);
/* This process slept for `gap`: the peer did not. */
void flow_slept(struct flow *, sleet_duration gap);

static inline bool flow_stopped(const struct flow *f)
{
    return f->unanswered >= FLOW_UNANSWERED_MAX;
}

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
