/* orders.h - what operators have ordered: who is evicted, which key the job has.
 *
 * A bounded table of signed records.  Invariant: every record in it was signed by the
 * operator's key for this job, at most one evicts a node, and at most one, the newest, changes
 * the key; so all tables that have seen the same records in whatever order are equal as long
 * as they are not full. Only the operator can fill it. */
#ifndef MEMBER_ORDERS_H
#define MEMBER_ORDERS_H
#include "session/keys.h"
#include "wire/notice.h"

#define ORDERS_MAX 64 /* a bit each in a member's ->told */

enum orders_verdict {
    ORDERS_NEW,     /* in force from now on, at *index */
    ORDERS_KNOWN,   /* the very same is here, at *index */
    ORDERS_OLD,     /* a newer one of its kind and subject is here */
    ORDERS_FOREIGN, /* for another job, by another operator, or there is none here */
    ORDERS_FULL     /* no room; a rekey makes some */
};

struct orders {
    bool has_operator;
    uint8_t operator_key[KEY_BYTES]; /* ed25519 public key */
    uint64_t job;                    /* job_tag() of this job */
    uint32_t n;
    struct wire_record list[ORDERS_MAX];
};

/* By which a record names a job, whatever its key is: the first 8 bytes, little-endian, of
 * BLAKE2b-256 of "sleet job" and the name, each with its NUL. */
uint64_t job_tag(const char *job);

/* `operator_key` NULL: nobody's orders are taken. */
void orders_init(struct orders *, const char *job, const uint8_t *operator_key);

/* A record from anywhere.  A signature is looked at only where the record is news. */
enum orders_verdict orders_take(struct orders *, const struct wire_record *, uint32_t *index);

/* The index of the record that another names by kind, serial and subject; ORDERS_MAX: none. */
uint32_t orders_find(const struct orders *, const struct wire_record *);

bool orders_evicted(const struct orders *, uint64_t node_id);
/* The newest change of the job's key, or NULL. */
const struct wire_record *orders_rekey(const struct orders *);
/* The highest serial, 0 without records: the next order has to be above it. */
uint64_t orders_serial(const struct orders *);

/* Sign as the operator with that seed; for operators' tools and tests.  False: out of bounds. */
bool record_sign(struct wire_record *, const uint8_t seed[KEY_BYTES]);
#endif
