/* A set's tensors as one numbered line of fragments.
 *
 * Fragments are numbered through the tensors in order; each holds
 * FRAGMENT_ELEMENTS elements but the last of a tensor.  A tensor without
 * elements has no fragment.  RUN_FRAGMENTS fragments make a run, the unit of
 * ownership.  Ids and hash: docs/protocol.md, "Ownership". */
#ifndef TENSOR_LAYOUT_H
#define TENSOR_LAYOUT_H
#include "sleet.h"
#include "tensor/kind.h"
#include <stdbool.h>
#include <stdint.h>

struct tensor {
    char name[64];
    sleet_dtype dtype;
    sleet_codec codec;
    uint64_t count;     /* elements */
    uint32_t rows;      /* of a matrix, row by row; 0: it is a vector */
    uint32_t id;        /* names it on the wire */
    uint32_t first;     /* number of its first fragment in the set */
    uint32_t fragments; /* 0 when count is 0 */
};

struct layout {
    char name[64];
    struct set_kind kind;
    struct tensor *tensors; /* owned */
    uint32_t n, fragments, runs, hash;
    uint32_t coded; /* most bytes of a fragment with the tensors' codecs */
    uint32_t state; /* fragments of tensors of state */
    uint64_t elements;
    uint32_t *by_id; /* owned: tensor indices in ascending order of id */
};

/* A tensor as it is asked for. */
struct tensor_spec {
    const char *name;
    sleet_dtype dtype;
    sleet_codec codec; /* 0: by the set's size */
    uint64_t count;    /* elements */
    uint32_t rows;     /* of a matrix, a divisor of the count; 0: it is a vector */
};

/* Copies everything.  SLEET_OK; EINVAL (a name empty or too long, no tensor,
 * nothing but state, nothing to spread, unknown dtype, rows that do not divide the count, what kind.h refuses), ENOMEM, EEXIST (two tensors with one name or id),
 * ELIMIT (more than SLEET_TENSORS_MAX tensors or 2^32 - 1 fragments).  On
 * failure the layout is empty and needs no layout_fini(). */
int layout_init(struct layout *, const char *name, struct set_kind, const struct tensor_spec *,
                uint32_t n);
/* Frees what layout_init() allocated and empties the layout; may be repeated. */
void layout_fini(struct layout *);

/* Whether a round averages the fragment: of a tensor of state 8 in a row of each
 * 8 * SLEET_REFRESH_ROUNDS, and of a set that is spread 8 in a row of each 8 * spread, but all of a tensor
 * that has too few.  Tensors of equal count take turns alike, so that a parameter and its
 * moments are refreshed together: a node that has all three of one round goes on as the others do.
 * The first round of a job averages all, so that its nodes begin with equal state. */
static inline bool layout_due(const struct layout *l, const struct tensor *t, uint32_t fragment, uint64_t round)
{
    uint64_t turn = t->count * UINT64_C(0x9e3779b97f4a7c15) >> 60; /* others begin elsewhere */
    bool state = t->dtype == SLEET_F32_STATE;
    uint32_t rounds = state ? SLEET_REFRESH_ROUNDS : l->kind.spread;
    return round == 1 || (!state && !kind_spreads(&l->kind, t->count)) ||
           ((fragment - t->first) / RUN_FRAGMENTS + turn) % rounds == round % rounds;
}

/* Whether the tensor's result is added to something: what nobody delivered of it is 0. */
static inline bool layout_additive(const struct layout *l, uint32_t tensor)
{
    return kind_additive(&l->kind) && l->tensors[tensor].dtype != SLEET_F32_STATE;
}

/* Whether the set holds values that are the job's, which a node has to take before it has a say. */
static inline bool layout_has_model(const struct layout *l)
{
    return !kind_additive(&l->kind) || l->state > 0;
}

/* Index of the tensor with that id, -1 if there is none. */
int layout_find(const struct layout *, uint32_t tensor_id);

/* Where fragment `fragment` (< layout.fragments) lies: index of its tensor, offset
 * of its first element in that tensor, and its elements (1..FRAGMENT_ELEMENTS). */
void layout_locate(const struct layout *, uint32_t fragment, uint32_t *tensor,
                   uint64_t *offset_elements, uint32_t *elements);
#endif
