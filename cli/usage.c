/* Words of a command line that are wrong, and numbers in it. */
#include "cli/cli.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

int cli_usage_error(const char *command, const char *what, const char *arg) {
  fprintf(stderr, "isomer: %s: %s%s%s%s (isomer %s --help)\n", command, what, arg ? " \"" : "",
          arg ? arg : "", arg ? "\"" : "", command);
  return CLI_ERROR;
}

bool cli_parse_u64(const char *s, uint64_t *out) {
  char *end;
  errno = 0;
  if (*s < '0' || *s > '9') return false;
  *out = strtoull(s, &end, 10);
  return errno == 0 && *end == 0;
}
