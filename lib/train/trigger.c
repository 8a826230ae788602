#include "train/trigger.h"

bool trigger_always(const struct trigger_options *o)
{
    return o->every == 1;
}

bool trigger_due(const struct trigger_options *o, uint64_t done)
{
    return done % o->every == 0;
}
