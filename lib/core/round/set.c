/* A set's rounds: which number to join, starting, closing, the window. */
#include "round/round.h"
#include "base/bitmap.h"
#include "base/rng.h"
#include <stdlib.h>
#include <string.h>

#define DEADLINE_STEP SEC(2)
#define DEADLINE_EXACT SEC(30)
#define RETRY MS(20)
#define KEEP_LEAST (16u << 20) /* bytes */

static struct member_rounds others(const struct set *s, const struct env *e)
{
    uint64_t lineage = s->lineage;
    if (!s->established && !set_heaviest_lineage(s, e, &lineage))
        return (struct member_rounds){0};
    return view_rounds(e->view, (uint32_t)s->handle, lineage);
}

uint64_t set_job_round(const struct set *s, const struct env *e)
{
    struct member_rounds o = others(s, e);
    return o.second > s->own_round ? o.second : s->own_round;
}

static struct round *find(const struct set *s, uint64_t number)
{
    struct round *r = s->ring[number % ROUNDS_RING];
    if (!r || r->number != number)
        return NULL;
    r->quiet_until = (sleet_time){0};
    return r;
}

static void retire(struct set *s, const struct env *e, uint32_t slot)
{
    struct round *r = s->ring[slot];
    if (!r)
        return;
    ledger_finish(s, r, e, true);
    round_free(r);
    s->ring[slot] = NULL;
}

/* Commits of past rounds serve those who still miss some, the newest first within
 * keep_bytes; by default two shares, and 16 MiB where that is more. */
static void bound_kept(struct set *s, const struct env *e, uint64_t job)
{
    uint64_t kept = 0;
    for (uint64_t back = 1; back < ROUNDS_RING && back < job; back++) {
        struct round *r = find(s, job - back);
        if (!r || r == s->open || !r->own.commit)
            continue;
        uint64_t bytes = (uint64_t)r->lane[r->self].share * FRAGMENT_ELEMENTS * sizeof(float);
        uint64_t most = 2 * bytes > KEEP_LEAST ? 2 * bytes : KEEP_LEAST;
        kept += bytes;
        if (kept > (e->config->keep_bytes ? e->config->keep_bytes : most))
            owner_drop_commits(r);
    }
}

/* The round `number` with its group pinned, made if it is new. */
static struct round *pin(struct set *s, const struct env *e, uint64_t number, sleet_time now)
{
    struct group g;
    struct round **slot = &s->ring[number % ROUNDS_RING];
    if (*slot && (*slot)->number == number)
        return *slot;
    if ((*slot && ((*slot)->number > number || *slot == s->open)) || !set_group(s, e, number, &g))
        return NULL;
    retire(s, e, number % ROUNDS_RING);
    bound_kept(s, e, set_job_round(s, e));
    *slot = round_new(&s->layout, &g, group_rank(&g, e->members[0].node_id), number, now);
    return *slot;
}

/* The same for a round that a datagram names; NULL outside the window. */
struct round *set_round(struct set *s, const struct env *e, uint64_t number, sleet_time now)
{
    struct round *r = find(s, number);
    uint64_t job = set_job_round(s, e);
    if (r || !s->attached || number == 0 || number > job + 1 || number + e->config->window < job)
        return r;
    return pin(s, e, number, now);
}

static void finish_report(struct set *s, int error, const sleet_report *p)
{
    s->report = *p;
    s->event_error = error;
    s->event = true;
    if (error)
        return;
    s->low_in_a_row = p->flags & SLEET_LOW_COVERAGE ? s->low_in_a_row + 1 : 0;
    s->report.low_in_a_row = s->low_in_a_row;
    s->reports++;
    s->coverage_sum += p->coverage;
    if (p->elapsed_ns > s->longest)
        s->longest = p->elapsed_ns;
    s->history[s->history_n++ % SET_HISTORY] = (engine_round){.round = p->round,
                                                              .joined = p->round != 0,
                                                              .group_size = p->group_size,
                                                              .flags = p->flags,
                                                              .coverage = p->coverage,
                                                              .elapsed = p->elapsed_ns};
}

