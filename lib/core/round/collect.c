/* A model of which a round brings a part, by its size or because the set is spread over rounds: a joiner keeps count of what the rounds in
 * which it joined have brought together.  What it has of each fragment is the newest; so its model
 * is of a few rounds, and becomes of one with the first that it contributes to.
 *
 * Of an additive set the model is the tensors of state, of which each round brings its part; the
 * joiner takes the steps between as the others do, so what it has stays of one. */
#include "base/bitmap.h"
#include "round/round.h"
#include <stdlib.h>

void collect_drop(struct collect *c)
{
    free(c->have);
    *c = (struct collect){0};
}

bool collect_round(struct set *s, const struct round *r, const struct env *e, bool whole, bool *news)
{
    struct collect *c = &s->collect;
    const struct layout *l = &s->layout;
    bool additive = kind_additive(&l->kind);
    bool spread = l->kind.spread > 1 && r->number > 1; /* a round brings a part of the model */
    uint32_t all = additive ? l->state : spread ? l->fragments - l->state : l->fragments;
    *news = additive ? r->filled > 0 : whole;
    if (!all || (whole && !additive && !spread))
        return true;
    bool other = c->lineage && r->lineage && c->lineage != r->lineage; /* 0: not known then */
    if (c->have && (other || r->number < c->round ||
                    r->number - c->round > e->config->window))
        collect_drop(c); /* of another model, or too old */
    bool goes_on = c->have != NULL;
    if (!goes_on && !(c->have = calloc(bitmap_words(l->fragments), sizeof *c->have)))
        return false;
    c->lineage = r->lineage ? r->lineage : c->lineage;
    c->round = r->number;
    for (uint32_t t = 0; t < l->n; t++) {
        const struct tensor *ten = &l->tensors[t];
        if (layout_additive(l, t) || (spread && ten->dtype == SLEET_F32_STATE))
            continue;
        for (uint32_t f = ten->first; f < ten->first + ten->fragments; f++) {
            if (r->held[f].weight == 0 || bitmap_test(c->have, f))
                continue;
            bitmap_set(c->have, f);
            c->n++;
            *news |= goes_on;
        }
    }
    return c->n == all;
}
