#include "sim/events.h"
#include <stdlib.h>

static bool earlier(const struct sim_event *a, const struct sim_event *b)
{
    return a->at.ns != b->at.ns ? a->at.ns < b->at.ns : a->order < b->order;
}

bool events_push(struct sim_events *q, struct sim_event e)
{
    if (q->count == q->room) {
        size_t room = q->room ? q->room * 2 : 1024;
        struct sim_event *heap = realloc(q->heap, room * sizeof *heap);
        if (!heap)
            return false;
        q->heap = heap;
        q->room = room;
    }
    e.order = q->pushed++;
    size_t i = q->count++;
    while (i > 0 && earlier(&e, &q->heap[(i - 1) / 2])) {
        q->heap[i] = q->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    q->heap[i] = e;
    return true;
}

const struct sim_event *events_first(const struct sim_events *q)
{
    return q->count ? &q->heap[0] : NULL;
}

struct sim_event events_pop(struct sim_events *q)
{
    struct sim_event top = q->heap[0], last = q->heap[--q->count];
    size_t i = 0;
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= q->count)
            break;
        if (child + 1 < q->count && earlier(&q->heap[child + 1], &q->heap[child]))
            child++;
        if (!earlier(&q->heap[child], &last))
            break;
        q->heap[i] = q->heap[child];
        i = child;
    }
    if (q->count)
        q->heap[i] = last;
    return top;
}

void events_free(struct sim_events *q)
{
    free(q->heap);
    *q = (struct sim_events){0};
}
