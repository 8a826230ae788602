/* images.c - labelled images as a dataset. */
#include "train/data.h"
#include <xxhash.h>

#define PLACE "/usr/share/datasets/fashion-mnist"

static bool images_load(struct dataset *d, const char *path, uint32_t limit,
                        char error[static DATA_ERROR_MAX])
{
    struct idx_dataset *images = &d->images;
    if (!idx_load(images, path ? path : PLACE, limit, error))
        return false;
    d->count[DATA_TRAIN] = images->train.count;
    d->count[DATA_TEST] = images->test.count;
    d->rows = images->train.rows;
    d->columns = images->train.columns;
    d->targets = 1;
    d->classes = d->groups = IDX_CLASSES;
    d->group = images->train.label;
    return true;
}

static void images_free(struct dataset *d)
{
    idx_free(&d->images);
}

static void images_sample(const struct dataset *d, enum data_part part, uint32_t i, float *x,
                          uint8_t *target)
{
    const struct idx_samples *s = part == DATA_TRAIN ? &d->images.train : &d->images.test;
    idx_image(s, i, x);
    *target = s->label[i];
}

static uint64_t images_checksum(const struct dataset *d)
{
    const struct idx_samples *s = &d->images.train;
    return XXH3_64bits(s->pixel, (size_t)s->count * s->features) ^ XXH3_64bits(s->label, s->count);
}

static double accuracy(double loss, uint64_t right, uint64_t count)
{
    (void)loss;
    return (double)right / (double)count;
}

const struct data_kind data_images = {.metric = "accuracy",
                                      .text = "accuracy",
                                      .unit = " %",
                                      .scale = 100,
                                      .digits = 2,
                                      .batch = 64,
                                      .test_batch = 256,
                                      .load = images_load,
                                      .free = images_free,
                                      .sample = images_sample,
                                      .checksum = images_checksum,
                                      .score = accuracy};
