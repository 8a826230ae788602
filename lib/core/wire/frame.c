/* The frames outside a round: HELLO, SCHEMA, GROUP, CLOSE. */
#include "wire/wire.h"
#include "base/bytes.h"
#include <xxhash.h>

#define MEMBER_BYTES 17
#define UPLINK_MAX 127 /* of 7 bits */
#define ENTRY_BYTES 15 /* without the name */

static int verdict_of(bool fine) { return fine ? SLEET_OK : SLEET_EMALFORMED; }

/* Length of a name; 0 when it is empty or has no NUL within its 64 bytes. */
static uint8_t name_length(const char name[64])
{
    const char *end = memchr(name, 0, 64);
    return end ? (uint8_t)(end - name) : 0;
}

static void get_name(byte_reader *r, char name[64], uint8_t len)
{
    memset(name, 0, 64);
    const uint8_t *p = get_bytes(r, len);
    if (!p || len == 0 || len > SLEET_NAME_MAX || memchr(p, 0, len))
        r->ok = false;
    else
        memcpy(name, p, len);
}

size_t wire_hello_encode(uint8_t *out, size_t cap, const struct wire_hello *h)
{
    byte_writer w = writer_of(out, cap);
    uint8_t len = name_length(h->job);
    if (!h->node_id || !h->boot_id || !h->index || !len)
        return 0;
    put_u64(&w, h->node_id);
    put_u64(&w, h->boot_id);
    put_u32(&w, h->index);
    put_u16(&w, h->elements);
    put_zeros(&w, 2);
    put_bytes(&w, h->job, len);
    put_zeros(&w, 64u - len);
    return put_done(&w);
}

int wire_hello_decode(struct wire_hello *h, const uint8_t *p, size_t n)
{
    byte_reader r = reader_of(p, n);
    memset(h, 0, sizeof(*h));
    h->node_id = get_u64(&r);
    h->boot_id = get_u64(&r);
    h->index = get_u32(&r);
    h->elements = get_u16(&r);
    get_zeros(&r, 2);
    const uint8_t *job = get_bytes(&r, 64);
    if (!get_done(&r) || !h->node_id || !h->boot_id || !h->index)
        return SLEET_EMALFORMED;
    memcpy(h->job, job, 64);
    uint8_t len = name_length(h->job);
    for (unsigned i = len; i < 64; i++)
        if (h->job[i])
            return SLEET_EMALFORMED;
    return verdict_of(len != 0);
}

static void put_entry(byte_writer *w, const struct wire_tensor *t)
{
    uint8_t len = name_length(t->name);
    put_u64(w, t->count);
    put_u32(w, t->rows);
    put_u8(w, t->dtype);
    put_u8(w, t->codec);
    put_u8(w, len);
    put_bytes(w, t->name, len);
    if (!len)
        w->ok = false;
}

static void get_entry(byte_reader *r, struct wire_tensor *t)
{
    t->count = get_u64(r);
    t->rows = get_u32(r);
    t->dtype = get_u8(r);
    t->codec = get_u8(r);
    uint8_t len = get_u8(r);
    get_name(r, t->name, len);
}

static void get_kind(byte_reader *r, uint8_t kind[static WIRE_KIND_BYTES])
{
    for (int i = 0; i < WIRE_KIND_BYTES; i++)
        kind[i] = get_u8(r);
}

static bool schema_fits(const struct wire_schema *s)
{
    return s->tensors >= 1 && s->tensors <= SLEET_TENSORS_MAX && s->n >= 1 &&
           s->n <= WIRE_SCHEMA_ENTRIES_MAX && s->first + s->n <= s->tensors;
}

/* How many of the entries fit into `cap` bytes behind the name. */
static uint8_t entries_that_fit(const struct wire_schema *s, size_t used, size_t cap)
{
    uint8_t n = 0;
    for (; n < s->n; n++) {
        used += ENTRY_BYTES + (size_t)name_length(s->entries[n].name);
        if (used > cap)
            break;
    }
    return n;
}

size_t wire_schema_encode(uint8_t *out, size_t cap, struct wire_schema *s)
{
    byte_writer w = writer_of(out, cap < WIRE_SCHEMA_MAX ? cap : WIRE_SCHEMA_MAX);
    uint8_t len = name_length(s->name);
    if (!schema_fits(s) || !len)
        return 0;
    uint8_t n = entries_that_fit(s, 10u + WIRE_KIND_BYTES + len, w.cap);
    if (n == 0)
        return 0;
    put_u32(&w, s->set);
    put_u16(&w, s->tensors);
    put_u16(&w, s->first);
    put_u8(&w, n);
    put_u8(&w, len);
    put_bytes(&w, s->kind, sizeof s->kind);
    put_bytes(&w, s->name, len);
    for (unsigned i = 0; i < n; i++)
        put_entry(&w, &s->entries[i]);
    if (w.ok)
        s->n = n;
    return put_done(&w);
}

int wire_schema_decode(struct wire_schema *s, const uint8_t *p, size_t n)
{
    byte_reader r = reader_of(p, n);
    memset(s, 0, sizeof(*s));
    s->set = get_u32(&r);
    s->tensors = get_u16(&r);
    s->first = get_u16(&r);
    s->n = get_u8(&r);
    uint8_t len = get_u8(&r);
    get_kind(&r, s->kind);
    get_name(&r, s->name, len);
    if (!r.ok || !schema_fits(s))
        return SLEET_EMALFORMED;
    for (unsigned i = 0; i < s->n; i++)
        get_entry(&r, &s->entries[i]);
    return verdict_of(get_done(&r));
}

