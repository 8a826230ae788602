/* The view of the job as this node has it: one member an address, slot 0
 * being this node.  Members come and go: a slot is taken by view_add(), given back
 * by view_remove(), and stays its member's while a round refers to it.
 * Invariant: `alive` implies a session and less silence than the limit.
 *
 * Nothing that is asked for each datagram looks at all members: the address is
 * found by hash, the next timer in a heap, the rounds of the others are kept up
 * to date as they are told.  Hence what these depend on is changed through the
 * functions below, or view_changed() is called afterwards. */
#ifndef MEMBER_H
#define MEMBER_H
#include "base/addr.h"
#include "base/declared.h"
#include "base/heap.h"
#include "base/time.h"
#include "codec/adatopk.h"
#include "member/arrival.h"
#include "path/path.h"
#include "protect/rule.h"
#include "session/peer.h"
#include "session/replay.h"
#include "sleet.h"

#define MEMBERS_MAX 1024 /* this node included */
#define MEMBER_SETS_MAX 8

/* What a member says of one of our sets. */
struct member_set {
    bool matches;           /* it has the same schema */
    bool differs;           /* same name, other tensors */
    bool attached;          /* a trainer is there */
    bool established;       /* it holds the job's model, lineage says which */
    bool closed;            /* `round` has closed there */
    bool stale;             /* it was silent, and has said nothing of this set since */
    bool parked;            /* cut off: it takes part in no round */
    bool paused;            /* it changes nothing of its values */
    bool merged;            /* its values came to the lineage by averaging */
    uint64_t round;         /* newest round its trainer joined */
    uint64_t round_as_of;   /* this node's own round when it last said so */
    uint64_t lineage;
    uint64_t parent, forked_at; /* the lineage that it was forked from, in which round; 0: none */
    uint64_t weight;            /* contributions averaged since the founding */
    uint64_t weight_as_of;      /* its round then */
    uint32_t drift_round;   /* of the newest sketch of its values that was compared, low half; 0: none */
    uint32_t drift_off;     /* so many in a row were too far from ours */
    uint64_t drift_alarms;
    float drift;            /* how far, see round/drift.h */
    uint32_t apart_round;   /* of the newest sketch that was compared, whether or not values ought to be equal; 0: none */
    float apart, apart_before; /* squares of how far its values were from ours behind a round and before it, smoothed */
    uint64_t cut_round;     /* in which an owner here stopped waiting for it; 0: it has come since */
    sleet_time cut_since;   /* when that wait began */
    uint64_t vain_round;    /* `round` when an owner here waited longer for it in vain, 0: never */
    uint32_t silent_rounds; /* in a row without any contribution to this node */
    sleet_time ask_at;      /* not to be asked for a group before */
    double coverage;        /* long-run share of its fragments in our commits */
    struct arrival arrival; /* the same without the time in which its trainer paused */
    float gave;             /* weight of its newest contribution, 0: none yet */
    uint64_t clipped, refused; /* contributions of its cut down, results not taken */
    uint64_t far_rounds;       /* rounds with some */
    uint64_t disputed, disputes; /* rounds in which another held other results of it than we; in
                                    which it held others of somebody */
    float excess;           /* the worst of them, in times of what is allowed */
};

/* What the member has of the orders (member/orders.h), a bit each by index. */
struct member_notice {
    uint64_t told, refused; /* it has it; it will not take it */
    sleet_time at;          /* when to tell again what it has not */
    sleet_duration gap;
    uint32_t forged; /* records of this session that nobody signed */
};

struct member {
    sleet_addr addr;
    bool used; /* the slot is somebody's */
    bool listed; /* configured: the slot is kept */
    uint32_t swim; /* its number in member/swim.h, 0: none yet */
    uint64_t node_id, boot_id;
    bool session, alive, left;
    bool refused; /* one of the two does not want the other, for good: said once */
    bool evicted; /* by an order: no member ever again */
    struct member_notice notice;
    struct declared declared; /* by its PINGs */
    bool told; /* a PING of this session has come: its sets are known */
    bool deaf; /* it says that it does not hear us */
    uint32_t my_index;   /* it writes this into its datagrams */
    uint32_t peer_index; /* we write this into ours */
    uint64_t tx_counter, rx_received, tx_sent;
    uint64_t rx_next, gaps; /* the counter expected; how often a later one came instead */
    struct replay replay; /* without security; else each of the peer's keys has its own */
    struct peer *peer;    /* owned; of a sealed session, else NULL */
    struct rtt rtt;
    struct reorder reorder;
    struct loss loss;    /* on the way from it */
    double loss_told;    /* on the way to it, as it says; 0..1 */
    struct capacity capacity; /* of the way from it */
    uint64_t capacity_told;   /* of the way to it, as it says, bits/s; 0: it has not */
    bool capacity_least;      /* ... maybe more, see capacity_at_least() */
    struct adatopk link;      /* the same, smoothed from round to round */
    double keep;              /* share of sparse tensors that last went to it; 0: it does not follow the link */
    struct protection protection; /* of what was last sent to it */
    struct flow flow;    /* of data to it */
    sleet_time heard;    /* TIME_NEVER: never */
    sleet_time hello_at; /* when to greet (again) */
    sleet_duration hello_gap;
    sleet_time ping_at;
    bool pong_due;
    bool probe_due; /* a PING that asks, out of turn */
    uint32_t echo;      /* newest time value received */
    sleet_time echo_at; /* and when */
    uint32_t overflow;  /* last told */
    struct member_set sets[MEMBER_SETS_MAX];
};

