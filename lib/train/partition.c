#include "train/partition.h"
#include <string.h>

/* The layer `l` of a part, and where it lies in the whole. */
struct block {
    uint32_t rows, columns; /* inputs, outputs */
    uint32_t stride;        /* outputs of the whole: from row to row */
    size_t whole;           /* its first weight */
    size_t whole_bias;      /* its first bias */
    size_t part, part_bias;
    bool last;
};

static uint32_t first_unit(uint32_t width, uint32_t parts, uint32_t j)
{
    return (uint32_t)((uint64_t)width * j / parts);
}

/* Width of what goes into layer l, and of what comes out of the one before it. */
static uint32_t width_of(const struct model_shape *s, uint32_t l)
{
    return l == 0 ? s->rows * s->columns : l <= s->hidden_count ? s->hidden[l - 1] : s->classes;
}

static size_t layer_at(const struct model_shape *s, uint32_t l)
{
    size_t at = 0;
    for (uint32_t k = 0; k < l; k++)
        at += ((size_t)width_of(s, k) + 1) * width_of(s, k + 1);
    return at;
}

static struct block block_of(const struct model_shape *whole, uint32_t parts, uint32_t j, uint32_t l)
{
    const struct model_shape part = partition_shape(whole, parts, j);
    struct block b = {.rows = width_of(&part, l), .columns = width_of(&part, l + 1), .stride = width_of(whole, l + 1),
                      .part = layer_at(&part, l), .last = l == whole->hidden_count};
    uint32_t row = l ? first_unit(width_of(whole, l), parts, j) : 0;
    uint32_t column = b.last ? 0 : first_unit(b.stride, parts, j);
    b.whole = layer_at(whole, l) + (size_t)row * b.stride + column;
    b.whole_bias = layer_at(whole, l) + (size_t)width_of(whole, l) * b.stride + column;
    b.part_bias = b.part + (size_t)b.rows * b.columns;
    return b;
}

const char *partition_refuse(const struct model_shape *whole, uint32_t parts)
{
    if (whole->hidden_count == 0)
        return "a perceptron without hidden layers has no parts";
    for (uint32_t i = 0; i < whole->hidden_count; i++)
        if (whole->hidden[i] < parts)
            return "a hidden layer has fewer units than there are parts";
    return NULL;
}

struct model_shape partition_shape(const struct model_shape *whole, uint32_t parts, uint32_t j)
{
    struct model_shape s = *whole;
    for (uint32_t i = 0; i < s.hidden_count; i++)
        s.hidden[i] = first_unit(whole->hidden[i], parts, j + 1) - first_unit(whole->hidden[i], parts, j);
    return s;
}

size_t partition_params(const struct model_shape *s)
{
    return layer_at(s, s->hidden_count + 1);
}

size_t partition_merged(const struct model_shape *whole, uint32_t parts)
{
    return partition_params(whole) + (size_t)parts * (1 + whole->classes);
}

/* The output biases of part j in what is averaged. */
static size_t biases_at(const struct model_shape *whole, uint32_t parts, uint32_t j)
{
    return partition_params(whole) + parts + (size_t)j * whole->classes;
}

/* to = from x by, a matrix of rows and columns in others of these strides. */
static void put(float *to, size_t to_stride, const float *from, size_t from_stride, uint32_t rows, uint32_t columns,
                double by)
{
    for (uint32_t r = 0; r < rows; r++)
        for (uint32_t c = 0; c < columns; c++)
            to[r * to_stride + c] = (float)((double)from[r * from_stride + c] * by);
}

void partition_cut(const struct model_shape *whole, uint32_t parts, uint32_t j, const float *params, float *part)
{
    for (uint32_t l = 0; l <= whole->hidden_count; l++) {
        const struct block b = block_of(whole, parts, j, l);
        put(part + b.part, b.columns, params + b.whole, b.stride, b.rows, b.columns, 1);
        put(part + b.part_bias, b.columns, params + b.whole_bias, b.stride, 1, b.columns, 1);
    }
}

void partition_give(const struct model_shape *whole, uint32_t parts, uint32_t j, const float *part, float *given)
{
    memset(given, 0, partition_merged(whole, parts) * sizeof *given);
    for (uint32_t l = 0; l <= whole->hidden_count; l++) {
        const struct block b = block_of(whole, parts, j, l);
        put(given + b.whole, b.stride, part + b.part, b.columns, b.rows, b.columns, 1);
        float *bias = b.last ? given + biases_at(whole, parts, j) : given + b.whole_bias;
        put(bias, b.stride, part + b.part_bias, b.columns, 1, b.columns, 1);
    }
    given[partition_params(whole) + j] = 1;
}

/* The weights between units of one part of neighbouring layers stay, those between parts become 0. */
static void clear_between(const struct model_shape *whole, uint32_t parts, float *params)
{
    for (uint32_t l = 1; l < whole->hidden_count; l++)
        for (uint32_t j = 0; j < parts; j++) {
            const struct block b = block_of(whole, parts, j, l);
            float *row = params + b.whole - first_unit(b.stride, parts, j);
            uint32_t from = first_unit(b.stride, parts, j);
            for (uint32_t r = 0; r < b.rows; r++, row += b.stride) {
                memset(row, 0, from * sizeof *row);
                memset(row + from + b.columns, 0, (b.stride - from - b.columns) * sizeof *row);
            }
        }
}

/* Of the outputs: the mean of the parts that are there. */
static void merge_biases(const struct model_shape *whole, uint32_t parts, const float *mean, uint32_t there, float *params)
{
    const float *share = mean + partition_params(whole);
    float *bias = params + partition_params(whole) - whole->classes;
    for (uint32_t c = 0; c < whole->classes; c++) {
        double sum = 0;
        for (uint32_t j = 0; j < parts; j++)
            sum += share[j] > 0 ? (double)mean[biases_at(whole, parts, j) + c] / (double)share[j] : 0;
        bias[c] = (float)(sum / there);
    }
}

uint32_t partition_present(const struct model_shape *whole, uint32_t parts, const float *mean)
{
    const float *share = mean + partition_params(whole);
    uint32_t there = 0;
    for (uint32_t j = 0; j < parts; j++)
        there += share[j] > 0;
    return there;
}

uint32_t partition_merge(const struct model_shape *whole, uint32_t parts, const float *mean, float *params)
{
    const float *share = mean + partition_params(whole);
    uint32_t there = partition_present(whole, parts, mean);
    if (there == 0)
        return 0;
    clear_between(whole, parts, params);
    for (uint32_t j = 0; j < parts; j++)
        for (uint32_t l = 0; l <= whole->hidden_count; l++) {
            const struct block b = block_of(whole, parts, j, l);
            double by = share[j] > 0 ? 1 / (double)share[j] : 0;
            if (b.last)
                put(params + b.whole, b.stride, mean + b.whole, b.stride, b.rows, b.columns, by / there);
            else if (share[j] > 0) {
                put(params + b.whole, b.stride, mean + b.whole, b.stride, b.rows, b.columns, by);
                put(params + b.whole_bias, b.stride, mean + b.whole_bias, b.stride, 1, b.columns, by);
            }
        }
    merge_biases(whole, parts, mean, there, params);
    return there;
}
