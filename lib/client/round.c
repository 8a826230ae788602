/* round.c - start, wait, poll and cancel rounds. */
#include "client/client.h"
#include <inttypes.h>
#include <math.h>

#define DEADLINE_DEFAULT_NS INT64_C(2000000000)
#define DEADLINE_EXACT_NS INT64_C(30000000000)
#define DEADLINE_MAX_NS INT64_C(3600000000000)

void client_round_line(sleet *ctx, const char *text)
{
    int handle, error;
    uint64_t seq;
    sleet_report r = {0};
    int n = sscanf(text,
                   "%d %" SCNu64 " %d %" SCNu64 " %" SCNu64 " %lf %" SCNu32 " %" SCNu32 " %" SCNu32
                   " %" SCNu32 " %" SCNd64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
                   " %" SCNu64 " %" SCNu64 " %" SCNu32 " %" SCNu64,
                   &handle, &seq, &error, &r.round, &r.skipped, &r.coverage, &r.group_size,
                   &r.expected, &r.flags, &r.low_in_a_row, &r.elapsed_ns, &r.fragments_expected,
                   &r.fragments_direct, &r.fragments_repaired, &r.fragments_late,
                   &r.fragments_lost, &r.fragments_unsent, &r.runs_moved, &r.fragments_corrected);
    if (n != 19)
        return;
    for (sleet_set *s = ctx->sets; s; s = s->next) {
        if (s->handle != handle || s->seq != seq)
            continue;
        s->running = false;
        s->closed = s->open;
        s->round_error = error;
        s->report = r;
    }
}

/* Defaults filled in; SLEET_EINVAL where a value is out of range. */
static int resolve(sleet *ctx, const sleet_round_options *in, sleet_round_options *out)
{
    *out = (sleet_round_options){0};
    if (in && (in->size < sizeof(size_t) || in->size > sizeof *out))
        return client_fail(ctx, SLEET_EINVAL, "sleet_round_options.size is %zu, not %zu", in->size,
                           sizeof *out);
    if (in)
        memcpy(out, in, in->size);
    out->size = sizeof *out;
    if (out->deadline_ns == 0)
        out->deadline_ns = out->exact ? DEADLINE_EXACT_NS : DEADLINE_DEFAULT_NS;
    if (out->deadline_ns < 0 || out->deadline_ns > DEADLINE_MAX_NS)
        return client_fail(ctx, SLEET_EINVAL, "deadline_ns is not within 1 ns and 1 h");
    if (fpclassify(out->weight) == FP_ZERO)
        out->weight = 1;
    if (!isfinite(out->weight) || out->weight <= 0)
        return client_fail(ctx, SLEET_EINVAL, "weight is not finite and greater than 0");
    if (fpclassify(out->least_coverage) == FP_ZERO && out->quorum == SLEET_QUORUM_ALL)
        out->least_coverage = 0.5;
    if (!(out->least_coverage >= 0 && out->least_coverage <= 1))
        return client_fail(ctx, SLEET_EINVAL, "least_coverage is not within 0 and 1");
    if (!(out->keep >= 0 && out->keep <= 1))
        return client_fail(ctx, SLEET_EINVAL, "keep is not within 0 and 1");
    if (!(out->twice >= 0 && out->twice <= 1))
        return client_fail(ctx, SLEET_EINVAL, "twice is not within 0 and 1");
    return SLEET_OK;
}

/* Index of the first element that is NaN or infinite, or `count`. */
static uint64_t first_nonfinite(const float *p, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, p + i, 4);
        if ((bits & 0x7f800000u) == 0x7f800000u)
            return i;
    }
    return count;
}

static int check_finite(const sleet_set *set)
{
    for (uint32_t i = 0; i < set->count; i++) {
        const struct tensor *t = &set->tensors[i];
        const void *values = t->data ? t->data : set->map + t->offset;
        uint64_t at = first_nonfinite(values, t->count);
        if (at < t->count)
            return client_fail(set->ctx, SLEET_ENONFINITE,
                               "set %s, tensor %s, element %" PRIu64 " is NaN or infinite",
                               set->name, t->name, at);
    }
    return SLEET_OK;
}

/* Withdraw the open round, so that the daemon no longer reads the send buffers. */
static int withdraw(sleet_set *set, int64_t until_ns)
{
    char text[CLIENT_INPUT_MAX];
    set->open = set->closed = false;
    if (!set->running)
        return SLEET_OK;
    int error = client_call(set->ctx, until_ns, text, "cancel %d", set->handle);
    if (!error)
        set->running = false;
    return error;
}

