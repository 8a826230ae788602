/* Any bytes as an image file and as a label file.  What is accepted must have the
 * length that its header promises, what is refused must say why. */
#include "train/idx.h"
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void explained(const char *error)
{
    size_t n = strnlen(error, IDX_ERROR_MAX);
    if (n == 0 || n == IDX_ERROR_MAX)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char error[IDX_ERROR_MAX] = "";
    uint32_t count = 0, rows = 0, columns = 0;
    if (!idx_decode_images(data, size, &count, &rows, &columns, error))
        explained(error);
    else if (count == 0 || rows == 0 || columns == 0 ||
             16 + (uint64_t)count * rows * columns != size)
        abort();
    error[0] = '\0';
    if (!idx_decode_labels(data, size, &count, error)) {
        explained(error);
        return 0;
    }
    if (8 + (uint64_t)count != size)
        abort();
    for (uint32_t i = 0; i < count; i++)
        if (data[8 + i] >= IDX_CLASSES)
            abort();
    return 0;
}
