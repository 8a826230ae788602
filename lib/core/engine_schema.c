/* Which tensors: schemas offered, compared, and the first difference named on both sides. */
#include "engine_internal.h"
#include <assert.h>
#include <string.h>

static_assert(WIRE_KIND_BYTES == KIND_BYTES, "a kind travels as it is hashed");

static void entry_put(struct wire_tensor *out, const struct tensor *t)
{
    out->count = t->count;
    out->rows = t->rows;
    out->dtype = (uint8_t)t->dtype;
    out->codec = (uint8_t)t->codec;
    memcpy(out->name, t->name, sizeof out->name);
}

void schema_offer(engine *e, struct member *m, struct set *s, uint16_t first)
{
    uint8_t body[1184];
    struct wire_schema w = {.set = s->layout.hash,
                            .tensors = (uint16_t)s->layout.n,
                            .first = first};
    kind_put(w.kind, &s->layout.kind);
    memcpy(w.name, s->layout.name, sizeof w.name);
    for (uint32_t i = first; i < s->layout.n && w.n < 16; i++)
        entry_put(&w.entries[w.n++], &s->layout.tensors[i]);
    size_t len = wire_schema_encode(body, sizeof body, &w);
    if (len)
        outbox_put(e, &m->addr, (uint32_t)(m - e->members), m->peer_index, WIRE_SCHEMA, body, len);
}

static bool same_tensor(const struct wire_tensor *a, const struct tensor *b)
{
    return a->count == b->count && a->rows == b->rows && a->dtype == (uint8_t)b->dtype && a->codec == (uint8_t)b->codec &&
           strcmp(a->name, b->name) == 0;
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

static char *text_tensor(char *at, char *end, const char *name, uint64_t count, uint32_t rows, int codec)
{
    at = text_add(at, end, name);
    at = text_add(at, end, " of ");
    at = text_u64(at, end, count);
    if (rows) {
        at = text_add(at, end, " in ");
        at = text_u64(at, end, rows);
        at = text_add(at, end, " rows");
    }
    if (codec == SLEET_CODEC_F32)
        return at;
    at = text_add(at, end, " as ");
    return text_add(at, end, codec_text(codec) ? codec_text(codec) : "an unknown codec");
}

static char *text_kind(char *at, char *end, const uint8_t kind[static WIRE_KIND_BYTES])
{
    char strategy[STRATEGY_WORD];
    const struct set_kind k = {.strategy = (sleet_strategy)kind[4],
                               .numbers = {(uint16_t)(kind[5] | kind[6] << 8), (uint16_t)(kind[7] | kind[8] << 8)}};
    const char *const words[] = {payload_text(kind[0]), estimator_text(kind[1]), update_text(kind[2]),
                                 exchange_text(kind[3]), kind_strategy_word(&k, strategy)};
    for (int i = 0; i < 5; i++) {
        at = text_add(at, end, i ? ", " : "");
        at = text_add(at, end, words[i] ? words[i] : "unknown");
    }
    if (kind[9] <= 1)
        return at;
    return text_u64(text_add(at, end, ", spread over "), end, kind[9]);
}

static void differs(engine *e, struct member *m, struct set *s, char *at)
{
    m->sets[s->handle].differs = true;
    *at = 0;
    s->schema_event = s->schema_differs = true;
    LOG(&e->config.log, LOG_ERROR, FAULT_REMOTE, "schema-differs", F_S("text", s->schema_text));
}

/* Both sides name the first tensor in which they differ. */
static void schemas_differ(engine *e, struct member *m, struct set *s, uint32_t index,
                           const struct wire_tensor *theirs)
{
    char *t = s->schema_text, *end = t + sizeof s->schema_text - 1;
    if (m->sets[s->handle].differs)
        return;
    t = text_add(t, end, "set ");
    t = text_add(t, end, s->layout.name);
    t = text_add(t, end, ", tensor ");
    t = text_u64(t, end, index);
    t = text_add(t, end, ": here ");
    const struct tensor *ours = index < s->layout.n ? &s->layout.tensors[index] : NULL;
    t = ours ? text_tensor(t, end, ours->name, ours->count, ours->rows, (int)ours->codec) : text_add(t, end, "none");
    t = text_add(t, end, ", on node ");
    t = text_u64(t, end, m->node_id);
    t = text_add(t, end, theirs ? " " : " none");
    if (theirs)
        t = text_tensor(t, end, theirs->name, theirs->count, theirs->rows, theirs->codec);
    differs(e, m, s, t);
}

/* Both sides name how each would average. */
static void kinds_differ(engine *e, struct member *m, struct set *s, const uint8_t theirs[static WIRE_KIND_BYTES])
{
    char *t = s->schema_text, *end = t + sizeof s->schema_text - 1;
    uint8_t ours[WIRE_KIND_BYTES];
    if (m->sets[s->handle].differs)
        return;
    kind_put(ours, &s->layout.kind);
    t = text_add(t, end, "set ");
    t = text_add(t, end, s->layout.name);
    t = text_add(t, end, ": here ");
    t = text_kind(t, end, ours);
    t = text_add(t, end, ", on node ");
    t = text_u64(t, end, m->node_id);
    t = text_add(t, end, " ");
    differs(e, m, s, text_kind(t, end, theirs));
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
    if (e->config.declared.role == ROLE_AUXILIARY && !engine_set_by_hash(e, w.set))
        serve_recv(e, &w, &a);
    for (uint32_t i = 0; i < ENGINE_SETS_MAX; i++) {
        struct set *s = &e->sets[i];
        if (!s->used || s->serves || strcmp(s->layout.name, w.name) != 0)
            continue;
        uint32_t k = 0;
        kind_put(a.kind, &s->layout.kind);
        if (memcmp(a.kind, w.kind, sizeof a.kind) != 0) {
            a.verdict = VERDICT_KIND;
            kinds_differ(e, m, s, w.kind);
            continue;
        }
        while (k < w.n && w.first + k < s->layout.n &&
               same_tensor(&w.entries[k], &s->layout.tensors[w.first + k]))
            k++;
        a.next = (uint16_t)(w.first + k);
        bool same = k == w.n && (a.next < w.tensors || s->layout.n == w.tensors);
        a.verdict = same ? VERDICT_MATCH : VERDICT_DIFFERS;
        if (!same) {
            schemas_differ(e, m, s, a.next, k < w.n ? &w.entries[k] : NULL);
            if (a.next < s->layout.n) {
                a.n = 1;
                entry_put(&a.entry, &s->layout.tensors[a.next]);
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
    if (a.verdict == VERDICT_MATCH && a.next < s->layout.n)
        schema_offer(e, m, s, a.next);
    else if (a.verdict == VERDICT_KIND)
        kinds_differ(e, m, s, a.kind);
    else if (a.verdict == VERDICT_DIFFERS)
        schemas_differ(e, m, s, a.next, a.n ? &a.entry : NULL);
}
