#include "round/carry.h"
#include "base/bitmap.h"
#include "round/round.h"
#include "tensor/reduce.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

void carry_drop(struct carry *c, uint32_t fragments)
{
    for (uint32_t f = 0; c->of && f < fragments; f++)
        for (struct kept *k = c->of[f].kept, *next; k; k = next) {
            next = k->next;
            free(k);
        }
    free(c->of);
    *c = (struct carry){0};
}

uint64_t carry_bytes_bound(const struct layout *l)
{
    if (l->kind.estimator != SLEET_CARRY)
        return 0;
    return (uint64_t)l->fragments * (sizeof(struct carried) + CARRY_FROZEN * (sizeof(struct kept) + 16));
}

static float *residual_of(const struct set *s, float *const *residual, uint32_t fragment, uint32_t *n)
{
    uint32_t tensor;
    uint64_t offset;
    layout_locate(&s->layout, fragment, &tensor, &offset, n);
    return layout_additive(&s->layout, tensor) ? residual[tensor] + offset : NULL;
}

static double norm_of(const float *x, uint32_t n)
{
    double sum = 0;
    for (uint32_t i = 0; i < n; i++)
        sum += (double)x[i] * (double)x[i];
    return sqrt(sum);
}

/* Keep `by` of the residual, and count what goes. */
static void shed(struct carry *c, float *x, uint32_t n, double by)
{
    double norm = norm_of(x, n);
    for (uint32_t i = 0; i < n; i++) {
        float kept = (float)((double)x[i] * by);
        c->sum.shed += (double)x[i] - (double)kept;
        x[i] = kept;
    }
    c->sum.shed_norm += norm * (1 - by);
}

/* Contributions in a row that may not be in a commit: twice what is let be. */
static double patience(const struct set *s)
{
    double most = quorum_leaves_out(s) ? 2.0 * quorum_max_async(s) : 0;
    return most > CARRY_PATIENCE ? most : CARRY_PATIENCE;
}

/* How much longer than usual a residual may be, */
static double most_of_all(const struct set *s)
{
    return quorum_leaves_out(s) ? patience(s) : CARRY_MOST;
}

/* and that of a fragment.  A sparse codec leaves an element out for about 1 / keep rounds. */
static double most_of(const struct set *s, const struct round *r, uint32_t fragment)
{
    uint32_t tensor, n;
    uint64_t offset;
    layout_locate(&s->layout, fragment, &tensor, &offset, &n);
    bool sparse = r->keep > 0 && codec_by_id((uint8_t)s->layout.tensors[tensor].codec)->sparse;
    return sparse ? most_of_all(s) / r->keep : most_of_all(s);
}

/* The residual was changed: bound it, and take its norm into the sum. */
static void note(struct carry *c, struct carried *f, double longer, float *x, uint32_t n)
{
    double most = longer * (double)f->usual, norm = norm_of(x, n), old = (double)f->norm;
    if (!isfinite(norm)) { /* it is not carried, and cannot be summed */
        memset(x, 0, n * sizeof *x);
        norm = 0;
    }
    if (norm > most && most > 0) {
        shed(c, x, n, most / norm);
        norm = most;
    }
    f->norm = (float)norm;
    c->sum.squares += (double)f->norm * (double)f->norm - old * old;
}

const float *carry_add(const struct set *s, const struct round *r, uint32_t fragment, const float *x,
                       float sum[static FRAGMENT_ELEMENTS])
{
    uint32_t n;
    const float *residual = r->residual ? residual_of(s, r->residual, fragment, &n) : NULL;
    if (!residual)
        return x;
    for (uint32_t i = 0; i < n; i++)
        sum[i] = (float)((double)x[i] + (double)residual[i] / r->weight);
    return sum;
}

void carry_begin(struct set *s, struct round *r)
{
    struct carry *c = &s->carry;
    if (!r->residual)
        return;
    size_t words = bitmap_words(s->layout.fragments) + 1;
    r->sent = calloc(words, sizeof *r->sent);
    r->decided = calloc(words, sizeof *r->decided);
    r->counted = calloc(words, sizeof *r->counted);
    if (!c->of)
        c->of = calloc((size_t)s->layout.fragments + 1, sizeof *c->of);
    if (!c->of || !r->sent || !r->decided || !r->counted) {
        free(r->residual);
        r->residual = NULL; /* this once nothing is carried */
        return;
    }
    for (uint32_t f = 0; c->frozen && f < s->layout.fragments; f++) {
        uint32_t n;
        float *residual = residual_of(s, r->residual, f, &n);
        for (struct kept **at = &c->of[f].kept, *k; residual && (k = *at);) {
            if (!k->back) {
                at = &k->next;
                continue;
            }
            for (uint32_t i = 0; i < n; i++)
                residual[i] += k->x[i];
            *at = k->next;
            free(k);
            c->frozen--;
            note(c, &c->of[f], most_of(s, r, f), residual, n);
        }
    }
}

