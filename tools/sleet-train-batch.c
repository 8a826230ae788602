/* sleet-train-batch.c - batches that follow step times: what a node measures, and the table in
 * which all share it.
 *
 * Each node adds a row to a vector that is 0 elsewhere; the mean of these is the table, times one
 * factor.  It is a single fragment, so what one node has of it all have that have anything: whoever
 * comes to other batches has no table at all, and keeps those it has.  The weight of a node's part
 * in each average is its batch, so the average is one of samples also then. */
#include "sleet-train.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { THERE, BATCH, TIME_US };
#define SAMPLE_S 1e-4 /* virtual, of a node that is not slowed down */
#define SLOW_MOST 1000

static bool slow_list(const char **text, double *out, uint32_t *count)
{
    for (*count = 0; *count < NODES_MAX;) {
        char *end;
        double v = strtod(*text, &end);
        if (end == *text || !(v >= 1 && v <= SLOW_MOST))
            return false;
        out[(*count)++] = v;
        *text = end;
        if (*end != ',')
            return true;
        (*text)++;
    }
    return false;
}

bool batch_parse_slow(const char *text, struct batch_options *b)
{
    if (!slow_list(&text, b->slow[0], &b->slows))
        return false;
    memcpy(b->slow[1], b->slow[0], sizeof b->slow[1]);
    uint32_t again = b->slows;
    if (*text == ':') {
        text++;
        if (!slow_list(&text, b->slow[1], &again))
            return false;
    }
    return !*text && again == b->slows;
}

const char *batch_settle(struct train_options *o)
{
    struct batch_options *b = &o->batches;
    uint32_t nodes = o->sim ? o->sim : o->shard_count;
    struct batch_control *c = &b->control;
    if (b->slows > 1 && b->slows != nodes)
        return "--slow takes one factor, or one for each node";
    if (!b->on) {
        bool said =
            c->global || c->least || c->most || c->deadband >= 0 || c->on_resize || b->every;
        return said ? "--global-batch, --batch-min, --batch-max, --batch-every, --deadband and --on-resize need --batch-control"
                    : NULL;
    }
    if (o->average == AVERAGE_NONE || o->average == AVERAGE_OUTER || o->kind.strategy > SLEET_RPS)
        return "--batch-control is for --average model, gradient or owner by strategy rps: batches are weights in an average of all nodes";
    c->nodes = nodes;
    c->global = c->global ? c->global : o->batch * nodes;
    c->least = c->least ? c->least : 1;
    c->most = c->most ? c->most : 4 * (c->global / nodes) + 1;
    c->most = c->most < BATCH_MAX ? c->most : BATCH_MAX;
    c->deadband = c->deadband < 0 ? 0.1 : c->deadband;
    b->every = b->every ? b->every : 20;
    o->batch = c->global / nodes;
    if (o->batch < c->least || o->batch >= c->most)
        return "--global-batch is shared by all nodes: a part of it lies from --batch-min to below --batch-max";
    return NULL;
}

void batch_open(struct train_batch *b, const struct train_options *o, uint32_t index)
{
    const struct batch_control *c = &o->batches.control;
    *b = (struct train_batch){.options = &o->batches,
                              .virtual_time = o->sim > 0,
                              .index = index,
                              .now = o->batch,
                              .rate = 1};
    if (o->batches.on) /* the parts of what does not divide go to the first */
        b->now += index < c->global - o->batch * c->nodes;
    b->sum_least = b->sum_most = c->global;
}

void batch_use(const struct train_batch *b, const struct optimizer *whole, struct learner *l)
{
    l->batch = b->now;
    l->optimizer.rate = whole->rate * b->rate;
}

void batch_note(struct train_batch *b, bool second_half, double seconds)
{
    const struct batch_options *o = b->options;
    double slow = o->slows ? o->slow[second_half][o->slows > 1 ? b->index : 0] : 1;
    if (b->virtual_time)
        seconds = b->now * SAMPLE_S;
    else if (slow > 1)
        usleep((useconds_t)(seconds * (slow - 1) * 1e6));
    b->step_s = seconds * slow;
    b->busy_s += b->step_s;
    b->steps++;
}

