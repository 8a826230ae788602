/* notice.h - the NOTICE frame of docs/protocol.md: what an operator orders, signed by the
 * operator's key, and who has it.  Same contract as wire.h.
 *
 * A record is the same bytes wherever it comes from; nobody but the operator can make one. */
#ifndef WIRE_NOTICE_H
#define WIRE_NOTICE_H
#include "wire/wire.h"

#define WIRE_RECORD_BYTES 128
#define WIRE_RECORD_SIGNED 64 /* bytes of a record that its signature is of */
#define WIRE_SIGNATURE_BYTES 64
#define WIRE_RECORD_VALUE 32
#define WIRE_SIGNED_BYTES (16 + WIRE_RECORD_SIGNED) /* with the label before them */

enum wire_record_kind {
    RECORD_EVICT = 1, /* the node `subject` is no member and never will be */
    RECORD_REKEY      /* `value` is the job's key from now on */
};

struct wire_record {
    uint8_t kind;     /* enum wire_record_kind */
    uint64_t serial;  /* not 0; of two orders of a kind for one subject the higher is in force */
    uint64_t job;     /* job_tag() of whom it is meant for */
    uint64_t subject; /* node id; 0 in RECORD_REKEY */
    uint8_t value[WIRE_RECORD_VALUE]; /* zeros in RECORD_EVICT */
    uint8_t signature[WIRE_SIGNATURE_BYTES];
};

enum wire_notice_kind {
    NOTICE_RECORD = 1,
    NOTICE_TAKEN,  /* the sender has the record that `record` names by kind, serial and subject */
    NOTICE_REFUSED /* and will never take it: another operator, or none */
};

struct wire_notice {
    uint8_t kind; /* enum wire_notice_kind */
    struct wire_record record; /* TAKEN, REFUSED: kind, serial, subject only */
};

/* WIRE_RECORD_BYTES bytes, or 0 when a field is out of bounds. */
size_t wire_record_encode(uint8_t *out, size_t cap, const struct wire_record *);
int wire_record_decode(struct wire_record *, const uint8_t *, size_t);
/* What is signed: a label, then the record up to its signature.  False when out of bounds. */
bool wire_record_signed(uint8_t out[WIRE_SIGNED_BYTES], const struct wire_record *);

size_t wire_notice_encode(uint8_t *out, size_t cap, const struct wire_notice *);
int wire_notice_decode(struct wire_notice *, const uint8_t *, size_t);
#endif
