/* sleet-train-state.c - what a node publishes for those that come late or again, and takes from
 * others at its start.
 *
 * The state is the set's tensors, its version the step.  The blob is text, a line a fact: where
 * the training is (step, samples of all nodes) and where this node is in its own data. */
#include "sleet-train-save.h"
#include "sleet.h"
#include <stdlib.h>
#include <string.h>

#define BLOB_WAIT_NS INT64_C(2000000000)
#define BLOB_TEXT_MAX 512

static FILE *messages(const struct train_state *s) { return s->print->json ? stderr : stdout; }

/* ---- publish ------------------------------------------------------------------------- */

static int blob_write(const struct train_state *s, uint64_t step, char text[BLOB_TEXT_MAX])
{
    return snprintf(text, BLOB_TEXT_MAX,
                    "sleet-train 1\nstep = %llu\nsamples = %llu\ndrawn = %llu\nplace = %016llx\n",
                    (unsigned long long)step,
                    (unsigned long long)step * s->node->places * s->node->options->batch,
                    (unsigned long long)s->tally->drawn,
                    (unsigned long long)train_place(s));
}

void train_state_publish(const struct train_state *s, struct train_share *share, uint64_t before,
                         uint64_t step)
{
    char text[BLOB_TEXT_MAX];
    uint32_t every = s->node->options->publish_every;
    share->due |= every && before / every != step / every;
    if (!share->due)
        return;
    *share->schedule = (float)step;
    learner_pack(s->node->learner, s->node->values, share->tensors);
    int error = sleet_state_publish(share->set, step, text, (size_t)blob_write(s, step, text));
    share->due = error == SLEET_EAGAIN; /* somebody fetches the one before: with the next step */
    if (error && error != SLEET_EAGAIN && !share->told) {
        fprintf(stderr, "sleet-train: the state of step %llu is not published: %s\n",
                (unsigned long long)step, sleet_detail(share->ctx));
        share->told = true;
    }
}

/* ---- fetch ------------------------------------------------------------------------------ */

static bool blob_number(const char *text, const char *name, int base, uint64_t *out)
{
    const char *at = strstr(text, name);
    if (!at)
        return false;
    *out = strtoull(at + strlen(name), NULL, base);
    return true;
}

static bool blob_of(const struct train_share *share, uint64_t node, char text[BLOB_TEXT_MAX])
{
    size_t bytes;
    if (!node || sleet_state_blob(share->set, node, BLOB_WAIT_NS, text, BLOB_TEXT_MAX - 1, &bytes, NULL))
        return false;
    text[bytes] = '\0';
    return strncmp(text, "sleet-train 1\n", 14) == 0;
}

/* A node that comes again goes on in its own data, wherever its checkpoint was. */
static void take_place(const struct train_state *s, const struct train_share *share)
{
    char text[BLOB_TEXT_MAX];
    sleet_job_info job;
    uint64_t place, drawn, here = (uint64_t)s->tally->drawn;
    if (sleet_job(share->ctx, NULL, &job) || !blob_of(share, job.node_id, text) ||
        !blob_number(text, "\nplace = ", 16, &place) || place != train_place(s) ||
        !blob_number(text, "\ndrawn = ", 10, &drawn) || drawn <= here)
        return;
    shard_walk_skip(&s->node->walk, drawn - here);
    s->tally->steps = (double)(drawn / s->node->options->batch);
    s->tally->drawn = (double)drawn;
    fprintf(messages(s), "sleet-train: goes on behind %llu of its samples\n", (unsigned long long)drawn);
}

/* The step in this run's measure: a job of other size had other steps for the same samples. */
static uint64_t step_of(const struct train_state *s, const struct train_share *share,
                        const sleet_state_report *r)
{
    char text[BLOB_TEXT_MAX];
    uint64_t samples, step = r->version;
    if (blob_of(share, r->blob_of, text) && blob_number(text, "\nsamples = ", 10, &samples))
        step = samples / ((uint64_t)s->node->places * s->node->options->batch);
    return step < s->print->steps ? step : s->print->steps;
}

int train_state_fetch(const struct train_state *s, struct train_share *share, uint64_t *step)
{
    sleet_state_report r;
    if (s->node->options->state_wait <= 0)
        return EXIT_OK;
    int error = sleet_state_fetch(share->set, *step, (int64_t)(s->node->options->state_wait * 1e9), &r);
    if (error == SLEET_EDAEMON)
        return train_fail(s->print, "fetching the job's state: %s", sleet_detail(share->ctx));
    if (error && error != SLEET_ENOSTATE)
        fprintf(stderr, "sleet-train: the job's state is not here: %s; going on with the others' model\n",
                sleet_detail(share->ctx));
    if (error)
        return EXIT_OK;
    learner_unpack(s->node->learner, share->tensors, s->node->values);
    *step = step_of(s, share, &r);
    take_place(s, share);
    fprintf(messages(s), "sleet-train: took over step %llu of %llu from %u nodes in %.2f s\n",
            (unsigned long long)*step, (unsigned long long)s->print->steps, r.donors,
            (double)r.elapsed_ns / 1e9);
    if (r.newest > r.version)
        fprintf(stderr, "sleet-train: step %llu was published by nodes that are gone; the newest that "
                        "is left is of step %llu\n",
                (unsigned long long)r.newest, (unsigned long long)r.version);
    return EXIT_OK;
}
