#include "path/path.h"

#define RTT_FIRST SEC(1)
#define RTT_GRANULARITY MS(1)
#define RTT_TIMEOUT_MAX SEC(60)
#define PATIENCE_MIN MS(20)  /* the least time that a peer has for a sign of life */
#define ROUND_TRIP_MIN MS(10) /* for regaining: overflow is told no faster */
#define GRACE_MIN MS(1)
#define MARK_SPACING_MIN US(250)

static sleet_duration longer(sleet_duration a, sleet_duration b) { return a > b ? a : b; }

/* ---- round trip ---------------------------------------------------------- */

void rtt_init(struct rtt *r) { *r = (struct rtt){0}; }

void rtt_sample(struct rtt *r, sleet_duration sample)
{
    if (sample < 0)
        return;
    if (!r->valid) {
        *r = (struct rtt){.srtt = sample, .var = sample / 2, .min = sample, .valid = true};
        return;
    }
    sleet_duration off = r->srtt > sample ? r->srtt - sample : sample - r->srtt;
    r->var += (off - r->var) / 4;
    r->srtt += (sample - r->srtt) / 8;
    if (sample < r->min)
        r->min = sample;
}

sleet_duration rtt_timeout(const struct rtt *r)
{
    if (!r->valid)
        return RTT_FIRST;
    if (r->srtt > RTT_TIMEOUT_MAX || r->var > RTT_TIMEOUT_MAX / 4)
        return RTT_TIMEOUT_MAX;
    sleet_duration t = r->srtt + longer(RTT_GRANULARITY, 4 * r->var);
    return t < RTT_TIMEOUT_MAX ? t : RTT_TIMEOUT_MAX;
}

/* ---- pace ---------------------------------------------------------------- */

/* The tokens lie in [-burst/2, burst/2], so what leaves in any time t is at most
 * their whole range and what flows in. */
static void refill(struct pacer *p, sleet_time now)
{
    double top = p->burst_bytes / 2.0;
    if (now.ns <= p->last.ns)
        return;
    p->tokens_bytes += (double)time_since(now, p->last) * (double)p->rate_bps / 8e9;
    if (p->tokens_bytes > top)
        p->tokens_bytes = top;
    p->last = now;
}

void pacer_init(struct pacer *p, uint64_t rate_bps, uint32_t burst_bytes, sleet_time now)
{
    *p = (struct pacer){.rate_bps = rate_bps,
                        .max_bps = rate_bps,
                        .tokens_bytes = burst_bytes / 2.0,
                        .burst_bytes = burst_bytes,
                        .last = now,
                        .changed_at = now,
                        .cut_at = now};
}

bool pacer_ready(struct pacer *p, sleet_time now)
{
    refill(p, now);
    return p->tokens_bytes >= 0;
}

uint32_t pacer_room(const struct pacer *p)
{
    double room = p->tokens_bytes + p->burst_bytes / 2.0;
    return room > 0 ? (uint32_t)room : 0;
}

void pacer_spend(struct pacer *p, uint32_t bytes) { p->tokens_bytes -= bytes; }

sleet_time pacer_next(const struct pacer *p)
{
    if (p->tokens_bytes >= 0)
        return p->last;
    double wait = -p->tokens_bytes * 8e9 / (double)p->rate_bps;
    if (wait >= 4e18)
        return TIME_NEVER;
    return time_add(p->last, (sleet_duration)wait + 1 + (sleet_duration)(wait * 0x1p-50));
}

void pacer_cut(struct pacer *p, sleet_duration rtt, sleet_time now)
{
    if (p->was_cut && time_since(now, p->cut_at) < rtt)
        return;
    uint64_t least = p->max_bps / 64 + (p->max_bps % 64 != 0);
    refill(p, now);
    p->rate_bps = p->rate_bps / 2 > least ? p->rate_bps / 2 : least;
    p->was_cut = true;
    p->cut_at = p->changed_at = now;
}

void pacer_regain(struct pacer *p, sleet_duration rtt, sleet_time now)
{
    if (p->rate_bps == p->max_bps || time_since(now, p->changed_at) < rtt)
        return;
    uint64_t step = p->max_bps / 16 + (p->max_bps % 16 != 0);
    refill(p, now);
    p->rate_bps = p->max_bps - p->rate_bps > step ? p->rate_bps + step : p->max_bps;
    p->changed_at = now;
}