/* Keep something of a fragment outside the residual; NULL where there is no room. */
static struct kept *keep(struct set *s, const struct round *r, uint32_t fragment)
{
    struct carry *c = &s->carry;
    struct kept *k = c->frozen < CARRY_FROZEN * (uint64_t)s->layout.fragments ? malloc(sizeof *k) : NULL;
    if (!k)
        return NULL;
    *k = (struct kept){.next = c->of[fragment].kept, .round = r->number};
    c->of[fragment].kept = k;
    c->frozen++;
    return k;
}

/* The contribution is frozen, but for what its codec lost; at once back in the residual where there is no room. */
static void freeze(struct set *s, const struct round *r, uint32_t fragment, float *residual, const float *lost, uint32_t n)
{
    struct kept *k = keep(s, r, fragment);
    if (!k) {
        s->carry.sum.returned++;
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        k->x[i] = residual[i] - lost[i];
        residual[i] = lost[i];
    }
}

void carry_coded(struct set *s, const struct round *r, uint32_t fragment, const float *mean, const float *x,
                 uint32_t n, double weight)
{
    uint32_t elements;
    float *residual = r->residual ? residual_of(s, r->residual, fragment, &elements) : NULL;
    bool open = !r->closed && (!r->closing || !round_gathers(r)); /* closing, owners that keep theirs commit, then settle */
    bool in = r->own.mask[r->number_of[fragment]] >> r->self & 1;
    struct kept *k = NULL;
    if (!residual || (!open && memcmp(mean, x, n * sizeof *x) == 0))
        return;
    if (!open) {
        if (!(k = keep(s, r, fragment)))
            return;
        k->back = true;
    }
    for (uint32_t i = 0; i < n; i++) {
        float lost = (float)(((double)mean[i] - (double)x[i]) * weight);
        if (k)
            k->x[i] = lost;
        else
            residual[i] = in ? lost : residual[i] + lost;
    }
}

/* What the codec lost of the node's contribution, times its weight: that is in no commit.  For its own share none was
 * encoded. */
static void lost_by_codec(const struct set *s, const struct round *r, uint32_t fragment, uint32_t tensor, const float *x,
                          float lost[static FRAGMENT_ELEMENTS], uint32_t n)
{
    const struct codec *codec = codec_by_id((uint8_t)s->layout.tensors[tensor].codec);
    const struct codec_args args = scatter_args(r, fragment);
    uint8_t bytes[WIRE_PAYLOAD_MAX];
    float sum[FRAGMENT_ELEMENTS], came[FRAGMENT_ELEMENTS];
    memset(lost, 0, n * sizeof *lost);
    if (r->owner_of_run[fragment / RUN_FRAGMENTS] == r->self || codec->id == SLEET_CODEC_F32)
        return;
    const float *given = carry_add(s, r, fragment, x, sum);
    size_t len = codec->encode(bytes, given, n, &args);
    codec->decode(came, bytes, len, n);
    for (uint32_t i = 0; i < n; i++)
        lost[i] = (float)(((double)given[i] - (double)came[i]) * r->weight);
}

enum fate_of_own { OWN_IN, OWN_OUT, OWN_UNKNOWN };

/* What became of the node's own contribution, as far as it is known. */
static enum fate_of_own fate_of(const struct round *r, uint32_t fragment)
{
    uint64_t self = (uint64_t)1 << r->self, who = r->held[fragment].who;
    uint32_t number = r->number_of[fragment];
    for (uint32_t i = r->extra_of ? r->extra_of[fragment] : 0; i; i = r->extra[i - 1].next)
        who |= r->extra[i - 1].head.who;
    if (r->held[fragment].weight > 0 && (who & self))
        return OWN_IN;
    if (r->owner_of_run[fragment / RUN_FRAGMENTS] == r->self) {
        bool pending = (r->own.mask[number] & self) && !r->own.discarded;
        return pending ? OWN_UNKNOWN : OWN_OUT;
    }
    if (bitmap_test(r->decided, fragment))
        return bitmap_test(r->counted, fragment) ? OWN_IN : OWN_OUT;
    bool seen = bitmap_test(r->got, fragment) && r->held[fragment].weight > 0;
    return seen || !bitmap_test(r->sent, fragment) ? OWN_OUT : OWN_UNKNOWN;
}

