/* Options of commands: one table (cli/options.def), read by getopt_long and printed by --help. */
#ifndef CLI_CONFIG_OPTIONS_H
#define CLI_CONFIG_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* The value that an option takes. */
typedef enum config_kind {
  CONFIG_FLAG, /* nothing: true or false */
  CONFIG_TEXT,
  CONFIG_FILE,    /* or a folder */
  CONFIG_FILES,   /* one each time it is given */
  CONFIG_PAIRS,   /* two files each time it is given */
  CONFIG_COUNT,   /* an integer from 0 on, or in the range that is given with the option */
  CONFIG_SECONDS, /* a number above 0 */
  CONFIG_BYTES,   /* an integer above 0, or a string that ends in K, M or G */
  CONFIG_CHOICE,  /* one word of those given with the option */
  CONFIG_CHOICES  /* several of them: a list, or a string with commas */
} config_kind;

typedef struct cli_option {
  const char *command, *name; /* "rules.check", "jobs" */
  config_kind kind;
  const char *of;    /* CHOICE, CHOICES: the words; COUNT: least and most; else NULL */
  const char *value; /* as help names it; NULL: a flag */
  const char *help;
  bool once; /* of one call: settings may not give it */
} cli_option;

/* The table, command by command. */
const cli_option *cli_options(size_t *n);

/* Takes an option with its value ("" for a flag), or an operand, whose `name` is NULL; of options
 * that take two files the second in `second`. Returns: -1 to go on, else the exit status. */
typedef int (*cli_take)(void *ctx, const char *name, const char *value, const char *second);
/* Hand each word of the command line to `take`, in its order. `command` is with its verb, which
 * stands in argv[0]. --help prints, and unknown options are one line on stderr. Returns: -1 to go
 * on, else the exit status. */
int cli_options_read(const char *command, int argc, char **argv, cli_take take, void *ctx);

/* Print the --help of a command, with all of its verbs. */
void cli_help(const char *command, FILE *f);

#endif
