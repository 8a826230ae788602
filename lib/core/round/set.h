/* set.h - what a node keeps of a set of tensors and of its rounds; what is done with it is in round.h. */
#ifndef SET_H
#define SET_H
#include "base/config.h"
#include "base/stats.h"
#include "codec/codec.h"
#include "member/common.h"
#include "member/member.h"
#include "round/backup.h"
#include "round/budget.h"
#include "round/carry.h"
#include "round/clip.h"
#include "round/drift.h"
#include "round/edge.h"
#include "round/estimate.h"
#include "round/late.h"
#include "round/parity.h"
#include "round/parts.h"
#include "round/switch.h"
#include "strategy/strategy.h"
#include "tensor/layout.h"
#include "wire/wire.h"

#define ROUNDS_RING 8
#define NOT_DUE UINT32_MAX /* of a fragment that this round leaves alone */
#define SLICE_FRAGMENTS 2048 /* handled in one go where a whole set could take seconds */
#define SET_HISTORY 64
#define SET_UNTOLD 0x80
#define SET_SWITCHED 0x40
#define KNOWN_GROUPS 8 /* of others, a set */
#define ISOLATED_AFTER 10 /* rounds of low coverage in a row */

struct owner_side {
    /* By number: 0..share-1 is the node's own share; then foreign fragments, given to this node
     * by members whose group makes it their owner, at most foreign_max, about one share. */
    double **acc;    /* 288 sums, from the first contribution to the commit */
    double *wsum;    /* sum of weights */
    uint64_t *mask;  /* contributors, bit = rank */
    uint8_t *commit; /* what is committed, encoded: layout.coded bytes a number, made with the first */
    uint16_t *coded; /* of them used, by number */
    uint32_t *order; /* numbers in order of their commit */
    uint32_t commits, taken; /* of them in the node's own result */
    uint32_t foreign_n, foreign_max, foreign_commits;
    uint32_t *foreign, *foreign_of; /* fragment of number share + i; 1 + i of a fragment */
    uint32_t sweep;  /* next number to commit while finishing */
    struct suspect **suspects; /* by number: contributions held back until the commit */
    uint32_t suspects_n;
    float *change;             /* by number and rank, see clip.h */
    bool finishing, final, discarded;
    sleet_time first_seen, grace_at; /* TIME_NEVER when unset */
    sleet_time until;                /* as now known it waits until then; likewise */
    sleet_time turn_at;              /* others may close the round from then on; likewise, see quorum.c */
    uint64_t need, over;             /* ranks waited for; ranks that said END */
};

/* Towards and from one member of the group, by rank. */
struct lane {
    uint32_t start, share; /* its owned fragments: frag[start .. start+share) */
    double keep; /* share of a fragment's elements that goes to it, sparse codecs */
    uint32_t scatter_pos, scatter_repair_pos, scatter_repairs;
    uint32_t twice;         /* fragments that are to go once more when all have gone */
    uint32_t gather_pos;    /* commits sent so far, an index into order[], */
    uint32_t ahead_pos;     /* and of those that the member is the backup of, which go first */
    uint32_t *sent_at;      /* low half of the packet counter, per owned number */
    uint64_t *repair;       /* owned numbers asked for again */
    uint32_t repairs, repair_pos;
    sleet_time gather_sent_at, scatter_sent_at;
    /* received */
    uint32_t in_direct, in_repaired, in_late, sent_told; /* scatter */
    uint32_t got_direct, got_repaired, got_late, commits_told;
    uint32_t holes;       /* of a closed round, that a late commit may fill */
    uint32_t got_foreign; /* commits of fragments that the own group gives to others */
    bool commits_final;
    sleet_time final_at;
    uint32_t group; /* hash of the group it pinned, 0 unknown */
    float weight;     /* of its contributions */
    uint32_t clipped; /* of them were too far off or too heavy, */
    float excess;     /* at most so many times */
    uint32_t refused; /* of its commits likewise */
    uint64_t digest;  /* of its commits held, see witness.c */
    uint64_t told_digest; /* what another member holds of it, */
    uint8_t told_by;      /* 1 + its rank; 0: nobody said */
    /* feedback */
    sleet_time summary_at, said_at; /* when the next is due, when the last was sent */
    sleet_duration summary_gap;
    uint32_t since_summary;
    uint32_t receipts, receipt_pos; /* of contributions to it, and where the next to it begins; receipt.c */
    uint32_t gather_whole, scatter_whole; /* nothing is missing before this number */
    bool summary_due, holes_due;
    struct parity_lane *parity; /* NULL: nothing of the kind yet */
    struct backup_lane backup;
    bool past; /* it is past the round and has no use for commits, which would hold up those of the next */
};

