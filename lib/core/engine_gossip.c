/* Who is a member, found out together: member/swim.h behind the view.
 * Members heard of get a slot and are greeted, those accused are left out of groups until
 * they are heard, those long dead give their slots back. */
#include "engine_internal.h"
#include "session/gate.h"
#include "session/keys.h"
#include <string.h>

#define LOOK_GAP SEC(5)     /* between two looks for slots to give back */
#define COMPLAIN_GAP SEC(60)
#define ALONE_AFTER SEC(5)

/* Does this node take members that it has no address of? */
static bool takes_strangers(const engine *e)
{
    return e->gate || e->config.open_join;
}

bool gossip_begin(engine *e)
{
    struct swim_config c = {.node_id = e->config.node_id,
                            .boot_id = e->config.boot_id,
                            .seed = e->config.seed,
                            .period = e->config.ping,
                            .timeout = e->config.ping / 5,
                            .listed_only = !takes_strangers(e)};
    c.at[CANDIDATE_V4] = e->config.advertised[0];
    c.at[CANDIDATE_V6] = e->config.advertised[1];
    if (e->gate)
        memcpy(c.key, e->gate->self.public_key, sizeof c.key);
    e->look_at = time_add(e->now, LOOK_GAP);
    e->complain_at = time_add(e->now, ALONE_AFTER);
    return swim_init(&e->swim, &c, e->now);
}

static struct swim_member *record_of(engine *e, const struct member *m)
{
    return m->swim ? &e->swim.members[m->swim] : NULL;
}

/* ---- addresses ------------------------------------------------------------------ */

/* Of no use to anybody on another machine. */
static bool of_this_machine(const sleet_addr *a)
{
    static const uint8_t v4[12] = {[10] = 0xff, [11] = 0xff}, zeros[15];
    if (memcmp(a->ip, v4, sizeof v4) == 0)
        return a->ip[12] == 127 || a->ip[12] == 0;
    return memcmp(a->ip, zeros, sizeof zeros) == 0 && a->ip[15] <= 1; /* :: and ::1 */
}

/* Nor beyond one link, since a scope means nothing elsewhere. */
static bool of_this_link(const sleet_addr *a)
{
    return a->ip[0] == 0xfe && (a->ip[1] & 0xc0) == 0x80;
}

static void strip(struct wire_members *f, const sleet_addr *receiver)
{
    bool here = of_this_machine(receiver);
    for (unsigned i = 0; i < f->n; i++) {
        for (unsigned k = 0; k < WIRE_CANDIDATES; k++) {
            sleet_addr *a = &f->updates[i].at[k];
            if (of_this_link(a) || (!here && of_this_machine(a)))
                *a = (sleet_addr){0};
        }
    }
}

/* The candidate after the one that is tried now. */
static bool next_address(const struct wire_update *r, const sleet_addr *now, sleet_addr *next)
{
    uint32_t at = 0;
    while (at < WIRE_CANDIDATES && !addr_equal(&r->at[at], now))
        at++;
    for (uint32_t i = 1; i <= WIRE_CANDIDATES; i++) {
        const sleet_addr *a = &r->at[(at + i) % WIRE_CANDIDATES];
        if (!a->port || of_this_link(a))
            continue;
        *next = *a;
        return true;
    }
    return false;
}

void gossip_try_address(engine *e, struct member *m)
{
    const struct swim_member *r = record_of(e, m);
    sleet_addr next;
    if (m->session || m->listed || !r || m->hello_gap == 0)
        return;
    if (next_address(&r->record, &m->addr, &next) && !addr_equal(&next, &m->addr))
        view_move(&e->view, m, &next);
}

/* ---- slots ------------------------------------------------------------------------ */

void gossip_unlink(engine *e, struct member *m)
{
    if (m->swim) {
        e->swim.members[m->swim].slot = 0;
        e->swim.members[m->swim].mute = true;
    }
    m->swim = 0;
}

static bool referred_to(const engine *e, const struct member *m)
{
    for (uint32_t i = 0; i < ENGINE_SETS_MAX; i++)
        if (e->sets[i].used && set_refers_to(&e->sets[i], (int)view_slot(&e->view, m)))
            return true;
    return false;
}

/* Dead or gone for long, or a slot that turned out to be another one's. */
static bool is_over(engine *e, const struct member *m)
{
    const struct swim_member *r = record_of(e, m);
    if (!m->used || m->listed || m->alive)
        return false;
    if (!r)
        return !m->session && !m->node_id;
    return !swim_live(r) && time_since(e->now, r->since) >= KEEP_DEAD;
}

