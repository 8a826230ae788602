/* A member of the job that lies: its datagrams are rewritten as they leave it. */
#include "forge.h"
#include "strategy/strategy.h"

static const uint64_t counts[] = {20000, 300};
#define TENSORS 2
#define LIAR 2u
#define VICTIM 0u

static cluster *cluster_with_a_liar(uint32_t nodes, double clip)
{
    struct sim_config config = {
        .nodes = nodes, .seed = test_seed(), .link = CLEAN_LINK, .clip = clip};
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
    uint8_t phase; /* as the owner, or as its backup */
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
        w.phase = u->phase;
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

static void only_the_owner_is_believed(uint8_t phase)
{
    sleet_rng rng = {test_seed()};
    struct usurper u = {.group.n = 4, .phase = phase};
    for (uint32_t i = 0; i < 4; i++)
        u.group.members[i] = (struct group_member){.node_id = i + 1, .contributes = 1};
    cluster *c = cluster_with_a_liar(4, 0);
    REQUIRE(c);
    sim_on_datagram(cluster_sim(c), usurp, &u);
    for (unsigned i = 0; i < 30; i++) {
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

/* Only the owner's word is taken, though its results come later and weigh less. */
static void results_come_from_their_owner(void)
{
    only_the_owner_is_believed(PHASE_GATHER);
}

/* While it is there, not that of its backup either. */
static void nobody_stands_in_unasked(void)
{
    only_the_owner_is_believed(PHASE_BACKUP);
}

/* ---- values that lie far off the others' ------------------------------------ */

#define CLIP 8
#define STEP 0.01f
#define FAR (10 * (double)STEP) /* a lie is further off by far */

/* A step of every node from where it is; of skewed data: each moves a part of its own more. */
static void train_step(cluster *c, sleet_rng *rng, bool skewed)
{
    for (uint32_t i = 0; i < nodes_of(c); i++)
        for (uint64_t k = 0; k < cluster_elements(c); k++) {
            bool own = k / 512 % nodes_of(c) == i;
            float most = STEP * (!skewed ? 1 : own ? 2 : 0.5f);
            cluster_values(c, i)[k] += (float)(rng_double(rng) - 0.5) * most;
        }
}

static double furthest(cluster *c, const float *from, uint32_t node)
{
    double worst = 0;
    for (uint64_t k = 0; k < cluster_elements(c); k++)
        worst = fmax(worst, fabs((double)cluster_values(c, node)[k] - (double)from[k]));
    return worst;
}

/* What the nodes but the liar hold against each of the others. */
static void check_evidence(cluster *c, bool expected)
{
    engine_peer peers[16];
    for (uint32_t i = 0; i < nodes_of(c); i++) {
        engine *e = sim_engine(cluster_sim(c), i);
        uint32_t n = engine_get_peers(e, peers, 16, sim_now(cluster_sim(c)));
        for (uint32_t k = 0; i != LIAR && k < n; k++) {
            bool liar = expected && peers[k].node_id == LIAR + 1;
            CHECK_EQ(peers[k].clipped > 0 || peers[k].refused > 0, liar);
            CHECK_EQ(peers[k].far_rounds > 0, liar);
            CHECK_EQ(peers[k].excess > 1, liar);
        }
    }
}

static void check_round_evidence(cluster *c)
{
    static engine_explanation x;
    uint64_t round = cluster_report(c, VICTIM)->report.round;
    REQUIRE(engine_explain(sim_engine(cluster_sim(c), VICTIM), cluster_set(c, VICTIM), round, &x));
    for (uint32_t i = 0; i < x.lanes; i++) {
        bool liar = x.people[i] == LIAR + 1;
        CHECK_EQ(x.lane[i].clipped + x.lane[i].refused > 0, liar);
        CHECK_EQ(x.lane[i].excess > 1, liar);
        CHECK_EQ(x.lane[i].scatter.lost + x.lane[i].gather.lost,
                 0); /* it came, and is in the mask */
    }
}

/* Rounds of honest steps, in which the liar sends its values times `factor` (1: honest). */
static void lie_by(float factor, bool skewed)
{
    sleet_rng rng = {test_seed()};
    cluster *c = cluster_with_a_liar(4, CLIP);
    static float before[20300];
    REQUIRE(c);
    for (uint32_t i = 0; i < 4; i++)
        for (uint64_t k = 0; k < cluster_elements(c); k++)
            cluster_values(c, i)[k] = (float)(k % 17) - 8;
    CHECK(cluster_round(c, NULL));
    for (unsigned round = 0; round < test_repeats(40) + 8; round++) {
        memcpy(before, cluster_values(c, VICTIM), sizeof before);
        train_step(c, &rng, skewed);
        if (round >= 4) {
            for (uint64_t k = 0; k < cluster_elements(c); k++)
                cluster_values(c, LIAR)[k] *= factor;
        }
        CHECK(cluster_round(c, NULL));
        CHECK(furthest(c, before, VICTIM) < FAR);
        CHECK(furthest(c, before, 3) < FAR);
        memcpy(cluster_values(c, LIAR), cluster_values(c, VICTIM), sizeof before);
        cluster_idle(c, MS(5));
    }
    check_evidence(c, factor != 1);
    if (factor != 1)
        check_round_evidence(c);
    CHECK(ledger_balances(c));
    cluster_free(c);
}

static void a_thousandfold_model_is_cut_down(void)
{
    lie_by(1000, false);
}

static void a_flipped_sign_is_cut_down(void)
{
    lie_by(-1, true);
}

static void honest_nodes_are_left_alone(void)
{
    lie_by(1, false);
    lie_by(1, true);
}

/* All take a long step at once, after many short ones: nobody lies. */
static void a_leap_of_all_is_no_lie(void)
{
    sleet_rng rng = {test_seed()};
    cluster *c = cluster_with_a_liar(4, CLIP);
    REQUIRE(c);
    for (int round = 0; round < 20; round++) {
        fill_grid(c, &rng);
        CHECK(cluster_round(c, NULL));
        cluster_idle(c, MS(5));
    }
    for (uint32_t i = 0; i < 4; i++)
        for (uint64_t k = 0; k < cluster_elements(c); k++)
            cluster_values(c, i)[k] = 1000.0f * (float)(i + 1);
    CHECK(cluster_round(c, NULL));
    CHECK(identical(c) && all_complete(c));
    CHECK(cluster_values(c, 0)[0] == 2500.0f && cluster_values(c, 0)[20299] == 2500.0f);
    check_evidence(c, false);
    cluster_free(c);
}

/* ---- weights, and results of fragments that it does own ---------------------- */

static void weigh_much(sim *s, const struct sim_datagram *d, void *arg)
{
    static struct opened o;
    static struct sim_datagram lie;
    struct wire_data w;
    bool on = *(bool *)arg;
    lie = *d;
    if (on && d->from == LIAR && forge_open(d, &o) && o.head.type == WIRE_DATA &&
        wire_data_decode(&w, o.body, o.len) == SLEET_OK && w.phase == PHASE_SCATTER) {
        w.weight = 1e20f;
        wire_data_encode(o.body, sizeof o.body, &w);
        forge_seal(&lie, &o);
    }
    sim_relay(s, &lie, 0);
}

/* Its results are a thousandfold, to all or to some. */
struct false_owner {
    bool on;
    uint32_t victims; /* bit i: node i */
    float factor;
    uint64_t lies;
};

static void commit_falsely(sim *s, const struct sim_datagram *d, void *arg)
{
    static struct opened o;
    static struct sim_datagram lie;
    struct false_owner *f = arg;
    struct wire_data w;
    lie = *d;
    if (f->on && d->from == LIAR && f->victims >> d->to & 1 && forge_open(d, &o) &&
        o.head.type == WIRE_DATA && wire_data_decode(&w, o.body, o.len) == SLEET_OK &&
        (w.phase == PHASE_GATHER || w.phase == PHASE_REPAIR)) {
        for (size_t i = 40; i + 4 <= o.len; i += 4) {
            float x;
            memcpy(&x, o.body + i, 4);
            x *= f->factor;
            memcpy(o.body + i, &x, 4);
        }
        forge_seal(&lie, &o);
        f->lies++;
    }
    sim_relay(s, &lie, 0);
}

static void lie_by_relay(void (*relay)(sim *, const struct sim_datagram *, void *), void *arg,
                         bool *on)
{
    sleet_rng rng = {test_seed()};
    cluster *c = cluster_with_a_liar(4, CLIP);
    static float before[20300];
    REQUIRE(c);
    sim_on_datagram(cluster_sim(c), relay, arg);
    for (unsigned round = 0; round < 12; round++) {
        *on = round >= 4;
        for (uint32_t i = 1; i < 4; i++)
            memcpy(cluster_values(c, i), cluster_values(c, VICTIM), sizeof before);
        memcpy(before, cluster_values(c, VICTIM), sizeof before);
        train_step(c, &rng, false);
        for (uint64_t k = 0; k < cluster_elements(c); k++)
            cluster_values(c, LIAR)[k] = before[k] + STEP / 4; /* what its weight speaks for */
        CHECK(cluster_round(c, NULL));
        for (uint64_t k = 0; *on && k < 100; k++) /* the others count as well */
            CHECK(cluster_values(c, VICTIM)[k] != before[k] + STEP / 4);
        CHECK(furthest(c, before, VICTIM) < FAR);
        cluster_idle(c, MS(5));
    }
    check_evidence(c, true);
    cluster_free(c);
}

static void a_heavy_weight_is_cut_down(void)
{
    bool on = false;
    lie_by_relay(weigh_much, &on, &on);
}

static void an_owners_false_results_are_not_taken(void)
{
    struct false_owner f = {.victims = ~0u, .factor = 1000};
    lie_by_relay(commit_falsely, &f, &f.on);
    CHECK(f.lies > 0);
}

/* ---- different results to different members --------------------------------- */

static uint64_t disputed(cluster *c, uint32_t node, uint64_t id, bool as_teller)
{
    engine_peer peers[16];
    uint64_t n = 0;
    uint32_t all =
        engine_get_peers(sim_engine(cluster_sim(c), node), peers, 16, sim_now(cluster_sim(c)));
    for (uint32_t k = 0; k < all; k++)
        if (peers[k].node_id == id)
            n += as_teller ? peers[k].disputes : peers[k].disputed;
    return n;
}

/* Small lies, too small to be refused, to one member. */
static void an_owner_with_two_tongues_is_named(void)
{
    struct false_owner f = {.victims = 1u << VICTIM, .factor = 1.0001f, .on = true};
    sleet_rng rng = {test_seed()};
    uint64_t by_owner = 0, tellers = 0;
    cluster *c = cluster_with_a_liar(5, CLIP);
    REQUIRE(c);
    sim_on_datagram(cluster_sim(c), commit_falsely, &f);
    for (unsigned round = 0; round < 60; round++) {
        train_step(c, &rng, false);
        CHECK(cluster_round(c, NULL));
        cluster_idle(c, MS(5));
    }
    for (uint32_t i = 0; i < 5; i++)
        for (uint64_t id = 1; id <= 5; id++) {
            uint64_t n = disputed(c, i, id, false);
            if (id == LIAR + 1)
                by_owner += n;
            else
                CHECK_EQ(n, 0);
            tellers += id != LIAR + 1 && disputed(c, i, id, true) > 0;
        }
    CHECK(by_owner >= 5);
    CHECK(tellers >= 4); /* several say so: it is not the teller that lies */
    check_evidence(c, false);
    cluster_free(c);
}

/* A teller that lies about what it holds is contradicted as to several owners. */
static void misreport(sim *s, const struct sim_datagram *d, void *arg)
{
    static struct opened o;
    static struct sim_datagram lie;
    uint64_t *lies = arg;
    lie = *d;
    if (d->from == LIAR && forge_open(d, &o) && o.head.type == WIRE_SUMMARY &&
        (o.body[50] & SUMMARY_WITNESS)) {
        o.body[60] ^= 1;
        forge_seal(&lie, &o);
        ++*lies;
    }
    sim_relay(s, &lie, 0);
}

static void a_false_witness_names_itself(void)
{
    sleet_rng rng = {test_seed()};
    uint64_t lies = 0, said = 0, owners = 0;
    cluster *c = cluster_with_a_liar(5, CLIP);
    REQUIRE(c);
    sim_on_datagram(cluster_sim(c), misreport, &lies);
    for (unsigned round = 0; round < 60; round++) {
        train_step(c, &rng, false);
        CHECK(cluster_round(c, NULL));
        cluster_idle(c, MS(5));
    }
    for (uint64_t id = 1; id <= 5; id++) {
        uint64_t as_owner = 0;
        for (uint32_t i = 0; i < 5; i++) {
            uint64_t n = disputed(c, i, id, true);
            CHECK(id == LIAR + 1 || n == 0);
            said += n;
            as_owner += disputed(c, i, id, false);
        }
        owners += as_owner > 0;
    }
    CHECK(lies >= 30);
    CHECK(said >= lies / 2 && owners >= 3);
    cluster_free(c);
}

TEST_SUITE(liars) = {
    TEST(results_come_from_their_owner),
    TEST(nobody_stands_in_unasked),
    TEST(a_thousandfold_model_is_cut_down),
    TEST(a_flipped_sign_is_cut_down),
    TEST(honest_nodes_are_left_alone),
    TEST(a_leap_of_all_is_no_lie),
    TEST(a_heavy_weight_is_cut_down),
    TEST(an_owners_false_results_are_not_taken),
    TEST(an_owner_with_two_tongues_is_named),
    TEST(a_false_witness_names_itself),
    TEST_END,
};