/* What of a contribution is sent twice; twice.c. */
struct twice {
    double share;     /* of its fragments */
    float *energy;    /* by fragment, while they are being chosen; */
    uint32_t next;    /* of the next one */
    uint64_t *chosen; /* fragments */
};

/* A commit held: whose, of whom (bits into round.people), how heavy; weight 0: none. */
struct held {
    uint64_t who;
    float weight;
    uint8_t owner; /* index into round.people */
};

struct extra { /* a further commit of a fragment, of another owner */
    struct held head;
    uint32_t fragment, next; /* next: 1 + index, 0 ends */
    float x[FRAGMENT_ELEMENTS];
};

struct round {
    uint64_t number;
    uint64_t turn; /* of its owners: the number, or 0 where they stay */
    sleet_exchange exchange;
    uint64_t lineage; /* of the group's contributors; 0: it was not known who founds it */
    struct group group;
    int self; /* own rank */
    bool joined, closing, closed, exact, contributes;
    bool mixed; /* members pinned different groups */
    uint8_t witness, witness_to; /* 1 + rank of an owner, and who is told its digest; 0: nobody */
    float before[WIRE_PROJECTIONS]; /* of the sketch, see drift.h */
    bool withheld; /* the result is not to be used: own values instead */
    bool behind;   /* a step that others may take is missing */
    bool judged, collected, little; /* see close.c */
    uint32_t settled; /* fragments whose fate carry.c has noted */
    uint32_t corrected; /* fragments to whose result late ones were added */
    double covered;
    bool prepared; /* the send buffers are as they are sent, see rotated.c */
    struct twice twice;
    uint32_t turned, turned_back; /* fragments done with, forward and back */
    uint32_t wound_up; /* fragments done with while closing */
    double weight, least_coverage;
    double keep; /* the least of all lanes */
    uint32_t expected, flags;
    sleet_time started, deadline;
    uint64_t skipped;
    const void **send;
    void **result;
    float **residual; /* NULL: nothing is carried over */
    uint64_t *sent;   /* own fragments that have left; with a residual only */
    uint64_t *decided, *counted; /* of those: the owner has said whether it counted them, and has; receipt.c */
    uint64_t *owned; /* the caller's bitmap of the runs that this node owns; may be NULL */
    uint8_t *owner_of_run;
    uint32_t *frag;         /* the fragments that are due, grouped by owner rank */
    uint32_t due;           /* of them */
    uint32_t wanted;        /* of the due ones, those that this node is to have in the end */
    uint32_t fit;           /* of them that a datagram takes at most */
    uint32_t *number_of;    /* fragment -> number within its owner's share; NOT_DUE */
    uint64_t *got;          /* fragments whose owner's commit is held */
    struct held *held;      /* per fragment: the commit in the result */
    struct extra *extra;    /* merged into it when the round closes */
    uint32_t *extra_of;     /* 1 + index of a fragment's newest extra */
    uint32_t extra_n, extra_cap;
    struct group_member people[SLEET_GROUP_MAX]; /* the group, then those of other groups */
    uint32_t people_n;
    uint64_t *scatter_again;/* own fragments an owner asked for again */
    uint32_t got_n, filled; /* fragments with their owner's commit, with any */
    struct edges *edges; /* among neighbours, and without owners; else NULL */
    struct owner_side own;
    struct backup_side backup;
    struct lane lane[SLEET_GROUP_MAX];
    uint64_t parity_room; /* bytes that sums of parity may still take */
    /* Nothing leaves before this instant unless the round is touched, that is, handed out by
     * set_round() or changed by set.c, or the view changes. */
    sleet_time quiet_until; /* 0: touched */
    uint32_t quiet_view;    /* generation */
    bool idle;              /* there is no data for anybody; as long as it is not touched */
};