static void drop_pending(struct set *s)
{
    free(s->pending.send);
    free(s->pending.result);
    s->pending.send = NULL;
    s->pending.result = NULL;
    s->waiting = s->alone.active = false;
}

static void copy_fragment(const struct set *s, uint32_t fragment, const void *const *send,
                          void *const *result)
{
    uint32_t tensor, n;
    uint64_t offset;
    layout_locate(&s->layout, fragment, &tensor, &offset, &n);
    memcpy((float *)result[tensor] + offset, (const float *)send[tensor] + offset, n * sizeof(float));
}

/* Own values as the result, a slice a call, then the report: nobody to average with. */
static void go_on_alone(struct set *s, const struct env *e, sleet_time now)
{
    for (uint32_t i = 0; i < SLICE_FRAGMENTS && s->alone.next < s->layout.fragments; i++)
        copy_fragment(s, s->alone.next++, s->pending.send, s->pending.result);
    if (s->alone.next < s->layout.fragments)
        return;
    struct group self = {.n = 1};
    double least = s->pending.options.least_coverage;
    sleet_report p = {.round = s->alone.round, .group_size = 1, .flags = s->alone.flags};
    self.members[0].node_id = e->members[0].node_id;
    p.expected = set_expected(s, e, &self, 0, now);
    if (p.flags & SLEET_ALONE)
        p.expected += others(s, e).n;
    p.coverage = 1.0 / p.expected;
    p.flags |= p.coverage < (least > 0 ? least : 0.5) ? SLEET_LOW_COVERAGE : 0;
    p.flags |= p.expected == 1 ? SLEET_COMPLETE : 0;
    p.elapsed_ns = time_since(now, s->pending.at);
    finish_report(s, SLEET_OK, &p);
    drop_pending(s);
}

/* `round` is 0 where the answer uses up no number. */
static void answer_alone(struct set *s, const struct env *e, uint32_t flags, uint64_t round, sleet_time now)
{
    s->alone.active = true;
    s->alone.flags = flags;
    s->alone.round = round;
    s->alone.next = 0;
    go_on_alone(s, e, now);
}

/* Own values for the commits that are missing, and into the sums of the node's share
 * while they may be read; a slice a call, true when all is done. */
static bool wind_up(struct set *s, struct round *r, const struct env *e)
{
    if (r->got_n == s->layout.fragments)
        return true;
    for (uint32_t i = 0; i < SLICE_FRAGMENTS && r->wound_up < s->layout.fragments; i++) {
        uint32_t f = r->wound_up++;
        owner_wind_up(s, r, e, f);
        if (r->held[f].weight == 0)
            copy_fragment(s, f, r->send, r->result);
    }
    return r->wound_up == s->layout.fragments;
}

/* The deadline, less what the end of a large round may take: half a byte a nanosecond. */
static sleet_time last_call(const struct set *s, const struct round *r)
{
    sleet_duration whole = time_since(r->deadline, r->started);
    sleet_duration lead = (sleet_duration)(s->layout.fragments - r->got_n) * FRAGMENT_ELEMENTS * 8;
    if (lead < MS(1))
        return r->deadline;
    return time_add(r->deadline, -(lead < whole / 4 ? lead : whole / 4));
}

/* Contributors over nodes expected, the mean over the elements; own values count one. */
static double coverage(const struct set *s, const struct round *r)
{
    double present = 0, all = (double)s->layout.elements * r->expected;
    for (uint32_t t = 0; t < s->layout.n; t++) {
        const struct tensor *ten = &s->layout.tensors[t];
        for (uint32_t i = 0; i < ten->fragments; i++) {
            const struct held *h = &r->held[ten->first + i];
            uint32_t last = (uint32_t)(ten->count % FRAGMENT_ELEMENTS);
            uint32_t n = i + 1 == ten->fragments && last ? last : FRAGMENT_ELEMENTS;
            present += n * (h->weight > 0 ? (double)__builtin_popcountll(h->who) : 1.0);
        }
    }
    return all > 0 && present < all ? present / all : 1.0;
}

