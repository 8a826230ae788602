/* A queue of news to pass on: numbers below a bound, each at most once, the
 * least often sent first and of those the one that has waited longest.  News
 * that is added again starts afresh: so newer news replaces the older. */
#ifndef GOSSIP_H
#define GOSSIP_H
#include <stdbool.h>
#include <stdint.h>

#define GOSSIP_SENDS_MAX 32
#define GOSSIP_END UINT16_MAX

struct gossip {
    struct gossip_link {
        uint16_t before, after;
        uint8_t sent; /* GOSSIP_SENDS_MAX: not in the queue */
    } * link;
    uint32_t room;
    uint32_t n; /* in the queue */
    uint16_t head[GOSSIP_SENDS_MAX], tail[GOSSIP_SENDS_MAX];
};

void gossip_init(struct gossip *);
void gossip_fini(struct gossip *);
/* Room for numbers below `room` < GOSSIP_END.  False when out of memory. */
bool gossip_grow(struct gossip *, uint32_t room);
void gossip_add(struct gossip *, uint32_t id);
void gossip_remove(struct gossip *, uint32_t id);
bool gossip_has(const struct gossip *, uint32_t id);
/* It was sent once more; out of the queue when that makes `limit`. */
void gossip_sent(struct gossip *, uint32_t id, uint32_t limit);
/* Walk the queue in order: the first, then the one after `id`; GOSSIP_END after the last. */
uint32_t gossip_first(const struct gossip *);
uint32_t gossip_after(const struct gossip *, uint32_t id);
#endif
