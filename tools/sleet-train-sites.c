#include "sleet-train-sites.h"
#include <stdlib.h>

#define INSIDE_BPS 100000000

static uint32_t site_of(const struct sites *s, uint32_t node)
{
    return node / s->each;
}

static void count(sim *net, const struct sim_datagram *d, void *arg)
{
    struct sites *s = arg;
    if (site_of(s, d->from) != site_of(s, d->to))
        s->bytes += d->len;
    sim_relay(net, d, 0);
}

bool sites_lay(struct sites *s, const struct train_options *o, const struct sim_link *link, cluster *c)
{
    *s = (struct sites){.n = o->sites.n};
    if (!s->n)
        return true;
    s->each = o->sim / s->n;
    s->free_at = calloc((size_t)s->n * s->n, sizeof *s->free_at);
    if (!s->free_at)
        return false;
    for (uint32_t i = 0; i < o->sim; i++)
        for (uint32_t j = 0; j < o->sim; j++) {
            struct sim_link l = *link;
            l.rate_bps = INSIDE_BPS;
            if (site_of(s, i) != site_of(s, j)) {
                l.rate_bps = (uint64_t)(o->sites.mbit * 1e6);
                l.delay = (sleet_duration)(o->sites.delay_ms * 1e6);
                l.free_at = &s->free_at[site_of(s, i) * s->n + site_of(s, j)];
            }
            sim_set_link(cluster_sim(c), i, j, &l);
        }
    sim_on_datagram(cluster_sim(c), count, s);
    return true;
}

void sites_close(struct sites *s)
{
    free(s->free_at);
}

double sites_keep(const struct sites *s, cluster *c, bool across)
{
    sim *net = cluster_sim(c);
    double sum = 0, n = 0;
    for (uint32_t i = 0; s->n && i < sim_nodes(net); i++) {
        engine_peer peer[NODES_MAX];
        uint32_t peers = engine_get_peers(sim_engine(net, i), peer, NODES_MAX, sim_now(net));
        for (uint32_t k = 0; k < peers; k++) {
            uint32_t other = (uint32_t)peer[k].node_id - 1;
            if (!(peer[k].keep > 0) || (site_of(s, i) != site_of(s, other)) != across)
                continue;
            sum += peer[k].keep;
            n++;
        }
    }
    return n > 0 ? sum / n : -1;
}
