#include "round/backup.h"
#include "base/bitmap.h"
#include "round/round.h"
#include <stdlib.h>
#include <string.h>

#define BIT(rank) ((uint64_t)1 << (rank))
#define BITS_MAX 8192u
#define ASK_GAP MS(50) /* at most, between two askings */
#define SILENT MS(100) /* and two timeouts: several polls and their answers were lost */

/* ---- the backup ------------------------------------------------------------------------------ */

void backup_keep(const struct set *s, struct round *r, uint32_t owner, const struct wire_data *d,
                 const struct part *part)
{
    struct backup_side *b = &r->backup;
    uint32_t f = part->fragment;
    if (r->mixed || b->dropped || b->of_run[f / RUN_FRAGMENTS] != r->self || (int)owner == r->self)
        return;
    if (!b->slot_of) { /* pages that are not written cost nothing */
        b->slot_of = calloc((size_t)s->layout.fragments + 1, sizeof *b->slot_of);
        b->kept = malloc(((size_t)b->share + 1) * sizeof *b->kept);
        b->coded = malloc((size_t)b->share * s->layout.coded + 1);
    }
    if (!b->slot_of || !b->kept || !b->coded) {
        backup_drop(r);
        return;
    }
    if (b->slot_of[f])
        return;
    b->kept[b->n] = (struct kept_commit){d->mask, d->weight, f, (uint16_t)part->bytes};
    memcpy(b->coded + (size_t)b->n * s->layout.coded, part->payload, part->bytes);
    b->slot_of[f] = ++b->n;
}

const uint8_t *backup_coded(const struct set *s, const struct round *r, uint32_t slot)
{
    return r->backup.coded + (size_t)slot * s->layout.coded;
}

void backup_drop(struct round *r)
{
    struct backup_side *b = &r->backup;
    free(b->slot_of);
    free(b->kept);
    free(b->coded);
    b->slot_of = NULL;
    b->kept = NULL;
    b->coded = NULL;
    b->n = 0;
    b->dropped = true;
    for (uint32_t i = 0; i < r->group.n; i++)
        r->lane[i].backup.gives = 0;
}

static bool answers(const struct env *e)
{
    return !e->config->backup_off && !e->config->repair_off;
}

/* A member names commits of that owner that it lacks. */
static void give(const struct round *r, struct lane *l, uint32_t owner, const struct wire_summary *w,
                 const struct member *m, sleet_time now)
{
    const struct lane *o = &r->lane[owner];
    struct backup_lane *b = &l->backup;
    bool ready = !b->gives && time_since(now, b->gave_at) > feedback_settle(m), any = false;
    if (r->backup.n && !b->give)
        b->give = calloc(bitmap_words(r->backup.share) + 1, 8);
    for (uint32_t i = 0; r->backup.n && b->give && i < w->bits && w->first + i < o->share; i++) {
        uint32_t slot = r->backup.slot_of[r->frag[o->start + w->first + i]];
        if (!(w->bitmap[i / 8] >> (i % 8) & 1) || !slot)
            continue;
        any = true;
        if (ready) {
            bitmap_set(b->give, slot - 1);
            b->gives++;
        }
    }
    b->none |= any ? 0 : BIT(owner);
}

uint32_t backup_next(struct round *r, struct lane *l)
{
    struct backup_lane *b = &l->backup;
    uint32_t slot = (uint32_t)bitmap_next(b->give, b->give_pos, r->backup.n);
    return slot < r->backup.n ? slot : (uint32_t)bitmap_next(b->give, 0, r->backup.n);
}

bool backup_take(const struct round *r, struct lane *l, uint32_t slot, sleet_time now)
{
    struct backup_lane *b = &l->backup;
    if (!b->gives || slot >= r->backup.n || !bitmap_test(b->give, slot))
        return false;
    bitmap_clear(b->give, slot);
    b->gives--;
    b->give_pos = slot + 1;
    b->gave_at = now;
    return true;
}

/* ---- who lacks a commit ---------------------------------------------------------------------- */

