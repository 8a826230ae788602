/* Tensors whose codec takes rotated values (tensor/rotate.h): they are rotated where they lie before anything
 * of them is added or sent, and back once the result is whole; in between owners add what is
 * rotated.  Slices, since a large set takes longer than other rounds should wait. */
#include "base/rng.h"
#include "codec/codec.h"
#include "round/round.h"
#include "tensor/rotate.h"

#define ROUNDS_A_TURN 16 /* with one rotation, so that most late commits can still be added */

uint64_t rotated_turn(uint64_t round)
{
    return round / ROUNDS_A_TURN;
}

bool rotated_tensor(const struct layout *l, uint32_t tensor)
{
    return codec_by_id((uint8_t)l->tensors[tensor].codec)->rotated;
}

/* Go on from fragment *done of the set; true when all is done. */
static bool turn(const struct set *s, const struct round *r, uint32_t *done, void *const *values,
                 uint32_t (*group)(float *, uint64_t, uint64_t, uint64_t))
{
    const struct layout *l = &s->layout;
    uint32_t tensor, n, limit = SLICE_FRAGMENTS;
    uint64_t offset;
    while (*done < l->fragments && limit) {
        layout_locate(l, *done, &tensor, &offset, &n);
        const struct tensor *t = &l->tensors[tensor];
        if (!rotated_tensor(l, tensor)) {
            *done = t->first + t->fragments;
            continue;
        }
        uint64_t seed = mix64(rotated_turn(r->number) ^ mix64(t->id));
        uint32_t turned = group(values[tensor], t->count, seed, *done - t->first);
        *done += turned;
        limit -= turned < limit ? turned : limit;
    }
    return *done >= l->fragments;
}

bool rotated_forward(const struct set *s, struct round *r)
{
    if (!r->prepared)
        r->prepared = turn(s, r, &r->turned, (void *const *)(uintptr_t)r->send, rotate_group) && twice_choose(s, r);
    return r->prepared;
}

bool rotated_back(const struct set *s, struct round *r)
{
    return turn(s, r, &r->turned_back, r->result, rotate_group_back);
}
