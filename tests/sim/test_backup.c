/* Owners that die, or fall silent, when only some have their commits: the backups of their runs heal the others.
 *
 * Replicas add what each round brings.  The owner that dies is cut off from all members but those that the
 * test leaves it, so that without backups the others never have what these have. */
#include "forge.h"
#include "strategy/strategy.h"
#include <stdlib.h>

#define NODES 6
#define FRAGMENTS 240 /* 30 runs: each node owns some, and backs some up */
#define ALL (FRAGMENTS * WIRE_ELEMENTS)
#define VICTIM 2u

static const uint64_t counts[] = {ALL};

struct play {
    cluster *c;
    double at[NODES][ALL]; /* the replicas */
    sleet_rng rng;
    struct group group;
    uint8_t owner[FRAGMENTS / 8], backup[FRAGMENTS / 8];
    bool dying, killed;   /* the round in which the victim dies, `after` its first result has left */
    bool cut, freezes;    /* its results reach backups only; it lives, but does nothing */
    sleet_duration after;
    uint32_t behind;
};

static uint32_t run_of(const struct wire_data *d)
{
    return d->fragment / 8; /* there is one tensor */
}

static void kill_it(sim *s, void *arg)
{
    const struct play *p = arg;
    if (p->freezes)
        sim_freeze(s, VICTIM, true);
    else
        sim_kill(s, VICTIM);
}

static void on_the_way(sim *s, const struct sim_datagram *d, void *arg)
{
    static struct opened o;
    struct play *p = arg;
    struct wire_data w;
    bool data = p->dying && d->from == VICTIM && forge_open(d, &o) && o.head.type == WIRE_DATA &&
                wire_data_decode(&w, o.body, o.len) == SLEET_OK;
    if (data && (w.phase == PHASE_GATHER || w.phase == PHASE_REPAIR)) {
        if (!p->killed)
            sim_at(s, time_add(sim_now(s), p->after), kill_it, p);
        p->killed = true;
        if (p->cut && p->backup[run_of(&w)] != d->to)
            return;
    }
    sim_relay(s, d, 0);
}

static struct play *begin(sleet_update update, bool backup, uint64_t keep_bytes)
{
    struct sim_config config = {.nodes = NODES,
                                .seed = test_seed(),
                                .kind = {.payload = SLEET_GRADIENT, .update = update},
                                .link = CLEAN_LINK,
                                .keep_bytes = keep_bytes,
                                .backup_off = !backup};
    struct play *p = calloc(1, sizeof *p);
    if (p)
        p->c = ready_cluster(&config, counts, 1);
    if (!p || !p->c) {
        free(p);
        return NULL;
    }
    p->rng.state = config.seed;
    p->cut = true;
    p->after = MS(60);
    p->group.n = NODES;
    for (uint32_t i = 0; i < NODES; i++)
        p->group.members[i] = (struct group_member){.node_id = i + 1, .contributes = 1};
    sim_on_datagram(cluster_sim(p->c), on_the_way, p);
    return p;
}

/* A round, and the step that it allows. */
static void step(struct play *p, const sleet_round_options *o)
{
    for (uint32_t i = 0; i < NODES; i++)
        for (uint32_t k = 0; k < ALL; k++)
            cluster_values(p->c, i)[k] = (float)((int32_t)rng_below(&p->rng, 2048) - 1024) * 0x1p-12f;
    CHECK(cluster_round(p->c, o));
    for (uint32_t i = 0; i < NODES; i++) {
        const struct cluster_report *r = cluster_report(p->c, i);
        if (!r->reported || r->error || (i == VICTIM && p->killed))
            continue;
        p->behind += (r->report.flags & SLEET_BEHIND) != 0;
        for (uint32_t k = 0; k < ALL; k++)
            p->at[i][k] += (double)cluster_values(p->c, i)[k];
    }
}

/* Rounds until all is in, then one in which the victim dies. */
static void die(struct play *p, const sleet_round_options *o)
{
    step(p, NULL);
    step(p, NULL);
    uint64_t round = cluster_report(p->c, 0)->report.round + 1;
    owners_assign(&p->group, round, FRAGMENTS / 8, p->owner);
    backups_assign(&p->group, round, FRAGMENTS / 8, p->owner, p->backup);
    p->dying = true;
    step(p, o);
    CHECK(p->killed);
}