static bool schema_ack_fits(const struct wire_schema_ack *a)
{
    return a->verdict <= VERDICT_KIND && a->n <= 1 &&
           (a->n == 0 || a->verdict == VERDICT_DIFFERS) && a->next <= SLEET_TENSORS_MAX;
}

size_t wire_schema_ack_encode(uint8_t *out, size_t cap, const struct wire_schema_ack *a)
{
    byte_writer w = writer_of(out, cap);
    if (!schema_ack_fits(a))
        return 0;
    put_u32(&w, a->set);
    put_u8(&w, a->verdict);
    put_u8(&w, a->n);
    put_u16(&w, a->next);
    put_bytes(&w, a->kind, sizeof a->kind);
    if (a->n)
        put_entry(&w, &a->entry);
    return put_done(&w);
}

int wire_schema_ack_decode(struct wire_schema_ack *a, const uint8_t *p, size_t n)
{
    byte_reader r = reader_of(p, n);
    memset(a, 0, sizeof(*a));
    a->set = get_u32(&r);
    a->verdict = get_u8(&r);
    a->n = get_u8(&r);
    a->next = get_u16(&r);
    get_kind(&r, a->kind);
    if (!r.ok || !schema_ack_fits(a))
        return SLEET_EMALFORMED;
    if (a->n)
        get_entry(&r, &a->entry);
    return verdict_of(get_done(&r));
}

size_t wire_group_req_encode(uint8_t *out, size_t cap, const struct wire_group_req *g)
{
    byte_writer w = writer_of(out, cap);
    put_u32(&w, g->set);
    put_u32(&w, g->group);
    return put_done(&w);
}

int wire_group_req_decode(struct wire_group_req *g, const uint8_t *p, size_t n)
{
    byte_reader r = reader_of(p, n);
    g->set = get_u32(&r);
    g->group = get_u32(&r);
    return verdict_of(get_done(&r));
}

static void put_members(byte_writer *w, const struct wire_member *m, uint8_t n)
{
    for (unsigned i = 0; i < n; i++) {
        put_u64(w, m[i].node_id);
        put_u64(w, m[i].boot_id);
        put_u8(w, (uint8_t)(m[i].contributes | m[i].uplink << 1));
    }
}

uint32_t wire_group_hash(const struct wire_member *m, uint8_t n)
{
    uint8_t bytes[MEMBER_BYTES * SLEET_GROUP_MAX];
    byte_writer w = writer_of(bytes, sizeof(bytes));
    put_members(&w, m, n);
    return (uint32_t)XXH3_64bits(bytes, w.len);
}

static bool group_fits(const struct wire_group *g)
{
    uint64_t last = 0; /* also keeps id 0 out */
    if (g->n < 1 || g->n > SLEET_GROUP_MAX)
        return false;
    for (unsigned i = 0; i < g->n; i++) {
        const struct wire_member *m = &g->members[i];
        if (m->node_id <= last || m->boot_id == 0 || m->contributes > 1 || m->uplink > UPLINK_MAX - !m->contributes)
            return false;
        last = m->node_id;
    }
    return g->group == wire_group_hash(g->members, g->n);
}

size_t wire_group_encode(uint8_t *out, size_t cap, const struct wire_group *g)
{
    byte_writer w = writer_of(out, cap);
    if (!group_fits(g))
        return 0;
    put_u32(&w, g->set);
    put_u32(&w, g->group);
    put_u8(&w, g->n);
    put_zeros(&w, 3);
    put_members(&w, g->members, g->n);
    return put_done(&w);
}

int wire_group_decode(struct wire_group *g, const uint8_t *p, size_t n)
{
    byte_reader r = reader_of(p, n);
    memset(g, 0, sizeof(*g));
    g->set = get_u32(&r);
    g->group = get_u32(&r);
    g->n = get_u8(&r);
    get_zeros(&r, 3);
    if (!r.ok || g->n > SLEET_GROUP_MAX)
        return SLEET_EMALFORMED;
    for (unsigned i = 0; i < g->n; i++) {
        g->members[i].node_id = get_u64(&r);
        g->members[i].boot_id = get_u64(&r);
        uint8_t bits = get_u8(&r);
        g->members[i].contributes = bits & 1;
        g->members[i].uplink = bits >> 1;
    }
    return verdict_of(get_done(&r) && group_fits(g));
}

size_t wire_close_encode(uint8_t *out, size_t cap, const struct wire_close *c)
{
    byte_writer w = writer_of(out, cap);
    if (c->reason < CLOSE_LEAVE || c->reason > CLOSE_DENIED)
        return 0;
    put_u8(&w, c->reason);
    put_u8(&w, c->version);
    put_u16(&w, c->elements);
    return put_done(&w);
}

int wire_close_decode(struct wire_close *c, const uint8_t *p, size_t n)
{
    byte_reader r = reader_of(p, n);
    c->reason = get_u8(&r);
    c->version = get_u8(&r);
    c->elements = get_u16(&r);
    return verdict_of(get_done(&r) && c->reason >= CLOSE_LEAVE && c->reason <= CLOSE_DENIED);
}
