/* sleet-train-settle.c - the options as a whole: what is not given, and what does not go together. */
#include "sleet-train.h"
#include "strategy/strategy.h"

/* What a model is trained with where the user says nothing. */
struct recipe {
    uint32_t hidden;
    const struct optimizer_kind *optimizer;
    double rate, clip_norm; /* rate 0: the optimizer's usual one */
    uint64_t warm_up;
};

static const struct recipe for_images = {.hidden = 64, .optimizer = &optimizer_sgd};
static const struct recipe for_scale_invariant = {.hidden = 64, .optimizer = &optimizer_sgd_si};
static const struct recipe for_text = {
    .hidden = 96, .optimizer = &optimizer_adamw, .rate = 0.003, .clip_norm = 1, .warm_up = 100};

static void fill_in(struct train_options *o)
{
    const struct recipe *r = o->model->text              ? &for_text
                             : o->model == &model_mlp_si ? &for_scale_invariant
                                                         : &for_images;
    struct optimizer *p = &o->optimizer;
    o->data_kind = o->model->text ? &data_text : &data_images;
    if (o->hidden_count == UINT32_MAX) {
        o->hidden_count = 1;
        o->hidden[0] = r->hidden;
    }
    if (!p->kind)
        p->kind = r->optimizer;
    if (p->rate < 0)
        p->rate = p->kind == r->optimizer && r->rate > 0 ? r->rate : p->kind->rate;
    if (p->weight_decay < 0)
        p->weight_decay = p->kind->weight_decay;
    if (p->clip_norm < 0)
        p->clip_norm = r->clip_norm;
    if (p->warm_up == UINT64_MAX)
        p->warm_up = r->warm_up;
    if (!o->batch)
        o->batch = o->data_kind->batch;
    if (!o->epochs && !o->steps)
        o->epochs = 2;
}

/* The optimizer's own numbers; NULL, or which it does not have. */
static const char *fill_in_moments(struct optimizer *p)
{
    bool adam = p->kind == &optimizer_adamw;
    if (p->momentum >= 0 && p->kind != &optimizer_sgd && p->kind != &optimizer_nesterov)
        return "--momentum is for --optimizer sgd and nesterov";
    if (!adam && (p->beta1 >= 0 || p->beta2 >= 0))
        return "--beta1 and --beta2 are for --optimizer adamw";
    p->momentum = p->momentum < 0 ? 0.9 : p->momentum;
    p->beta1 = p->beta1 < 0 ? 0.9 : p->beta1;
    p->beta2 = p->beta2 < 0 ? 0.999 : p->beta2;
    return NULL;
}

/* What goes on between a trainer and its daemon; NULL, or what is not. */
static const char *fill_in_daemon(struct train_options *o)
{
    bool state = o->publish_every != UINT32_MAX || o->state_wait >= 0;
    if (o->sim && o->shard_count)
        return "--shard is of one node: --sim has all of them in this process";
    if ((o->sim || !o->average) && (o->control || o->min_nodes || o->min_wait >= 0 || state))
        return "--control, --min-nodes, --min-wait, --publish-every and --state-wait are for a daemon: with --sim and --average none there is none";
    if (state && average_owned(o->average))
        return "--publish-every and --state-wait are not for --average owner and --outer: a node that joins has all from the owners";
    o->min_wait = o->min_wait < 0 ? 30 : o->min_wait;
    o->publish_every = o->publish_every == UINT32_MAX ? 20 : o->publish_every;
    o->state_wait = o->state_wait < 0 ? 30 : o->state_wait;
    return NULL;
}

/* When a node averages; NULL, or what does not go together. */
static const char *fill_in_trigger(struct train_options *o)
{
    struct trigger_options *t = &o->trigger;
    t->kind = t->kind ? t->kind : &trigger_every;
    if (t->every && t->kind != &trigger_every)
        return "--every N is itself a trigger: give it, --every auto or --trigger selsync";
    if (t->kind != &trigger_selsync && (t->delta >= 0 || t->window || t->most != UINT64_MAX))
        return "--delta, --window and --max-local need --trigger selsync";
    t->every = t->every ? t->every : 1;
    t->delta = t->delta < 0 ? 0.3 : t->delta;
    t->window = t->window ? t->window : 25;
    t->most = t->most == UINT64_MAX ? 500 : t->most;
    if (!trigger_always(t) && o->average != AVERAGE_MODEL)
        return "--every and --trigger are for --average model: a gradient is of a step that all take";
    if (t->kind->joins && o->outer.kind)
        return "--outer takes --every N: its rounds are of all nodes";
    if (t->kind == &trigger_auto && o->sim && o->step_time <= 0)
        return "--every auto in a simulation needs --step-time: a simulated step takes no time";
    return NULL;
}