/* Whether the members that share the model are cut apart; apart.c. */
struct apart {
    struct common common;
    bool minor;                   /* too few of them can be heard */
    sleet_time since;             /* since when */
    uint64_t round;               /* own round then */
    bool merged;                  /* as PING_MERGED */
    bool waits;                   /* for the one that decides for the lineage */
    sleet_time waits_since;
    uint64_t merge_to;            /* the lineage to change over to, with the next start */
    bool renumber;                /* the lineage joined has round numbers of its own */
    bool isolated;                /* rounds were of low coverage too often: values stay as they are */
    uint64_t isolated_at;         /* own round then */
    uint32_t low;                 /* rounds of low coverage in a row */
    bool looked;                  /* at this view, with this lineage, and need not before look_at */
    uint32_t generation;
    uint64_t lineage;
    sleet_time look_at, looked_at;
};

/* What a joiner has of the job's model so far; collect.c. */
struct collect {
    uint64_t *have; /* fragments; NULL: none */
    uint32_t n;     /* of them */
    uint64_t round, lineage;
};

struct set {
    bool used, attached, established;
    bool serves; /* of an auxiliary: it owns without a trainer */
    uint8_t announced; /* attached and established as last told to the others; SET_UNTOLD:
                          the group has yet to hear that a round closed; SET_SWITCHED:
                          all have yet to hear of another strategy */
    uint8_t announce_more; /* times to say it again, pings get lost */
    bool announce_all;     /* to everybody, not to the group of the newest round only */
    sleet_time announce_at;
    uint64_t lineage;
    uint64_t parent, forked_at; /* the lineage it was forked from, in which round; 0: founded */
    uint64_t weight;            /* contributions averaged since the founding */
    struct apart apart;
    uint64_t own_round; /* newest joined */
    uint32_t beyond;    /* members that the edges of graph lead to no more; as it was said last */
    uint64_t planned_alone; /* the newest round in which the strategy gave this node nobody; 0: none */
    struct layout layout;
    int handle;
    struct budget budget;
    uint32_t cut_off; /* members with a cut_round */
    struct drift drift;
    struct clip clip;
    struct collect collect;
    struct late late;
    struct edge_late edge_late;
    struct switching switching;
    struct low low;
    struct carry carry;
    struct round *ring[ROUNDS_RING];
    struct round *open;
    struct group known[KNOWN_GROUPS]; /* ring */
    uint32_t known_next;
    bool waiting; /* a start that cannot pin a group yet */
    struct { const void **send; void **result; float **residual; uint64_t *owned; sleet_round_options options; sleet_time at; } pending;
    struct { /* the pending start is answered with its own values, copied in slices */
        bool active;
        uint32_t flags, next; /* next: fragment */
        uint32_t corrected;
        uint64_t round;
    } alone;
    bool event;
    int event_error;
    sleet_report report;
    bool schema_event, schema_differs;
    char schema_text[256];
    uint32_t low_in_a_row;
    /* history */
    engine_round history[SET_HISTORY];
    uint64_t history_n, reports;
    double coverage_sum;
    sleet_duration longest;
    ledger_side scatter_sum, gather_sum;
};

/* What a set needs of its surroundings; filled by the engine. */
struct env {
    struct member *members;
    const engine_config *config;
    engine_counters *counters;
    sleet_time created;
    struct view *view; /* whose members these are */
};

#endif
