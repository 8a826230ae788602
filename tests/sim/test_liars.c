/* A member of the job that lies: its datagrams are rewritten as they leave it. */
#include "forge.h"
#include "strategy/strategy.h"

static const uint64_t counts[] = {20000, 300};
#define TENSORS 2
#define LIAR 2u
#define VICTIM 0u

static cluster *cluster_with_a_liar(uint32_t nodes, double clip)
{
    struct sim_config config = {.nodes = nodes, .seed = test_seed(), .link = CLEAN_LINK};
    (void)clip;
    return ready_cluster(&config, counts, TENSORS);
}

static uint64_t usurped(cluster *c, uint32_t node)
{
    engine_counters k;
    engine_get_counters(sim_engine(cluster_sim(c), node), &k);
    return k.usurped;
}

/* ---- results of fragments that others own ---------------------------------- */

struct usurper {
    struct group group;
    uint32_t n;
};

/* A fragment of the first tensor that the liar does not own. */
static uint32_t of_others(struct usurper *u, uint64_t round)
{
    uint32_t f;
    do
        f = u->n++ % (uint32_t)(counts[0] / WIRE_ELEMENTS);
    while (owner_of(&u->group, round, f / 8) == LIAR);
    return f;
}

/* Its contributions to the victim turn into results: of all, heavy, ahead of the owner's. */
static void usurp(sim *s, const struct sim_datagram *d, void *arg)
{
    static struct opened o;
    static struct sim_datagram lie;
    struct usurper *u = arg;
    struct wire_data w;
    lie = *d;
    if (d->from == LIAR && d->to == VICTIM && forge_open(d, &o) && o.head.type == WIRE_DATA &&
        wire_data_decode(&w, o.body, o.len) == SLEET_OK && w.phase == PHASE_SCATTER &&
        w.payload_len == WIRE_PAYLOAD_MAX) {
        float big[WIRE_ELEMENTS];
        for (uint32_t i = 0; i < WIRE_ELEMENTS; i++)
            big[i] = 1e6f;
        w.phase = PHASE_GATHER;
        w.fragment = of_others(u, w.round);
        w.mask = (1u << u->group.n) - 1;
        w.weight = 1e9f;
        w.time = w.remaining = 0;
        w.flags = 0;
        size_t head = wire_data_encode(o.body, sizeof o.body, &w);
        memcpy(o.body + head, big, sizeof big);
        forge_seal(&lie, &o);
    }
    sim_relay(s, &lie, 0);
}

/* Only the owner's word is taken, though its results come later and weigh less. */
static void results_come_from_their_owner(void)
{
    sleet_rng rng = {test_seed()};
    struct usurper u = {.group.n = 4};
    for (uint32_t i = 0; i < 4; i++)
        u.group.members[i] = (struct group_member){.node_id = i + 1, .contributes = 1};
    cluster *c = cluster_with_a_liar(4, 0);
    REQUIRE(c);
    sim_on_datagram(cluster_sim(c), usurp, &u);
    for (unsigned i = 0; i < test_repeats(30); i++) {
        fill_grid(c, &rng);
        CHECK(cluster_round(c, NULL));
        double worst = 0;
        for (uint64_t k = 0; k < cluster_elements(c); k++)
            worst = fmax(worst, fabs((double)cluster_values(c, VICTIM)[k]));
        CHECK(worst <= 0.25);
        cluster_idle(c, MS(10));
    }
    CHECK(usurped(c, VICTIM) > u.n / 2);
    CHECK_EQ(usurped(c, 1), 0);
    cluster_free(c);
}

TEST_SUITE(liars) = {
    TEST(results_come_from_their_owner),
    TEST_END,
};
