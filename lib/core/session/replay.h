/* Sliding window of packet counters (RFC 6479).  Zero-filled is empty.  Its words are made
 * with the first counter from 64 on: most members of a large job hardly speak to each other. */
#ifndef SESSION_REPLAY_H
#define SESSION_REPLAY_H
#include <stdbool.h>
#include <stdint.h>

#define REPLAY_WORDS 129
#define REPLAY_WINDOW ((REPLAY_WORDS - 1) * 64) /* counters, 8192 */
#define REPLAY_JUMP_MAX ((uint64_t)1 << 32) /* no link loses that many in a row: a fault or a lie,
                                               which would shut out all that is to come */

struct replay {
    uint64_t highest; /* counter seen; 0 none */
    uint64_t few;     /* the word of counters 0 .. 63 until there are `words` */
    uint64_t *words;  /* REPLAY_WORDS, or NULL */
};

/* Call after the tag was found right.  False for counter 0, a counter seen
 * before, one that is REPLAY_WINDOW or more behind the highest or more than REPLAY_JUMP_MAX
 * ahead of it; also when out of memory. */
bool replay_check_and_set(struct replay *, uint64_t counter);
/* The first counter of an empty window may be any. */
static inline void replay_begin(struct replay *r, uint64_t first) { r->highest = first ? first - 1 : 0; }
/* Empty again, its memory freed. */
void replay_fini(struct replay *);
#endif
