#include "sleet-train-options.h"
#include "number.h"
#include "recipe/options.h"
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

static const struct option long_options[] = {
#define OPTION_X(id, name, argument, help)                                                  \
    {name, (argument) ? required_argument : no_argument, NULL, id},
    OPTION_MAP(OPTION_X)
#undef OPTION_X
    {NULL, 0, NULL, 0}};

static const struct {
    const char *name, *argument, *help;
} option_help[] = {
#define OPTION_X(id, name, argument, help) {name, argument, help},
    OPTION_MAP(OPTION_X)
#undef OPTION_X
};

static void print_help(void)
{
    printf("Usage: sleet-train [OPTION]...\n"
           "Train a small model, averaged with the trainers of other nodes.\n\n");
    for (size_t i = 0; i < sizeof option_help / sizeof *option_help; i++) {
        char left[64];
        const char *argument = option_help[i].argument;
        snprintf(left, sizeof left, "--%s%s%s", option_help[i].name, argument ? " " : "",
                 argument ? argument : "");
        printf("  %-26s %s\n", left, option_help[i].help);
    }
}

static bool take_of_recipe(void *o, int id, const char *v)
{
    return train_option_take(o, (enum option_id)id, v);
}

/* Shard and number of nodes as the launcher gave them, unless --shard did. */
static bool from_launcher(struct train_options *o)
{
    const char *node = getenv("SLEET_NODE"), *nodes = getenv("SLEET_NODES");
    uint32_t count = 1, index = 0;
    if (node && nodes &&
        (!number_whole32(nodes, 1, NODES_MAX, &count) || !number_whole32(node, 0, count - 1, &index)))
        return false;
    if (!o->min_nodes && o->average)
        o->min_nodes = count;
    if (!o->shard_count) {
        o->shard = index;
        o->shard_count = count;
    }
    return true;
}

static int usage_error(const char *problem, const char *value)
{
    fprintf(stderr, "sleet-train: %s%s; sleet-train --help shows the options\n", problem, value);
    return EXIT_USAGE;
}

int train_options_parse(struct train_options *o, int argc, char **argv)
{
    *o = (struct train_options){.model = &model_mlp,
                                .hidden_count = UINT32_MAX,
                                .optimizer = {.rate = -1,
                                              .clip_norm = -1,
                                              .weight_decay = -1,
                                              .warm_up = UINT64_MAX,
                                              .momentum = -1,
                                              .beta1 = -1,
                                              .beta2 = -1},
                                .loss_scale = 1,
                                .init_scale = 1,
                                .seed = 1,
                                .shards_text = "iid",
                                .average = AVERAGE_MODEL,
                                .batches = {.control = {.deadband = -1}},
                                .trigger = {.delta = -1, .most = UINT64_MAX},
                                .outer = {.rate = -1, .momentum = -1},
                                .lie = 1,
                                .ef_alpha = -1,
                                .min_wait = -1,
                                .publish_every = UINT32_MAX,
                                .state_wait = -1};
    int id, status = recipe_options(RECIPE_TRAIN, argc, argv, "h", long_options, take_of_recipe, o);
    if (status >= 0)
        return status;
    const struct train_options recipe = *o;
    o->epochs = 0; /* how long to train is one thing: one of the two here takes the place of both there */
    o->steps = 0;
    while ((id = getopt_long(argc, argv, "h", long_options, NULL)) != -1) {
        if (id == O_HELP || id == 'h') {
            print_help();
            return EXIT_OK;
        }
        if (id == '?')
            return EXIT_USAGE;
        if (!train_option_take(o, (enum option_id)id, optarg)) {
            fprintf(stderr, "sleet-train: --%s does not take the value %s\n",
                    option_help[id - O_FIRST - 1].name, optarg);
            return EXIT_USAGE;
        }
    }
    if (!o->epochs && !o->steps) {
        o->epochs = recipe.epochs;
        o->steps = recipe.steps;
    }
    if (optind < argc)
        return usage_error("unexpected argument ", argv[optind]);
    if (!o->sim && !from_launcher(o))
        return usage_error("SLEET_NODE and SLEET_NODES do not name a shard", "");
    const char *wrong = train_options_settle(o);
    return wrong ? usage_error(wrong, "") : -1;
}
