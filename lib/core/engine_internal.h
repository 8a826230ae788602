/* What the engine's files share.
 *   engine.c          life, time, receive dispatch
 *   engine_session.c  greeting and good-bye: who one talks to
 *   engine_sealed.c   the same where sessions are sealed: keys, addresses
 *   engine_handshake.c ... how they come about
 *   engine_notice.c   what operators order: who is evicted, which key the job has
 *   engine_member.c   liveness, pings: who is there
 *   engine_gossip.c   who is a member: what the others say
 *   engine_schema.c   which tensors they have
 *   engine_serve.c    ... and an auxiliary, which has none of its own
 *   engine_data.c     what comes in rounds
 *   engine_group.c    who averages with whom, where members differ
 *   engine_send.c     bursts: what leaves next, and when
 *   engine_state.c    state that members publish and fetch: frames
 *   engine_transfer.c ... calls, events, time
 *   engine_calls.c    the trainer's calls and events
 *   engine_info.c     what an operator sees */
#ifndef ENGINE_INTERNAL_H
#define ENGINE_INTERNAL_H
#include "base/rng.h"
#include "engine.h"
#include "member/member.h"
#include "member/orders.h"
#include "member/swim.h"
#include "round/round.h"
#include "state/state.h"
#include "wire/wire.h"

#define HELLO_GAP_MAX SEC(2)
#define KEEP_DEAD SEC(60) /* a slot, after its member's death */
#define CROWD SLEET_GROUP_MAX /* a job of more nodes takes its time to greet and to ping */
#define INDEX_SLOT_BITS 10 /* of a session index: the member's slot; the rest is random */
#define PACE_BURST_BYTES (2 * ENGINE_BURST_MAX * ENGINE_DATAGRAM_MAX)
#define OUTBOX_MAX 64 /* control frames waiting to leave */

/* A control frame that does not belong to a round. */
struct outbox_frame {
    sleet_addr to;
    uint32_t index; /* receiver session index */
    uint16_t slot;  /* member, 0: none */
    uint8_t type;
    uint8_t with;   /* of a handshake: key of the job's */
    uint16_t len;
    uint8_t body[WIRE_BODY_MAX];
};

/* State transfer of all sets; indices are set handles. */
struct transfer {
    struct server server;
    struct blobs blobs;
    struct pacer share; /* of the node's rate, at most */
    uint32_t turn;      /* slot served last */
    struct transfer_set {
        uint32_t hash;
        struct published published;
        struct fetch *fetch;
        sleet_time fetch_began;
        sleet_time tell_at; /* an INFO to all; TIME_NEVER: none is due */
        uint32_t tell_slot, told;
        uint64_t blob_of; /* asked for by the trainer; 0: none */
        sleet_time blob_until, blob_again;
        uint32_t blob_asked, blob_nones; /* members asked last; that do not have it */
    } sets[ENGINE_SETS_MAX];
};

/* What an auxiliary has been told of a set so far; engine_serve.c. */
struct lesson {
    uint32_t set, refused;  /* hashes; refused: why was said */
    uint16_t n, have;       /* tensors */
    engine_tensor *tensors; /* NULL: of none */
    sleet_time at;          /* when it was last told further */
};

struct engine {
    engine_config config;
    sleet_rng rng;
    sleet_time now, promised; /* latest input; the deadline given out last */
    sleet_time created;
    struct gate *gate; /* sealed sessions; else NULL */
    uint64_t *allow;   /* node ids let in, config.allow_count */
    uint64_t told[16]; /* what of strangers was logged: each thing once */
    uint32_t told_n;
    struct orders orders;
    sleet_time notice_at;         /* when somebody has to be told of them */
    bool evicted;                 /* this node is */
    bool key_event, evicted_event; /* to be polled */
    struct view view;
    struct swim swim;
    struct swim_out said; /* room for a frame of it */
    sleet_time look_at, complain_at;
    sleet_time mesh_since; /* that there were few enough for all to ping all */
    bool full;             /* said once: no room for a member */
    struct member *members; /* of the view, at hand */
    struct set sets[ENGINE_SETS_MAX];
    struct lesson lesson;
    engine_counters counters;
    struct transfer transfer;
    struct pacer pacer; /* of all data together; each member has its own below it */
    uint32_t turn;   /* destination to look at first */
    uint64_t stray;  /* counter for frames outside a session */
    bool leaving, left;
    uint32_t farewells; /* slots below have been told that this node leaves */
    struct outbox_frame outbox[OUTBOX_MAX];
    uint32_t outbox_head, outbox_n;
};

