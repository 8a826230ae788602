/* Rounds among neighbours: the object, and values in; see edge.h. */
#include "round/edge_parts.h"
#include <string.h>

/* ---- the object */

/* Who goes both ways with this node, where differences of low rank go in the place of values. */
static bool goes_low(const struct round *r, const struct plan *p, uint32_t rank)
{
    return p->rank && p->edge[rank].in && p->edge[rank].out && r->contributes && r->group.members[rank].contributes;
}

static bool lane_new(struct round *r, const struct layout *layout, const struct plan *p, struct power_map *map, uint32_t rank)
{
    struct edges *g = r->edges;
    struct edge_lane *l = &g->lane[rank];
    if (goes_low(r, p, rank)) {
        l->low = low_lane_new(map);
        l->n = l->in = l->out = low_fragments(map);
    } else {
        l->n = r->due;
    }
    for (uint32_t k = 0; !l->low && k < r->due; k++) {
        uint64_t segment = edge_segment(g, layout, r->frag[k]);
        l->in += (g->edge[rank].in & segment) != 0 && r->group.members[rank].contributes;
        l->out += (g->edge[rank].out & segment) != 0 && r->contributes;
    }
    size_t words = bitmap_words(l->n) + 1;
    r->lane[rank].share = l->in;
    l->got = calloc(words, 8);
    l->told = calloc(words, 8);
    l->again = calloc(words, 8);
    l->kept = l->in && !l->low ? calloc((size_t)r->due + 1, sizeof *l->kept) : NULL;
    l->sent_at = r->started;
    return l->got && l->told && l->again && (l->kept || l->low || !l->in) && (l->low || !goes_low(r, p, rank));
}

bool edge_new(struct round *r, const struct layout *l, const struct plan *p)
{
    struct edges *g = calloc(1, sizeof *g);
    if (!g)
        return false;
    r->edges = g;
    g->atomic = p->atomic;
    g->segments = p->segments;
    memcpy(g->edge, p->edge, sizeof g->edge);
    for (uint32_t i = 0; i < p->group.n; i++)
        g->edge[i].weight = (double)(float)g->edge[i].weight; /* as it travels */
    g->change = calloc((size_t)r->due + 1, sizeof *g->change);
    g->who = calloc((size_t)r->due + 1, sizeof *g->who);
    if (!g->change || !g->who)
        return false;
    struct power_map *map = p->rank ? power_map_new(l, p->rank, r->number) : NULL;
    bool ok = map || !p->rank;
    for (uint32_t i = 0; ok && i < p->group.n; i++)
        ok = lane_new(r, l, p, map, i);
    power_map_free(map); /* the lanes have it */
    return ok;
}

void edge_free(struct round *r)
{
    struct edges *g = r->edges;
    if (!g)
        return;
    for (uint32_t i = 0; i < r->group.n; i++) {
        struct edge_lane *l = &g->lane[i];
        for (uint32_t k = 0; l->kept && k < r->due; k++)
            free(l->kept[k]);
        free(l->kept);
        low_lanes_free(l->low);
        free(l->got);
        free(l->told);
        free(l->again);
    }
    for (uint32_t k = 0; g->change && k < r->due; k++)
        free(g->change[k]);
    low_lanes_free(g->late);
    free(g->change);
    free(g->who);
    free(g);
    r->edges = NULL;
}

uint64_t edge_bytes_bound(const struct layout *l, uint32_t members)
{
    uint64_t in = members - 1 < EDGES_IN_MAX ? members - 1 : EDGES_IN_MAX;
    if (l->kind.strategy == SLEET_RPS)
        return 0;
    return sizeof(struct edges) + low_round_bytes_bound(l, (uint32_t)in) + (uint64_t)l->fragments * (in * (FRAGMENT_ELEMENTS * 4 + 8) + FRAGMENT_ELEMENTS * 8 + 16 + members / 2);
}

uint32_t edge_expected(const struct round *r)
{
    uint64_t in = 0;
    for (uint32_t i = 0; i < r->group.n; i++)
        in += r->edges->lane[i].low ? r->due : r->edges->lane[i].in;
    return r->due ? (uint32_t)((in + r->due - 1) / r->due) + r->contributes : 1;
}

/* ---- values in */

/* Its values join the result. */
static void add(const struct set *s, struct round *r, uint32_t rank, uint32_t number, const float *x)
{
    struct edges *g = r->edges;
    uint32_t n;
    const float *own = edge_own(s, r, number, &n);
    if (!g->change[number] && !(g->change[number] = calloc(FRAGMENT_ELEMENTS, sizeof(double))))
        return;
    for (uint32_t i = 0; i < n; i++)
        g->change[number][i] += g->edge[rank].weight * ((double)x[i] - (double)own[i]);
    g->who[number] |= BIT(rank);
}

