#include "train/data.h"

bool data_load(struct dataset *out, const struct data_kind *kind, const char *path, uint32_t limit,
               char error[static DATA_ERROR_MAX])
{
    *out = (struct dataset){.kind = kind};
    bool ok = kind->load(out, path, limit, error);
    if (!ok)
        *out = (struct dataset){0};
    return ok;
}

void data_free(struct dataset *d)
{
    if (d->kind)
        d->kind->free(d);
    *d = (struct dataset){0};
}

void data_sample(const struct dataset *d, enum data_part part, uint32_t i, float *x, uint8_t *target)
{
    d->kind->sample(d, part, i, x, target);
}

bool data_split(const struct dataset *d, struct shard_kind kind, uint32_t shards, uint64_t seed,
                struct shard_split *out)
{
    return shard_make(out, kind, d->group, d->count[DATA_TRAIN], d->groups, shards, seed);
}