void set_close(struct set *s, struct round *r, const struct env *e, int error, sleet_time now)
{
    r->closing = true;
    if (error == SLEET_OK && !wind_up(s, r, e))
        return; /* set_expire() goes on */
    if (error == SLEET_OK)
        held_merge(s, r);
    bool whole = r->filled == s->layout.fragments;
    sleet_report p = {.round = r->number,
                      .skipped = r->skipped,
                      .group_size = r->group.n,
                      .expected = r->expected,
                      .flags = r->flags,
                      .elapsed_ns = time_since(now, r->started)};
    p.coverage = coverage(s, r);
    if (p.coverage < r->least_coverage)
        p.flags |= SLEET_LOW_COVERAGE;
    if (whole && p.coverage >= 1.0)
        p.flags |= SLEET_COMPLETE;
    if (!s->established) {
        p.flags |= SLEET_JOINING;
        if (whole && error == SLEET_OK && set_heaviest_lineage(s, e, &s->lineage))
            s->established = true;
    }
    ledger_side g = {0};
    ledger_gather(r, &g);
    p.fragments_expected = g.expected;
    p.fragments_direct = g.direct;
    p.fragments_repaired = g.repaired;
    p.fragments_late = g.late;
    p.fragments_lost = g.lost;
    p.fragments_unsent = g.unsent;
    r->flags = p.flags;
    if (p.flags & (SLEET_DEADLINE | SLEET_JOINING))
        s->announced |= SET_UNTOLD; /* those behind must not join what has closed here */
    r->closed = true;
    r->quiet_until = (sleet_time){0};
    s->open = NULL;
    if (!s->established && others(s, e).joined < r->number)
        s->own_round = r->number - 1; /* nobody came, nothing was sent: be here next time */
    for (uint32_t i = 0; i < r->group.n; i++)
        if ((int)i != r->self && r->contributes && r->lane[i].scatter_pos < r->lane[i].share)
            r->lane[i].summary_due = true;
    finish_report(s, error, &p);
}

void set_withdraw(struct set *s, const struct env *e, sleet_time now)
{
    if (s->open) {
        set_close(s, s->open, e, SLEET_ECANCELED, now);
        s->event = false;
    }
    drop_pending(s);
}

static void establish(struct set *s, const struct env *e, sleet_time now)
{
    uint64_t lineage;
    if (!s->established && !set_heaviest_lineage(s, e, &lineage) && set_may_found(s, e, now)) {
        s->established = true;
        s->lineage = mix64(e->members[0].node_id ^ mix64(e->members[0].boot_id)) | 1;
    }
}

static sleet_time pending_deadline(const struct set *s)
{
    const sleet_round_options *o = &s->pending.options;
    return time_add(s->pending.at, o->deadline_ns ? o->deadline_ns
                                   : o->exact     ? DEADLINE_EXACT
                                                  : DEADLINE_STEP);
}

static void join(struct set *s, struct round *r, const struct env *e, sleet_time now)
{
    const sleet_round_options *o = &s->pending.options;
    r->joined = true;
    r->contributes = r->contributes && s->established;
    r->send = s->pending.send;
    r->result = s->pending.result;
    s->pending.send = NULL;
    s->pending.result = NULL;
    s->waiting = false;
    r->weight = o->weight > 0 ? (float)o->weight : 1;
    r->least_coverage = o->least_coverage > 0 ? o->least_coverage : 0.5;
    r->quorum = o->quorum;
    r->exact |= o->exact != 0;
    r->quiet_until = (sleet_time){0};
    r->started = s->pending.at;
    r->deadline = pending_deadline(s);
    r->expected = set_expected(s, e, &r->group, r->number, now);
    r->skipped = s->own_round ? r->number - s->own_round - 1 : 0;
    s->own_round = r->number;
    s->open = r;
    for (uint32_t i = 0; i < r->group.n; i++) {
        const struct member *m = &e->members[r->group.members[i].slot];
        r->lane[i].summary_at = time_add(now, MS(2) + (m->rtt.valid ? m->rtt.srtt : MS(1)));
        r->lane[i].summary_due |= (int)i != r->self && !r->lane[i].share;
    }
    owner_check(s, r, e, now);
    if (gather_complete(s, r, e, now))
        set_close(s, r, e, SLEET_OK, now);
}

