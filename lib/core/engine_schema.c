/* Which tensors: schemas offered, compared, and the first difference named on both sides. */
#include "engine_internal.h"
#include <string.h>

void schema_offer(engine *e, struct member *m, struct set *s, uint16_t first)
{
    uint8_t body[1184];
    struct wire_schema w = {.set = s->layout.hash,
                            .tensors = (uint16_t)s->layout.n,
                            .first = first,
                            .payload = (uint8_t)s->layout.payload};
    memcpy(w.name, s->layout.name, sizeof w.name);
    for (uint32_t i = first; i < s->layout.n && w.n < 16; i++) {
        struct wire_tensor *t = &w.entries[w.n++];
        t->count = s->layout.tensors[i].count;
        t->dtype = (uint8_t)s->layout.tensors[i].dtype;
        memcpy(t->name, s->layout.tensors[i].name, sizeof t->name);
    }
    size_t len = wire_schema_encode(body, sizeof body, &w);
    if (len)
        outbox_put(e, &m->addr, (uint32_t)(m - e->members), m->peer_index, WIRE_SCHEMA, body, len);
}

static bool same_tensor(const struct wire_tensor *a, const struct tensor *b)
{
    return a->count == b->count && a->dtype == (uint8_t)b->dtype && strcmp(a->name, b->name) == 0;
}

static char *text_add(char *at, char *end, const char *s)
{
    while (*s && at < end)
        *at++ = *s++;
    *at = 0;
    return at;
}

static char *text_u64(char *at, char *end, uint64_t v)
{
    char digits[24], *d = digits + sizeof digits - 1;
    *d = 0;
    do
        *--d = (char)('0' + v % 10);
    while (v /= 10);
    return text_add(at, end, d);
}

/* Both sides name the first tensor in which they differ. */
static void schemas_differ(engine *e, struct member *m, struct set *s, uint32_t index,
                           const struct wire_tensor *theirs)
{
    struct member_set *ms = &m->sets[s->handle];
    char *t = s->schema_text, *end = t + sizeof s->schema_text - 1;
    if (ms->differs)
        return;
    ms->differs = true;
    t = text_add(t, end, "set ");
    t = text_add(t, end, s->layout.name);
    t = text_add(t, end, ", tensor ");
    t = text_u64(t, end, index);
    t = text_add(t, end, ": here ");
    if (index < s->layout.n) {
        t = text_add(t, end, s->layout.tensors[index].name);
        t = text_add(t, end, " of ");
        t = text_u64(t, end, s->layout.tensors[index].count);
    } else {
        t = text_add(t, end, "none");
    }
    t = text_add(t, end, ", on node ");
    t = text_u64(t, end, m->node_id);
    t = text_add(t, end, theirs ? " " : " none");
    if (theirs) {
        t = text_add(t, end, theirs->name);
        t = text_add(t, end, " of ");
        text_u64(t, end, theirs->count);
    }
    s->schema_event = s->schema_differs = true;
    LOG(&e->config.log, LOG_ERROR, FAULT_REMOTE, "schema-differs", F_S("text", s->schema_text));
}

void schema_recv(engine *e, struct member *m, const uint8_t *body, size_t len)
{
    struct wire_schema w;
    if (wire_schema_decode(&w, body, len) != SLEET_OK) {
        e->counters.corrupt++;
        return;
    }
    e->counters.accepted++;
    struct wire_schema_ack a = {.set = w.set};
    for (uint32_t i = 0; i < ENGINE_SETS_MAX; i++) {
        struct set *s = &e->sets[i];
        if (!s->used || strcmp(s->layout.name, w.name) != 0)
            continue;
        uint32_t k = 0;
        while (k < w.n && w.first + k < s->layout.n &&
               same_tensor(&w.entries[k], &s->layout.tensors[w.first + k]))
            k++;
        a.next = (uint16_t)(w.first + k);
        bool same = k == w.n && (a.next < w.tensors || s->layout.n == w.tensors);
        a.verdict = same ? 1 : 2;
        if (!same) {
            schemas_differ(e, m, s, a.next, k < w.n ? &w.entries[k] : NULL);
            if (a.next < s->layout.n) {
                a.n = 1;
                a.entry.count = s->layout.tensors[a.next].count;
                a.entry.dtype = (uint8_t)s->layout.tensors[a.next].dtype;
                memcpy(a.entry.name, s->layout.tensors[a.next].name, sizeof a.entry.name);
            }
        }
    }
    uint8_t out[128];
    size_t n = wire_schema_ack_encode(out, sizeof out, &a);
    if (n)
        outbox_put(e, &m->addr, (uint32_t)(m - e->members), m->peer_index, WIRE_SCHEMA_ACK, out, n);
}

void schema_recv_ack(engine *e, struct member *m, const uint8_t *body, size_t len)
{
    struct wire_schema_ack a;
    if (wire_schema_ack_decode(&a, body, len) != SLEET_OK) {
        e->counters.corrupt++;
        return;
    }
    e->counters.accepted++;
    struct set *s = engine_set_by_hash(e, a.set);
    if (!s)
        return;
    if (a.verdict == 1 && a.next < s->layout.n)
        schema_offer(e, m, s, a.next);
    else if (a.verdict == 2)
        schemas_differ(e, m, s, a.next, a.n ? &a.entry : NULL);
}
