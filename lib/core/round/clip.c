#include "round/clip.h"
#include "base/bitmap.h"
#include "round/round.h"
#include "tensor/reduce.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define EXCESS_MAX 1e6 /* more is told as that */

static int compare(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

float clip_median(float *x, uint32_t n)
{
    qsort(x, n, sizeof *x, compare);
    return n ? x[(n - 1) / 2] : 0;
}

void clip_scale_add(struct clip_scale *s, float sample)
{
    float sorted[CLIP_SAMPLES];
    s->sample[s->pos] = sample;
    s->pos = (uint8_t)((s->pos + 1) % CLIP_SAMPLES);
    s->n = (uint8_t)(s->n < CLIP_SAMPLES ? s->n + 1 : s->n);
    memcpy(sorted, s->sample, s->n * sizeof *sorted);
    s->median = clip_median(sorted, s->n);
}

static const float *last_values(const struct set *s, uint32_t fragment)
{
    const struct clip *c = &s->clip;
    return c->known && bitmap_test(c->known, fragment)
               ? c->last + (size_t)fragment * FRAGMENT_ELEMENTS
               : NULL;
}

/* Root mean square of the difference; -1: there is nothing to compare with. */
static float change_of(const struct set *s, uint32_t fragment, const float *x, uint32_t n)
{
    const float *last = last_values(s, fragment);
    double sum = 0;
    if (!last)
        return -1;
    for (uint32_t i = 0; i < n; i++) {
        double d = (double)x[i] - (double)last[i];
        sum += d * d;
    }
    return (float)sqrt(sum / n);
}

void clip_committed(struct set *s, const struct env *e, uint32_t fragment, const float *x,
                    uint32_t n)
{
    struct clip *c = &s->clip;
    if (e->config->clip <= 0)
        return;
    if (!c->last) /* pages that are not written cost nothing */
        c->last = malloc(((size_t)s->layout.fragments * FRAGMENT_ELEMENTS + 1) * sizeof(float));
    if (!c->known)
        c->known = calloc(bitmap_words(s->layout.fragments) + 1, 8);
    if (!c->change)
        c->change = calloc(s->layout.n + 1u, sizeof *c->change);
    if (!c->last || !c->known || !c->change)
        return;
    memcpy(c->last + (size_t)fragment * FRAGMENT_ELEMENTS, x, n * sizeof *x);
    bitmap_set(c->known, fragment);
}

/* The changes of a fragment's contributors, by rank; NULL when out of memory. */
static float *changes(struct round *r, uint32_t number)
{
    struct owner_side *o = &r->own;
    if (!o->change)
        o->change = calloc((size_t)owner_numbers(r) * r->group.n + 1, sizeof *o->change);
    return o->change ? o->change + (size_t)number * r->group.n : NULL;
}

bool clip_suspects(struct set *s, struct round *r, const struct env *e, uint32_t number,
                   uint32_t rank, const float *x, uint32_t n, float weight)
{
    struct owner_side *o = &r->own;
    uint32_t fragment = owner_fragment(r, number), tensor, len;
    uint64_t offset;
    if (weight > r->lane[rank].weight) /* state may count for less, see late_weight() */
        r->lane[rank].weight = weight;
    if (e->config->clip <= 0)
        return false;
    float change = change_of(s, fragment, x, n), *by_rank = changes(r, number);
    if (change < 0 || !by_rank)
        return false;
    by_rank[rank] = change;
    layout_locate(&s->layout, fragment, &tensor, &offset, &len);
    const struct clip_scale *usual = &s->clip.change[tensor], *usual_weight = &s->clip.weight;
    bool fits = usual->n && (double)change <= e->config->clip * (double)usual->median &&
                usual_weight->n && (double)weight <= e->config->clip * (double)usual_weight->median;
    if (fits || (int)rank == r->self || o->suspects_n == s->layout.fragments)
        return false;
    if (!o->suspects)
        o->suspects = calloc(owner_numbers(r) + 1u, sizeof *o->suspects);
    struct suspect *p = o->suspects ? malloc(sizeof *p + n * sizeof *x) : NULL;
    if (!p)
        return false;
    *p = (struct suspect){o->suspects[number], (uint8_t)rank, weight, change};
    memcpy(p->x, x, n * sizeof *x);
    o->suspects[number] = p;
    o->suspects_n++;
    return true;
}

/* What is usual by this fragment's contributors. */
struct usual {
    uint32_t n;   /* contributors compared */
    float change; /* the lower median of all */
    float sample; /* of those that changed anything; 0 unless there are two */
    float weight;
};

static struct usual usual_of(const struct round *r, uint32_t number, const float *by_rank)
{
    float all[SLEET_GROUP_MAX], moved[SLEET_GROUP_MAX], weight[SLEET_GROUP_MAX];
    struct usual u = {0};
    uint32_t moving = 0;
    for (uint32_t i = 0; i < r->group.n; i++) {
        if (!(r->own.mask[number] >> i & 1))
            continue;
        weight[u.n] = (int)i == r->self ? (float)r->weight : r->lane[i].weight;
        all[u.n++] = by_rank[i];
        if (by_rank[i] > 0)
            moved[moving++] = by_rank[i];
    }
    u.change = clip_median(all, u.n);
    u.weight = clip_median(weight, u.n);
    u.sample = moving > 1 ? clip_median(moved, moving) : 0;
    return u;
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

/* Add what was held back; what is too much is cut down to what is usual. */
static void add_suspect(struct set *s, struct round *r, const struct env *e, uint32_t number,
                        struct suspect *p, const struct usual *u)
{
    uint32_t fragment = owner_fragment(r, number), tensor, n;
    uint64_t offset;
    layout_locate(&s->layout, fragment, &tensor, &offset, &n);
    const float *last = last_values(s, fragment);
    double usual = larger((double)s->clip.change[tensor].median, (double)u->change);
    double usual_weight = larger((double)s->clip.weight.median, (double)u->weight);
    double far = usual > 0 ? (double)p->change / usual : 0,
           heavy = (double)p->weight / usual_weight;
    double weight = p->weight, most = e->config->clip, excess = larger(far, heavy) / most;
    struct lane *l = &r->lane[p->rank];
    if (u->n > 1 && excess > 1) {
        for (uint32_t i = 0; far > most && i < n; i++)
            p->x[i] = (float)((double)last[i] + ((double)p->x[i] - (double)last[i]) / far);
        if (heavy > most)
            weight = usual_weight;
        l->clipped++;
        e->counters->clipped++;
        l->excess = (float)larger((double)l->excess, excess < EXCESS_MAX ? excess : EXCESS_MAX);
    }
    owner_add(s, r, e, number, p->rank, p->x, weight, n);
}

void clip_settle(struct set *s, struct round *r, const struct env *e, uint32_t number)
{
    struct owner_side *o = &r->own;
    uint32_t tensor, n;
    uint64_t offset;
    if (!o->change || e->config->clip <= 0)
        return;
    struct usual u = usual_of(r, number, changes(r, number));
    layout_locate(&s->layout, owner_fragment(r, number), &tensor, &offset, &n);
    for (struct suspect *p = o->suspects ? o->suspects[number] : NULL, *next; p; p = next) {
        next = p->next;
        add_suspect(s, r, e, number, p, &u);
        free(p);
        o->suspects_n--;
    }
    if (o->suspects)
        o->suspects[number] = NULL;
    if (u.sample > 0)
        clip_scale_add(&s->clip.change[tensor], u.sample);
    if (u.n > 1)
        clip_scale_add(&s->clip.weight, u.weight);
}

/* Nobody else judges what an owner adds of its own to its share: each member does, for itself.
 * What its own values have done since may be done by the result too. */
double clip_excess(const struct set *s, const struct round *r, const struct env *e,
                   uint32_t fragment, const struct held *h, const float *x)
{
    uint32_t tensor, n;
    uint64_t offset;
    layout_locate(&s->layout, fragment, &tensor, &offset, &n);
    float change = change_of(s, fragment, x, n), own = 0;
    if (e->config->clip <= 0 || change < 0 || !s->established || !s->clip.change[tensor].n)
        return 0;
    if (r->contributes && !r->closed)
        own = change_of(s, fragment, (const float *)r->send[tensor] + offset, n);
    double usual = larger((double)s->clip.change[tensor].median, (double)own);
    double usual_weight = larger((double)s->clip.weight.median, r->weight);
    bool whole = estimator_for(&s->layout, tensor)->whole; /* its weight is that of all */
    double weight = (double)h->weight /
                    (whole ? group_contributors(&r->group) : (uint32_t)__builtin_popcountll(h->who));
    double excess = larger((double)change / usual, weight / usual_weight) / e->config->clip;
    return excess < EXCESS_MAX ? excess : EXCESS_MAX;
}

void clip_drop_suspects(struct owner_side *o, uint32_t numbers)
{
    for (uint32_t i = 0; o->suspects && i < numbers; i++)
        for (struct suspect *p = o->suspects[i], *next; p; p = next) {
            next = p->next;
            free(p);
        }
    free(o->suspects);
    free(o->change);
    o->suspects = NULL;
    o->change = NULL;
}

void clip_fini(struct clip *c)
{
    free(c->last);
    free(c->known);
    free(c->change);
    *c = (struct clip){0};
}

uint64_t clip_bytes_bound(const struct layout *l)
{
    return (uint64_t)l->fragments * FRAGMENT_ELEMENTS * sizeof(float) + l->fragments / 8 + 8 +
           (uint64_t)l->n * sizeof(struct clip_scale);
}

uint64_t clip_round_bytes_bound(const struct layout *l, uint32_t members)
{
    uint64_t frags = l->fragments; /* as many as that are held back at most */
    uint64_t numbers = frags + frags / members + 2 * RUN_FRAGMENTS;
    return frags * (sizeof(struct suspect) + FRAGMENT_ELEMENTS * sizeof(float) + 16) +
           numbers * (sizeof(struct suspect *) + members * sizeof(float));
}
