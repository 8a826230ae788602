/* swim.h - who is a member of the job, found out together.
 *
 * SWIM (Das, Gupta, Motivala, DSN 2002): one random member is probed a period,
 * k others are asked to probe it when it is silent, what is found out travels
 * on the messages that are sent anyway.  Suspicion with incarnation numbers as
 * there; local health, suspicion that shrinks with confirmations and telling
 * the accused first as in Lifeguard (Dadgar, Phillips, Currey, DSN-W 2018).
 *
 * Sans-I/O like the engine: datagrams and time go in, messages, changes and one
 * deadline come out.  Messages are MEMBERS frames and requests to send a PING;
 * any datagram that authenticates is a sign of life (swim_heard()).
 *
 * A member is its node id.  `boot_id` names a life of it, `incarnation` counts
 * the refutations of a life.  Between two pieces of news of one life the higher
 * incarnation wins, then the more serious status: so all orders of arrival end
 * in the same table.  A life that was not known replaces the one that was; a
 * former life comes back only by a higher incarnation than it had, which a dead
 * one cannot say: no ghosts, and a live node always wins.
 *
 * Memory: one swim_member a member, dead ones until they are reaped; nothing
 * else grows.  Messages: at most one probe, k = 3 requests, the gossip of
 * SWIM_FANOUT frames a fifth of a period, and those only while there is news. */
#ifndef SWIM_H
#define SWIM_H
#include "base/heap.h"
#include "base/rng.h"
#include "base/time.h"
#include "member/gossip.h"
#include "wire/members.h"

#define SWIM_MEMBERS_MAX 2048 /* this node and dead members included */
#define SWIM_NONE UINT32_MAX
#define SWIM_SELF 0u /* this node's number */
#define SWIM_FORMER 4
#define SWIM_CONFIRMATIONS 3 /* Lifeguard's K */
#define SWIM_HELPERS 3       /* SWIM's k */
#define SWIM_HEALTH_MAX 8    /* Lifeguard's S */
#define SWIM_RELAYS 16
#define SWIM_TICKS 5         /* of gossip in a period */
#define SWIM_FANOUT 3        /* frames of gossip a tick */
#define SWIM_SYNC_PERIODS 10 /* between two comparisons of equal tables */
#define SWIM_ORDERS 64

/* Zero means the default. */
struct swim_config {
    uint64_t node_id, boot_id;
    uint64_t seed;
    uint8_t key[WIRE_KEY_BYTES];    /* this node's */
    sleet_addr at[WIRE_CANDIDATES]; /* where it may be reached */
    sleet_duration period;          /* 1 s; WAN: 5 s */
    sleet_duration timeout;         /* least that a direct answer is waited for, 200 ms */
    sleet_duration tombstone;       /* a dead member is remembered, 600 s */
    uint32_t suspicion;             /* periods for each decade of members, 5 */
    uint32_t spread;                /* sends of news for each decade of members, 4 */
    bool listed_only;               /* unknown members are not taken from gossip */
    bool lifeguard_off;             /* experiments: SWIM alone */
};

struct swim_member {
    struct wire_update record; /* node_id 0: not in use */
    uint32_t slot;             /* the caller's; while not 0 the member is not reaped */
    sleet_time heard;          /* directly; TIME_NEVER: never */
    sleet_time since;          /* when its status was learnt */
    sleet_duration patience;   /* measured by the caller, used where above config.timeout */
    sleet_time told;           /* that it is accused, last */
    bool mute;                 /* set by the caller: it has no way to it */
    bool unreachable;          /* did not answer this node's last probe itself */
    bool changed;
    uint8_t accusers_n;
    uint16_t changed_next;
    uint64_t accusers[1 + SWIM_CONFIRMATIONS];
    struct swim_life {
        uint64_t boot_id;
        uint32_t incarnation;
    } former[SWIM_FORMER]; /* newest first */
};

struct swim {
    struct swim_config config;
    sleet_rng rng;
    sleet_time now;
    struct swim_member *members; /* by number; SWIM_SELF is this node */
    uint32_t used, room;         /* numbers in use are below `used` */
    uint32_t n, live;            /* members; of them alive or suspect; this node counts */
    uint32_t refused;            /* for want of room */
    uint32_t digest;             /* of the live ones */
    bool mesh;                   /* set by the caller: it asks every member each period by itself */
    uint32_t health;             /* Lifeguard's multiplier - 1, 0 is well */
    uint16_t *by_id;             /* n numbers by ascending node id */
    uint16_t *order;             /* n - 1 numbers, the order of probes */
    uint32_t order_at;
    struct heap due; /* suspicion or reaping, by number */
    struct gossip news;
    uint16_t changed_first, changed_last;
    sleet_time period_at, gossip_at, sync_at;
    sleet_time defended; /* its life against another one, last */
    struct swim_probe {
        uint32_t target; /* SWIM_NONE: none */
        uint32_t sequence, helpers, refusals;
        bool answered; /* by itself or through a helper */
        sleet_time sent_at, ask_at;
    } probe;
    struct swim_sync { /* the walk through another member's table */
        bool first;    /* the first one: this node is new */
        bool walking;
        uint64_t after; /* node id */
        uint32_t gap;   /* periods to the next one */
        uint32_t peer, sequence;
    } sync;
    struct swim_relay {
        uint64_t target; /* node id, 0: none */
        uint64_t asker;
        uint32_t sequence;
        sleet_time until;
    } relays[SWIM_RELAYS];
    uint32_t relays_n;
    struct swim_order {
        uint8_t kind; /* enum wire_members_kind, 0: a PING */
        uint8_t flags;
        uint16_t to;
        uint32_t sequence;
        uint64_t subject;
    } orders[SWIM_ORDERS];
    uint32_t orders_at, orders_n;
};

