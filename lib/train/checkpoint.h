/* checkpoint.h - a training run's state in one file, so that it can go on later.
 *
 * A file is written as PATH.tmp and renamed once it has reached the disk: at any time
 * PATH holds the old or the new state, whole.  Reading changes nothing
 * of the caller's until the file has proved good.  What is wrong is said in one
 * sentence that names the file and what to do.
 *
 * Format 2, little-endian: "SLEETCKP", version u32, settings bytes u32, parts u32, 0 u32, step u64,
 * drawn u64; bytes of each part u64; the settings without a NUL; the parts; XXH3-64 of all that. */
#ifndef TRAIN_CHECKPOINT_H
#define TRAIN_CHECKPOINT_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CHECKPOINT_ERROR_MAX 1024 /* bytes of an error sentence with its NUL */
#define CHECKPOINT_SETTINGS_MAX 4096
#define CHECKPOINT_PARTS_MAX 8

/* Some of the state, in the run's own layout. */
struct checkpoint_part {
    const char *name; /* in sentences; not in the file */
    void *data;       /* borrowed */
    size_t bytes;
    /* When reading, of any size: `data` and `bytes` are what is there, from malloc(), the caller's. */
    bool any;
};

struct checkpoint {
    const char *settings; /* lines "name = value\n"; to resume they must be equal */
    const char *may_differ; /* the beginning of a line that need not be equal; NULL: none */
    char differs[64];     /* that line, as it was written, where it is not; else "" */
    uint64_t step;        /* of the schedule, done */
    uint64_t drawn;       /* samples taken from the walk through the shard */
    struct checkpoint_part part[CHECKPOINT_PARTS_MAX];
    uint32_t parts;
};

/* Replace the file at `path`. */
bool checkpoint_write(const char *path, const struct checkpoint *,
                      char error[static CHECKPOINT_ERROR_MAX]);

/* Read the file at `path`.  All but `step` and `drawn` is given by the caller: settings and sizes
 * are compared, the parts overwritten. */
bool checkpoint_read(const char *path, struct checkpoint *,
                     char error[static CHECKPOINT_ERROR_MAX]);
#endif
