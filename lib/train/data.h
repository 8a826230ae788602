/* data.h - what a model learns, behind one interface: labelled images or a text.
 *
 * A dataset has a part to train on and one to test on, both of samples: an input of rows x
 * columns floats, and `targets` classes that the model is to name.  What is wrong with a file is
 * said in one sentence. */
#ifndef TRAIN_DATA_H
#define TRAIN_DATA_H
#include "train/idx.h"
#include "train/shard.h"
#include <stdbool.h>
#include <stdint.h>

#define DATA_ERROR_MAX IDX_ERROR_MAX /* bytes of an error sentence with its NUL */

enum data_part { DATA_TRAIN, DATA_TEST };

struct dataset;

struct data_kind {
    /* What is measured on the test samples: as a word for programs and as text, both "accuracy"; it
     * is printed times `scale`, with `unit` behind it. */
    const char *metric, *text, *unit;
    double scale;
    int digits; /* behind the point */
    bool less_is_better;
    uint32_t batch;      /* samples of a step where the user says nothing */
    uint32_t test_batch; /* and of a test: larger ones go faster */
    /* Fills all of *out but `kind`; NULL is the usual place.  On failure what is filled is freed. */
    bool (*load)(struct dataset *out, const char *path, uint32_t limit, char error[static DATA_ERROR_MAX]);
    void (*free)(struct dataset *);
    void (*sample)(const struct dataset *, enum data_part, uint32_t i, float *x, uint8_t *target);
    uint64_t (*checksum)(const struct dataset *); /* of the part to train on */
    /* The metric, from the mean loss (in nats) and the number of right answers among `count`. */
    double (*score)(double loss, uint64_t right, uint64_t count);
};

#define TEXT_CONTEXT 64     /* characters of a sample */
#define TEXT_CLASSES_MAX 128 /* different characters */

struct text {
    uint8_t *symbol; /* of each character its class */
    size_t length;
    uint32_t block, test_stride; /* windows of a block; between two that are tested on */
};

struct dataset {
    const struct data_kind *kind;
    uint32_t count[2];      /* samples of each part */
    uint32_t rows, columns; /* of an input */
    uint32_t targets;       /* of a sample */
    uint32_t classes;       /* a target is below it */
    uint8_t *group;         /* of each training sample, below `groups`: what shards differ in */
    uint32_t groups;
    struct idx_dataset images;
    struct text text;
};

/* A folder of IDX files, usually Fashion-MNIST; a text file, usually what the program `bible` prints. */
extern const struct data_kind data_images, data_text;

/* Load; `limit` > 0 keeps at most the first `limit` samples of each part.  On success *out is freed by
 * data_free(); on failure it is empty and `error` is set. */
bool data_load(struct dataset *out, const struct data_kind *, const char *path, uint32_t limit,
               char error[static DATA_ERROR_MAX]);
void data_free(struct dataset *);

/* Sample i: rows x columns floats at `x`, `targets` classes at `target`. */
void data_sample(const struct dataset *, enum data_part, uint32_t i, float *x, uint8_t *target);

/* shard_make() of the training samples. */
bool data_split(const struct dataset *, struct shard_kind, uint32_t shards, uint64_t seed,
                struct shard_split *out);
#endif
