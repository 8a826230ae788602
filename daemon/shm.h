/* shm.h - sealed shared memory for one set. */
#ifndef DAEMON_SHM_H
#define DAEMON_SHM_H
#include <stdbool.h>
#include <stdint.h>

struct shm {
    int fd; /* to be passed to the trainer; -1: none */
    uint8_t *map;
    uint64_t bytes;
};

/* Create, seal against shrinking and growing, map.  `held`: bytes of the sets that there are,
 * which their trainers may not have touched yet.  False when memory does not suffice for this
 * one, or not for all of them; nothing is then held. */
bool shm_create(struct shm *, uint64_t bytes, uint64_t held);

/* Close the descriptor once it has been passed; the mapping stays. */
void shm_close_fd(struct shm *);
void shm_destroy(struct shm *);
#endif