bool batch_due(const struct train_batch *b, uint64_t done)
{
    return b->options->on && done % b->options->every == 0;
}

void batch_save(const struct train_batch *b, double out[BATCH_NUMBERS])
{
    const double all[BATCH_NUMBERS] = {b->now, b->rate, b->busy_s, (double)b->steps, (double)b->tables, (double)b->missed,
                                       b->spread[0], b->spread[1], b->sum_least, b->sum_most};
    memset(out, 0, sizeof all);
    if (b->options->on)
        memcpy(out, all, sizeof all);
}

void batch_load(struct train_batch *b, const double in[BATCH_NUMBERS])
{
    if (!b->options->on)
        return;
    const struct batch_control *c = &b->options->control; /* its bounds may be others now, and buffers are for them */
    b->now = (uint32_t)fmin(fmax(in[0], c->least), c->most);
    b->rate = in[1];
    b->busy_s = in[2];
    b->steps = (uint64_t)in[3];
    b->tables = (uint64_t)in[4];
    b->missed = (uint64_t)in[5];
    b->spread[0] = in[6];
    b->spread[1] = in[7];
    b->sum_least = (uint32_t)in[8];
    b->sum_most = (uint32_t)in[9];
}

double batch_weight(const struct train_batch *b)
{
    return b->options->on ? b->now : 0;
}

void batch_give(const struct train_batch *b, float table[TABLE_FLOATS])
{
    float *row = table + TABLE_COLUMNS * b->index;
    memset(table, 0, TABLE_FLOATS * sizeof *table);
    row[THERE] = 1;
    row[BATCH] = (float)b->now;
    row[TIME_US] = b->steps ? (float)fmin(b->busy_s / (double)b->steps * 1e6 + 0.5, 1e9) : 0;
}

uint64_t batch_there(const float table[TABLE_FLOATS])
{
    uint64_t nodes = 0;
    for (uint32_t i = 0; i < NODES_MAX; i++)
        nodes |= (uint64_t)(table[TABLE_COLUMNS * i + THERE] > 0) << i;
    return nodes;
}

/* The rows; how many nodes are there. */
static uint32_t rows_of(const float *table, struct batch_row *row)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < NODES_MAX; i++) {
        const float *f = table + TABLE_COLUMNS * i;
        bool there = f[THERE] > 0;
        row[i] = (struct batch_row){0};
        if (there)
            row[i] = (struct batch_row){.batch = (uint32_t)lroundf(f[BATCH] / f[THERE]),
                                        .time_us = (uint32_t)lroundf(f[TIME_US] / f[THERE])};
        count += there;
    }
    return count;
}

/* How unlike the steps of all were, and what they had together. */
static void look(struct train_batch *b, const struct batch_row *row, bool second_half)
{
    uint32_t least = UINT32_MAX, most = 0, sum = 0;
    for (uint32_t i = 0; i < NODES_MAX; i++) {
        sum += row[i].batch;
        if (!row[i].time_us)
            continue;
        least = row[i].time_us < least ? row[i].time_us : least;
        most = row[i].time_us > most ? row[i].time_us : most;
    }
    b->spread[second_half] = most ? (double)most / least : 1;
    b->sum_least = sum < b->sum_least ? sum : b->sum_least;
    b->sum_most = sum > b->sum_most ? sum : b->sum_most;
}

void batch_take(struct train_batch *b, bool second_half, uint32_t flags,
                const float table[TABLE_FLOATS])
{
    struct batch_row row[NODES_MAX];
    uint32_t count = rows_of(table, row);
    b->busy_s = 0;
    b->steps = 0;
    b->tables++;
    if (flags & (SLEET_PARKED | SLEET_BEHIND | SLEET_ALONE) || !row[b->index].batch) {
        b->missed++;
        return;
    }
    look(b, row, second_half);
    batch_balance(&b->options->control, row, NODES_MAX);
    b->now = row[b->index].batch;
    b->rate = batch_rate(&b->options->control, count);
    b->nodes = count;
    b->global = 0;
    for (uint32_t i = 0; i < NODES_MAX; i++)
        b->global += row[i].batch;
}
