#include "round/parity.h"
#include "round/round.h"
#include "wire/parity.h"
#include <assert.h>
#include <stdlib.h>

static_assert(PARITY_BLOCK_MAX == WIRE_BLOCK_MAX, "a block is what a datagram of parity holds");
static_assert(PARITY_DATA_MAX == 64 && PARITY_ROWS_MAX == 32 && PARITY_DEPTH_MAX == 8, "as on the wire");

#define COUNTER_MARGIN 8 /* packets that may overtake before a hole counts as lost */
#define UNTIL_KNOWN SEC(3600) /* the deadline of a round that is not the node's own */

static struct parity_lane *made(struct lane *l)
{
    if (!l->parity)
        l->parity = calloc(1, sizeof *l->parity);
    return l->parity;
}

static enum parity_way way_of(uint8_t phase)
{
    bool gather = phase == PHASE_GATHER || phase == PHASE_GATHER_PARITY;
    return gather ? PARITY_GATHER : PARITY_SCATTER;
}

static struct parity_encoder *encoder_of(const struct lane *l, enum parity_way way)
{
    return l->parity && l->parity->out[way].code.rows ? &l->parity->out[way] : NULL;
}

/* ---- sender ---------------------------------------------------------------------------------- */

/* Fragments that go to the member. */
static uint32_t share_of(const struct round *r, uint32_t rank, enum parity_way way)
{
    return r->lane[way == PARITY_GATHER ? (uint32_t)r->self : rank].share;
}

void parity_decide(struct round *r, const struct env *e, uint32_t rank, enum parity_way way, sleet_time now)
{
    struct lane *l = &r->lane[rank];
    struct member *m = &e->members[r->group.members[rank].slot];
    struct parity_lane *p = l->parity;
    if ((p && p->decided[way]) || (way == PARITY_SCATTER && !r->exact) || !(p = made(l)))
        return;
    uint32_t fragments = share_of(r, rank, way), datagrams = (fragments + r->fit - 1) / r->fit;
    uint64_t rate = e->config->rate_bps / (r->group.n > 2 ? r->group.n - 1u : 1u);
    struct protect_case c = {.loss = m->loss_told,
                             .rtt = m->rtt.valid ? m->rtt.srtt : -1,
                             .bytes = (uint64_t)datagrams * WIRE_PAYLOAD_MAX,
                             .datagrams = datagrams,
                             .rate_bps = rate < m->flow.pacer.rate_bps ? rate : m->flow.pacer.rate_bps,
                             .deadline = r->joined ? time_since(r->deadline, now) : UNTIL_KNOWN,
                             .congested = m->flow.pacer.rate_bps < m->flow.pacer.max_bps,
                             .off = e->config->parity_off || e->config->repair_off || e->config->repair_late};
    p->decided[way] = true;
    m->protection = protect_decide(&c);
    if (!m->protection.rows || fragments > WIRE_NUMBER_MAX || round_disagrees(r, rank))
        return;
    struct parity_code code = {m->protection.rows, (uint8_t)parity_depth(datagrams)};
    if (!parity_encoder_init(&p->out[way], code, fragments))
        p->out[way].code.rows = 0;
}

void parity_cover(struct round *r, uint32_t rank, struct wire_data *d, uint32_t fragment,
                  const uint8_t *payload, size_t len, uint64_t counter)
{
    struct lane *l = &r->lane[rank];
    struct parity_encoder *out = encoder_of(l, way_of(d->phase));
    uint8_t block[WIRE_BLOCK_MAX];
    if (!out || (d->phase != PHASE_GATHER && d->phase != PHASE_SCATTER) ||
        (d->phase == PHASE_GATHER && r->owner_of_run[fragment / RUN_FRAGMENTS] != r->self))
        return;
    d->rows = out->code.rows;
    d->depth = out->code.depth;
    d->number = parity_encoder_add(out, block, wire_block_encode(block, fragment, d, payload, len));
    if (d->phase == PHASE_GATHER && parity_encoder_began(out))
        l->parity->window_at = (uint32_t)counter;
}

/* Nothing of the kind will leave after what has left. */
static bool at_end(const struct round *r, const struct lane *l, enum parity_way way)
{
    if (way == PARITY_GATHER)
        return r->own.final && l->gather_pos >= r->own.commits;
    return l->scatter_pos >= l->share;
}

bool parity_due(const struct round *r, uint32_t rank, enum parity_way way)
{
    const struct lane *l = &r->lane[rank];
    const struct parity_encoder *out = encoder_of(l, way);
    bool open = way == PARITY_GATHER ? !l->past : r->joined && !r->closed;
    return out && open && parity_encoder_due(out, at_end(r, l, way));
}