/* Who trains what; NULL, or what does not go together. */
static const char *fill_in_slices(struct train_options *o)
{
    uint32_t nodes = o->sim ? o->sim : o->shard_count;
    if (!o->slices)
        return o->slice_members ? "--slice-members needs --slices" : NULL;
    o->slice_members = o->slice_members ? o->slice_members : 2;
    if (o->average != AVERAGE_OUTER || (o->kind.estimator && o->kind.estimator != SLEET_GIVERS))
        return "--slices is for --outer nesterov, with the mean over those who train: estimator givers";
    if (o->slice_members > nodes || (uint64_t)o->slices * o->slice_members < nodes)
        return "--slices times --slice-members is less than there are nodes (some would train nothing), or a slice has more members than that";
    o->kind.estimator = SLEET_GIVERS;
    return NULL;
}

/* What the set is; NULL, or what does not go together. */
static const char *fill_in_kind(struct train_options *o)
{
    if (o->ef && (o->average != AVERAGE_GRADIENT || !optimizer_linear(&o->optimizer) ||
                  o->optimizer.weight_decay > 0))
        return "--ef is for --average gradient and an update that is linear: sgd without --clip-norm and --weight-decay";
    if (o->ef && !o->kind.estimator)
        o->kind.estimator = SLEET_CARRY;
    if (o->ef && (o->kind.estimator != SLEET_CARRY || o->forget))
        return "--ef carries over what is missing: it goes with --estimator carry";
    if (o->ef_alpha >= 0 && o->ef != EF_AHEAD)
        return "--ef-alpha is how far --ef step-ahead goes: it needs that";
    if (!o->ef && o->ef_average)
        return "--ef-average needs --ef";
    o->ef_alpha = o->ef_alpha < 0 ? 1 : o->ef_alpha;
    o->kind.spread = (uint8_t)o->spread;
    bool gradient = !average_local(o->average);
    o->kind.exchange = average_owned(o->average) ? SLEET_REDUCE_SCATTER : SLEET_ALL_REDUCE;
    o->local_statistics |= average_owned(o->average);
    o->kind.payload = gradient ? SLEET_GRADIENT : o->average == AVERAGE_OUTER ? SLEET_PSEUDO_GRADIENT : SLEET_MODEL;
    o->kind.update = gradient && !optimizer_linear(&o->optimizer) && !o->forget ? SLEET_NONLINEAR : SLEET_LINEAR;
    struct set_kind k = kind_resolved(o->kind);
    const char *wrong = kind_refuse(&k);
    if (o->twice > 0 && (!kind_additive(&k) || k.estimator == SLEET_EXPECTED))
        return "--twice is for gradients (and --outer), not with --estimator expected, the default of --average owner";
    return wrong || !o->codec ? wrong : kind_refuse_codec(&k, SLEET_F32, (int)o->codec);
}

/* What --quorum and --straggle do not go with. */
static const char *refuse_quorum(const struct train_options *o)
{
    bool late = o->quorum != SLEET_QUORUM_ALL, owned = average_owned(o->average);
    if (late && (owned || !o->average))
        return "--quorum is for --average model and gradient without --outer: where owners step what is late would be lost";
    if (late && !average_local(o->average) && o->kind.estimator != SLEET_CARRY)
        return "--quorum would lose late gradients: it goes with --estimator carry";
    if (late && !trigger_always(&o->trigger))
        return "--quorum and --trigger or --every both say when not to wait for others: give one";
    if (late && o->kind.strategy && strategy_by_id((int)o->kind.strategy)->edges)
        return "--quorum is kept by owners, and that --strategy has none";
    if (o->max_async && !late)
        return "--max-async bounds what --quorum leaves out: give one";
    if (o->straggle > 0 && (o->sim < 2 || owned || !o->average || !trigger_always(&o->trigger)))
        return "--straggle is for --sim 2 or more with --average model or gradient in each step";
    if (o->straggle > 0 && (o->ef_average || o->partition || o->lie != 1))
        return "--straggle lets nodes go at their own pace: --ef-average, --partition and --lie keep them in lock step";
    if (o->straggle > 0 && (o->batches.on || o->batches.slows))
        return "--straggle says how long steps take, as --slow does, and --batch-control follows that one: give one";
    return NULL;
}

/* What --kill and --blocking do not go with. */
static const char *refuse_kill(const struct train_options *o)
{
    if ((o->kill > 0 || o->blocking) && (o->sim < 2 || o->average != AVERAGE_MODEL || o->straggle > 0 || o->partition || o->lie != 1))
        return "--kill and --blocking are for --sim 2 or more in lock step with --average model, without --straggle, --partition and --lie";
    if ((o->kill > 0 || o->blocking) && (o->batches.on || o->checkpoint || o->dies))
        return "--kill and --blocking do without --batch-control, --checkpoint and --dies";
    if (o->kill > 0 && (o->down >= o->kill || !(o->step_time > 0)))
        return "--kill needs --step-time, which lets time pass, and a node that is back before the next one dies";
    if (o->blocking && (o->quorum || (o->kind.strategy && o->kind.strategy != SLEET_RPS)))
        return "--blocking is all-reduce over all nodes: it goes without --strategy and --quorum";
    return NULL;
}

