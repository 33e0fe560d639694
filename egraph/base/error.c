#include "egraph/base/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void one_line(char *s) {
  for (; *s; s++)
    if ((unsigned char)*s < 32 || *s == 127) *s = ' ';
}

iso_code iso_fail(iso_error *err, iso_code code, const char *fmt, ...) {
  if (err) {
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(err->msg, sizeof err->msg, fmt, ap);
    va_end(ap);
    one_line(err->msg);
    err->code = code;
  }
  return code;
}

iso_code iso_prefix(iso_error *err, const char *fmt, ...) {
  if (!err) return ISO_INTERNAL;
  char old[sizeof err->msg];
  memcpy(old, err->msg, sizeof old);
  va_list ap;
  va_start(ap, fmt);
  int n = vsnprintf(err->msg, sizeof err->msg, fmt, ap);
  va_end(ap);
  if (n < 0) n = 0;
  if ((size_t)n < sizeof err->msg) snprintf(err->msg + n, sizeof err->msg - (size_t)n, "%s", old);
  one_line(err->msg);
  return err->code;
}

void iso_check_failed(const char *cond, const char *file, int line) {
  fprintf(stderr, "isomer: internal error: %s:%d: %s does not hold\n", file, line, cond);
  abort();
}