/* One was heard of that has no slot yet: greet it, as it is told to greet us. */
static void invite(engine *e, uint32_t number)
{
    struct swim_member *r = &e->swim.members[number];
    struct member *m = view_by_id(&e->view, r->record.node_id);
    sleet_addr at, none = {0};
    if (!m) {
        if (!takes_strangers(e) || !engine_admits(e, r->record.node_id) || !swim_live(r) || !next_address(&r->record, &none, &at))
            return;
        m = view_at(&e->view, &at); /* a listed one that has not answered yet? */
        if (!m || m->session || m->node_id)
            m = engine_add_member(e, &at);
    }
    if (!m) {
        if (!e->full)
            LOG(&e->config.log, LOG_WARN, FAULT_LOCAL, "no-room-for-member",
                F_X("node", r->record.node_id), F_U("room", e->view.room));
        e->full = true;
        return;
    }
    if (m->peer && !m->peer->key_known && key_node_id(r->record.key) == r->record.node_id) {
        memcpy(m->peer->key, r->record.key, sizeof m->peer->key);
        m->peer->key_known = true;
    }
    m->node_id = r->record.node_id;
    m->swim = number;
    r->slot = view_slot(&e->view, m);
    r->mute = !m->session;
    m->hello_at = e->now;
    if (e->view.count > CROWD) /* as in session_begin() */
        m->hello_at.ns += rng_below(&e->rng, e->view.count / CROWD * (uint32_t)MS(100));
    member_timer(e, m);
}

static void give_back_slots(engine *e)
{
    e->look_at = time_add(e->now, LOOK_GAP);
    for (uint32_t i = 1; i < e->view.n; i++) {
        struct member *m = &e->members[i];
        if (!is_over(e, m) || referred_to(e, m))
            continue;
        LOG(&e->config.log, LOG_INFO, FAULT_NONE, "member-forgotten", F_X("node", m->node_id));
        engine_remove_member(e, m);
    }
    for (uint32_t i = 1; i < e->swim.used; i++) /* there may be room again */
        if (e->swim.members[i].record.node_id && !e->swim.members[i].slot)
            invite(e, i);
}

/* ---- what the session and the pings tell --------------------------------------------- */

void gossip_met(engine *e, struct member *m)
{
    struct wire_update who = {.node_id = m->node_id, .boot_id = m->boot_id};
    struct swim_member *r = record_of(e, m);
    who.at[CANDIDATE_OBSERVED] = m->addr;
    who.at[CANDIDATE_OBSERVED].scope = 0;
    if (m->peer)
        memcpy(who.key, m->peer->key, sizeof who.key);
    if (r && r->record.node_id != m->node_id)
        gossip_unlink(e, m); /* another node is at this address now */
    uint32_t number = swim_meet(&e->swim, &who, e->now);
    m->swim = number == SWIM_NONE ? 0 : number;
    if (!m->swim)
        return;
    r = record_of(e, m);
    r->slot = view_slot(&e->view, m);
    r->mute = true; /* until a PING shows that it has the session as well */
}

void gossip_told(engine *e, struct member *m)
{
    if (m->swim)
        swim_unmute(&e->swim, m->swim, e->now);
}

void gossip_moved(engine *e, struct member *m)
{
    struct swim_member *r = record_of(e, m);
    if (!r)
        return;
    r->record.at[CANDIDATE_OBSERVED] = m->addr;
    r->record.at[CANDIDATE_OBSERVED].scope = 0;
}

void gossip_closed(engine *e, struct member *m)
{
    if (!m->swim)
        return;
    e->swim.members[m->swim].mute = true;
    if (m->left)
        swim_left(&e->swim, m->swim, e->now);
}

/* What is between this node and itself when both slots are one node: `kept` had the id first. */
void gossip_merge(engine *e, struct member *m, struct member *kept)
{
    sleet_addr at = m->addr;
    kept->listed |= m->listed;
    LOG(&e->config.log, LOG_INFO, FAULT_NONE, "members-merged", F_X("node", kept->node_id));
    gossip_unlink(e, m);
    m->listed = m->session = false;
    m->node_id = m->boot_id = 0;
    m->hello_at = TIME_NEVER;
    view_set_alive(&e->view, m, false);
    if (referred_to(e, m))
        member_timer(e, m);
    else
        engine_remove_member(e, m);
    if (!kept->alive)
        view_move(&e->view, kept, &at);
    kept->told = false; /* it may use the other slot's index now */
    kept->hello_at = e->now;
    member_timer(e, kept);
}

/* The member that greets from an address not known; NULL: it is not taken. */
struct member *gossip_stranger(engine *e, const sleet_addr *from, const uint8_t *data, size_t len)
{
    struct wire_header h;
    struct wire_hello hello;
    const uint8_t *body;
    size_t body_len;
    if (e->leaving || !e->config.open_join || datagram_open(data, len, &h, &body, &body_len) != SLEET_OK ||
        h.type != WIRE_HELLO || wire_hello_decode(&hello, body, body_len) != SLEET_OK ||
        hello.node_id == e->config.node_id || strcmp(hello.job, e->config.job) != 0)
        return NULL;
    struct member *m = view_by_id(&e->view, hello.node_id);
    if (m)
        view_move(&e->view, m, from);
    else
        m = engine_add_member(e, from);
    return m;
}

