/* One sealed session with one peer, whatever number of handshakes it is made of: the pair of
 * keys it sends with, the one before it, and a handshake that this node has begun.
 *
 * As in WireGuard (Donenfeld 2017, section 6): everything that is sealed with a pair that is
 * there is taken; the side that answered a handshake sends with the new pair only once it
 * has received something sealed with it. Where both sides began at once, both handshakes
 * end, and the pair with the higher hash remains on both sides. */
#ifndef SESSION_PEER_H
#define SESSION_PEER_H
#include "session/gate.h"

#define PEER_OFFER_LIFE SEC(5) /* a HELLO is repeated so long, then made anew */
#define PEER_SPREAD SEC(10)    /* new keys are asked for so much later at most: not by all at once */
#define PEER_PREVIOUS_LIFE SEC(30)
#define PEER_AT_ONCE SEC(10) /* pairs born within so long come from both sides' offers */

/* A handshake that this node has begun. */
struct offer {
    struct noise noise;
    uint32_t index;
    uint8_t with;  /* key of the job's */
    bool answered; /* XX: HELLO_DONE is repeated until the peer is heard */
    uint8_t maced[WIRE_OFFER_MACED], done[WIRE_DONE_BYTES];
    sleet_time born;
    uint8_t cookie[COOKIE_BYTES];
    sleet_time cookie_at; /* never: there is none */
};

/* An address from which the peer's newest datagram came, while it is not known whether the
 * peer can be reached there. */
struct probe {
    sleet_addr addr;
    uint32_t challenge; /* 0: there is no such address */
    uint64_t in, out;   /* bytes */
    sleet_time at;      /* of the last challenge */
};

/* Zero-filled: nothing known, nothing begun. */
struct peer {
    uint8_t key[KEY_BYTES]; /* the peer's static key */
    bool key_known;
    uint64_t boot_id, stamp; /* of its newest handshake that ended */
    struct keypair current, previous;
    struct offer *offer; /* NULL: none begun */
    uint32_t unanswered; /* offers in a row */
    sleet_time rekey_at;
    bool renew; /* a new handshake is wanted though there is a pair */
    struct probe probe;
};

void peer_fini(struct peer *);

/* There is something to say until the peer answers: a HELLO, HELLO_DONE or PING. */
static inline bool peer_unsure(const struct peer *p)
{
    return p->renew || (keypair_there(&p->current) && !p->current.confirmed);
}

/* ---- beginning ---- */

/* The body of a HELLO for this moment: the same as before while it may still be answered.
 * `slot` is the member's; the gate's ->with is the key that it is of.  0 when out of memory. */
size_t peer_offer(struct peer *, struct gate *, uint32_t slot, uint8_t out[WIRE_OFFER_BYTES],
                  sleet_time now);
/* The body of a HELLO_DONE while one has to be repeated, and the index it goes to; or 0.
 * ->offer->with is the key that it is of. */
size_t peer_done(const struct peer *, uint8_t out[WIRE_DONE_BYTES], uint32_t *index);
/* A COOKIE for `index`, whose MAC is right.  True: it is new, so the HELLO goes out again. */
bool peer_recv_cookie(struct peer *, uint32_t index, const uint8_t *body, size_t len, sleet_time now);
/* A HELLO_ACK for `index`, whose MAC is right.  True: `pair`, `key` and `theirs` are those of
 * whoever answered; for XX, peer_done() has the last message.  To be installed, or not. */
bool peer_recv_answer(struct peer *, struct gate *, uint32_t index, const uint8_t *body, size_t len,
                      struct keypair *pair, uint8_t key[KEY_BYTES], struct wire_ident *theirs,
                      sleet_time now);
/* The job's key has changed: what was begun with the one before it is the former's, or void. */
void peer_rekeyed(struct peer *);
/* No answer is wanted any more. */
void peer_withdraw(struct peer *);

/* ---- pairs ---- */

/* A handshake with the peer has ended; it takes the pair over.  False: the pair of a
 * handshake that both had begun at once is kept, and this one only received with. */
bool peer_install(struct peer *, struct gate *, struct keypair *, const uint8_t key[KEY_BYTES],
                  const struct wire_ident *, sleet_time now);
/* What to send with; NULL: nothing. */
struct keypair *peer_sending(struct peer *, sleet_time now);
/* What the index is of, or NULL. */
struct keypair *peer_pair(struct peer *, uint32_t index);
/* A datagram sealed with the pair has come. */
void peer_heard(struct peer *, const struct keypair *, sleet_time now);
/* The keys are gone; what is known of the peer stays. */
void peer_drop(struct peer *, struct gate *);

/* When peer_expire() has something to do. */
sleet_time peer_deadline(const struct peer *);
/* Pairs that are too old go, ->renew is set when a new one is due.  False: the last pair
 * has just gone. */
bool peer_expire(struct peer *, struct gate *, sleet_time now);
#endif