/* Nothing to exchange: everybody's result is right at once. */
static void report_nothing(struct set *s, const struct env *e, uint64_t number, sleet_time now)
{
    struct group g = {.n = 1, .members = {{.node_id = e->members[0].node_id}}};
    if (!s->established)
        s->established = set_heaviest_lineage(s, e, &s->lineage);
    set_group(s, e, number, &g);
    sleet_report p = {.round = number,
                      .coverage = 1,
                      .group_size = g.n,
                      .expected = set_expected(s, e, &g, number, now),
                      .flags = SLEET_COMPLETE,
                      .elapsed_ns = time_since(now, s->pending.at)};
    s->own_round = number;
    finish_report(s, SLEET_OK, &p);
    drop_pending(s);
}

/* Members of the same model are out of reach, not gone: their rounds go on elsewhere. */
static bool cut_off(const struct set *s, const struct env *e)
{
    for (uint32_t i = 1; i < e->n; i++) {
        const struct member *m = &e->members[i];
        const struct member_set *theirs = &m->sets[s->handle];
        if (m->session && !m->alive && !m->left && theirs->established && theirs->lineage == s->lineage)
            return true;
    }
    return false;
}

/* A joiner that waits takes the round whose commits it is sent. */
void set_join_served(struct set *s, struct round *r, const struct env *e, sleet_time now)
{
    if (s->waiting && !s->established && !r->joined && r->number > s->own_round)
        join(s, r, e, now);
}

/* Pin a group and join, or answer at once where there is nobody; DESIGN 5.1. */
void set_retry_start(struct set *s, const struct env *e, sleet_time now)
{
    struct member_rounds o;
    struct group g;
    if (s->alone.active) {
        go_on_alone(s, e, now);
        return;
    }
    establish(s, e, now);
    o = others(s, e);
    uint64_t number = s->own_round + 1 > o.second ? s->own_round + 1 : o.second;
    bool late = !time_before(now, pending_deadline(s));
    if (!s->layout.elements) {
        report_nothing(s, e, number, now);
        return;
    }
    if (!o.n && s->established) { /* only joiners around: meet them where they are */
        uint64_t theirs = members_joining_round(e->members, e->n, (uint32_t)s->handle);
        if (theirs > number && theirs <= number + e->config->window)
            number = theirs;
    }
    /* A single other takes the highest round, so it follows; several take the second-highest. */
    uint64_t reached = o.n > 1 ? o.joined : o.highest;
    if (o.n && s->established && number > reached + 1) {
        answer_alone(s, e, SLEET_ALONE, 0, now);
        return;
    }
    if (!set_group(s, e, number, &g)) {
        if (late)
            answer_alone(s, e, SLEET_JOINING | SLEET_DEADLINE, 0, now);
        return;
    }
    if (g.n == 1 && !find(s, number) && cut_off(s, e)) {
        answer_alone(s, e, SLEET_ALONE, 0, now); /* uses up no number */
        return;
    }
    if (g.n == 1 && !find(s, number)) {
        s->own_round = number;
        answer_alone(s, e, 0, number, now);
        return;
    }
    struct round *r = find(s, number);
    if (r && r->closed)
        retire(s, e, number % ROUNDS_RING); /* joined before in vain, see set_close() */
    r = pin(s, e, number, now);
    if (r && !r->joined)
        join(s, r, e, now);
    else if (late)
        answer_alone(s, e, SLEET_DEADLINE, 0, now);
}

static int copy_tables(struct set *s, const void *const *send, void *const *result)
{
    size_t n = s->layout.n + 1u;
    s->pending.send = calloc(n, sizeof *s->pending.send);
    s->pending.result = calloc(n, sizeof *s->pending.result);
    if (!s->pending.send || !s->pending.result)
        return SLEET_ENOMEM;
    memcpy(s->pending.send, send, s->layout.n * sizeof *s->pending.send);
    memcpy(s->pending.result, result, s->layout.n * sizeof *s->pending.result);
    return SLEET_OK;
}

