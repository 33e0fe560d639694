/* Settings: values for a command's options that the command line does not give. The command line
 * takes precedence over the environment's variable ISOMER_<OPTION>, and that over isomer.toml.
 * There the command's own table ([compare], [rules.check]) takes precedence over the table of its
 * group ([rules]), and that over keys above the first table. Keys are the long options' names; an
 * option that may be repeated takes a list, and relative files are those beside isomer.toml.
 * docs/settings.md is the manual. */
#ifndef CLI_CONFIG_CONFIG_H
#define CLI_CONFIG_CONFIG_H

#include "cli/config/options.h"
#include "cli/config/toml.h"

typedef struct config_args {
  int argc;
  char **argv;      /* as for main, with NULL after the last. Options from settings come before the
                       user's. Borrows the strings of both */
  const char *file; /* the settings that were read, or NULL */
  toml settings;    /* private */
  iso_arena arena;  /* private */
} config_args;

/* The arguments of the program with its settings. `argc`, `argv`: main's; --config FILE and
 * --no-config are taken out of them, at any place. Nothing is read where the command line asks for
 * help, or names no command. Owns: config_free, also after an error. Errors: ISO_USAGE, ISO_IO,
 * ISO_FORMAT, each with file and line, or with the variable. */
ISO_MUST_USE iso_code config_apply(int argc, char **argv, config_args *out, iso_error *err);
void config_free(config_args *c);

/* Whether every key of `t` is an option, with a value that the option takes. `path` is the file's.
 * Errors: ISO_FORMAT. */
ISO_MUST_USE iso_code config_check(const toml *t, const char *path, iso_error *err);

#endif