static inline struct env engine_env(const engine *e)
{
    engine *m = (engine *)(uintptr_t)e;
    return (struct env){m->members, &e->config, &m->counters, e->created, &m->view};
}

void outbox_put(engine *, const sleet_addr *to, uint32_t slot, uint32_t index, uint8_t type,
                const uint8_t *body, size_t len);
void outbox_drop(engine *, uint32_t slot); /* what waits for the member does not leave */

/* A member of which only the address is known; NULL when there is no room. */
struct member *engine_add_member(engine *, const sleet_addr *);
/* Its slot is free; not to be done while a round refers to it. */
void engine_remove_member(engine *, struct member *);
/* A datagram of the member's session, intact and new. */
void engine_take(engine *, struct member *, const struct wire_header *, const uint8_t *body,
                 size_t len);
/* Close the open rounds that need not stay open. */
void engine_settle(engine *);

/* ---- engine_session.c */
void session_begin(engine *); /* set the first greetings */
void session_recv_hello(engine *, struct member *, const struct wire_header *, const uint8_t *, size_t);
void session_recv_close(engine *, struct member *, const uint8_t *, size_t);
void session_greet(engine *, struct member *);
/* The session is there; `other`: with another life of the node than before. */
void session_open(engine *, struct member *, uint64_t node_id, uint64_t boot_id, bool other);
void session_farewell(engine *); /* CLOSE to as many of the rest as the outbox takes */

/* ---- engine_handshake.c */
/* The member that the session index is of, or NULL. */
struct member *session_holder(engine *, uint32_t index);
void handshake_recv(engine *, const sleet_addr *from, const struct wire_header *, const uint8_t *data,
                    size_t len);
/* What `from` sent shows that it has the keys: its member now, or NULL. */
struct member *handshake_adopt(engine *, struct pending *, const sleet_addr *from);
void handshake_refuse(engine *, const sleet_addr *to, uint32_t index, uint8_t reason,
                      const char *why, uint8_t their_version);

/* ---- engine_sealed.c */
bool sealed_init(engine *, const engine_config *); /* false when out of memory */
void sealed_fini(engine *);
void sealed_recv(engine *, const sleet_addr *from, const uint8_t *data, size_t len);
void sealed_greet(engine *, struct member *);
void sealed_expire(engine *, struct member *);
sleet_time sealed_deadline(const engine *, const struct member *);
/* As datagram_seal(); `m` NULL: a frame of a handshake.  0: there is no key. */
size_t sealed_seal(engine *, struct member *, uint8_t *dgram, size_t body_len, struct wire_header *);
/* Whether a node may have a session at all. */
bool engine_admits(const engine *, uint64_t node_id);

/* ---- engine_notice.c */
#define NOTICE_GRACE SEC(600) /* the job's former key is taken so long */
void notice_init(engine *, const engine_config *);
void notice_session(engine *, struct member *, bool other); /* it may not have the orders */
void notice_recv(engine *, struct member *, const uint8_t *, size_t);
void notice_expire(engine *);
sleet_time notice_deadline(const engine *);
bool notice_poll(engine *, engine_event *);

/* ---- engine_member.c */
/* When it will have been silent for too long, if nothing is heard until then. */
sleet_time member_silent_at(const engine *, const struct member *, double periods);
/* A PING to an address that may be its new one, at most so many bytes with all that is round
 * it; the bytes, or 0. */
size_t member_challenge(engine *, struct member *, const sleet_addr *, uint32_t challenge, uint64_t room);
void member_recv_ping(engine *, struct member *, const uint8_t *, size_t);
void member_heard(engine *, struct member *, bool news_only); /* any datagram of its session is a sign of life */
void member_review(engine *, struct member *); /* is it alive, by all that is known */
void member_expire(engine *);
void member_echo(engine *, struct member *, uint32_t echo, uint32_t hold_us);
void member_overflow(engine *, struct member *, uint32_t total);
void member_timer(engine *, const struct member *); /* what it waits for has changed */
void member_announce(engine *, const struct group *); /* tell its members at once; NULL: all */
void member_ping_all(engine *, sleet_time now);
sleet_time member_deadline(const engine *);

