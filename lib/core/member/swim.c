/* Life and probes of SWIM. */
#include "member/swim.h"
#include <math.h>
#include <string.h>

/* ---- life ---------------------------------------------------------------------- */

static void set_default(struct swim_config *c)
{
#define DEFAULT(field, value)                                                                      \
    if (c->field == 0)                                                                             \
    c->field = (value)
    DEFAULT(period, SEC(1));
    DEFAULT(timeout, MS(200));
    DEFAULT(tombstone, SEC(600));
    DEFAULT(suspicion, 5);
    DEFAULT(spread, 4);
#undef DEFAULT
}

bool swim_init(struct swim *s, const struct swim_config *c, sleet_time now)
{
    *s = (struct swim){
        .config = *c, .now = now, .probe.target = SWIM_NONE, .sync = {.first = true, .gap = 1}};
    set_default(&s->config);
    gossip_init(&s->news);
    s->rng.state = c->seed ^ mix64(c->node_id ^ mix64(c->boot_id));
    s->changed_first = GOSSIP_END;
    s->gossip_at = s->sync_at = TIME_NEVER;
    s->defended = (sleet_time){INT64_MIN / 2};
    struct swim_member *self = swim_insert(s, c->node_id);
    if (!self) {
        swim_fini(s);
        return false;
    }
    self->record.boot_id = c->boot_id;
    memcpy(self->record.key, c->key, sizeof c->key);
    memcpy(self->record.at, c->at, sizeof c->at);
    swim_set_status(s, SWIM_SELF, STATUS_ALIVE, 0);
    swim_news(s, SWIM_SELF);
    s->period_at = time_add(now, rng_below(&s->rng, 1000) * (s->config.period / 1000));
    return true;
}

void swim_fini(struct swim *s)
{
    free(s->members);
    free(s->by_id);
    free(s->order);
    heap_fini(&s->due);
    gossip_fini(&s->news);
    *s = (struct swim){0};
}

uint64_t swim_bytes(const struct swim *s)
{
    return s->room * (sizeof *s->members + sizeof *s->by_id + sizeof *s->order +
                      sizeof *s->news.link + sizeof *s->due.at + 2 * sizeof *s->due.order);
}

/* ---- arithmetic of the papers -------------------------------------------------------- */

/* The whole number of decades: ceil(log10(n + 1)). */
uint32_t swim_sends(const struct swim *s)
{
    uint32_t decades = 1;
    for (uint32_t n = s->live; n >= 10; n /= 10)
        decades++;
    uint32_t sends = s->config.spread * decades;
    return sends < GOSSIP_SENDS_MAX ? sends : GOSSIP_SENDS_MAX;
}

/* Lifeguard, section IV.B: from six times the least down to the least, by the logarithm of
 * the confirmations.  Where fewer than K others could confirm, the least. */
sleet_duration swim_suspicion(const struct swim *s, uint32_t confirmations)
{
    double decades = log((double)s->live + 1) / log(10);
    double least = s->config.suspicion * (decades > 1 ? decades : 1) * (double)s->config.period;
    double most = 6 * least;
    if (s->config.lifeguard_off || s->live < SWIM_CONFIRMATIONS + 2)
        return (sleet_duration)least;
    double t = most - (most - least) * log(confirmations + 1.0) / log(SWIM_CONFIRMATIONS + 1.0);
    return (sleet_duration)(t < least ? least : t);
}

static void sicken(struct swim *s, uint32_t by)
{
    if (s->config.lifeguard_off)
        return;
    s->health = s->health + by < SWIM_HEALTH_MAX ? s->health + by : SWIM_HEALTH_MAX;
}

static sleet_duration stretched(const struct swim *s, sleet_duration d)
{
    return d * (1 + (sleet_duration)s->health);
}

/* ---- orders: what is to be sent --------------------------------------------------------- */

void swim_order(struct swim *s, uint32_t to, uint8_t kind, uint32_t sequence, uint64_t subject)
{
    if (s->orders_n == SWIM_ORDERS)
        return; /* as if the network had lost it */
    uint32_t at = (s->orders_at + s->orders_n++) % SWIM_ORDERS;
    s->orders[at] = (struct swim_order){
        .kind = kind, .to = (uint16_t)to, .sequence = sequence, .subject = subject};
}

static void answer(struct swim *s, const struct swim_relay *r, bool heard)
{
    uint32_t asker = swim_find(s, r->asker);
    if (asker == SWIM_NONE || s->orders_n == SWIM_ORDERS)
        return;
    swim_order(s, asker, MEMBERS_PROBE_ANSWER, r->sequence, r->target);
    s->orders[(s->orders_at + s->orders_n - 1) % SWIM_ORDERS].flags = heard ? MEMBERS_HEARD : 0;
}

/* ---- signs of life ------------------------------------------------------------------------ */

