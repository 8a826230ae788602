/* sleet-sim-scenario.h - a scenario file on simulated links: the same engines, trainers
 * that really learn, virtual time.
 *
 *   sleet-sim-scenario.c  links, events, verdict
 *   sleet-sim-trainer.c   the trainers, as sleet-train behaves
 */
#ifndef SLEET_SIM_SCENARIO_H
#define SLEET_SIM_SCENARIO_H
#include "scenario/scenario.h"
#include "sim/cluster.h"
#include "sleet-train.h"

enum trainer_phase { TRAINER_OFF, TRAINER_MEETS, TRAINER_STEPS, TRAINER_ENDS, TRAINER_DONE };

struct play;

struct trainer {
    struct play *play;
    uint32_t node;
    enum trainer_phase phase;
    struct shard_walk walk;
    sleet_time due, meets_until, ends_until; /* due: of the pending timer */
    bool armed, frozen, excused, late, based;
    uint64_t step, base, steps, returned, rounds;
    struct scenario_course course;
    double coverage_sum, least_coverage, longest_wait, accuracy;
    float *before; /* its values before the step */
    double *waits; /* s */
    size_t wait_count, wait_room;
};

struct play {
    const struct scenario *s;
    cluster *c;
    struct train_options options;
    struct dataset data;
    struct learner learner;
    struct shard_split split;
    struct trainer trainer[SCENARIO_NODES_MAX];
    struct scenario_link link[SCENARIO_NODES_MAX]; /* now */
    sleet_time free_at[SCENARIO_NODES_MAX];        /* of the rate limit towards a node */
    uint8_t group[SCENARIO_NODES_MAX];
    uint32_t down; /* nodes whose links are */
    int next_event;
    sleet_time event_at;
    uint64_t top_step;
};

double play_now(const struct play *); /* seconds of virtual time */
bool trainers_open(struct play *); /* false after saying why */
void trainers_close(struct play *);
void trainer_start(struct trainer *, bool late);
void trainer_stop(struct trainer *); /* killed */
void trainer_reported(cluster *, uint32_t node, void *play);

/* Play the file and print what came out: the exit status.  LEFT_OUT, after saying why, where
 * the simulator lacks what the file needs. */
#define SIM_SCENARIO_LEFT_OUT 3
int sim_scenario(const char *path);
/* sleet-sim-members.c: SWIM among 2 to 1024 nodes, a table on stdout.  The exit status: 1
 * when a death was not found out by all. */
int sim_membership(uint32_t nodes, double loss, double delay_ms, uint64_t seed, bool json);
#endif
