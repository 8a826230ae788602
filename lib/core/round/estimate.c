#include "round/estimate.h"
#include "tensor/reduce.h"
#include <stddef.h>

static double one(double q)
{
    (void)q;
    return 1;
}

static double inverse(double q)
{
    return 1 / q;
}

static double of_present(double present, double live, double all)
{
    (void)live, (void)all;
    return present;
}

static double of_live(double present, double live, double all)
{
    (void)present, (void)all;
    return live;
}

static double of_all(double present, double live, double all)
{
    (void)present, (void)live;
    return all;
}

static const struct estimator estimators[] = {
    {SLEET_RATIO, "ratio", false, one, of_present},
    {SLEET_EXPECTED, "expected", true, inverse, of_live},
    {SLEET_CARRY, "carry", true, one, of_all},
    {SLEET_GIVERS, "givers", false, one, of_present},
};

/* SLEET_ESTIMATOR_MAP is checked where a layout is made, so every set has one. */
const struct estimator *estimator_by_id(uint8_t id)
{
    for (size_t i = 0; i < sizeof estimators / sizeof estimators[0]; i++)
        if (estimators[i].id == id)
            return &estimators[i];
    return NULL;
}

const struct estimator *estimator_for(const struct layout *l, uint32_t tensor)
{
    uint8_t id = layout_additive(l, tensor) ? (uint8_t)l->kind.estimator : SLEET_RATIO;
    return estimator_by_id(id);
}

bool estimator_takes(const struct layout *l, uint32_t tensor, const float *x, uint32_t n)
{
    bool givers = layout_additive(l, tensor) && l->kind.estimator == SLEET_GIVERS;
    return !givers || !reduce_zero(x, n);
}
