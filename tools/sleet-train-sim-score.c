#include "sleet-train-sim.h"
#include <math.h>
#include <string.h>

#define EVALUATIONS 5 /* at 80, 85 ... 100 % of the steps */

/* On the test samples.  Nodes whose results were repaired hold the same model to the bit. */
static double score_of(struct simulation *s, const float *values)
{
    size_t bytes = (s->learner.params + s->learner.statistics) * sizeof *values;
    if (!s->some_tested || memcmp(s->tested, values, bytes) != 0) {
        s->tested_score = learner_score(&s->learner, values);
        memcpy(s->tested, values, bytes);
        s->some_tested = true;
    }
    return s->tested_score;
}

double sim_averaged_score(struct simulation *s)
{
    for (size_t k = 0; k < s->learner.params + s->learner.statistics; k++) {
        double sum = 0;
        uint32_t n = 0;
        for (uint32_t i = 0; i < sim_honest(s); i++) {
            sum += s->kills.away[i] ? 0 : (double)s->node[i].values[k];
            n += !s->kills.away[i];
        }
        s->mean[k] = (float)(sum / n);
    }
    return score_of(s, s->mean);
}

bool sim_beside(const struct simulation *s)
{
    return s->learner.statistics && s->o->local_statistics;
}

/* Node i's model with the mean of all nodes' statistics, which averaged_score() left. */
static double mixed_score(struct simulation *s, uint32_t i)
{
    const struct learner *l = &s->learner;
    memcpy(s->mixed, s->node[i].values, l->params * sizeof(float));
    memcpy(s->mixed + l->params, s->mean + l->params, l->statistics * sizeof(float));
    return score_of(s, s->mixed);
}

void sim_evaluate(struct simulation *s)
{
    double averaged = sim_averaged_score(s);
    s->tally->averaged += averaged;
    for (uint32_t i = 0; i < sim_honest(s); i++) { /* one that is away has no model: it counts as their mean */
        s->tally->score[i] += s->kills.away[i] ? averaged : score_of(s, s->node[i].values);
        if (sim_beside(s))
            s->tally->mean_statistics[i] += mixed_score(s, i);
    }
    s->tally->evaluations++;
}

bool sim_evaluation_due(uint64_t step, uint64_t steps)
{
    for (uint64_t i = 0; i < EVALUATIONS; i++)
        if (step == steps * (80 + 5 * i) / 100)
            return true;
    return false;
}

double sim_worst(const struct simulation *s, const double *sum)
{
    double w = sum[0];
    for (uint32_t i = 1; i < sim_honest(s); i++)
        w = s->print.data->less_is_better ? fmax(w, sum[i]) : fmin(w, sum[i]);
    return w / s->tally->evaluations;
}
