/* The records of SWIM: who is known, and which of two pieces of news is the newer. */
#include "member/swim.h"
#include <string.h>

/* ---- room ------------------------------------------------------------------- */

static bool grow_heap(struct heap *h, uint32_t room)
{
    struct heap larger;
    if (!heap_init(&larger, room))
        return false;
    for (uint32_t i = 0; i < h->n; i++)
        if (!time_is_never(h->at[i]))
            heap_move(&larger, i, h->at[i]);
    heap_fini(h);
    *h = larger;
    return true;
}

static bool grow(struct swim *s)
{
    uint32_t room = s->room ? 2 * s->room : 16;
    if (room > SWIM_MEMBERS_MAX || !grow_heap(&s->due, room) || !gossip_grow(&s->news, room))
        return false;
    void *members = realloc(s->members, room * sizeof *s->members);
    s->members = members ? members : s->members;
    void *by_id = realloc(s->by_id, room * sizeof *s->by_id);
    s->by_id = by_id ? by_id : s->by_id;
    void *order = realloc(s->order, room * sizeof *s->order);
    s->order = order ? order : s->order;
    if (!members || !by_id || !order)
        return false;
    s->room = room;
    return true;
}

/* The oldest of the dead that the caller has no use for makes room. */
static void evict(struct swim *s)
{
    uint32_t oldest = SWIM_NONE;
    for (uint32_t i = 1; i < s->used; i++) {
        const struct swim_member *m = &s->members[i];
        if (!m->record.node_id || swim_live(m) || m->slot)
            continue;
        if (oldest == SWIM_NONE || time_before(m->since, s->members[oldest].since))
            oldest = i;
    }
    if (oldest != SWIM_NONE)
        swim_remove(s, oldest);
}