static double distance(const struct play *p)
{
    double worst = 0;
    for (uint32_t i = 0; i < NODES; i++)
        for (uint32_t k = 0; i != VICTIM && k < ALL; k++)
            worst = fmax(worst, fabs(p->at[i][k] - p->at[0][k]));
    return worst;
}

static engine_counters survivors(struct play *p)
{
    engine_counters sum = {0};
    for (uint32_t i = 0; i < NODES; i++) {
        engine_counters k;
        if (!sim_engine(cluster_sim(p->c), i))
            continue;
        engine_get_counters(sim_engine(cluster_sim(p->c), i), &k);
#define ADD(field, help) sum.field += k.field;
        ENGINE_COUNTER_MAP(ADD)
#undef ADD
    }
    return sum;
}

static void end(struct play *p)
{
    CHECK_EQ(cluster_overdue(p->c), 0);
    CHECK(ledger_balances(p->c));
    CHECK_EQ(survivors(p).usurped, 0);
    cluster_free(p->c);
    free(p);
}

/* In the round: it closes with all that the owner has committed, long before its deadline, and before the owner is
 * taken for dead. */
static void an_owner_that_is_gone_is_stood_in_for(void)
{
    for (int freezes = 0; freezes < 2; freezes++) {
        struct play *p = begin(SLEET_LINEAR, true, 0);
        REQUIRE(p);
        p->freezes = freezes;
        die(p, NULL);
        CHECK(distance(p) == 0);
        for (uint32_t i = 0; i < NODES; i++)
            if (i != VICTIM)
                CHECK(cluster_report(p->c, i)->report.coverage == 1.0 &&
                      cluster_report(p->c, i)->report.elapsed_ns < MS(500));
        CHECK(survivors(p).healed > 0);
        step(p, NULL);
        CHECK(distance(p) == 0);
        end(p);
    }
}

static void without_backups_replicas_differ(void)
{
    struct play *p = begin(SLEET_LINEAR, false, 0);
    REQUIRE(p);
    die(p, NULL);
    for (int i = 0; i < 6; i++)
        step(p, NULL);
    CHECK(distance(p) > 0.01);
    CHECK_EQ(survivors(p).healed, 0);
    end(p);
}

/* The round has closed at its deadline: what comes goes into the next.  Past commits take no more than keep_bytes. */
static void late_commits_come_from_backups(void)
{
    const sleet_round_options brief = {.deadline_ns = MS(100)}, briefer = {.deadline_ns = MS(10)};
    for (int keeps = 0; keeps < 2; keeps++) {
        struct play *p = begin(SLEET_LINEAR, true, keeps ? 0 : 1);
        uint64_t corrected = 0;
        REQUIRE(p);
        die(p, &brief);
        CHECK(distance(p) > 0.01);
        for (int i = 0; i < 5; i++) {
            step(p, i < 2 ? &briefer : NULL);
            cluster_idle(p->c, i < 2 ? 0 : MS(100));
            corrected += cluster_report(p->c, 0)->report.fragments_corrected;
        }
        if (keeps)
            CHECK(distance(p) < 1e-6 && corrected > 0 && survivors(p).healed > 0);
        else
            CHECK(distance(p) > 0.01 && survivors(p).healed == 0);
        end(p);
    }
}

/* A step that is not linear: with the backups nobody misses it. */
static void nobody_is_behind(void)
{
    for (int backup = 0; backup < 2; backup++) {
        struct play *p = begin(SLEET_NONLINEAR, backup, 0);
        REQUIRE(p);
        die(p, NULL);
        CHECK(backup ? p->behind == 0 : p->behind > 0);
        end(p);
    }
}

/* Whenever it dies: what it has sent to anybody it has sent to the backup before. */
static void at_any_moment(void)
{
    uint64_t healed = 0;
    for (int k = 0; k < 6; k++) {
        struct play *p = begin(SLEET_LINEAR, true, 0);
        REQUIRE(p);
        p->cut = false;
        p->after = MS(4 * k + 1);
        die(p, NULL);
        cluster_idle(p->c, MS(100));
        step(p, NULL);
        CHECK(distance(p) < 1e-6);
        healed += survivors(p).healed;
        end(p);
    }
    CHECK(healed > 0);
}

TEST_SUITE(backup) = {

    TEST(an_owner_that_is_gone_is_stood_in_for),
    TEST(without_backups_replicas_differ),
    TEST(late_commits_come_from_backups),
    TEST(nobody_is_behind),
    TEST(at_any_moment),
    TEST_END,
};
