/* The start of a round: which number to join, with whom, or alone. */
#include "base/rng.h"
#include "round/round.h"
#include <stdlib.h>
#include <string.h>

#define AHEAD_MAX 16 /* rounds that others get ahead without this node, which they do not meet in them */
#define DEADLINE_STEP SEC(2)
#define DEADLINE_EXACT SEC(30)

void set_drop_pending(struct set *s)
{
    free(s->pending.send);
    free(s->pending.result);
    free(s->pending.residual);
    s->pending.residual = NULL;
    s->pending.send = NULL;
    s->pending.result = NULL;
    s->waiting = s->alone.active = false;
}

/* Own values, or 0, as the result, a slice a call, then the report: nobody to average with. */
static void go_on_alone(struct set *s, const struct env *e, sleet_time now)
{
    for (uint32_t i = 0; i < SLICE_FRAGMENTS && s->alone.next < s->layout.fragments; i++) {
        uint32_t f = s->alone.next++;
        double weight = s->pending.options.weight > 0 ? s->pending.options.weight : 1;
        set_fill_fragment(s, f, s->alone.round != 0, s->pending.send, s->pending.result);
        if (s->alone.round)
            carry_alone(s, s->pending.residual, f, weight, s->pending.result);
        else if (s->alone.flags & SLEET_ALONE)
            carry_keep(s, s->pending.residual, f, weight, s->pending.send);
    }
    if (s->alone.next < s->layout.fragments ||
        (s->alone.round && !late_fold(s, s->pending.result, NULL, &s->alone.corrected)))
        return;
    struct group self = {.n = 1};
    double least = s->pending.options.least_coverage;
    sleet_report p = {.round = s->alone.round, .group_size = 1, .flags = s->alone.flags};
    self.members[0].node_id = e->members[0].node_id;
    p.expected = set_expected(s, e, &self, 0, now);
    if (p.flags & SLEET_ALONE)
        p.expected += set_others(s, e).n;
    if (p.flags & SLEET_PARKED)
        p.expected = s->apart.common.n + 1;
    if (s->apart.isolated)
        p.flags |= SLEET_PARKED;
    p.coverage = 1.0 / p.expected;
    if (kind_additive(&s->layout.kind) && !p.round) {
        p.coverage = 0;
        p.flags |= SLEET_BEHIND;
    }
    p.flags |= p.coverage < (least > 0 ? least : 0.5) ? SLEET_LOW_COVERAGE : 0;
    p.flags |= p.expected == 1 ? SLEET_COMPLETE : 0;
    p.elapsed_ns = time_since(now, s->pending.at);
    if (p.round) /* else the others still own what they did */
        p.runs_moved = set_tell_owned(s, s->pending.owned, NULL);
    p.fragments_corrected = s->alone.corrected;
    if (p.round) { /* those that are left are this node: it is not for lack of loss that nothing comes */
        s->weight += 1;
        set_note_coverage(s, e, false);
    }
    set_report(s, SLEET_OK, &p);
    set_drop_pending(s);
}

/* `round` is 0 where the answer uses up no number. */
static void answer_alone(struct set *s, const struct env *e, uint32_t flags, uint64_t round,
                         sleet_time now)
{
    s->alone.active = true;
    s->alone.flags = flags;
    s->alone.round = round;
    s->alone.next = s->alone.corrected = 0;
    go_on_alone(s, e, now);
}

void set_withdraw(struct set *s, const struct env *e, sleet_time now)
{
    if (s->open) {
        set_close(s, s->open, e, SLEET_ECANCELED, now);
        s->event = false;
    }
    set_drop_pending(s);
}

static void establish(struct set *s, const struct env *e, sleet_time now)
{
    const struct member_set *ms = view_heaviest(e->view, (uint32_t)s->handle);
    if (s->established || set_too_many(s, e))
        return;
    if (ms && !layout_has_model(&s->layout))
        set_take_lineage(s, ms, 0); /* there is nothing to take first */
    if (!s->established && !ms && set_may_found(s, e, now)) {
        s->established = true;
        s->lineage = mix64(e->members[0].node_id ^ mix64(e->members[0].boot_id)) | 1;
        s->parent = s->forked_at = s->weight = 0;
    }
}