/* Where it stands in by_id, or would. */
static uint32_t place_of(const struct swim *s, uint64_t node_id)
{
    uint32_t low = 0, high = s->n;
    while (low < high) {
        uint32_t mid = (low + high) / 2;
        if (s->members[s->by_id[mid]].record.node_id < node_id)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

uint32_t swim_find(const struct swim *s, uint64_t node_id)
{
    uint32_t place = place_of(s, node_id);
    if (place < s->n && s->members[s->by_id[place]].record.node_id == node_id)
        return s->by_id[place];
    return SWIM_NONE;
}

struct swim_member *swim_insert(struct swim *s, uint64_t node_id)
{
    uint32_t number = 0;
    if (s->n == SWIM_MEMBERS_MAX)
        evict(s);
    while (number < s->used && s->members[number].record.node_id)
        number++;
    if (number == s->room && !grow(s)) {
        s->refused++;
        return NULL;
    }
    bool fresh = number == s->used;
    s->used += fresh;
    struct swim_member *m = &s->members[number], old = *m;
    *m = (struct swim_member){.record.node_id = node_id, .heard = TIME_NEVER, .since = s->now};
    if (!fresh) { /* the number may still stand in the list of changes */
        m->changed = old.changed;
        m->changed_next = old.changed_next;
    }
    m->record.status = STATUS_LEFT; /* counts in nothing yet */
    uint32_t place = place_of(s, node_id);
    memmove(s->by_id + place + 1, s->by_id + place, (s->n - place) * sizeof *s->by_id);
    s->by_id[place] = (uint16_t)number;
    s->n++;
    if (number == SWIM_SELF)
        return m;
    uint32_t others = s->n - 1; /* it is one of those whose turn comes */
    uint32_t turn = s->order_at + rng_below(&s->rng, others - s->order_at);
    s->order[others - 1] = s->order[turn];
    s->order[turn] = (uint16_t)number;
    return m;
}

void swim_remove(struct swim *s, uint32_t number)
{
    uint32_t place = place_of(s, s->members[number].record.node_id), turn = 0;
    memmove(s->by_id + place, s->by_id + place + 1, (s->n - place - 1) * sizeof *s->by_id);
    while (s->order[turn] != number)
        turn++;
    memmove(s->order + turn, s->order + turn + 1, (s->n - 2 - turn) * sizeof *s->order);
    s->order_at -= s->order_at > turn;
    s->n--;
    gossip_remove(&s->news, number);
    heap_move(&s->due, number, TIME_NEVER);
    s->members[number].record.node_id = 0; /* if it is among the changed, it is skipped there */
}

uint32_t swim_random(struct swim *s, uint32_t but)
{
    for (int tries = 0; tries < 16 && s->n > 1; tries++) {
        uint32_t i = s->order[rng_below(&s->rng, s->n - 1)];
        if (i != but && swim_live(&s->members[i]) && !s->members[i].mute)
            return i;
    }
    return SWIM_NONE;
}

/* ---- status ------------------------------------------------------------------- */

static uint32_t digest_of(const struct wire_update *u)
{
    return (uint32_t)(mix64(u->node_id ^ mix64(u->boot_id)) >> 32);
}

void swim_note_change(struct swim *s, uint32_t number)
{
    struct swim_member *m = &s->members[number];
    if (m->changed || number == SWIM_SELF)
        return;
    m->changed = true;
    m->changed_next = GOSSIP_END;
    if (s->changed_first == GOSSIP_END)
        s->changed_first = (uint16_t)number;
    else
        s->members[s->changed_last].changed_next = (uint16_t)number;
    s->changed_last = (uint16_t)number;
}

void swim_news(struct swim *s, uint32_t number)
{
    gossip_add(&s->news, number);
    if (time_is_never(s->gossip_at))
        s->gossip_at = s->now;
}

/* When nothing more is heard of an accused or gone member. */
static void set_timer(struct swim *s, uint32_t number)
{
    struct swim_member *m = &s->members[number];
    sleet_time at = TIME_NEVER;
    if (m->record.status == STATUS_SUSPECT)
        at = time_add(m->since, swim_suspicion(s, m->accusers_n - 1u));
    else if (m->record.status != STATUS_ALIVE)
        at = time_add(m->since, s->config.tombstone);
    heap_move(&s->due, number, at);
}

void swim_set_status(struct swim *s, uint32_t number, uint8_t status, uint64_t by)
{
    struct swim_member *m = &s->members[number];
    bool was = swim_live(m), is = status <= STATUS_SUSPECT;
    if (was)
        s->digest -= digest_of(&m->record);
    m->record.status = status;
    m->record.by = by;
    m->since = s->now;
    m->told = (sleet_time){INT64_MIN / 2};
    m->accusers_n = status == STATUS_SUSPECT;
    m->accusers[0] = by;
    if (is)
        s->digest += digest_of(&m->record);
    s->live += (uint32_t)is - (uint32_t)was;
    if (number != SWIM_SELF)
        set_timer(s, number);
    swim_note_change(s, number);
}

void swim_accuse(struct swim *s, uint32_t number, uint64_t by)
{
    struct swim_member *m = &s->members[number];
    if (m->record.status == STATUS_ALIVE) {
        swim_set_status(s, number, STATUS_SUSPECT, by);
        swim_news(s, number);
        return;
    }
    for (uint32_t i = 0; i < m->accusers_n; i++)
        if (m->accusers[i] == by)
            return;
    if (m->record.status != STATUS_SUSPECT || m->accusers_n > SWIM_CONFIRMATIONS ||
        s->config.lifeguard_off)
        return;
    m->accusers[m->accusers_n++] = by; /* an independent confirmation */
    m->record.by = by;
    set_timer(s, number);
    swim_news(s, number);
}

/* ---- news ----------------------------------------------------------------------- */

/* In serial-number arithmetic (RFC 1982), so that no incarnation is the last one. */
static bool later(uint32_t a, uint32_t b)
{
    return (int32_t)(a - b) > 0;
}

static bool same_place(const sleet_addr *a, const sleet_addr *b)
{
    return a->port == b->port && memcmp(a->ip, b->ip, sizeof a->ip) == 0;
}

/* What news of the same life says of key and addresses.  True: something was new. */
static bool learn(struct wire_update *r, const struct wire_update *u, bool replace)
{
    static const uint8_t none[WIRE_KEY_BYTES];
    bool new = false;
    if (memcmp(r->key, none, sizeof none) == 0 && memcmp(u->key, none, sizeof none) != 0) {
        memcpy(r->key, u->key, sizeof r->key);
        new = true;
    }
    for (unsigned i = 0; i < WIRE_CANDIDATES; i++) {
        if (!u->at[i].port || (r->at[i].port && !replace) || same_place(&r->at[i], &u->at[i]))
            continue;
        r->at[i] = u->at[i];
        new = true;
    }
    return new;
}

/* Somebody accuses this life of ours, or takes another one for ours. */
static void defend(struct swim *s, const struct wire_update *u)
{
    struct wire_update *own = &s->members[SWIM_SELF].record;
    bool same = u->boot_id == own->boot_id;
    if (own->status == STATUS_LEFT || (same && later(own->incarnation, u->incarnation)))
        return;
    if (same ? u->status == STATUS_ALIVE : u->status > STATUS_SUSPECT)
        return;
    if (!same && time_since(s->now, s->defended) < s->config.period / SWIM_TICKS)
        return; /* several say so: once is enough */
    s->defended = same ? s->defended : s->now;
    own->incarnation =
        1 + (later(u->incarnation, own->incarnation) ? u->incarnation : own->incarnation);
    s->health += same && s->health < SWIM_HEALTH_MAX && !s->config.lifeguard_off;
    swim_news(s, SWIM_SELF);
}

/* May news of another life than the present one be believed?  On success the
 * present life is a former one. */
static bool change_life(struct swim *s, uint32_t number, const struct wire_update *u)
{
    struct swim_member *m = &s->members[number];
    uint32_t i = 0;
    while (i < SWIM_FORMER && m->former[i].boot_id != u->boot_id)
        i++;
    if (u->status > STATUS_SUSPECT ||
        (i < SWIM_FORMER && !later(u->incarnation, m->former[i].incarnation)))
        return false;
    memmove(m->former + 1, m->former, (i < SWIM_FORMER ? i : SWIM_FORMER - 1) * sizeof *m->former);
    m->former[0] = (struct swim_life){m->record.boot_id, m->record.incarnation};
    return true;
}

static void adopt(struct swim *s, uint32_t number, const struct wire_update *u)
{
    struct swim_member *m = &s->members[number];
    if (swim_live(m))
        s->digest -= digest_of(&m->record);
    s->live -= swim_live(m);
    m->record = *u;
    m->record.status = STATUS_LEFT;
    m->heard = TIME_NEVER;
    m->unreachable = false;
    swim_set_status(s, number, u->status, u->by);
}

static bool newer(const struct wire_update *u, const struct wire_update *r)
{
    return later(u->incarnation, r->incarnation) ||
           (u->incarnation == r->incarnation && u->status > r->status);
}

bool swim_accept(struct swim *s, const struct wire_update *u, bool spread)
{
    uint32_t number = swim_find(s, u->node_id);
    if (number == SWIM_SELF) {
        defend(s, u);
        return false;
    }
    if (number == SWIM_NONE) {
        struct swim_member *m = NULL;
        if (u->status <= STATUS_SUSPECT && !s->config.listed_only)
            m = swim_insert(s, u->node_id);
        if (!m)
            return false;
        number = swim_number(s, m);
        adopt(s, number, u);
    } else if (s->members[number].record.boot_id != u->boot_id) {
        if (!change_life(s, number, u))
            return false;
        adopt(s, number, u);
    } else {
        struct wire_update *r = &s->members[number].record;
        bool is_newer = newer(u, r), more = learn(r, u, later(u->incarnation, r->incarnation));
        if (!is_newer && u->status == STATUS_SUSPECT && u->incarnation == r->incarnation)
            swim_accuse(s, number, u->by);
        if (more)
            swim_note_change(s, number);
        if (!is_newer && !more)
            return false;
        if (is_newer) {
            r->incarnation = u->incarnation;
            swim_set_status(s, number, u->status, u->by);
        }
    }
    if (spread)
        swim_news(s, number);
    return true;
}

/* ---- direct contact ---------------------------------------------------------------- */

uint32_t swim_meet(struct swim *s, const struct wire_update *who, sleet_time now)
{
    s->now = time_before(s->now, now) ? now : s->now;
    uint32_t number = swim_find(s, who->node_id);
    struct wire_update u = *who;
    u.status = STATUS_ALIVE;
    u.by = 0;
    u.incarnation = 0;
    if (number == SWIM_SELF)
        return SWIM_NONE;
    struct swim_member *m = number == SWIM_NONE ? swim_insert(s, u.node_id) : &s->members[number];
    if (!m)
        return SWIM_NONE;
    bool new_life = m->record.boot_id != u.boot_id;
    if (new_life && number != SWIM_NONE) { /* what it says itself counts, whatever was heard */
        for (uint32_t i = 0; i < SWIM_FORMER; i++)
            if (m->former[i].boot_id == u.boot_id)
                u.incarnation = m->former[i].incarnation + 1;
        change_life(s, number, &u);
    }
    number = swim_number(s, m);
    if (new_life)
        adopt(s, number, &u);
    if (learn(&m->record, &u, true) || new_life)
        swim_news(s, number);
    swim_heard(s, number, s->now);
    if (!m->mute)
        swim_unmute(s, number, s->now);
    return number;
}

void swim_unmute(struct swim *s, uint32_t number, sleet_time now)
{
    s->members[number].mute = false;
    if (s->sync.first && !s->sync.walking) /* somebody to ask for a table */
        s->sync_at = now;
}
