#include "codec/adatopk.h"
#include <math.h>

#define WEIGHT (1.0 / 2) /* of the newest round */
#define ENTRY_COST 0.75  /* bytes of an entry of topk, gap and bf16, over those of an f32 */
#define LEAST_RATIO 2.0  /* below it bf16 saves about as much, and rates differ by chance */

void adatopk_measured(struct adatopk *l, double rate)
{
    if (!(rate > 0) || isinf(rate))
        return;
    l->log_rate += (log(rate) - l->log_rate) * (l->rounds++ ? WEIGHT : 1);
}

double adatopk_rate(const struct adatopk *l)
{
    return l->rounds ? exp(l->log_rate) : 0;
}

double adatopk_ratio(const struct adatopk *l, double fastest, double most)
{
    double ratio = l->rounds ? fmin(ENTRY_COST * fastest / adatopk_rate(l), most) : 1;
    return ratio < LEAST_RATIO ? 1 : ratio;
}

uint32_t adatopk_keep(double ratio, uint32_t n)
{
    return ratio > 1 ? (uint32_t)ceil(n / ratio) : 0;
}
