/* idx.h - labelled images from a folder of IDX files (MNIST, Fashion-MNIST).
 *
 * A folder holds {train,t10k}-images-idx3-ubyte and {train,t10k}-labels-idx1-ubyte,
 * each plain or with .gz.  Sizes are numbers of samples unless named _bytes.
 * What is wrong with a folder is said in one sentence. */
#ifndef TRAIN_IDX_H
#define TRAIN_IDX_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define IDX_ERROR_MAX 512       /* bytes of an error sentence with its NUL */
#define IDX_CLASSES 10          /* labels are 0 .. 9 */
#define IDX_BYTES_MAX (1u << 30) /* of one file, unpacked */

/* Samples; owns its arrays. */
struct idx_samples {
    uint32_t count;
    uint32_t rows, columns; /* pixels of an image */
    uint32_t features;      /* rows x columns */
    uint8_t *pixel;         /* count x features, row after row */
    uint8_t *label;         /* count */
};

struct idx_dataset {
    struct idx_samples train, test;
};

/* Check one unpacked image file.  The pixels start at data + 16. */
bool idx_decode_images(const uint8_t *data, size_t bytes, uint32_t *count, uint32_t *rows,
                       uint32_t *columns, char error[static IDX_ERROR_MAX]);
/* Check one unpacked label file.  The labels start at data + 8. */
bool idx_decode_labels(const uint8_t *data, size_t bytes, uint32_t *count,
                       char error[static IDX_ERROR_MAX]);

/* Load a folder; `limit` > 0 keeps at most the first `limit` samples of each part.
 * On success *out is freed by idx_free(); on failure it is empty and `error` is set. */
bool idx_load(struct idx_dataset *out, const char *folder, uint32_t limit,
              char error[static IDX_ERROR_MAX]);
void idx_free(struct idx_dataset *);

/* Sample i as floats from 0 to 1, `features` of them. */
void idx_image(const struct idx_samples *, uint32_t i, float *out);
#endif
