/* Cumulative summaries: what I sent you, what I committed, what I miss.
 * A lost summary costs nothing, the next says it all again. */
#include "base/bitmap.h"
#include "round/round.h"
#include <stdlib.h>
#include <string.h>

#define ANSWER_GAP MS(10) /* between answers to one that names no holes */
#define GAP_MAX MS(50)
#define GAP_IDLE SEC(1)
#define SUMMARY_EVERY 64
#define COUNTER_MARGIN 8 /* packets that may overtake before a hole counts as lost */
#define BITS_MAX 8192u

sleet_duration feedback_settle(const struct member *m)
{
    return (m->rtt.valid ? m->rtt.srtt : MS(1)) + reorder_grace(&m->reorder, &m->rtt);
}

static bool marked(const struct wire_summary *w, uint32_t i)
{
    return w->bitmap[i / 8] >> (i % 8) & 1;
}

static void ask_gather(struct round *r, struct lane *l, const struct wire_summary *w,
                       const struct member *m, sleet_time now)
{
    uint32_t mine = r->lane[r->self].share;
    bool idle = time_since(now, l->gather_sent_at) > feedback_settle(m);
    if (!l->sent_at || !r->own.commit ||
        (!l->repair && !(l->repair = calloc(bitmap_words(mine) + 1, 8))))
        return;
    for (uint32_t i = 0; i < w->bits; i++) {
        uint32_t number = w->first + i;
        if (!marked(w, i) || number >= mine || !l->sent_at[number] ||
            bitmap_test(l->repair, number))
            continue;
        if (!idle && parity_pending(l, l->sent_at[number], (uint32_t)w->counter_seen))
            continue;
        bool overtaken = (int32_t)((uint32_t)w->counter_seen - l->sent_at[number]) > COUNTER_MARGIN;
        if (overtaken || idle) {
            bitmap_set(l->repair, number);
            l->repairs++;
        }
    }
}

static void ask_scatter(struct round *r, struct lane *l, const struct wire_summary *w,
                        const struct member *m, sleet_time now)
{
    if (!r->joined || r->closed || l->scatter_pos < l->share || l->scatter_repairs ||
        parity_due(r, (uint32_t)(l - r->lane), PARITY_SCATTER) ||
        time_since(now, l->scatter_sent_at) <= feedback_settle(m))
        return;
    for (uint32_t i = 0; i < w->bits && w->first + i < l->share; i++) {
        uint32_t f = r->frag[l->start + w->first + i];
        if (marked(w, i) && !bitmap_test(r->scatter_again, f)) {
            bitmap_set(r->scatter_again, f);
            l->scatter_repairs++;
        }
    }
}

/* The member has had all that this node contributes. */
static bool scatter_over(const struct round *r, uint32_t rank)
{
    const struct lane *l = &r->lane[rank];
    bool sent = !round_scatters(r) || (l->scatter_pos >= l->share && !twice_waits(l) && !parity_due(r, rank, PARITY_SCATTER));
    return r->joined && (r->closed || !r->contributes || sent);
}

void feedback_recv(struct set *s, struct round *r, const struct env *e, uint32_t rank,
                   const struct wire_summary *w, sleet_time now)
{
    struct lane *l = &r->lane[rank];
    struct member *m = &e->members[r->group.members[rank].slot];
    if (r->edges) {
        edge_told(s, r, e, rank, w, now);
        owner_check(s, r, e, now);
        return;
    }
    if (w->of) {
        backup_told(r, e, rank, w, now);
        return;
    }
    bool agrees = w->group == r->group.hash; /* else it numbers the fragments otherwise */
    if (agrees)
        witness_recv(r, rank, w);
    if (agrees && w->scatter_sent > l->sent_told && w->scatter_sent <= r->lane[r->self].share)
        l->sent_told = w->scatter_sent;
    if (w->flags & SUMMARY_SCATTER_OVER)
        r->own.over |= (uint64_t)1 << rank;
    if (w->committed <= (agrees ? l->share : s->layout.fragments) && w->committed > l->commits_told)
        l->commits_told = w->committed;
    if ((w->flags & SUMMARY_COMMITS_FINAL) && !l->commits_final) {
        l->commits_final = true;
        l->final_at = now;
    }
    uint64_t theirs = round_expand(r->number, w->sender_round);
    bool past = theirs > r->number || (theirs == r->number && (w->flags & SUMMARY_CLOSED));
    l->past |= past && !late_serves(&s->layout); /* else it has a use for late commits */
    if (receipt_is(w))
        receipt_recv(s, r, rank, w);
    else if (agrees && (w->flags & SUMMARY_SCATTER_HOLES))
        ask_scatter(r, l, w, m, now);
    else if (agrees && !e->config->repair_off && (past || !e->config->repair_late))
        ask_gather(r, l, w, m, now);
    /* Whoever pinned another group cannot name holes: it asks by telling.  But an answer is none. */
    bool asks = (w->bits && !receipt_is(w)) || (r->mixed && !(w->flags & SUMMARY_CLOSED) &&
                            time_since(now, l->said_at) >= ANSWER_GAP);
    if (asks && !l->repairs) {
        if (gather_sent(r, e, rank))
            l->summary_due = true;
        else
            view_answer(e->view, m); /* alive, still waiting or on its way */
    }
    bool owed = (w->flags & SUMMARY_ASKS) && (r->own.final || receipt_gives(s, r, rank));
    l->summary_due |= owed && time_since(now, l->said_at) >= feedback_settle(m);
    owner_check(s, r, e, now);
}

