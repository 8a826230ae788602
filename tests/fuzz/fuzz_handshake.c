/* Any bytes as a HELLO, a HELLO_ACK, a HELLO_DONE, a COOKIE and a datagram of a session, of a
 * node that is in the middle of each.  Accepted frames must encode to the bytes they came
 * from; what is not from a handshake must not make a session. */
#include "again.h"
#include "base/bytes.h"
#include "session/peer.h"
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const sleet_time now = {SEC(10)};
static const sleet_addr somewhere = {.ip = {0xfd}, .port = 7000};

static int judge(void *arg, const uint8_t key[KEY_BYTES], const struct wire_ident *ident, bool fresh)
{
    (void)arg;
    (void)fresh;
    return key[0] & 1 ? -1 : (int)(ident->stamp % 3);
}

static struct gate *node(uint8_t who)
{
    static const uint8_t job_key[32] = {1}, seed[32] = {3};
    uint8_t secret[32] = {who};
    struct gate_config c = {"job", 288, who, job_key, secret, seed};
    struct gate *g = gate_new(&c, now);
    if (!g)
        abort();
    g->judge = judge;
    return g;
}

static void frames(const uint8_t *p, size_t n)
{
    uint8_t out[WIRE_OFFER_BYTES];
    AGAIN(offer);
    AGAIN(answer);
    AGAIN(ident);
}

/* A HELLO reaches a node that another's HELLO has reached already. */
static void to_the_answering(const uint8_t *p, size_t n)
{
    struct gate *a = node(1), *b = node(2);
    struct peer peer = {0};
    struct gate_reply r;
    uint8_t hello[WIRE_OFFER_BYTES];
    peer_offer(&peer, a, 1, hello, now);
    gate_recv_offer(b, &somewhere, hello, sizeof hello, now, &r);
    uint32_t index = 0;
    for (unsigned i = 0; i < GATE_PENDING_MAX; i++)
        index = b->pending[i].index ? b->pending[i].index : index;
    gate_recv_offer(b, &somewhere, p, n, now, &r);
    if (r.len > WIRE_OFFER_BYTES || gate_recv_done(b, index, p, n, now) || gate_pending(b, index, now))
        abort();
    peer_fini(&peer);
    gate_free(a);
    gate_free(b);
}

/* An answer reaches a node that has asked. */
static void to_the_asking(const uint8_t *p, size_t n)
{
    struct gate *a = node(1);
    struct peer peer = {0};
    struct keypair pair;
    struct wire_ident theirs;
    uint8_t hello[WIRE_OFFER_BYTES], key[KEY_BYTES];
    peer_offer(&peer, a, 1, hello, now);
    if (peer_recv_answer(&peer, a, peer.offer->index, p, n, &pair, key, &theirs, now))
        abort();
    peer_recv_cookie(&peer, peer.offer->index, p, n, now);
    if (peer_offer(&peer, a, 1, hello, now) != sizeof hello)
        abort();
    peer_fini(&peer);
    gate_free(a);
}

static void to_a_session(const uint8_t *p, size_t n)
{
    struct keypair k = {.my_index = 1, .peer_index = 1, .cipher = AEAD_CHACHA20POLY1305, .born = now};
    uint8_t room[WIRE_BODY_MAX];
    enum keypair_verdict v;
    uint64_t counter = n >= WIRE_HEADER_BYTES ? le_load(p + 8, 8) : 1;
    if (keypair_open(&k, counter, p, n, room, now, &v) || k.replay.highest || k.confirmed)
        abort();
    keypair_fini(&k);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    frames(data, size);
    to_the_answering(data, size);
    to_the_asking(data, size);
    to_a_session(data, size);
    return 0;
}