/* Take what waits, as far as it may be taken. */
void edge_take_kept(const struct set *s, struct round *r, uint32_t rank)
{
    struct edge_lane *l = &r->edges->lane[rank];
    for (uint32_t k = 0; l->kept_n && k < r->due; k++) {
        if (!l->kept[k] || !edge_counts(r->edges, rank, k))
            continue;
        add(s, r, rank, k, l->kept[k]);
        edge_drop_kept(l, k);
    }
}

/* Begin with the edges of low rank whose older rounds are decided. */
void edge_open_low(struct set *s, struct round *r)
{
    for (uint32_t i = 0; i < r->group.n && edge_open(r); i++)
        if (r->edges->lane[i].low && low_open(s, r, i)) {
            r->quiet_until = (sleet_time){0};
            low_settle(s, r, i, false);
        }
}

void edge_join(struct set *s, struct round *r, const struct env *e, sleet_time now)
{
    r->own.first_seen = now;
    for (uint32_t i = 0; i < r->group.n; i++) {
        const struct member *m = edge_member(r, e, i);
        r->lane[i].summary_at = time_add(now, MS(2) + 2 * (m->rtt.valid ? m->rtt.srtt : MS(1)));
        r->lane[i].summary_due = false;
        edge_take_kept(s, r, i);
    }
    edge_open_low(s, r);
}

/* The number of what has come; NOT_DUE: it is none that is expected. */
static uint32_t number_of(const struct set *s, const struct round *r, uint32_t rank, const struct wire_data *d,
                          const struct part *part)
{
    const struct edge_lane *l = &r->edges->lane[rank];
    if (!l->in || wire_is_low(d->phase) != (l->low != NULL))
        return NOT_DUE;
    if (l->low)
        return d->fragment < l->n && part->n == low_elements(l->low, d->fragment) ? d->fragment : NOT_DUE;
    uint32_t number = r->number_of[part->fragment];
    return number != NOT_DUE && edge_comes(s, r, rank, number) ? number : NOT_DUE;
}

/* Into the result, or beside it for the time being; false: it can be neither. */
static bool take(struct set *s, struct round *r, uint32_t rank, uint32_t number, const struct wire_data *d,
                 const struct part *part)
{
    struct edge_lane *l = &r->edges->lane[rank];
    if (l->low)
        return low_take(s, r, rank, number, d->tag, part->x);
    if (edge_open(r) && edge_counts(r->edges, rank, number)) {
        add(s, r, rank, number, part->x);
        return true;
    }
    if (!(l->kept[number] = malloc(FRAGMENT_ELEMENTS * sizeof(float))))
        return false;
    memcpy(l->kept[number], part->x, part->n * sizeof(float));
    l->kept_n++;
    return true;
}

enum fate edge_recv(struct set *s, struct round *r, const struct env *e, uint32_t rank, const struct wire_data *d,
                    const struct part *part, sleet_time now)
{
    struct edges *g = r->edges;
    struct edge_lane *l = &g->lane[rank];
    struct lane *lane = &r->lane[rank];
    uint32_t number = number_of(s, r, rank, d, part);
    (void)e;
    l->apart |= l->in && wire_is_low(d->phase) != (l->low != NULL);
    if (number == NOT_DUE)
        return FATE_FOREIGN;
    if (edge_two_way(g, rank) && (double)d->weight < g->edge[rank].weight)
        g->edge[rank].weight = (double)d->weight; /* of two lists the lesser weight, at both ends */
    if (d->remaining <= l->in && l->in - d->remaining > lane->commits_told)
        lane->commits_told = l->in - d->remaining;
    l->end |= (d->flags & DATA_LAST) != 0;
    if (bitmap_test(l->got, number)) {
        lane->summary_due |= time_since(now, lane->said_at) >= ASK_GAP; /* it has not heard so */
        return FATE_ACCEPTED;
    }
    if (r->closing || r->closed) {
        lane->got_late += lane->got_direct + lane->got_repaired + lane->got_late < lane->share;
        lane->summary_due |= time_since(now, lane->said_at) >= ASK_GAP;
        return FATE_STALE;
    }
    if (!take(s, r, rank, number, d, part))
        return FATE_STALE;
    bitmap_set(l->got, number);
    lane->summary_due |= ++l->got_n == l->in; /* it is there now: its word is asked for soon */
    *(d->phase == PHASE_EDGE || d->phase == PHASE_LOW ? &lane->got_direct : &lane->got_repaired) += 1;
    if (l->low)
        low_settle(s, r, rank, false);
    return FATE_ACCEPTED;
}
