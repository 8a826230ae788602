/* sleet-train-save.c - checkpoints of a run: what must match, when one is due. */
#include "sleet-train.h"
#include "train/checkpoint.h"
#include <assert.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

static_assert(sizeof(struct train_tally) % sizeof(double) == 0, "doubles only");

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

/* The options and data that make the next step what it is. */
static void settings(const struct train_state *s, struct lines *t)
{
    const struct train_options *o = s->options;
    const struct optimizer *p = &o->optimizer;
    const struct dataset *data = s->learner->data;
    *t = (struct lines){.len = 0};
    line(t, "model = %s\n", s->learner->title);
    line(t, "data = %u samples, checksum %016llx\n", data->count[DATA_TRAIN],
         (unsigned long long)data->kind->checksum(data));
    line(t, "shards = %s\n", o->shards_text);
    line(t, "shard = %u/%u\n", s->shard, s->shards);
    if (s->learner->statistics)
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

static struct checkpoint describe(const struct train_state *s, struct lines *t)
{
    settings(s, t);
    return (struct checkpoint){.settings = t->text,
                               .may_differ = "shard = ",
                               .drawn = (uint64_t)s->tally->drawn,
                               .number = (double *)s->tally,
                               .numbers = sizeof *s->tally / sizeof(double),
                               .vector = {s->values},
                               .vectors = 1,
                               .elements = s->learner->elements};
}

static int save(const struct train_state *s, uint64_t step)
{
    char error[CHECKPOINT_ERROR_MAX];
    struct lines t;
    struct checkpoint c = describe(s, &t);
    c.step = step;
    if (checkpoint_write(s->options->checkpoint, &c, error))
        return EXIT_OK;
    return train_fail(s->print, "%s", error);
}

/* The same samples are fewer steps where more nodes share them. */
static uint64_t step_here(const struct train_state *s, const struct checkpoint *c)
{
    unsigned shard, shards;
    if (sscanf(c->differs, "shard = %u/%u", &shard, &shards) != 2 || shards == 0)
        return c->step;
    fprintf(s->print->json ? stderr : stdout,
            "sleet-train: %s is of shard %u of %u, this node has %u of %u: the model is taken over, "
            "step %llu there is step %llu here\n",
            s->options->checkpoint, shard, shards, s->shard, s->shards, (unsigned long long)c->step,
            (unsigned long long)(c->step * shards / s->shards));
    return c->step * shards / s->shards;
}

int train_checkpoint_open(const struct train_state *s, uint64_t *step)
{
    const char *path = s->options->checkpoint;
    char error[CHECKPOINT_ERROR_MAX];
    struct lines t;
    *step = 0;
    if (!path)
        return EXIT_OK;
    if (!s->options->resume) {
        if (access(path, F_OK) == 0)
            return train_fail(s->print,
                              "%s exists; add --resume to go on from it, remove it, or "
                              "name another file",
                              path);
        return save(s, 0);
    }
    struct checkpoint c = describe(s, &t);
    if (!checkpoint_read(path, &c, error))
        return train_fail(s->print, "%s", error);
    shard_walk_skip(s->walk, c.drawn);
    *step = step_here(s, &c);
    fprintf(s->print->json ? stderr : stdout, "sleet-train: resumed from %s at step %llu of %llu\n",
            path, (unsigned long long)*step, (unsigned long long)s->print->steps);
    return EXIT_OK;
}

int train_checkpoint_step(const struct train_state *s, uint64_t before, uint64_t step)
{
    uint64_t every =
        s->options->checkpoint_every ? s->options->checkpoint_every : s->print->steps_per_epoch;
    bool last = step >= s->print->steps;
    if (!s->options->checkpoint || (before / every == step / every && !last))
        return EXIT_OK;
    int status = save(s, step);
    return last ? status : EXIT_OK;
}
