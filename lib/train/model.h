/* model.h - the models of the reference trainer behind one interface: classifiers of images,
 * or of the next character at each place of a text, with softmax cross entropy.
 *
 * A model is its shape and its working memory; parameters and gradients are flat vectors of
 * model_params() floats that the caller owns.  Some models keep statistics of what they saw, which no
 * gradient moves: model_statistics() floats behind the parameters.  A new model is one file that
 * defines a struct model_kind, and one entry of MODEL_MAP. */
#ifndef TRAIN_MODEL_H
#define TRAIN_MODEL_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MODEL_HIDDEN_MAX 14
#define MODEL_WIDTH_MAX 65536
#define MODEL_BATCH_MAX (1u << 20)
#define MODEL_TITLE_MAX 256

/* X(name as users write it, the kind) */
#define MODEL_MAP(X)                                                                        \
    X("mlp", model_mlp) X("mlp-si", model_mlp_si) X("cnn", model_cnn) X("cnn-bn", model_cnn_bn) \
    X("charlm", model_charlm)

struct model_shape {
    uint32_t rows, columns;            /* pixels of an image; 1 and characters of a text */
    uint32_t hidden[MODEL_HIDDEN_MAX]; /* widths of the dense layers before the last; of a charlm */
    uint32_t hidden_count;
    uint32_t classes;
    uint32_t batch; /* most samples in one call */
};

typedef struct model model;

struct model_kind {
    bool text; /* takes a text, not images */
    /* NULL, or what is wrong with the shape.  Ranges that no model allows are checked before. */
    const char *(*refuse)(const struct model_shape *);
    /* NULL when out of memory.  Fills all of *model but `kind` and `delta`. */
    model *(*open)(const struct model_shape *);
    void (*close)(model *);
    void (*init)(const model *, float *params, uint64_t seed);
    /* The n x targets x classes outputs before the softmax, valid until the next call.  `train`: to
     * learn, by the batch's own statistics; else by those behind the parameters. */
    const float *(*forward)(model *, const float *params, const float *x, uint32_t n, bool train);
    /* After forward() to learn, with the same arguments: `delta` is the gradient at the outputs; overwrites
     * `gradient`, and `x_delta`, the gradient at `x`, where that is not NULL. */
    void (*backward)(model *, const float *params, const float *x, uint32_t n, const float *delta,
                     float *gradient, float *x_delta);
    /* Take the batch of the last forward() to learn into the statistics behind `params`; NULL where the
     * kind has none. */
    void (*track)(const model *, float *params);
    /* Kind and layers, "MLP 784-64-10". */
    void (*title)(const struct model_shape *, char out[static MODEL_TITLE_MAX]);
};

/* Weights of a layer, row by row: averages of low rank take them as one. */
#define MODEL_MATRICES_MAX 24
struct model_matrix {
    size_t at; /* in the parameters */
    uint32_t rows, cols;
    bool by_rows;   /* its rows belong to units, not its columns */
    uint32_t units; /* row or column i to unit i % units; 0: it has none */
};

/* Of so many slices (slice.h) those whose gradient is wanted. */
struct model_share {
    uint32_t slices;
    const uint8_t *wanted; /* by slice; NULL: all */
};

/* The units of slice `slice` of `slices`: those from *first to before *end. */
void model_units(uint32_t units, uint32_t slices, uint32_t slice, uint32_t *first, uint32_t *end);

/* The head that a kind's own structure begins with. */
struct model {
    const struct model_kind *kind;
    size_t params, statistics;
    uint32_t classes, batch;
    uint32_t targets; /* classes to name in a sample; 0 is 1 */
    float *delta;     /* batch x targets x classes; model_new()'s */
    struct model_matrix matrix[MODEL_MATRICES_MAX]; /* in the order of the parameters */
    uint32_t matrices;
    struct model_share share;
    double backward_s; /* processor time in all gradients so far */
    uint64_t backwards;
};

#define MODEL_X(name, kind) extern const struct model_kind kind;
MODEL_MAP(MODEL_X)
#undef MODEL_X

/* The kind of that name; NULL when there is none. */
const struct model_kind *model_find(const char *name);

/* NULL, with a sentence of static storage in *why, when out of memory or range: rows x columns
 * and each width are 1 to MODEL_WIDTH_MAX, the batch 1 to MODEL_BATCH_MAX. */
model *model_new(const struct model_kind *, const struct model_shape *, const char **why);
void model_free(model *);

/* For open(): the parameters hold one more matrix.  Those beyond MODEL_MATRICES_MAX are left out. */
void model_has_matrix(model *, size_t at, size_t rows, size_t cols);
/* What the units of the matrix added last are; else each column is one. */
void model_has_units(model *, bool by_rows, uint32_t units);

size_t model_params(const model *);
size_t model_statistics(const model *);
uint32_t model_batch(const model *);

/* He initialisation: weights uniform with variance 2 / inputs, biases 0; statistics of mean 0 and
 * variance 1.  The same seed gives the same bits. */
void model_init(const model *, float *params, uint64_t seed);

/* Mean loss of `n` samples (at most model_batch(), > 0), n x rows x columns floats in `x`, n x targets
 * labels.  With a gradient by the batch's own statistics, else by those behind the parameters.
 * `gradient`, if not NULL, is overwritten with the mean gradient.  `correct`, if
 * not NULL, counts labels whose output is the largest. */
double model_loss(model *, const float *params, const float *x, const uint8_t *label, uint32_t n,
                  float *gradient, uint32_t *correct);
/* From now on gradients may be 0 in units that are not wanted, where that saves work; `wanted` is borrowed. */
void model_wants(model *, struct model_share);
/* Take the batch of the last gradient into the statistics behind the parameters. */
void model_track(const model *, float *params);
#endif
