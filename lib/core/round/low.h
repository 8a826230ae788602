/* low.h - edges of low rank (power.h) in the rounds among neighbours.
 *
 * What goes over such an edge in a round is one vector, the same floats from both ends, in fragments of its own.
 * It counts once both ends know that both have all of it, else for neither: the sides stay what they were.
 * A node that closes the round with the other's vector but without its word does not know yet; the
 * edge is not used in later rounds until it does, and begins anew where it never learns. */
#ifndef ROUND_LOW_H
#define ROUND_LOW_H
#include "round/power.h"

#define LOW_EDGES 8 /* that a set keeps sides for */

/* What is kept of an edge from round to round. */
struct low_edge {
    uint64_t node;  /* at the other end; 0: none */
    uint64_t round; /* whose vector is under way or undecided; 0: none */
    uint64_t used;  /* in this round */
    uint32_t tag;   /* of the sides' history */
    float *sides;
    uint64_t floats; /* of them */
};

/* An edge in a round; once the vector counts, the step that follows from it. */
struct low_lane {
    struct power_map *map;
    float *own, *theirs, *sides; /* NULL until they are needed; own is the difference once it counts */
    uint64_t *made;              /* fragments of `own` */
    double weight;               /* once it counts: of the step */
    uint32_t tag, tag_there;
    bool open;    /* own sides are known */
    bool tagged;  /* so is the other's tag */
    bool counts;  /* both have it all */
    bool over;    /* or it does not count, and never will */
    struct low_lane *next;
};

/* Of a set. */
struct low {
    struct low_edge edge[LOW_EDGES];
    struct low_lane *late; /* that came to count after their round had closed */
};

/* Of the sides that are kept, by whatever strategy they came to be. */
uint64_t low_kept_bytes(const struct low *);
#endif