/* The instant from which on an owner that says nothing, though it is asked, is not relied on. */
static sleet_time silent_at(const struct round *r, const struct env *e, uint32_t rank)
{
    const struct member *m = &e->members[r->group.members[rank].slot];
    bool since = !time_is_never(m->heard) && time_before(r->started, m->heard);
    return time_add(since ? m->heard : r->started, SILENT + 2 * rtt_timeout(&m->rtt));
}

static bool is_gone(const struct round *r, const struct env *e, uint32_t rank)
{
    const struct group_member *g = &r->group.members[rank];
    const struct member *m = &e->members[g->slot];
    return !m->alive || m->boot_id != g->boot_id;
}

/* Is something of the owner's missing that a backup could have? */
static bool lacks(const struct set *s, const struct round *r, const struct env *e, uint32_t owner)
{
    const struct lane *l = &r->lane[owner];
    uint32_t got = l->got_direct + l->got_repaired;
    if (!answers(e) || r->edges || r->mixed || !r->joined || (r->closing && !r->closed) || !round_gathers(r) ||
        (int)owner == r->self)
        return false;
    if (r->closed)
        return l->holes && !r->withheld && late_serves(&s->layout) &&
               !(l->commits_final && got + l->got_late >= l->commits_told);
    return got < l->share && !e->config->repair_late && !(l->commits_final && got >= l->commits_told);
}

static bool wants(const struct set *s, const struct round *r, const struct env *e, uint32_t owner,
                  sleet_time now)
{
    return lacks(s, r, e, owner) &&
           (is_gone(r, e, owner) || !time_before(now, silent_at(r, e, owner)));
}

/* Is there one that may still have some of it? */
static bool has_heirs(const struct round *r, const struct env *e, uint32_t owner)
{
    const struct backup_lane *b = &r->lane[owner].backup;
    for (uint64_t left = b->heirs & ~b->spent; left; left &= left - 1)
        if (!is_gone(r, e, (uint32_t)__builtin_ctzll(left)))
            return true;
    return false;
}

bool backup_done(const struct set *s, const struct round *r, const struct env *e, uint32_t owner,
                 sleet_time now)
{
    const struct backup_lane *b = &r->lane[owner].backup;
    if (!wants(s, r, e, owner, now))
        return true;
    return b->begun && (!has_heirs(r, e, owner) || time_since(now, b->news_at) >= budget_now(&s->budget));
}

sleet_time backup_wait(const struct set *s, const struct round *r, const struct env *e, uint32_t owner,
                       sleet_time now)
{
    const struct backup_lane *b = &r->lane[owner].backup;
    bool waits = b->begun && is_gone(r, e, owner) && !backup_done(s, r, e, owner, now);
    return waits ? time_add(b->news_at, budget_now(&s->budget)) : TIME_NEVER;
}

sleet_time backup_deadline(const struct set *s, const struct round *r, const struct env *e, uint32_t rank,
                           sleet_time now)
{
    const struct backup_lane *b = &r->lane[rank].backup;
    if (b->none)
        return (sleet_time){0};
    if (!lacks(s, r, e, rank) || (b->begun && !has_heirs(r, e, rank)))
        return TIME_NEVER;
    if (!wants(s, r, e, rank, now))
        return silent_at(r, e, rank);
    return b->turn || !b->begun ? (sleet_time){0} : b->ask_at;
}

/* The holes in an owner's share of which that member is the backup, as bits from *first on; how many bits. */
static uint32_t holes(const struct set *s, const struct round *r, uint32_t owner, int backup, uint32_t *first,
                      uint8_t *bits, uint64_t *heirs)
{
    const struct lane *l = &r->lane[owner];
    uint32_t n = 0;
    for (uint32_t i = 0; i < l->share; i++) {
        uint32_t f = r->frag[l->start + i];
        uint8_t of = r->backup.of_run[f / RUN_FRAGMENTS];
        if (of == OWNER_NONE || of == r->self || (r->closed ? !late_is_hole(s, r, f) : bitmap_test(r->got, f)))
            continue;
        *heirs |= BIT(of);
        if (of != backup || (n && i - *first >= BITS_MAX))
            continue;
        *first = n ? *first : i;
        n = i - *first + 1;
        bits[(n - 1) / 8] |= (uint8_t)(1u << (n - 1) % 8);
    }
    return n;
}

