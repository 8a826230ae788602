/* Why a round covered what it did, as this node saw it. */
#include "round/round.h"
#include <stdlib.h>
#include <string.h>

static int compare_classes(const void *a, const void *b)
{
    const engine_class *x = a, *y = b;
    return (x->elements < y->elements) - (x->elements > y->elements);
}

/* Count the fragment's elements among those with the same contributors. */
static void classify(engine_explanation *x, uint64_t who, uint32_t tensor, uint64_t offset,
                     uint32_t n)
{
    uint32_t i = 0;
    while (i < x->classes && x->class[i].contributors != who)
        i++;
    if (i == ENGINE_CLASSES_MAX) {
        x->other_elements += n;
        return;
    }
    if (i == x->classes)
        x->class[x->classes++] = (engine_class){who, 0, tensor, offset};
    x->class[i].elements += n;
}

static enum engine_lane_state state_of(const struct round *r, const struct env *e, uint32_t rank)
{
    const struct group_member *g = &r->group.members[rank];
    const struct member *m = &e->members[g->slot];
    if ((int)rank == r->self)
        return LANE_SELF;
    if (m->boot_id != g->boot_id)
        return LANE_RESTARTED;
    if (!m->alive)
        return m->left ? LANE_LEFT : LANE_SILENT;
    return round_disagrees(r, rank) ? LANE_OTHER_GROUP : g->contributes ? LANE_OK : LANE_JOINING;
}

bool set_explain(const struct set *s, const struct env *e, uint64_t number, engine_explanation *x)
{
    const struct round *r = s->ring[number % ROUNDS_RING];
    memset(x, 0, sizeof *x);
    if (!r || r->number != number)
        return false;
    x->round = number;
    x->joined = r->joined;
    x->closed = r->closed;
    x->expected = r->expected;
    x->flags = r->flags;
    for (uint32_t f = 0; r->joined && f < s->layout.fragments; f++) {
        uint32_t tensor, n;
        uint64_t offset, own = (uint64_t)1 << r->self;
        if (r->number_of[f] == NOT_DUE)
            continue;
        layout_locate(&s->layout, f, &tensor, &offset, &n);
        uint64_t fill = layout_additive(&s->layout, tensor) ? 0 : own;
        classify(x, r->held[f].weight > 0 ? r->held[f].who : fill, tensor, offset, n);
    }
    qsort(x->class, x->classes, sizeof x->class[0], compare_classes);
    for (uint32_t i = 0; i < r->people_n; i++)
        x->people[x->people_n++] = r->people[i].node_id;
    for (uint32_t i = 0; i < r->group.n; i++) {
        engine_lane *l = &x->lane[x->lanes++];
        l->state = state_of(r, e, i);
        ledger_lane(r, i, &l->scatter, &l->gather);
        l->clipped = r->lane[i].clipped;
        l->refused = r->lane[i].refused;
        l->excess = (double)r->lane[i].excess;
    }
    return true;
}
