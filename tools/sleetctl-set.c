/* sleetctl-set.c - change a job that runs: the strategy of a set. */
#include "client/protocol.h"
#include "sleetctl.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STRATEGY_KEY "strategy="

static const char *text_of(const cJSON *o, const char *key)
{
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(o, key));
    return text ? text : "-";
}

static void show(const cJSON *a)
{
    printf("set %s: strategy %s from round %.0f on, %s until then (version %.0f), on all nodes of the job\n",
           text_of(a, "name"), text_of(a, "strategy_next"),
           cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(a, "strategy_from")), text_of(a, "strategy"),
           cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(a, "strategy_version")));
}

static int usage(void)
{
    fputs("usage: sleetctl set [SET] strategy=NAME[:A[,B]]\n", stderr);
    return CTL_USAGE;
}

int set_main(const char *socket_path, int argc, char **argv, bool json)
{
    const char *set = NULL, *strategy = NULL;
    char line[CONTROL_LINE_MAX], name[CONTROL_NAME_MAX];
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0)
            json = true;
        else if (strncmp(argv[i], STRATEGY_KEY, strlen(STRATEGY_KEY)) == 0 && !strategy)
            strategy = argv[i] + strlen(STRATEGY_KEY);
        else if (!set)
            set = argv[i];
        else
            return usage();
    }
    if (!strategy || !*strategy || strlen(strategy) >= STRATEGY_WORD || strpbrk(strategy, " \n") ||
        (set && (!*set || strlen(set) > SLEET_NAME_MAX)))
        return usage();
    control_encode(name, set ? set : "-");
    snprintf(line, sizeof line, "strategy %s %s", name, strategy);
    return ctl_ask(socket_path, line, show, json);
}
