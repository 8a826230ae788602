/* Whether what goes to a member is protected by parity, or asked for again where it is lost.
 *
 * Of m datagrams of which p are lost, all have arrived after about 1 + ln m / ln(1/p) passes, each
 * further one of which takes 1.5 round trips: the hole is told, the datagram comes again.  Parity
 * saves these and costs h S / B, its share h of S bytes at B.  So it is worth its bytes where
 *
 *     1.5 rtt (passes - 1) > h S / B
 *
 * A code needs h >= 2 p to leave little to be asked for, bursts included. */
#ifndef PROTECT_RULE_H
#define PROTECT_RULE_H
#include "base/time.h"
#include <stdbool.h>
#include <stdint.h>

/* X(name, sentence): why. */
#define PROTECT_REASON_MAP(X)                                                                  \
    X(PROTECT_UNDECIDED, "nothing has been sent to it yet")                                    \
    X(PROTECT_OFF, "parity is switched off")                                                   \
    X(PROTECT_CLEAN, "next to nothing is lost on the way to it")                               \
    X(PROTECT_NO_RTT, "the round trip is not known yet")                                       \
    X(PROTECT_NEAR, "asking again for what is lost takes no longer than parity")               \
    X(PROTECT_BEYOND, "more is lost than parity brings back")                                  \
    X(PROTECT_CONGESTED, "it is overrun, and more bytes would be lost as well")                \
    X(PROTECT_NO_TIME, "the deadline leaves no room for more bytes")                           \
    X(PROTECT_FAR, "asking again for what is lost takes longer than parity")

enum protect_reason {
#define PROTECT_X(name, sentence) name,
    PROTECT_REASON_MAP(PROTECT_X)
#undef PROTECT_X
};

/* What is known of a path and of what is to go along it. */
struct protect_case {
    double loss;             /* p, 0..1 */
    sleet_duration rtt;      /* below 0: not known */
    uint64_t bytes;          /* S, towards this member */
    uint32_t datagrams;      /* m */
    uint64_t rate_bps;       /* B, bits a second; towards this member, above 0 */
    sleet_duration deadline; /* from now on */
    bool congested;          /* its pace is held down */
    bool off;
};

struct protection {
    enum protect_reason reason;
    uint8_t rows;           /* of parity for 64 datagrams; 0: none, lost ones are asked for */
    sleet_duration repair;  /* what passes after the first would take */
    sleet_duration parity;  /* what the bytes of parity (would) take */
};

struct protection protect_decide(const struct protect_case *);
const char *protect_reason_text(enum protect_reason);
#endif
