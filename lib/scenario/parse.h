/* parse.h - the parts of the scenario reader. */
#ifndef SCENARIO_PARSE_H
#define SCENARIO_PARSE_H
#include "scenario/scenario.h"
#include <stddef.h>

#define SEEN_MAX 64

/* The number behind one key of a section. */
struct scenario_key {
    const char *name;
    size_t offset; /* of a double in the section's struct */
    double low, high;
    bool whole;
};

struct reader {
    struct scenario *s;
    FILE *in, *errors;
    const char *path;
    int line;
    bool failed;
    char section[SCENARIO_NAME_MAX + 16]; /* of the line before */
    char seen[SEEN_MAX][24];              /* keys of this section so far */
    int seen_line[SEEN_MAX], seen_count;
    uint32_t link_nodes;                   /* [link ...] */
    struct scenario_link all;              /* [link *], for nodes without their own */
    uint32_t own_link;                     /* nodes with a link of their own */
    int link_line[SCENARIO_NODES_MAX], starts, starts_line, nat_line;
};

/* Say what is wrong at a line; always false. */
bool reader_wrong(struct reader *, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

bool parse_number(struct reader *, const char *key, const char *text, double low, double high,
                  bool whole, double *out);
/* "1 2 4", "*" (all: every bit); stops at `end`.  False after saying what is wrong. */
bool parse_nodes(struct reader *, const char *key, const char *text, const char *end,
                 uint32_t *nodes);
/* "freeze 3", "partition 1 2 | 3", ... */
bool parse_action(struct reader *, const char *text, struct scenario_event *);
/* The key "METRIC [NODES] [<>]" and its number. */
bool parse_expect(struct reader *, const char *key, const char *value);
/* Set the number behind `key`.  1 done, 0 there is no such key, -1 wrong value. */
int parse_key(struct reader *, const struct scenario_key *, size_t count, const char *key,
              const char *value, void *section);

/* What only the whole file shows: counts, order of events, pairs of keys. */
void scenario_review(struct reader *);
#endif