int sleet_start(sleet_set *set, const sleet_round_options *options)
{
    char text[CLIENT_INPUT_MAX];
    sleet_round_options o;
    if (!set)
        return SLEET_EINVAL;
    sleet *ctx = set->ctx;
    int64_t begun = client_now();
    if (set->handle < 0)
        return client_fail(ctx, SLEET_ESTATE, "set %s is not registered", set->name);
    int error = resolve(ctx, options, &o);
    if (!error && o.exact && set->kind.estimator == SLEET_GIVERS)
        error = client_fail(ctx, SLEET_EINVAL, "set %s: an exact round asks for all that is missing, with estimator "
                            "givers that may be nothing", set->name);
    if (!error && o.twice > 0 && (o.exact || !kind_additive(&set->kind) || set->kind.estimator == SLEET_EXPECTED))
        error = client_fail(ctx, SLEET_EINVAL, "set %s: twice is for what is added to a model, not in exact rounds, and not with "
                            "estimator expected, which knows how much arrives that is sent once", set->name);
    int64_t patience = o.deadline_ns < CLIENT_REPLY_NS ? o.deadline_ns : CLIENT_REPLY_NS;
    if (!error)
        error = check_finite(set);
    if (!error)
        error = withdraw(set, begun + patience + CLIENT_STALL_NS);
    if (error)
        return error;
    for (uint32_t i = 0; i < set->count; i++)
        if (set->tensors[i].data && set->tensors[i].bytes)
            memcpy(set->map + set->tensors[i].offset, set->tensors[i].data, set->tensors[i].bytes);
    set->seq++;
    set->open = set->running = true;
    set->closed = false;
    set->deadline_ns = begun + o.deadline_ns;
    int64_t left = set->deadline_ns - client_now();
    error = client_call(ctx, begun + patience + CLIENT_STALL_NS, text,
                        "start %d %" PRIu64 " %" PRId64 " %.17g %.17g %" PRIu32 " %" PRIu32 " %.17g %" PRIu32 " %" PRIu32 " %.17g",
                        set->handle, set->seq, left > 0 ? left : 1, o.weight, o.least_coverage,
                        o.quorum, o.exact, o.keep, o.keep_auto, o.max_async, o.twice);
    if (error) {
        set->open = set->closed = false;
        set->running = error == SLEET_ESTALLED;
    }
    if (error == SLEET_ESCHEMA && set->schema[0])
        client_fail(ctx, error, "%s", set->schema);
    return error;
}

int sleet_poll(sleet_set *set)
{
    if (!set)
        return SLEET_EINVAL;
    if (!set->open)
        return client_fail(set->ctx, SLEET_ESTATE, "set %s has no round open", set->name);
    int error = set->closed ? SLEET_OK : client_pump(set->ctx, 0);
    if (set->closed)
        return SLEET_OK;
    return error ? error : SLEET_EAGAIN;
}

int sleet_wait(sleet_set *set, sleet_report *report)
{
    if (!set)
        return SLEET_EINVAL;
    sleet *ctx = set->ctx;
    if (!set->open)
        return client_fail(ctx, SLEET_ESTATE, "set %s has no round open", set->name);
    int64_t until = set->deadline_ns + CLIENT_STALL_NS;
    while (!set->closed) {
        bool over = client_now() >= until; /* what has arrived by now still counts */
        int error = client_pump(ctx, over ? 0 : until);
        if (set->closed)
            break;
        if (error || over) {
            set->open = false;
            return error ? error
                         : client_fail(ctx, SLEET_ESTALLED,
                                       "sleetd did not close a round of set %s in time", set->name);
        }
    }
    set->open = set->closed = false;
    if (set->round_error)
        return client_fail(ctx, set->round_error, "set %s: %s", set->name,
                           sleet_strerror(set->round_error));
    for (uint32_t i = 0; i < set->count; i++)
        if (set->tensors[i].data && set->tensors[i].bytes)
            memcpy(set->tensors[i].data, sleet_result_buffer(set, i), set->tensors[i].bytes);
    if (report)
        *report = set->report;
    return SLEET_OK;
}

int sleet_cancel(sleet_set *set)
{
    return set ? withdraw(set, client_now() + CLIENT_REPLY_NS) : SLEET_EINVAL;
}
