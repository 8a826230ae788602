/* config_rows.h - what the two files of the options share: the table and its types. */
#ifndef DAEMON_CONFIG_ROWS_H
#define DAEMON_CONFIG_ROWS_H
#include "config.h"

enum config_type {
    NUMBER,
    ADDRESS,
    TEXT,
    SECURITY,
    SWITCH,
    ROLE_NAME,
    SPEED,
    SITE_NAME,
    PEERS, /* lists: separated by commas or blanks, continued on further lines */
    IDS,
    ADVERTISED,
    PUBLIC_KEY,
    LEVEL
};

struct config_row {
    const char *section, *key;
    enum config_type type;
    const char *def;
    double low, high; /* NUMBER, SPEED: range; TEXT, SITE_NAME: length */
    const char *help;
};

extern const struct config_row config_rows[CONFIG_COUNT];

static inline bool config_is_list(int id)
{
    return config_rows[id].type >= PEERS && config_rows[id].type <= ADVERTISED;
}

/* "SLEET_SECTION_KEY". */
void config_env_name(int id, char out[64]);

/* Parse one option's text into its field; false after printing what is wrong and the fix. */
bool config_check(struct config *, int id);
/* What no option tells alone: those that contradict each other. */
bool config_check_together(const struct config *);
#endif
