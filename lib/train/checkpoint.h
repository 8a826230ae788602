/* checkpoint.h - a training run's state in one file, so that it can go on later.
 *
 * A file is written as PATH.tmp and renamed once it has reached the disk: at any time
 * PATH holds the old or the new state, whole.  Reading changes nothing
 * of the caller's until the file has proved good.  What is wrong is said in one
 * sentence that names the file and what to do.
 *
 * Format 1, little-endian: "SLEETCKP", version u32, settings bytes u32, numbers u32,
 * vectors u32, elements of a vector u64, step u64, drawn u64; the settings without a
 * NUL; the numbers, f64; the vectors, f32; XXH3-64 of all that. */
#ifndef TRAIN_CHECKPOINT_H
#define TRAIN_CHECKPOINT_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CHECKPOINT_ERROR_MAX 1024 /* bytes of an error sentence with its NUL */
#define CHECKPOINT_SETTINGS_MAX 4096
#define CHECKPOINT_VECTORS_MAX 4

struct checkpoint {
    const char *settings; /* lines "name = value\n"; to resume they must be equal */
    const char *may_differ; /* the beginning of a line that need not be equal; NULL: none */
    char differs[64];     /* that line, as it was written, where it is not; else "" */
    uint64_t step;        /* of the schedule, done */
    uint64_t drawn;       /* samples taken from the walk through the shard */
    double *number;       /* sums and counts kept over the run */
    uint32_t numbers;
    float *vector[CHECKPOINT_VECTORS_MAX]; /* parameters, momentum; borrowed */
    uint32_t vectors;
    size_t elements; /* of each vector */
};

/* Replace the file at `path`. */
bool checkpoint_write(const char *path, const struct checkpoint *,
                      char error[static CHECKPOINT_ERROR_MAX]);

/* Read the file at `path`.  All but `step` and `drawn` is given by the caller: settings and
 * counts are compared, numbers and vectors overwritten. */
bool checkpoint_read(const char *path, struct checkpoint *,
                     char error[static CHECKPOINT_ERROR_MAX]);
#endif
