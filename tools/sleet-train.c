/* sleet-train - the reference trainer: a classifier of images, averaged over a
 * lossy network after every local step. */
#include "sleet-train.h"
#include <cblas.h>

int main(int argc, char **argv)
{
    struct train_options options;
    int status = train_options_parse(&options, argc, argv);
    if (status >= 0)
        return status;
    openblas_set_num_threads(1); /* the same bits on every machine size, and room for neighbours */
    struct idx_dataset data;
    char error[IDX_ERROR_MAX];
    if (!idx_load(&data, options.data, options.limit, error)) {
        fprintf(stderr, "sleet-train: %s\n", error);
        return EXIT_FAILED;
    }
    uint32_t nodes = options.sim ? options.sim : options.shard_count;
    if (nodes > data.train.count) {
        fprintf(stderr, "sleet-train: %u training samples are too few for %u shards\n",
                data.train.count, nodes);
        status = EXIT_FAILED;
    } else {
        status = options.sim ? train_sim(&options, &data) : train_run(&options, &data);
    }
    idx_free(&data);
    return status;
}
