#include "session/keypair.h"
#include <sodium.h>
#include <string.h>

void keypair_make(struct keypair *k, const struct noise *n, uint32_t my_index, uint32_t peer_index,
                  enum aead_cipher cipher, sleet_time now)
{
    *k = (struct keypair){.my_index = my_index,
                          .peer_index = peer_index,
                          .initiator = n->initiator,
                          .cipher = (uint8_t)cipher,
                          .born = now};
    noise_split(n, k->send, k->recv);
    memcpy(k->hash, n->h, sizeof k->hash);
}

void keypair_fini(struct keypair *k)
{
    replay_fini(&k->replay);
    sodium_memzero(k, sizeof *k);
}

size_t keypair_seal(struct keypair *k, uint64_t counter, uint8_t *dgram, size_t body_len)
{
    if (!keypair_there(k) || counter <= k->last || counter >= KEYPAIR_COUNTER_MAX)
        return 0;
    k->last = counter;
    k->sent++;
    return aead_seal((enum aead_cipher)k->cipher, k->send, counter, dgram, body_len);
}

const uint8_t *keypair_open(struct keypair *k, uint64_t counter, const uint8_t *dgram, size_t n,
                            uint8_t *room, sleet_time now, enum keypair_verdict *verdict)
{
    const uint8_t *body = NULL;
    *verdict = KEYPAIR_FORGED;
    if (counter >= KEYPAIR_COUNTER_MAX || keypair_stale(k, now))
        return NULL;
    body = aead_open((enum aead_cipher)k->cipher, k->recv, counter, dgram, n, room);
    if (!body)
        return NULL;
    *verdict = KEYPAIR_REPLAYED;
    if (!k->confirmed && !k->replay.highest)
        replay_begin(&k->replay, counter); /* the member's counter goes on */
    if (!replay_check_and_set(&k->replay, counter))
        return NULL;
    *verdict = KEYPAIR_FINE;
    k->confirmed = true;
    return body;
}