static void settle(struct set *s, struct round *r, uint32_t fragment, bool withdrawn)
{
    struct carry *c = &s->carry;
    uint32_t tensor, n;
    uint64_t offset;
    layout_locate(&s->layout, fragment, &tensor, &offset, &n);
    if (r->number_of[fragment] == NOT_DUE || !layout_additive(&s->layout, tensor))
        return;
    const float *x = (const float *)r->send[tensor] + offset;
    float *residual = r->residual[tensor] + offset;
    struct carried *f = &c->of[fragment];
    enum fate_of_own fate = reduce_finite(x, n) ? fate_of(r, fragment) : OWN_OUT;
    bool counts = reduce_finite(x, n) && (fate != OWN_OUT || !withdrawn);
    f->unserved = fate == OWN_IN ? 0 : f->unserved + 1;
    if (counts) {
        double usual = norm_of(x, n) * r->weight;
        f->usual = (float)(f->usual > 0 ? (double)f->usual + (usual - (double)f->usual) / CARRY_MEMORY : usual);
    }
    float lost[FRAGMENT_ELEMENTS];
    if (fate != OWN_OUT)
        lost_by_codec(s, r, fragment, tensor, x, lost, n);
    for (uint32_t i = 0; i < n && fate != OWN_IN && counts; i++)
        residual[i] = (float)((double)residual[i] + (double)x[i] * r->weight);
    if (fate == OWN_IN && r->owner_of_run[fragment / RUN_FRAGMENTS] != r->self) /* else carry_coded() has done so */
        memcpy(residual, lost, n * sizeof *residual);
    else if (fate == OWN_UNKNOWN)
        freeze(s, r, fragment, residual, lost, n);
    if (fate != OWN_IN && f->unserved > patience(s))
        shed(c, residual, n, CARRY_DECAY);
    note(c, f, most_of(s, r, fragment), residual, n);
}

bool carry_settle(struct set *s, struct round *r, bool withdrawn)
{
    uint32_t limit = withdrawn ? UINT32_MAX : SLICE_FRAGMENTS; /* its buffers go at once */
    if (!r->residual || !r->contributes)
        return true;
    for (uint32_t i = 0; i < limit && r->settled < s->layout.fragments; i++)
        settle(s, r, r->settled++, withdrawn);
    return r->settled == s->layout.fragments;
}

void carry_decide(struct set *s, const struct round *r, uint32_t fragment, bool in)
{
    struct carry *c = &s->carry;
    if (in && c->of)
        c->of[fragment].unserved = 0;
    for (struct kept **at = c->of ? &c->of[fragment].kept : NULL, *k; at && (k = *at);) {
        if (k->round != r->number || k->back) {
            at = &k->next;
            continue;
        }
        k->back = !in;
        if (!in)
            continue;
        *at = k->next;
        free(k);
        c->frozen--;
    }
}

void carry_retire(struct set *s, const struct round *r)
{
    struct carry *c = &s->carry;
    if (!c->frozen || !r->joined)
        return;
    for (uint32_t f = 0; f < s->layout.fragments; f++)
        for (struct kept *k = c->of[f].kept; k; k = k->next)
            if (k->round == r->number && !k->back) {
                k->back = true;
                c->sum.returned++;
            }
}

void carry_keep(struct set *s, float *const *residual, uint32_t fragment, double weight, const void *const *send)
{
    uint32_t tensor, n;
    uint64_t offset;
    layout_locate(&s->layout, fragment, &tensor, &offset, &n);
    const float *x = (const float *)send[tensor] + offset;
    if (!residual || !layout_additive(&s->layout, tensor) || !reduce_finite(x, n))
        return;
    for (uint32_t i = 0; i < n; i++)
        residual[tensor][offset + i] += (float)((double)x[i] * weight);
    if (s->carry.of)
        note(&s->carry, &s->carry.of[fragment], most_of_all(s), residual[tensor] + offset, n);
}

void carry_alone(struct set *s, float *const *residual, uint32_t fragment, double weight,
                 void *const *result)
{
    uint32_t tensor, n;
    uint64_t offset;
    layout_locate(&s->layout, fragment, &tensor, &offset, &n);
    if (!residual || !layout_additive(&s->layout, tensor))
        return;
    float *x = residual[tensor] + offset, *out = (float *)result[tensor] + offset;
    for (uint32_t i = 0; i < n; i++)
        out[i] = (float)((double)out[i] + (double)x[i] / weight);
    memset(x, 0, n * sizeof *x);
    if (s->carry.of)
        note(&s->carry, &s->carry.of[fragment], most_of_all(s), x, n);
}

void carry_tell(const struct set *s, engine_residual *out)
{
    *out = s->carry.sum;
    out->frozen = s->carry.frozen;
    out->norm = out->squares > 0 ? sqrt(out->squares) : 0;
}