sleet_time set_pending_deadline(const struct set *s)
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
    r->residual = s->pending.residual;
    r->owned = s->pending.owned;
    s->pending.residual = NULL;
    s->pending.send = NULL;
    s->pending.result = NULL;
    s->waiting = false;
    r->weight = o->weight > 0 ? (float)o->weight : 1;
    r->least_coverage = o->least_coverage > 0 ? o->least_coverage : quorum_leaves_out(s) ? 0 : 0.5;
    e->members[0].sets[s->handle].gave = (float)r->weight;
    r->twice.share = o->twice;
    links_choose(r, e, o);
    drift_begin(s, r);
    carry_begin(s, r);
    r->exact |= o->exact != 0;
    r->quiet_until = (sleet_time){0};
    r->started = s->pending.at;
    r->deadline = set_pending_deadline(s);
    r->expected = r->edges ? edge_expected(r) : set_expected(s, e, &r->group, r->number, now);
    r->skipped = s->own_round ? r->number - s->own_round - 1 : 0;
    late_skip(s, e, r->number, now);
    switch_pace(&s->switching, now);
    s->own_round = r->number;
    if (r->skipped)
        receipt_skip(s);
    s->open = r;
    for (uint32_t i = 0; i < r->group.n; i++) {
        const struct member *m = &e->members[r->group.members[i].slot];
        r->lane[i].summary_at = time_add(now, MS(2) + (m->rtt.valid ? m->rtt.srtt : MS(1)));
        r->lane[i].summary_due |= (int)i != r->self && !r->lane[i].share && !r->edges;
        if (!round_scatters(r))
            r->lane[i].scatter_pos = r->lane[i].share;
    }
    rotated_forward(s, r);
    if (r->edges)
        edge_join(s, r, e, now);
    owner_check(s, r, e, now);
    if (gather_complete(s, r, e, now))
        set_close(s, r, e, SLEET_OK, now);
}

/* Nothing to exchange: everybody's result is right at once. */
static void report_nothing(struct set *s, const struct env *e, uint64_t number, sleet_time now)
{
    struct plan p = {.group = {.n = 1, .members = {{.node_id = e->members[0].node_id}}}};
    if (!s->established)
        s->established = set_heaviest_lineage(s, e, &s->lineage);
    set_group(s, e, number, &p);
    sleet_report report = {.round = number,
                      .coverage = 1,
                      .group_size = p.group.n,
                      .expected = set_expected(s, e, &p.group, number, now),
                      .flags = SLEET_COMPLETE,
                      .elapsed_ns = time_since(now, s->pending.at)};
    s->own_round = number;
    set_report(s, SLEET_OK, &report);
    set_drop_pending(s);
}

/* A joiner that waits takes the round whose commits it is sent; not one that has a say in the next. */
void set_join_served(struct set *s, struct round *r, const struct env *e, sleet_time now)
{
    if (s->waiting && layout_has_model(&s->layout) && !s->established && !r->joined && r->number > s->own_round)
        join(s, r, e, now);
}

/* Others of the group that contribute: is one of them, or are all, still to come to the round or in it? */
bool set_still_met(const struct set *s, const struct env *e, const struct group *in, bool edges, uint64_t round)
{
    uint32_t there = 0, all = 0;
    for (uint32_t i = 0; i < in->n; i++) {
        const struct group_member *g = &in->members[i];
        bool other = g->slot && g->contributes;
        all += other;
        there += other && member_open_round(&e->members[g->slot].sets[s->handle]) <= round;
    }
    return there && (edges || there == all); /* owners commit a round once, without those that come later */
}

/* Where a strategy parts the view others may be further on only because they did not need this node: the rounds
 * between are worth joining as long as those that it meets in them have not passed them. */
static uint64_t waited_for(const struct set *s, const struct env *e, uint64_t number)
{
    struct plan p;
    uint64_t end = s->own_round + e->config->window;
    if (!s->established || !s->own_round || number > s->own_round + AHEAD_MAX)
        return number;
    for (uint64_t k = s->own_round + 1; k < number && k <= end && set_group(s, e, k, &p); k++)
        if (p.group.part && set_still_met(s, e, &p.group, p.edges, k))
            return k;
    return number;
}

/* The others have come so far that none of its next rounds is worth joining. */
static bool away_too_long(const struct set *s, const struct env *e)
{
    uint64_t job = set_job_round(s, e);
    return s->own_round && job > late_known(s) + e->config->window && waited_for(s, e, job) == job;
}

/* Members that the edges lead to no more, since others are gone: the two parts do not come together. */
static void note_beyond(struct set *s, const struct env *e, uint64_t number, uint32_t beyond)
{
    if (beyond != s->beyond)
        LOG(&e->config->log, beyond ? LOG_WARN : LOG_INFO, FAULT_REMOTE, beyond ? "graph-apart" : "graph-whole",
            F_S("set", s->layout.name), F_U("round", number), F_U("beyond", beyond));
    s->beyond = beyond;
}