/* ---- flow ---------------------------------------------------------------- */

static sleet_duration patience(const struct rtt *r) { return longer(rtt_timeout(r), PATIENCE_MIN); }

static sleet_duration round_trip(const struct rtt *r)
{
    return longer(r->valid ? r->srtt : 0, ROUND_TRIP_MIN);
}

static bool silent(const struct flow *f) { return f->questions > 1; }

void flow_init(struct flow *f, uint64_t rate_bps, uint32_t burst_bytes, sleet_time now)
{
    *f = (struct flow){.look_at = TIME_NEVER};
    pacer_init(&f->pacer, rate_bps, burst_bytes, now);
}

void flow_sent(struct flow *f, const struct rtt *r, uint32_t datagrams, uint32_t bytes, sleet_time now)
{
    pacer_spend(&f->pacer, bytes);
    if (silent(f))
        f->unanswered += datagrams;
    else if (time_is_never(f->look_at))
        f->look_at = time_add(now, patience(r));
}

void flow_heard(struct flow *f)
{
    f->look_at = TIME_NEVER;
    f->questions = f->unanswered = 0;
}

void flow_overflow(struct flow *f, const struct rtt *r, sleet_time now)
{
    pacer_cut(&f->pacer, r->valid ? r->srtt : MS(1), now);
}

static sleet_time regain_at(const struct flow *f, const struct rtt *r)
{
    if (silent(f) || f->pacer.rate_bps == f->pacer.max_bps)
        return TIME_NEVER;
    return time_add(f->pacer.changed_at, round_trip(r));
}

bool flow_expire(struct flow *f, const struct rtt *r, sleet_time now)
{
    if (!time_before(now, regain_at(f, r)))
        pacer_regain(&f->pacer, round_trip(r), now);
    if (time_before(now, f->look_at))
        return false;
    if (++f->questions > 1)
        pacer_cut(&f->pacer, 0, now);
    f->look_at = f->questions < FLOW_QUESTIONS_MAX ? time_add(now, patience(r)) : TIME_NEVER;
    return true;
}

sleet_time flow_deadline(const struct flow *f, const struct rtt *r)
{
    return time_min(f->look_at, regain_at(f, r));
}

void flow_slept(struct flow *f, sleet_duration gap) { f->look_at = time_add(f->look_at, gap); }

/* ---- reordering ------------------------------------------------------------ */

void reorder_init(struct reorder *r) { *r = (struct reorder){0}; }

/* Marks lie at least 1/16 of the extent apart, so that the ring reaches back
 * at least twice the extent. */
static void add_mark(struct reorder *r, uint64_t counter, sleet_time now)
{
    const struct reorder_mark *newest = &r->marks[(r->mark_pos + REORDER_MARKS - 1) % REORDER_MARKS];
    if (r->mark_n && time_since(now, newest->at) < longer(MARK_SPACING_MIN, r->extent / 16))
        return;
    r->marks[r->mark_pos] = (struct reorder_mark){counter, now};
    r->mark_pos = (r->mark_pos + 1) % REORDER_MARKS;
    if (r->mark_n < REORDER_MARKS)
        r->mark_n++;
}

void reorder_note(struct reorder *r, uint64_t counter, sleet_time now)
{
    r->extent -= r->extent / 4096;
    if (counter > r->highest) {
        r->highest = counter;
        r->highest_at = now;
        add_mark(r, counter, now);
        return;
    }
    sleet_time overtaken = r->highest_at;
    for (uint32_t i = 0; i < r->mark_n; i++) { /* oldest first */
        const struct reorder_mark *m =
            &r->marks[(r->mark_pos + REORDER_MARKS - r->mark_n + i) % REORDER_MARKS];
        if (m->counter > counter) {
            overtaken = m->at;
            break;
        }
    }
    r->extent = longer(r->extent, time_since(now, overtaken));
}

sleet_duration reorder_grace(const struct reorder *r, const struct rtt *rtt)
{
    sleet_duration grace = longer(GRACE_MIN, r->extent + r->extent / 4);
    return rtt->valid ? longer(grace, 2 * rtt->var) : grace;
}
