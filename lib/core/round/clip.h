/* How far a contribution may lie from the rest.
 *
 * Lying members are inside the cryptography, so their values are judged by the others':
 * by the norm of their difference to the last committed values, which is what a member has
 * changed since.  Scaled and sign-flipped models are far off by it, honest ones of
 * skewed data are not.  What lies further than `clip` times a running median of such norms
 * is held back until its fragment is committed.  What then still lies further than `clip` times
 * the median of the fragment's contributors, for they may all have taken a long step, is
 * shortened to what is usual.  Weights are judged in the same way.
 *
 * An owner does not judge its own values.  So its commits are judged by every member, which takes
 * none that lie further than `clip` times what is usual and what its own values have changed.
 *
 * After centred clipping (Karimireddy, He, Jaggi, arXiv 2012.10333).  What is lied by less than
 * `clip` times, or by sending old honest values again, is not seen. */
#ifndef ROUND_CLIP_H
#define ROUND_CLIP_H
#include <stdint.h>

#define CLIP_SAMPLES 31

/* A running median; zero-filled: no samples. */
struct clip_scale {
    float sample[CLIP_SAMPLES]; /* ring */
    uint8_t n, pos;
    float median;
};

void clip_scale_add(struct clip_scale *, float sample);
/* The lower median of n values > 0; it sorts them.  0 when n is 0. */
float clip_median(float *, uint32_t n);

/* Of a set; zero-filled: nothing is known. */
struct clip {
    float *last;              /* FRAGMENT_ELEMENTS a fragment: the values committed last */
    uint64_t *known;          /* fragments that have them */
    struct clip_scale *change; /* a tensor: root mean square of what members change */
    struct clip_scale weight;
};

/* A contribution held back. */
struct suspect {
    struct suspect *next; /* of the same fragment */
    uint8_t rank;
    float weight, change;
    float x[]; /* the fragment's elements */
};
#endif
