/* A budget for what matters most: the fragments of a contribution that carry most energy are sent twice.
 *
 * Contributions are not repaired, so of each a part p is lost, whatever it holds.  Where the energy lies in few fragments
 * and those are sent again their loss falls to p^2, and the error of the mean by far more than the bytes rise.  What
 * that does for learning is in docs/learning.md.  It is for what is added up; of a model the values
 * say nothing of what matters, and rates of arrival (estimator expected) are those of what is sent once. */
#include "base/bitmap.h"
#include "round/round.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define STEPS 2048 /* of energies: the upper bits of a float that is not negative, 16 from one power of 2 to the next */

static uint32_t step_of(float energy)
{
    uint32_t bits;
    memcpy(&bits, &energy, sizeof bits);
    return bits >> 20;
}

/* 0: it is not to be sent twice. */
static float energy_of(const struct set *s, const struct round *r, uint32_t fragment)
{
    uint32_t tensor, n;
    uint64_t offset;
    float sum[FRAGMENT_ELEMENTS], energy = 0;
    layout_locate(&s->layout, fragment, &tensor, &offset, &n);
    if (r->number_of[fragment] == NOT_DUE || r->owner_of_run[fragment / RUN_FRAGMENTS] == r->self ||
        !layout_additive(&s->layout, tensor))
        return 0;
    const float *x = carry_add(s, r, fragment, (const float *)r->send[tensor] + offset, sum);
    for (uint32_t i = 0; i < n; i++)
        energy += x[i] * x[i];
    return isfinite(energy) ? energy : 0;
}

/* The least step of which not all can be taken, and how many of that one. */
static uint32_t lowest(const struct twice *t, uint32_t fragments, uint32_t *room)
{
    uint32_t count[STEPS] = {0}, others = 0, step = STEPS;
    for (uint32_t f = 0; f < fragments; f++) {
        count[step_of(t->energy[f])]++;
        others += t->energy[f] > 0;
    }
    *room = (uint32_t)(t->share * others + 0.5);
    while (step > 1 && count[step - 1] <= *room)
        *room -= count[--step];
    return step - 1;
}

bool twice_choose(const struct set *s, struct round *r)
{
    struct twice *t = &r->twice;
    uint32_t fragments = s->layout.fragments, room;
    if (t->share <= 0 || t->chosen || !r->contributes)
        return true;
    if (!t->energy && !(t->energy = calloc((size_t)fragments + 1, sizeof *t->energy)))
        return true; /* once is good as well */
    for (uint32_t i = 0; i < SLICE_FRAGMENTS && t->next < fragments; i++, t->next++)
        t->energy[t->next] = energy_of(s, r, t->next);
    if (t->next < fragments)
        return false;
    t->chosen = calloc(bitmap_words(fragments) + 1, 8);
    uint32_t step = t->chosen ? lowest(t, fragments, &room) : 0;
    for (uint32_t f = 0; t->chosen && f < fragments; f++) {
        uint32_t at = step_of(t->energy[f]);
        if (t->energy[f] <= 0 || at < step || (at == step && !room))
            continue;
        room -= at == step;
        bitmap_set(t->chosen, f);
        r->lane[r->owner_of_run[f / RUN_FRAGMENTS]].twice++;
    }
    free(t->energy);
    t->energy = NULL;
    return true;
}

void twice_queue(struct round *r, struct lane *l)
{
    for (uint32_t i = 0; l->twice && i < l->share; i++) {
        uint32_t f = r->frag[l->start + i];
        if (!bitmap_test(r->twice.chosen, f))
            continue;
        l->twice--;
        if (!bitmap_test(r->scatter_again, f)) {
            bitmap_set(r->scatter_again, f);
            l->scatter_repairs++;
        }
    }
}

bool twice_waits(const struct lane *l)
{
    return l->twice || l->scatter_repairs;
}
