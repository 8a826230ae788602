/* sleet-train-save.c - checkpoints of a run: what must match, when one is due. */
#include "sleet-train-save.h"
#include "train/checkpoint.h"
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#define OWNED 5 /* of the parts: the owner's */

struct lines {
    char text[CHECKPOINT_SETTINGS_MAX];
    size_t len;
};

static void line(struct lines *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void line(struct lines *t, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(t->text + t->len, sizeof t->text - t->len, format, args);
    va_end(args);
    if (n > 0 && t->len + (size_t)n < sizeof t->text)
        t->len += (size_t)n;
}

/* What is averaged, and what decides what is left over of it. */
static void averaging(const struct train_options *o, struct lines *t)
{
    const struct batch_control *c = &o->batches.control;
    line(t, "average = %s\n", average_text(o->average));
    if (o->kind.estimator)
        line(t, "estimator = %s\n", o->forget ? "nodes" : estimator_text((int)o->kind.estimator));
    if (o->twice > 0)
        line(t, "twice = %.9g\n", o->twice);
    if (o->average && o->codec)
        line(t, "codec = %s, keep %.9g%s\n", codec_text((int)o->codec), o->keep, o->keep_auto ? " at least" : "");
    if (o->ef)
        line(t, "ef = %s, alpha %.9g, average %u\n", ef_text(o->ef), o->ef_alpha, o->ef_average);
    if (o->batches.on)
        line(t, "batch-control = every %u, deadband %.9g, on-resize %u\n", o->batches.every, c->deadband,
             (unsigned)c->on_resize);
}

/* The options and data that make the next step what it is. */
static void settings(const struct train_state *s, struct lines *t)
{
    const struct train_options *o = s->node->options;
    const struct learner *l = s->node->learner;
    const struct optimizer *p = &o->optimizer;
    const struct dataset *data = l->data;
    *t = (struct lines){.len = 0};
    line(t, "model = %s\n", l->title);
    line(t, "data = %u samples, checksum %016llx\n", data->count[DATA_TRAIN],
         (unsigned long long)data->kind->checksum(data));
    line(t, "shards = %s\n", o->shards_text);
    line(t, "shard = %u/%u\n", s->node->place, s->node->places);
    if (l->statistics)
        line(t, "bn-stats = %s\n", o->local_statistics ? "local" : "average");
    line(t, "seed = %llu\n", (unsigned long long)o->seed);
    line(t, "batch = %u\n", o->batch);
    line(t, "epochs = %u\n", o->epochs);
    if (o->partition)
        line(t, "partition = %u\n", o->partition);
    line(t, "steps = %llu\n", (unsigned long long)o->steps);
    if (o->local_moments)
        line(t, "local-momentum\n");
    if (o->slices)
        line(t, "slices = %u of %u nodes\n", o->slices, o->slice_members);
    if (o->spread > 1)
        line(t, "spread = %u\n", o->spread);
    averaging(o, t);
    line(t, "trigger = %s, every %llu", o->trigger.kind->name, (unsigned long long)o->trigger.every);
    line(t, ", delta %.9g, window %u, most %llu\n", o->trigger.delta, o->trigger.window,
         (unsigned long long)o->trigger.most);
    if (o->outer.kind)
        line(t, "outer = %s, lr %.9g, momentum %.9g\n", o->outer.kind->name, o->outer.rate, o->outer.momentum);
    line(t, "optimizer = %s\n", p->kind->name);
    line(t, "lr = %.9g\n", p->rate);
    line(t, "momentum = %.9g\n", p->momentum);
    line(t, "beta1 = %.9g\n", p->beta1);
    line(t, "beta2 = %.9g\n", p->beta2);
    line(t, "weight-decay = %.9g\n", p->weight_decay);
    line(t, "clip-norm = %.9g\n", p->clip_norm);
    line(t, "loss-scale = %.9g\n", o->loss_scale);
    line(t, "init-scale = %.9g\n", o->init_scale);
    line(t, "schedule = %s\n", schedule_text(p->schedule));
    line(t, "warm-up = %llu\n", (unsigned long long)p->warm_up);
}

uint64_t train_place(const struct train_state *s)
{
    struct lines t;
    settings(s, &t);
    return XXH3_64bits(t.text, t.len);
}

/* All there is of a run, but for what its owner's moments are; `batch` is room for numbers. */
static struct checkpoint describe(const struct train_state *s, struct lines *t, double batch[BATCH_NUMBERS])
{
    const struct learner *l = s->node->learner;
    uint32_t slices = s->node->options->slices;
    settings(s, t);
    return (struct checkpoint){
        .settings = t->text,
        .may_differ = "shard = ",
        .drawn = (uint64_t)s->tally->drawn,
        .part = {{.name = "sums and counts", .data = s->tally, .bytes = sizeof *s->tally},
                 {.name = "the batch", .data = batch, .bytes = BATCH_NUMBERS * sizeof *batch},
                 {.name = "parameters and moments", .data = s->node->values, .bytes = l->elements * sizeof(float)},
                 {.name = "what was left out", .data = s->residual, .bytes = s->residual ? l->params * sizeof(float) : 0},
                 {.name = "slices", .data = s->node->slices.who, .bytes = slices ? SLICE_NUMBERS(slices) * sizeof(uint64_t) : 0},
                 {.name = "moments of a share"}},
        .parts = OWNED + 1};
}

static int save(const struct train_state *s, uint64_t step)
{
    const char *path = s->node->options->checkpoint;
    char error[CHECKPOINT_ERROR_MAX];
    double batch[BATCH_NUMBERS];
    struct lines t;
    struct checkpoint c = describe(s, &t, batch);
    struct checkpoint_part *owned = &c.part[OWNED];
    c.step = step;
    batch_save(&s->node->batch, batch);
    if (s->node->keeper.run && !(owned->data = keeper_save(&s->node->keeper, &owned->bytes)))
        return train_fail(s->print, "no memory for the checkpoint %s", path);
    bool ok = checkpoint_write(path, &c, error);
    free(owned->data);
    return ok ? EXIT_OK : train_fail(s->print, "%s", error);
}

/* All of it back, or nothing; the step and the samples drawn are in `c`. */
static int load(const struct train_state *s, struct lines *t, struct checkpoint *c)
{
    const char *path = s->node->options->checkpoint;
    char error[CHECKPOINT_ERROR_MAX];
    double batch[BATCH_NUMBERS];
    *c = describe(s, t, batch);
    struct checkpoint_part *owned = &c->part[OWNED];
    owned->any = true;
    if (!checkpoint_read(path, c, error))
        return train_fail(s->print, "%s", error);
    bool ok = owned->bytes == 0 || (s->node->keeper.run && keeper_load(&s->node->keeper, owned->data, owned->bytes));
    free(owned->data);
    if (!ok)
        return train_fail(s->print, "%s holds %zu bytes of moments that this run has no place for; start anew with another "
                                    "--checkpoint", path, owned->bytes);
    if (!*c->differs) /* else it has another part of them */
        batch_load(&s->node->batch, batch);
    return EXIT_OK;
}

/* The same samples are fewer steps where more nodes share them. */
static uint64_t step_here(const struct train_state *s, const struct checkpoint *c)
{
    unsigned shard, shards;
    const struct train_node *n = s->node;
    if (sscanf(c->differs, "shard = %u/%u", &shard, &shards) != 2 || shards == 0)
        return c->step;
    fprintf(s->print->json ? stderr : stdout,
            "sleet-train: %s is of shard %u of %u, this node has %u of %u: the model is taken over, "
            "step %llu there is step %llu here\n",
            n->options->checkpoint, shard, shards, n->place, n->places, (unsigned long long)c->step,
            (unsigned long long)(c->step * shards / n->places));
    return c->step * shards / n->places;
}

int train_checkpoint_open(const struct train_state *s, uint64_t *step)
{
    const char *path = s->node->options->checkpoint;
    struct checkpoint c;
    struct lines t;
    *step = 0;
    if (!path)
        return EXIT_OK;
    if (!s->node->options->resume) {
        if (access(path, F_OK) == 0)
            return train_fail(s->print,
                              "%s exists; add --resume to go on from it, remove it, or "
                              "name another file",
                              path);
        return save(s, 0);
    }
    if (load(s, &t, &c) != EXIT_OK)
        return EXIT_FAILED;
    shard_walk_skip(&s->node->walk, c.drawn);
    *step = step_here(s, &c);
    if (s->node->options->slices && !slice_restored(s->node, !*c.differs, *step))
        return train_fail(s->print, "out of memory");
    fprintf(s->print->json ? stderr : stdout, "sleet-train: resumed from %s at step %llu of %llu\n",
            path, (unsigned long long)*step, (unsigned long long)s->print->steps);
    return EXIT_OK;
}

bool train_stops(const struct train_options *o, uint64_t step)
{
    return o->stop_at && step >= o->stop_at;
}

int train_checkpoint_step(const struct train_state *s, uint64_t before, uint64_t step)
{
    const struct train_options *o = s->node->options;
    uint64_t every = o->checkpoint_every ? o->checkpoint_every : s->print->steps_per_epoch;
    bool last = step >= s->print->steps;
    if (!o->checkpoint || (before / every == step / every && !last))
        return EXIT_OK;
    int status = save(s, step);
    return last ? status : EXIT_OK;
}

int train_checkpoint_stop(const struct train_state *s, uint64_t step)
{
    int status = save(s, step); /* also where no step was made */
    if (status == EXIT_OK)
        train_print_stopped(s->print, s->node->options, step, &s->node->batch);
    return status;
}
