/* sleet-train-sim-slices.c - a simulation of slices: are they all trained, and does all of the model move? */
#include "sleet-train-sim.h"
#include <stdlib.h>
#include <string.h>

bool sim_watch_open(struct simulation *s)
{
    const struct slices *l = &s->learner.slices;
    s->watch.last = calloc(l->length + 1, sizeof(float));
    s->watch.still = calloc(l->length + 1, sizeof *s->watch.still);
    return s->watch.last && s->watch.still;
}

void sim_watch_close(struct simulation *s)
{
    free(s->watch.last);
    free(s->watch.still);
}

/* Fewer than --slice-members nodes that are alive train some slice. */
static bool is_short(const struct simulation *s)
{
    bool few = false;
    for (uint32_t i = 0; i < s->learner.slices.n; i++) {
        uint32_t nodes = 0;
        for (uint32_t k = 0; k < s->alive; k++)
            nodes += (uint32_t)(s->node[0].slices.who[i] >> k & 1);
        few |= nodes < s->o->slice_members && nodes < s->alive;
    }
    return few;
}

void sim_watch(struct simulation *s)
{
    const struct slices *l = &s->learner.slices;
    const float *now = node_hands(&s->node[0]);
    struct sim_watch *w = &s->watch;
    if (!l->n)
        return;
    for (size_t f = 0, at = 0; at < l->length; f++, at += l->fragment) {
        w->still[f] = memcmp(now + at, w->last + at, l->fragment * sizeof *now) == 0 ? w->still[f] + 1 : 0;
        w->most_still = w->still[f] > w->most_still ? w->still[f] : w->most_still;
    }
    memcpy(w->last, now, l->length * sizeof *now);
    w->rounds_short += is_short(s);
}
