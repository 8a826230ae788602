#include "round/sums.h"
#include "tensor/reduce.h"
#include <stdlib.h>

#define BIT(rank) ((uint64_t)1 << (rank))

double *sums_of(struct round *r, uint32_t number)
{
    double **acc = &r->own.acc[number];
    if (!*acc)
        *acc = calloc(FRAGMENT_ELEMENTS, sizeof **acc);
    return *acc;
}

uint32_t owner_numbers(const struct round *r)
{
    return r->lane[r->self].share + r->own.foreign_max;
}

uint32_t owner_fragment(const struct round *r, uint32_t number)
{
    uint32_t share = r->lane[r->self].share;
    return number < share ? r->frag[r->lane[r->self].start + number]
                          : r->own.foreign[number - share];
}

bool sums_number(const struct set *s, struct round *r, uint32_t fragment, uint32_t *number)
{
    struct owner_side *o = &r->own;
    uint32_t share = r->lane[r->self].share;
    *number = r->number_of[fragment];
    if (r->owner_of_run[fragment / RUN_FRAGMENTS] == r->self)
        return true;
    if (!o->foreign)
        o->foreign = calloc((size_t)o->foreign_max + 1, sizeof *o->foreign);
    if (!o->foreign_of)
        o->foreign_of = calloc((size_t)s->layout.fragments + 1, sizeof *o->foreign_of);
    if (!o->foreign || !o->foreign_of)
        return false;
    if (!o->foreign_of[fragment]) {
        if (o->foreign_n == o->foreign_max)
            return false;
        o->foreign[o->foreign_n] = fragment;
        o->foreign_of[fragment] = ++o->foreign_n;
    }
    *number = share + o->foreign_of[fragment] - 1;
    return true;
}

/* The probability that what the member contributes gets here. */
static double arrival_from(const struct set *s, const struct round *r, const struct env *e,
                           uint32_t rank)
{
    const struct member *m = &e->members[r->group.members[rank].slot];
    return (int)rank == r->self ? 1 : arrival_rate(&m->sets[s->handle].arrival);
}

static uint32_t tensor_of(const struct set *s, const struct round *r, uint32_t number)
{
    uint32_t tensor, n;
    uint64_t offset;
    layout_locate(&s->layout, owner_fragment(r, number), &tensor, &offset, &n);
    return tensor;
}

void owner_add(const struct set *s, struct round *r, const struct env *e, uint32_t number,
               uint32_t rank, const float *x, double weight, uint32_t n)
{
    const struct estimator *est = estimator_for(&s->layout, tensor_of(s, r, number));
    reduce_add(r->own.acc[number], x, weight * est->factor(arrival_from(s, r, e, rank)), n);
    r->own.wsum[number] += weight;
}

double sums_divisor(const struct set *s, const struct round *r, const struct env *e, uint32_t number)
{
    double live = 0, all = 0;
    for (uint32_t i = 0; i < r->group.n; i++) {
        const struct group_member *g = &r->group.members[i];
        double weight = (double)e->members[g->slot].sets[s->handle].gave;
        weight = weight > 0 ? weight : 1;
        all += g->contributes || (r->own.mask[number] & BIT(i)) ? weight : 0;
        live += (r->own.need | r->own.mask[number]) & BIT(i) ? weight : 0;
    }
    return estimator_for(&s->layout, tensor_of(s, r, number))->divisor(r->own.wsum[number], live, all);
}

void sums_add_own(struct set *s, struct round *r, const struct env *e, uint32_t number)
{
    uint32_t tensor, n;
    uint64_t offset;
    if (!r->prepared || r->closed || !r->contributes || (r->own.mask[number] & BIT(r->self)))
        return;
    layout_locate(&s->layout, owner_fragment(r, number), &tensor, &offset, &n);
    float sum[FRAGMENT_ELEMENTS];
    const float *x = carry_add(s, r, owner_fragment(r, number), (const float *)r->send[tensor] + offset, sum);
    if (!reduce_finite(x, n)) {
        e->counters->nonfinite++;
        return;
    }
    if (!estimator_takes(&s->layout, tensor, x, n) || !sums_of(r, number))
        return;
    double weight = late_weight(s, r, tensor);
    clip_suspects(s, r, e, number, (uint32_t)r->self, x, n, (float)weight);
    owner_add(s, r, e, number, (uint32_t)r->self, x, weight, n);
    r->own.mask[number] |= BIT(r->self);
}