void swim_heard_of(struct swim *s, uint64_t target)
{
    for (uint32_t i = 0; i < SWIM_RELAYS; i++) {
        if (s->relays[i].target != target)
            continue;
        answer(s, &s->relays[i], true);
        s->relays[i].target = 0;
        s->relays_n--;
    }
}

void swim_heard(struct swim *s, uint32_t number, sleet_time now)
{
    struct swim_member *m = &s->members[number];
    s->now = time_before(s->now, now) ? now : s->now;
    if (m->unreachable || (m->record.status != STATUS_ALIVE && !swim_sound(s, number)))
        swim_note_change(s, number);
    m->heard = s->now;
    m->unreachable = false;
    if (s->probe.target == number)
        s->probe.answered = true;
    if (s->relays_n)
        swim_heard_of(s, m->record.node_id);
    bool accused = m->record.status == STATUS_SUSPECT ? !s->config.lifeguard_off
                                                      : m->record.status == STATUS_DEAD;
    if (!accused || time_since(s->now, m->told) < s->config.period)
        return;
    m->told = s->now; /* so that it can defend itself */
    swim_order(s, number, MEMBERS_UPDATES, 0, 0);
}

void swim_left(struct swim *s, uint32_t number, sleet_time now)
{
    s->now = time_before(s->now, now) ? now : s->now;
    if (s->members[number].record.status == STATUS_LEFT)
        return;
    swim_set_status(s, number, STATUS_LEFT, 0);
    swim_news(s, number);
}

void swim_leave(struct swim *s, sleet_time now)
{
    s->now = time_before(s->now, now) ? now : s->now;
    swim_set_status(s, SWIM_SELF, STATUS_LEFT, 0);
    swim_news(s, SWIM_SELF);
}

bool swim_sound(const struct swim *s, uint32_t number)
{
    const struct swim_member *m = &s->members[number];
    if (m->record.status == STATUS_ALIVE || m->record.status == STATUS_LEFT)
        return m->record.status == STATUS_ALIVE;
    return !time_is_never(m->heard) && time_before(m->since, m->heard);
}

void swim_paused(struct swim *s, sleet_duration gap)
{
    for (uint32_t i = 1; i < s->used; i++) {
        struct swim_member *m = &s->members[i];
        m->since = time_add(m->since, gap);
        if (!time_is_never(m->heard))
            m->heard = time_add(m->heard, gap);
        if (m->record.node_id && !time_is_never(s->due.at[i]))
            heap_move(&s->due, i, time_add(s->due.at[i], gap));
    }
    s->probe.target = SWIM_NONE; /* its answer may lie in a full socket */
    s->period_at = time_add(s->period_at, gap);
    sicken(s, 1);
}

/* ---- probes ----------------------------------------------------------------------------- */

/* A relay that was not answered in time says so: then the asker knows that the way to the
 * helper works, and does not blame itself. */
static void relays_expire(struct swim *s)
{
    for (uint32_t i = 0; s->relays_n && i < SWIM_RELAYS; i++) {
        struct swim_relay *r = &s->relays[i];
        if (!r->target || time_before(s->now, r->until))
            continue;
        answer(s, r, false);
        r->target = 0;
        s->relays_n--;
    }
}

static void ask_helpers(struct swim *s)
{
    struct swim_probe *p = &s->probe;
    uint32_t asked[SWIM_HELPERS];
    for (int tries = 0; tries < 4 * SWIM_HELPERS && p->helpers < SWIM_HELPERS; tries++) {
        uint32_t helper = swim_random(s, p->target), i = 0;
        while (i < p->helpers && asked[i] != helper)
            i++;
        if (helper == SWIM_NONE || i < p->helpers)
            continue;
        asked[p->helpers++] = helper;
        swim_order(s, helper, MEMBERS_PROBE, p->sequence, s->members[p->target].record.node_id);
    }
    p->ask_at = TIME_NEVER;
}

static void judge(struct swim *s)
{
    struct swim_probe *p = &s->probe;
    uint32_t target = p->target;
    struct swim_member *m = &s->members[target];
    p->target = SWIM_NONE;
    if (target == SWIM_NONE || !m->record.node_id || !swim_live(m))
        return;
    bool direct = !time_is_never(m->heard) && !time_before(m->heard, p->sent_at);
    if (!direct && !m->unreachable) {
        m->unreachable = true;
        swim_note_change(s, target);
    }
    if (p->answered) {
        s->health -= s->health > 0;
        return;
    }
    uint32_t missing = p->helpers - p->refusals;
    sicken(s, p->helpers ? missing : 1);
    swim_accuse(s, target, s->config.node_id);
}

static bool needs_probe(const struct swim *s, const struct swim_member *m)
{
    return swim_live(m) &&
           (time_is_never(m->heard) || time_since(s->now, m->heard) >= s->config.period);
}

