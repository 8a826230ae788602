/* Any bytes as a MEMBERS frame, and a conversation of them with a table of members: what
 * is accepted encodes to the bytes it came from, and no conversation breaks the table.
 * The input is frames, each behind two bytes of length and one that moves time. */
#include "base/bytes.h"
#include "member/swim.h"
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct wire_members frame;
static struct swim_out out;

static void need(bool ok)
{
    if (!ok)
        abort();
}

static void check_table(const struct swim *s)
{
    uint32_t live = 0, digest = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        const struct swim_member *m = &s->members[s->by_id[i]];
        need(i == 0 || s->members[s->by_id[i - 1]].record.node_id < m->record.node_id);
        need(swim_find(s, m->record.node_id) == s->by_id[i]);
        need(m->accusers_n <= 1 + SWIM_CONFIRMATIONS);
        live += swim_live(m);
        if (swim_live(m))
            digest += (uint32_t)(mix64(m->record.node_id ^ mix64(m->record.boot_id)) >> 32);
    }
    need(live == s->live && digest == s->digest);
    need(s->members[SWIM_SELF].record.status == STATUS_ALIVE);
}

static void drain(struct swim *s)
{
    uint8_t body[WIRE_BODY_MAX];
    while (swim_send(s, &out))
        need(out.ping || wire_members_encode(body, sizeof body, &out.frame) > 0);
    while (swim_changed(s) != SWIM_NONE)
        ;
}

static void talk(struct swim *s, const uint8_t *p, size_t n, sleet_time now)
{
    uint8_t again[WIRE_BODY_MAX];
    if (wire_members_decode(&frame, p, n) != SLEET_OK)
        return;
    need(wire_members_encode(again, sizeof again, &frame) == n && memcmp(again, p, n) == 0);
    struct wire_update who = {.node_id = 2, .boot_id = 2 + (frame.sequence & 1)};
    uint32_t from = swim_meet(s, &who, now);
    need(from != SWIM_NONE);
    swim_heard(s, from, now);
    swim_recv(s, from, &frame, now);
    drain(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct swim s;
    struct swim_config c = {.node_id = 1, .boot_id = 1, .seed = 1};
    sleet_time now = {0};
    if (!swim_init(&s, &c, now))
        return 0;
    while (size > 3) {
        size_t n = le_load(data, 2);
        now = time_add(now, MS(100) * data[2]);
        data += 3;
        size -= 3;
        n = n < size ? n : size;
        talk(&s, data, n, now);
        swim_expire(&s, now);
        drain(&s);
        data += n;
        size -= n;
    }
    check_table(&s);
    swim_fini(&s);
    return 0;
}
