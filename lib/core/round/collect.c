/* A model that is larger than what one round can bring: a joiner keeps count of what the rounds in
 * which it joined have brought together.  What it has of each fragment is the newest; so its model
 * is of a few rounds, and becomes of one with the first that it contributes to. */
#include "base/bitmap.h"
#include "round/round.h"
#include <stdlib.h>

void collect_drop(struct collect *c)
{
    free(c->have);
    *c = (struct collect){0};
}

bool collect_round(struct set *s, const struct round *r, const struct env *e, bool *news)
{
    struct collect *c = &s->collect;
    uint32_t n = s->layout.fragments;
    if (c->have && (c->lineage != r->lineage || r->number < c->round ||
                    r->number - c->round > e->config->window))
        collect_drop(c); /* of another model, or too old */
    bool goes_on = c->have != NULL;
    if (!goes_on && !(c->have = calloc(bitmap_words(n), sizeof *c->have)))
        return false;
    c->lineage = r->lineage;
    c->round = r->number;
    for (uint32_t f = 0; f < n; f++) {
        if (r->held[f].weight == 0 || bitmap_test(c->have, f))
            continue;
        bitmap_set(c->have, f);
        c->n++;
        *news |= goes_on;
    }
    return c->n == n;
}