int set_start(struct set *s, const struct env *e, const void *const *send, void *const *result,
              const sleet_round_options *o, sleet_time now)
{
    if (o->deadline_ns < 0 || o->deadline_ns > SEC(3600) || !(o->weight >= 0 && o->weight < 1e30) ||
        !(o->least_coverage >= 0 && o->least_coverage <= 1))
        return SLEET_EINVAL;
    if (!s->attached)
        return SLEET_ESTATE;
    if (s->schema_differs)
        return SLEET_ESCHEMA;
    set_withdraw(s, e, now);
    if (copy_tables(s, send, result) != SLEET_OK) {
        drop_pending(s);
        return SLEET_ENOMEM;
    }
    s->event = false;
    s->pending.options = *o;
    s->pending.at = now;
    s->waiting = true;
    if (s->own_round && set_job_round(s, e) > s->own_round + e->config->window)
        s->established = false; /* away too long: take the others' model */
    set_retry_start(s, e, now);
    return SLEET_OK;
}

/* Longer than several polls and their answers can get lost. */
static sleet_duration silence_limit(const struct set *s)
{
    sleet_duration limit = 2 * budget_now(&s->budget);
    return limit > MS(500) ? limit : MS(500);
}

/* Members that keep a round waiting and answer no poll are left out until they speak. */
static void suspect_silent(struct set *s, struct round *r, const struct env *e, sleet_time now)
{
    sleet_duration limit = silence_limit(s);
    if (time_since(now, r->started) < limit)
        return;
    for (uint32_t i = 0; i < r->group.n; i++) {
        struct member *m = &e->members[r->group.members[i].slot];
        if ((int)i == r->self || gather_done_from(s, r, e, i, now) || time_since(now, m->heard) < limit)
            continue;
        view_set_alive(e->view, m, false);
        LOG(&e->config->log, LOG_WARN, FAULT_REMOTE, "member-silent", F_X("node", m->node_id),
            F_U("round", r->number), F_F("silent_s", (double)time_since(now, m->heard) / 1e9));
    }
}

void set_expire(struct set *s, const struct env *e, sleet_time now)
{
    struct round *r = s->open;
    if (s->waiting)
        set_retry_start(s, e, now);
    if (r && (r->closing || !time_before(now, last_call(s, r)))) {
        r->flags |= r->closing ? 0 : SLEET_DEADLINE;
        set_close(s, r, e, SLEET_OK, now);
    }
    uint64_t job = set_job_round(s, e);
    if (s->open && s->open->number + e->config->window < job)
        set_close(s, s->open, e, SLEET_OK, now); /* the others no longer serve it */
    for (uint32_t i = 0; i < ROUNDS_RING; i++) {
        r = s->ring[i];
        if (!r)
            continue;
        if (!r->own.final || r == s->open)
            r->quiet_until = (sleet_time){0};
        owner_check(s, r, e, now);
        if (r == s->open)
            suspect_silent(s, r, e, now);
        if (r == s->open && gather_complete(s, r, e, now))
            set_close(s, r, e, SLEET_OK, now);
        if (r != s->open && r->number + e->config->window < job)
            retire(s, e, i);
    }
}

sleet_time set_deadline(const struct set *s, const struct env *e, sleet_time now)
{
    sleet_time t = s->waiting ? time_min(time_add(now, RETRY), pending_deadline(s)) : TIME_NEVER;
    if (s->alone.active || (s->open && s->open->closing))
        return now;
    if (s->open) {
        sleet_time look = time_add(s->open->started, silence_limit(s));
        if (!time_before(now, look))
            look = time_add(now, MS(50));
        t = time_min(t, time_min(last_call(s, s->open), look));
        t = time_min(t, gather_deadline(s, s->open, e, now));
    }
    for (uint32_t i = 0; i < ROUNDS_RING; i++)
        if (s->ring[i])
            t = time_min(t, time_min(owner_deadline(s, s->ring[i]), feedback_deadline(s, s->ring[i], e, now)));
    return t;
}

void set_fini(struct set *s)
{
    for (uint32_t i = 0; i < ROUNDS_RING; i++)
        round_free(s->ring[i]);
    drop_pending(s);
    layout_fini(&s->layout);
    memset(s, 0, sizeof *s);
}