size_t parity_fill(const struct set *s, struct round *r, const struct env *e, uint32_t rank, enum parity_way way,
                   uint8_t *out, uint64_t counter, sleet_time now)
{
    struct lane *l = &r->lane[rank];
    struct parity_encoder *from = encoder_of(l, way);
    struct parity_row row = parity_encoder_take(from);
    struct wire_parity p = {.group = r->group.hash,
                            .set = s->layout.hash,
                            .round = (uint32_t)r->number,
                            .index = row.group,
                            .phase = way == PARITY_GATHER ? PHASE_GATHER_PARITY : PHASE_SCATTER_PARITY,
                            .rows = from->code.rows,
                            .depth = from->code.depth,
                            .row = row.row,
                            .blocks = row.blocks,
                            .bytes = row.bytes,
                            .len = (uint32_t)row.len};
    size_t len = wire_parity_encode(out, WIRE_BODY_MAX, &p);
    if (way == PARITY_GATHER) {
        l->gather_sent_at = now;
        l->parity->sent_at = (uint32_t)counter;
        l->parity->sent = true;
        l->summary_due |= gather_sent(r, e, rank);
    } else {
        l->scatter_sent_at = now;
        l->summary_due |= at_end(r, l, way) && !parity_due(r, rank, way); /* say END */
    }
    e->counters->parity_out++;
    if (at_end(r, l, way) && !parity_due(r, rank, way))
        parity_encoder_fini(from);
    return len;
}

/* The parity of the commit that left in the datagram `sent_at`, or of its window, has not had its time: it
 * has not left, or later ones than it have not been seen. */
bool parity_pending(const struct lane *l, uint32_t sent_at, uint32_t counter_seen)
{
    const struct parity_encoder *out = encoder_of(l, PARITY_GATHER);
    const struct parity_lane *p = l->parity;
    if (!p)
        return false;
    if (out && parity_encoder_open(out) && (int32_t)(sent_at - p->window_at) >= 0)
        return true;
    return p->sent && (int32_t)(p->sent_at - sent_at) > 0 &&
           (int32_t)(counter_seen - p->sent_at) <= COUNTER_MARGIN;
}

/* ---- receiver -------------------------------------------------------------------------------- */

/* What comes can still be of use here. */
static bool takes(const struct round *r, enum parity_way way)
{
    if (way == PARITY_GATHER)
        return r->joined && !r->closed && !r->closing;
    return !r->own.final && r->lane[r->self].share;
}

/* NULL where the sender's code is another one than before, or there is nothing to protect. */
static struct parity_decoder *decoder_for(struct round *r, uint32_t rank, enum parity_way way,
                                          uint8_t rows, uint8_t depth)
{
    struct lane *l = &r->lane[rank];
    uint32_t most = r->lane[way == PARITY_GATHER ? rank : (uint32_t)r->self].share;
    if (!takes(r, way) || !most || !made(l))
        return NULL;
    struct parity_decoder *d = &l->parity->in[way];
    if (!d->code.rows)
        parity_decoder_init(d, (struct parity_code){rows, depth}, most, &r->parity_room);
    return d->code.rows == rows && d->code.depth == depth ? d : NULL;
}

bool parity_note(struct round *r, uint32_t rank, const struct wire_data *d, uint32_t fragment, uint32_t *group)
{
    uint8_t block[WIRE_BLOCK_MAX];
    struct parity_decoder *in = decoder_for(r, rank, way_of(d->phase), d->rows, d->depth);
    if (!in)
        return false;
    parity_decoder_add(in, d->number, block,
                       wire_block_encode(block, fragment, d, d->payload, d->payload_len));
    *group = parity_group_of(in, d->number);
    return true;
}

bool parity_take(struct round *r, uint32_t rank, const struct wire_parity *p)
{
    struct parity_decoder *in = decoder_for(r, rank, way_of(p->phase), p->rows, p->depth);
    const struct parity_row row = {.group = p->index,
                                   .row = p->row,
                                   .blocks = p->blocks,
                                   .bytes = p->bytes,
                                   .len = p->len};
    return !in || parity_decoder_row(in, &row);
}

uint32_t parity_rebuild(struct round *r, uint32_t rank, enum parity_way way, uint32_t group,
                        void (*take)(void *arg, const uint8_t *block, size_t len), void *arg)
{
    struct parity_lane *p = r->lane[rank].parity;
    if (!p || !p->in[way].code.rows || !takes(r, way))
        return 0;
    return parity_decoder_rebuild(&p->in[way], group, take, arg);
}

/* ---- memory ---------------------------------------------------------------------------------- */

void parity_stop(struct round *r, enum parity_way way)
{
    for (uint32_t i = 0; i < SLEET_GROUP_MAX; i++)
        if (r->lane[i].parity)
            parity_decoder_fini(&r->lane[i].parity->in[way]);
}

void parity_free(struct round *r)
{
    parity_stop(r, PARITY_GATHER);
    parity_stop(r, PARITY_SCATTER);
    for (uint32_t i = 0; i < SLEET_GROUP_MAX; i++) {
        struct parity_lane *p = r->lane[i].parity;
        for (int way = 0; p && way < 2; way++)
            parity_encoder_fini(&p->out[way]);
        free(p);
        r->lane[i].parity = NULL;
    }
}

/* As much as the set at most, and some for each member where it is small. */
uint64_t parity_room(const struct layout *l, uint32_t members)
{
    return (uint64_t)l->fragments * WIRE_BLOCK_MAX +
           (uint64_t)members * 2 * PARITY_ROWS_MAX * WIRE_BLOCK_MAX;
}

uint64_t parity_bytes_bound(const struct layout *l, uint32_t members)
{
    return parity_room(l, members) + members * (sizeof(struct parity_lane) + 2 * parity_encoder_bytes_bound()) +
           (uint64_t)members * (l->fragments / PARITY_DATA_MAX + 2 * PARITY_DEPTH_MAX) * sizeof(struct parity_group);
}
