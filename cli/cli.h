/* Commands of the program: one function each, called with argv[0] the command's name. They print
 * results on stdout, one line "isomer: reason" on stderr for an error, and return the exit status.
 */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include <stdbool.h>
#include <stdint.h>

#define ISO_VERSION "0.1.0"

enum {
  CLI_EQUIVALENT = 0, /* also: it worked */
  CLI_DIFFERENT = 1,
  CLI_ERROR = 2, /* bad usage, malformed input, out of memory, a result that cannot be written */
  CLI_UNDECIDED = 3,
  CLI_INTERRUPTED = 130
};

int cmd_check(int argc, char **argv);
int cmd_compare(int argc, char **argv);
int cmd_lint(int argc, char **argv);
int cmd_run(int argc, char **argv);
int cmd_saturate(int argc, char **argv);
int cmd_show(int argc, char **argv);
int cmd_rules(int argc, char **argv);

/* ---- usage.c ---- */

/* Reports wrong usage of a command on stderr, and points to its help; `arg` may be NULL. Returns:
 * the exit status. */
int cli_usage_error(const char *command, const char *what, const char *arg);
/* A decimal number without a sign. Returns: false where it is none, or too large. */
bool cli_parse_u64(const char *s, uint64_t *out);

#endif
