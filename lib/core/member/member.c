#include "member/member.h"
#include <stdlib.h>
#include <string.h>

/* ---- the table ------------------------------------------------------------ */

static void add_address(struct view *v, uint32_t slot)
{
    const sleet_addr *a = &v->members[slot].addr;
    uint32_t i = (uint32_t)addr_hash(a) & v->by_addr_mask;
    for (; v->by_addr[i]; i = (i + 1) & v->by_addr_mask)
        if (addr_equal(&v->members[v->by_addr[i]].addr, a))
            return; /* there already: the first one counts */
    v->by_addr[i] = (uint16_t)slot;
}

/* Anew, since open addressing forgets nothing; addresses seldom go. */
static void index_addresses(struct view *v)
{
    memset(v->by_addr, 0, (v->by_addr_mask + 1) * sizeof *v->by_addr);
    for (uint32_t slot = 1; slot < v->n; slot++)
        if (v->members[slot].used)
            add_address(v, slot);
}

static void member_fini(struct member *m)
{
    replay_fini(&m->replay);
    if (m->peer)
        peer_fini(m->peer);
    free(m->peer);
    m->peer = NULL;
}

bool view_init(struct view *v, uint32_t room)
{
    uint32_t size = 4;
    while (size < 2 * room)
        size *= 2;
    *v = (struct view){.room = room, .n = 1, .count = 1, .by_addr_mask = size - 1};
    v->members = calloc(room, sizeof *v->members);
    v->by_addr = calloc(size, sizeof *v->by_addr);
    if (!v->members || !v->by_addr || !heap_init(&v->due, room)) {
        view_fini(v);
        return false;
    }
    v->members[0].used = true;
    return true;
}

void view_fini(struct view *v)
{
    for (uint32_t i = 0; v->members && i < v->n; i++)
        member_fini(&v->members[i]);
    free(v->members);
    free(v->by_addr);
    heap_fini(&v->due);
    *v = (struct view){0};
}

struct member *view_add(struct view *v, const sleet_addr *addr)
{
    uint32_t slot = v->n;
    for (uint32_t i = 1; i < v->n && v->count < v->n; i++)
        if (!v->members[i].used) {
            slot = i;
            break;
        }
    if (slot == v->room)
        return NULL;
    v->n = slot == v->n ? slot + 1 : v->n;
    v->count++;
    v->members[slot] = (struct member){.addr = *addr, .used = true, .heard = TIME_NEVER};
    add_address(v, slot);
    view_changed(v);
    return &v->members[slot];
}

void view_remove(struct view *v, struct member *m)
{
    member_fini(m);
    heap_move(&v->due, view_slot(v, m), TIME_NEVER);
    *m = (struct member){.heard = TIME_NEVER};
    v->count--;
    index_addresses(v);
    view_changed(v);
}

void view_move(struct view *v, struct member *m, const sleet_addr *addr)
{
    m->addr = *addr;
    index_addresses(v);
}

struct member *view_at(const struct view *v, const sleet_addr *a)
{
    uint32_t i = (uint32_t)addr_hash(a) & v->by_addr_mask;
    for (; v->by_addr[i]; i = (i + 1) & v->by_addr_mask)
        if (addr_equal(&v->members[v->by_addr[i]].addr, a))
            return &v->members[v->by_addr[i]];
    return NULL;
}

struct member *view_by_id(const struct view *v, uint64_t node_id)
{
    for (uint32_t slot = 1; node_id && slot < v->n; slot++)
        if (v->members[slot].node_id == node_id)
            return &v->members[slot];
    return NULL;
}

/* ---- changes --------------------------------------------------------------- */

void view_changed(struct view *v)
{
    v->generation++;
    for (uint32_t i = 0; i < MEMBER_SETS_MAX; i++)
        v->rounds[i].valid = false;
}

static bool counts(const struct member *m, const struct member_set *s)
{
    return m->alive && s->matches && s->attached && s->established && !s->parked;
}

void view_set_alive(struct view *v, struct member *m, bool alive)
{
    v->generation++;
    m->alive = alive;
    for (uint32_t i = 0; !alive && i < MEMBER_SETS_MAX; i++)
        m->sets[i].stale = true;
    for (uint32_t i = 0; i < MEMBER_SETS_MAX; i++)
        if (m->sets[i].attached)
            v->rounds[i].valid = false;
}

