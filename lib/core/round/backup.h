/* Commits of an owner that cannot be reached any more.
 *
 * The backup of a run is the contributor that would own it if its owner were not there.  It keeps what the owner
 * has committed there, in the owner's bytes.  Who lacks such a commit and finds the owner dead, restarted or silent asks
 * the backup by its summaries, and what comes counts as if the owner had sent it: in the round while it is open, else
 * as a late commit.  So an owner that dies while it sends does not leave some members with a step that
 * others lack.
 *
 * Invariant: a commit is taken only of a fragment's backup by the receiver's own list, which it has asked
 * because the owner is out of its reach: nobody can put its word in the place of an owner that is there. */
#ifndef ROUND_BACKUP_H
#define ROUND_BACKUP_H
#include "base/time.h"
#include <stdbool.h>
#include <stdint.h>

struct kept_commit { /* of another owner */
    uint64_t mask;
    float weight;
    uint32_t fragment;
    uint16_t bytes;
};

struct backup_side {
    uint8_t *of_run;   /* rank of each run's backup; OWNER_NONE: nobody */
    uint32_t share, n; /* fragments that this node is the backup of, commits of them kept */
    uint32_t *slot_of; /* by fragment: 1 + its slot; NULL: nothing is kept (yet) */
    struct kept_commit *kept; /* by slot */
    uint8_t *coded;           /* by slot, layout.coded bytes each */
    bool dropped;             /* to make room, for good */
};

/* What a lane has of it; towards an owner out of reach, and towards a member that asks. */
struct backup_lane {
    uint64_t heirs, asked, spent; /* ranks: backups of what lacks, asked once, those that have no more of it */
    bool begun;                   /* heirs is known */
    uint8_t turn;                 /* next of them to be asked */
    sleet_time ask_at;            /* when to go through them again, */
    sleet_duration gap;           /* after so long: longer each time that nothing has come */
    sleet_time news_at;           /* when they were first asked, or commits were seen to have come */
    uint32_t healed, told;        /* commits that came from them, of them seen then */
    uint64_t *give;               /* slots asked for */
    uint32_t gives, give_pos;
    sleet_time gave_at;
    uint64_t none; /* owners, by rank, of whom nothing that it lacks is here: to be told */
};
#endif