/* Pin a group and join, or answer at once where there is nobody; docs/protocol.md, "Rounds". */
void set_retry_start(struct set *s, const struct env *e, sleet_time now)
{
    struct member_rounds o;
    struct plan p;
    if (s->alone.active) {
        go_on_alone(s, e, now);
        return;
    }
    set_look(s, e, now);
    if (set_parked(s, e)) {
        if (!time_before(now, set_fill_by(s->pending.at, set_pending_deadline(s), s->layout.fragments)))
            answer_alone(s, e, SLEET_PARKED | (s->established ? 0 : SLEET_JOINING), 0, now);
        return;
    }
    set_isolated_joins(s, e);
    establish(s, e, now);
    o = set_others(s, e);
    uint64_t number = late_known(s) + 1 > o.second ? late_known(s) + 1 : o.second;
    bool late = !time_before(now, set_pending_deadline(s));
    number = waited_for(s, e, number);
    if (!s->layout.elements) {
        report_nothing(s, e, number, now);
        return;
    }
    if (!o.n && s->established) { /* only joiners around: meet them where they are */
        uint64_t theirs = members_joining_round(e->members, e->view->n, (uint32_t)s->handle);
        if (theirs > number && theirs <= number + e->config->window)
            number = theirs;
    }
    /* A single other takes the highest round, so it follows; several take the second-highest. */
    uint64_t reached = o.n > 1 ? o.joined : o.highest;
    if (s->planned_alone && s->planned_alone == s->own_round && reached < s->own_round)
        reached = s->own_round; /* the others may well be there: none of them was to meet this node */
    if (o.n && s->established && number > reached + 1) {
        if (s->apart.isolated && !late)
            return; /* it makes no progress either way: wait for them */
        answer_alone(s, e, SLEET_ALONE, 0, now);
        return;
    }
    bool unfounded = !s->established && !layout_has_model(&s->layout); /* the founder will be heard */
    if (unfounded || !set_group(s, e, number, &p)) {
        if (late)
            answer_alone(s, e, SLEET_JOINING | SLEET_DEADLINE, 0, now);
        return;
    }
    note_beyond(s, e, number, p.beyond);
    if (p.group.n == 1 && !set_find(s, number)) {
        s->own_round = s->planned_alone = number;
        answer_alone(s, e, 0, number, now);
        return;
    }
    struct round *r = set_find(s, number);
    if (r && r->closed)
        set_retire(s, e, number % ROUNDS_RING); /* joined before in vain, see set_close() */
    r = set_pin(s, e, number, now);
    if (r && !r->joined)
        join(s, r, e, now);
    else if (late)
        answer_alone(s, e, SLEET_DEADLINE, 0, now);
}

static int copy_tables(struct set *s, const engine_start_args *a)
{
    size_t n = s->layout.n + 1u;
    s->pending.send = calloc(n, sizeof *s->pending.send);
    s->pending.result = calloc(n, sizeof *s->pending.result);
    if (!s->pending.send || !s->pending.result)
        return SLEET_ENOMEM;
    memcpy(s->pending.send, a->send, s->layout.n * sizeof *s->pending.send);
    memcpy(s->pending.result, a->result, s->layout.n * sizeof *s->pending.result);
    if (a->residual && s->layout.kind.estimator == SLEET_CARRY) {
        if (!(s->pending.residual = calloc(n, sizeof *s->pending.residual)))
            return SLEET_ENOMEM;
        memcpy(s->pending.residual, a->residual, s->layout.n * sizeof *s->pending.residual);
    }
    s->pending.owned = a->owned;
    return SLEET_OK;
}

int set_start(struct set *s, const struct env *e, const engine_start_args *a, sleet_time now)
{
    const sleet_round_options *o = &a->options;
    if (o->deadline_ns < 0 || o->deadline_ns > SEC(3600) || !(o->weight >= 0 && o->weight < 1e30) ||
        !(o->least_coverage >= 0 && o->least_coverage <= 1) || !(o->keep >= 0 && o->keep <= 1) ||
        (o->quorum != SLEET_QUORUM_ALL && strategy_by_id((int)s->layout.kind.strategy)->edges))
        return SLEET_EINVAL;
    if (o->exact && s->layout.kind.estimator == SLEET_GIVERS)
        return SLEET_EINVAL; /* what is missing may be nothing */
    if (!(o->twice >= 0 && o->twice <= 1) ||
        (o->twice > 0 && (o->exact || !kind_additive(&s->layout.kind) || s->layout.kind.estimator == SLEET_EXPECTED)))
        return SLEET_EINVAL; /* see twice.c */
    if (!s->attached)
        return SLEET_ESTATE;
    if (s->schema_differs)
        return SLEET_ESCHEMA;
    set_withdraw(s, e, now);
    if (copy_tables(s, a) != SLEET_OK) {
        set_drop_pending(s);
        return SLEET_ENOMEM;
    }
    s->event = false;
    s->pending.options = *o;
    s->pending.at = now;
    s->waiting = true;
    set_change_over(s, e);
    if (away_too_long(s, e))
        s->established = false; /* away too long: take the others' model */
    set_retry_start(s, e, now);
    return SLEET_OK;
}