/* ---- engine_gossip.c */
bool gossip_begin(engine *); /* false: out of memory */
void gossip_met(engine *, struct member *); /* a session has begun */
void gossip_told(engine *, struct member *); /* the first PING of a session */
void gossip_moved(engine *, struct member *); /* its address is another one now */
void gossip_unlink(engine *, struct member *); /* its slot is about to be given back */
void gossip_closed(engine *, struct member *); /* it has ended, `left`: for good */
void gossip_merge(engine *, struct member *, struct member *kept); /* they are one node */
struct member *gossip_stranger(engine *, const sleet_addr *from, const uint8_t *, size_t);
void gossip_try_address(engine *, struct member *); /* of several, before a greeting */
bool gossip_sound(const engine *, const struct member *); /* not accused, or heard since */
bool gossip_live(const engine *, const struct member *); /* alive or suspect, or not known */
bool gossip_unreachable(const engine *, const struct member *);
void gossip_recv(engine *, struct member *, const uint8_t *, size_t);
void gossip_behind_ping(engine *, struct member *); /* news, where there is some */
void gossip_expire(engine *);
sleet_time gossip_deadline(const engine *);

/* ---- engine_data.c */
void data_recv(engine *, struct member *, const uint8_t *, size_t);
void data_recv_summary(engine *, struct member *, const uint8_t *, size_t);
int engine_rank_of(const struct round *, const struct member *); /* -1: not this life of it */
enum fate engine_take_data(engine *, struct member *, struct set *, struct round *, int rank,
                           const struct wire_data *, const struct part *);

/* ---- engine_parity.c */
void parity_recv(engine *, struct member *, const uint8_t *, size_t);
/* Take what can be rebuilt of that group of what the member sends, as in the group `hash`. */
void parity_try(engine *, struct member *, struct set *, struct round *, uint32_t rank, uint32_t hash,
                enum parity_way, uint32_t group);

/* ---- engine_schema.c */
void schema_offer(engine *, struct member *, struct set *, uint16_t first);
void schema_recv(engine *, struct member *, const uint8_t *, size_t);
void schema_recv_ack(engine *, struct member *, const uint8_t *, size_t);

/* ---- engine_serve.c */
/* An auxiliary is told of a set that it does not have; fill the answer. */
void serve_recv(engine *, const struct wire_schema *, struct wire_schema_ack *);
void serve_fini(engine *);

/* ---- engine_group.c */
/* The member uses that group in this round; tell it ours where it differs. */
void group_note(engine *, struct member *, struct set *, struct round *, uint32_t rank, uint32_t hash);
void group_ask(engine *, struct member *, const struct set *, uint32_t hash);
void group_recv_req(engine *, struct member *, const uint8_t *, size_t);
void group_recv(engine *, const uint8_t *, size_t);

/* ---- engine_state.c */
void state_init(engine *, sleet_time now);
bool state_path_of(void *engine, uint64_t node_id, struct state_path *);
void state_fini(engine *);
void state_recv(engine *, struct member *, const uint8_t *, size_t);
void state_queue(engine *); /* put into the outbox what is due */
/* The slot that is served next and when it may be sent to; 0: nobody waits. */
uint32_t state_turn(engine *, sleet_time *at);
/* Write a frame for the slot; 0: none. */
size_t state_fill(engine *, uint32_t slot, uint8_t *out, size_t cap);
void state_forget_set(engine *, int handle);

/* ---- engine_transfer.c */
void state_expire(engine *);
sleet_time state_deadline(const engine *);
bool state_poll(engine *, int handle, engine_event *);
uint64_t state_memory_bound(const engine *); /* bytes */

/* ---- engine_calls.c */
struct set *engine_set_at(engine *, int handle); /* NULL for an unused one */
struct set *engine_set_by_tensor(engine *, uint32_t tensor_id, int *index);
struct set *engine_set_by_hash(engine *, uint32_t hash);
/* The set that these tensors are, made if it is new and then without a trainer; where `hash` is not 0 only the one of that
 * hash.  Errors: EINVAL, ELIMIT, ENOMEM. */
int engine_add_set(engine *, const char *name, struct set_kind, const engine_tensor *, uint32_t n, uint32_t hash,
                   struct set **);
void engine_forget_set(engine *, struct set *);
#endif
