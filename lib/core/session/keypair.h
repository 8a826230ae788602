/* The two keys that one handshake gives, and what they may still be used for.  Packet
 * counters are the member's and go on from one pair to the next: what matters is that none
 * is used twice with a key. */
#ifndef SESSION_KEYPAIR_H
#define SESSION_KEYPAIR_H
#include "base/time.h"
#include "session/aead.h"
#include "session/noise.h"
#include "session/replay.h"

#define KEYPAIR_REKEY SEC(120)  /* the initiator asks for the next pair after so long, */
#define KEYPAIR_REJECT SEC(180) /* this one is void after so long */
#define KEYPAIR_REKEY_DATAGRAMS (UINT64_C(1) << 60)
#define KEYPAIR_COUNTER_MAX (UINT64_C(1) << 63) /* this and more are refused */

struct keypair {
    uint32_t my_index, peer_index; /* 0: there is no pair */
    bool initiator;
    bool confirmed; /* something sealed with it has come: the peer has it too */
    uint8_t cipher; /* enum aead_cipher */
    uint8_t send[AEAD_KEY_BYTES], recv[AEAD_KEY_BYTES];
    uint8_t hash[NOISE_HASH_BYTES]; /* of the handshake: the same on both sides */
    sleet_time born;
    uint64_t sent, last; /* datagrams; counter of the last one */
    struct replay replay;
};

enum keypair_verdict { KEYPAIR_FINE, KEYPAIR_FORGED, KEYPAIR_REPLAYED };

/* From a handshake whose messages have all passed. */
void keypair_make(struct keypair *, const struct noise *, uint32_t my_index, uint32_t peer_index,
                  enum aead_cipher, sleet_time now);
void keypair_fini(struct keypair *);
static inline bool keypair_there(const struct keypair *k) { return k->my_index != 0; }
static inline bool keypair_stale(const struct keypair *k, sleet_time now)
{
    return time_since(now, k->born) >= KEYPAIR_REJECT;
}

/* As aead_seal(); the header's counter is `counter`.  0 when that was used before or is too
 * high for any key. */
size_t keypair_seal(struct keypair *, uint64_t counter, uint8_t *dgram, size_t body_len);
/* As aead_open().  The replay window moves only for a datagram whose tag is right. */
const uint8_t *keypair_open(struct keypair *, uint64_t counter, const uint8_t *dgram, size_t n,
                            uint8_t *room, sleet_time now, enum keypair_verdict *);
#endif
