/* sleet-train - the reference trainer: a small model, averaged over a lossy
 * network after every local step. */
#include "sleet-train.h"
#include <cblas.h>

int main(int argc, char **argv)
{
    struct train_options options;
    int status = train_options_parse(&options, argc, argv);
    if (status >= 0) {
        edges_free(&options.edges);
        return status;
    }
    openblas_set_num_threads(1); /* the same bits on every machine size, and room for neighbours */
    struct dataset data;
    char error[DATA_ERROR_MAX];
    if (!data_load(&data, options.data_kind, options.data, options.limit, error)) {
        fprintf(stderr, "sleet-train: %s\n", error);
        edges_free(&options.edges);
        return EXIT_FAILED;
    }
    uint32_t nodes = options.sim ? options.sim : options.shard_count;
    if (nodes > data.count[DATA_TRAIN]) {
        fprintf(stderr, "sleet-train: %u training samples are too few for %u shards\n",
                data.count[DATA_TRAIN], nodes);
        status = EXIT_FAILED;
    } else {
        status = options.sim ? train_sim(&options, &data) : train_run(&options, &data);
    }
    data_free(&data);
    edges_free(&options.edges);
    return status;
}