/* The highest counter that has come in its session. */
static inline uint64_t member_highest(const struct member *m)
{
    return m->rx_next ? m->rx_next - 1 : 0;
}

/* The round that a closed round counts as: its successor. */
static inline uint64_t member_open_round(const struct member_set *s)
{
    return s->round + (s->closed ? 1 : 0);
}

/* Of two models one is kept: that of more contributions, of equal ones that with the lower id. */
static inline bool lineage_heavier(uint64_t weight, uint64_t lineage, uint64_t than_weight,
                                   uint64_t than_lineage)
{
    return weight > than_weight || (weight == than_weight && lineage < than_lineage);
}

/* Rounds of the established members of a lineage, but for the parked: how many, the highest open
 * round and the second-highest (equal to the highest when only one is there),
 * and the highest that a trainer of theirs has joined. */
struct member_rounds {
    uint32_t n;
    uint64_t highest, second, joined;
};

struct view {
    struct member *members; /* by slot; those never used are never touched */
    uint32_t room;          /* slots there are memory for */
    uint32_t n;             /* slots below which all that are in use lie */
    uint32_t count;         /* slots in use, this node's included */
    uint32_t generation; /* of everything but the rounds: changed by view_changed() */
    uint16_t *by_addr;   /* hash table of slots, 0: empty */
    uint32_t by_addr_mask;
    struct heap due; /* slots by the time at which a member needs a look */
    struct view_rounds {
        bool valid;
        uint64_t lineage;        /* that these are of: */
        uint32_t n;              /* members */
        uint64_t joined;         /* highest round of theirs */
        uint32_t first, second;  /* slots of the highest open rounds, 0: none */
        uint32_t furthest, heaviest; /* slots that view_furthest() ... mean, 0: none */
    } rounds[MEMBER_SETS_MAX];
};

/* Only slot 0 is in use.  Room for this node and `room` - 1 others, at most MEMBERS_MAX.
 * False when out of memory. */
bool view_init(struct view *, uint32_t room);
void view_fini(struct view *);

/* A member of which nothing but its address is known.  The same address may be there already:
 * view_at() then goes on giving the first.  NULL when there is no room. */
struct member *view_add(struct view *, const sleet_addr *);
/* The slot is free; not to be done while a round refers to it, nor with slot 0. */
void view_remove(struct view *, struct member *);
/* The member has moved. */
void view_move(struct view *, struct member *, const sleet_addr *);

/* NULL for an address that is nobody's. */
struct member *view_at(const struct view *, const sleet_addr *);
/* NULL for a node id that is not known (0 is never); slot 0 is not looked at. */
struct member *view_by_id(const struct view *, uint64_t node_id);
static inline uint32_t view_slot(const struct view *v, const struct member *m)
{
    return (uint32_t)(m - v->members);
}

/* Members' flags, boot ids or sets were changed by hand. */
void view_changed(struct view *);
/* Another life of the member: its session and what it said is void. */
void view_renew(struct view *, struct member *);
void view_set_alive(struct view *, struct member *, bool alive);
/* What the member now says of a set. */
void view_learn(struct view *, struct member *, uint32_t set, const struct member_set *);
/* A PING to the member is due at once. */
void view_answer(struct view *, struct member *);

struct member_rounds view_rounds(struct view *, uint32_t set, uint64_t lineage);
/* The established member furthest on, and the one whose lineage is to be joined; NULL when there
 * is none.  The parked do not count. */
const struct member_set *view_furthest(struct view *, uint32_t set);
const struct member_set *view_heaviest(struct view *, uint32_t set);
/* The highest open round among those with a trainer but without the job's model. */
uint64_t members_joining_round(const struct member *, uint32_t n, uint32_t set);
#endif
