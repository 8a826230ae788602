/* How much of a contribution goes over which way, where that is to follow the ways (AdaTopK,
 * codec/adatopk.h).  It is fixed when the round is joined: what is left out is known from the same
 * shares later (carry.c).  The commits of a round are the same bytes for all, so they keep what the
 * slowest way would, of each contributor, as they do where all keep the same share. */
#include "codec/adatopk.h"
#include "round/round.h"
#include <math.h>

#define KEEP_DEFAULT 0.01 /* of the elements, sparse codecs */

/* What a way can carry of what this node sends, bytes a second; 0: not known.  One that has held
 * up nothing is as fast as the node. */
static double rate_to(const struct member *m)
{
    double bps = (double)m->capacity_told, pace = (double)m->flow.pacer.max_bps;
    return (bps > 0 && (m->capacity_least || bps > pace) ? pace : bps) / 8;
}

void links_choose(struct round *r, const struct env *e, const sleet_round_options *o)
{
    double least = o->keep > 0 ? o->keep : KEEP_DEFAULT, fastest = 0;
    r->keep = o->keep_auto ? 1 : least;
    for (uint32_t i = 0; i < r->group.n && o->keep_auto; i++) {
        struct member *m = &e->members[r->group.members[i].slot];
        if ((int)i != r->self)
            adatopk_measured(&m->link, rate_to(m));
        fastest = fmax(fastest, adatopk_rate(&m->link));
    }
    for (uint32_t i = 0; i < r->group.n; i++) {
        struct member *m = &e->members[r->group.members[i].slot];
        r->lane[i].keep = o->keep_auto ? 1 / adatopk_ratio(&m->link, fastest, 1 / least) : least;
        m->keep = o->keep_auto ? r->lane[i].keep : 0;
        r->keep = fmin(r->keep, r->lane[i].keep);
    }
}

uint32_t links_kept(double keep)
{
    return keep < 1 ? (uint32_t)(keep * FRAGMENT_ELEMENTS + 0.999) : 0;
}
