/* course.c - when a node came among the others, and how long it was without them. */
#include "scenario/scenario.h"
#include <math.h>

#define JOINED 0.9 /* coverage of the first round that counts as having joined */

void scenario_course_start(struct scenario_course *c, double now)
{
    c->joined = c->met = false;
    c->started_at = now;
}

static void note_gap(struct scenario_course *c, double now)
{
    if (c->met)
        c->gap_s = fmax(c->gap_s, now - c->met_at);
    c->measured |= c->met;
}

void scenario_course_round(struct scenario_course *c, double now, double coverage, bool in_step)
{
    if (coverage >= SCENARIO_COVERED) {
        note_gap(c, now);
        c->met = true;
        c->met_at = now;
    }
    if (coverage >= JOINED && in_step && !c->joined) {
        c->joined = true;
        c->joined_s = fmax(c->joined_s, now - c->started_at);
    }
}

void scenario_course_end(struct scenario_course *c, double now)
{
    note_gap(c, now);
}

void scenario_course_values(const struct scenario_course *c, double *joined_s, double *gap_s)
{
    *joined_s = c->joined ? c->joined_s : NAN;
    *gap_s = c->measured ? c->gap_s : NAN;
}
