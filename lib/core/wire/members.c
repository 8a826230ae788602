/* The frame of dissemination: MEMBERS. */
#include "wire/members.h"
#include "base/bytes.h"

#define HAS_KEY 4u /* bits 0 and 1 are the status */
#define HAS_CANDIDATE(i) (8u << (i))
#define PRESENCE_BITS 0x3fu

static const uint8_t no_key[WIRE_KEY_BYTES];

/* What each kind may carry, by its number. */
static const struct {
    uint8_t flags;
    bool subject, digest, updates;
} kinds[] = {
    [MEMBERS_UPDATES] = {.updates = true},
    [MEMBERS_PROBE] = {.subject = true, .updates = true},
    [MEMBERS_PROBE_ANSWER] = {.flags = MEMBERS_HEARD, .subject = true, .updates = true},
    [MEMBERS_TABLE_ASK] = {.subject = true, .digest = true},
    [MEMBERS_TABLE] = {.flags = MEMBERS_MORE | MEMBERS_SAME, .updates = true},
};

static bool accused(uint8_t status)
{
    return status == STATUS_SUSPECT || status == STATUS_DEAD;
}

static uint8_t presence(const struct wire_update *u)
{
    uint8_t bits = u->status;
    bits |= memcmp(u->key, no_key, sizeof no_key) ? HAS_KEY : 0;
    for (unsigned i = 0; i < WIRE_CANDIDATES; i++)
        bits |= (uint8_t)(u->at[i].port ? HAS_CANDIDATE(i) : 0);
    return bits;
}

size_t wire_update_bytes(const struct wire_update *u)
{
    size_t bytes = WIRE_UPDATE_BYTES_MIN + (accused(u->status) ? 8 : 0);
    bytes += presence(u) & HAS_KEY ? WIRE_KEY_BYTES : 0;
    for (unsigned i = 0; i < WIRE_CANDIDATES; i++)
        bytes += u->at[i].port ? 18 : 0;
    return bytes;
}

static bool update_fits(const struct wire_update *u)
{
    return u->node_id && u->boot_id && u->status <= STATUS_LEFT &&
           accused(u->status) == (u->by != 0);
}

static void put_update(byte_writer *w, const struct wire_update *u)
{
    uint8_t bits = presence(u);
    put_u64(w, u->node_id);
    put_u64(w, u->boot_id);
    put_u32(w, u->incarnation);
    put_u8(w, bits);
    put_u8(w, 0);
    if (accused(u->status))
        put_u64(w, u->by);
    if (bits & HAS_KEY)
        put_bytes(w, u->key, WIRE_KEY_BYTES);
    for (unsigned i = 0; i < WIRE_CANDIDATES; i++) {
        if (!u->at[i].port)
            continue;
        put_bytes(w, u->at[i].ip, 16);
        put_u16(w, u->at[i].port);
    }
}

static void get_update(byte_reader *r, struct wire_update *u)
{
    const uint8_t *p;
    *u = (struct wire_update){.node_id = get_u64(r), .boot_id = get_u64(r)};
    u->incarnation = get_u32(r);
    uint8_t bits = get_u8(r);
    get_zeros(r, 1);
    u->status = bits & 3;
    r->ok &= !(bits & ~PRESENCE_BITS);
    if (accused(u->status))
        u->by = get_u64(r);
    if (bits & HAS_KEY && (p = get_bytes(r, WIRE_KEY_BYTES)))
        memcpy(u->key, p, WIRE_KEY_BYTES);
    for (unsigned i = 0; i < WIRE_CANDIDATES; i++) {
        if (!(bits & HAS_CANDIDATE(i)) || !(p = get_bytes(r, 16)))
            continue;
        memcpy(u->at[i].ip, p, 16);
        u->at[i].port = get_u16(r);
    }
    r->ok &= presence(u) == bits && update_fits(u); /* one form only */
}

static bool head_fits(const struct wire_members *m)
{
    if (m->kind < MEMBERS_UPDATES || m->kind > MEMBERS_TABLE || m->n > WIRE_UPDATES_MAX)
        return false;
    return !(m->flags & ~kinds[m->kind].flags) && (kinds[m->kind].subject || !m->subject) &&
           (kinds[m->kind].digest || !m->digest) && (kinds[m->kind].updates || !m->n) &&
           (m->kind != MEMBERS_UPDATES || !m->sequence);
}

size_t wire_members_encode(uint8_t *out, size_t cap, const struct wire_members *m)
{
    byte_writer w = writer_of(out, cap < WIRE_BODY_MAX ? cap : WIRE_BODY_MAX);
    if (!head_fits(m))
        return 0;
    put_u8(&w, m->kind);
    put_u8(&w, m->flags);
    put_u8(&w, m->n);
    put_u8(&w, 0);
    put_u32(&w, m->sequence);
    put_u64(&w, m->subject);
    put_u32(&w, m->digest);
    for (unsigned i = 0; i < m->n; i++) {
        if (!update_fits(&m->updates[i]))
            return 0;
        put_update(&w, &m->updates[i]);
    }
    return put_done(&w);
}

int wire_members_decode(struct wire_members *m, const uint8_t *p, size_t n)
{
    byte_reader r = reader_of(p, n);
    m->kind = get_u8(&r);
    m->flags = get_u8(&r);
    m->n = get_u8(&r);
    get_zeros(&r, 1);
    m->sequence = get_u32(&r);
    m->subject = get_u64(&r);
    m->digest = get_u32(&r);
    if (!r.ok || !head_fits(m))
        return SLEET_EMALFORMED;
    for (unsigned i = 0; i < m->n && r.ok; i++)
        get_update(&r, &m->updates[i]);
    return get_done(&r) ? SLEET_OK : SLEET_EMALFORMED;
}