bool gossip_sound(const engine *e, const struct member *m)
{
    return !m->swim || swim_sound(&e->swim, m->swim);
}

bool gossip_live(const engine *e, const struct member *m)
{
    return !m->swim || swim_live(&e->swim.members[m->swim]);
}

bool gossip_unreachable(const engine *e, const struct member *m)
{
    return m->swim && e->swim.members[m->swim].unreachable;
}

/* ---- what SWIM wants -------------------------------------------------------------------- */

static void send_frame(engine *e, struct member *m, struct wire_members *f)
{
    uint8_t body[WIRE_BODY_MAX];
    strip(f, &m->addr);
    size_t len = wire_members_encode(body, sizeof body, f);
    outbox_put(e, &m->addr, view_slot(&e->view, m), m->peer_index, WIRE_MEMBERS, body, len);
}

void gossip_behind_ping(engine *e, struct member *m)
{
    if (m->swim && e->outbox_n < OUTBOX_MAX && swim_piggyback(&e->swim, m->swim, &e->said.frame))
        send_frame(e, m, &e->said.frame);
}

/* As many as the outbox takes; the rest is still there then. */
static void say(engine *e)
{
    while (e->outbox_n < OUTBOX_MAX && swim_send(&e->swim, &e->said)) {
        struct swim_member *r = &e->swim.members[e->said.to];
        struct member *m = r->slot ? &e->members[r->slot] : NULL;
        if (!m || !m->session)
            continue;
        r->patience = rtt_timeout(&m->rtt);
        if (e->said.ping && e->swim.mesh)
            continue; /* it is asked each period */
        if (e->said.ping) {
            m->probe_due = true;
            member_timer(e, m);
        } else {
            send_frame(e, m, &e->said.frame);
        }
    }
}

static void take_change(engine *e, uint32_t number)
{
    struct swim_member *r = &e->swim.members[number];
    struct member *m = r->slot ? &e->members[r->slot] : NULL;
    if (!m) {
        invite(e, number);
        return;
    }
    if (r->record.boot_id == m->boot_id && r->record.status == STATUS_LEFT && !m->left) {
        m->left = true;
        for (uint32_t i = 0; i < ENGINE_SETS_MAX; i++)
            set_forget(&e->sets[i], m->node_id); /* as if it had told this node itself */
    }
    if (m->session && ((r->record.boot_id != m->boot_id && swim_live(r)) || r->unreachable)) {
        m->told &= m->peer || r->unreachable; /* it lives anew, or has forgotten us: greet it */
        if (m->peer)
            m->peer->renew = true;
        m->hello_at = e->now;
    }
    member_review(e, m);
    member_timer(e, m);
}

static void complain(engine *e)
{
    uint32_t sessions = 0;
    e->complain_at = time_add(e->now, COMPLAIN_GAP);
    for (uint32_t i = 1; i < e->view.n; i++)
        sessions += e->members[i].session;
    for (uint32_t i = 1; sessions == 0 && i < e->view.n; i++) {
        char text[ADDR_TEXT_MAX];
        if (e->members[i].listed)
            LOG(&e->config.log, LOG_WARN, FAULT_REMOTE, "peer-silent",
                F_S("address", addr_text(text, &e->members[i].addr)));
    }
}

void gossip_expire(engine *e)
{
    e->swim.mesh = e->view.count <= CROWD;
    if (!time_before(e->now, swim_deadline(&e->swim)))
        swim_expire(&e->swim, e->now);
    say(e);
    for (uint32_t k = swim_changed(&e->swim); k != SWIM_NONE; k = swim_changed(&e->swim))
        take_change(e, k);
    if (!time_before(e->now, e->look_at))
        give_back_slots(e);
    if (!time_before(e->now, e->complain_at))
        complain(e);
}

sleet_time gossip_deadline(const engine *e)
{
    if (e->swim.changed_first != GOSSIP_END)
        return e->now;
    return time_min(swim_deadline(&e->swim), time_min(e->look_at, e->complain_at));
}

void gossip_recv(engine *e, struct member *m, const uint8_t *body, size_t len)
{
    struct wire_members *f = &e->said.frame;
    if (wire_members_decode(f, body, len) != SLEET_OK) {
        e->counters.corrupt++;
        return;
    }
    e->counters.accepted++;
    if (m->swim)
        swim_recv(&e->swim, m->swim, f, e->now);
}
