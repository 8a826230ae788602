#include "sleet-train-print.h"
#include <stdarg.h>
#include <time.h>
#include <unistd.h>

#define BAR_CELLS 30

double train_clock(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

void tally_round(struct train_tally *t, double coverage, uint64_t skipped)
{
    t->skipped += (double)skipped;
    t->coverage_sum += coverage;
    if (t->rounds++ == 0 || coverage < t->least_coverage)
        t->least_coverage = coverage;
}

static void end_bar(struct train_print *p)
{
    if (p->bar_open)
        fputc('\n', stderr);
    p->bar_open = false;
}

int train_fail(struct train_print *p, const char *format, ...)
{
    end_bar(p);
    va_list args;
    va_start(args, format);
    fputs("sleet-train: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    return EXIT_FAILED;
}

int train_diverged(struct train_print *p, uint64_t step, double rate)
{
    return train_fail(p,
                      "the loss is no longer a number at step %llu (learning rate %.4g); "
                      "try a smaller --lr",
                      (unsigned long long)step, rate);
}

struct train_print train_print_of(const struct train_options *o, const struct learner *l)
{
    return (struct train_print){.json = o->json,
                                .bar = !o->json && isatty(STDERR_FILENO),
                                .steps = l->optimizer.steps,
                                .steps_per_epoch = l->steps_per_epoch,
                                .data = l->data->kind};
}

void train_print_settings(const struct train_print *p, const struct train_options *o,
                          const struct learner *l, uint32_t nodes)
{
    FILE *to = p->json ? stderr : stdout;
    const struct optimizer *q = &o->optimizer;
    char strategy[STRATEGY_WORD];
    fprintf(to,
            "sleet-train: %s (%zu parameters), batch %u, %s, lr %g %s%s, ", l->title,
            model_params(l->net), o->batch, q->kind->name, q->rate, schedule_text(q->schedule),
            q->schedule == SCHEDULE_CONSTANT ? "" : " to 0");
    if (q->kind == &optimizer_sgd || q->kind == &optimizer_nesterov)
        fprintf(to, "momentum %g, ", q->momentum);
    if (q->clip_norm > 0)
        fprintf(to, "clipped to %g, ", q->clip_norm);
    if (o->loss_scale != 1)
        fprintf(to, "loss times %g, ", o->loss_scale);
    if (o->init_scale != 1)
        fprintf(to, "started from %g times the parameters, ", o->init_scale);
    fprintf(to,
            "weight decay %g, %llu steps, %llu an epoch, %u shards %s, seed %llu, averaging %s",
            q->weight_decay, (unsigned long long)p->steps, (unsigned long long)p->steps_per_epoch,
            nodes, o->shards_text, (unsigned long long)o->seed, average_text(o->average));
    if (o->average == AVERAGE_OUTER)
        fprintf(to, " of %s, rate %g, momentum %g,", o->outer.kind->name, o->outer.rate, o->outer.momentum);
    if (o->trigger.kind == &trigger_selsync)
        fprintf(to, " by selsync, delta %g, window %u", o->trigger.delta, o->trigger.window);
    else if (o->trigger.kind == &trigger_auto)
        fprintf(to, " as often as takes a tenth of the time");
    else if (o->average && !trigger_always(&o->trigger))
        fprintf(to, " every %llu steps", (unsigned long long)o->trigger.every);
    if (o->kind.strategy)
        fprintf(to, " by strategy %s", kind_strategy_word(&o->kind, strategy));
    if (o->slices)
        fprintf(to, ", %u slices of %u nodes", o->slices, o->slice_members);
    if (o->spread > 1)
        fprintf(to, ", one part in %u a round", o->spread);
    if (o->average && o->codec)
        fprintf(to, " as %s", codec_text((int)o->codec));
    if (o->kind.estimator)
        fprintf(to, ", estimator %s", o->forget ? "nodes" : estimator_text((int)o->kind.estimator));
    if (o->twice > 0)
        fprintf(to, ", %g of it twice", o->twice);
    if (o->ef)
        fprintf(to, ", error feedback %s", ef_text(o->ef));
    if (o->batches.on)
        fprintf(to, ", %u samples of a step of all by step times", o->batches.control.global);
    if (o->partition)
        fprintf(to, ", %u epochs in parts", o->partition);
    if (o->quorum == SLEET_QUORUM_MAJORITY)
        fprintf(to, ", quorum majority");
    else if (o->quorum)
        fprintf(to, ", quorum %u", o->quorum);
    if (o->uneven)
        fprintf(to, ", steps of 0 to %g ms", 1e3 * o->straggle * (o->step_time > 0 ? o->step_time : STEP_TIME));
    else if (o->straggle > 0)
        fprintf(to, ", a straggler's step %g times as long", o->straggle);
    if (o->blocking)
        fprintf(to, ", each step waits for all");
    if (o->kill > 0)
        fprintf(to, ", every %g s a node dies for %g s", o->kill, o->down);
    if (o->sim)
        fprintf(to, ", simulated loss %g%s%s", o->loss, o->burst > 0 ? " in bursts" : "",
                o->no_repair ? ", no repair" : "");
    fputc('\n', to);
    fflush(to);
}

static void print_bar(struct train_print *p, const struct train_line *l)
{
    uint64_t in_epoch = l->step - (l->epoch - 1) * p->steps_per_epoch;
    uint64_t full = in_epoch * BAR_CELLS / p->steps_per_epoch;
    char cells[BAR_CELLS + 1];
    for (uint64_t i = 0; i < BAR_CELLS; i++)
        cells[i] = i < full ? '#' : '.';
    cells[BAR_CELLS] = 0;
    fprintf(stderr, "\repoch %u [%s] %llu/%llu loss %.4f", l->epoch, cells,
            (unsigned long long)l->step, (unsigned long long)p->steps, l->loss);
    if (l->coverage >= 0)
        fprintf(stderr, " coverage %5.1f %%", 100 * l->coverage);
    fputs("\033[K", stderr);
    p->bar_open = true;
}

/* The fields that step and epoch lines share. */
static void print_fields(const struct train_print *p, const char *event, const struct train_line *l)
{
    printf("{\"event\":\"%s\",\"epoch\":%u,\"step\":%llu,\"round\":%llu,\"loss\":%.6g,"
           "\"lr\":%.6g,\"seconds\":%.3f",
           event, l->epoch, (unsigned long long)l->step, (unsigned long long)l->round, l->loss,
           l->rate, l->seconds);
    if (l->coverage >= 0)
        printf(",\"group\":%u,\"coverage\":%.6f,\"wait_s\":%.4f", l->group, l->coverage, l->wait);
    if (l->score >= 0)
        printf(",\"test_%s\":%.4f", p->data->metric, l->score);
    puts("}");
    fflush(stdout);
}

void train_print_step(struct train_print *p, const struct train_line *l)
{
    if (p->json)
        print_fields(p, "step", l);
    else if (p->bar)
        print_bar(p, l);
}

void train_print_epoch(struct train_print *p, const struct train_line *l)
{
    if (p->json) {
        print_fields(p, "epoch", l);
        return;
    }
    end_bar(p);
    printf("epoch %u: step %llu, loss %.4f, test %s %.*f%s", l->epoch, (unsigned long long)l->step,
           l->loss, p->data->text, p->data->digits, p->data->scale * l->score, p->data->unit);
    if (l->coverage >= 0)
        printf(", coverage %.1f %%", 100 * l->coverage);
    printf(", %.1f s\n", l->seconds);
    fflush(stdout);
}

void train_print_parked(struct train_print *p, uint64_t step, double seconds)
{
    end_bar(p);
    if (p->json && seconds < 0)
        printf("{\"event\":\"parked\",\"step\":%llu}\n", (unsigned long long)step);
    else if (p->json)
        printf("{\"event\":\"unparked\",\"step\":%llu,\"seconds\":%.3f}\n",
               (unsigned long long)step, seconds);
    else if (seconds < 0)
        fprintf(stderr, "sleet-train: cut off from the job at step %llu; waiting for the others "
                        "(sleetctl status says why, sleetctl resume goes on without them)\n",
                (unsigned long long)step);
    else
        fprintf(stderr, "sleet-train: going on after %.1f s\n", seconds);
    fflush(stdout);
}

void train_print_batch(struct train_print *p, uint64_t step, const struct train_batch *b)
{
    if (!b->nodes || (b->now == p->batch && b->nodes == p->nodes && b->global == p->global))
        return;
    p->batch = b->now;
    p->nodes = b->nodes;
    p->global = b->global;
    end_bar(p);
    if (p->json)
        printf("{\"event\":\"batches\",\"step\":%llu,\"nodes\":%u,\"batch\":%u,\"global_batch\":%u,\"batch_rate\":%.6g}\n",
               (unsigned long long)step, b->nodes, b->now, b->global, b->rate);
    else
        printf("step %llu: batch %u of %u samples of a step of %u nodes, learning rate times %.4g\n",
               (unsigned long long)step, b->now, b->global, b->nodes, b->rate);
    fflush(stdout);
}

void train_print_every(struct train_print *p, uint64_t step, const struct trigger *t)
{
    if (t->every <= p->every && t->every >= p->every)
        return;
    p->every = t->every;
    end_bar(p);
    if (p->json)
        printf("{\"event\":\"every\",\"step\":%llu,\"every\":%.0f,\"step_s\":%.6f,\"round_s\":%.6f}\n",
               (unsigned long long)step, t->every, t->step_s, t->round_s);
    else
        printf("step %llu: averaging every %.0f steps; a step takes %.4f s here, a round %.4f s\n",
               (unsigned long long)step, t->every, t->step_s, t->round_s);
    fflush(stdout);
}

void train_print_stopped(struct train_print *p, const struct train_options *o, uint64_t step, const struct train_batch *b)
{
    end_bar(p);
    if (!p->json) {
        printf("stopped behind step %llu of %llu; --resume goes on from %s\n", (unsigned long long)step,
               (unsigned long long)p->steps, o->checkpoint);
        return;
    }
    printf("{\"event\":\"stopped\",\"step\":%llu", (unsigned long long)step);
    if (b->options->on)
        printf(",\"batch\":%u,\"batch_rate\":%g,\"tables\":%llu", b->now, b->rate, (unsigned long long)b->tables);
    puts("}");
}

/* Compute times of steps, and what the batches were. */
static void print_batches(const struct train_done *d)
{
    const struct train_batch *b = d->batch;
    printf(",\"step_s\":%.6f", d->timed > 0 ? d->slowest_s / d->timed : 0);
    if (b->options->on)
        printf(",\"batch\":%u,\"batch_rate\":%g,\"tables\":%llu,\"tables_missed\":%llu,\"spread_half\":%.4f,"
               "\"spread\":%.4f,\"global_batch_least\":%u,\"global_batch_most\":%u",
               b->now, b->rate, (unsigned long long)b->tables, (unsigned long long)b->missed, b->spread[0], b->spread[1],
               b->sum_least, b->sum_most);
}

/* How much is kept, and on a real node how much is resident. */
static void print_memory(const struct train_memory *m, bool sim, bool json)
{
    if (json) {
        printf(",\"parameter_bytes\":%.0f,\"moment_bytes\":%.0f", m->parameters, m->moments);
        if (!sim)
            printf(",\"own_bytes\":%.0f,\"shared_bytes\":%.0f", m->own, m->shared);
        return;
    }
    printf("; %.2f MB of parameters, %.2f MB of moments", m->parameters * 1e-6, m->moments * 1e-6);
    if (!sim)
        printf(", %.1f MB in memory and %.1f MB shared with sleetd", m->own * 1e-6, m->shared * 1e-6);
}

static void print_done_json(const struct train_print *p, const struct train_done *d,
                            uint32_t sim_nodes)
{
    const struct train_tally *t = &d->tally;
    const char *metric = p->data->metric;
    printf("{\"event\":\"done\",\"steps\":%llu,\"test_%s\":%.4f,\"averaged_%s\":%.4f,\"seconds\":%.3f",
           (unsigned long long)t->steps, metric, d->score, metric, d->averaged_score, d->seconds);
    if (t->rounds > 0)
        printf(",\"rounds\":%.0f,\"coverage\":%.6f,\"least_coverage\":%.6f,\"longest_wait_s\":%.4f",
               sim_nodes ? t->rounds / sim_nodes : t->rounds, t->coverage_sum / t->rounds, t->least_coverage,
               t->longest_wait);
    if (d->pace_ms > 0)
        printf(",\"round_ms\":%.2f,\"contributors\":%.3f", d->pace_ms, d->contributors);
    if (sim_nodes)
        printf(",\"sent_bytes\":%.0f", d->bytes);
    if (d->waits > 0)
        printf(",\"mean_wait_s\":%.4f", d->wait_sum / d->waits);
    if (d->virtual_s > 0)
        printf(",\"virtual_s\":%.3f,\"kills\":%u", d->virtual_s, d->kills);
    if (sim_nodes && d->across >= 0)
        printf(",\"across_bytes\":%.0f", d->across);
    if (sim_nodes && d->keep_across >= 0)
        printf(",\"keep_inside\":%.4f,\"keep_across\":%.4f", d->keep_inside, d->keep_across);
    printf(",\"rounds_skipped\":%llu,\"rounds_stalled\":%llu", (unsigned long long)t->skipped,
           (unsigned long long)t->stalled);
    if (sim_nodes)
        printf(",\"nodes\":%u,\"final_%s\":%.4f,\"final_loss\":%.6g", sim_nodes, metric, d->final_score, d->final_loss);
    if (d->batch->options->on || d->batch->options->slows)
        print_batches(d);
    if (d->backward_s > 0)
        printf(",\"backward_ms\":%.4f", d->backward_s * 1e3);
    if (d->sliced)
        printf(",\"rounds_still\":%u,\"rounds_short\":%u", d->still, d->slices_short);
    if (t->behind > 0)
        printf(",\"steps_not_taken\":%llu", (unsigned long long)t->behind);
    if (sim_nodes && d->mean_statistics >= 0)
        printf(",\"mean_statistics_%s\":%.4f", metric, d->mean_statistics);
    print_memory(&d->memory, sim_nodes > 0, true);
    puts("}");
    fflush(stdout);
}

void train_print_done(struct train_print *p, const struct train_done *d, uint32_t sim_nodes)
{
    const struct train_tally *t = &d->tally;
    if (p->json) {
        print_done_json(p, d, sim_nodes);
        return;
    }
    end_bar(p);
    const struct data_kind *k = p->data;
    printf("done: %llu steps in %.1f s; test %s %s %.*f%s, averaged model %.*f%s",
           (unsigned long long)t->steps, d->seconds, k->text, sim_nodes ? "worst node" : "this node",
           k->digits, k->scale * d->score, k->unit, k->digits, k->scale * d->averaged_score, k->unit);
    if (sim_nodes && d->mean_statistics >= 0)
        printf(", worst node with the mean of all statistics %.*f%s", k->digits,
               k->scale * d->mean_statistics, k->unit);
    if (sim_nodes)
        printf(" (mean of the last 5), at the end %.*f%s", k->digits, k->scale * d->final_score, k->unit);
    if (t->rounds > 0)
        printf("; %.0f rounds, coverage %.2f %% (least %.2f %%), longest wait %.3f s",
               sim_nodes ? t->rounds / sim_nodes : t->rounds, 100 * t->coverage_sum / t->rounds, 100 * t->least_coverage, t->longest_wait);
    if (d->pace_ms > 0)
        printf("; %.1f virtual ms a round, of %.2f contributors", d->pace_ms, d->contributors);
    if (sim_nodes)
        printf("; %.1f MB sent by a node", d->bytes * 1e-6);
    if (d->virtual_s > 0)
        printf("; %.1f virtual s, in which %u nodes died", d->virtual_s, d->kills);
    if (sim_nodes && d->across >= 0)
        printf(", %.2f MB to other sites", d->across * 1e-6);
    if (sim_nodes && d->keep_across >= 0)
        printf(", at the end %.3g %% of a gradient across and %.3g %% inside", 100 * d->keep_across, 100 * d->keep_inside);
    if (d->waits > 0)
        printf("; a round takes %.3f s", d->wait_sum / d->waits);
    if (t->skipped > 0 || t->stalled > 0)
        printf("; %llu rounds missed, %llu without an answer", (unsigned long long)t->skipped,
               (unsigned long long)t->stalled);
    if (t->behind > 0)
        printf("; %llu steps not taken", (unsigned long long)t->behind);
    print_memory(&d->memory, sim_nodes > 0, false);
    putchar('\n');
    fflush(stdout);
}