/* What --partition does not go with. */
static const char *refuse_partition(const struct train_options *o)
{
    if (o->partition && (o->model != &model_mlp || o->average != AVERAGE_MODEL || o->outer.kind))
        return "--partition is for --model mlp and --average model without --outer: others have no parts";
    if (o->partition && o->partition >= o->epochs)
        return "--partition is how many of --epochs are in parts: give fewer, so that the whole learns too";
    if (o->absent && (!o->partition || o->absent >= o->sim))
        return "--absent needs --partition and --sim with more nodes: somebody has to merge";
    return NULL;
}

/* What says how nodes average does not go with nodes that do not, or not that way. */
static const char *refuse_idle(const struct train_options *o)
{
    if (!o->average && (o->kind.strategy || o->kind.estimator || o->codec || o->spread || o->deadline > 0 || o->clip > 0))
        return "--strategy, --estimator, --codec, --spread, --deadline and --clip say how nodes average: not with --average none";
    if (o->clip > 0 && o->kind.strategy && strategy_by_id((int)o->kind.strategy)->edges)
        return "--clip is what owners do, and that --strategy has none";
    if (o->burst > 0 && !(o->loss > 0))
        return "--burst says how --loss comes: give both";
    return NULL;
}

const char *train_options_settle(struct train_options *o)
{
    if (o->batch && o->batches.control.global)
        return "--batch is a node's part of --global-batch: give one";
    if (o->epochs && o->steps)
        return "--epochs and --steps both say how long to train: give one";
    if (o->local_statistics && o->model != &model_cnn_bn)
        return "--bn-stats is for --model cnn-bn: no other keeps statistics";
    fill_in(o);
    const char *wrong = fill_in_moments(&o->optimizer);
    if (!wrong)
        wrong = refuse_idle(o);
    if (!wrong)
        wrong = edges_settle(&o->edges, &o->kind, o->sim);
    if (wrong)
        return wrong;
    if (o->refresh && (o->average != AVERAGE_MODEL || o->outer.kind))
        return "--refresh-momentum is for --average model without --outer: others average no moments, or all";
    if ((o->refresh || o->local_moments) && !o->optimizer.kind->moments)
        return "--refresh-momentum and --local-momentum are of moments: this --optimizer has none";
    if (o->outer.kind && o->average != AVERAGE_MODEL)
        return "--outer is for --average model: it takes the way of local steps";
    if (!o->outer.kind && (o->outer.rate >= 0 || o->outer.momentum >= 0))
        return "--outer-lr and --outer-momentum need --outer nesterov";
    if (o->local_moments && (o->average != AVERAGE_MODEL || o->outer.kind || o->refresh))
        return "--local-momentum is for --average model without --outer and --refresh-momentum: others average no moments, or all";
    wrong = fill_in_trigger(o);
    if (wrong)
        return wrong;
    wrong = refuse_partition(o);
    if (wrong)
        return wrong;
    if (o->outer.kind) { /* the published rates of DiLoCo */
        o->average = AVERAGE_OUTER;
        o->outer.rate = o->outer.rate < 0 ? 0.7 : o->outer.rate;
        o->outer.momentum = o->outer.momentum < 0 ? 0.9 : o->outer.momentum;
        o->outer.schedule = SCHEDULE_CONSTANT;
    }
    wrong = fill_in_daemon(o);
    if (!wrong)
        wrong = fill_in_slices(o);
    if (!wrong)
        wrong = batch_settle(o);
    if (!wrong)
        wrong = fill_in_kind(o);
    if (wrong)
        return wrong;
    if ((o->keep > 0 || o->keep_auto) && o->codec != SLEET_CODEC_TOPK)
        return "--keep says how much of a gradient topk leaves: it needs --codec topk";
    if (o->sites.n && (!o->sim || o->sim % o->sites.n))
        return "--sites needs --sim with the same number of nodes in each site";
    wrong = refuse_quorum(o);
    wrong = wrong ? wrong : refuse_kill(o);
    if (wrong)
        return wrong;
    if (!o->sim && (o->loss > 0 || o->burst > 0 || o->no_repair || o->clip > 0 || o->lie != 1))
        return "--loss, --burst, --no-repair, --clip and --lie need --sim";
    if (o->dies && (o->sim < 2 || o->partition || o->straggle > 0 || o->lie != 1 || o->sites.n || !(o->step_time > 0)))
        return "--dies needs --sim 2 or more and --step-time (time for the others to find out): not with --partition, --straggle, --lie and --sites";
    if (o->lie != 1 && o->sim < 2)
        return "--lie needs an honest node beside the liar: --sim 2 or more";
    if (!o->checkpoint && (o->resume || o->checkpoint_every || o->stop_at))
        return "--resume, --checkpoint-every and --stop-at need --checkpoint FILE";
    if (o->checkpoint && o->sim > 1)
        return "--checkpoint keeps one node, not a simulated network: use --sim 1";
    if (o->burst > 0 && o->loss >= o->burst / (o->burst + 1))
        return "--loss is too high for bursts of this length";
    return NULL;
}
