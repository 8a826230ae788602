#include "train/shard.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define CLASSES_MAX 256

bool shard_parse(const char *text, struct shard_kind *out)
{
    *out = (struct shard_kind){0};
    if (strcmp(text, "iid") == 0)
        return true;
    if (strcmp(text, "label") == 0) {
        out->kind = SHARD_LABEL;
        return true;
    }
    if (strncmp(text, "dirichlet:", 10) != 0)
        return false;
    char *end;
    out->kind = SHARD_DIRICHLET;
    out->alpha = strtod(text + 10, &end);
    return end != text + 10 && *end == 0 && out->alpha >= 0.001 && out->alpha <= 1000;
}

static void shuffle(uint32_t *v, uint32_t n, sleet_rng *rng)
{
    for (uint32_t i = n; i > 1; i--) {
        uint32_t k = rng_below(rng, i), t = v[i - 1];
        v[i - 1] = v[k];
        v[k] = t;
    }
}

static double normal(sleet_rng *rng)
{
    double u = 1 - rng_double(rng), v = rng_double(rng);
    return sqrt(-2 * log(u)) * cos(6.283185307179586 * v);
}

/* The logarithm of a Gamma(alpha, 1) value (Marsaglia and Tsang 2000). */
static double log_gamma(double alpha, sleet_rng *rng)
{
    double boost = 0;
    if (alpha < 1) {
        boost = log(1 - rng_double(rng)) / alpha;
        alpha += 1;
    }
    double d = alpha - 1.0 / 3, c = 1 / sqrt(9 * d);
    for (;;) {
        double x = normal(rng), v = 1 + c * x;
        if (v <= 0)
            continue;
        v = v * v * v;
        if (log(1 - rng_double(rng)) < 0.5 * x * x + d - d * v + d * log(v))
            return boost + log(d * v);
    }
}

/* Reorder by class, stable. first[c] is where class c starts, in the class order `rank`. */
static bool sort_by_class(uint32_t *order, const uint8_t *label, uint32_t count,
                          const uint32_t *rank, uint32_t classes, uint32_t *first)
{
    uint32_t *sorted = malloc(count * sizeof *sorted), at[CLASSES_MAX + 1];
    if (!sorted)
        return false;
    memset(first, 0, (CLASSES_MAX + 1) * sizeof *first);
    for (uint32_t i = 0; i < count; i++)
        first[rank[label[i]] + 1]++;
    for (uint32_t c = 0; c < classes; c++)
        first[c + 1] += first[c];
    memcpy(at, first, sizeof at);
    for (uint32_t i = 0; i < count; i++)
        sorted[at[rank[label[order[i]]]]++] = order[i];
    memcpy(order, sorted, count * sizeof *order);
    free(sorted);
    return true;
}

/* Cut samples [from, to) by Dirichlet shares: owner[i] is the shard of position i. */
static void cut_class(double alpha, uint32_t from, uint32_t to, uint32_t shards, double *share,
                      uint32_t *owner, sleet_rng *rng)
{
    double top = -INFINITY, sum = 0, done = 0;
    for (uint32_t s = 0; s < shards; s++) {
        share[s] = log_gamma(alpha, rng);
        top = fmax(top, share[s]);
    }
    for (uint32_t s = 0; s < shards; s++)
        sum += share[s] = exp(share[s] - top);
    uint32_t at = from;
    for (uint32_t s = 0; s < shards; s++) {
        done += share[s] / sum;
        uint32_t end = s + 1 == shards ? to : from + (uint32_t)((to - from) * fmin(done, 1) + 0.5);
        for (; at < end; at++)
            owner[at] = s;
    }
}

/* Give each empty shard one sample of the largest. */
static void fill_empty(uint32_t *owner, uint32_t count, uint32_t *size, uint32_t shards)
{
    for (uint32_t s = 0; s < shards; s++) {
        if (size[s])
            continue;
        uint32_t big = 0, i = 0;
        for (uint32_t k = 1; k < shards; k++)
            big = size[k] > size[big] ? k : big;
        while (i < count && owner[i] != big)
            i++;
        owner[i] = s;
        size[s]++;
        size[big]--;
    }
}

static bool split_dirichlet(struct shard_split *out, double alpha, const uint32_t *first,
                            uint32_t classes, sleet_rng *rng)
{
    uint32_t n = out->count, shards = out->shards;
    uint32_t *owner = malloc(n * sizeof *owner), *old = malloc(n * sizeof *old);
    uint32_t *size = calloc(shards, sizeof *size);
    double *share = malloc(shards * sizeof *share);
    bool ok = owner && old && size && share;
    if (ok) {
        for (uint32_t c = 0; c < classes; c++)
            cut_class(alpha, first[c], first[c + 1], shards, share, owner, rng);
        for (uint32_t i = 0; i < n; i++)
            size[owner[i]]++;
        fill_empty(owner, n, size, shards);
        for (uint32_t s = 0; s < shards; s++)
            out->start[s + 1] = out->start[s] + size[s];
        memcpy(old, out->order, n * sizeof *old);
        for (uint32_t i = n; i-- > 0;) {
            uint32_t s = owner[i];
            out->order[out->start[s] + --size[s]] = old[i];
        }
    }
    free(owner);
    free(old);
    free(size);
    free(share);
    return ok;
}

bool shard_make(struct shard_split *out, struct shard_kind kind, const uint8_t *label,
                uint32_t count, uint32_t classes, uint32_t shards, uint64_t seed)
{
    *out = (struct shard_split){.shards = shards, .count = count};
    if (shards == 0 || shards > count || classes == 0 || classes > CLASSES_MAX)
        return false;
    out->order = malloc(count * sizeof *out->order);
    out->start = calloc((size_t)shards + 1, sizeof *out->start);
    bool ok = out->order && out->start;
    sleet_rng rng = {mix64(seed ^ 0x7368617264u)};
    for (uint32_t i = 0; ok && i < count; i++)
        out->order[i] = i;
    if (ok)
        shuffle(out->order, count, &rng);
    for (uint32_t s = 0; ok && s <= shards; s++)
        out->start[s] = (uint32_t)((uint64_t)count * s / shards);
    if (ok && kind.kind != SHARD_IID) {
        uint32_t rank[CLASSES_MAX], first[CLASSES_MAX + 1];
        for (uint32_t c = 0; c < classes; c++)
            rank[c] = c;
        if (kind.kind == SHARD_LABEL)
            shuffle(rank, classes, &rng); /* which classes meet on a node depends on the seed */
        ok = sort_by_class(out->order, label, count, rank, classes, first);
        if (ok && kind.kind == SHARD_DIRICHLET)
            ok = split_dirichlet(out, kind.alpha, first, classes, &rng);
    }
    if (!ok)
        shard_free(out);
    return ok;
}

void shard_free(struct shard_split *s)
{
    free(s->order);
    free(s->start);
    *s = (struct shard_split){0};
}

struct shard_walk shard_walk_of(struct shard_split *s, uint32_t i, uint64_t seed)
{
    struct shard_walk w = {.sample = s->order + s->start[i],
                           .count = s->start[i + 1] - s->start[i],
                           .rng = {mix64(seed ^ mix64(i + 1))}};
    w.at = w.count;
    return w;
}

uint32_t shard_walk_next(struct shard_walk *w)
{
    if (w->at == w->count) {
        shuffle(w->sample, w->count, &w->rng);
        w->at = 0;
    }
    return w->sample[w->at++];
}

void shard_walk_skip(struct shard_walk *w, uint64_t samples)
{
    while (samples--)
        shard_walk_next(w);
}
