/* sleet-train-sites.h - simulated nodes in sites: 100 Mbit/s inside, one slow link between each two. */
#ifndef SLEET_TRAIN_SITES_H
#define SLEET_TRAIN_SITES_H
#include "sim/cluster.h"
#include "sleet-train.h"

struct sites {
    uint32_t n, each;   /* nodes of a site; n 0: there are none */
    sleet_time *free_at; /* of the link from site to site, n x n */
    double bytes;       /* that were sent across */
};

/* From now on; node i is in site i / each.  `link` is what else every link does.  False when out of memory. */
bool sites_lay(struct sites *, const struct train_options *, const struct sim_link *link, cluster *);
void sites_close(struct sites *);
/* Mean share of a gradient's elements that goes inside the sites, or across; below 0: it is the same everywhere. */
double sites_keep(const struct sites *, cluster *, bool across);
#endif
