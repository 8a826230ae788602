/* handshake.h - the frames of a sealed session's handshake, in the manner of wire.h.
 *
 * `noise` is a message of the pattern (session/noise.h) and has the length that
 * pattern and frame give it; decoded, it borrows from the frame. */
#ifndef WIRE_HANDSHAKE_H
#define WIRE_HANDSHAKE_H
#include "wire/wire.h"

#define WIRE_IDENT_BYTES 24
#define WIRE_OFFER_HEAD 16    /* bytes before the Noise message; part of the prologue */
#define WIRE_OFFER_NOISE 120  /* room for the Noise message, rest zeros */
#define WIRE_OFFER_MACED (WIRE_OFFER_HEAD + WIRE_OFFER_NOISE) /* what the cookie's MAC is of */
#define WIRE_OFFER_BYTES (WIRE_OFFER_MACED + 16)
#define WIRE_ANSWER_MAX 124
#define WIRE_DONE_BYTES 88
#define WIRE_COOKIE_BYTES 16

/* What the patterns' messages carry, sealed; not in the first one of XX. */
struct wire_ident {
    uint32_t index;  /* the peer puts it into its datagrams' header */
    uint8_t ciphers; /* bit c: has cipher c (session/aead.h); bit 1 is always set */
    uint64_t boot_id;
    uint64_t stamp; /* grows with every handshake of this boot */
};

struct wire_offer { /* HELLO */
    uint8_t pattern; /* 1 IKpsk2, 2 XXpsk3 */
    uint16_t elements;
    uint32_t index; /* as in the ident */
    uint64_t job;   /* tag of the job's name */
    const uint8_t *noise;
    uint8_t mac[16]; /* under the cookie, zeros without one */
};

struct wire_answer { /* HELLO_ACK */
    uint8_t pattern;
    const uint8_t *noise;
};

/* Bytes of the Noise message of pattern 1 or 2 in HELLO, HELLO_ACK. */
size_t wire_offer_noise(uint8_t pattern);
size_t wire_answer_noise(uint8_t pattern);

size_t wire_ident_encode(uint8_t *out, size_t cap, const struct wire_ident *);
int wire_ident_decode(struct wire_ident *, const uint8_t *, size_t);

size_t wire_offer_encode(uint8_t *out, size_t cap, const struct wire_offer *);
int wire_offer_decode(struct wire_offer *, const uint8_t *, size_t);
/* The first WIRE_OFFER_HEAD bytes alone. */
void wire_offer_head(uint8_t *out, const struct wire_offer *);

size_t wire_answer_encode(uint8_t *out, size_t cap, const struct wire_answer *);
int wire_answer_decode(struct wire_answer *, const uint8_t *, size_t);
#endif
