#include "train/slice.h"
#include "base/rng.h"
#include <stdlib.h>
#include <string.h>

/* ---- which parameters a slice has ----------------------------------------------------- */

/* The slice of the i-th weight of a matrix, see model_units(). */
static uint32_t slice_of(const struct model_matrix *m, size_t i, uint32_t n)
{
    size_t along = m->by_rows ? i / m->cols : i % m->cols;
    return (uint32_t)((uint64_t)(along % m->units) * n / m->units);
}

/* The slice of each parameter, in the model's order. */
static void fill_in(const model *net, uint32_t n, uint32_t *of)
{
    for (size_t k = 0; k < net->params; k++)
        of[k] = n;
    for (const struct model_matrix *m = net->matrix; m < net->matrix + net->matrices; m++)
        for (size_t i = 0; m->units && i < (size_t)m->rows * m->cols; i++)
            of[m->at + i] = slice_of(m, i, n);
}

/* How many parameters each slice has, behind them what all train; and the length of the order. */
static size_t count_all(const uint32_t *of, size_t params, uint32_t n, uint32_t fragment, size_t *count)
{
    size_t length = 0;
    for (size_t k = 0; k < params; k++)
        count[of[k]]++;
    for (uint32_t i = 0; i <= n; i++)
        length += (count[i] + fragment - 1) / fragment * fragment;
    return length;
}

/* A counting sort; count[] becomes where the next one goes. */
static void sort(struct slices *s, const uint32_t *of, size_t params, size_t *count)
{
    size_t at = 0;
    for (uint32_t i = 0; i <= s->n; i++) {
        uint32_t slice = i ? i - 1 : s->n; /* what all train first */
        size_t end = at + (count[slice] + s->fragment - 1) / s->fragment * s->fragment;
        count[slice] = at;
        for (; at < end; at += s->fragment)
            s->of[at / s->fragment] = slice;
    }
    for (size_t k = 0; k < s->length; k++)
        s->order[k] = SLICES_GAP;
    for (size_t k = 0; k < params; k++)
        s->order[count[of[k]]++] = (uint32_t)k;
}

bool slices_open(struct slices *s, const model *net, uint32_t n, uint32_t fragment)
{
    size_t params = model_params(net), *count = calloc(n + 1, sizeof *count);
    uint32_t *of = malloc(params * sizeof *of);
    *s = (struct slices){.n = n, .fragment = fragment};
    if (of && count) {
        fill_in(net, n, of);
        s->length = count_all(of, params, n, fragment, count);
        s->order = malloc(s->length * sizeof *s->order);
        s->of = malloc(s->length / fragment * sizeof *s->of);
    }
    bool ok = s->order && s->of;
    if (ok)
        sort(s, of, params, count);
    free(of);
    free(count);
    return ok;
}

void slices_to_model(const struct slices *s, const float *ordered, float *params)
{
    for (size_t k = 0; k < s->length; k++)
        if (s->order[k] != SLICES_GAP)
            params[s->order[k]] = ordered[k];
}

void slices_from_model(const struct slices *s, const float *params, float *ordered)
{
    for (size_t k = 0; k < s->length; k++)
        ordered[k] = s->order[k] == SLICES_GAP ? 0 : params[s->order[k]];
}

void slices_close(struct slices *s)
{
    free(s->order);
    free(s->of);
    *s = (struct slices){0};
}

/* ---- who trains them ------------------------------------------------------------------ */

struct claim {
    uint64_t hash;
    uint32_t slice, node;
};

static int compare(const void *a, const void *b)
{
    const struct claim *x = a, *y = b;
    return x->hash < y->hash ? -1 : x->hash > y->hash;
}

static uint32_t count(uint64_t bits)
{
    uint32_t n = 0;
    for (; bits; bits &= bits - 1)
        n++;
    return n;
}

bool slices_assign(uint32_t slices, uint32_t members, uint64_t nodes, uint64_t *who)
{
    uint32_t there = count(nodes), load[SLICE_NODES_MAX] = {0};
    struct claim *claim = malloc((size_t)slices * (there ? there : 1) * sizeof *claim);
    size_t claims = 0;
    if (!claim)
        return false;
    memset(who, 0, slices * sizeof *who);
    members = members < there ? members : there;
    for (uint32_t i = 0; i < SLICE_NODES_MAX; i++)
        for (uint32_t s = 0; nodes >> i & 1 && s < slices; s++)
            claim[claims++] = (struct claim){mix64(mix64(s + UINT64_C(0x736c6963)) ^ (i + 1)), s, i};
    qsort(claim, claims, sizeof *claim, compare);
    uint32_t even = there ? slices * members / there : 0;
    const uint32_t most[] = {even, even + 1, slices}; /* of a node: each has its part before one has more */
    for (size_t pass = 0; pass < sizeof most / sizeof *most; pass++)
        for (const struct claim *c = claim; c < claim + claims; c++)
            if (!(who[c->slice] >> c->node & 1) && count(who[c->slice]) < members && load[c->node] < most[pass]) {
                who[c->slice] |= UINT64_C(1) << c->node;
                load[c->node]++;
            }
    free(claim);
    return true;
}