static bool wants_gather(const struct set *s, const struct round *r, const struct env *e,
                         uint32_t rank, sleet_time now)
{
    if (r->edges)
        return edge_wants(r, rank);
    if (r->closed)
        return late_wants(s, r, e, rank);
    return r->joined && round_gathers(r) && !gather_done_from(s, r, e, rank, now);
}

static bool wants_scatter(const struct round *r, uint32_t rank)
{
    const struct lane *l = &r->lane[rank];
    return r->exact && !r->edges && round_scatters(r) && !r->own.final && r->group.members[rank].contributes &&
           (r->own.over >> rank & 1) && l->in_direct + l->in_repaired < r->lane[r->self].share;
}

/* Nobody waits for commits that stay with their owner, and asks: so that the end of a contribution is not lost it is said again
 * until the owner has committed, or gone on. */
static bool tells_end(const struct set *s, const struct round *r, const struct env *e, uint32_t rank)
{
    const struct group_member *g = &r->group.members[rank];
    const struct member *m = &e->members[g->slot];
    return !r->edges && !round_gathers(r) && r->contributes && scatter_over(r, rank) && !r->lane[rank].commits_final && m->alive &&
           m->boot_id == g->boot_id && member_open_round(&m->sets[s->handle]) <= r->number;
}

static bool wants_word(const struct set *s, const struct round *r, const struct env *e, uint32_t rank, sleet_time now)
{
    return wants_gather(s, r, e, rank, now) || wants_scatter(r, rank) || receipt_wanted(r, e, rank) ||
           tells_end(s, r, e, rank);
}

void feedback_count(struct round *r, uint32_t rank)
{
    struct lane *l = &r->lane[rank];
    l->since_summary++;
    l->summary_due |= r->closed && l->since_summary >= SUMMARY_EVERY; /* it does not know */
}

static bool due(const struct set *s, const struct round *r, const struct env *e, uint32_t rank,
                sleet_time now)
{
    const struct lane *l = &r->lane[rank];
    if (l->summary_due || l->holes_due)
        return true;
    if (!wants_word(s, r, e, rank, now))
        return false;
    return l->since_summary >= SUMMARY_EVERY || !time_before(now, l->summary_at);
}

/* Until the next word.  Where a window of few and short rounds does not leave the time it hardly grows; an owner
 * that is still in the round cannot tell what it has used, and is asked seldom in the end. */
static sleet_duration next_gap(const struct set *s, const struct round *r, const struct env *e, uint32_t rank)
{
    const struct lane *l = &r->lane[rank];
    const struct member *m = &e->members[r->group.members[rank].slot];
    sleet_duration settle = feedback_settle(m), gap = 2 * l->summary_gap, most = GAP_MAX;
    bool ends = tells_end(s, r, e, rank), wants = receipt_wanted(r, e, rank);
    if (ends || wants) {
        gap = l->summary_gap + l->summary_gap / (wants ? 32 : 4);
        gap = gap > settle ? gap : settle;
        most = ends ? GAP_MAX : GAP_IDLE;
    } else if ((r->closed && round_gathers(r)) || (r->edges && edge_wants_word(r, rank))) {
        gap = settle;
    }
    return gap < most ? gap : most;
}

static void put_holes(struct wire_summary *w, uint8_t *bits, const struct set *s, struct round *r,
                      uint32_t rank, bool scatter)
{
    uint32_t owner = scatter ? (uint32_t)r->self : rank;
    uint32_t share = r->lane[owner].share, last = 0;
    uint32_t *whole = scatter ? &r->lane[rank].scatter_whole : &r->lane[rank].gather_whole;
    bool any = false;
    for (uint32_t i = *whole; i < share; i++) {
        uint32_t f = r->frag[r->lane[owner].start + i];
        bool missing = scatter    ? !(r->own.mask[i] >> rank & 1)
                       : r->closed ? late_is_hole(s, r, f)
                                   : !bitmap_test(r->got, f);
        if (!missing)
            continue;
        if (!any) {
            w->first = *whole = i;
            any = true;
        }
        if (i - w->first >= BITS_MAX)
            break;
        last = i - w->first;
        bits[last / 8] |= (uint8_t)(1u << last % 8);
    }
    if (!any)
        *whole = share;
    w->bits = any ? (uint16_t)(last + 1) : 0;
}