static size_t ask(const struct set *s, struct round *r, const struct env *e, uint32_t owner, uint32_t *to,
                  uint8_t *out, size_t cap, sleet_time now)
{
    struct backup_lane *b = &r->lane[owner].backup;
    uint8_t bits[BITS_MAX / 8] = {0};
    uint32_t first = 0;
    if (!b->turn) {
        b->heirs = 0;
        holes(s, r, owner, -1, &first, bits, &b->heirs);
        if (!b->begun || b->told != b->healed) {
            b->news_at = now;
            b->gap = 0;
        }
        b->told = b->healed;
        b->begun = true;
    }
    while (b->turn < r->group.n) {
        uint32_t rank = b->turn++;
        struct member *m = &e->members[r->group.members[rank].slot];
        if (!(b->heirs & ~b->spent & BIT(rank)) || is_gone(r, e, rank) || !m->session)
            continue;
        struct wire_summary w = feedback_begin(s, r, e, m, now);
        w.of = (uint8_t)(owner + 1);
        w.bits = (uint16_t)holes(s, r, owner, (int)rank, &first, bits, &b->heirs);
        w.first = first;
        w.bitmap = bits;
        if (!w.bits)
            continue;
        *to = rank;
        b->asked |= BIT(rank);
        return wire_summary_encode(out, cap, &w);
    }
    sleet_duration least = feedback_settle(&e->members[r->group.members[owner].slot]);
    b->gap = 2 * b->gap > least ? 2 * b->gap : least;
    b->gap = b->gap < ASK_GAP ? b->gap : ASK_GAP;
    b->turn = 0;
    b->ask_at = time_add(now, b->gap);
    return 0;
}

static size_t tell_none(const struct set *s, struct round *r, const struct env *e, uint32_t rank, uint8_t *out,
                        size_t cap, sleet_time now)
{
    struct backup_lane *b = &r->lane[rank].backup;
    struct wire_summary w = feedback_begin(s, r, e, &e->members[r->group.members[rank].slot], now);
    w.of = (uint8_t)(__builtin_ctzll(b->none) + 1);
    b->none &= b->none - 1;
    return wire_summary_encode(out, cap, &w);
}

size_t backup_fill(const struct set *s, struct round *r, const struct env *e, uint32_t *to, uint8_t *out, size_t cap,
                   sleet_time now)
{
    for (uint32_t i = 0; i < r->group.n; i++) {
        struct member *m = &e->members[r->group.members[i].slot];
        sleet_time at = backup_deadline(s, r, e, i, now);
        size_t len = 0;
        if ((int)i == r->self || time_before(now, at))
            continue;
        r->quiet_until = (sleet_time){0};
        if (r->lane[i].backup.none && (is_gone(r, e, i) || !m->session))
            r->lane[i].backup.none = 0;
        if (r->lane[i].backup.none) {
            *to = i;
            len = tell_none(s, r, e, i, out, cap, now);
        } else if (wants(s, r, e, i, now)) {
            len = ask(s, r, e, i, to, out, cap, now);
        }
        if (len)
            return len;
    }
    return 0;
}

void backup_told(struct round *r, const struct env *e, uint32_t rank, const struct wire_summary *w, sleet_time now)
{
    uint32_t owner = w->of - 1u;
    if (owner >= r->group.n || (int)owner == r->self || owner == rank || w->group != r->group.hash || r->mixed)
        return;
    struct backup_lane *b = &r->lane[owner].backup;
    if (w->bits && answers(e))
        give(r, &r->lane[rank], owner, w, &e->members[r->group.members[rank].slot], now);
    else if (!w->bits && is_gone(r, e, owner)) /* else it may come there yet */
        b->spent |= b->asked & BIT(rank);
}

int backup_speaks_for(const struct round *r, int rank, uint32_t fragment)
{
    uint8_t owner = r->owner_of_run[fragment / RUN_FRAGMENTS];
    if (rank < 0 || owner == OWNER_NONE || r->backup.of_run[fragment / RUN_FRAGMENTS] != rank ||
        !(r->lane[owner].backup.asked >> rank & 1))
        return -1;
    return owner;
}

void backup_healed(struct lane *owner, const struct env *e)
{
    owner->backup.healed++;
    e->counters->healed++;
}
