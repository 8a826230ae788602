/* Sliding window of packet counters (RFC 6479).  Zero-filled is empty. */
#ifndef SESSION_REPLAY_H
#define SESSION_REPLAY_H
#include <stdbool.h>
#include <stdint.h>

#define REPLAY_WORDS 129
#define REPLAY_WINDOW ((REPLAY_WORDS - 1) * 64) /* counters, 8192 */

struct replay {
    uint64_t highest; /* counter seen; 0 none */
    uint64_t words[REPLAY_WORDS];
};

/* Call after the tag was found right.  False for counter 0, a counter seen
 * before, or one that is REPLAY_WINDOW or more behind the highest. */
bool replay_check_and_set(struct replay *, uint64_t counter);
#endif