/* False when out of memory. */
bool swim_init(struct swim *, const struct swim_config *, sleet_time now);
void swim_fini(struct swim *);

/* ---- input */

/* The member's number, SWIM_NONE if it is not known. */
uint32_t swim_find(const struct swim *, uint64_t node_id);
/* A session with this life of the member has begun: node_id, boot_id, key and
 * addresses of `who` count.  Its number, or SWIM_NONE when the table is full. */
uint32_t swim_meet(struct swim *, const struct wire_update *who, sleet_time now);
/* There is a way to it now, which makes it fit for whatever is asked. */
void swim_unmute(struct swim *, uint32_t member, sleet_time now);
/* An authenticated datagram of the member's present life has come. */
void swim_heard(struct swim *, uint32_t member, sleet_time now);
/* It said good-bye. */
void swim_left(struct swim *, uint32_t member, sleet_time now);
/* A MEMBERS frame from the member, after swim_heard(). */
void swim_recv(struct swim *, uint32_t from, const struct wire_members *, sleet_time now);
/* This node leaves: the news of it goes out with what is sent from now on. */
void swim_leave(struct swim *, sleet_time now);
/* The process did not run for so long: nobody is blamed for that time. */
void swim_paused(struct swim *, sleet_duration gap);
/* Probe it next, whoever's turn it is. */
void swim_doubt(struct swim *, uint32_t member);
void swim_expire(struct swim *, sleet_time now);

/* ---- output */

sleet_time swim_deadline(const struct swim *);

struct swim_out {
    uint32_t to; /* member */
    bool ping;   /* send it a PING that asks for an answer, and what swim_piggyback() says */
    struct wire_members frame; /* otherwise: send this */
};
/* The next message; false when there is none. */
bool swim_send(struct swim *, struct swim_out *);
/* Fill a frame of news for a member to which something is sent anyway. False: no news. */
bool swim_piggyback(struct swim *, uint32_t to, struct wire_members *);
/* The next member whose record or reachability changed, SWIM_NONE when there is none. */
uint32_t swim_changed(struct swim *);

/* May it take part in rounds: not accused, or heard directly since it was. */
bool swim_sound(const struct swim *, uint32_t member);
/* How long a member is suspected before it is declared dead, with so many confirmations. */
sleet_duration swim_suspicion(const struct swim *, uint32_t confirmations);
/* How often a piece of news is sent. */
uint32_t swim_sends(const struct swim *);
/* Bytes of heap. */
uint64_t swim_bytes(const struct swim *);

/* ---- shared by the files of this part: swim.c life and probes, swim_table.c
 * records and their order, swim_talk.c what is said */

struct swim_member *swim_insert(struct swim *, uint64_t node_id);
void swim_remove(struct swim *, uint32_t member);
/* Take one piece of news, `spread`: pass it on.  True: it was news. */
bool swim_accept(struct swim *, const struct wire_update *, bool spread);
void swim_accuse(struct swim *, uint32_t member, uint64_t by);
void swim_set_status(struct swim *, uint32_t member, uint8_t status, uint64_t by);
void swim_note_change(struct swim *, uint32_t member);
void swim_news(struct swim *, uint32_t member);
void swim_answer_table(struct swim *, uint32_t from, const struct wire_members *);
void swim_take_table(struct swim *, uint32_t from, const struct wire_members *, bool news);
void swim_sync(struct swim *);
void swim_heard_of(struct swim *, uint64_t target); /* whoever asked is answered */
void swim_order(struct swim *, uint32_t to, uint8_t kind, uint32_t sequence, uint64_t subject);
static inline bool swim_live(const struct swim_member *m)
{
    return m->record.status <= STATUS_SUSPECT;
}
static inline uint32_t swim_number(const struct swim *s, const struct swim_member *m)
{
    return (uint32_t)(m - s->members);
}
/* A random live member but this node, the mute and `but`; SWIM_NONE if chance finds none. */
uint32_t swim_random(struct swim *, uint32_t but);
#endif