/* Round robin in an order that is shuffled each time it has been gone through. */
static uint32_t next_target(struct swim *s)
{
    for (uint32_t looked = 1; looked < s->n; looked++) {
        if (s->order_at >= s->n - 1) {
            s->order_at = 0;
            for (uint32_t i = s->n - 2; i > 0; i--) {
                uint32_t k = rng_below(&s->rng, i + 1);
                uint16_t t = s->order[i];
                s->order[i] = s->order[k];
                s->order[k] = t;
            }
        }
        uint32_t i = s->order[s->order_at++];
        if (needs_probe(s, &s->members[i]))
            return i;
    }
    return SWIM_NONE;
}

static void probe(struct swim *s, uint32_t target)
{
    struct swim_member *m = &s->members[target];
    sleet_duration wait = s->config.timeout > m->patience ? s->config.timeout : m->patience;
    if (wait > s->config.period / 2)
        wait = s->config.period / 2;
    s->probe = (struct swim_probe){.target = target,
                                   .sequence = s->probe.sequence + 1,
                                   .sent_at = s->now,
                                   .ask_at = time_add(s->now, stretched(s, wait))};
    swim_order(s, target, 0, 0, 0);
}

static void next_period(struct swim *s)
{
    judge(s);
    uint32_t target = next_target(s);
    if (target != SWIM_NONE)
        probe(s, target);
    else if (s->live > 1)
        s->health -= s->health > 0; /* all were heard without being asked */
    s->period_at = time_add(s->now, stretched(s, s->config.period));
}

void swim_doubt(struct swim *s, uint32_t number)
{
    if (s->probe.target == number || !swim_live(&s->members[number]))
        return;
    for (uint32_t i = s->order_at; i < s->n - 1; i++) {
        if (s->order[i] != number)
            continue;
        s->order[i] = s->order[s->order_at];
        s->order[s->order_at] = (uint16_t)number;
        return;
    }
}

/* ---- timers ------------------------------------------------------------------------------ */

static void member_due(struct swim *s, uint32_t number)
{
    struct swim_member *m = &s->members[number];
    if (m->record.status != STATUS_SUSPECT) {
        if (m->slot)
            heap_move(&s->due, number, time_add(s->now, s->config.period));
        else
            swim_remove(s, number);
    } else if (swim_sound(s, number)) { /* heard since: this node is no witness of its death */
        m->since = m->heard;
        heap_move(&s->due, number, time_add(s->now, swim_suspicion(s, m->accusers_n - 1u)));
    } else {
        swim_set_status(s, number, STATUS_DEAD, s->config.node_id);
        swim_news(s, number);
    }
}

static void gossip_tick(struct swim *s)
{
    uint32_t chosen[SWIM_FANOUT], n = 0;
    s->gossip_at = TIME_NEVER;
    if (!s->news.n)
        return;
    for (int tries = 0; tries < 2 * SWIM_FANOUT && n < SWIM_FANOUT; tries++) {
        uint32_t to = swim_random(s, SWIM_NONE), i = 0;
        while (i < n && chosen[i] != to)
            i++;
        if (to == SWIM_NONE || i < n)
            continue;
        chosen[n++] = to;
        swim_order(s, to, MEMBERS_UPDATES, 0, 0);
    }
    s->gossip_at = time_add(s->now, s->config.period / SWIM_TICKS);
}

void swim_expire(struct swim *s, sleet_time now)
{
    s->now = time_before(s->now, now) ? now : s->now;
    for (uint32_t i = heap_first(&s->due); !time_before(s->now, s->due.at[i]);
         i = heap_first(&s->due))
        member_due(s, i);
    relays_expire(s);
    if (s->probe.target != SWIM_NONE && !s->probe.answered && !time_before(s->now, s->probe.ask_at))
        ask_helpers(s);
    if (!time_before(s->now, s->period_at))
        next_period(s);
    if (!time_before(s->now, s->gossip_at))
        gossip_tick(s);
    if (!time_before(s->now, s->sync_at)) {
        s->sync_at = time_add(s->now, SWIM_SYNC_PERIODS * s->config.period);
        swim_sync(s);
    }
}

sleet_time swim_deadline(const struct swim *s)
{
    sleet_time t = time_min(s->period_at, time_min(s->gossip_at, s->sync_at));
    t = time_min(t, s->due.at[heap_first(&s->due)]);
    if (s->probe.target != SWIM_NONE && !s->probe.answered)
        t = time_min(t, s->probe.ask_at);
    for (uint32_t i = 0; s->relays_n && i < SWIM_RELAYS; i++)
        if (s->relays[i].target)
            t = time_min(t, s->relays[i].until);
    return s->orders_n ? s->now : t;
}

uint32_t swim_changed(struct swim *s)
{
    while (s->changed_first != GOSSIP_END) {
        uint32_t number = s->changed_first;
        struct swim_member *m = &s->members[number];
        s->changed_first = m->changed_next;
        m->changed = false;
        if (m->record.node_id)
            return number;
    }
    return SWIM_NONE;
}
