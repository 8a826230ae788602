/* The side of a node that answers handshakes: its keys, whom it lets in and at what rate,
 * and the handshakes that it has answered but whose sender has not yet shown that it got
 * the answer.  What a stranger can make it hold is GATE_PENDING_MAX of these.
 *
 * Session indices are made here: the low GATE_SLOT_BITS are the member's slot, or 0 where
 * it has none yet; then the next bits are a row of a table in which the slot is put later. */
#ifndef SESSION_GATE_H
#define SESSION_GATE_H
#include "session/cookie.h"
#include "session/keypair.h"
#include "session/keys.h"
#include "session/noise.h"
#include "session/secret.h"
#include "wire/handshake.h"

#define GATE_PENDING_MAX 64
#define GATE_PENDING_LIFE SEC(10)
#define GATE_SLOT_BITS 10
#define GATE_ROWS (1u << GATE_SLOT_BITS)
#define GATE_BURST 128     /* handshakes without a cookie: so many at once, */
#define GATE_A_SECOND 256  /* then so many a second */

enum { GATE_OLD = -1, GATE_BARRED = -2 };

/* A HELLO that was answered. */
struct pending {
    uint32_t index; /* this node's; 0: free */
    bool waits;     /* for HELLO_DONE (XX), else for anything sealed with `pair` */
    sleet_addr from;
    sleet_time born;
    uint8_t key[KEY_BYTES];     /* its static key; XX: once HELLO_DONE has come */
    struct wire_ident theirs;   /* likewise */
    uint8_t e[NOISE_KEY_BYTES]; /* by which the same HELLO is known again */
    uint32_t peer_index;
    struct noise noise;  /* while it waits */
    struct keypair pair; /* else */
    uint8_t answer[WIRE_ANSWER_MAX];
    size_t answer_len;
};

/* A key of the job, and what follows from it. */
struct gate_key {
    uint8_t psk[KEY_BYTES], mac[MAC_KEY_BYTES];
    uint64_t job_tag;
};

/* The job's key and, for a while after it was changed, the one before it. */
enum { GATE_KEY, GATE_FORMER_KEY, GATE_KEYS };

struct gate {
    struct noise_keypair self;
    struct gate_key keys[GATE_KEYS];
    bool former;             /* handshakes with the former key are taken, */
    sleet_time former_until; /* so long */
    uint8_t with; /* key of the handshake message that is at hand: that was read or is to be written */
    char job[64];
    uint64_t boot_id;
    uint16_t elements;
    uint8_t ciphers;
    struct secret_stream stream;
    struct cookie_jar jar;
    struct admission strangers, shown; /* without and with a cookie */
    uint16_t rows[GATE_ROWS];          /* slots; GATE_ROWS: taken, none yet */
    struct pending pending[GATE_PENDING_MAX];
    /* Whether a node with that key may have a session now, and its slot, 0 if it has none;
     * GATE_OLD: it says nothing new; GATE_BARRED: it may not.  `fresh`: what it sent answers this node, so that it is no replay,
     * whatever its stamp: another handshake may have ended since that was written. */
    int (*judge)(void *arg, const uint8_t key[KEY_BYTES], const struct wire_ident *, bool fresh);
    void *judge_arg;
};

struct gate_config {
    const char *job; /* 1 to 63 bytes */
    uint16_t elements;
    uint64_t boot_id;
    const uint8_t *job_key, *node_secret, *seed; /* 32 bytes each, copied */
};

/* NULL when out of memory. */
struct gate *gate_new(const struct gate_config *, sleet_time now);
void gate_free(struct gate *);

/* ---- the job's key ---- */

/* Another key from now on; the one before it is taken until then.  Handshakes that were
 * begun end with the key that they have.  False: it is the key already. */
bool gate_rekey(struct gate *, const uint8_t key[KEY_BYTES], sleet_time until);
/* The former key goes when its time has come; true: it has just gone. */
bool gate_expire(struct gate *, sleet_time now);

/* ---- datagrams of handshakes ---- */

/* Put the MAC of key ->with behind header and body.  Bytes in all. */
size_t gate_seal(const struct gate *, uint8_t *dgram, size_t body_len);
/* Has the MAC of somebody with a key of the job's; ->with says which. */
bool gate_right(struct gate *, const uint8_t *dgram, size_t n);

/* What both sides of a handshake start from. */
void gate_begin(const struct gate *, struct noise *, bool initiator, const struct wire_offer *,
                const uint8_t e_secret[NOISE_KEY_BYTES], const uint8_t *rs);

/* ---- indices ---- */

/* 0 when all rows are taken (with slot 0 only). */
uint32_t gate_index(struct gate *, uint32_t slot);
/* The slot that the index is of, 0 for none. */
uint32_t gate_slot(const struct gate *, uint32_t index);
void gate_assign(struct gate *, uint32_t index, uint32_t slot);
void gate_release(struct gate *, uint32_t index);

/* ---- answering ---- */

enum gate_verdict {
    GATE_ANSWER,   /* send HELLO_ACK */
    GATE_COOKIE,   /* send COOKIE */
    GATE_JOB,      /* send CLOSE: another job */
    GATE_ELEMENTS, /* send CLOSE: another fragment size */
    GATE_DENIED,   /* send CLOSE: not let in */
    GATE_DROP,     /* send nothing: not for this node, old, or too many */
    GATE_CORRUPT   /* send nothing: not a HELLO */
};

struct gate_reply {
    uint32_t index; /* of the receiver */
    uint8_t body[WIRE_OFFER_BYTES]; /* ANSWER and COOKIE only */
    size_t len;
};

/* A HELLO whose MAC is right. */
enum gate_verdict gate_recv_offer(struct gate *, const sleet_addr *from, const uint8_t *body,
                                  size_t len, sleet_time now, struct gate_reply *);
/* A HELLO_DONE whose MAC is right, for `index`: its pending handshake with a pair, or NULL. */
struct pending *gate_recv_done(struct gate *, uint32_t index, const uint8_t *body, size_t len,
                               sleet_time now);
/* That has a pair already, or NULL. */
struct pending *gate_pending(struct gate *, uint32_t index, sleet_time now);
/* Hand the pair and its index over; the pending handshake is no more. */
void gate_take(struct pending *, struct keypair *);
#endif