struct wire_summary feedback_begin(const struct set *s, const struct round *r, const struct env *e,
                                   const struct member *m, sleet_time now)
{
    return (struct wire_summary){.set = s->layout.hash,
                                 .group = r->group.hash,
                                 .round = (uint32_t)r->number,
                                 .sender_round = (uint32_t)s->own_round,
                                 .counter_seen = member_highest(m),
                                 .overflow = (uint32_t)e->counters->overflow,
                                 .echo = m->echo,
                                 .loss = (uint16_t)(loss_share(&m->loss) * UINT16_MAX + 0.5),
                                 .capacity = capacity_code(&m->capacity),
                                 .hold = m->echo ? (uint32_t)(time_since(now, m->echo_at) / 1000) : 0,
                                 .flags = s->open && s->open->number == s->own_round ? 0 : SUMMARY_CLOSED};
}

size_t feedback_stranger(const struct set *s, const struct round *r, const struct env *e, const struct member *m,
                         uint8_t *out, size_t cap, sleet_time now)
{
    struct wire_summary w = feedback_begin(s, r, e, m, now);
    w.flags |= SUMMARY_SCATTER_OVER | SUMMARY_TAKES_NONE;
    return wire_summary_encode(out, cap, &w);
}

size_t feedback_fill(struct set *s, struct round *r, const struct env *e, uint32_t rank,
                     uint8_t *out, size_t cap, sleet_time now)
{
    struct lane *l = &r->lane[rank];
    struct member *m = &e->members[r->group.members[rank].slot];
    uint8_t bits[BITS_MAX / 8] = {0};
    if (!due(s, r, e, rank, now))
        return 0;
    bool scatter = wants_scatter(r, rank) && (l->holes_due || !wants_gather(s, r, e, rank, now)) &&
                   !l->summary_due;
    struct wire_summary w = feedback_begin(s, r, e, m, now);
    w.scatter_sent = l->scatter_pos;
    w.committed = r->own.commits - (round_disagrees(r, rank) ? 0 : r->own.foreign_commits);
    w.bitmap = bits;
    bool gathered = !round_gathers(r) || (l->gather_pos >= r->own.commits && !parity_due(r, rank, PARITY_GATHER));
    w.flags |= (uint8_t)((scatter_over(r, rank) ? SUMMARY_SCATTER_OVER : 0) | (r->own.final && gathered ? SUMMARY_COMMITS_FINAL : 0) |
                         (scatter ? SUMMARY_SCATTER_HOLES : 0) | (receipt_wanted(r, e, rank) || tells_end(s, r, e, rank) ? SUMMARY_ASKS : 0));
    witness_fill(r, rank, &w);
    if (r->edges)
        edge_tell(s, r, rank, &w, bits);
    else if (receipt_gives(s, r, rank))
        receipt_fill(s, r, rank, &w, bits);
    else if (scatter || wants_gather(s, r, e, rank, now))
        put_holes(&w, bits, s, r, rank, scatter);
    l->holes_due = !scatter && wants_scatter(r, rank);
    r->quiet_until = (sleet_time){0};
    l->summary_due = false;
    l->said_at = now;
    l->since_summary = 0;
    if (!l->holes_due) {
        l->summary_gap = next_gap(s, r, e, rank);
        l->summary_at = time_add(now, l->summary_gap);
    }
    return wire_summary_encode(out, cap, &w);
}

static sleet_time next_due(const struct set *s, const struct round *r, const struct env *e,
                           sleet_time now)
{
    sleet_time t = TIME_NEVER;
    for (uint32_t i = 0; i < r->group.n; i++) {
        const struct lane *l = &r->lane[i];
        if ((int)i != r->self)
            t = time_min(t, backup_deadline(s, r, e, i, now));
        if ((int)i == r->self || !e->members[r->group.members[i].slot].alive)
            continue;
        if (l->summary_due || l->holes_due)
            return (sleet_time){0};
        if (wants_word(s, r, e, i, now))
            t = l->since_summary >= SUMMARY_EVERY ? (sleet_time){0} : time_min(t, l->summary_at);
    }
    return t;
}

/* Most rounds of the window are over: they are not looked through for each datagram. */
sleet_time feedback_deadline(const struct set *s, struct round *r, const struct env *e,
                             sleet_time now)
{
    if (round_untouched(r, e) && time_before(now, r->quiet_until))
        return r->quiet_until;
    r->quiet_until = next_due(s, r, e, now);
    r->quiet_view = e->view->generation;
    r->idle = true;
    for (uint32_t i = 0; i < r->group.n; i++)
        r->idle &= (int)i == r->self || !round_has_data(r, i);
    return r->quiet_until;
}