void view_renew(struct view *v, struct member *m)
{
    view_set_alive(v, m, m->alive);
    memset(m->sets, 0, sizeof m->sets);
    reorder_init(&m->reorder);
    replay_fini(&m->replay);
    rtt_init(&m->rtt);
}

void view_answer(struct view *v, struct member *m)
{
    m->pong_due = true;
    heap_move(&v->due, view_slot(v, m), (sleet_time){0});
}

static const struct member_set *said(const struct view *v, uint32_t slot, uint32_t set)
{
    return &v->members[slot].sets[set];
}

/* Count in a member that is new to the summary, or whose round rose. */
static void count_in(const struct view *v, struct view_rounds *r, uint32_t slot, uint32_t set,
                     bool new)
{
    const struct member_set *s = said(v, slot, set);
    const struct member_set *best = r->furthest ? said(v, r->furthest, set) : NULL;
    uint64_t open = member_open_round(s);
    if (!best || s->round > best->round || (s->round == best->round && s->lineage < best->lineage))
        r->furthest = slot;
    best = r->heaviest ? said(v, r->heaviest, set) : NULL;
    if (!best || lineage_heavier(s->weight, s->lineage, best->weight, best->lineage))
        r->heaviest = slot;
    if (s->lineage != r->lineage)
        return;
    r->n += new;
    r->joined = s->round > r->joined ? s->round : r->joined;
    if (slot == r->first)
        return;
    if (!r->first || open >= member_open_round(said(v, r->first, set))) {
        r->second = r->first;
        r->first = slot;
    } else if (!r->second || open > member_open_round(said(v, r->second, set))) {
        r->second = slot;
    }
}

void view_learn(struct view *v, struct member *m, uint32_t set, const struct member_set *now)
{
    struct member_set *s = &m->sets[set], old = *s;
    bool did = counts(m, s);
    *s = *now;
    s->stale = false;
    bool does = counts(m, s);
    if (old.attached != s->attached || old.matches != s->matches || did != does ||
        old.lineage != s->lineage || old.stale)
        v->generation++;
    if (did && (!does || old.lineage != s->lineage || old.round > s->round ||
                old.weight > s->weight ||
                member_open_round(&old) > member_open_round(s)))
        v->rounds[set].valid = false;
    else if (does && v->rounds[set].valid)
        count_in(v, &v->rounds[set], view_slot(v, m), set, !did);
}

/* ---- what the others do ------------------------------------------------------ */

static struct view_rounds *rounds_of(struct view *v, uint32_t set, uint64_t lineage)
{
    struct view_rounds *r = &v->rounds[set];
    if (r->valid && r->lineage == lineage)
        return r;
    *r = (struct view_rounds){.valid = true, .lineage = lineage};
    for (uint32_t i = 1; i < v->n; i++)
        if (counts(&v->members[i], said(v, i, set)))
            count_in(v, r, i, set, true);
    return r;
}

struct member_rounds view_rounds(struct view *v, uint32_t set, uint64_t lineage)
{
    const struct view_rounds *r = rounds_of(v, set, lineage);
    struct member_rounds out = {.n = r->n, .joined = r->joined};
    if (r->first)
        out.highest = out.second = member_open_round(said(v, r->first, set));
    if (r->second)
        out.second = member_open_round(said(v, r->second, set));
    return out;
}

const struct member_set *view_furthest(struct view *v, uint32_t set)
{
    const struct view_rounds *r = rounds_of(v, set, v->rounds[set].lineage);
    return r->furthest ? said(v, r->furthest, set) : NULL;
}

const struct member_set *view_heaviest(struct view *v, uint32_t set)
{
    const struct view_rounds *r = rounds_of(v, set, v->rounds[set].lineage);
    return r->heaviest ? said(v, r->heaviest, set) : NULL;
}

uint64_t members_joining_round(const struct member *m, uint32_t n, uint32_t set)
{
    uint64_t highest = 0;
    for (uint32_t i = 1; i < n; i++) {
        const struct member_set *s = &m[i].sets[set];
        if (m[i].alive && s->matches && s->attached && !s->established &&
            member_open_round(s) > highest)
            highest = member_open_round(s);
    }
    return highest;
}
